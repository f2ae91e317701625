//! Invariants that a test can switch off, to show that the others would notice.
//!
//! Promise: outside of tests everything here is a constant: each invariant holds, and nothing
//! happens at a point.
//! Never: is a choice of the product; the feature `canary` is for dev-dependencies alone.

/// What must hold, and what weakened code does instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Invariant {
    /// A page's entry in the stale table is looked up before the page is read; else after.
    LookupBeforeRead,
    /// A page is noted as stale before its frame is given away; else after.
    NotedBeforeEvicted,
    /// The page file is synced before it is said to be clean; else after.
    SyncedBeforeCleaned,
    /// A base is synced, is checked when it is read, and holds the log by the older of two; else it
    /// is neither, and the newer one does.
    BasesAreChecked,
    /// What losers changed is locked before anybody else comes; else not at all.
    LosersAreLocked,
    /// A window of the archive begins where the last one ended; else a frame later.
    WindowsTile,
    /// The log is kept from the least position that anybody needs; else from the greatest.
    ReleasedByTheLeast,
    /// Losers are undone before pages that no tree leads to are freed, and there is no other
    /// transaction; else whatever there is.
    NobodyNeedsWhatIsReclaimed,
    /// The archive of a store made from a backup has a copy of each page; else none of them.
    BackedUpPagesAreArchived,
    /// Half a page is only left out of a write if it was synced with what is there; else if it is
    /// there.
    LeftOutHalvesAreSynced,
    /// A page that is not written yet bounds how far all of them are said to be clean; else it does
    /// not.
    WhatWaitsIsNotClean,
    /// What a key was before it changed is kept for the snapshots that are older; else it is not.
    FormersAreNoted,
    /// The entry of a key that is deleted stays as long as a snapshot shows it; else as long as
    /// somebody has a lock on it.
    ShownKeysStay,
    /// A snapshot shows nothing that had not been committed where it stands; else whatever there
    /// was.
    SnapshotsUndoWhatRuns,
    /// The pages of a large value are not freed as long as a snapshot shows it; else at once.
    ShownValuesStay,
}

/// Where another thread could come between, at the worst moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Between the lookup of a page and its reading.
    Fetching,
    /// Between the two steps by which a page leaves its frame.
    Evicting,
}

#[cfg(not(feature = "canary"))]
mod fixed;
#[cfg(feature = "canary")]
mod switched;

#[cfg(not(feature = "canary"))]
pub use fixed::{at, holds};
#[cfg(feature = "canary")]
pub use switched::{Hooked, Off, at, holds, hook, switch_off};

#[cfg(all(test, feature = "canary"))]
mod tests;
