//! A verdict, for people.
//!
//! Promise: the words are those of the configuration, and each failure that memory does not survive
//! comes with its reason and with what would supply it.
//! Never: judges.

use crate::claims::{Class, Failure, Gap, Verdict};

/// What a verdict means, for people, a line each.
pub fn verdict_text(verdict: &Verdict) -> String {
    let lines = verdict_lines(verdict);
    lines.iter().map(|(key, value)| format!("  {key:<12} {value}\n")).collect()
}

/// The lines of a verdict: what is said, and what of it.
pub fn verdict_lines(verdict: &Verdict) -> Vec<(&'static str, String)> {
    let acknowledges = match verdict.class {
        Class::Memory => "when the memory region has it (class memory)",
        Class::Disk => "when the log's disk has it (class disk)",
    };
    let words = |failures: &[Failure]| match failures.len() {
        0 => "nothing".to_owned(),
        _ => failures.iter().map(|f| f.word()).collect::<Vec<_>>().join(", "),
    };
    let mut lines = vec![
        ("acknowledges", acknowledges.to_owned()),
        ("survives", words(&verdict.survives)),
        ("NOT", words(&verdict.lost_in)),
    ];
    lines.extend(verdict.missing.iter().map(|gap| ("", gap_text(verdict.class, gap))));
    lines
}

fn gap_text(class: Class, gap: &Gap) -> String {
    let Gap { failure, why, supply, .. } = gap;
    let failure = failure.word();
    let lead = match (class, gap.asked) {
        (Class::Disk, true) => format!("writes through because of {failure}"),
        (Class::Disk, false) => format!("memory alone would not survive {failure}"),
        (Class::Memory, _) => format!("does not survive {failure}"),
    };
    format!("{lead}: {why}; needs {supply}")
}
