//! What of a database is to be compared by eye.
//!
//! Promise: a setting has the same colour in every panel.
//! Never: draws.

use holdfast_figures::{Bar, Panel, Scale};

use super::disks::Setting;
use super::subject::{Subject, Words};
use crate::site::Way;

/// The colour of a setting.
pub(super) fn colour(setting: Setting) -> &'static str {
    match setting {
        Setting::Sync => "#8a8f98",
        Setting::Async => "#c9a227",
        Setting::Holdfast(Way::Direct) => "#1f7a4d",
        Setting::Holdfast(Way::Queue) => "#7cb342",
        Setting::FastLog => "#0b5d7a",
        Setting::Powered => "#b3541e",
        Setting::Tmpfs => "#5b7db1",
    }
}

/// A panel of rates for each case of a database, and one of its last case's latencies.
pub(super) fn panels(subject: &Subject) -> Vec<Panel> {
    let panel = |case: &str, title: String, measure: &str| {
        let bar = |words: &Words| Bar {
            label: words.title.into(),
            colour: colour(words.setting),
            id: format!("{}.{case}.{}.{measure}", subject.id, words.id),
        };
        let bars = subject.settings.iter().map(bar).collect();
        Panel { title, scale: Scale::Linear, bars }
    };
    let rates = subject.cases.iter().map(|case| {
        panel(case.id, format!("{}, {}, transactions/s", subject.name, case.title), "tps")
    });
    let last = subject.cases.last().map(|case| {
        panel(case.id, format!("{}, {}, 99th percentile, ms", subject.name, case.title), "p99_ms")
    });
    rates.chain(last).collect()
}

#[cfg(test)]
mod tests;
