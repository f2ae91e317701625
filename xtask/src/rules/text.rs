//! Rules about the text of a file: name, width, trailing space, ASCII, length, head.
//!
//! Promise: looks at lines only.
//! Never: needs to understand Rust.

use super::fault::Fault;
use crate::source::{File, Tree};

const COLUMNS_MAX: usize = 100;
const FILE_LINES_MAX: usize = 850;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let rust = tree.files.iter().filter(|file| file.is_rust());
    rust.flat_map(|file| [name(file), lines(file), size(file), head(file)].concat()).collect()
}

/// A module has one name, so that it is found by it.
fn name(file: &File) -> Vec<Fault> {
    let fix = "a module is named as its folder, and stands beside it; move it there";
    let unnamed = file.path.ends_with("mod.rs");
    unnamed.then(|| Fault::new(&file.path, 1, fix)).into_iter().collect()
}

fn lines(file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let mut say = |fix: String| faults.push(Fault::new(&file.path, at + 1, fix));
        let columns = line.chars().count();
        if columns > COLUMNS_MAX {
            say(format!("{columns} columns; break the line before column {COLUMNS_MAX}"));
        }
        if line.ends_with([' ', '\t']) {
            say("trailing space; remove it".into());
        }
        if let Some(letter) = line.chars().find(|letter| !letter.is_ascii()) {
            say(format!("`{}` is not ASCII; write it out", letter.escape_unicode()));
        }
    }
    faults
}

fn size(file: &File) -> Vec<Fault> {
    let lines = file.text.lines().count();
    let fix = format!("{lines} lines, at most {FILE_LINES_MAX}; split the file by what it does");
    (lines > FILE_LINES_MAX)
        .then(|| Fault::new(&file.path, FILE_LINES_MAX, fix))
        .into_iter()
        .collect()
}

/// Every file says what it is; what ships also says what it promises and what it never does.
fn head(file: &File) -> Vec<Fault> {
    let lines = file.text.lines().skip_while(|line| line.starts_with("#![") || line.is_empty());
    let head: Vec<&str> = lines.take_while(|line| line.starts_with("//!")).collect();
    let missing = |words: &str| !head.iter().any(|line| line.starts_with(words));
    let fix = if head.is_empty() {
        "no contract; open the file with `//!` and its job"
    } else if !file.is_test() && missing("//! Promise:") {
        "no `//! Promise:` in the head; say what holds"
    } else if !file.is_test() && missing("//! Never:") {
        "no `//! Never:` in the head; say what it leaves out"
    } else {
        return Vec::new();
    };
    vec![Fault::new(&file.path, 1, fix)]
}
