//! How a store is doing, in numbers.
//!
//! Promise: each number was right at some moment of the call.
//! Never: takes a latch or a lock.

use holdfast_log::Marks;
use holdfast_pages::{Archive, FaultKind, Rsn};

use crate::face::services::Work;

/// How a store is doing. Its records move from mark to mark: `cleaned <= archived <= durable <=
/// stable <= next`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The page file has every record before this place.
    pub cleaned: Rsn,
    /// The archive has.
    pub archived: Rsn,
    /// The log's device is known to have.
    pub durable: Rsn,
    /// The log has.
    pub stable: Rsn,
    /// Where the next record will stand.
    pub next: Rsn,
    /// Where the log's own marks are.
    pub log: Marks,
    /// Pages, those included that are free again.
    pub pages: u64,
    /// Pages that are free again, and are used before there are more.
    pub free_pages: u64,
    /// Pages of large values that nobody shows any more and that are not free yet; they are soon.
    /// What snapshots show is not in this, but in `snapshot_bytes`.
    pub unfreed_pages: u64,
    /// Nodes of trees that became one with a neighbour since the store was opened.
    pub merged_nodes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Runs that those are in.
    pub archive_runs: u64,
    /// The store can be made again as it was at any moment from this place on, once the archive has
    /// that,
    pub kept_from: Rsn,
    /// and up to this one if runs are lost behind it. It is not behind `kept_from` where there is
    /// no such moment.
    pub kept_upto: Option<Rsn>,
    /// Transactions that are not rolled back yet, and that nobody runs any more.
    pub losers: usize,
    /// Snapshots that are not over.
    pub snapshots: usize,
    /// Bytes of what keys were that are kept for them, in memory and in pages.
    pub snapshot_bytes: u64,
    /// What was wrong with pages when they were read, how often. Each was rebuilt.
    pub faults: Vec<(FaultKind, u64)>,
    /// Pages that whoever cleans found to be damaged, and rebuilt.
    pub rebuilt_pages: u64,
    /// Pages that he found and could not rebuild.
    pub lost_pages: u64,
    /// Stretches of records that the archive has lost: from one on, before another. Pages that need
    /// them are refused by name.
    pub lost_records: Vec<(Rsn, Rsn)>,
    /// Whether pages of a page file that was lost are still missing.
    pub is_restoring: bool,
}

/// The moments that an archive has.
struct Kept {
    from: Rsn,
    upto: Option<Rsn>,
}

impl Kept {
    fn of(archive: &Archive) -> Kept {
        let begin = archive.begin().unwrap_or(Rsn::FIRST);
        let gap = archive.lost().next().map(|lost| lost.begin);
        let there = archive.runs().iter().take_while(|run| gap != Some(run.span().begin));
        let trimmed = there.filter(|run| run.is_trimmed()).last().map(|run| run.span().end);
        // Every moment is made from the first record on.
        let is_beginning_lost = begin > Rsn::FIRST;
        let upto = if is_beginning_lost { Some(Rsn::FIRST) } else { gap };
        Kept { from: trimmed.unwrap_or(begin), upto }
    }
}

impl Stat {
    pub(crate) fn of(work: &Work) -> Stat {
        let Work { engine, log } = work;
        let (pages, stream) = (&engine.pages, engine.stream());
        let count = |kind| (kind, pages.repairs().count(kind));
        let (next_page, free) = engine.numbers.unused();
        let archive = pages.runs();
        let runs = archive.runs();
        let kept = Kept::of(&archive);
        Stat {
            cleaned: pages.cleaned(),
            archived: pages.archived(),
            durable: stream.durable(),
            stable: stream.stable(),
            next: stream.next(),
            log: log.marks(),
            // Page 0 is none.
            pages: next_page.get() - 1,
            free_pages: free.len() as u64,
            unfreed_pages: engine.numbers.put_off_pages() + engine.formers.left_pages(),
            merged_nodes: engine.numbers.merged(),
            archive_bytes: runs.iter().map(|run| run.bytes()).sum(),
            archive_runs: runs.len() as u64,
            kept_from: kept.from,
            kept_upto: kept.upto,
            losers: engine.losers.slots().len(),
            snapshots: engine.formers.snapshots(),
            snapshot_bytes: engine.formers.bytes(),
            faults: FaultKind::ALL.map(count).to_vec(),
            rebuilt_pages: pages.rebuilt(),
            lost_pages: pages.lost(),
            lost_records: pages.lost_records().iter().map(|run| (run.begin, run.end)).collect(),
            is_restoring: pages.is_restoring(),
        }
    }
}
