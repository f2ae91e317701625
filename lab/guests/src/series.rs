//! One database, ended again and again.
//!
//! Promise: a verdict that is not clean is an error, and so is a database that is not sound. The
//! moment of an end is drawn from the seed, and comes after each writer had an acknowledgement in
//! this boot.
//! Never: goes on after a loss.

use crate::disk::Disk;
use crate::error::GuestError;
use crate::images::Images;
use crate::ledger::Verdict;
use crate::machine::Machine;
use crate::options::{Database, End, Options, Way};
use crate::stage::{Flushes, Stage, TakenUp};
use crate::volume::{Class, Volume};
use holdfast_io::fake::Random;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// From the first acknowledgements of a boot to its end.
const LOAD_MS: std::ops::Range<u64> = 500..4_000;

/// How long flushes are counted, and a guest works before it is stopped.
const COUNTED: Duration = Duration::from_secs(5);

/// A database in guests.
pub(crate) struct Series<'a> {
    options: &'a Options,
    images: &'a Images,
    program: &'a Path,
    database: Database,
    started: Instant,
}

impl<'a> Series<'a> {
    /// The series that the options ask of a database, on volumes that `program` serves.
    pub(crate) fn new(
        options: &'a Options,
        images: &'a Images,
        program: &'a Path,
        database: Database,
    ) -> Series<'a> {
        Series { options, images, program, database, started: Instant::now() }
    }

    /// The proof that a loss would be seen: on a disk that forgets, everything is lost.
    pub(crate) fn canary(&self) -> Result<(), GuestError> {
        let forgetful = |image, _: &Path| Ok(Disk::Forgetful(image));
        let mut stage = Stage::new(self.images, self.database, forgetful)?;
        let (guest, _empty) = stage.boot()?;
        stage.load(guest, Duration::ZERO, End::QemuKilled)?;
        let (_guest, verdict) = stage.boot()?;
        self.say(&format!("a disk that forgets: {verdict}"));
        let cause = "a disk that forgets lost nothing: the check sees no loss";
        let sees = verdict.lost > 0 && verdict.lost == verdict.acknowledged;
        sees.then_some(()).ok_or_else(|| GuestError::new("checking the check", cause))
    }

    /// Ends the database in one way as often as the options say, on a volume of class Memory, then
    /// boots it on what was the volume's home.
    pub(crate) fn run(&self, way: Way, end: End) -> Result<(), GuestError> {
        let mut stage = self.on_volume(way, Class::Memory)?;
        let mut random = Random::new(self.options.seed);
        let (mut guest, _empty) = stage.boot()?;
        for round in 1..=self.options.kills {
            let wait = LOAD_MS.start + random.below(LOAD_MS.end - LOAD_MS.start);
            stage.load(guest, Duration::from_millis(wait), end)?;
            let verdict;
            (guest, verdict) = stage.boot()?;
            let (way, end, kills) = (way.name(), end.name(), self.options.kills);
            self.judge(&format!("{way}, {end} {round} of {kills}"), verdict)?;
        }
        drop(guest);
        let mut stage = stage.give_back()?;
        let (_guest, verdict) = stage.boot()?;
        self.judge(&format!("{}, on the image given back", way.name()), verdict)
    }

    /// Counts a guest's flushes, and the syncs of the device behind a volume of class Disk.
    pub(crate) fn count_flushes(&self, way: Way) -> Result<(), GuestError> {
        let mut stage = self.on_volume(way, Class::Disk)?;
        let (mut guest, _empty) = stage.boot()?;
        let flushes = stage.flushes(&mut guest, COUNTED)?;
        let Flushes { answered, synced } = flushes;
        let what = format!("{}: {answered} flushes answered, {synced} syncs behind", way.name());
        self.say(&what);
        let each = flushes.were_each_synced();
        each.then_some(()).ok_or_else(|| GuestError::new("counting flushes", what))
    }

    /// Stops a guest under load and takes it up, instead of booting it; then it panics, and what
    /// was acknowledged on either side of the stop has to be there.
    pub(crate) fn stop_and_take_up(&self, way: Way) -> Result<(), GuestError> {
        let mut stage = self.on_volume(way, Class::Memory)?;
        let machine = Machine::new(self.program)?;
        let TakenUp { cold, stopped, taken_up } = stage.stop_and_take_up(&machine, COUNTED)?;
        let way = way.name();
        self.say(&format!(
            "{way}: boots to an answer in {} ms, is stopped in {} ms, \
             taken up to a commit in {} ms: {:.3} of the boot",
            cold.as_millis(),
            stopped.as_millis(),
            taken_up.as_millis(),
            taken_up.as_secs_f64() / cold.as_secs_f64()
        ));
        let (_guest, verdict) = stage.boot()?;
        self.judge(&format!("{way}, panic after it was taken up"), verdict)
    }

    fn on_volume(&self, way: Way, class: Class) -> Result<Stage<'a>, GuestError> {
        Stage::new(self.images, self.database, |_image, folder| {
            Volume::serve(self.program, folder, class).map(|volume| Disk::Volume(volume, way))
        })
    }

    fn judge(&self, what: &str, verdict: Verdict) -> Result<(), GuestError> {
        self.say(&format!("{what}: {verdict}"));
        let clean = verdict.is_clean();
        clean.then_some(()).ok_or_else(|| GuestError::new(what, verdict.to_string()))
    }

    /// One line of progress.
    fn say(&self, line: &str) {
        let (seconds, name) = (self.started.elapsed().as_secs(), self.database.name());
        let _unwritable = writeln!(io::stderr(), "[{seconds:>4} s] {name}, {line}");
    }
}
