//! Rules about the text of a file: width, trailing space, ASCII, length, head.
//!
//! Promise: looks at lines only.
//! Never: needs to understand Rust.

use super::Fault;
use crate::source::{File, Tree};

const COLUMNS_MAX: usize = 100;
const FILE_LINES_MAX: usize = 850;

/// Lines within which a file must have said what it is.
const HEAD_LINES: usize = 12;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let rust = tree.files.iter().filter(|file| file.is_rust());
    rust.flat_map(|file| [lines(file), size(file), head(file)].concat()).collect()
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

fn head(file: &File) -> Vec<Fault> {
    let head: Vec<&str> = file.text.lines().take(HEAD_LINES).collect();
    let missing = |words: &str| !head.iter().any(|line| line.starts_with(words));
    let mut faults = Vec::new();
    if missing("//! ") {
        faults.push(Fault::new(&file.path, 1, "no contract; open the file with `//!` and its job"));
    } else if missing("//! Promise:") {
        faults.push(Fault::new(&file.path, 1, "no `//! Promise:` in the head; say what holds"));
    } else if missing("//! Never:") && !file.text.contains("\n//! Never:") {
        faults.push(Fault::new(
            &file.path,
            1,
            "no `//! Never:` in the head; say what it leaves out",
        ));
    }
    faults
}
