//! All records of a store as one: those in the archive, and those that are not there yet.
//!
//! Promise: no record is in between the two.
//! Never: says what a record does.

use crate::archive::Archive;
use crate::record::Record;
use crate::rsn::{PageNumber, Rsn};

/// Records that are in memory, from some place on.
pub trait FreshRecords {
    /// Where the first of them stands; what is before it is archived.
    fn first(&self) -> Rsn;

    /// The record that stands at `rsn`, and its bytes; none if no record stands there.
    fn record(&self, rsn: Rsn) -> Option<(Record<'_>, &[u8])>;

    /// Where the newest record of a page stands, if there is one here. May look at all of them.
    fn newest_of(&self, page: PageNumber) -> Option<Rsn>;
}

/// All records, as of some moment.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Those that are archived.
    pub archive: &'a Archive,
    /// The others.
    pub fresh: &'a dyn FreshRecords,
}

impl std::fmt::Debug for View<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = out.debug_struct("View");
        out.field("archive", self.archive).field("fresh", &self.fresh.first());
        out.finish_non_exhaustive()
    }
}
