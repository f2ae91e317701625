//! The ways in which one process can ask another: ours and its peers.
//!
//! Promise: each has the same two halves: `ask`, once and back, and `echo`, for ever. The echoing
//! process has the way's descriptors as its standard input and output.
//! Never: measures.

use std::error::Error;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use holdfast_memory::SessionMemory;
use holdfast_memory::queue::{Owner, Queue, Request, Response};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::{read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::thread::{CpuSet, futex, sched_setaffinity};

use crate::raw::{self, Words};

/// Bytes of a message where there are messages: about a request of the queue.
const MESSAGE_BYTES: usize = 48;

/// Looks before sleeping, for who never sleeps.
const ALWAYS: u32 = u32::MAX;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// One way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    QueueSpin,
    QueueSleep,
    Flag,
    Futex,
    Eventfd,
    Socket,
}

/// All of them, with the names that stand in the ids.
pub(crate) const ALL: [(Way, &str); 6] = [
    (Way::QueueSpin, "queue.roundtrip.spin"),
    (Way::Flag, "flag.roundtrip"),
    (Way::QueueSleep, "queue.roundtrip.sleep"),
    (Way::Futex, "futex.roundtrip"),
    (Way::Eventfd, "eventfd.roundtrip"),
    (Way::Socket, "socket.roundtrip"),
];

pub(crate) fn named(wanted: &str) -> Option<Way> {
    ALL.iter().find(|(_, name)| *name == wanted).map(|(way, _)| *way)
}

/// Keeps this process on one core.
pub(crate) fn pin(core: usize) -> io::Result<()> {
    keep_on(&[core])
}

/// Keeps this process, and what it starts, on these cores; on which of them is the kernel's choice.
pub(crate) fn keep_on(on: &[usize]) -> io::Result<()> {
    let mut cores = CpuSet::new();
    on.iter().for_each(|core| cores.set(*core));
    Ok(sched_setaffinity(None, &cores)?)
}

/// A process that is killed when nobody needs it any more.
pub(crate) struct Echo(Child);

impl Echo {
    /// Starts this program again to echo.
    pub(crate) fn start(way: &str, core: usize, ends: [OwnedFd; 2]) -> io::Result<Echo> {
        Echo::spawn(&["--echo", way, &core.to_string()], ends)
    }

    /// Starts this program again to answer at a queue, on the cores that this one may use.
    pub(crate) fn unpinned(spins: u32, session: OwnedFd) -> io::Result<Echo> {
        Echo::spawn(&["--answer", &spins.to_string()], twice(session)?)
    }

    /// Starts this program again to keep a core busy.
    pub(crate) fn stranger(core: usize) -> io::Result<Echo> {
        let nothing =
            || File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
        Echo::spawn(&["--busy", &core.to_string()], [nothing()?, nothing()?])
    }

    fn spawn(arguments: &[&str], [input, output]: [OwnedFd; 2]) -> io::Result<Echo> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).stdin(Stdio::from(input)).stdout(Stdio::from(output));
        Ok(Echo(command.spawn()?))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // If it is gone already there is nothing to end.
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

/// The asking half of a way.
pub(crate) enum Asker {
    Queue { session: SessionMemory, spins: u32 },
    Words { words: &'static Words, sleeps: bool, number: u32 },
    Pair { to: OwnedFd, from: OwnedFd, bytes: usize },
}

impl Way {
    /// Makes the way: the asking half, and the descriptors of the other.
    pub(crate) fn open(self) -> Result<(Asker, [OwnedFd; 2]), Box<dyn Error>> {
        Ok(match self {
            Way::QueueSpin | Way::QueueSleep => {
                let (session, file) = SessionMemory::create_sealed(4096)?;
                (Asker::Queue { session, spins: self.spins() }, twice(file)?)
            }
            Way::Flag | Way::Futex => {
                let file = memfd_create("words", MemfdFlags::CLOEXEC)?;
                ftruncate(&file, raw::BYTES as u64)?;
                let words = raw::words(file.as_fd())?;
                let sleeps = self == Way::Futex;
                (Asker::Words { words, sleeps, number: 0 }, twice(file)?)
            }
            Way::Eventfd => {
                let [there, back] =
                    [eventfd(0, EventfdFlags::CLOEXEC)?, eventfd(0, EventfdFlags::CLOEXEC)?];
                let ends = [there.try_clone()?, back.try_clone()?];
                (Asker::Pair { to: there, from: back, bytes: 8 }, ends)
            }
            Way::Socket => {
                let flags = SocketFlags::CLOEXEC;
                let (ours, theirs) =
                    socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
                let from = ours.try_clone()?;
                (Asker::Pair { to: ours, from, bytes: MESSAGE_BYTES }, twice(theirs)?)
            }
        })
    }

    fn spins(self) -> u32 {
        if self == Way::QueueSpin { ALWAYS } else { 0 }
    }

    /// The answering half, for ever.
    pub(crate) fn echo(self) -> Result<(), Box<dyn Error>> {
        let (input, output) = (rustix::stdio::stdin(), rustix::stdio::stdout());
        match self {
            Way::QueueSpin | Way::QueueSleep => answer_all(self.spins()),
            Way::Flag | Way::Futex => echo_words(raw::words(input)?, self == Way::Futex),
            Way::Eventfd => echo_pair(input, output, 8),
            Way::Socket => echo_pair(input, output, MESSAGE_BYTES),
        }
    }
}

/// The same descriptor for both standard streams.
fn twice(file: OwnedFd) -> io::Result<[OwnedFd; 2]> {
    Ok([file.try_clone()?, file])
}

/// Answers at the queue behind standard input, for ever.
pub(crate) fn answer_all(spins: u32) -> Result<(), Box<dyn Error>> {
    let session = SessionMemory::map(rustix::stdio::stdin())?;
    loop {
        answer(session.queue(), spins)?;
    }
}

/// Keeps this process's core busy, for ever.
pub(crate) fn keep_busy() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

fn answer(queue: Queue<'_>, spins: u32) -> Result<(), Box<dyn Error>> {
    if queue.wait_for_work(spins, PATIENCE) {
        while let Some(taken) = queue.take()? {
            let value = taken.request.argument;
            queue.complete(taken.slot, &Response { status: 0, bytes: 0, value })?;
        }
    }
    Ok(())
}

fn echo_words(words: &Words, sleeps: bool) -> ! {
    let mut number = 0_u32;
    loop {
        await_change(&words.request.0, number, sleeps);
        number = number.wrapping_add(1);
        tell(&words.answer.0, number, sleeps);
    }
}

fn echo_pair(
    input: BorrowedFd<'_>,
    output: BorrowedFd<'_>,
    bytes: usize,
) -> Result<(), Box<dyn Error>> {
    let mut message = [0; MESSAGE_BYTES];
    loop {
        if read(input, &mut message[..bytes])? == 0 {
            return Ok(());
        }
        write(output, &message[..bytes])?;
    }
}

/// Waits until a word is not `old` any more.
fn await_change(word: &AtomicU32, old: u32, sleeps: bool) {
    // EDGE told-to-seen: what was written before the word changed is seen.
    while word.load(Ordering::Acquire) == old {
        if sleeps {
            // Every outcome means the same: look again.
            let _look = futex::wait(word, futex::Flags::empty(), old, None);
        } else {
            std::hint::spin_loop();
        }
    }
}

fn tell(word: &AtomicU32, new: u32, sleeps: bool) {
    // EDGE told-to-seen: what was written before is seen by whoever sees the word.
    word.store(new, Ordering::Release);
    if sleeps {
        let _woken = futex::wake(word, futex::Flags::empty(), 1);
    }
}

impl Asker {
    /// Asks once and waits for the answer.
    pub(crate) fn ask(&mut self) -> Result<(), Box<dyn Error>> {
        match self {
            Asker::Queue { session, spins } => {
                ask_queue(session.queue(), *spins, Request::default())?;
            }
            Asker::Words { words, sleeps, number } => {
                tell(&words.request.0, number.wrapping_add(1), *sleeps);
                await_change(&words.answer.0, *number, *sleeps);
                *number = number.wrapping_add(1);
            }
            Asker::Pair { to, from, bytes } => {
                let mut message = [0; MESSAGE_BYTES];
                message[0] = 1;
                write(to, &message[..*bytes])?;
                read(from, &mut message[..*bytes])?;
            }
        }
        Ok(())
    }
}

/// Puts one request and waits for its response.
pub(crate) fn ask_queue(
    queue: Queue<'_>,
    spins: u32,
    request: Request,
) -> Result<Response, Box<dyn Error>> {
    let slot = queue.acquire(Owner::MIN).ok_or("no free slot")?;
    queue.put(slot, &request);
    let response = queue.wait(slot, spins, PATIENCE).ok_or("no answer")?;
    queue.free(slot);
    Ok(response)
}
