//! An area's bytes, sent from where they are.
//!
//! Promise: what is sent are the pieces, in order, as far as the socket takes them at once.
//! Never: waits, or makes a reference to bytes that others may change.

#[allow(unsafe_code)]
mod raw;

use std::io;
use std::os::fd::BorrowedFd;

use crate::area::Area;
use raw::Span;

/// Something to be sent: see [`Area::send`].
#[derive(Clone, Copy, Debug)]
pub enum Piece<'b> {
    /// Bytes of the area.
    Held {
        /// Where they begin.
        at: u64,
        /// How many there are.
        bytes: usize,
    },
    /// Bytes from elsewhere.
    Other(&'b [u8]),
}

impl Area {
    /// Sends pieces to a socket, in order and as far as it takes them without waiting; returns how
    /// many bytes that were. Those that another thread writes meanwhile may be old or new.
    ///
    /// # Errors
    /// What `sendmsg(2)` says; nothing was sent.
    ///
    /// # Panics
    /// If a piece is not in the area.
    pub fn send(&self, socket: BorrowedFd<'_>, pieces: &[Piece<'_>]) -> io::Result<usize> {
        let spans: Vec<Span<'_>> = pieces.iter().map(|piece| self.span(piece)).collect();
        raw::send(socket, &spans)
    }

    fn span<'b>(&'b self, piece: &Piece<'b>) -> Span<'b> {
        match *piece {
            Piece::Held { at, bytes } => {
                Span::held(self.region.mapping(), self.offset(at, bytes as u64), bytes)
            }
            Piece::Other(bytes) => Span::of(bytes),
        }
    }
}
