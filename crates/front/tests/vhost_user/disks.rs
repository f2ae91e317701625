//! Disks for tests.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use holdfast_io::{Blocks, BlocksError};

use crate::guest::PATIENCE;

/// A disk in a file, with a device that can be slow and can fail.
pub(crate) struct FileBlocks {
    file: File,
    size_bytes: u64,
    /// How often it was flushed.
    pub(crate) flushes: AtomicUsize,
    /// How long each change takes, besides what the file takes.
    pub(crate) change: Duration,
    /// Whether flushes end.
    pub(crate) gate: Gate,
    /// A sector that can be neither read nor written.
    pub(crate) flaw: Option<u64>,
}

/// Lets flushes through, or does not.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
    moved: Condvar,
}

#[derive(Default)]
struct GateState {
    is_closed: bool,
    waiting: usize,
}

/// A gate that is closed until this is dropped, so that no flush outlives a test that fails.
pub(crate) struct Closed<'a>(&'a Gate);

impl Gate {
    pub(crate) fn close(&self) -> Closed<'_> {
        self.state.lock().unwrap().is_closed = true;
        Closed(self)
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        self.moved.notify_all();
        let mut state = self.moved.wait_while(state, |state| state.is_closed).unwrap();
        state.waiting -= 1;
    }
}

impl Closed<'_> {
    /// Until a flush stands before the gate.
    pub(crate) fn wait_for_one(&self) {
        let state = self.0.state.lock().unwrap();
        let nobody = |state: &mut GateState| state.waiting == 0;
        let waited = self.0.moved.wait_timeout_while(state, PATIENCE, nobody).unwrap();
        assert!(!waited.1.timed_out(), "no flush came");
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().is_closed = false;
        self.0.moved.notify_all();
    }
}

impl FileBlocks {
    /// A disk of `size_bytes` in `file`, which is made as long.
    pub(crate) fn new(file: File, size_bytes: u64) -> Self {
        file.set_len(size_bytes).unwrap();
        let (flushes, gate) = (AtomicUsize::new(0), Gate::default());
        Self { file, size_bytes, flushes, change: Duration::ZERO, gate, flaw: None }
    }

    pub(crate) fn flushes(&self) -> usize {
        self.flushes.load(Ordering::SeqCst)
    }

    fn look(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        assert!(offset + bytes <= self.size_bytes, "the front end has not checked the range");
        let hits = |flaw: u64| (offset..offset + bytes).contains(&(flaw * 512));
        if self.flaw.is_some_and(hits) { Err(BlocksError::NoSpace) } else { Ok(()) }
    }
}

impl Blocks for FileBlocks {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read(&self, into: &mut [u8], offset: u64) -> Result<(), BlocksError> {
        self.look(offset, into.len() as u64)?;
        self.file.read_exact_at(into, offset).map_err(BlocksError::Failed)
    }

    fn write(&self, from: &[u8], offset: u64) -> Result<(), BlocksError> {
        self.look(offset, from.len() as u64)?;
        thread::sleep(self.change);
        self.file.write_all_at(from, offset).map_err(BlocksError::Failed)
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.write(&vec![0; bytes as usize], offset)
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.write_zeroes(offset, bytes)
    }

    fn flush(&self) -> Result<(), BlocksError> {
        self.gate.pass();
        self.flushes.fetch_add(1, Ordering::SeqCst);
        thread::sleep(self.change);
        Ok(())
    }

    fn atomic_bytes_max(&self) -> usize {
        4096
    }
}
