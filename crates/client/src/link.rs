//! One connection to one server process: a queue page, buffers, and a socket that tells of its end.
//!
//! Promise: an exchange ends with the server's answer, or with the server's end.
//! Never: repeats a request on another connection; `session` does.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use holdfast_memory::SessionMemory;
use holdfast_memory::queue::{Owner, REBUILT, Request, Response, SPINS, SlotIndex};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send};

use crate::call::{Call, ResponseTarget};
use crate::protocol::{LEAVING, Reply};

/// How long a thread sleeps before it asks whether the server still lives.
const LIFE_CHECK: Duration = Duration::from_millis(5);

/// A session's page belongs to one process, so its slots have one owner.
const OWNER: Owner = Owner::MIN;

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    stream: UnixStream,
    memory: SessionMemory,
    reply: Reply,
    /// Buffers that no thread uses.
    spare: Mutex<Vec<u32>>,
    returned: Condvar,
    is_gone: AtomicBool,
}

impl Link {
    pub(crate) fn new(stream: UnixStream, memory: SessionMemory, reply: Reply) -> Link {
        let spare = (0..reply.buffers).map(|number| number * reply.buffer_bytes).collect();
        Link {
            stream,
            memory,
            reply,
            spare: Mutex::new(spare),
            returned: Condvar::new(),
            is_gone: AtomicBool::new(false),
        }
    }

    /// What the server said when the session began.
    pub(crate) fn reply(&self) -> &Reply {
        &self.reply
    }

    /// Tells the server that nothing will be asked any more. A server that is gone hears nothing.
    pub(crate) fn leave(&self) {
        let _ = send(&self.stream, &[LEAVING], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    /// Asks, waits, and returns the answer, with what it brought in `into`. None if the server is
    /// gone; whether it did what was asked is then unknown.
    pub(crate) fn exchange(
        &self,
        ask: &Call<'_>,
        into: &mut ResponseTarget<'_>,
    ) -> Option<Response> {
        let buffer = self.borrow();
        let response = self.exchange_in(buffer, ask, into);
        self.give_back(buffer);
        response
    }

    fn exchange_in(
        &self,
        buffer: u32,
        ask: &Call<'_>,
        into: &mut ResponseTarget<'_>,
    ) -> Option<Response> {
        let mut request = ask.request(&self.reply);
        request.buffer = buffer;
        loop {
            let mut at = buffer;
            for part in ask.parts {
                self.memory.copy_in(at, part).expect("the caller knows the longest payload");
                at += part.len() as u32;
            }
            let response = self.answer_to(&request)?;
            if response.status == REBUILT {
                continue; // the page was damaged and cleared, and the request with it
            }
            let place = into.place(response.bytes.min(self.reply.buffer_bytes) as usize);
            self.memory.copy_out(buffer, place).expect("it lies inside the buffer");
            return Some(response);
        }
    }

    fn answer_to(&self, request: &Request) -> Option<Response> {
        let queue = self.memory.queue();
        let slot = self.slot()?;
        queue.put(slot, request);
        loop {
            if let Some(response) = queue.wait(slot, SPINS, LIFE_CHECK) {
                queue.free(slot);
                return Some(response);
            }
            if self.has_ended() {
                // It may have answered just before.
                return queue.wait(slot, 0, Duration::ZERO);
            }
        }
    }

    /// A free slot. There are more of them than buffers, so one comes at once, or after the server
    /// has brought a damaged page in order.
    fn slot(&self) -> Option<SlotIndex> {
        loop {
            if let Some(slot) = self.memory.queue().acquire(OWNER) {
                return Some(slot);
            }
            if self.has_ended() {
                return None;
            }
            std::thread::sleep(LIFE_CHECK);
        }
    }

    /// Whether the other end of the socket is closed, which the kernel does for a dead server.
    fn has_ended(&self) -> bool {
        if self.is_gone.load(Ordering::Relaxed) {
            return true;
        }
        let mut polled = [PollFd::new(&self.stream, PollFlags::IN | PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Nothing is ever sent after the reply, so whatever there is to hear is the end.
        let ended = matches!(poll(&mut polled, Some(&now)), Ok(count) if count > 0);
        if ended {
            self.is_gone.store(true, Ordering::Relaxed);
        }
        ended
    }

    /// A buffer. Each exchange gives its own back, also when the server is gone, so one comes.
    fn borrow(&self) -> u32 {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(buffer) = spare.pop() {
                return buffer;
            }
            spare = self.returned.wait(spare).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn give_back(&self, buffer: u32) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        self.returned.notify_one();
    }
}
