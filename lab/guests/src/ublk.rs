//! A volume and a disk in a guest that are block devices of its kernel, and whose front ends die.
//!
//! Promise: shows that no program on the devices sees an error, that no write is lost that an fsync
//! has acknowledged, that zeros are where they were asked for, that flushes reach the devices, and
//! that what was a device is an ordinary file afterwards; and that a wrong byte would be seen.
//! Never: ends the guest's kernel.

use crate::disk::{empty_disk, image_drive};
use crate::error::{During, GuestError};
use crate::guest::{Boot, Guest};
use crate::images::Images;
use crate::ledger::{Ledger, Verdict};
use crate::options::Options;
use crate::sentence::{Found, Sentence, WRITERS};
use holdfast_io::fake::Random;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Bytes of the disk that has home and log.
const DISK_BYTES: u64 = 256 << 20;

/// A processor without cmpxchg16b. QEMU's emulation of it can leave wrong flags where an interrupt
/// comes at once, and the kernel of this guest then dies in its allocator.
const PROCESSOR: [&str; 2] = ["-cpu", "qemu64,-cx16"];

/// From the last acknowledgement that is waited for to the next kill.
const LOAD_MS: std::ops::Range<u64> = 100..1_500;

/// Acknowledgements of each writer between two kills, at least.
const ROWS_BETWEEN: u64 = 5;

/// The guest of this part.
pub(crate) struct Ublk<'a> {
    options: &'a Options,
    images: &'a Images,
    started: Instant,
}

/// The guest, and what it has acknowledged.
struct Machine {
    guest: Guest,
    ledger: Ledger,
    _folder: tempfile::TempDir,
}

impl<'a> Ublk<'a> {
    /// What the options ask for.
    pub(crate) fn new(options: &'a Options, images: &'a Images) -> Ublk<'a> {
        Ublk { options, images, started: Instant::now() }
    }

    /// All of it.
    pub(crate) fn run(&self) -> Result<(), GuestError> {
        let mut machine = self.boot()?;
        self.say("a volume and a disk of class Memory are block devices with a write cache");
        machine.guest.order("write")?;
        let mut pauses = self.kill_under_load(&mut machine)?;
        self.count_flushes(&mut machine)?;
        let verdict = machine.check()?;
        pauses.sort_unstable();
        let kills = pauses.len();
        let [median, longest] =
            [kills / 2, kills.saturating_sub(1)].map(|at| pauses.get(at).copied().unwrap_or(0));
        let done = format!(
            "{kills} kills of two front ends, pauses of {median} ms in the median and {longest} ms \
             at most"
        );
        self.say(&format!("{done}: {verdict}"));
        let is_right = verdict.is_clean() && verdict.acknowledged > 0;
        is_right.then_some(()).ok_or_else(|| GuestError::new(done, verdict.to_string()))?;
        self.canary(&mut machine)?;
        machine.guest.order("give-back")?;
        while machine.hear()? != Sentence::Sound {}
        self.say("the volume is given back, and its home is an ordinary image");
        Ok(())
    }

    /// Each acknowledgement is that of an fsync, and one alone on its file system.
    fn count_flushes(&self, machine: &mut Machine) -> Result<(), GuestError> {
        let calls = machine.ledger.rows();
        let flushes = machine.flushes()?;
        let cause = format!("{flushes} flushes for {calls} calls of fsync");
        self.say(&cause);
        (flushes >= calls).then_some(()).ok_or_else(|| GuestError::new("counting flushes", cause))
    }

    /// The proof that a wrong byte would be seen.
    fn canary(&self, machine: &mut Machine) -> Result<(), GuestError> {
        machine.guest.order("spoil")?;
        let verdict = machine.check()?;
        self.say(&format!("a byte that nobody wrote: {verdict}"));
        let cause = "a byte that nobody wrote there is not seen";
        (verdict.wrong == 1)
            .then_some(())
            .ok_or_else(|| GuestError::new("checking the check", cause))
    }

    /// Starts the guest and waits until its devices have file systems.
    fn boot(&self) -> Result<Machine, GuestError> {
        let folder = tempfile::tempdir().during("making a folder")?;
        let [kernel, plain] = self.images.for_ublk()?;
        let first = Images::with_program(&plain, &self.options.holdfast, folder.path())?;
        let boot = Boot { arguments: "program=ublk".into(), kernel, first, restarts: false };
        let mut data = image_drive(&empty_disk(folder.path(), DISK_BYTES)?);
        data.extend(PROCESSOR.map(String::from));
        let guest = Guest::start(self.images, &boot, &data, folder.path(), None)?;
        let mut machine = Machine { guest, ledger: Ledger::default(), _folder: folder };
        machine.wait_until_ready()?;
        Ok(machine)
    }

    /// Kills the front ends as often as the options say, and replaces them once; returns the pauses
    /// of the kills, in milliseconds.
    fn kill_under_load(&self, machine: &mut Machine) -> Result<Vec<u64>, GuestError> {
        let mut random = Random::new(self.options.seed);
        let mut pauses = Vec::new();
        for _ in 0..self.options.kills {
            machine.hear_more()?;
            let wait = LOAD_MS.start + random.below(LOAD_MS.end - LOAD_MS.start);
            std::thread::sleep(Duration::from_millis(wait));
            pauses.push(machine.pause_for("kill")?);
        }
        machine.hear_more()?;
        machine.pause_for("replace")?;
        machine.hear_more()?;
        Ok(pauses)
    }

    /// One line of progress.
    fn say(&self, line: &str) {
        let seconds = self.started.elapsed().as_secs();
        let _unwritable = writeln!(io::stderr(), "[{seconds:>4} s] ublk, {line}");
    }
}

impl Machine {
    fn wait_until_ready(&mut self) -> Result<(), GuestError> {
        loop {
            match self.hear()? {
                Sentence::Ready => return Ok(()),
                Sentence::Class(class) if class != "memory" => {
                    return Err(GuestError::new("asking for the class", class));
                }
                Sentence::Cache(mode) if mode != "write back" => {
                    return Err(GuestError::new("asking for the write cache", mode));
                }
                _ => {}
            }
        }
    }

    /// Waits until each writer has gone on.
    fn hear_more(&mut self) -> Result<(), GuestError> {
        let before = self.ledger.clone();
        while WRITERS.iter().any(|&it| self.ledger.of(it) < before.of(it) + ROWS_BETWEEN) {
            self.hear()?;
        }
        Ok(())
    }

    /// Has the front ends ended; returns for how many milliseconds the devices paused.
    fn pause_for(&mut self, order: &str) -> Result<u64, GuestError> {
        self.guest.order(order)?;
        loop {
            if let Sentence::Paused(milliseconds) = self.hear()? {
                return Ok(milliseconds);
            }
        }
    }

    fn flushes(&mut self) -> Result<u64, GuestError> {
        self.guest.order("flushes")?;
        loop {
            if let Sentence::Flushes(count) = self.hear()? {
                return Ok(count);
            }
        }
    }

    /// Ends the writers, and compares what the devices have with what was acknowledged.
    fn check(&mut self) -> Result<Verdict, GuestError> {
        self.guest.order("check")?;
        let mut found: Vec<Found> = Vec::new();
        loop {
            match self.hear()? {
                Sentence::Found(it) => found.push(it),
                Sentence::Sound => break,
                _ => {}
            }
        }
        match found.iter().map(|it| it.writer).eq(WRITERS) {
            true => Ok(self.ledger.judge(&found)),
            false => Err(GuestError::new("counting records", format!("found {found:?}"))),
        }
    }

    /// The next sentence; an acknowledgement is noted.
    fn hear(&mut self) -> Result<Sentence, GuestError> {
        let sentence = self.guest.hear()?;
        self.ledger.hear(&sentence);
        Ok(sentence)
    }
}
