//! One request to a service, and where the bytes of its answer go.
//!
//! Promise: a request means the same on every connection; an answer never writes past a place whose
//! length is fixed.
//! Never: knows a connection, or repeats a request.

use holdfast_memory::queue::Request;

use crate::protocol::{Operation, Reply};

/// One request as its caller means it, whatever connection it goes over.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) operation: Operation,
    pub(crate) count: u16,
    /// What goes into the buffer.
    pub(crate) parts: &'a [&'a [u8]],
    /// Bytes asked for, where nothing goes in.
    pub(crate) bytes: u32,
    pub(crate) argument: [u64; 2],
    pub(crate) sequence: u64,
}

/// Where the bytes of an answer go.
#[derive(Debug)]
pub(crate) enum ResponseTarget<'a> {
    /// None are wanted.
    Nowhere,
    /// All of them.
    Vector(&'a mut Vec<u8>),
    /// As many as it has room for.
    Slice(&'a mut [u8]),
}

impl ResponseTarget<'_> {
    /// Where to copy an answer of so many bytes.
    pub(crate) fn place(&mut self, bytes: usize) -> &mut [u8] {
        match self {
            ResponseTarget::Nowhere => &mut [],
            ResponseTarget::Vector(vector) => {
                vector.resize(bytes, 0);
                vector
            }
            ResponseTarget::Slice(slice) => {
                let bytes = bytes.min(slice.len());
                &mut slice[..bytes]
            }
        }
    }
}

impl<'a> Call<'a> {
    pub(crate) fn new(operation: Operation, argument: [u64; 2]) -> Call<'a> {
        Call { operation, count: 0, parts: &[], bytes: 0, argument, sequence: 0 }
    }

    /// As it goes over a connection; the buffer is the connection's to choose.
    pub(crate) fn request(&self, reply: &Reply) -> Request {
        let bytes: usize = self.parts.iter().map(|part| part.len()).sum();
        Request {
            sequence: self.sequence,
            handle: reply.handle,
            check: reply.check,
            operation: self.operation as u16,
            count: self.count,
            buffer: 0,
            bytes: self.bytes.max(bytes as u32),
            argument: self.argument,
        }
    }
}
