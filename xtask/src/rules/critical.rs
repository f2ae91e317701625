//! Rules about the code on which durability depends: which it is, and how much of it there may be.
//!
//! Promise: a file that is listed and missing, and a crate that outgrows its number, are faults.
//! Never: decides what is critical; ARCHITECTURE.md does.

use std::path::{Path, PathBuf};

use super::fault::Fault;
use crate::source::Tree;

const LIST: &str = "ARCHITECTURE.md";
const FENCE: &str = "```critical";

pub(super) fn check(tree: &Tree) -> Vec<Fault> {
    let Some(file) = tree.get(LIST) else { return Vec::new() };
    let mut faults = Vec::new();
    for (line, entry) in entries(&file.text) {
        let mut say = |fix: String| faults.push(Fault::new(LIST, line, fix));
        let Some(entry) = entry else {
            say("not `crate <= lines: files`; write it so".into());
            continue;
        };
        let (lines, missing) = entry.measure(tree);
        missing.iter().for_each(|path| say(format!("{} does not exist; mend it", path.display())));
        if lines > entry.lines_max {
            let max = entry.lines_max;
            let name = entry.name;
            say(format!(
                "{name}: {lines} critical lines, at most {max}; move what is not critical"
            ));
        }
    }
    faults
}

/// Lines of critical code in all.
pub(super) fn lines(tree: &Tree) -> usize {
    let Some(file) = tree.get(LIST) else { return 0 };
    let entries = entries(&file.text).into_iter().filter_map(|(_, entry)| entry);
    entries.map(|entry| entry.measure(tree).0).sum()
}

/// One line of the list.
struct Entry<'a> {
    name: &'a str,
    lines_max: usize,
    /// Without their ending; none for the whole crate.
    files: Vec<&'a str>,
}

impl Entry<'_> {
    /// How many lines there are, and which files are missing.
    fn measure(&self, tree: &Tree) -> (usize, Vec<PathBuf>) {
        let folder = Path::new("crates").join(self.name).join("src");
        let (mut lines, mut missing) = (0, Vec::new());
        if self.files.is_empty() {
            let whole = tree.files.iter().filter(|file| file.path.starts_with(&folder));
            let whole = whole.filter(|file| file.is_rust() && !file.is_test());
            lines = whole.map(|file| file.text.lines().count()).sum();
        }
        for name in &self.files {
            let path = folder.join(format!("{name}.rs"));
            match tree.get(&path.to_string_lossy()) {
                Some(file) => lines += file.text.lines().count(),
                None => missing.push(path),
            }
        }
        (lines, missing)
    }
}

/// The lines of the list with their numbers; `None` for one that cannot be read. Lines such as
/// `core <= 1600`, or `log <= 900: writer, drain`.
fn entries(text: &str) -> Vec<(usize, Option<Entry<'_>>)> {
    let inside = text.lines().enumerate().skip_while(|(_, line)| *line != FENCE).skip(1);
    let inside = inside.take_while(|(_, line)| !line.starts_with("```"));
    inside.map(|(at, line)| (at + 1, entry(line))).collect()
}

fn entry(line: &str) -> Option<Entry<'_>> {
    let (head, files) = line.split_once(':').unwrap_or((line, ""));
    let (name, lines_max) = head.split_once("<=")?;
    let files = files.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    Some(Entry { name: name.trim(), lines_max: lines_max.trim().parse().ok()?, files })
}
