//! Rules about functions and about the size of the core.
//!
//! Promise: a function is measured from its `fn` to its closing brace.
//! Never: counts tests, whose length is a matter of taste.

use super::fault::Fault;
use crate::source::{File, Tree};

const FUNCTION_LINES_MAX: usize = 70;

/// The core must stay small enough to be proved.
const CORE_LINES_MAX: usize = 1_600;
const CORE: &str = "core";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for file in shipped(tree) {
        for function in functions(&file.code) {
            let Function { line, lines } = function;
            if lines > FUNCTION_LINES_MAX {
                let fix = format!(
                    "{lines} lines in one function, at most {FUNCTION_LINES_MAX}; \
                                   move a question it asks into a helper"
                );
                faults.push(Fault::new(&file.path, line, fix));
            }
        }
    }
    faults.extend(core_size(tree));
    faults
}

/// Rust that ships.
fn shipped(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| file.is_rust() && !file.is_test())
}

fn core_size(tree: &Tree) -> Option<Fault> {
    let lines = core_lines(tree);
    let fix =
        format!("{lines} lines, at most {CORE_LINES_MAX}; the core holds what must be proved");
    (lines > CORE_LINES_MAX).then(|| Fault::new(format!("crates/{CORE}"), 1, fix))
}

fn core_lines(tree: &Tree) -> usize {
    let core = shipped(tree).filter(|file| file.crate_name() == Some(CORE));
    core.map(|file| file.text.lines().count()).sum()
}

/// One function with a body.
struct Function {
    /// Where its `fn` stands, from 1.
    line: usize,
    /// From `fn` to the closing brace.
    lines: usize,
}

/// Every function with a body in a blanked text.
fn functions(code: &str) -> Vec<Function> {
    let starts = code.match_indices("fn ").filter(|(at, _)| {
        let before = code[..*at].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
            && code[at + 3..].starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
    });
    let lines_in = |text: &str| text.matches('\n').count();
    let measure = |(at, _)| {
        let end = body_end(&code[at..])?;
        let lines = lines_in(&code[at..at + end]) + 1;
        Some(Function { line: lines_in(&code[..at]) + 1, lines })
    };
    starts.filter_map(measure).collect()
}

/// Where the body of the function that `code` starts with ends; `None` for a mere declaration.
/// A semicolon inside brackets belongs to an array type.
fn body_end(code: &str) -> Option<usize> {
    let (mut depth, mut brackets) = (0_usize, 0_usize);
    for (at, letter) in code.char_indices() {
        match letter {
            '[' => brackets += 1,
            ']' => brackets = brackets.saturating_sub(1),
            ';' if depth == 0 && brackets == 0 => return None,
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// One line of sizes.
pub(super) fn summary(tree: &Tree) -> String {
    let mut sizes: Vec<usize> = shipped(tree)
        .flat_map(|file| functions(&file.code))
        .map(|function| function.lines)
        .collect();
    sizes.sort_unstable();
    let at = |percent: usize| sizes.get(sizes.len() * percent / 100).copied().unwrap_or(0);
    let longest_file = shipped(tree).map(|file| file.text.lines().count()).max().unwrap_or(0);
    format!(
        "functions: {} in all, median {} lines, p90 {}, longest {}; longest file {longest_file}; \
         core {} of {CORE_LINES_MAX} lines",
        sizes.len(),
        at(50),
        at(90),
        sizes.last().copied().unwrap_or(0),
        core_lines(tree),
    )
}
