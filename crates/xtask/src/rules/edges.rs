//! Rules about memory orders: every Acquire and Release names its edge, at both ends.
//!
//! Promise: an edge name that stands alone is found, and so is an order without an edge.
//! Never: knows whether the order is right; loom does.

use std::collections::BTreeMap;

use super::Fault;
use crate::source::{File, Tree};

/// Orders that make an edge.
const ORDERS: [&str; 3] = ["Ordering::Acquire", "Ordering::Release", "Ordering::AcqRel"];

/// Lines above an order within which its edge is named.
const EDGE_LINES: usize = 8;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let files = || tree.files.iter().filter(|file| file.is_rust() && !file.is_test());
    let mut faults: Vec<Fault> = files().flat_map(unnamed).collect();
    faults.extend(single(files()));
    faults
}

/// Orders without a name.
fn unnamed(file: &File) -> Vec<Fault> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut faults = Vec::new();
    for (at, code) in file.code.lines().enumerate() {
        let orders = ORDERS.iter().any(|order| code.contains(order));
        let above = &lines[at.saturating_sub(EDGE_LINES)..=at];
        if orders && !above.iter().any(|line| edge(line).is_some()) {
            let fix = "an order without `// EDGE name:`; name the edge and what it carries";
            faults.push(Fault::new(&file.path, at + 1, fix));
        }
    }
    faults
}

/// Names that occur only once.
fn single<'a>(files: impl Iterator<Item = &'a File>) -> Vec<Fault> {
    let mut ends: BTreeMap<String, Vec<Fault>> = BTreeMap::new();
    for file in files {
        for (at, line) in file.text.lines().enumerate() {
            if let Some(name) = edge(line) {
                let fix = format!("edge `{name}` has one end; name the other end with it too");
                ends.entry(name.into()).or_default().push(Fault::new(&file.path, at + 1, fix));
            }
        }
    }
    ends.into_values().filter(|ends| ends.len() == 1).flatten().collect()
}

/// The name in `// EDGE name:`, which may stand after code.
fn edge(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("// EDGE ")?;
    let (name, _) = rest.split_once(':')?;
    Some(name.trim())
}
