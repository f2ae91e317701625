//! The comparison: every setting, in turn, again and again.
//!
//! Promise: settings are interleaved and their order rotates, so that a machine that grows noisy
//! disturbs all of them; a warm-up after each start is discarded.
//! Never: compares figures of different repetitions.

use super::cluster::Cluster;
use super::load::Load;
use super::settings::{Places, Setting};
use super::wal;
use crate::demo::error::DemoError;
use crate::demo::progress::Progress;

/// Numbers of clients that are measured.
pub(super) const CLIENTS: [u32; 2] = [1, 8];

/// Length of the discarded load after each start.
const WARM_UP_S: u32 = 1;

/// One timed run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// How PostgreSQL ran.
    pub(super) setting: Setting,
    /// Connections.
    pub(super) clients: u32,
    /// Repetition, from 0.
    pub(super) repetition: u32,
    /// Transactions per second.
    pub(super) per_second: f64,
    /// Median latency.
    pub(super) p50_ms: f64,
    /// Latency that 99 of 100 transactions did not exceed.
    pub(super) p99_ms: f64,
}

/// Measures every setting `repetitions` times. The cluster is stopped before and after.
pub(super) fn run(
    cluster: &mut Cluster,
    places: &Places,
    repetitions: u32,
    seconds: u32,
    progress: Progress,
) -> Result<Vec<Sample>, DemoError> {
    let mut samples = Vec::new();
    for repetition in 0..repetitions {
        let mut order = Setting::ALL;
        order.rotate_left(repetition as usize % Setting::ALL.len());
        for setting in order {
            wal::move_to(cluster, &places.wal(setting))?;
            cluster.start(setting.synchronous_commit())?;
            Load { clients: 8, seconds: WARM_UP_S, round: None }.run(cluster)?;
            for clients in CLIENTS {
                let sample = sample(cluster, setting, clients, repetition, seconds)?;
                progress.say(&sample.sentence(repetitions));
                samples.push(sample);
            }
            cluster.stop()?;
        }
    }
    Ok(samples)
}

fn sample(
    cluster: &Cluster,
    setting: Setting,
    clients: u32,
    repetition: u32,
    seconds: u32,
) -> Result<Sample, DemoError> {
    let outcome = Load { clients, seconds, round: None }.run(cluster)?;
    Ok(Sample {
        setting,
        clients,
        repetition,
        per_second: outcome.per_second,
        p50_ms: outcome.latency_ms(50),
        p99_ms: outcome.latency_ms(99),
    })
}

impl Sample {
    fn sentence(&self, repetitions: u32) -> String {
        let Sample { clients, per_second, p99_ms, .. } = self;
        let (setting, repetition) = (self.setting.title(), self.repetition + 1);
        let noun = if *clients == 1 { "client " } else { "clients" };
        format!(
            "repetition {repetition} of {repetitions}: {setting:<22} {clients} {noun} \
             {per_second:>8.0} transactions/s, p99 {p99_ms:.2} ms"
        )
    }
}
