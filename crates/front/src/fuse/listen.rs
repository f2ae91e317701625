//! Bytes to and from `/dev/fuse`.
//!
//! Promise: every message read is handed on exactly once and its answer written once; nothing of a
//! session is lost with the process, because the descriptor belongs to somebody else as well.
//! Never: knows a volume, looks inside a message, allocates between two messages.
//!
//! All threads read the one descriptor that came from the mount. Descriptors cloned from it would
//! spread the load over queues of their own, but the kernel ends the requests of a cloned
//! descriptor with an error when the last process that has it dies: exactly what must not happen.

use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use holdfast_io::tree::{Asker, Waits};

use super::parked::{Lane, Parked};
use super::raw::{self, LockedBuffer};
use super::{parse, reply, wire};
use crate::abort::AbortOnPanic;

/// What the kernel demands room for: the largest write and its two headers.
const REQUEST_BYTES: usize = PAGE + wire::TRANSFER_BYTES_MAX;
const REPLY_BYTES: usize = PAGE + wire::TRANSFER_BYTES_MAX;
/// The answer of a change.
const AGAIN_BYTES: usize = 16 * PAGE;
/// How long what is parked waits before it is handed over again all the same.
const PARKED_PATIENCE: Duration = Duration::from_millis(100);
const PAGE: usize = 4096;
/// A request starts so that the payload of a write starts on a page.
const REQUEST_START: usize = PAGE - wire::IN_HEADER_BYTES - 40;
/// A reply starts so that its data starts on a page.
const REPLY_START: usize = PAGE - reply::HEADER_BYTES;

/// How the descriptor is read.
#[derive(Clone, Copy, Debug)]
pub struct ListenConfig {
    /// Threads that read. Each owns two locked buffers of a mebibyte.
    pub threads: usize,
}

/// Why listening ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The request buffers could not be had or locked in memory: raise `RLIMIT_MEMLOCK`. Without
    /// the lock a killed front end could fail a program's request.
    // No source: what may be locked is a limit, and not what others have just now.
    #[error("cannot lock request buffers in memory (RLIMIT_MEMLOCK): {0}")]
    Buffers(io::Error),
    /// The machine has no thread left: try again.
    #[error("no thread for requests: {0}")]
    Thread(#[source] io::Error),
    /// The descriptor cannot be read; it is not one of a mounted `/dev/fuse`.
    #[error("cannot read requests from /dev/fuse: {0}")]
    Device(#[source] io::Error),
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// So many bytes of answer are to be sent.
    Bytes(usize),
    /// It has no answer.
    Nothing,
    /// It has to wait, and is to be handed over again.
    Later,
}

impl Answered {
    /// An answer of so many bytes; 0 for none.
    pub fn of(bytes: usize) -> Answered {
        if bytes > 0 { Answered::Bytes(bytes) } else { Answered::Nothing }
    }
}

/// Who turns messages into answers.
pub trait Answers: Sync {
    /// Turns a message into its answer, in place. [`Answered::Later`] only if `asker` does not
    /// wait.
    fn answer(&self, asker: Asker, message: &[u8], reply: &mut [u8]) -> Answered;
    /// Waits until it may be of use to hand messages over again that are to wait, but not much
    /// longer than `patience`.
    fn wait_until_later(&self, _patience: Duration) {}
}

/// One mounted file system, seen from the process that serves it.
#[derive(Debug)]
pub struct Session {
    device: OwnedFd,
}

impl Session {
    /// Takes a descriptor that [`super::mount()`] returned, in this process or another.
    pub fn adopt(device: OwnedFd) -> Self {
        Self { device }
    }

    /// Asks the kernel for every request again that was read but not answered. For a process that
    /// replaces a dead one, before it listens; while another process still answers, its requests
    /// would be answered twice.
    pub fn resend(&self) -> io::Result<()> {
        rustix::io::write(&self.device, &reply::resend_notification())?;
        Ok(())
    }

    /// True once the file system is unmounted, or its connection cut.
    pub fn is_over(&self) -> bool {
        let mut polled = [PollFd::new(&self.device, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let seen = poll(&mut polled, Some(&now));
        seen.is_ok() && polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }

    /// Reads messages on `config.threads` threads, this one included, until the file system is
    /// unmounted.
    ///
    /// A request that has to wait keeps none of them: it is kept aside, and one more thread hands
    /// it over again.
    pub fn listen(&self, config: &ListenConfig, answers: &dyn Answers) -> Result<(), ListenError> {
        // Memory reclaim must not wait for the process that it may be writing through. Without
        // the right to say so, the front end works like any other process.
        let _ = rustix::process::configure_io_flusher_behavior(true);
        let buffers = (0..config.threads.max(1)).map(|_| Buffers::new()).collect::<Result<_, _>>();
        let mut buffers: Vec<Buffers> = buffers.map_err(ListenError::Buffers)?;
        let mut again = LockedBuffer::new(AGAIN_BYTES).map_err(ListenError::Buffers)?;
        let parked = Parked::default();
        thread::scope(|scope| {
            let waiter = || self.answer_parked(&parked, &mut again, answers);
            thread::Builder::new()
                .name("parked".to_owned())
                .spawn_scoped(scope, waiter)
                .map_err(ListenError::Thread)?;
            let (own, others) = buffers.split_first_mut().expect("at least one thread");
            let listeners: Vec<_> = others
                .iter_mut()
                .filter_map(|buffers| {
                    let listen = || self.listener(buffers, &parked, answers);
                    let thread = thread::Builder::new().spawn_scoped(scope, listen);
                    // Those that there are, and this one, answer everything, if with less haste.
                    thread.inspect_err(|error| tracing::warn!(%error, "fewer threads listen")).ok()
                })
                .collect();
            let ended = self.listener(own, &parked, answers);
            let joined = listeners.into_iter().map(|one| one.join().expect("panics abort"));
            let ended = joined.fold(ended, Result::and);
            parked.close();
            ended
        })
    }

    fn listener(
        &self,
        buffers: &mut Buffers,
        parked: &Parked,
        answers: &dyn Answers,
    ) -> Result<(), ListenError> {
        let _guard = AbortOnPanic;
        // Every program with a request out waits for this thread, which is short about it. Without
        // the right to go first it takes its turn like any other.
        let _ = raw::go_first();
        let request = &mut buffers.request[REQUEST_START..];
        let reply = &mut buffers.reply[REPLY_START..];
        loop {
            let bytes = match rustix::io::read(&self.device, &mut *request) {
                Ok(bytes) => bytes,
                // The asker went away before its request was read, or a signal came.
                Err(Errno::NOENT | Errno::INTR | Errno::AGAIN) => continue,
                Err(Errno::NODEV) => return Ok(()),
                Err(error) => return Err(ListenError::Device(error.into())),
            };
            let message = &request[..bytes];
            let user = parse::user_of(message);
            let lane = Lane { user, holds_others: parse::holds_others(message) };
            let asker = Asker { user, waits: parked.waits_of(lane, bytes) };
            match answers.answer(asker, message, reply) {
                Answered::Bytes(bytes) => self.send(&reply[..bytes]),
                Answered::Nothing => {}
                Answered::Later => parked.park(lane, message),
            }
        }
    }

    /// Hands over again what is parked, until nothing more comes.
    fn answer_parked(&self, parked: &Parked, reply: &mut [u8], answers: &dyn Answers) {
        let _guard = AbortOnPanic;
        while parked.wait_for_some() {
            answers.wait_until_later(PARKED_PATIENCE);
            parked.hand_over(&mut |user, message| {
                match answers.answer(Asker { user, waits: Waits::ForTheHome }, message, reply) {
                    Answered::Bytes(bytes) => self.send(&reply[..bytes]),
                    Answered::Nothing => {}
                    Answered::Later => return false,
                }
                true
            });
        }
    }

    fn send(&self, reply: &[u8]) {
        match rustix::io::write(&self.device, reply) {
            // Nobody waits for it any more, or the mount is gone: the next read will tell.
            Ok(_) | Err(Errno::NOENT | Errno::NODEV) => {}
            Err(error) => panic!("the kernel refuses an answer of {} bytes: {error}", reply.len()),
        }
    }
}

struct Buffers {
    request: LockedBuffer,
    reply: LockedBuffer,
}

impl Buffers {
    fn new() -> io::Result<Self> {
        Ok(Self {
            request: LockedBuffer::new(REQUEST_BYTES)?,
            reply: LockedBuffer::new(REPLY_BYTES)?,
        })
    }
}
