//! Paths that a configuration or a user names go through one door.
//!
//! Promise: the command and the memory of regions make, replace and remove no file by its path
//! alone, and listen at none: another user may have chosen what is there.
//! Never: looks at tests, or at what shows and measures, which works in a folder of its own.

use super::fault::Fault;
use crate::source::{File, Tree};

/// Where the rule holds.
const GUARDED: [&str; 6] = [
    "crates/attach/src",
    "crates/holdfast/src",
    "crates/keeper/src",
    "crates/machine/src",
    "crates/memory/src",
    "crates/process/src",
];

/// What goes by a path alone.
const CALLS: [&str; 8] = [
    "File::create(",
    "File::options(",
    "OpenOptions",
    "UnixListener::bind(",
    "create_dir_all(",
    "fs::remove_file(",
    "fs::write(",
    "umask(",
];

/// The kernel's own files.
const KERNEL: &str = "\"/proc/self/";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    tree.files.iter().filter(|file| is_guarded(file)).flat_map(faults).collect()
}

fn is_guarded(file: &File) -> bool {
    let is_below = |folders: &[&str]| folders.iter().any(|folder| file.path.starts_with(folder));
    file.is_rust() && !file.is_test() && is_below(&GUARDED)
}

fn faults(file: &File) -> Vec<Fault> {
    let lines = file.code.lines().zip(file.text.lines()).enumerate();
    let found =
        lines.filter(|(_, (_, text))| !text.contains(KERNEL)).filter_map(|(at, (code, _))| {
            let call = CALLS.iter().find(|call| code.contains(**call))?;
            let fix = format!("`{call}` goes by a path alone; use `holdfast_io::private`");
            Some(Fault::new(&file.path, at + 1, fix))
        });
    found.collect()
}
