//! Rules about memory orders: every Acquire and Release names its edge, at both ends.
//!
//! Promise: an edge name that stands alone is found, and so is an order without an edge.
//! Never: knows whether the order is right; loom does.

use std::collections::BTreeMap;

use super::fault::Fault;
use crate::source::{File, Tree};

/// Where a crate may name its orders, so that a model can weaken them one by one. Using such a
/// name is using the order.
const NAMES: &str = "orderings.rs";

/// Orders that make an edge.
const ORDERS: [&str; 3] = ["Ordering::Acquire", "Ordering::Release", "Ordering::AcqRel"];

/// Lines above an order within which its edge is named.
const EDGE_LINES: usize = 8;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let files = || tree.files.iter().filter(|file| file.is_rust() && !file.is_test());
    let (naming, using): (Vec<&File>, Vec<&File>) =
        files().partition(|file| file.path.ends_with(NAMES));
    let mut orders: Vec<&str> = naming.iter().flat_map(|file| names(&file.code)).collect();
    orders.extend(ORDERS);
    let mut faults: Vec<Fault> = using.iter().flat_map(|file| unnamed(file, &orders)).collect();
    faults.extend(single(files()));
    faults
}

/// The constants of type `Ordering` that a file defines.
fn names(code: &str) -> impl Iterator<Item = &str> {
    let definition = |line: &'_ str| line.contains(": Ordering");
    code.lines().filter(move |line| definition(line)).filter_map(|line| {
        let (_, rest) = line.split_once("const ")?;
        rest.split(':').next()
    })
}

/// Orders without a name.
fn unnamed(file: &File, orders: &[&str]) -> Vec<Fault> {
    let lines: Vec<&str> = file.text.lines().collect();
    let (mut faults, mut importing) = (Vec::new(), false);
    for (at, code) in file.code.lines().enumerate() {
        importing |= code.trim_start().starts_with("use ");
        let ordered = !importing && orders.iter().any(|order| code.contains(order));
        let above = &lines[at.saturating_sub(EDGE_LINES)..=at];
        if ordered && !above.iter().any(|line| edge(line).is_some()) {
            let fix = "an order without `// EDGE name:`; name the edge and what it carries";
            faults.push(Fault::new(&file.path, at + 1, fix));
        }
        importing &= !code.contains(';');
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
