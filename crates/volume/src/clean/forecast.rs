//! Where the windows to come will end, as far as names end them.
//!
//! A change of a name that does not go with those before it ends a window, and each window costs
//! the home some syncs, however few bytes it has. Which changes those are depends on all that the
//! window has seen, and on where it began. So nothing is guessed from what is asked for: the plan
//! itself is made as the frames are logged, and says what a change will be.
//!
//! Promise: as long as the cleaner's windows end where it is told of, each of them that a change of
//! names ends, and each barrier, was work of whoever made that change.
//! Never: knows what a file holds.

mod expect;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_io::tree::NodeId;
use holdfast_log::Lsn;

use super::frames::WindowMax;
use super::plan::{BARRIER_WORK_BYTES, Window};
use crate::record::Record;

/// What it counts as that a window ends, which is five syncs and more: as much as an exchange.
const WINDOW_WORK_BYTES: u64 = 1 << 20;

/// The plan of the windows to come, for whoever logs.
#[derive(Default)]
pub(crate) struct Forecast(Mutex<Outline>);

/// The last window to come, and where those before it end.
#[derive(Default)]
struct Outline {
    window: Window,
    begins: Lsn,
    /// Ends of windows that are not home yet.
    ends: VecDeque<End>,
    /// Where a name changed last.
    last_name: Option<Lsn>,
    tells_inodes: bool,
    max: WindowMax,
}

/// Where a window ends.
#[derive(Clone, Copy)]
struct End {
    at: Lsn,
    /// It takes no more. Whoever filled it has paid for its syncs with the room that it took.
    is_full: bool,
}

impl Forecast {
    pub(crate) fn new(tells_inodes: bool, max: WindowMax) -> Forecast {
        Forecast(Mutex::new(Outline { tells_inodes, max, ..Outline::default() }))
    }

    fn outline(&self) -> MutexGuard<'_, Outline> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work for the home that a frame would be, were it logged now, beyond what is in it.
    pub(crate) fn work_bytes(&self, records: &[(Record<'_>, Lsn)]) -> u64 {
        let outline = self.outline();
        match outline.window.ends_before(records) {
            true => WINDOW_WORK_BYTES,
            false if outline.window.may_part(records) => BARRIER_WORK_BYTES,
            false => 0,
        }
    }

    /// The frame was logged. Returns what work it is. The caller has the lock that orders its
    /// effects.
    pub(crate) fn take(&self, lsn: Lsn, records: &[(Record<'_>, Lsn)]) -> u64 {
        self.outline().take(lsn, records)
    }

    /// A frame about what a node has was logged.
    pub(crate) fn know(&self, lsn: Lsn, node: NodeId, path: &[u8]) {
        let mut outline = self.outline();
        outline.end_if_full(lsn);
        outline.window.know(node, path);
    }
}

impl Outline {
    fn take(&mut self, lsn: Lsn, records: &[(Record<'_>, Lsn)]) -> u64 {
        self.end_if_full(lsn);
        let barriers = self.window.barriers;
        let work_bytes = |barriers| barriers * BARRIER_WORK_BYTES;
        if records.iter().any(|(record, _)| record.changes_names()) {
            self.last_name = Some(lsn);
        }
        if self.window.take(lsn, records, &[]) {
            return work_bytes(self.window.barriers - barriers);
        }
        self.end(lsn, false);
        self.window.take(lsn, records, &[]);
        WINDOW_WORK_BYTES + work_bytes(self.window.barriers)
    }

    fn end_if_full(&mut self, lsn: Lsn) {
        if self.max.is_reached(&self.window, self.begins, lsn) {
            self.end(lsn, true);
        }
    }

    fn end(&mut self, at: Lsn, is_full: bool) {
        self.ends.push_back(End { at, is_full });
        self.begin(at);
    }

    fn begin(&mut self, lsn: Lsn) {
        self.begins = lsn;
        self.window = Window::outline(self.tells_inodes);
    }

    /// A plan that begins at `lsn`.
    fn beginning(&self, lsn: Lsn) -> Outline {
        let (tells_inodes, max) = (self.tells_inodes, self.max);
        let mut outline = Outline { tells_inodes, max, ..Outline::default() };
        outline.begin(lsn);
        outline
    }

    fn ends_at(&self, lsn: Lsn) -> bool {
        self.ends.binary_search_by_key(&lsn, |end| end.at).is_ok()
    }

    /// What to read the log into if the windows behind one that ends at `upto` are to be told of
    /// anew: nobody has expected that end, and names have changed since.
    fn begins_anew_at(&mut self, upto: Lsn) -> Option<Outline> {
        while self.ends.pop_front_if(|end| end.at < upto).is_some() {}
        if self.begins == upto || self.ends_at(upto) {
            return None;
        }
        let outline = self.beginning(upto);
        if self.last_name.is_some_and(|last| last >= upto) {
            return Some(outline);
        }
        *self = outline;
        None
    }
}
