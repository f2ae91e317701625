//! One client's session, in a thread of its own.
//!
//! Promise: each round takes at most as many requests as the queue has slots; a queue that is
//! damaged is counted, made anew and used on; the session ends when the client's end of the socket
//! does, or when the server stops.
//! Never: knows what is asked; the handler of its service does.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdfast_client::protocol::{LEAVING, Status};
use holdfast_memory::queue::{Damage, SLOTS, SPINS, Taken};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::request::{Copies, Handler};
use crate::responder::Departure;
use crate::service::Service;
use crate::waiting::Address;
use crate::words;

/// How long it sleeps before it sees whether it should end.
const IDLE_WAIT: Duration = Duration::from_millis(25);

/// Rounds without a pause after which a busy session, too, sees whether it should end.
const BUSY_ROUNDS: u32 = 256;

/// A session.
pub(crate) struct Session {
    pub(crate) stream: UnixStream,
    pub(crate) service: Arc<Service>,
    pub(crate) handler: Box<dyn Handler>,
    pub(crate) address: Arc<Address>,
    pub(crate) buffers: u32,
    pub(crate) buffer_bytes: u32,
    pub(crate) bytes: Copies,
    /// Faults of this client so far; every power of two of them is written to the log.
    pub(crate) faults: u64,
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
    pub(crate) fn refused(&mut self, status: Status) {
        self.service.count(words::REFUSED);
        if self.is_worth_a_line() {
            let (service, faults) = (&self.service.name, self.faults);
            tracing::warn!(service, %status, faults, "a client's request was refused");
        }
    }

    fn damaged(&mut self, damage: Damage) {
        self.service.count(words::DAMAGE);
        self.address.memory.queue().rebuild();
        if self.is_worth_a_line() {
            let (service, faults) = (&self.service.name, self.faults);
            tracing::warn!(service, %damage, faults, "a client's queue was damaged, and rebuilt");
        }
    }

    fn is_worth_a_line(&mut self) -> bool {
        self.faults += 1;
        self.faults.is_power_of_two()
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
        match recv(&self.stream, &mut byte, RecvFlags::DONTWAIT) {
            Ok((_, 1)) if byte == [LEAVING] => Some(Departure::InOrder),
            Err(Errno::AGAIN | Errno::INTR) => None,
            _ => Some(Departure::Vanished),
        }
    }

    fn end(mut self) {
        let departure = self.departure();
        self.handler.end(&self.address, departure);
    }
}
