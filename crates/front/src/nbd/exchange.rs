//! One connection's conversation, from the greeting to the last request, as bytes in and bytes out.
//!
//! Promise: whatever the input is, a step uses some of it, asks for more of it, or ends; an end is
//! this connection's alone. Between two steps the conversation is a few values, which another
//! process can go on from.
//! Never: knows a socket, waits, or panics over what a client sent.

use holdfast_io::{Blocks, BlocksError, Receiving, SendError, Sending};

use super::agreed::{Agreed, Security, Stage};
use super::buffers::Replies;
use super::export::Export;
use super::negotiate::Negotiation;
use super::payload::Payload;
use super::serve::Transmission;
use super::step::Step;
use crate::complaints::Complaints;

/// A conversation with one client.
pub struct Exchange<'e> {
    part: Part<'e>,
    complaints: Complaints,
}

enum Part<'e> {
    Negotiation(Negotiation<'e>),
    Transmission(Transmission<'e>),
}

impl<'e> Exchange<'e> {
    /// The server's side of a new connection. `client` names the other side in log lines.
    pub fn new(exports: &'e [Export<'e>], client: String) -> Self {
        let part = Part::Negotiation(Negotiation::new(exports));
        Self { part, complaints: Complaints::alone("NBD", client) }
    }

    /// Has the client start TLS before anything else; false if it is beyond that.
    pub fn require_tls(&mut self) -> bool {
        match &mut self.part {
            Part::Negotiation(negotiation) => {
                negotiation.security = Security::Wanted;
                true
            }
            Part::Transmission(_) => false,
        }
    }

    /// Takes the next message, or the next piece of it, from the start of `input`.
    pub fn step(&mut self, input: &[u8], out: &mut Replies) -> Step {
        match &mut self.part {
            Part::Transmission(transmission) => transmission.step(input, out, &mut self.complaints),
            Part::Negotiation(negotiation) => {
                let step = negotiation.step(input, out, &mut self.complaints);
                if let Some((export, agreed)) = negotiation.result() {
                    self.part = Part::Transmission(Transmission::new(export, agreed));
                }
                step
            }
        }
    }

    /// Answers a request that waited for a flush, which came to `flushed`.
    pub fn flushed(&mut self, cookie: u64, flushed: Result<(), &BlocksError>, out: &mut Replies) {
        if let Part::Transmission(transmission) = &self.part {
            transmission.flushed(cookie, flushed, out, &mut self.complaints);
        }
    }

    /// The disk that the client chose, once it has.
    pub fn blocks(&self) -> Option<&'e dyn Blocks> {
        match &self.part {
            Part::Transmission(transmission) => Some(transmission.export.blocks),
            Part::Negotiation(_) => None,
        }
    }

    /// Whether part of a message was used, and the rest is awaited.
    pub(crate) fn is_inside_message(&self) -> bool {
        match &self.part {
            Part::Transmission(transmission) => transmission.payload.is_some(),
            Part::Negotiation(negotiation) => negotiation.skip_bytes > 0,
        }
    }

    /// Writes a fault of the client to the log.
    pub(crate) fn complain(&mut self, what: impl std::fmt::Display) {
        self.complaints.say(what);
    }

    /// Puts what a read still has to send; nothing may come in between.
    pub(crate) fn finish_reading(&mut self, out: &mut Replies) {
        if let Part::Transmission(transmission) = &mut self.part {
            while transmission.go_on_reading(out, &mut self.complaints) {}
        }
    }

    /// Has the disk send what it can of a long read behind all that `out` has, by `send`, whose
    /// result counts all bytes that were sent. `None` if there is nothing that it could send.
    pub fn send_read(
        &mut self,
        out: &mut Replies,
        send: impl FnOnce(&dyn Blocks, &Sending<'_>) -> Result<usize, SendError>,
    ) -> Option<Result<(), SendError>> {
        match &mut self.part {
            Part::Transmission(transmission) => transmission.send_read(out, send),
            Part::Negotiation(_) => None,
        }
    }

    /// Room for the bytes of a write that the last step needs, where the disk will have them.
    pub fn receive(&self) -> Option<Box<dyn Receiving + 'e>> {
        match &self.part {
            Part::Transmission(transmission) => transmission.receive(),
            Part::Negotiation(_) => None,
        }
    }

    /// Goes on after so many bytes were received there, and came to `written`. None of the input is
    /// used by it.
    ///
    /// # Panics
    /// If there was no room.
    pub fn received(
        &mut self,
        bytes: usize,
        written: Result<(), BlocksError>,
        out: &mut Replies,
    ) -> Step {
        let Part::Transmission(transmission) = &mut self.part else { panic!("there was no room") };
        match transmission.received(bytes, written, out, &mut self.complaints) {
            Step::Flush { cookie, .. } => Step::Flush { used: 0, cookie },
            _ => Step::Used(0),
        }
    }

    /// Where the conversation stands; no read may be under way.
    pub(crate) fn state(&self) -> State {
        match &self.part {
            Part::Negotiation(negotiation) => State::Negotiation {
                stage: negotiation.stage,
                no_zeroes: negotiation.no_zeroes,
                structured: negotiation.structured,
                context: negotiation.context.map(|export| export.name.to_owned()),
                skip_bytes: negotiation.skip_bytes,
            },
            Part::Transmission(transmission) => State::Transmission {
                export: transmission.export.name.to_owned(),
                size_bytes: transmission.size_bytes,
                read_only: transmission.export.read_only,
                agreed: transmission.agreed,
                payload: transmission.payload,
            },
        }
    }

    /// Goes on where another exchange stood. `None`: the client was promised an export that is not
    /// here, or not as it was.
    pub(crate) fn resume(
        state: &State,
        exports: &'e [Export<'e>],
        complaints: Complaints,
    ) -> Option<Exchange<'e>> {
        let find = |name: &str| exports.iter().find(|export| export.name == name);
        let part = match state {
            State::Negotiation { stage, no_zeroes, structured, context, skip_bytes } => {
                let mut negotiation = Negotiation::new(exports);
                negotiation.stage = *stage;
                negotiation.no_zeroes = *no_zeroes;
                negotiation.structured = *structured;
                negotiation.context = context.as_deref().and_then(find);
                negotiation.skip_bytes = *skip_bytes;
                Part::Negotiation(negotiation)
            }
            State::Transmission { export, size_bytes, read_only, agreed, payload } => {
                let mut transmission = Transmission::new(find(export)?, *agreed);
                let is_same = transmission.size_bytes == *size_bytes
                    && transmission.export.read_only == *read_only
                    && payload.is_none_or(|payload| payload.fits(*size_bytes));
                transmission.payload = *payload;
                Part::Transmission(is_same.then_some(transmission)?)
            }
        };
        Some(Self { part, complaints })
    }
}

/// Where a conversation stands, between two steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Before the first request.
    Negotiation {
        stage: Stage,
        no_zeroes: bool,
        structured: bool,
        /// The export whose allocation was selected.
        context: Option<String>,
        skip_bytes: u32,
    },
    /// At a request, or inside a long write.
    Transmission {
        export: String,
        /// What the client was told of the export.
        size_bytes: u64,
        read_only: bool,
        agreed: Agreed,
        payload: Option<Payload>,
    },
}
