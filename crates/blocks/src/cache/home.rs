//! Whose blocks a cache holds, and whether the home may have been changed since without it.
//!
//! Promise: a cache is warm for the home that it was used with, if its last user died and who comes
//! next has that one's pledge, or if the home is as that user left it; for any other it is empty.
//! Never: notices who changes a home that is in use, or that was when its user died, and leaves the
//! pledge alone.
//!
//! Byte table: FORMAT.md, "Home of a cache".

use holdfast_io::checksum::crc32c;
use holdfast_io::{Kind, Metadata};

use super::Cache;
use crate::memory::Memory;

/// Where the record lies: state and check, then the numbers.
const HOME_AT: u64 = 512;
const NUMBERS_AT: u64 = HOME_AT + 8;
const HOME_BYTES: u64 = 8 + size_of::<Numbers>() as u64;

/// The cache is used with the home, or was until its user died.
const OPEN: u32 = 1;

/// Its user has left, and the home was so.
const CLOSED: u32 = 2;

/// Inode, size, times of change of contents and of the inode, pledge.
type Numbers = [u64; 5];

/// What tells one home, and one state of it, from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    numbers: Numbers,
    /// Whether the times say when it was changed. Those of a device do not.
    tells_changes: bool,
}

impl Home {
    pub(crate) fn of(metadata: &Metadata, pledge: u64) -> Home {
        let Metadata { inode, size_bytes, modified_ns, changed_ns, .. } = *metadata;
        // Two times are compared: what they have in common with others behind 2554 does not matter.
        let times = [modified_ns, changed_ns].map(|time_ns| time_ns as u64);
        let numbers = [inode, size_bytes, times[0], times[1], pledge];
        // A device may be described as a file of its size.
        let is_file = metadata.kind == Kind::File && metadata.rdev == 0;
        Home { numbers, tells_changes: is_file }
    }
}

/// Whether a home that was in use is the same, and was used through this cache alone.
fn is_same_use(one: &Numbers, other: &Numbers) -> bool {
    (one[0], one[4]) == (other[0], other[4])
}

/// Whether a home that was closed is the same, and has not changed.
fn is_same_state(one: &Numbers, other: &Numbers) -> bool {
    one[..4] == other[..4]
}

impl<M: Memory> Cache<M> {
    /// Begins to be used with a home. Empty, unless all that is here is that home's.
    pub(crate) fn begin(&self, home: &Home) {
        let (state, numbers) = self.known_home().unwrap_or_default();
        let goes_on = state == OPEN && is_same_use(&numbers, &home.numbers);
        let is_unchanged =
            state == CLOSED && home.tells_changes && is_same_state(&numbers, &home.numbers);
        if !goes_on && !is_unchanged {
            self.empty();
        }
        if !goes_on {
            self.note_home(OPEN, &home.numbers);
        }
    }

    /// Ends being used: others may change the home from here on, which is so now.
    pub(crate) fn end(&self, home: &Home) {
        self.note_home(CLOSED, &home.numbers);
    }

    /// State and numbers, if they are whole.
    fn known_home(&self) -> Option<(u32, Numbers)> {
        let head = self.memory().load(HOME_AT);
        let numbers = std::array::from_fn(|at| self.memory().load(NUMBERS_AT + 8 * at as u64));
        (head == self.head(head as u32, &numbers)).then_some((head as u32, numbers))
    }

    /// A death half-way leaves a check that is wrong: the cache begins empty then.
    fn note_home(&self, state: u32, numbers: &Numbers) {
        for (at, number) in (NUMBERS_AT..).step_by(8).zip(numbers) {
            self.memory().store(at, *number);
        }
        self.memory().store(HOME_AT, self.head(state, numbers));
        self.memory().persist(HOME_AT, HOME_BYTES);
    }

    fn head(&self, state: u32, numbers: &Numbers) -> u64 {
        let start = crc32c(self.seed, &state.to_le_bytes());
        let check = numbers.iter().fold(start, |sum, word| crc32c(sum, &word.to_le_bytes()));
        u64::from(state) | u64::from(check) << 32
    }
}
