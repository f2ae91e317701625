//! What other processes tell comes through two doors.
//!
//! Promise: nothing but those two builds the place of a process in `/proc`, or copies descriptors
//! of one: whoever does may wait for that process for ever.
//! Never: looks at tests and benchmarks, which look at processes of their own.

use super::fault::Fault;
use crate::source::{File, Tree};

/// What is told without waiting, and what is asked with a bound.
const DOORS: [&str; 2] = ["crates/io/src/process.rs", "crates/machine/src/processes/"];

/// How a look at a process begins.
const LOOKS: [&str; 3] = ["\"/proc/{", "\"/proc\"", "pidfd_getfd("];

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let is_guarded = |file: &&File| {
        file.is_rust()
            && !file.is_test()
            && file.path.starts_with("crates")
            && !DOORS.iter().any(|door| file.path.to_string_lossy().starts_with(door))
    };
    tree.files.iter().filter(is_guarded).flat_map(faults).collect()
}

fn faults(file: &File) -> Vec<Fault> {
    let lines = file.text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
    let found = lines.filter_map(|(at, line)| {
        let look = LOOKS.iter().find(|look| line.contains(**look))?;
        let fix = format!(
            "`{look}` may wait for a process for ever; use `holdfast_io::process`, or `processes` \
             of the command"
        );
        Some(Fault::new(&file.path, at + 1, fix))
    });
    found.collect()
}
