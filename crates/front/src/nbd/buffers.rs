//! Bytes that were received and not used yet, and bytes that are to be sent.
//!
//! Promise: what is put in comes out once, in order; memory is taken before a connection's first
//! request, and more only for a single message that is longer.
//! Never: knows what the bytes mean, or a socket.

use std::ops::Range;

/// Room for what is received: some dozens of small writes, or a few long ones.
const RECEIVED_BYTES: usize = 256 << 10;

/// Room for replies: what is sent at once, and one read of a mebibyte behind it.
const REPLIES_BYTES: usize = (1 << 20) + (320 << 10);

/// What remains to be received of a message is fetched exactly, from so many bytes on, so that its
/// successor starts at the front of the buffer and does not have to be moved there.
const EXACT_BYTES: usize = 64 << 10;

/// Bytes from the client.
pub(crate) struct Received {
    bytes: Vec<u8>,
    filled: Range<usize>,
    /// Only what is needed is received next: what follows it does not belong here.
    is_sparing: bool,
}

impl Received {
    pub(crate) fn new(unread: &[u8]) -> Received {
        let mut bytes = vec![0; RECEIVED_BYTES.max(unread.len())];
        bytes[..unread.len()].copy_from_slice(unread);
        Received { bytes, filled: 0..unread.len(), is_sparing: false }
    }

    /// What was received and is not used.
    pub(crate) fn unused(&self) -> &[u8] {
        &self.bytes[self.filled.clone()]
    }

    /// Leaves for another place what comes behind the next message's head.
    pub(crate) fn be_sparing(&mut self) {
        self.is_sparing = true;
    }

    /// Takes what was received elsewhere; nothing is unused.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.add(bytes.len());
    }

    /// The first `count` bytes were used.
    pub(crate) fn used(&mut self, count: usize) {
        self.filled.start += count;
        assert!(self.filled.start <= self.filled.end, "used what was not received");
    }

    /// Where to receive, if `needs` bytes in all are needed to go on.
    pub(crate) fn room(&mut self, needs: usize) -> &mut [u8] {
        assert!(needs > self.filled.len(), "there is nothing to wait for");
        if self.filled.is_empty() {
            self.filled = 0..0;
        }
        if self.bytes.len() - self.filled.start < needs {
            self.bytes.copy_within(self.filled.clone(), 0);
            self.filled = 0..self.filled.len();
        }
        if self.bytes.len() < needs {
            self.bytes.resize(needs, 0);
        }
        let end = self.filled.end;
        match self.is_exact(needs) || self.is_sparing {
            true => &mut self.bytes[end..end + needs - self.filled.len()],
            false => &mut self.bytes[end..],
        }
    }

    /// Whether [`Received::room`] has as much as is needed, and no more.
    pub(crate) fn is_exact(&self, needs: usize) -> bool {
        needs - self.filled.len() >= EXACT_BYTES
    }

    /// So many bytes were received into [`Received::room`].
    pub(crate) fn add(&mut self, count: usize) {
        self.is_sparing = false;
        self.filled.end += count;
        assert!(self.filled.end <= self.bytes.len(), "received more than there was room for");
    }
}

/// Bytes for the client.
pub struct Replies {
    bytes: Vec<u8>,
    filled: Range<usize>,
}

impl Default for Replies {
    fn default() -> Self {
        Self { bytes: vec![0; REPLIES_BYTES], filled: 0..0 }
    }
}

impl Replies {
    /// What is to be sent.
    pub fn unsent(&self) -> &[u8] {
        &self.bytes[self.filled.clone()]
    }

    /// The first `count` bytes were sent.
    pub fn sent(&mut self, count: usize) {
        self.filled.start += count;
        assert!(self.filled.start <= self.filled.end, "sent what there was not");
        if self.filled.is_empty() {
            self.filled = 0..0;
            self.bytes.truncate(REPLIES_BYTES);
            self.bytes.shrink_to_fit();
        }
    }

    /// Adds bytes.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.add(bytes.len()).copy_from_slice(bytes);
    }

    /// Adds `count` bytes of any content, to be filled.
    pub(crate) fn add(&mut self, count: usize) -> &mut [u8] {
        let start = self.filled.end;
        self.filled.end += count;
        if self.bytes.len() < self.filled.end {
            self.bytes.resize(self.filled.end, 0);
        }
        &mut self.bytes[start..self.filled.end]
    }

    /// Where the next byte goes, for [`Replies::take_back`].
    pub(crate) fn end(&self) -> usize {
        self.filled.end
    }

    /// Takes back what was added since `end`; nothing of it was sent.
    pub(crate) fn take_back(&mut self, end: usize) {
        assert!(self.filled.contains(&end) || self.filled.end == end, "taken back what was sent");
        self.filled.end = end;
    }
}
