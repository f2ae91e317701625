//! Repository chores: `cargo xtask tidy` and `cargo xtask figures`.
//!
//! Promise: `tidy` names each broken rule with file, line and fix, and fails if there is any.
//! Never: changes code; `figures` writes a page, and parts of documents.

mod figures;
mod rules;
mod source;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let done = match task.as_str() {
        "tidy" => tidy(&root()),
        "figures" => figures::write(&root()),
        _ => Err(io::Error::other("say `cargo xtask tidy` or `cargo xtask figures`")),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _unwritable = writeln!(io::stderr(), "xtask {task}: {error}");
            ExitCode::from(2)
        }
    }
}

/// The folder of the workspace.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Checks the whole repository. True if every rule holds.
fn tidy(root: &Path) -> io::Result<bool> {
    let tree = source::Tree::read(root)?;
    let faults = rules::check(&tree);
    let mut out = io::stdout().lock();
    for fault in &faults {
        writeln!(out, "{fault}")?;
    }
    let outdated = figures::outdated(root)?;
    for path in &outdated {
        writeln!(out, "{path}: its figures are not lab/bench/results; run `cargo xtask figures`")?;
    }
    writeln!(out, "{}", rules::summary(&tree))?;
    let count = faults.len() + outdated.len();
    writeln!(out, "tidy: {count} faults")?;
    Ok(count == 0)
}
