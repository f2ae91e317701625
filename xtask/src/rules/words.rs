//! Rules about words: what may not be written, and where `unsafe` may stand.
//!
//! Promise: looks at blanked code, so a word in a comment or string breaks no rule.
//! Never: repeats what the compiler or clippy already refuses in every build.

use super::fault::Fault;
use crate::source::{File, Tree};

/// Words that shipped code does without, each with what to do instead.
const FORBIDDEN: [(&str, &str); 6] = [
    ("println!", "return the text, or write to a handle that was passed in"),
    ("eprintln!", "use tracing, or write to a handle that was passed in"),
    ("dbg!", "remove it"),
    ("todo!", "finish it, or leave it out"),
    ("unimplemented!", "finish it, or leave it out"),
    (".unwrap()", "return an error, or `expect` with the invariant that makes it impossible"),
];

/// The one file of a program that prints.
const PRINTER: &str = "output.rs";

/// Lines above an unsafe block within which its SAFETY comment stands.
const SAFETY_LINES: usize = 12;

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for file in tree.files.iter().filter(|file| file.is_rust()) {
        if !file.is_test() {
            faults.extend(forbidden(file));
        }
        faults.extend(unsafe_words(file));
        faults.extend(todos(file));
    }
    faults
}

fn forbidden(file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    let prints = file.path.ends_with(PRINTER);
    for (at, line) in file.code.lines().enumerate() {
        if line.starts_with("mod tests {") {
            let fix = "tests inside the file; move them to a `tests.rs` in a folder of its name";
            faults.push(Fault::new(&file.path, at + 1, fix));
            break;
        }
        for (word, fix) in FORBIDDEN {
            if stands_alone(line, word) && !(prints && word.ends_with("println!")) {
                faults.push(Fault::new(&file.path, at + 1, format!("`{word}`; {fix}")));
            }
        }
    }
    faults
}

/// True if `word` occurs in `line` and is not the end of a longer word.
fn stands_alone(line: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let longer = |at: usize| !word.starts_with('.') && line[..at].ends_with(is_part);
    line.match_indices(word).any(|(at, _)| !longer(at))
}

fn unsafe_words(file: &File) -> Vec<Fault> {
    let allowed = file.path.file_name().is_some_and(|name| name == "raw.rs");
    let lines: Vec<&str> = file.text.lines().collect();
    let mut faults = Vec::new();
    for (at, line) in file.code.lines().enumerate() {
        let opens = ["unsafe {", "unsafe impl"].iter().any(|words| line.contains(words));
        let declares = line.contains("unsafe fn") || line.contains("unsafe extern");
        if (opens || declares) && !allowed {
            faults.push(Fault::new(&file.path, at + 1, "unsafe; it may stand in a `raw.rs` only"));
        }
        let above = &lines[at.saturating_sub(SAFETY_LINES)..=at];
        if opens && !above.iter().any(|line| line.contains("SAFETY:")) {
            let fix = "unsafe without `// SAFETY:`; name the rule it stands on";
            faults.push(Fault::new(&file.path, at + 1, fix));
        }
    }
    faults
}

fn todos(file: &File) -> Vec<Fault> {
    let comments = file.text.lines().zip(file.code.lines()).enumerate();
    let is_bare = |(_, (line, code)): &(usize, (&str, &str))| {
        let written = ["TODO", "FIXME"].iter().any(|word| {
            // In a string the word is blanked too; only a comment counts.
            line.find(word).is_some_and(|at| line[..at].contains("//") && !code.contains(word))
        });
        written && !line.contains('#')
    };
    let fault = |(at, _)| {
        Fault::new(&file.path, at + 1, "a TODO without an issue number; add `#number` or do it")
    };
    comments.filter(is_bare).map(fault).collect()
}
