//! Frames that memory has damaged, as the log's disk has them.
//!
//! Promise: what was found damaged is what readers get until it is released.
//! Never: reads; takes a lock while memory is sound.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_core::Lsn;

/// A frame as the disk has it, from its header on.
pub(crate) type Bytes = Arc<[u8]>;

/// What memory has damaged and nobody has released, by where it starts.
#[derive(Debug, Default)]
pub(crate) struct DamagedFrames {
    /// Whether there are any: whoever reads sound memory takes no lock.
    any: AtomicBool,
    frames: Mutex<BTreeMap<Lsn, Bytes>>,
}

impl DamagedFrames {
    /// The frame that `lsn` lies in, and where it starts.
    pub(crate) fn around(&self, lsn: Lsn) -> Option<(Lsn, Bytes)> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let frames = self.lock();
        let (at, bytes) = frames.range(..=lsn).next_back()?;
        (lsn < at.advance(bytes.len() as u64)).then(|| (*at, bytes.clone()))
    }

    pub(crate) fn put(&self, at: Lsn, bytes: Bytes) {
        self.lock().insert(at, bytes);
        self.any.store(true, Ordering::Relaxed);
    }

    /// Nobody reads below `upto` any more.
    pub(crate) fn release(&self, upto: Lsn) {
        if self.any.load(Ordering::Relaxed) {
            let mut frames = self.lock();
            *frames = frames.split_off(&upto);
            self.any.store(!frames.is_empty(), Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Lsn, Bytes>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
