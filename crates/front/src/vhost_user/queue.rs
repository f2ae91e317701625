//! The thread of one queue.
//!
//! Promise: requests begin in the order in which they were taken; one that waits for a slow flush
//! holds up nobody. When the queue is to stop, all that was taken is answered first. Memory that
//! cannot be trusted stops this queue, with a line in the log.
//! Never: touches another queue.

use std::fs::File;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Scope;

use rustix::event::{PollFd, PollFlags, poll};
use vm_memory::GuestAddress;

use super::chain::{Chain, ChainFault};
use super::ring::{Ring, RingFault};
use super::serve::{Answer, Disk, Failure, Performer};
use super::wire::status;
use crate::abort::AbortOnPanic;
use crate::complaints::Complaints;
use crate::flusher::{Flushed, Flusher};
use crate::wake::WakeUp;

/// A way to tell the guest something, which may be replaced at any time.
pub(crate) type Bell = Arc<Mutex<Option<File>>>;

/// A way to end a queue's thread.
pub(crate) struct Stop {
    is_set: AtomicBool,
    wake: WakeUp,
}

impl Stop {
    pub(crate) fn new() -> std::io::Result<Stop> {
        Ok(Stop { is_set: AtomicBool::new(false), wake: WakeUp::new()? })
    }

    pub(crate) fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
        self.wake.wake();
    }

    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }
}

/// What all queues of a guest share.
pub(crate) struct Shared {
    /// A change is answered when it is durable: the guest thinks that there is no write cache.
    pub(crate) write_through: AtomicBool,
    pub(crate) complaints: Mutex<Complaints>,
    /// The connection, to be ended from any thread.
    pub(crate) socket: UnixStream,
}

impl Shared {
    /// Ends the connection: the guest's memory is gone, so none of its queues can go on.
    pub(crate) fn hang_up(&self) {
        // It may be over already.
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    pub(crate) fn complain(&self, what: impl std::fmt::Display) {
        self.complaints.lock().expect("panics abort").say(what);
    }
}

/// Why a queue cannot go on.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Ring(#[from] RingFault),
    #[error(transparent)]
    Chain(ChainFault),
    /// A chain without room for an answer, or memory that went away.
    #[error("a request without room for an answer, or memory that is gone")]
    Memory,
    /// The guest's bell for us.
    #[error("its kicks cannot be heard: {0}")]
    Kick(rustix::io::Errno),
}

/// What a queue's thread works with.
pub(crate) struct Worker<'scope, 'env> {
    pub(crate) index: usize,
    pub(crate) ring: Ring,
    pub(crate) kick: Arc<File>,
    pub(crate) call: Bell,
    pub(crate) error: Bell,
    pub(crate) stop: Arc<Stop>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) disk: &'env Disk<'env>,
    pub(crate) scope: &'scope Scope<'scope, 'env>,
}

/// A queue being served.
struct Served<'scope, 'env> {
    worker: Worker<'scope, 'env>,
    performer: Performer<'env>,
    flusher: Flusher<'scope, 'env>,
    chain: Chain,
    /// Of each head that waits for a flush: where its status goes.
    waiting: Vec<Option<GuestAddress>>,
}

impl<'scope, 'env> Worker<'scope, 'env> {
    /// Serves until it is to stop, or the queue breaks; returns where another would go on.
    pub(crate) fn work(self) -> u16 {
        let _guard = AbortOnPanic;
        let entries = self.ring.table().entries as usize;
        let mut served = Served {
            performer: Performer::new(self.disk),
            flusher: Flusher::new(self.scope),
            chain: Chain::default(),
            waiting: vec![None; entries],
            worker: self,
        };
        // Told before the flushes are waited for: a device that hangs does not hide the reason.
        let result = served.serve();
        let mut is_broken = served.worker.tells(result);
        let flushed = served.flusher.finish();
        let result = served.answer_flushed(flushed);
        is_broken |= served.worker.tells(result);
        let worker = served.worker;
        if is_broken {
            ring(&worker.error);
            if worker.ring.memory().check().is_err() {
                worker.shared.hang_up();
            }
        }
        worker.ring.next_available()
    }

    /// Whether the queue is broken, of which there is a line then.
    fn tells(&self, result: Result<(), Broken>) -> bool {
        let Err(broken) = result else { return false };
        self.shared.complain(format_args!("queue {} stops: {broken}", self.index));
        true
    }
}

impl Served<'_, '_> {
    fn serve(&mut self) -> Result<(), Broken> {
        loop {
            self.worker.ring.mute()?;
            self.serve_available()?;
            if self.is_done() {
                return Ok(());
            }
            if !self.worker.ring.unmute()? {
                self.wait()?;
            }
        }
    }

    fn serve_available(&mut self) -> Result<(), Broken> {
        while !self.is_done() {
            let Some(head) = self.worker.ring.take()? else { break };
            self.request(head)?;
            let flushed = self.flusher.take();
            self.answer_flushed(flushed)?;
        }
        let flushed = self.flusher.take();
        self.answer_flushed(flushed)
    }

    fn is_done(&self) -> bool {
        self.worker.stop.is_set() && self.worker.ring.is_caught_up()
    }

    fn request(&mut self, head: u16) -> Result<(), Broken> {
        let ring = &self.worker.ring;
        let memory = ring.memory().clone();
        self.chain.walk(&memory, ring.table(), head).map_err(Broken::Chain)?;
        let room = self.chain.to_guest.bytes().checked_sub(1);
        let status_at = room.and_then(|last| self.chain.to_guest.address(last));
        let status_at = status_at.ok_or(Broken::Memory)?;
        let write_through = self.worker.shared.write_through.load(Ordering::Relaxed);
        let answer = match self.performer.perform(&memory, &self.chain, write_through) {
            Ok(answer) => answer,
            Err(failure) => self.failed(failure)?,
        };
        if !answer.needs_flush {
            return self.answer(head, status_at, answer.status, answer.given_bytes);
        }
        self.waiting[usize::from(head)] = Some(status_at);
        let flushed = self.flusher.flush(head.into(), self.worker.disk.blocks);
        self.answer_flushed(flushed)
    }

    fn failed(&self, failure: Failure) -> Result<Answer, Broken> {
        let status = match failure {
            Failure::Memory => return Err(Broken::Memory),
            Failure::Refused(refusal) => {
                self.worker.shared.complain(refusal);
                refusal.status()
            }
            Failure::Disk(error) => {
                self.worker.shared.complain(format_args!("a request failed: {error}"));
                status::IO_ERROR
            }
        };
        Ok(Answer { status, given_bytes: 0, needs_flush: false })
    }

    fn answer_flushed(&mut self, flushed: impl IntoIterator<Item = Flushed>) -> Result<(), Broken> {
        for Flushed { cookies, result } in flushed {
            if let Err(error) = &result {
                self.worker.shared.complain(format_args!("a flush failed: {error}"));
            }
            let status = if result.is_ok() { status::OK } else { status::IO_ERROR };
            for head in cookies.into_iter().map(|cookie| cookie as u16) {
                let status_at = self.waiting[usize::from(head)].take();
                self.answer(head, status_at.expect("a head that waits"), status, 0)?;
            }
        }
        Ok(())
    }

    fn answer(
        &mut self,
        head: u16,
        status_at: GuestAddress,
        status: u8,
        given_bytes: u32,
    ) -> Result<(), Broken> {
        let worker = &mut self.worker;
        let written = worker.ring.memory().write(&[status], status_at);
        written.map_err(|_| Broken::Memory)?;
        if worker.ring.answer(head, given_bytes.saturating_add(1))? {
            ring(&worker.call);
        }
        Ok(())
    }

    /// Sleeps until the guest has a request, a flush has ended, or the queue is to stop.
    fn wait(&self) -> Result<(), Broken> {
        let worker = &self.worker;
        let listen = |to| PollFd::from_borrowed_fd(to, PollFlags::IN);
        let mut bells = vec![listen(worker.kick.as_fd()), listen(worker.stop.wake.as_fd())];
        bells.extend(self.flusher.waited_for().map(listen));
        match poll(&mut bells, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Broken::Kick(error)),
        }
        let heard = bells[0].revents();
        if heard.is_empty() {
            return Ok(());
        }
        match rustix::io::read(&worker.kick, &mut [0; 8]) {
            Ok(8) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
            Ok(_) => Err(Broken::Kick(rustix::io::Errno::INVAL)),
            Err(error) => Err(Broken::Kick(error)),
        }
    }
}

/// Rings a bell, if there is one.
#[expect(clippy::host_endian_bytes, reason = "the kernel speaks the machine's byte order")]
pub(crate) fn ring(bell: &Bell) {
    if let Some(file) = &*bell.lock().expect("panics abort") {
        // It fails when it rings already, or when nobody can hear it.
        let _ = rustix::io::write(file, &1_u64.to_ne_bytes());
    }
}
