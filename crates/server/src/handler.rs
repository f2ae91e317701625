//! What does the requests of a session, whatever its service is, and what it is given to do so.
//!
//! Promise: a payload is copied out of the client's memory before anybody looks at it; an answer
//! goes into the buffer of its request, and nowhere else.
//! Never: knows a service or a session.

use std::io;
use std::sync::Arc;

use holdfast_client::protocol::{Operation, Status};
use holdfast_io::errno;
use holdfast_memory::queue::{Request, Response, SlotIndex};

use crate::service_words::ServiceWords;
use crate::waiting::Address;

/// Why a request is not done, as its client hears it.
pub(crate) type Refusal = (Status, u64);

/// What does the requests of one session.
pub(crate) trait Handler: Send {
    /// Does what is asked and returns the answer; None if somebody else answers later.
    fn handle(
        &mut self,
        operation: Operation,
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Response>, Refusal>;

    /// The session is over; if the client ended it, how.
    fn end(&mut self, _address: &Arc<Address>, _departure: Option<Departure>) {}
}

/// Private copies of what a client sends and gets; kept for their memory.
#[derive(Default)]
pub(crate) struct Copies {
    pub(crate) payload: Vec<u8>,
    pub(crate) answer: Vec<u8>,
}

/// One request, its buffer checked, with the ways to the client's memory.
pub(crate) struct Exchange<'a> {
    pub(crate) request: &'a Request,
    /// Of its service.
    pub(crate) words: &'a dyn ServiceWords,
    pub(crate) address: &'a Arc<Address>,
    pub(crate) slot: SlotIndex,
    pub(crate) buffer_bytes: u32,
    pub(crate) bytes: &'a mut Copies,
}

impl Exchange<'_> {
    /// The one copy that is looked at from now on.
    pub(crate) fn copy_payload(&mut self) {
        self.bytes.payload.resize(self.request.bytes as usize, 0);
        let copied = self.address.memory.copy_out(self.request.buffer, &mut self.bytes.payload);
        copied.expect("the buffer was checked to lie in the memory");
    }

    /// Puts what is answered into the request's buffer. Returns how many bytes that are.
    pub(crate) fn bring(&self, bytes: &[u8]) -> Result<u32, Refusal> {
        if bytes.len() > self.buffer_bytes as usize {
            return Err((Status::TooLarge, bytes.len() as u64));
        }
        let copied = self.address.memory.copy_in(self.request.buffer, bytes);
        copied.expect("the buffer was checked to lie in the memory");
        Ok(bytes.len() as u32)
    }
}

/// A good answer that brings no bytes.
pub(crate) fn done(value: [u64; 2]) -> Response {
    Response { status: Status::Done as u32, bytes: 0, value }
}

/// A system's error as the value of an answer.
pub(crate) fn errno_of(error: &io::Error) -> u64 {
    u64::from(errno(error).unwrap_or(0).unsigned_abs())
}

/// How a client ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It has all its answers, and said that it will not ask again: what is remembered of it can be
    /// forgotten.
    InOrder,
    /// It was ended, or cut off; then it may come back and ask again what it has no answer to.
    Vanished,
}
