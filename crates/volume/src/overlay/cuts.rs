//! How far a home file counts while cuts of it wait in the log.
//!
//! A file that was cut short and grew again has zeros behind the cut, whatever the home still has
//! there. Each cut counts until the home has it; several may wait, and the shortest tells.
//!
//! Promise: what is behind [`Cuts::valid_bytes`] and in no extent is zero.
//! Never: knows the file's size.

use holdfast_log::Lsn;

/// The cuts that the home does not have, oldest first. Sizes rise: a later cut that is as short
/// makes the earlier ones meaningless.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cuts {
    waiting: Vec<(Lsn, u64)>,
}

impl Cuts {
    /// The record at `at` cut the file to `size_bytes`.
    pub(crate) fn cut(&mut self, size_bytes: u64, at: Lsn) {
        self.waiting.retain(|(_, other)| *other < size_bytes);
        self.waiting.push((at, size_bytes));
    }

    /// The home has everything below `upto`.
    pub(crate) fn applied(&mut self, upto: Lsn) {
        self.waiting.retain(|(at, _)| *at >= upto);
    }

    /// What the home file holds below this counts.
    pub(crate) fn valid_bytes(&self) -> u64 {
        self.waiting.first().map_or(u64::MAX, |(_, size_bytes)| *size_bytes)
    }
}

#[cfg(test)]
mod tests;
