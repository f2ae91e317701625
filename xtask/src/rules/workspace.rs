//! Rules about crates: the arrows between them are the ones that ARCHITECTURE.md draws.
//!
//! Promise: an arrow that is not drawn and a drawn arrow that does not exist are both faults;
//! so is one from the product to what shows, measures or torments it.
//! Never: counts dev-dependencies; a test may use what it likes.

use std::collections::{BTreeMap, BTreeSet};

use super::fault::Fault;
use crate::source::{File, Tree};

const PICTURE: &str = "ARCHITECTURE.md";
const FENCE: &str = "```arrows";
const PREFIX: &str = "holdfast-";

/// The crate that may depend on nothing at all.
const ALONE: &str = "core";

/// What ships.
const PRODUCT: &str = "crates";

/// What the product may not know.
const LAB: &str = "lab";

/// A workspace of its own is no part of the picture.
const OWN_WORKSPACE: &str = "[workspace]";

/// Targets by source.
type Arrows = BTreeMap<String, BTreeSet<String>>;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let real = real(tree);
    let mut faults = [core_dependencies(tree), lab_dependencies(tree)].concat();
    match tree.get(PICTURE).and_then(|file| drawn(&file.text)) {
        Some(drawn) => faults.extend(compare(&real, &drawn)),
        None => faults.push(Fault::new(PICTURE, 1, format!("no {FENCE} block; draw the crates"))),
    }
    faults
}

fn compare(real: &Arrows, drawn: &Arrows) -> Vec<Fault> {
    let mut faults = Vec::new();
    for from in real.keys().chain(drawn.keys().filter(|name| !real.contains_key(*name))) {
        let none = BTreeSet::new();
        let (is, should) = (real.get(from).unwrap_or(&none), drawn.get(from).unwrap_or(&none));
        for to in is.symmetric_difference(should) {
            let fix = if is.contains(to) {
                format!(
                    "{from} -> {to} is not drawn; remove the dependency, or decide it and draw it"
                )
            } else {
                format!("{from} -> {to} is drawn but does not exist; remove it from the picture")
            };
            faults.push(Fault::new(PICTURE, 1, fix));
        }
    }
    let missing = real.keys().filter(|name| !drawn.contains_key(*name));
    let fix = |name: &String| format!("crate {name} is missing from the picture; draw it");
    faults.extend(missing.map(|name| Fault::new(PICTURE, 1, fix(name))));
    faults
}

/// The arrows of the picture: lines such as `log -> core, io`, or a name alone.
fn drawn(text: &str) -> Option<Arrows> {
    let (_, rest) = text.split_once(FENCE)?;
    let (block, _) = rest.split_once("```")?;
    let lines = block.lines().map(str::trim).filter(|line| !line.is_empty());
    let arrow = |line: &str| {
        let (from, to) = line.split_once("->").unwrap_or((line, ""));
        let to = to.split(',').map(str::trim).filter(|name| !name.is_empty());
        (from.trim().to_owned(), to.map(str::to_owned).collect())
    };
    Some(lines.map(arrow).collect())
}

/// The arrows of the manifests.
fn real(tree: &Tree) -> Arrows {
    let mut arrows = Arrows::new();
    for (name, file) in manifests(tree) {
        arrows.insert(name.to_owned(), targets(file).map(str::to_owned).collect());
    }
    arrows
}

/// Short name and manifest of each crate of this workspace.
fn manifests(tree: &Tree) -> impl Iterator<Item = (&str, &File)> {
    tree.files.iter().filter_map(|file| {
        let name = file.crate_name()?;
        // Nothing of a folder below is a member.
        let is_manifest = file.path.ends_with(format!("{name}/Cargo.toml"));
        let is_member = is_manifest && !file.text.lines().any(|line| line == OWN_WORKSPACE);
        is_member.then_some((name, file))
    })
}

/// Short names of the crates that a manifest depends on.
fn targets(manifest: &File) -> impl Iterator<Item = &str> {
    dependencies(&manifest.text).into_iter().filter_map(|of| of.strip_prefix(PREFIX))
}

/// Names below `[dependencies]` and `[target.*.dependencies]`, and those that have a table each.
fn dependencies(manifest: &str) -> Vec<&str> {
    let (mut names, mut inside) = (Vec::new(), false);
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            let header = line.trim_matches(['[', ']']);
            let is_counted = !header.contains("dev-dependencies");
            inside = is_counted && header.ends_with("dependencies");
            let named = header.split_once("dependencies.").filter(|_| is_counted);
            names.extend(named.map(|(_, name)| name));
        } else if inside && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            names.extend((!name.is_empty()).then_some(name));
        }
    }
    names
}

fn core_dependencies(tree: &Tree) -> Vec<Fault> {
    let core = manifests(tree).filter(|(name, _)| *name == ALONE);
    let fault = |of: &str| {
        let fix = format!("core depends on {of}; the core depends on nothing");
        Fault::new(format!("crates/{ALONE}/Cargo.toml"), 1, fix)
    };
    core.flat_map(|(_, file)| dependencies(&file.text)).map(fault).collect()
}

fn lab_dependencies(tree: &Tree) -> Vec<Fault> {
    let below = |folder: &'static str| {
        manifests(tree).filter(move |(_, file)| file.path.starts_with(folder))
    };
    let lab: BTreeSet<&str> = below(LAB).map(|(name, _)| name).collect();
    let mut faults = Vec::new();
    for (name, file) in below(PRODUCT) {
        for of in targets(file).filter(|of| lab.contains(of)) {
            let fix = format!(
                "{name} depends on {of}, which is in {LAB}/; the product knows nothing of that: \
                 cut it, or move the crate to {PRODUCT}/"
            );
            faults.push(Fault::new(&file.path, 1, fix));
        }
    }
    faults
}
