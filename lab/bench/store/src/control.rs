//! What the device does by itself: writes of one client, each synced before the next.
//!
//! Promise: the file is full of zeros, and synced, before anything is timed, so that no write
//! changes more than its own blocks.
//! Never: keeps anything.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use holdfast_bench_common::place::Place;

use crate::Failure;

/// Bytes of a write: a transaction's, about.
const WRITE_BYTES: usize = 512;

/// Bytes of the file.
const FILE_BYTES: usize = 16 << 20;

/// A file that is written and synced.
pub(crate) struct Control {
    file: File,
    at: u64,
}

impl Control {
    pub(crate) fn new(place: &Place) -> Result<Control, Failure> {
        let mut file = File::create(place.path().join("zeros"))?;
        file.write_all(&vec![0; FILE_BYTES])?;
        file.sync_all()?;
        Ok(Control { file, at: 0 })
    }

    /// Syncs in a second.
    pub(crate) fn per_s(&mut self, time: Duration) -> Result<f64, Failure> {
        let (began, mut syncs) = (Instant::now(), 0);
        while began.elapsed() < time {
            self.file.write_all_at(&[1; WRITE_BYTES], self.at)?;
            self.file.sync_data()?;
            self.at = (self.at + WRITE_BYTES as u64) % FILE_BYTES as u64;
            syncs += 1;
        }
        Ok(f64::from(syncs) / began.elapsed().as_secs_f64())
    }
}
