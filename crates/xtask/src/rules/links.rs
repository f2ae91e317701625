//! Rules about documents: every link leads somewhere, every decision is linked.
//!
//! Promise: checks relative links; leaves the network alone.
//! Never: judges prose.

use std::path::{Component, Path, PathBuf};

use super::Fault;
use crate::source::{File, Tree, ends};

const DECISIONS: &str = "docs/decisions";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let documents = || tree.files.iter().filter(|file| ends(&file.path, "md"));
    let mut linked = Vec::new();
    let mut faults = Vec::new();
    for file in documents() {
        for (line, target) in links(file) {
            if !tree.root.join(&target).exists() && tree.get(&target.to_string_lossy()).is_none() {
                let fix = format!("link to {}, which does not exist; mend it", target.display());
                faults.push(Fault::new(&file.path, line, fix));
            }
            linked.push(target);
        }
    }
    let decisions = documents().filter(|file| file.path.starts_with(DECISIONS));
    for file in decisions.filter(|file| !linked.contains(&file.path)) {
        let fix = "no document links this decision; link it where it matters";
        faults.push(Fault::new(&file.path, 1, fix));
    }
    faults
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
