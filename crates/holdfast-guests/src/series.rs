//! One database, ended again and again on one disk.
//!
//! Promise: each boot is judged against all that was acknowledged in the boots before, and a
//! verdict that is not clean is an error. The moment of an end is drawn from the seed, and comes
//! after each writer had at least one acknowledgement in this boot.
//! Never: goes on after a loss.

use crate::disk::Disk;
use crate::error::{During, GuestError};
use crate::guest::Guest;
use crate::images::Images;
use crate::ledger::{Ledger, Verdict};
use crate::options::{Database, End, Options};
use crate::sentence::{Found, Sentence, WRITERS};
use holdfast_io::fake::Random;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// From the first acknowledgements of a boot to its end.
const LOAD_MS: std::ops::Range<u64> = 500..4_000;

/// A database in guests.
pub(crate) struct Series<'a> {
    options: &'a Options,
    images: &'a Images,
    database: Database,
    started: Instant,
}

/// A database on its disk, from boot to boot.
struct Stage<'a> {
    images: &'a Images,
    database: Database,
    folder: tempfile::TempDir,
    disk: Disk,
    ledger: Ledger,
}

impl<'a> Series<'a> {
    /// The series that the options ask of a database.
    pub(crate) fn new(options: &'a Options, images: &'a Images, database: Database) -> Series<'a> {
        Series { options, images, database, started: Instant::now() }
    }

    /// The proof that a loss would be seen: on a disk that forgets, everything is lost.
    pub(crate) fn canary(&self) -> Result<(), GuestError> {
        let mut stage = self.stage(Disk::Forgetful)?;
        let (guest, _empty) = stage.boot()?;
        stage.load(guest, Duration::ZERO, End::KillQemu)?;
        let (_guest, verdict) = stage.boot()?;
        self.say(&format!("a disk that forgets: {verdict}"));
        let cause = "a disk that forgets lost nothing: the check sees no loss";
        let sees = verdict.lost > 0 && verdict.lost == verdict.acknowledged;
        sees.then_some(()).ok_or_else(|| GuestError::new("checking the check", cause))
    }

    /// Ends the database in one way as often as the options say.
    pub(crate) fn run(&self, end: End) -> Result<(), GuestError> {
        let mut stage = self.stage(Disk::Image)?;
        let mut random = Random::new(self.options.seed);
        let (mut guest, _empty) = stage.boot()?;
        for round in 1..=self.options.kills {
            let wait = LOAD_MS.start + random.below(LOAD_MS.end - LOAD_MS.start);
            stage.load(guest, Duration::from_millis(wait), end)?;
            let verdict;
            (guest, verdict) = stage.boot()?;
            let (name, kills) = (end.name(), self.options.kills);
            self.say(&format!("{name} {round} of {kills}: {verdict}"));
            if !verdict.is_clean() {
                return Err(GuestError::new(format!("{name} {round}"), verdict.to_string()));
            }
        }
        Ok(())
    }

    fn stage(&self, disk: fn(std::path::PathBuf) -> Disk) -> Result<Stage<'a>, GuestError> {
        let folder = tempfile::tempdir().during("making a folder")?;
        let disk = disk(Disk::copy(&self.images.data(self.database), folder.path())?);
        let (images, database) = (self.images, self.database);
        Ok(Stage { images, database, folder, disk, ledger: Ledger::default() })
    }

    /// One line of progress.
    fn say(&self, line: &str) {
        let (seconds, name) = (self.started.elapsed().as_secs(), self.database.name());
        let _unwritable = writeln!(io::stderr(), "[{seconds:>4} s] {name}, {line}");
    }
}

impl Stage<'_> {
    /// Boots and compares what is there with what was acknowledged.
    fn boot(&mut self) -> Result<(Guest, Verdict), GuestError> {
        let data = self.disk.arguments();
        let guest = Guest::start(self.images, self.database, &data, self.folder.path())?;
        let mut found: Vec<Found> = Vec::new();
        loop {
            match guest.hear()? {
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
        Ok((guest, verdict))
    }

    /// Lets the writers write, and ends the guest `wait` after all of them have.
    fn load(&mut self, mut guest: Guest, wait: Duration, end: End) -> Result<(), GuestError> {
        let before = self.ledger.clone();
        guest.order("write")?;
        while WRITERS.iter().any(|&it| self.ledger.of(it) == before.of(it)) {
            self.note(&guest.hear()?);
        }
        let until = Instant::now() + wait;
        while Instant::now() < until {
            match guest.hear_now()? {
                Some(sentence) => self.note(&sentence),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        let remains = match end {
            End::Panic => guest.panic()?,
            End::KillQemu => guest.kill()?,
        };
        remains.iter().for_each(|it| self.note(it));
        Ok(())
    }

    fn note(&mut self, sentence: &Sentence) {
        if let Sentence::Done(writer, number) = *sentence {
            self.ledger.note(writer, number);
        }
    }
}
