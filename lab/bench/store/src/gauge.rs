//! The device under a run: what it did for it, and what it does by itself.
//!
//! Promise: the device is measured by itself just before the run and just after; its work is
//! counted until nothing is left to write.
//! Never: counts what the measuring of the device by itself asks for.

use holdfast_bench_common::flushes::{self, Device, Flushes};
use holdfast_bench_common::place::Place;

use crate::Failure;
use crate::control::Control;
use crate::effort::Effort;

/// What a run of durable transactions asked of the device.
pub(crate) struct Synced {
    /// The run's rate over that of the device's syncs.
    pub(crate) over_control: f64,
    /// Nothing if the device's flushes cannot be counted.
    pub(crate) work: Option<Work>,
}

/// What the device was asked for, for each transaction.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    pub(crate) flushes: f64,
    pub(crate) written_bytes: f64,
}

/// The device, as it was.
#[derive(Clone, Copy)]
struct Counts {
    flushes: Flushes,
    written_bytes: u64,
}

/// A run's measure.
pub(crate) struct Gauge<'a> {
    effort: &'a Effort,
    device: Option<&'a Device>,
    control: Control,
    alone_per_s: f64,
    before: Option<Counts>,
    /// Flushes of the run alone.
    flushes: Option<u64>,
}

fn counts(device: Option<&Device>) -> Result<Option<Counts>, Failure> {
    let counts =
        |it: &Device| Ok(Counts { flushes: it.look()?, written_bytes: it.written_bytes()? });
    device.map(counts).transpose()
}

impl<'a> Gauge<'a> {
    /// Just before a run.
    pub(crate) fn begin(
        place: &Place,
        device: Option<&'a Device>,
        effort: &'a Effort,
    ) -> Result<Gauge<'a>, Failure> {
        let mut control = Control::new(place)?;
        let alone_per_s = control.per_s(effort.control)?;
        let before = counts(device)?;
        Ok(Gauge { effort, device, control, alone_per_s, before, flushes: None })
    }

    /// When the last transaction has been acknowledged.
    pub(crate) fn stop(mut self) -> Result<Gauge<'a>, Failure> {
        let both = counts(self.device)?.zip(self.before);
        self.flushes = both.map(|(after, before)| after.flushes.since(before.flushes).count);
        Ok(self)
    }

    /// When the store is closed, after so many transactions of so many threads. Refuses a run whose
    /// transactions cannot all have been made durable.
    pub(crate) fn end(
        mut self,
        place: &Place,
        (count, threads): (u64, u32),
        per_s: f64,
    ) -> Result<Synced, Failure> {
        place.settle()?;
        let both = counts(self.device)?.zip(self.before);
        let written = both.map(|(after, before)| after.written_bytes - before.written_bytes);
        let after_per_s = self.control.per_s(self.effort.control)?;
        if let Some(flushes) = self.flushes {
            flushes::check(flushes, (count, "transactions"), threads)?;
        }
        let each = |amount: u64| amount as f64 / count as f64;
        let work = |(flushes, bytes)| Work { flushes: each(flushes), written_bytes: each(bytes) };
        Ok(Synced {
            over_control: per_s / f64::midpoint(self.alone_per_s, after_per_s),
            work: self.flushes.zip(written).map(work),
        })
    }
}
