//! The repository as `tidy` sees it: texts, and Rust with its comments and strings blanked.
//!
//! Promise: reads each file once; a blanked text has the same lines and columns as the original.
//! Never: judges.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders that hold nothing of ours.
const SKIPPED: [&str; 3] = ["target", ".git", "results"];

/// One file.
pub(crate) struct File {
    /// Path from the root of the repository.
    pub(crate) path: PathBuf,
    /// As it is.
    pub(crate) text: String,
    /// Rust only: comments, strings and characters replaced by spaces.
    pub(crate) code: String,
}

/// Every text the rules look at.
pub(crate) struct Tree {
    /// Root of the repository; rules about links look for files below it.
    pub(crate) root: PathBuf,
    /// All files with one of the endings `rs`, `toml`, `md`.
    pub(crate) files: Vec<File>,
}

impl File {
    /// A file from its path and text.
    pub(crate) fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> File {
        let (path, text) = (path.into(), text.into());
        let code = if ends(&path, "rs") { blank(&text) } else { String::new() };
        File { path, text, code }
    }

    /// True for Rust.
    pub(crate) fn is_rust(&self) -> bool {
        ends(&self.path, "rs")
    }

    /// True for Rust that only tests run: `tests.rs`, anything below `tests/`, loom models.
    pub(crate) fn is_test(&self) -> bool {
        let is_test = |part: &str| matches!(part, "tests" | "tests.rs" | "benches" | "loom");
        self.path.iter().filter_map(|part| part.to_str()).any(is_test)
    }

    /// Name of the crate that the file belongs to: its folder's, without the prefix of packages.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        let mut parts = self.path.iter().filter_map(|part| part.to_str());
        match parts.next()? {
            "crates" | "lab" => parts.next(),
            chores => (chores == "xtask").then_some(chores),
        }
    }
}

impl Tree {
    /// Reads the repository.
    pub(crate) fn read(root: &Path) -> io::Result<Tree> {
        let mut tree = Tree { root: root.to_owned(), files: Vec::new() };
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() && !SKIPPED.contains(&name.as_str()) {
                    folders.push(path);
                } else if ["rs", "toml", "md"].iter().any(|ending| ends(&path, ending)) {
                    let text = fs::read_to_string(&path)?;
                    tree.files.push(File::new(path.strip_prefix(root).unwrap_or(&path), text));
                }
            }
        }
        tree.files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(tree)
    }

    /// The file at this path.
    pub(crate) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == Path::new(path))
    }
}

/// True if the file's name ends so.
pub(crate) fn ends(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found == ending)
}

/// Replaces comments, strings and characters by spaces, so that braces and words can be counted.
pub(crate) fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let length = literal_bytes(rest, out.chars().next_back());
        let (taken, hidden) = match length {
            Some(length) => (length, true),
            None => (rest.chars().next().map_or(1, char::len_utf8), false),
        };
        for letter in rest[..taken].chars() {
            out.push(if hidden && letter != '\n' { ' ' } else { letter });
        }
        rest = &rest[taken..];
    }
    out
}

/// Length of the comment, string or character that `rest` starts with, if it does.
fn literal_bytes(rest: &str, before: Option<char>) -> Option<usize> {
    let to_end = |end: &str, from: usize| {
        rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len())
    };
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(to_end("*/", 2));
    }
    if rest.starts_with('"') {
        return Some(quoted(rest));
    }
    let in_word = before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    if rest.starts_with('r') && !in_word {
        let hashes = rest[1..].bytes().take_while(|&byte| byte == b'#').count();
        if rest[1 + hashes..].starts_with('"') {
            return Some(to_end(&format!("\"{}", "#".repeat(hashes)), 2 + hashes));
        }
    }
    rest.starts_with('\'').then(|| character(rest)).flatten()
}

/// Length of a string literal, with its quotes.
fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Length of a character literal; `None` for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut letters = rest.char_indices().skip(1);
    let (_, first) = letters.next()?;
    if first == '\\' {
        return rest[3..].find('\'').map(|at| at + 4);
    }
    let (at, second) = letters.next()?;
    (second == '\'').then_some(at + 1)
}

#[cfg(test)]
mod tests;
