//! How much is measured.
//!
//! Promise: a quick run does all that a whole one does, with less of each.
//! Never: differs between logs, except that this repository's own is given the paper's two million
//! records where a rate shows with fewer.

use std::time::Duration;

use crate::record::Format;

/// Sizes of sets with one thread.
pub(crate) const SETS: [usize; 3] = [1, 2, 4];

/// Threads with sets of one.
pub(crate) const THREADS: [u32; 3] = [8, 32, 64];

/// Threads with sets of one, where a sealed log with parity stands beside a plain one.
pub(crate) const SEALED_THREADS: [u32; 2] = [1, 32];

/// Segments that synced sets go through, at most.
pub(crate) const ROLLS: u32 = 100;

/// Bytes that a log may take for a record as MessagePack,
const RECORD_BYTES_MAX: u64 = 192;

/// and as JSON.
const JSON_RECORD_BYTES_MAX: u64 = 400;

/// Bytes that are to spare in every room.
const SPARE_BYTES: u64 = 8 << 20;

/// More records than any log makes durable in a second.
const SYNCED_PER_S_MAX: u64 = 400_000;

/// How much.
pub(crate) struct Effort {
    /// Times that everything is measured.
    pub(crate) repetitions: usize,
    /// How long synced sets are appended before the clock starts,
    pub(crate) warm_up: Duration,
    /// while it runs, in one turn of a log,
    pub(crate) turn: Duration,
    /// and how many turns each log has.
    pub(crate) turns: usize,
    /// Records of the paper's experiment, and of logs that are read back.
    pub(crate) records: u32,
    /// Records that are appended without a sync where logs are compared.
    pub(crate) compared: u32,
    /// Records of a small and of a large log that are opened after a crash.
    pub(crate) scanned: [u32; 2],
    /// Segments that synced sets go through.
    pub(crate) rolls: u32,
}

impl Effort {
    pub(crate) fn whole() -> Effort {
        Effort {
            repetitions: 5,
            warm_up: Duration::from_millis(100),
            turn: Duration::from_millis(100),
            turns: 10,
            records: 2_000_000,
            compared: 500_000,
            scanned: [560_000, 5_600_000],
            rolls: ROLLS,
        }
    }

    pub(crate) fn quick() -> Effort {
        Effort {
            repetitions: 1,
            warm_up: Duration::from_millis(20),
            turn: Duration::from_millis(50),
            turns: 3,
            records: 1 << 16,
            compared: 1 << 15,
            scanned: [1 << 15, 1 << 17],
            rolls: 4,
        }
    }

    /// Bytes that synced sets take at most.
    pub(crate) fn synced_bytes(&self) -> u64 {
        let time = (self.warm_up + self.turn * self.turns as u32).as_millis() as u64;
        SYNCED_PER_S_MAX * time / 1000 * RECORD_BYTES_MAX + SPARE_BYTES
    }
}

/// Bytes that so many records take at most.
pub(crate) fn bytes(records: u32, format: Format) -> u64 {
    let record = match format {
        Format::MessagePack => RECORD_BYTES_MAX,
        Format::Json => JSON_RECORD_BYTES_MAX,
    };
    u64::from(records) * record + SPARE_BYTES
}
