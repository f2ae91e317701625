//! `holdfast plan paper`.
//!
//! Promise: every number of the paper that a simulation can give, beside ours, and why they differ
//! where they do by much.
//! Never: calls a difference small that is not.

use super::printed::{say, write};
use crate::output::{Output, Progress};
use holdfast_config::problem::Outcome;
use holdfast_plan::paper::{Compared, Named, compare, run};
use holdfast_plan::{Effort, drawn};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Simulates what the paper did.
pub(super) fn paper(out: Option<&Path>, output: Output) -> Outcome<()> {
    let mut progress = Progress::new();
    let results = Named::ALL
        .map(|it| run(it, Effort::FULL, |done, all| say(&mut progress, it.name(), done, all)));
    drop(progress);
    let compared = compare(&results);
    if let Some(out) = out {
        write("plan-paper", drawn::paper(&results, &compared), out)?;
    }
    output.result(&compared.iter().map(json).collect::<Vec<_>>(), &text(&compared));
    Ok(())
}

fn text(compared: &[Compared]) -> String {
    let mut text = format!("{:<56} {:>9} {:>9}\n", "", "the paper", "ours");
    for row in compared {
        let (what, unit, percent) = (row.what, row.unit, row.difference() * 100.0);
        let _infallible = writeln!(
            text,
            "{what:<56} {:>9} {:>9.2} {unit:<13} {percent:>+6.1} %",
            row.paper, row.ours,
        );
        if row.is_far() {
            let _infallible = writeln!(text, "    {}", row.because);
        }
    }
    text
}

fn json(row: &Compared) -> Value {
    json!({
        "id": row.id,
        "unit": row.unit,
        "paper": row.paper,
        "ours": row.ours,
        "difference": row.difference(),
        "because": row.because,
    })
}
