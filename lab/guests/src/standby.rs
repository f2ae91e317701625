//! Two hosts that stand by for each other, each a guest with a kernel of its own.
//!
//! Promise: whichever of them serves is killed, or stopped until the other one has taken over and
//! then woken; no write is lost that either has acknowledged, and an owner that wakes up refuses
//! what comes and says why. Before that, shows that a loss would be seen: with a region that only
//! one host has.
//! Never: lets two hosts write to the disk. Of the memory it keeps none of them away.

use crate::error::{During, GuestError};
use crate::guest::{Boot, Guest};
use crate::images::Images;
use crate::ledger::{Ledger, Verdict};
use crate::options::Options;
use crate::sentence::{Found, Sentence, WRITERS};
use crate::shared::{Shared, Ways};
use holdfast_io::fake::Random;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// From the first acknowledgements to the end of who gave them.
const LOAD_MS: std::ops::Range<u64> = 500..4_000;

/// Owners killed after which a region that only one host has must have lost something.
const CANARY_KILLS: u32 = 3;

/// What an owner that wakes up says: the memory has told it, or the folder of terms.
const STALE: [&str; 2] = ["stale generation", "stale term"];

/// How the one that serves ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// QEMU is killed.
    Killed,
    /// QEMU is stopped, and goes on when the other host serves.
    Stopped,
}

/// The guests of this part.
pub(crate) struct Standby<'a> {
    options: &'a Options,
    images: &'a Images,
    started: Instant,
}

/// Both hosts, and what was acknowledged.
struct Pair<'a> {
    images: &'a Images,
    medium: &'static str,
    first: PathBuf,
    /// It serves.
    owner: Host,
    /// It stands by.
    next: Host,
    ledger: Ledger,
    // Last, so that they go when nobody uses them any more.
    shared: Shared,
    _folder: tempfile::TempDir,
}

/// One of them.
struct Host {
    guest: Guest,
    ways: Ways,
    name: &'static str,
    _folder: tempfile::TempDir,
}

impl<'a> Standby<'a> {
    /// What the options ask for.
    pub(crate) fn new(options: &'a Options, images: &'a Images) -> Standby<'a> {
        Standby { options, images, started: Instant::now() }
    }

    /// All of it.
    pub(crate) fn run(&self) -> Result<(), GuestError> {
        self.canary()?;
        let mut pair = Pair::boot(self.images, self.options, "pmem")?;
        let mut random = Random::new(self.options.seed);
        for round in 1..=self.options.kills {
            for end in [End::Killed, End::Stopped] {
                let wait = LOAD_MS.start + random.below(LOAD_MS.end - LOAD_MS.start);
                let verdict = pair.round(end, Duration::from_millis(wait))?;
                let what = format!("{} {round} of {}", end.name(), self.options.kills);
                self.say(&format!("{what}: {verdict}"));
                let clean = verdict.is_clean();
                clean.then_some(()).ok_or_else(|| GuestError::new(what, verdict.to_string()))?;
            }
        }
        Ok(())
    }

    /// The proof that a loss would be seen.
    fn canary(&self) -> Result<(), GuestError> {
        let mut pair = Pair::boot(self.images, self.options, "shm")?;
        for _ in 0..CANARY_KILLS {
            let verdict = pair.round(End::Killed, Duration::from_millis(LOAD_MS.start))?;
            self.say(&format!("a region that only one host has: {verdict}"));
            if verdict.lost > 0 {
                return Ok(());
            }
        }
        let cause = "kills took nothing from memory of the dead: the check sees no loss";
        Err(GuestError::new("checking the check", cause))
    }

    /// One line of progress.
    fn say(&self, line: &str) {
        let seconds = self.started.elapsed().as_secs();
        let _unwritable = writeln!(io::stderr(), "[{seconds:>4} s] stand-by, {line}");
    }
}

impl End {
    fn name(self) -> &'static str {
        match self {
            End::Killed => "kill",
            End::Stopped => "stop",
        }
    }
}

impl<'a> Pair<'a> {
    /// Two hosts, of which the first serves an empty volume.
    fn boot(
        images: &'a Images,
        options: &Options,
        medium: &'static str,
    ) -> Result<Self, GuestError> {
        let folder = tempfile::tempdir().during("making a folder")?;
        let first = Images::with_program(&images.first(), &options.holdfast, folder.path())?;
        let shared = Shared::new()?;
        let mut owner = Host::boot(images, &first, &shared, "east", medium)?;
        owner.guest.order("begin")?;
        let found = owner.take_up()?;
        let next = Host::boot(images, &first, &shared, "west", medium)?;
        let mut ledger = Ledger::default();
        ledger.adopt(&found);
        let mut pair = Pair { images, medium, first, owner, next, ledger, shared, _folder: folder };
        pair.next.stand_by()?;
        Ok(pair)
    }

    /// Ends the owner under load. What the other host finds when it has taken over is compared with
    /// what was acknowledged, and a new guest stands by for it.
    fn round(&mut self, end: End, wait: Duration) -> Result<Verdict, GuestError> {
        self.load(wait)?;
        match end {
            End::Killed => self.end_owner()?,
            End::Stopped => self.owner.guest.pause()?,
        }
        self.next.wait_for_fence(self.owner.name)?;
        self.owner.ways.cut_off();
        self.next.guest.order("fenced")?;
        let found = self.next.take_up()?;
        if end == End::Stopped {
            self.wake()?;
        }
        self.replace_owner()?;
        let verdict = self.ledger.judge(&found);
        self.ledger = Ledger::default();
        self.ledger.adopt(&found);
        Ok(verdict)
    }

    /// Lets the writers write for `wait` after each of them has begun.
    fn load(&mut self, wait: Duration) -> Result<(), GuestError> {
        let before = self.ledger.clone();
        self.owner.guest.order("write")?;
        while WRITERS.iter().any(|&it| self.ledger.of(it) == before.of(it)) {
            let sentence = self.owner.guest.hear()?;
            self.ledger.hear(&sentence);
        }
        std::thread::sleep(wait);
        Ok(())
    }

    /// Lets an owner go on that has slept, until it has said why it serves no more and has refused
    /// every writer. What it acknowledges meanwhile counts.
    fn wake(&mut self) -> Result<(), GuestError> {
        self.owner.guest.resume()?;
        let mut writers = WRITERS.to_vec();
        let mut is_stale = false;
        while !is_stale || !writers.is_empty() {
            let sentence = self.owner.guest.hear()?;
            self.ledger.hear(&sentence);
            match sentence {
                Sentence::Refused(writer) => writers.retain(|it| *it != writer),
                Sentence::Said(line) => is_stale |= STALE.iter().any(|why| line.contains(why)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Kills the owner if it lives, and hears what it had said.
    fn end_owner(&mut self) -> Result<(), GuestError> {
        let said = self.owner.guest.kill()?;
        said.iter().for_each(|sentence| self.ledger.hear(sentence));
        Ok(())
    }

    /// The host that took over is the owner; a new guest in place of the other one stands by.
    fn replace_owner(&mut self) -> Result<(), GuestError> {
        self.end_owner()?;
        std::mem::swap(&mut self.owner, &mut self.next);
        self.next =
            Host::boot(self.images, &self.first, &self.shared, self.next.name, self.medium)?;
        self.next.stand_by()
    }
}

impl Host {
    /// Boots a guest that does nothing yet.
    fn boot(
        images: &Images,
        first: &Path,
        shared: &Shared,
        name: &'static str,
        medium: &str,
    ) -> Result<Host, GuestError> {
        let folder = tempfile::tempdir().during("making a folder")?;
        let ways = shared.ways(folder.path())?;
        let arguments = format!("program=standby host={name} medium={medium}");
        let (kernel, first) = (images.kernel(), first.to_owned());
        let boot = Boot { arguments, kernel, first, restarts: false };
        let guest = Guest::start(images, &boot, &ways.arguments(), folder.path(), None)?;
        while guest.hear()? != Sentence::Up {}
        Ok(Host { guest, ways, name, _folder: folder })
    }

    /// Has the host stand by for the owner.
    fn stand_by(&mut self) -> Result<(), GuestError> {
        self.guest.order("stand-by")?;
        loop {
            match self.guest.hear()? {
                Sentence::Said(line) if line.contains("standing by") => return Ok(()),
                _ => {}
            }
        }
    }

    /// Waits until the host wants `owner` fenced off.
    fn wait_for_fence(&self, owner: &str) -> Result<(), GuestError> {
        loop {
            match self.guest.hear()? {
                Sentence::Fence(host) if host == owner => return Ok(()),
                Sentence::Fence(host) => {
                    return Err(GuestError::new("waiting for the fence", host));
                }
                _ => {}
            }
        }
    }

    /// Waits until the host serves, from memory, and returns what it finds.
    fn take_up(&self) -> Result<Vec<Found>, GuestError> {
        let (mut found, mut class) = (Vec::new(), String::new());
        loop {
            match self.guest.hear()? {
                Sentence::Class(it) => class = it,
                Sentence::Found(it) => found.push(it),
                Sentence::Sound => break,
                _ => {}
            }
        }
        let is_whole = found.iter().map(|it| it.writer).eq(WRITERS) && class == "memory";
        let cause = || format!("class {class:?}, lines {found:?}");
        is_whole.then_some(()).ok_or_else(|| GuestError::new("taking over", cause()))?;
        Ok(found)
    }
}
