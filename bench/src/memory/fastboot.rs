//! A guest with a database that goes on where it was stopped, beside the same guest booted.
//!
//! Promise: both begin with `holdfast vm boot` and the same arguments, and end with what a client
//! waits for: the first answer of a booted database, the first commit of one that was taken up.
//! Never: judges what the guest has in it; `make test-guests` does.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use holdfast_bench_common::colours::{OTHER, OWN};
use holdfast_bench_common::ledger::Ledger;
use holdfast_bench_common::place::Place;
use holdfast_bench_common::ratios::divided;
use holdfast_bench_common::task::Task;
use holdfast_bench_common::{Failure, output};
use holdfast_figures::{Bar, Better, Figure, Panel, Scale};

use crate::part::Measured;

/// The folder in which `release/holdfast` is built and `guests/setup` makes its images.
const TARGET: &str = "HOLDFAST_TARGET";

const MEMORY_MIB: &str = "512";

/// What is asked of taking a guest up, in parts of booting it.
const GOAL: f64 = 0.25;

const COLD: &str = "fastboot.cold_ms";
const RESTORE: &str = "fastboot.restore_ms";
const PAUSE: &str = "fastboot.pause_ms";

/// Commits of a guest before it is stopped.
const COMMITS: usize = 20;

/// Measures so many guests.
pub(crate) fn measure(task: &Task, _disk: &Place) -> Result<Measured, Failure> {
    let target = PathBuf::from(env::var_os(TARGET).ok_or("HOLDFAST_TARGET is not set")?);
    let (mut ledger, rounds) = (Ledger::default(), task.effort(5, 1));
    for round in 1..=rounds {
        output::progress(&format!("fastboot: round {round} of {rounds}"));
        let place = Place::in_memory("holdfast-bench-fastboot")?;
        boot_and_take_up(&Machine::new(&target, place.path())?, &mut ledger)?;
    }
    let mut figures = ledger.figures();
    if let Some(runs) = divided(ledger.runs(RESTORE), ledger.runs(COLD)) {
        let over = Figure::of("fastboot.restore_over_cold", "ratio", Better::Lower, runs);
        figures.push(over.against(GOAL, "the same guest booted"));
    }
    Ok(Measured { figures, panels: vec![panel()], ..Measured::default() })
}

/// Boots a guest, stops it under load, and takes it up.
fn boot_and_take_up(machine: &Machine, ledger: &mut Ledger) -> Result<(), Failure> {
    let began = Instant::now();
    let mut guest = machine.boot()?;
    guest.wait_for("ready")?;
    ledger.lower(COLD.into(), "ms", ms_since(began));
    guest.wait_for("sound")?;
    writeln!(guest.orders, "write")?;
    (0..COMMITS).try_for_each(|_| guest.wait_for("done"))?;
    let began = Instant::now();
    machine.snapshot()?;
    ledger.lower(PAUSE.into(), "ms", ms_since(began));
    drop(guest);
    let began = Instant::now();
    let mut guest = machine.boot()?;
    guest.wait_for("done")?;
    ledger.lower(RESTORE.into(), "ms", ms_since(began));
    Ok(())
}

fn ms_since(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}

/// What a guest consists of.
struct Machine {
    program: PathBuf,
    images: PathBuf,
    folder: PathBuf,
}

impl Machine {
    /// A machine that was never started, with an empty database on a disk of its own.
    fn new(target: &Path, folder: &Path) -> Result<Machine, Failure> {
        let machine = Machine {
            program: target.join("release/holdfast"),
            images: target.join("guests"),
            folder: folder.into(),
        };
        let image = machine.images.join("postgres.img");
        fs::copy(&image, machine.data())
            .map_err(|error| format!("{}: {error}", image.display()))?;
        Ok(machine)
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Starts it, or takes it up.
    fn boot(&self) -> Result<Guest, Failure> {
        let disk =
            |file: &Path, more: &str| format!("if=none,format=raw,file={},{more}", file.display());
        let (images, folder) = (&self.images, self.folder.display());
        let mut command = Command::new(&self.program);
        // QEMU ends when the command that started it is killed.
        let qemu = ["--", "setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"];
        command.args(["vm", "boot"]).arg(&self.folder).args(qemu);
        command.args(["-accel", "tcg,thread=multi", "-nodefaults", "-no-user-config"]);
        command.args(["-no-reboot", "-display", "none", "-m", MEMORY_MIB]);
        let memory = format!("size={MEMORY_MIB}M,share=on,mem-path={folder}/memory");
        command.args(["-object", &format!("memory-backend-file,id=ram,{memory}")]);
        command.args(["-machine", "pc,memory-backend=ram"]);
        command.args(["-drive", &disk(&images.join("root.img"), "id=root,read-only=on")]);
        command.args(["-drive", &disk(&self.data(), "id=data,cache=none")]);
        command.args(["-device", "virtio-blk-pci,drive=root,addr=4"]);
        command.args(["-device", "virtio-blk-pci,drive=data,addr=5"]);
        command.arg("-kernel").arg(images.join("vmlinuz"));
        command.arg("-initrd").arg(images.join("first.gz"));
        let kernel = "console=ttyS0 quiet no_timer_check panic=-1 database=postgres";
        command.args(["-append", kernel]);
        command.args(["-serial", &format!("file:{folder}/console"), "-serial", "stdio"]);
        Guest::start(&mut command, &self.folder.join("errors"))
    }

    /// Stops it and keeps its state.
    fn snapshot(&self) -> Result<(), Failure> {
        let mut command = Command::new(&self.program);
        let done = command.args(["vm", "snapshot"]).arg(&self.folder).output()?;
        let said = String::from_utf8_lossy(&done.stderr);
        if done.status.success() { Ok(()) } else { Err(said.into_owned().into()) }
    }
}

/// A guest that runs, until it is dropped.
struct Guest {
    process: Child,
    orders: ChildStdin,
    said: BufReader<ChildStdout>,
    errors: PathBuf,
}

impl Guest {
    fn start(command: &mut Command, errors: &Path) -> Result<Guest, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(errors)?);
        let mut process = command.spawn()?;
        let orders = process.stdin.take().ok_or("no input")?;
        let said = BufReader::new(process.stdout.take().ok_or("no output")?);
        Ok(Guest { process, orders, said, errors: errors.into() })
    }

    /// Listens until a sentence begins with this word.
    fn wait_for(&mut self, word: &str) -> Result<(), Failure> {
        loop {
            let mut line = Vec::new();
            let is_over = self.said.read_until(b'\n', &mut line)? == 0;
            let line = String::from_utf8_lossy(&line).into_owned();
            match line.split_whitespace().next() {
                Some(first) if first == word => return Ok(()),
                Some("broken" | "unsound") => return Err(self.failed(&line)),
                _ if is_over => return Err(self.failed("the guest has ended")),
                _ => {}
            }
        }
    }

    fn failed(&self, what: &str) -> Failure {
        let errors = fs::read_to_string(&self.errors).unwrap_or_default();
        format!("{what}\n{errors}").into()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // One that was stopped has ended already.
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}

fn panel() -> Panel {
    let bar = |label: &str, id: &str, colour| Bar { label: label.into(), colour, id: id.into() };
    let bars = vec![
        bar("booted, to the first answer", COLD, OTHER),
        bar("stopped", PAUSE, OWN),
        bar("taken up, to the first commit", RESTORE, OWN),
    ];
    Panel { title: "a guest with PostgreSQL, emulated, ms".into(), scale: Scale::Linear, bars }
}
