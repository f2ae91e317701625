//! What a store has done since it was opened, and what it has put off, in numbers.
//!
//! Promise: each number was right at some moment of the call; no counter goes back.
//! Never: takes a latch, or waits for a lock of a transaction.

use crate::face::services::Work;
use crate::pool::counts::{LockStatistics, PoolStatistics};
use crate::store::Store;

/// What a store does, and what is left to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Of pages in memory.
    pub pool: PoolStatistics,
    /// Of locks.
    pub locks: LockStatistics,
    /// Bytes of the log that it would get back if everything were archived: what a restart reads is
    /// not more.
    pub unarchived_log_bytes: u64,
    /// Bytes of records that the page file may lack.
    pub uncleaned_bytes: u64,
    /// Pages that were brought into memory without a look at the disk: all they need was there.
    pub elided_reads: u64,
    /// Pages that were written to the page file, each as often as it was.
    pub written_pages: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Bytes of the archive that are in runs which no merge has taken yet.
    pub merge_debt_bytes: u64,
}

impl Store {
    /// What the store has done since it was opened, and what is left to do. [`Store::stat`] tells
    /// where it is.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics::of(&self.work)
    }
}

impl Statistics {
    fn of(Work { engine, log }: &Work) -> Statistics {
        let (archive, marks) = (engine.pages.runs(), log.marks());
        let bytes = |is_wanted: fn(u16) -> bool| {
            let runs = archive.runs().iter().filter(|run| is_wanted(run.span().level));
            runs.map(|run| run.bytes()).sum()
        };
        // Others put, archive and clean between the two looks.
        let (cleaned, next) = (engine.pages.cleaned(), engine.stream().next());
        Statistics {
            pool: engine.pool.statistics(),
            locks: engine.locks.statistics(),
            unarchived_log_bytes: marks.tail.get().saturating_sub(marks.released.get()),
            uncleaned_bytes: next.checked_since(cleaned).unwrap_or(0),
            elided_reads: engine.pages.elided(),
            written_pages: engine.pages.written(),
            archive_bytes: bytes(|_| true),
            merge_debt_bytes: bytes(|level| level == 0),
        }
    }
}
