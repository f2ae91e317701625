//! Rules about documents: every link leads somewhere, and every page is two links from the README.
//!
//! Promise: checks relative links; leaves the network alone.
//! Never: judges prose.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::fault::Fault;
use crate::source::{File, Tree, ends};

const README: &str = "README.md";
const PAGES: &str = "docs";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let documents = || tree.files.iter().filter(|file| ends(&file.path, "md"));
    let mut faults = Vec::new();
    for file in documents() {
        for (line, target) in links(file) {
            if !tree.root.join(&target).exists() && tree.get(&target.to_string_lossy()).is_none() {
                let fix = format!("link to {}, which does not exist; mend it", target.display());
                faults.push(Fault::new(&file.path, line, fix));
            }
        }
    }
    let reached = reached(tree);
    let pages = documents().filter(|file| file.path.starts_with(PAGES));
    for file in pages.filter(|file| !reached.contains(&file.path)) {
        let fix = "nobody comes here from the README in two links; link it where it matters";
        faults.push(Fault::new(&file.path, 1, fix));
    }
    faults
}

/// What the README links, and what that links.
fn reached(tree: &Tree) -> BTreeSet<PathBuf> {
    let linked_by = |path: &PathBuf| {
        let file = tree.get(&path.to_string_lossy()).filter(|file| ends(&file.path, "md"));
        file.map_or(Vec::new(), links).into_iter().map(|(_, target)| target)
    };
    let first: BTreeSet<PathBuf> = linked_by(&README.into()).collect();
    let second: BTreeSet<PathBuf> = first.iter().flat_map(linked_by).collect();
    &first | &second
}

/// Line and target, from the root, of each relative link outside code blocks.
fn links(file: &File) -> Vec<(usize, PathBuf)> {
    let folder = file.path.parent().unwrap_or(Path::new(""));
    let (mut found, mut in_code) = (Vec::new(), false);
    for (at, line) in file.text.lines().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        for target in line.split("](").skip(1).filter(|_| !in_code) {
            let target = target.split([')', '#']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") {
                found.push((at + 1, normal(&folder.join(target))));
            }
        }
    }
    found
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}
