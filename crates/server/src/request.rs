//! One request, looked at and handed to what does it.
//!
//! Promise: every field comes from a private copy and is checked before it is used.
//! Never: answers with bytes that another client put anywhere but into the service they share.

use holdfast_client::protocol::{Operation, Status};
use holdfast_memory::queue::{Request, Response, Taken};
use holdfast_peers::in_hand::{Doing, InHand};

use crate::handler::{Exchange, Refusal};
use crate::session::Session;
use crate::waiting::refusal;

impl Session {
    /// Does what is asked. None if it is answered later.
    pub(crate) fn carry_out(&mut self, taken: &Taken) -> Option<Response> {
        let _in_hand = InHand::take(Doing::Service);
        let request = &taken.request;
        let handled = self.check(request).and_then(|operation| {
            let mut exchange = Exchange {
                request,
                words: &*self.service.words,
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
