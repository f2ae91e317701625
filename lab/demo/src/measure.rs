//! The comparison: every setting, in turn, again and again.
//!
//! Promise: settings are interleaved and their order rotates, so that a machine that grows noisy
//! disturbs all of them; no run pays for files that were moved before it.
//! Never: compares figures of different repetitions.

use super::disks::Setting;
use super::error::DemoError;
use super::progress::Progress;
use super::subject::{Case, Database, Subject, Words};
use super::volume::Volume;

/// One timed run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// How the database ran.
    pub(super) setting: Setting,
    /// Id of the load.
    pub(super) case: &'static str,
    /// Repetition, from 0.
    pub(super) repetition: u32,
    /// Transactions per second.
    pub(super) per_second: f64,
    /// Median latency.
    pub(super) p50_ms: f64,
    /// Latency that 99 of 100 transactions did not exceed.
    pub(super) p99_ms: f64,
}

/// Measures every setting of a subject `repetitions` times. The database is stopped before and
/// after.
pub(super) fn run<D: Database>(
    database: &mut D,
    subject: &Subject,
    volumes: &[Volume],
    repetitions: u32,
    seconds: u32,
    progress: Progress,
) -> Result<Vec<Sample>, DemoError> {
    let mut samples = Vec::new();
    for repetition in 0..repetitions {
        let mut order: Vec<&Words> = subject.settings.iter().collect();
        order.rotate_left(repetition as usize % subject.settings.len());
        for words in order {
            database.enter(words.setting)?;
            volumes.iter().try_for_each(Volume::settle)?;
            for case in subject.cases {
                let sample = sample(database, words.setting, case, repetition, seconds)?;
                progress.say(&sample.sentence(words.title, case, repetitions));
                samples.push(sample);
            }
            database.leave()?;
        }
    }
    Ok(samples)
}

fn sample<D: Database>(
    database: &mut D,
    setting: Setting,
    case: &Case,
    repetition: u32,
    seconds: u32,
) -> Result<Sample, DemoError> {
    let outcome = database.run(case, seconds)?.undisturbed()?;
    Ok(Sample {
        setting,
        case: case.id,
        repetition,
        per_second: outcome.per_second,
        p50_ms: outcome.latency_ms(50),
        p99_ms: outcome.latency_ms(99),
    })
}

impl Sample {
    fn sentence(&self, setting: &str, case: &Case, repetitions: u32) -> String {
        let Sample { per_second, p99_ms, .. } = self;
        let (title, repetition) = (case.title, self.repetition + 1);
        format!(
            "repetition {repetition} of {repetitions}: {setting:<32} {title:<9} \
             {per_second:>8.0} transactions/s, p99 {p99_ms:.2} ms"
        )
    }
}
