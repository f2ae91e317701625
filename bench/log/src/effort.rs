//! How much is measured.
//!
//! Promise: a quick run does all that a whole one does, with less of each.
//! Never: differs between logs.

use std::time::Duration;

use crate::record::Format;

/// Sizes of sets with one thread.
pub(crate) const SETS: [usize; 3] = [1, 2, 4];

/// Threads with sets of one.
pub(crate) const THREADS: [u32; 3] = [8, 32, 64];

/// Bytes that a log may take for a record as MessagePack,
const RECORD_BYTES_MAX: u64 = 160;

/// and as JSON.
const JSON_RECORD_BYTES_MAX: u64 = 400;

/// Bytes that are to spare in every room.
const SPARE_BYTES: u64 = 8 << 20;

/// More records than any log makes durable in a second.
const SYNCED_PER_S_MAX: u64 = 400_000;

/// How much.
pub(crate) struct Effort {
    /// Times that synced sets are measured,
    pub(crate) repetitions: usize,
    /// and, in the first of these, everything else, which takes much longer.
    pub(crate) long_repetitions: usize,
    /// How long synced sets are appended before the clock starts,
    pub(crate) warm_up: Duration,
    /// and while it runs.
    pub(crate) synced: Duration,
    /// Records appended without a sync, and read back.
    pub(crate) records: u32,
}

impl Effort {
    pub(crate) fn new(quick: bool) -> Effort {
        let (repetitions, long_repetitions) = if quick { (1, 1) } else { (5, 3) };
        let (warm_up_ms, synced_ms) = if quick { (20, 150) } else { (200, 1000) };
        Effort {
            repetitions,
            long_repetitions,
            warm_up: Duration::from_millis(warm_up_ms),
            synced: Duration::from_millis(synced_ms),
            records: if quick { 1 << 15 } else { 2_000_000 },
        }
    }

    /// Bytes that synced sets take at most.
    pub(crate) fn synced_bytes(&self) -> u64 {
        let time = (self.warm_up + self.synced).as_millis() as u64;
        SYNCED_PER_S_MAX * time / 1000 * RECORD_BYTES_MAX + SPARE_BYTES
    }

    /// Bytes that the records take at most.
    pub(crate) fn records_bytes(&self, format: Format) -> u64 {
        let record = match format {
            Format::MessagePack => RECORD_BYTES_MAX,
            Format::Json => JSON_RECORD_BYTES_MAX,
        };
        u64::from(self.records) * record + SPARE_BYTES
    }
}
