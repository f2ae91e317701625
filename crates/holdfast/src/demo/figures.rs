//! Figures: what a benchmark writes for machines to read.
//!
//! Promise: one object with the commit, the machine and what an acknowledgement meant, and a list
//! of figures each with its unit, its goal and the single runs behind it.
//! Never: measures anything.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// The result of one benchmark.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    /// Name of the benchmark, also of its files.
    pub(crate) name: String,
    /// Commit of the source tree it ran in, or `unknown`.
    pub(crate) commit: String,
    /// When it ended, UTC, ISO 8601.
    pub(crate) date: String,
    /// What it ran on.
    pub(crate) machine: Machine,
    /// What an acknowledgement meant.
    pub(crate) class: String,
    /// The figures.
    pub(crate) figures: Vec<Figure>,
}

/// The machine under a benchmark.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    /// Model name of the first processor.
    pub(crate) cpu: String,
    /// Processors this process may use.
    pub(crate) cores: usize,
    /// Kernel release.
    pub(crate) kernel: String,
    /// What the log disk was.
    pub(crate) disk: String,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// One number.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    /// Stable name, such as `postgres.c8.holdfast_over_sync`.
    pub(crate) id: String,
    /// Median of `runs`.
    pub(crate) value: f64,
    /// Unit of `value` and `runs`.
    pub(crate) unit: String,
    /// Which way is better.
    pub(crate) better: Better,
    /// What the project asks of it; absent for a row that is only reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) goal: Option<f64>,
    /// What it is compared with, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<String>,
    /// The single runs, in the order they ran.
    pub(crate) runs: Vec<f64>,
}

impl Figure {
    /// A figure whose value is the median of its runs.
    pub(crate) fn of(id: impl Into<String>, unit: &str, better: Better, runs: Vec<f64>) -> Figure {
        let (id, unit, value) = (id.into(), unit.into(), median(&runs));
        Figure { id, value, unit, better, goal: None, peer: None, runs }
    }

    /// The same figure with a goal and what it is measured against.
    pub(crate) fn against(mut self, goal: f64, peer: &str) -> Figure {
        self.goal = Some(goal);
        self.peer = Some(peer.into());
        self
    }

    /// The same figure with what it is compared with, of which nothing is asked.
    pub(crate) fn beside(mut self, peer: &str) -> Figure {
        self.peer = Some(peer.into());
        self
    }

    /// Whether the goal is met; `None` without a goal.
    pub(crate) fn met(&self) -> Option<bool> {
        self.goal.map(|goal| match self.better {
            Better::Higher => self.value >= goal,
            Better::Lower => self.value <= goal,
        })
    }
}

impl Figures {
    /// An object for this commit, machine and moment, still without figures.
    pub(crate) fn here(name: &str, disk: &str, class: &str) -> Figures {
        Figures {
            name: name.into(),
            commit: commit(),
            date: utc_now(),
            machine: Machine::here(disk),
            class: class.into(),
            figures: Vec::new(),
        }
    }

    /// The figure with this id.
    pub(crate) fn get(&self, id: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.id == id)
    }
}

impl Machine {
    fn here(disk: &str) -> Machine {
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name"));
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        Machine {
            cpu: model.map_or("unknown", |rest| rest.trim_matches([' ', '\t', ':'])).into(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease"),
            disk: disk.into(),
        }
    }
}

/// The middle value; the mean of the two middle values of an even count; NaN of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// The value below which `percent` of a sorted list lies; 0 of nothing.
pub(crate) fn percentile(sorted: &[u64], percent: u64) -> u64 {
    let rank = (sorted.len() as u64 * percent).div_ceil(100).max(1) - 1;
    usize::try_from(rank).ok().and_then(|rank| sorted.get(rank)).copied().unwrap_or(0)
}

fn commit() -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let git = Command::new("git").arg("-C").arg(here).args(["rev-parse", "HEAD"]).output();
    let said = git.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let said = said.and_then(|bytes| String::from_utf8(bytes).ok());
    said.map_or_else(|| "unknown".into(), |commit| commit.trim().to_owned())
}

fn utc_now() -> String {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    utc(since_1970.as_secs())
}

/// Seconds since 1970 as ISO 8601. Days are counted in eras of 400 years that begin in March,
/// which puts the leap day at the end of a year.
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests;
