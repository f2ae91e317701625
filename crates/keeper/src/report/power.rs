//! What status prints of the power.
//!
//! Promise: the same facts as text and as JSON, which only gains fields.
//! Never: finds anything out.

use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The power source of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerStatus {
    /// Who tells of it.
    pub source: String,
    /// `unproven`, `charging`, `armed`, `on battery`, `draining`, `safe`, `testing`, `stale`.
    pub state: String,
    /// Why memory may not acknowledge because of it; empty if it may.
    pub why: String,
    /// Whether nothing is to be done about it: it may, or will before long, or nobody would.
    pub is_well: bool,
    /// How long it has been so, in seconds.
    pub since_s: u64,
    /// How long the machine goes on without the mains, as the source says, in milliseconds.
    pub hold_up_ms: Option<u64>,
    /// How much of that may be used to drain, in milliseconds.
    pub drain_ms: u64,
    /// How often memory was told to acknowledge no more.
    pub taken_back: u64,
    /// What is wrong with the source.
    pub trouble: Option<String>,
    /// While the mains fail, what may be in memory alone: logs, and memory that has none.
    #[serde(default)]
    pub alone: Vec<String>,
    /// The last drill, or why those that were noted prove nothing.
    pub drill: Option<String>,
}

impl PowerStatus {
    /// For people.
    pub(super) fn text(&self) -> String {
        let PowerStatus { source, state, why, since_s, drain_ms, drill, .. } = self;
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        let mut text = format!("power {state} for {since_s} s{why}\n  source       {source}\n");
        if let Some(trouble) = &self.trouble {
            let _ = writeln!(text, "               {trouble}");
        }
        let told = self.hold_up_ms.map_or("nothing".to_owned(), |ms| format!("{} s", ms / 1000));
        let _ = writeln!(text, "  hold-up      told {told}; {drain_ms} ms may be used to drain");
        self.alone.iter().for_each(|it| {
            let _ = writeln!(text, "  in memory    {it}");
        });
        let drill = drill.as_deref().unwrap_or("none: `holdfast drill`");
        let _ = writeln!(text, "  drill        {drill}");
        text
    }

    /// What is not well.
    pub(super) fn trouble(&self) -> Option<String> {
        (!self.is_well).then(|| format!("the power is {}: {}", self.state, self.why))
    }
}
