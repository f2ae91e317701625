//! One QEMU and the guest in it.
//!
//! Promise: what the guest said before it died is heard to the last whole line; a guest that is
//! dropped is gone. Every wait has an end.
//! Never: knows what is behind the data disk.

use crate::error::{During, GuestError};
use crate::images::Images;
use crate::machine::{MEMORY_MIB, Machine, QEMU};
use crate::options::Database;
use crate::sentence::Sentence;
use holdfast_io::process;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Far longer than a guest takes to say its next sentence, or to be gone.
const PATIENCE: Duration = Duration::from_secs(180);

/// How often it is looked whether QEMU has ended: its end is measured.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// How much of the kernel's last words explains a failure.
const LAST_LINES: usize = 12;

/// What every kernel is told: where its words go; not to measure its timer, which a busy machine
/// delays until the kernel gives up; and to restart at once when it panics.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet no_timer_check panic=-1";

/// What every guest is made of, beside its memory and its disks.
const MACHINE: [&str; 6] =
    ["-accel", "tcg,thread=multi", "-nodefaults", "-no-user-config", "-display", "none"];

/// What a guest boots, and what its restart is.
pub(crate) struct Boot {
    /// What the kernel is told beside what every kernel is.
    pub(crate) arguments: String,
    /// The kernel.
    pub(crate) kernel: PathBuf,
    /// The first file system.
    pub(crate) first: PathBuf,
    /// A restart is one of the same machine; otherwise it is the end of QEMU.
    pub(crate) restarts: bool,
}

impl Boot {
    /// A guest with a database.
    pub(crate) fn database(images: &Images, database: Database) -> Boot {
        let arguments = format!("database={}", database.name());
        Boot { arguments, kernel: images.kernel(), first: images.first(), restarts: false }
    }
}

/// A guest that runs, or has run.
pub(crate) struct Guest {
    qemu: Child,
    orders: ChildStdin,
    sentences: Receiver<Sentence>,
    console: PathBuf,
    errors: PathBuf,
}

impl Guest {
    /// Starts a guest that has these arguments of QEMU's for a data disk, perhaps as a machine that
    /// can be stopped and taken up. `folder` takes what the kernel and QEMU say.
    pub(crate) fn start(
        images: &Images,
        boot: &Boot,
        data: &[String],
        folder: &Path,
        machine: Option<&Machine>,
    ) -> Result<Guest, GuestError> {
        let doing = "starting QEMU";
        let (console, errors) = (folder.join("console"), folder.join("qemu.log"));
        let mut command = match machine {
            None => Command::new(QEMU),
            Some(machine) => machine.boot(),
        };
        command.args(if boot.restarts { &[][..] } else { &["-no-reboot"] });
        command.args(MACHINE).args(machine.map_or_else(own_memory, Machine::memory));
        command.args(["-blockdev", &root(images), "-device", "virtio-blk-pci,drive=root,addr=4"]);
        command.args(data);
        command.arg("-kernel").arg(&boot.kernel).arg("-initrd").arg(&boot.first);
        command.args(["-append", &format!("{KERNEL_ARGUMENTS} {}", boot.arguments)]);
        command.args(["-serial", &format!("file:{}", console.display()), "-serial", "stdio"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(fs::File::create(&errors).during(doing)?);
        let mut qemu = command.spawn().during(doing)?;
        let orders = qemu.stdin.take().expect("it is piped");
        let (sender, sentences) = channel();
        let said = qemu.stdout.take().expect("it is piped");
        std::thread::spawn(move || listen(said, &sender));
        Ok(Guest { qemu, orders, sentences, console, errors })
    }

    /// Gives an order.
    pub(crate) fn order(&mut self, order: &str) -> Result<(), GuestError> {
        writeln!(self.orders, "{order}").during("giving the guest an order")
    }

    /// The next sentence. A complaint is an error, and so is silence or the guest's end.
    pub(crate) fn hear(&self) -> Result<Sentence, GuestError> {
        match self.sentences.recv_timeout(PATIENCE) {
            Ok(Sentence::Complaint(what)) => Err(self.complain(&what)),
            Ok(sentence) => Ok(sentence),
            Err(RecvTimeoutError::Timeout) => Err(self.complain("the guest says nothing")),
            Err(RecvTimeoutError::Disconnected) => Err(self.complain("the guest has ended")),
        }
    }

    /// A sentence that is there already, if any is.
    pub(crate) fn hear_now(&self) -> Result<Option<Sentence>, GuestError> {
        match self.sentences.try_recv() {
            Ok(Sentence::Complaint(what)) => Err(self.complain(&what)),
            Ok(sentence) => Ok(Some(sentence)),
            Err(_) => Ok(None),
        }
    }

    /// Kills QEMU. Returns what the guest had said and nobody has heard yet.
    pub(crate) fn kill(&mut self) -> Result<Vec<Sentence>, GuestError> {
        self.qemu.kill().during("killing QEMU")?;
        self.remains()
    }

    /// Stops everything in the guest, without its noticing.
    pub(crate) fn pause(&self) -> Result<(), GuestError> {
        self.signal(Signal::STOP)
    }

    /// Lets everything in it go on.
    pub(crate) fn resume(&self) -> Result<(), GuestError> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<(), GuestError> {
        let sent = kill_process(Pid::from_child(&self.qemu), signal);
        sent.map_err(std::io::Error::from).during("stopping QEMU, or letting it go on")
    }

    /// Has the guest's kernel panic and waits until QEMU has ended. Returns what the guest had said
    /// and nobody has heard yet.
    pub(crate) fn panic(mut self) -> Result<Vec<Sentence>, GuestError> {
        self.order("panic")?;
        self.wait("the guest does not panic")?;
        match fs::read_to_string(&self.console).is_ok_and(|said| said.contains("Kernel panic")) {
            true => self.remains(),
            false => Err(self.complain("QEMU ended without a panic of the guest's")),
        }
    }

    /// Stops the guest, to be taken up by the next one of this machine. Returns what it had said
    /// and nobody has heard yet.
    pub(crate) fn stop(mut self, machine: &Machine) -> Result<Vec<Sentence>, GuestError> {
        machine.snapshot()?;
        self.wait("QEMU does not end")?;
        self.remains()
    }

    /// Waits until QEMU has ended by itself; `or` says what it is if it does not.
    fn wait(&mut self, or: &str) -> Result<(), GuestError> {
        let give_up = Instant::now() + PATIENCE;
        while self.qemu.try_wait().during("waiting for QEMU")?.is_none() {
            if Instant::now() > give_up {
                return Err(self.complain(or));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Waits for the end of what a dead guest said.
    fn remains(&mut self) -> Result<Vec<Sentence>, GuestError> {
        self.qemu.wait().during("waiting for QEMU")?;
        let sentences: Vec<Sentence> = self.sentences.iter().collect();
        let complaint = sentences.iter().find_map(|it| match it {
            Sentence::Complaint(what) => Some(what.clone()),
            _ => None,
        });
        match complaint {
            Some(what) => Err(self.complain(&what)),
            None => Ok(sentences),
        }
    }

    /// `what`, with what else the guest says, and the last words of its kernel and of QEMU.
    fn complain(&self, what: &str) -> GuestError {
        let last = |path: &Path| {
            let text = fs::read(path).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
        };
        let more: Vec<String> = self.sentences.try_iter().map(|it| format!("{it:?}")).collect();
        let (more, console, errors) = (more.join("\n"), last(&self.console), last(&self.errors));
        GuestError::new("listening to the guest", format!("{what}\n{more}\n{console}\n{errors}"))
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        kill_children(&self.qemu);
        let _may_have_ended = self.qemu.kill();
        let _reaped = self.qemu.wait();
    }
}

/// QEMU is the child of the command that started it, where one did.
fn kill_children(of: &Child) {
    let children = process::children(of.id()).into_iter();
    for pid in children.filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
        let _may_have_ended = kill_process(pid, Signal::KILL);
    }
}

/// Memory without a file, which whoever serves the guest's queues can see.
fn own_memory() -> Vec<String> {
    let object = format!("memory-backend-memfd,id=ram,size={MEMORY_MIB}M,share=on");
    ["-object", &object, "-machine", "pc,memory-backend=ram", "-m", MEMORY_MIB]
        .map(String::from)
        .into()
}

/// The root image, which nobody writes to.
fn root(images: &Images) -> String {
    format!("driver=file,node-name=root,read-only=on,filename={}", images.root().display())
}

/// Passes on whole lines until there are none.
fn listen(said: impl Read, sentences: &Sender<Sentence>) {
    let mut said = BufReader::new(said);
    loop {
        let mut line = Vec::new();
        let is_over = said.read_until(b'\n', &mut line).unwrap_or(0) == 0;
        let Some(sentence) = Sentence::parse(&line) else { break };
        if is_over || sentences.send(sentence).is_err() {
            break;
        }
    }
}
