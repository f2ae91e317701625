//! What a block device did: how often it was told to make its cache durable, how many of that
//! overlapped, and how much was written to it.
//!
//! Promise: counts what the kernel sent to the device, whoever asked for it, so a log cannot look
//! durable by calling a sync that does nothing.
//! Never: counts where a count would say nothing: on a device without a volatile cache, or one that
//! makes single writes durable, or one whose kernel driver keeps no statistics.

use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

use crate::Failure;

/// Where the kernel's statistics of a block device have the sectors that were written,
const WRITTEN_FIELD: usize = 6;

/// which are of this size on every device.
const SECTOR_BYTES: u64 = 512;

/// Where they have its completed flushes.
const FLUSHES_FIELD: usize = 15;

/// Where they have the milliseconds that flushes took, each counted by itself.
const FLUSHING_FIELD: usize = 16;

/// Of each set that a flush could have made durable, how many must have had one.
const LEAST: f64 = 0.9;

/// What a device did since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushes {
    /// How many.
    pub count: u64,
    /// Milliseconds, each flush counted by itself: more than the time that passed if they overlap.
    pub took_ms: u64,
}

impl Flushes {
    /// What was done since an earlier look.
    #[must_use]
    pub fn since(self, before: Flushes) -> Flushes {
        Flushes { count: self.count - before.count, took_ms: self.took_ms - before.took_ms }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Flushes) -> Flushes {
        Flushes { count: self.count + other.count, took_ms: self.took_ms + other.took_ms }
    }
}

/// A block device that is flushed.
pub struct Device {
    folder: PathBuf,
}

impl Device {
    /// The device below a folder; nothing if its flushes cannot be counted.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn below(folder: &Path) -> Result<Option<Device>, Failure> {
        let number = fs::metadata(folder)?.st_dev();
        let link = format!("/sys/dev/block/{}:{}", major(number), minor(number));
        let Ok(mut place) = fs::canonicalize(link) else { return Ok(None) };
        // Flushes are counted for a whole disk, not for its parts.
        if place.join("partition").exists() {
            place.pop();
        }
        let device = Device { folder: place };
        Ok(device.is_flushed().then_some(device))
    }

    /// True if a write is durable only after a flush.
    fn is_flushed(&self) -> bool {
        let says = |file: &str, word: &str| {
            fs::read_to_string(self.folder.join("queue").join(file))
                .is_ok_and(|text| text.trim() == word)
        };
        says("write_cache", "write back")
            && says("fua", "0")
            && self.look().is_ok_and(|it| it.count > 0)
    }

    /// What it did since the machine started.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn look(&self) -> Result<Flushes, Failure> {
        flushes(&self.statistics()?).ok_or_else(|| "a device without a count of flushes".into())
    }

    /// Bytes that were written to it since the machine started, whoever wrote them.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn written_bytes(&self) -> Result<u64, Failure> {
        let sectors = field(&self.statistics()?, WRITTEN_FIELD);
        sectors
            .map(|it| it * SECTOR_BYTES)
            .ok_or_else(|| "a device without a count of writes".into())
    }

    fn statistics(&self) -> Result<String, Failure> {
        Ok(fs::read_to_string(self.folder.join("stat"))?)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        self.folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into())
    }
}

/// The device of a run, in words: without a count nobody knows that `what` is durable.
#[must_use]
pub fn told(device: Option<&Device>, what: &str) -> String {
    match device {
        Some(device) => format!("{}, flushes counted", device.name()),
        None => {
            format!("one whose flushes cannot be counted: THAT {what} ARE DURABLE IS NOT CHECKED")
        }
    }
}

fn flushes(statistics: &str) -> Option<Flushes> {
    let field = |place| field(statistics, place);
    Some(Flushes { count: field(FLUSHES_FIELD)?, took_ms: field(FLUSHING_FIELD)? })
}

fn field(statistics: &str, place: usize) -> Option<u64> {
    statistics.split_whitespace().nth(place)?.parse().ok()
}

/// Refuses a run whose sets, or whatever else was waited for, cannot all have been made durable:
/// each thread waits for its own, so a flush serves one a thread at most.
///
/// # Errors
/// If there were too few flushes, with how many it takes.
pub fn check(flushes: u64, (sets, what): (u64, &str), threads: u32) -> Result<(), Failure> {
    let needed = LEAST * sets as f64 / f64::from(threads);
    if (flushes as f64) < needed {
        let said = format!(
            "NOT DURABLE: {sets} {what} of {threads} threads were acknowledged after {flushes} \
             flushes of the device; at least {needed:.0} are needed"
        );
        return Err(said.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
