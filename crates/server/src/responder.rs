//! A service of bytes in, bytes out: what it must be, and how it is asked.
//!
//! Promise: the responder sees numbers that a client may use, requests that were copied once, and
//! the requests of one client one after another.
//! Never: knows what the bytes mean, or remembers an answer; the responder does both.

use std::io;
use std::sync::Arc;

use holdfast_client::protocol::{ClientId, Operation, Status, WINDOW};
use holdfast_memory::queue::Response;

use crate::handler::{Departure, Exchange, Handler, Refusal, done, errno_of};
use crate::presence::Presence;
use crate::waiting::Address;
use crate::words;

/// What answers requests, with all its state in durable memory or on disk.
///
/// It is called by several threads at once, but for one client by one at a time.
pub trait Responder: Send + Sync {
    /// Does the request numbered `sequence` of `client` once, however often it is asked, and puts
    /// what it answered the first time into `answer`, which is empty: at most
    /// [`PAYLOAD_BYTES_MAX`](holdfast_client::protocol::PAYLOAD_BYTES_MAX) bytes.
    ///
    /// `oldest` is the client's oldest number without an answer when it asked first: what is
    /// remembered of lower ones can be forgotten. Numbers begin at 1 and may come in any order;
    /// `sequence` is never below `oldest`, nor 1024 above it.
    ///
    /// # Errors
    /// See [`RespondError`].
    fn respond(
        &self,
        client: u64,
        sequence: u64,
        oldest: u64,
        request: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), RespondError>;

    /// A client that may have asked something is gone. A server that ends tells of none, and of a
    /// client that is gone before the next one serves nobody is told.
    fn departed(&self, client: u64, departure: Departure);
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RespondError {
    /// The bytes are no request. Nothing was done. The client is at fault: it is counted.
    #[error("the bytes are no request")]
    Malformed,
    /// The number is below one that the client said it has the answer to. Nothing was done. The
    /// client is at fault.
    #[error("the client said that it has the answer already")]
    Forgotten,
    /// What keeps the state failed, and stays so until somebody saw to it. Whether the request was
    /// done is not known.
    #[error("what keeps the state failed: {0}")]
    Failed(#[source] io::Error),
}

/// One session with a responder.
pub(crate) struct ResponderHandler {
    responder: Arc<dyn Responder>,
    client: u64,
    _presence: Presence,
}

impl ResponderHandler {
    pub(crate) fn new(
        responder: Arc<dyn Responder>,
        ClientId(client): ClientId,
        presence: Presence,
    ) -> ResponderHandler {
        // Half of a number drawn at random is as good a name, and fits a field.
        let client = u64::from_le_bytes(*client.first_chunk().expect("8 of 16 bytes"));
        ResponderHandler { responder, client, _presence: presence }
    }
}

impl Handler for ResponderHandler {
    fn handle(
        &mut self,
        operation: Operation,
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Response>, Refusal> {
        if operation != Operation::Respond {
            return Err((Status::BadOperation, operation as u64));
        }
        let (sequence, oldest) = (exchange.request.sequence, exchange.request.argument[0]);
        let is_in_window =
            oldest > 0 && (oldest..oldest.saturating_add(WINDOW)).contains(&sequence);
        if !is_in_window {
            return Err((Status::BadSequence, sequence));
        }
        exchange.copy_payload();
        let (request, mut answer) = (&exchange.bytes.payload, Vec::new());
        let responded = self.responder.respond(self.client, sequence, oldest, request, &mut answer);
        responded.map_err(refusal_of)?;
        exchange.words.count(words::REQUESTS);
        exchange.bring(&answer).map(|bytes| Some(Response { bytes, ..done([0; 2]) }))
    }

    /// The next session of the client cannot begin before this one's presence has ended.
    fn end(&mut self, _: &Arc<Address>, departure: Option<Departure>) {
        departure.into_iter().for_each(|how| self.responder.departed(self.client, how));
    }
}

fn refusal_of(error: RespondError) -> Refusal {
    match error {
        RespondError::Malformed => (Status::Malformed, 0),
        RespondError::Forgotten => (Status::BadSequence, 0),
        RespondError::Failed(error) => (Status::Failed, errno_of(&error)),
    }
}
