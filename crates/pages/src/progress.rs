//! How far something is that takes long.
//!
//! Promise: what is told never goes back.
//! Never: decides what is counted.

/// How far something is that takes long, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// So many are done.
    pub done_bytes: u64,
    /// Of so many.
    pub total_bytes: u64,
}

impl Progress {
    /// Tells that so many bytes more are done.
    pub(crate) fn advance(&mut self, bytes: u64, tell: &mut dyn FnMut(Progress)) {
        self.done_bytes += bytes;
        tell(*self);
    }
}
