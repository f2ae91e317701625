//! Which pages a pass of the cleaner writes, and which wait for a later one.
//!
//! Promise: every page with a record in the older half of what is not clean is written, so that
//! each pass takes away that half at least; how far all pages are clean afterwards is bounded by
//! the oldest record of those that wait.
//! Never: reads a page, or lets one wait that was told to be written.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::archive::Archive;
use crate::archive::merged::Merged;
use crate::archive::run_format::NO_PAGE;
use crate::canary::{Invariant, holds};
use crate::stream::rsn::{PageNumber, Rsn};

/// Which pages are written once it is time to clean. Whatever waits is found in the archive by who
/// needs it, and is written once it is old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CleaningOrder {
    /// All of them, by their numbers: one walk through the page file, and nothing waits.
    #[default]
    EveryPage,
    /// Those whose oldest record is old. For comparison only.
    OldestFirst,
    /// The same, and those that have not changed of late. For comparison only.
    HottestLast,
    /// The same as the oldest, and those with more records than others. For comparison only.
    MostChanges,
    /// The same as the oldest, and their neighbours, which are written at one go with them. For
    /// comparison only.
    OldSegments,
}

impl CleaningOrder {
    /// All of them.
    pub const ALL: [CleaningOrder; 5] = [
        CleaningOrder::EveryPage,
        CleaningOrder::OldestFirst,
        CleaningOrder::HottestLast,
        CleaningOrder::MostChanges,
        CleaningOrder::OldSegments,
    ];
}

/// What a pass does.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Pages with records that it does not write.
    left_out: HashSet<PageNumber>,
    /// Every page has all records before this one when it is through.
    clean_to: Rsn,
}

/// What a plan is made of.
pub(crate) struct Ground<'a> {
    /// Every page has all records before this one already.
    pub(crate) from: Rsn,
    /// Where the archive ends.
    pub(crate) upto: Rsn,
    pub(crate) segment_pages: u64,
    /// What some pages have got to on the device although all others have not.
    pub(crate) ahead: &'a HashMap<PageNumber, Rsn>,
    /// Pages that are written whatever the order says.
    pub(crate) told: &'a BTreeSet<PageNumber>,
}

/// A page's records that not every page has.
#[derive(Clone, Copy, Debug)]
struct Chain {
    page: PageNumber,
    first: Rsn,
    last: Rsn,
    records: u64,
}

impl Plan {
    /// Everything is written.
    pub(crate) fn whole(upto: Rsn) -> Plan {
        Plan { left_out: HashSet::new(), clean_to: upto }
    }

    /// What this order says; everything is written if parts of the archive cannot be read.
    pub(crate) fn of(order: CleaningOrder, archive: &Archive, ground: &Ground<'_>) -> Plan {
        let chains = match order {
            CleaningOrder::EveryPage => None,
            _ => chains(archive, ground.from),
        };
        chains.map_or(Plan::whole(ground.upto), |chains| Plan::choose(order, ground, &chains))
    }

    fn choose(order: CleaningOrder, ground: &Ground<'_>, chains: &[Chain]) -> Plan {
        let choice = Choice::new(order, ground, chains);
        let mut plan = Plan::whole(ground.upto);
        for chain in chains.iter().filter(|chain| !ground.told.contains(&chain.page)) {
            let has_all = ground.ahead.get(&chain.page).is_some_and(|rsn| *rsn >= chain.last);
            if !has_all && choice.is_written(chain) {
                continue;
            }
            plan.left_out.insert(chain.page);
            if !has_all && holds(Invariant::WhatWaitsIsNotClean) {
                plan.clean_to = plan.clean_to.min(chain.first);
            }
        }
        plan
    }

    /// Every page has all records before this one when the pass is through.
    pub(crate) fn clean_to(&self) -> Rsn {
        self.clean_to
    }

    /// Whether the pass does not come to a page that has records.
    pub(crate) fn leaves_out(&self, page: PageNumber) -> bool {
        self.left_out.contains(&page)
    }
}

/// What a order goes by.
struct Choice {
    order: CleaningOrder,
    /// A first record before this one is old.
    old: Rsn,
    /// A last record from this one on is of late.
    late: Rsn,
    /// How many records a page has on an average.
    mean: u64,
    segment_pages: u64,
    /// Segments in which a page is old.
    old_segments: HashSet<u64>,
}

impl Choice {
    fn new(order: CleaningOrder, ground: &Ground<'_>, chains: &[Chain]) -> Choice {
        let bytes = ground.upto.since(ground.from);
        let old = ground.from.advance(bytes.div_ceil(2));
        let late = ground.from.advance(bytes - bytes / 4);
        let records: u64 = chains.iter().map(|chain| chain.records).sum();
        let mean = records / (chains.len() as u64).max(1);
        let segment_pages = ground.segment_pages;
        let olds = chains.iter().filter(|chain| chain.first < old);
        let old_segments = olds.map(|chain| chain.page.get() / segment_pages).collect();
        Choice { order, old, late, mean, segment_pages, old_segments }
    }

    fn is_written(&self, chain: &Chain) -> bool {
        chain.first < self.old
            || match self.order {
                CleaningOrder::EveryPage => true,
                CleaningOrder::OldestFirst => false,
                CleaningOrder::HottestLast => chain.last < self.late,
                CleaningOrder::MostChanges => chain.records > self.mean,
                CleaningOrder::OldSegments => {
                    self.old_segments.contains(&(chain.page.get() / self.segment_pages))
                }
            }
    }
}

/// What the archive has of each page from a place on; none if it cannot all be read.
fn chains(archive: &Archive, from: Rsn) -> Option<Vec<Chain>> {
    let mut records = Merged::readable(archive.runs(), PageNumber(1), from);
    let mut chains: Vec<Chain> = Vec::new();
    while let Some(entry) = records.current().filter(|entry| entry.page != NO_PAGE) {
        let (page, rsn) = (entry.page, entry.rsn);
        match chains.last_mut().filter(|chain| chain.page == page) {
            Some(chain) => (chain.last, chain.records) = (rsn, chain.records + 1),
            None => chains.push(Chain { page, first: rsn, last: rsn, records: 1 }),
        }
        records.advance().ok()?;
    }
    (records.passed() == Rsn::NONE).then_some(chains)
}

#[cfg(test)]
mod tests;
