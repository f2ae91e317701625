//! Whose blocks a cache holds, and whether the home may have been changed since without it.
//!
//! Promise: a cache is warm for the home that it was used with, if its last user died or the home
//! is as that user left it; for any other it is empty.
//! Never: notices who changes a home that is in use, or that was when its user died.
//!
//! Byte table: FORMAT.md, "Home of a cache".

use holdfast_io::checksum::crc32c;
use holdfast_io::{Kind, Metadata};

use super::Cache;
use crate::memory::Memory;

/// Where the record lies: state and check, then the numbers.
const HOME_AT: u64 = 512;
const NUMBERS_AT: u64 = HOME_AT + 8;

/// The cache is used with the home, or was until its user died.
const OPEN: u32 = 1;

/// Its user has left, and the home was so.
const CLOSED: u32 = 2;

/// What tells one home, and one state of it, from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    /// Inode, size, times of change of contents and of the inode.
    numbers: [u64; 4],
    /// Whether the times say when it was changed. Those of a device do not.
    tells_changes: bool,
}

impl Home {
    pub(crate) fn of(metadata: &Metadata) -> Home {
        let Metadata { inode, size_bytes, modified_ns, changed_ns, .. } = *metadata;
        let times = [modified_ns, changed_ns].map(i64::cast_unsigned);
        let numbers = [inode, size_bytes, times[0], times[1]];
        Home { numbers, tells_changes: metadata.kind == Kind::File }
    }

    fn inode(&self) -> u64 {
        self.numbers[0]
    }
}

impl<M: Memory> Cache<M> {
    /// Begins to be used with a home. Empty, unless all that is here is that home's.
    pub(crate) fn begin(&self, home: &Home) {
        let (state, numbers) = self.known_home().unwrap_or_default();
        let is_same = numbers[0] == home.inode();
        let is_warm = match state {
            OPEN => is_same,
            CLOSED => home.tells_changes && numbers == home.numbers,
            _ => false,
        };
        if !is_warm {
            self.empty();
        }
        if !(state == OPEN && is_same) {
            self.note_home(OPEN, &home.numbers);
        }
    }

    /// Ends being used: others may change the home from here on, which is so now.
    pub(crate) fn end(&self, home: &Home) {
        self.note_home(CLOSED, &home.numbers);
    }

    /// State and numbers, if they are whole.
    fn known_home(&self) -> Option<(u32, [u64; 4])> {
        let head = self.memory().load(HOME_AT);
        let numbers = std::array::from_fn(|at| self.memory().load(NUMBERS_AT + 8 * at as u64));
        (head == self.head(head as u32, &numbers)).then_some((head as u32, numbers))
    }

    /// A death half-way leaves a check that is wrong: the cache begins empty then.
    fn note_home(&self, state: u32, numbers: &[u64; 4]) {
        for (at, number) in (NUMBERS_AT..).step_by(8).zip(numbers) {
            self.memory().store(at, *number);
        }
        self.memory().store(HOME_AT, self.head(state, numbers));
        self.memory().persist(HOME_AT, 40);
    }

    fn head(&self, state: u32, numbers: &[u64; 4]) -> u64 {
        let start = crc32c(self.seed, &state.to_le_bytes());
        let check = numbers.iter().fold(start, |sum, word| crc32c(sum, &word.to_le_bytes()));
        u64::from(state) | u64::from(check) << 32
    }
}
