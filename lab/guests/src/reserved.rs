//! A volume in a guest, with its region in RAM that the guest's kernel was told to leave alone.
//!
//! Promise: shows that the claim waits for the proof, that a restart of the guest's machine spares
//! every byte of a pattern, and that no write is lost that a kernel acknowledged before it
//! panicked; before that, that a loss would be seen: with the region in the kernel's own memory.
//! Never: ends QEMU between two boots: it is the machine that stays on.

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

/// The part of the guest's RAM that is reserved, as its kernel is told.
const RESERVED: &str = "memmap=128M!256M";

/// Bytes of the disk that has home and log.
const DISK_BYTES: u64 = 256 << 20;

/// From the first acknowledgements of a boot to its panic.
const LOAD_MS: std::ops::Range<u64> = 500..4_000;

/// Panics after which a region in the kernel's own memory must have lost something.
const CANARY_PANICS: u32 = 10;

/// Makes the disk so slow that at each moment the region has something that the disk has not.
const SLOW: &str = ",throttling.iops-write=20";

/// The guests of this part.
pub(crate) struct Reserved<'a> {
    options: &'a Options,
    images: &'a Images,
    started: Instant,
}

/// A guest that goes on over its panics, and what it has acknowledged.
struct Machine {
    guest: Guest,
    ledger: Ledger,
    /// What the volume's acknowledgements are since the last boot.
    class: String,
    _folder: tempfile::TempDir,
}

impl<'a> Reserved<'a> {
    /// What the options ask for.
    pub(crate) fn new(options: &'a Options, images: &'a Images) -> Reserved<'a> {
        Reserved { options, images, started: Instant::now() }
    }

    /// All of it.
    pub(crate) fn run(&self) -> Result<(), GuestError> {
        self.canary()?;
        let (mut machine, empty) = self.boot("pmem")?;
        self.judge("the first boot", empty)?;
        machine.expect_class("disk", "before a proof")?;
        self.prove(&mut machine)?;
        machine.expect_class("memory", "with a proof")?;
        let mut random = Random::new(self.options.seed);
        for round in 1..=self.options.kills {
            let wait = LOAD_MS.start + random.below(LOAD_MS.end - LOAD_MS.start);
            let verdict = machine.panic_under_load(Duration::from_millis(wait))?;
            self.judge(&format!("panic {round} of {}", self.options.kills), verdict)?;
            machine.expect_class("memory", "after a panic")?;
        }
        Ok(())
    }

    /// The proof that a loss would be seen.
    fn canary(&self) -> Result<(), GuestError> {
        let (mut machine, _empty) = self.boot("shm")?;
        machine.expect_class("memory", "for the death of processes alone")?;
        for _ in 0..CANARY_PANICS {
            let verdict = machine.panic_under_load(Duration::from_millis(LOAD_MS.start))?;
            self.say(&format!("a region in the kernel's own memory: {verdict}"));
            if verdict.lost > 0 {
                return Ok(());
            }
        }
        let cause = "panics took nothing from the kernel's own memory: the check sees no loss";
        Err(GuestError::new("checking the check", cause))
    }

    /// Writes the pattern, restarts by a panic, and looks.
    fn prove(&self, machine: &mut Machine) -> Result<(), GuestError> {
        for state in ["written", "waiting"] {
            machine.expect_probe(state)?;
        }
        let verdict = machine.panic()?;
        self.judge("the restart of the probe", verdict)?;
        let [kept, bytes] = machine.expect_probe("kept")?;
        self.say(&format!("a restart kept {kept} of {bytes} bytes"));
        let all = kept == bytes && bytes > 0;
        all.then_some(()).ok_or_else(|| GuestError::new("probing", "kept means every byte"))?;
        // The volume that is served was judged before there was a proof.
        let verdict = machine.panic()?;
        self.judge("the restart with a proof", verdict)
    }

    /// Starts a machine and waits until its volume is served.
    fn boot(&self, medium: &str) -> Result<(Machine, Verdict), GuestError> {
        let folder = tempfile::tempdir().during("making a folder")?;
        let plain = self.images.first();
        let first = Images::with_program(&plain, &self.options.holdfast, folder.path())?;
        let arguments = format!("{RESERVED} program=reserved medium={medium}");
        let kernel = self.images.kernel();
        let boot = Boot { arguments, kernel, first, restarts: true };
        let mut data = image_drive(&empty_disk(folder.path(), DISK_BYTES)?);
        data.iter_mut().filter(|it| it.contains("file=")).for_each(|drive| *drive += SLOW);
        let guest = Guest::start(self.images, &boot, &data, folder.path(), None)?;
        let (ledger, class) = (Ledger::default(), String::new());
        let mut machine = Machine { guest, ledger, class, _folder: folder };
        let verdict = machine.look()?;
        Ok((machine, verdict))
    }

    fn judge(&self, what: &str, verdict: Verdict) -> Result<(), GuestError> {
        self.say(&format!("{what}: {verdict}"));
        let clean = verdict.is_clean();
        clean.then_some(()).ok_or_else(|| GuestError::new(what, verdict.to_string()))
    }

    /// One line of progress.
    fn say(&self, line: &str) {
        let seconds = self.started.elapsed().as_secs();
        let _unwritable = writeln!(io::stderr(), "[{seconds:>4} s] reserved memory, {line}");
    }
}

impl Machine {
    /// Hears a boot to its end, and compares what is there with what was acknowledged.
    fn look(&mut self) -> Result<Verdict, GuestError> {
        while !matches!(self.hear()?, Sentence::Up) {}
        let mut found: Vec<Found> = Vec::new();
        loop {
            match self.hear()? {
                Sentence::Class(class) => self.class = class,
                Sentence::Found(it) => found.push(it),
                Sentence::Sound => break,
                Sentence::Up => return Err(GuestError::new("booting", "the guest restarts anew")),
                _ => {}
            }
        }
        if !found.iter().map(|it| it.writer).eq(WRITERS) {
            return Err(GuestError::new("counting lines", format!("the guest found {found:?}")));
        }
        let verdict = self.ledger.judge(&found);
        self.ledger = Ledger::default();
        self.ledger.adopt(&found);
        Ok(verdict)
    }

    /// Has the kernel panic, and looks at what the next boot finds.
    fn panic(&mut self) -> Result<Verdict, GuestError> {
        self.guest.order("panic")?;
        self.look()
    }

    /// Lets the writers write, has the kernel panic `wait` after each has begun, and looks.
    fn panic_under_load(&mut self, wait: Duration) -> Result<Verdict, GuestError> {
        let before = self.ledger.clone();
        self.guest.order("write")?;
        while WRITERS.iter().any(|&it| self.ledger.of(it) == before.of(it)) {
            self.hear()?;
        }
        std::thread::sleep(wait);
        self.panic()
    }

    /// The next sentence; an acknowledgement is noted.
    fn hear(&mut self) -> Result<Sentence, GuestError> {
        let sentence = self.guest.hear()?;
        self.ledger.hear(&sentence);
        Ok(sentence)
    }

    /// Probes; the bytes kept, and those that were looked at.
    fn expect_probe(&mut self, state: &str) -> Result<[u64; 2], GuestError> {
        self.guest.order("probe")?;
        loop {
            match self.hear()? {
                Sentence::Probe(found, bytes) if found == state => return Ok(bytes),
                Sentence::Probe(found, _) => {
                    let cause = format!("it is {found:?}, not {state:?}");
                    return Err(GuestError::new("probing", cause));
                }
                _ => {}
            }
        }
    }

    fn expect_class(&self, class: &str, when: &str) -> Result<(), GuestError> {
        let cause = || format!("it is {:?} {when}, not {class:?}", self.class);
        let is_so = self.class == class;
        is_so.then_some(()).ok_or_else(|| GuestError::new("asking for the class", cause()))
    }
}
