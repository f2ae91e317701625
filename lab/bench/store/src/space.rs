//! What rows that came and went leave behind.
//!
//! Promise: each store keeps a queue and a table whose rows turn over, and at the end the rows that
//! are there are counted; what its folder takes then is compared with the folder of a new store
//! that got those rows and nothing else, both closed. Looking for the head of the queue is timed
//! while it moves.
//! Never: counts what a folder would take if it were copied: what is allocated counts.

use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use holdfast_bench_common::place::Place;
use holdfast_bench_common::random::mixed;
use holdfast_figures::percentile;

use crate::Failure;
use crate::effort::Effort;
use crate::peers::{Durability, Kind, Peer, Terms};
use crate::rates;
use crate::tpcb::Table;

/// Rows that the queue has, always.
const QUEUED: u64 = 1_000;
/// Rows that come, and as many that go, in one transaction.
const BATCH: u64 = 100;
/// One row of so many stays in the end.
const STAYS: u64 = 10;
/// The table whose rows come and go.
const TABLE: Table = Table::Accounts;
/// Bytes of what a file's allocation is told in.
const BLOCK_BYTES: u64 = 512;

/// What a store came to.
pub(crate) struct Outcome {
    pub(crate) queue: Size,
    pub(crate) churn: Size,
    /// The median of looks for the head of the queue.
    pub(crate) head_us: f64,
}

/// What a store takes.
pub(crate) struct Size {
    pub(crate) bytes: f64,
    /// Over that of a new one with the same rows.
    pub(crate) over_live: f64,
}

/// Measures one store.
pub(crate) fn measure(
    kind: &'static Kind,
    effort: &Effort,
    whole: &Place,
) -> Result<Outcome, Failure> {
    let mut heads_ns = Vec::new();
    let queue = size(kind, whole, QUEUED, |peer| queue(peer, effort.queued_rows, &mut heads_ns))?;
    let churn = size(kind, whole, effort.churned_rows / STAYS, |peer| {
        churn(peer, effort.churned_rows, effort.churns)
    })?;
    heads_ns.sort_unstable();
    Ok(Outcome { queue, churn, head_us: percentile(&heads_ns, 50) as f64 / 1000.0 })
}

/// What a store is told: others keep nothing of what was.
fn terms() -> Terms {
    Terms { keeps_past: false, ..rates::terms(Durability::Synced) }
}

/// What a store takes after some work that leaves so many rows.
fn size(
    kind: &'static Kind,
    whole: &Place,
    rows: u64,
    work: impl FnOnce(&dyn Peer) -> Result<(), Failure>,
) -> Result<Size, Failure> {
    let used = whole.folder("space-used")?;
    let peer = (kind.open)(used.path(), &terms())?;
    work(&*peer)?;
    let found = peer.total(TABLE)?.rows;
    if found != rows {
        return Err(format!("{found} rows are there instead of {rows}").into());
    }
    peer.close()?;
    let fresh = whole.folder("space-new")?;
    let peer = (kind.open)(fresh.path(), &terms())?;
    fill(&*peer, 0..rows)?;
    peer.close()?;
    let (bytes, fresh) = (allocated(used.path())? as f64, allocated(fresh.path())? as f64);
    Ok(Size { bytes, over_live: bytes / fresh })
}

fn fill(peer: &dyn Peer, ids: Range<u64>) -> Result<(), Failure> {
    let mut begins = ids.clone().step_by(BATCH as usize);
    begins.try_for_each(|begin| peer.fill(TABLE, begin..ids.end.min(begin + BATCH)))
}

/// A queue of as many rows as ever, through which so many go.
fn queue(peer: &dyn Peer, rows: u64, heads_ns: &mut Vec<u64>) -> Result<(), Failure> {
    fill(peer, 0..QUEUED)?;
    for begin in (0..rows).step_by(BATCH as usize) {
        peer.fill(TABLE, begin + QUEUED..begin + QUEUED + BATCH)?;
        let ids: Vec<u64> = (begin..begin + BATCH).collect();
        peer.take(TABLE, &ids)?;
        let began = Instant::now();
        let head = peer.head(TABLE)?;
        heads_ns.push(began.elapsed().as_nanos() as u64);
        if head != Some(begin + BATCH) {
            return Err(format!("the head is {head:?} after {begin}").into());
        }
    }
    Ok(())
}

/// All rows come in order and go in none, again and again; in the end some stay.
fn churn(peer: &dyn Peer, rows: u64, rounds: u64) -> Result<(), Failure> {
    for round in 1..=rounds {
        fill(peer, 0..rows)?;
        let stays = |id: &u64| round == rounds && id.is_multiple_of(STAYS);
        let mut going: Vec<u64> = (0..rows).filter(|id| !stays(id)).collect();
        going.sort_unstable_by_key(|id| mixed(id ^ round << 32));
        going.chunks(BATCH as usize).try_for_each(|ids| peer.take(TABLE, ids))?;
    }
    Ok(())
}

/// Bytes that the file system has given to all files of a folder, without those that go meanwhile.
pub(crate) fn allocated(folder: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = match entry.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            found => found?,
        };
        bytes += match metadata.is_dir() {
            true => allocated(&entry.path())?,
            false => metadata.blocks() * BLOCK_BYTES,
        };
    }
    Ok(bytes)
}
