//! Files in memory that can be lost, torn, damaged and refused.
//!
//! Promise: behaves as [`crate::real::RealFiles`] does until a test asks for trouble; the same seed
//! and the same calls give the same trouble.
//! Never: keeps what no sync has covered out of luck's reach.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::faults::{Fault, Operation};
use super::machine::{Machine, ROOT};
use super::turn::{Outcome, Turn};
use super::{FakeLimits, Hindrance, Mood, Random, Sectors};
use crate::unnamed;

/// A fake disk. A clone is another handle to the same machine: dropping all handles of a program
/// and opening the files again by another clone is what a killed process leaves behind.
#[derive(Clone)]
pub struct FakeFiles {
    pub(super) machine: Arc<Mutex<Machine>>,
    /// The directory that the empty path names.
    pub(super) root: u64,
}

impl fmt::Debug for FakeFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations = self.operations();
        formatter.debug_struct("FakeFiles").field("operations", &operations).finish()
    }
}

/// The power is gone.
#[derive(Clone, Copy, Debug)]
struct PowerCut;

impl fmt::Display for PowerCut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the power was cut")
    }
}

impl std::error::Error for PowerCut {}

/// Whether a call failed because of [`FakeFiles::cut_power_at`].
#[must_use]
pub fn is_power_cut(error: &io::Error) -> bool {
    unnamed(error).get_ref().is_some_and(|inner| inner.is::<PowerCut>())
}

impl FakeFiles {
    /// An empty, unlimited disk.
    #[must_use]
    pub fn new(seed: u64) -> FakeFiles {
        FakeFiles::from_machine(Machine::new(seed), ROOT)
    }

    fn from_machine(machine: Machine, root: u64) -> FakeFiles {
        FakeFiles { machine: Arc::new(Mutex::new(machine)), root }
    }

    /// The files below a directory of the same machine, as [`crate::real::RealFiles::open`] gives
    /// them: one power cut strikes all, and operations are counted together.
    pub fn below(&self, dir: &Path) -> io::Result<FakeFiles> {
        let root = self.here().directory(dir)?;
        Ok(FakeFiles { machine: Arc::clone(&self.machine), root })
    }

    /// How many calls that could change the disk were made: every write, sync, change of names or
    /// metadata, and every `open` that may create, whether they succeeded or not.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.lock().operations()
    }

    /// How many calls of one kind were made since the machine was started, whether they succeeded
    /// or not.
    #[must_use]
    pub fn calls(&self, operation: Operation) -> u64 {
        self.lock().calls.get(&operation).copied().unwrap_or(0)
    }

    /// Cuts the power during the operation of this number; the first is 1. That call and all later
    /// ones fail ([`is_power_cut`]); what it did is unsynced, so it may be lost, kept or torn.
    pub fn cut_power_at(&self, operation: u64) {
        self.lock().cut_at = Some(operation);
    }

    /// The disk as a new machine finds it if the power is cut now, in a mood drawn from `seed`.
    /// This machine is left as it is, so many images can be drawn from one moment.
    #[must_use]
    pub fn after_power_cut(&self, seed: u64) -> FakeFiles {
        let machine = self.lock();
        let mut random = Random::new(seed);
        let mood = machine.any_mood(&mut random);
        FakeFiles::from_machine(machine.after_power_cut(mood, random), self.root)
    }

    /// [`Self::after_power_cut`] in a chosen mood.
    #[must_use]
    pub fn after_power_cut_in(&self, mood: Mood, seed: u64) -> FakeFiles {
        let image = self.lock().after_power_cut(mood, Random::new(seed));
        FakeFiles::from_machine(image, self.root)
    }

    /// Chooses what is found in torn sectors.
    pub fn set_sectors(&self, sectors: Sectors) {
        self.lock().sectors = sectors;
    }

    /// Sets a fault up.
    pub fn fail(&self, fault: Fault) {
        self.lock().faults.add(fault);
    }

    /// How many faults have struck. A test that set one up checks this, or it tests nothing.
    #[must_use]
    pub fn faults_fired(&self) -> u64 {
        self.lock().faults.fired()
    }

    /// How many faults are still waiting for their call.
    #[must_use]
    pub fn faults_waiting(&self) -> usize {
        self.lock().faults.waiting()
    }

    /// Forgets the faults that have not struck yet.
    pub fn forget_faults(&self) {
        self.lock().faults.forget();
    }

    /// Limits the allocated bytes of all files (`None`: no limit), in pages of 4096. Beyond it,
    /// writes are short and then fail with `ENOSPC`; raising the limit cures that.
    pub fn set_capacity_bytes(&self, capacity_bytes: Option<u64>) {
        self.lock().capacity_bytes = capacity_bytes;
    }

    /// Limits what all extended attributes of an inode take together. Beyond it, `ENOSPC`.
    pub fn set_xattr_bytes_max(&self, bytes_max: usize) {
        self.lock().xattr_bytes_max = bytes_max;
    }

    /// Limits what there can be of each thing, from now on.
    pub fn set_limits(&self, limits: FakeLimits) {
        self.lock().limits = limits;
    }

    /// Has a node refuse every change, or all but appending.
    pub fn set_flags(&self, path: &Path, immutable: bool, append_only: bool) -> io::Result<()> {
        let mut machine = self.here();
        let number = machine.lookup(path)?;
        let inode = machine.inode_mut(number);
        (inode.immutable, inode.append_only) = (immutable, append_only);
        Ok(())
    }

    /// A program runs a file, or has a lease on it, or ends that. As the kernel, it refuses the one
    /// while anybody may write, the other while anybody has it open.
    pub fn hinder(&self, path: &Path, hindrance: Option<Hindrance>) -> io::Result<()> {
        let mut machine = self.here();
        let number = machine.lookup(path)?;
        let inode = machine.inode_mut(number);
        match hindrance {
            Some(Hindrance::Runs) if inode.writers > 0 => return Err(Errno::TXTBSY.into()),
            Some(Hindrance::Leases) if inode.opens > 0 => return Err(Errno::AGAIN.into()),
            _ => inode.hindered = hindrance,
        }
        Ok(())
    }

    /// Refuses all changes with `EROFS`, as a file system does that has found itself damaged.
    pub fn set_read_only(&self, read_only: bool) {
        self.lock().read_only = read_only;
    }

    /// Turns one bit of a file over, on the platter and in the cache. Bit 0 is the lowest of the
    /// first byte.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> io::Result<()> {
        let mut machine = self.here();
        let number = machine.lookup(path)?;
        if machine.inode_mut(number).history.flip_bit(bit) {
            return Ok(());
        }
        Err(io::ErrorKind::InvalidInput.into())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The machine, with paths beginning at this handle's root.
    pub(super) fn here(&self) -> MutexGuard<'_, Machine> {
        let mut machine = self.lock();
        machine.root = self.root;
        machine
    }

    /// Serves one call.
    pub(super) fn call<T>(
        &self,
        operation: Operation,
        act: impl FnOnce(&mut Machine, Turn) -> Outcome<T>,
    ) -> io::Result<T> {
        self.call_counted(operation, operation.changes_state(), act)
    }

    pub(super) fn call_counted<T>(
        &self,
        operation: Operation,
        changes: bool,
        act: impl FnOnce(&mut Machine, Turn) -> Outcome<T>,
    ) -> io::Result<T> {
        let mut machine = self.here();
        let turn = machine.begin(operation, changes)?.ok_or_else(power_cut)?;
        let outcome = act(&mut machine, turn);
        if turn.cut {
            return Err(power_cut());
        }
        Ok(outcome?)
    }
}

fn power_cut() -> io::Error {
    io::Error::other(PowerCut)
}
