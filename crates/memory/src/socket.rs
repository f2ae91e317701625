//! An area's bytes, sent from where they are, and received where they are to be.
//!
//! Promise: what is sent are the pieces, in order, as far as the socket takes them at once; what is
//! received fills the places, in order.
//! Never: waits, or makes a reference to bytes that others may change.

#[allow(unsafe_code)]
mod raw;

use std::io;
use std::ops::Range;
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

    /// Receives into places of the area, in order and as far as the socket has something without
    /// waiting. Returns how many bytes came; none means that no more will. Whoever dies meanwhile
    /// leaves some old and some new. Whoever receives calls [`Area::persist`].
    ///
    /// # Errors
    /// What `recvmsg(2)` says; nothing came.
    ///
    /// # Panics
    /// If a place is not in the area.
    pub fn receive(&self, socket: BorrowedFd<'_>, places: &[Range<u64>]) -> io::Result<usize> {
        let place = |place: &Range<u64>| {
            let bytes = place.end - place.start;
            (self.offset(place.start, bytes), bytes as usize)
        };
        let places: Vec<(u64, usize)> = places.iter().map(place).collect();
        raw::receive(socket, self.region.mapping(), &places)
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
