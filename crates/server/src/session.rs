//! One client's session, in a thread of its own.
//!
//! Promise: each round takes at most as many requests as the queue has slots; a queue that is
//! damaged is counted, made anew and used on; the session ends when the client's end of the socket
//! does, or when the server stops.
//! Never: knows what is asked; the handler of its service does.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdfast_client::protocol::{LEAVING, Status};
use holdfast_memory::queue::{Damage, SLOTS, SPINS, Taken};
use holdfast_peers::{Connection, Peer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::handler::{Copies, Departure, Handler};
use crate::service::Service;
use crate::waiting::Address;
use crate::words;

/// How long it sleeps before it sees whether it should end.
const IDLE_WAIT: Duration = Duration::from_millis(25);

/// Rounds without a pause after which a busy session, too, sees whether it should end.
const BUSY_ROUNDS: u32 = 256;

/// A session.
pub(crate) struct Session {
    pub(crate) stream: Connection,
    pub(crate) peer: Peer,
    pub(crate) service: Arc<Service>,
    pub(crate) handler: Box<dyn Handler>,
    pub(crate) address: Arc<Address>,
    pub(crate) buffers: u32,
    pub(crate) buffer_bytes: u32,
    pub(crate) bytes: Copies,
}

impl Session {
    /// Serves until the client or the server ends.
    pub(crate) fn run(mut self, stop: &AtomicBool) {
        let mut busy_rounds = 0u32;
        while !stop.load(Ordering::Relaxed) {
            let has_work = self.address.memory.queue().wait_for_work(SPINS, IDLE_WAIT);
            busy_rounds = if has_work { busy_rounds + 1 } else { 0 };
            if busy_rounds.is_multiple_of(BUSY_ROUNDS) && self.has_hung_up() {
                break;
            }
            self.round();
        }
        self.end();
    }

    /// Serves what waits, at most once round the page.
    fn round(&mut self) {
        for _ in 0..SLOTS {
            match self.take() {
                Ok(Some(taken)) => self.answer(&taken),
                Ok(None) => return,
                Err(damage) => {
                    self.damaged(damage);
                    return;
                }
            }
        }
    }

    fn take(&self) -> Result<Option<Taken>, Damage> {
        self.address.memory.queue().take()
    }

    fn answer(&mut self, taken: &Taken) {
        if let Some(response) = self.carry_out(taken) {
            self.address.answer(taken.slot, &response);
        }
    }

    /// Counts a request that was refused as wrong.
    pub(crate) fn refused(&self, status: Status) {
        self.service.count(words::REFUSED);
        self.complain(format_args!("a request was refused: {status}"));
    }

    fn damaged(&self, damage: Damage) {
        self.service.count(words::DAMAGE);
        self.address.memory.queue().rebuild();
        self.complain(format_args!("a queue was damaged, and rebuilt: {damage}"));
    }

    fn complain(&self, what: impl Display) {
        self.service.complain(self.peer, what);
    }

    /// Whatever a client sends after its hello is its end.
    fn has_hung_up(&self) -> bool {
        let mut polled = [PollFd::new(&self.stream, PollFlags::IN | PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut polled, Some(&now)), Ok(count) if count > 0)
    }

    /// How the client ended; None if it has not.
    fn departure(&self) -> Option<Departure> {
        let mut byte = [0];
        match self.stream.hear(&mut byte) {
            Ok(1) if byte == [LEAVING] => Some(Departure::InOrder),
            Err(Errno::AGAIN | Errno::INTR) => None,
            _ => Some(Departure::Vanished),
        }
    }

    fn end(mut self) {
        let departure = self.departure();
        self.handler.end(&self.address, departure);
        // A client whose socket is closed reads no more answers, but may keep the descriptor. One
        // whose server ends may still be reading.
        if departure.is_some()
            && let Err(error) = self.address.memory.discard()
        {
            self.complain(format_args!("the memory of a session is kept: {error}"));
        }
    }
}
