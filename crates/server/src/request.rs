//! One request, looked at and handed to what does it.
//!
//! Promise: every field comes from a private copy and is checked before it is used; a payload is
//! copied out of the client's memory before anybody looks at it.
//! Never: answers with bytes that another client put anywhere but into the service they share.

use std::io;
use std::sync::Arc;

use holdfast_client::protocol::{Operation, Status};
use holdfast_io::errno;
use holdfast_memory::queue::{Request, Response, SlotIndex, Taken};
use holdfast_peers::in_hand::{Doing, InHand};

use crate::responder::Departure;
use crate::service::Service;
use crate::session::Session;
use crate::waiting::{Address, refusal};

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
    pub(crate) service: &'a Service,
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

impl Session {
    /// Does what is asked. None if it is answered later.
    pub(crate) fn carry_out(&mut self, taken: &Taken) -> Option<Response> {
        let _in_hand = InHand::take(Doing::Service);
        let request = &taken.request;
        let handled = self.check(request).and_then(|operation| {
            let mut exchange = Exchange {
                request,
                service: &self.service,
                address: &self.address,
                slot: taken.slot,
                buffer_bytes: self.buffer_bytes,
                bytes: &mut self.bytes,
            };
            self.handler.handle(operation, &mut exchange)
        });
        handled.unwrap_or_else(|(status, value)| {
            if status.is_misuse() {
                self.refused(status);
            }
            Some(refusal(status, value))
        })
    }

    /// Service, operation and buffer.
    fn check(&self, request: &Request) -> Result<Operation, Refusal> {
        self.service.admits(request.handle, request.check).map_err(|status| (status, 0))?;
        let operation = Operation::from_number(request.operation);
        let operation = operation.ok_or((Status::BadOperation, request.operation.into()))?;
        let number = request.buffer / self.buffer_bytes;
        let is_buffer = request.buffer.is_multiple_of(self.buffer_bytes) && number < self.buffers;
        if !is_buffer || request.bytes > self.buffer_bytes {
            return Err((Status::BadBuffer, request.buffer.into()));
        }
        Ok(operation)
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
