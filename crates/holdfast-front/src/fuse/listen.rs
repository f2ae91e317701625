//! Bytes to and from `/dev/fuse`.
//!
//! Promise: every message read is handed on exactly once and its answer written once; nothing of a
//! session is lost with the process, because the descriptor belongs to somebody else as well.
//! Never: knows a volume, looks inside a message, allocates between two messages.
//!
//! All threads read the one descriptor that came from the mount. Descriptors cloned from it would
//! spread the load over queues of their own, but the kernel ends the requests of a cloned
//! descriptor with an error when the last process that has it dies: exactly what must not happen.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::raw::{self, LockedBuffer};
use super::{reply, wire};
use crate::abort::AbortOnPanic;

/// What the kernel demands room for: the largest write and its two headers.
const REQUEST_BYTES: usize = PAGE + wire::TRANSFER_BYTES_MAX;
const REPLY_BYTES: usize = PAGE + wire::TRANSFER_BYTES_MAX;
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
#[derive(Debug)]
#[non_exhaustive]
pub enum ListenError {
    /// The request buffers could not be had or locked in memory: raise `RLIMIT_MEMLOCK`. Without
    /// the lock a killed front end could fail a program's request.
    Buffers(io::Error),
    /// The descriptor cannot be read; it is not one of a mounted `/dev/fuse`.
    Device(io::Error),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffers(error) => {
                write!(f, "cannot lock request buffers in memory (RLIMIT_MEMLOCK): {error}")
            }
            Self::Device(error) => write!(f, "cannot read requests from /dev/fuse: {error}"),
        }
    }
}

impl std::error::Error for ListenError {}

/// Turns a message into its answer, in place; returns the answer's bytes, 0 for none.
pub type Answer<'a> = dyn Fn(&[u8], &mut [u8]) -> usize + Sync + 'a;

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
    pub fn listen(&self, config: &ListenConfig, answer: &Answer<'_>) -> Result<(), ListenError> {
        // Memory reclaim must not wait for the process that it may be writing through. Without
        // the right to say so, the front end works like any other process.
        let _ = rustix::process::configure_io_flusher_behavior(true);
        let buffers = (0..config.threads.max(1)).map(|_| Buffers::new()).collect::<Result<_, _>>();
        let mut buffers: Vec<Buffers> = buffers.map_err(ListenError::Buffers)?;
        thread::scope(|scope| {
            let (own, others) = buffers.split_first_mut().expect("at least one thread");
            let listeners: Vec<_> = others
                .iter_mut()
                .map(|buffers| scope.spawn(move || self.listener(buffers, answer)))
                .collect();
            let ended = self.listener(own, answer);
            let joined = listeners.into_iter().map(|one| one.join().expect("panics abort"));
            joined.fold(ended, Result::and)
        })
    }

    fn listener(&self, buffers: &mut Buffers, answer: &Answer<'_>) -> Result<(), ListenError> {
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
            let answer_bytes = answer(&request[..bytes], reply);
            if answer_bytes > 0 {
                self.send(&reply[..answer_bytes]);
            }
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
