//! One QEMU and the guest in it.
//!
//! Promise: what the guest said before it died is heard to the last whole line; a guest that is
//! dropped is gone. Every wait has an end.
//! Never: knows what is behind the data disk.

use crate::error::{During, GuestError};
use crate::images::Images;
use crate::options::Database;
use crate::sentence::Sentence;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Far longer than a guest takes to say its next sentence, or to be gone.
const PATIENCE: Duration = Duration::from_secs(180);

/// How much of the kernel's last words explains a failure.
const LAST_LINES: usize = 12;

/// What the kernel is told beside the name of the database: where its words go; not to measure its
/// timer, which a busy machine delays until the kernel gives up; and to end at once when it panics,
/// which ends QEMU.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet no_timer_check panic=-1";

/// The memory and the place of each disk, so that the guest finds the data disk behind the root.
const MACHINE: [&str; 12] = [
    "-accel",
    "tcg,thread=multi",
    "-machine",
    "pc",
    "-m",
    "512",
    "-nodefaults",
    "-no-user-config",
    "-no-reboot",
    "-display",
    "none",
    "-device",
];

/// A guest that runs, or has run.
pub(crate) struct Guest {
    qemu: Child,
    orders: ChildStdin,
    sentences: Receiver<Sentence>,
    console: PathBuf,
    errors: PathBuf,
}

impl Guest {
    /// Starts a guest whose data disk is what these arguments of QEMU's call `data`. `folder` takes
    /// what the kernel and QEMU say.
    pub(crate) fn start(
        images: &Images,
        database: Database,
        data: &[String],
        folder: &Path,
    ) -> Result<Guest, GuestError> {
        let doing = "starting QEMU";
        let (console, errors) = (folder.join("console"), folder.join("qemu.log"));
        let mut command = Command::new("qemu-system-x86_64");
        command.args(MACHINE).arg("virtio-blk-pci,drive=root,addr=4");
        command.args(["-blockdev", &root(images)]).args(data);
        command.args(["-device", "virtio-blk-pci,drive=data,addr=5"]);
        command.arg("-kernel").arg(images.kernel()).arg("-initrd").arg(images.first());
        command.args(["-append", &format!("{KERNEL_ARGUMENTS} database={}", database.name())]);
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
    pub(crate) fn kill(mut self) -> Result<Vec<Sentence>, GuestError> {
        self.qemu.kill().during("killing QEMU")?;
        self.remains()
    }

    /// Has the guest's kernel panic and waits until QEMU has ended. Returns what the guest had said
    /// and nobody has heard yet.
    pub(crate) fn panic(mut self) -> Result<Vec<Sentence>, GuestError> {
        self.order("panic")?;
        let give_up = Instant::now() + PATIENCE;
        while self.qemu.try_wait().during("waiting for QEMU")?.is_none() {
            if Instant::now() > give_up {
                return Err(self.complain("the guest does not panic"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        match fs::read_to_string(&self.console).is_ok_and(|said| said.contains("Kernel panic")) {
            true => self.remains(),
            false => Err(self.complain("QEMU ended without a panic of the guest's")),
        }
    }

    /// Waits for the end of what a dead guest said.
    fn remains(mut self) -> Result<Vec<Sentence>, GuestError> {
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
        let _may_have_ended = self.qemu.kill();
        let _reaped = self.qemu.wait();
    }
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
