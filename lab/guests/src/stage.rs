//! A database on its data disk, from boot to boot.
//!
//! Promise: each boot is judged against all that was acknowledged in the boots before.
//! Never: decides when or how a guest ends.

use crate::disk::Disk;
use crate::error::{During, GuestError};
use crate::guest::{Boot, Guest};
use crate::images::Images;
use crate::ledger::{Ledger, Verdict};
use crate::machine::Machine;
use crate::options::{Database, End};
use crate::sentence::{Found, Sentence, WRITERS};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a guest calls the cache of a disk that must be told to flush.
const CACHED: &str = "write back";

/// A data disk, and what was acknowledged to be on it.
pub(crate) struct Stage<'a> {
    images: &'a Images,
    database: Database,
    disk: Disk,
    ledger: Ledger,
    // Last, so that it goes when the disk is no longer served from it.
    folder: tempfile::TempDir,
}

/// Flushes of one load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flushes {
    /// Those the guest was answered.
    pub(crate) answered: u64,
    /// Syncs of the device behind the volume meanwhile.
    pub(crate) synced: u64,
}

/// How long the ways to a guest that works took.
#[derive(Clone, Copy, Debug)]
pub struct TakenUp {
    /// From the start of a boot to a database that answers.
    pub cold: Duration,
    /// From the order to stop to the end of QEMU.
    pub stopped: Duration,
    /// From the start of QEMU to the first commit in a guest that was taken up.
    pub taken_up: Duration,
}

impl Flushes {
    /// True if there were any, and a sync for each of them: a guest has one under way at a time,
    /// and writes something before the next.
    pub(crate) fn were_each_synced(self) -> bool {
        self.answered > 0 && self.synced + 1 >= self.answered
    }
}

impl<'a> Stage<'a> {
    /// A disk that begins with an empty cluster of the database, made of its image and a folder.
    pub(crate) fn new(
        images: &'a Images,
        database: Database,
        disk: impl FnOnce(PathBuf, &Path) -> Result<Disk, GuestError>,
    ) -> Result<Stage<'a>, GuestError> {
        Stage::new_in(&std::env::temp_dir(), images, database, disk)
    }

    /// [`Stage::new`] with the disk and all that goes with it below `place`.
    pub(crate) fn new_in(
        place: &Path,
        images: &'a Images,
        database: Database,
        disk: impl FnOnce(PathBuf, &Path) -> Result<Disk, GuestError>,
    ) -> Result<Stage<'a>, GuestError> {
        let folder = tempfile::tempdir_in(place).during("making a folder")?;
        let image = Disk::copy(&images.data(database), folder.path())?;
        let disk = disk(image, folder.path())?;
        Ok(Stage { images, database, disk, ledger: Ledger::default(), folder })
    }

    /// Boots and compares what is there with what was acknowledged.
    pub(crate) fn boot(&mut self) -> Result<(Guest, Verdict), GuestError> {
        let guest = self.start(None)?;
        let verdict = self.look(&guest)?;
        Ok((guest, verdict))
    }

    /// Starts a guest, perhaps as a machine that can be stopped and taken up.
    fn start(&self, machine: Option<&Machine>) -> Result<Guest, GuestError> {
        let data = self.disk.arguments();
        let boot = Boot::database(self.images, self.database);
        Guest::start(self.images, &boot, &data, self.folder.path(), machine)
    }

    /// Compares what a guest that boots finds with what was acknowledged.
    fn look(&mut self, guest: &Guest) -> Result<Verdict, GuestError> {
        let mut found: Vec<Found> = Vec::new();
        loop {
            match guest.hear()? {
                Sentence::Cache(mode) if mode != CACHED => {
                    return Err(GuestError::new("asking for the disk's write cache", mode));
                }
                Sentence::Found(it) => found.push(it),
                Sentence::Sound => break,
                _ => {}
            }
        }
        if !found.iter().map(|it| it.writer).eq(WRITERS) {
            return Err(GuestError::new("counting rows", format!("the guest found {found:?}")));
        }
        let verdict = self.ledger.judge(&found);
        self.ledger.adopt(&found);
        Ok(verdict)
    }

    /// Boots a machine, stops it under load, takes it up, and has it panic under load.
    pub(crate) fn stop_and_take_up(
        &mut self,
        machine: &Machine,
        wait: Duration,
    ) -> Result<TakenUp, GuestError> {
        let began = Instant::now();
        let mut guest = self.start(Some(machine))?;
        while guest.hear()? != Sentence::Ready {}
        let cold = began.elapsed();
        self.look(&guest)?;
        guest.order("write")?;
        self.hear_of_each(&guest)?;
        self.listen(&guest, wait)?;
        let began = Instant::now();
        let remains = guest.stop(machine)?;
        let stopped = began.elapsed();
        remains.iter().for_each(|it| self.note(it));
        let began = Instant::now();
        let guest = self.start(Some(machine))?;
        let first = guest.hear()?;
        let taken_up = began.elapsed();
        if !matches!(first, Sentence::Done(..)) {
            return Err(GuestError::new("taking the guest up", format!("it began with {first:?}")));
        }
        self.note(&first);
        self.hear_of_each(&guest)?;
        self.listen(&guest, wait)?;
        guest.panic()?.iter().for_each(|it| self.note(it));
        Ok(TakenUp { cold, stopped, taken_up })
    }

    /// Lets the writers write, and ends the guest `wait` after all of them have.
    pub(crate) fn load(
        &mut self,
        mut guest: Guest,
        wait: Duration,
        end: End,
    ) -> Result<(), GuestError> {
        guest.order("write")?;
        self.hear_of_each(&guest)?;
        self.listen(&guest, wait)?;
        let remains = match (end, self.disk.volume()) {
            (End::QemuKilled, _) => guest.kill()?,
            (End::FrontEndKilled, Some(volume)) => {
                volume.kill_front_end()?;
                self.listen(&guest, Duration::ZERO)?;
                self.hear_of_each(&guest)?;
                guest.panic()?
            }
            (End::Panic | End::FrontEndKilled, _) => guest.panic()?,
        };
        remains.iter().for_each(|it| self.note(it));
        Ok(())
    }

    /// Lets the writers write for a while, and counts. The guest lives on.
    pub(crate) fn flushes(
        &mut self,
        guest: &mut Guest,
        wait: Duration,
    ) -> Result<Flushes, GuestError> {
        guest.order("write")?;
        self.hear_of_each(guest)?;
        // Inside of these counts lie those, so that no flush is counted without its sync but one
        // that was under way.
        let synced = self.synced()?;
        let answered = self.answered(guest)?;
        self.listen(guest, wait)?;
        let answered = self.answered(guest)? - answered;
        Ok(Flushes { answered, synced: self.synced()? - synced })
    }

    /// The same disk without anything that serves it.
    pub(crate) fn give_back(self) -> Result<Stage<'a>, GuestError> {
        Ok(Stage { disk: self.disk.give_back()?, ..self })
    }

    /// Flushes that the data disk has answered the guest.
    fn answered(&mut self, guest: &mut Guest) -> Result<u64, GuestError> {
        guest.order("flushes")?;
        loop {
            match guest.hear()? {
                Sentence::Flushes(count) => return Ok(count),
                other => self.note(&other),
            }
        }
    }

    /// Syncs of the device behind the volume.
    fn synced(&self) -> Result<u64, GuestError> {
        self.disk.volume().map_or(Ok(0), |volume| volume.syncs())
    }

    /// Waits until each writer has one acknowledgement more than now.
    fn hear_of_each(&mut self, guest: &Guest) -> Result<(), GuestError> {
        let before = self.ledger.clone();
        while WRITERS.iter().any(|&it| self.ledger.of(it) == before.of(it)) {
            let sentence = guest.hear()?;
            self.note(&sentence);
        }
        Ok(())
    }

    /// Notes what the guest says for so long, and at least what it has said.
    fn listen(&mut self, guest: &Guest, wait: Duration) -> Result<(), GuestError> {
        let until = Instant::now() + wait;
        loop {
            match guest.hear_now()? {
                Some(sentence) => self.note(&sentence),
                None if Instant::now() >= until => return Ok(()),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn note(&mut self, sentence: &Sentence) {
        self.ledger.hear(sentence);
    }
}

#[cfg(test)]
mod tests;
