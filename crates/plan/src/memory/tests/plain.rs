//! The same model without lists, counters and short cuts: what a page is worth is told by the
//! number of its changes that each place has, and everything is searched for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::configuration::{CleanPages, ColdPages, Configuration};
use crate::memory::Dirty;
use crate::request::Request;
use crate::traffic::Traffic;

/// What a plain model may do wrong: canaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// The newest page leaves.
    NewestLeaves,
    /// A changed page leaves without being written.
    ForgetsChanges,
    /// A checkpoint writes what was changed since the last one, too.
    WritesAll,
    /// A page that is in durable memory is displaced by one with as many hits.
    MovesEquals,
    /// Hits are never forgotten.
    KeepsHits,
    /// What leaves durable memory is not written to disk, as if that had it.
    DropsCopies,
}

impl Fault {
    pub(super) const ALL: [Fault; 6] = [
        Fault::NewestLeaves,
        Fault::ForgetsChanges,
        Fault::WritesAll,
        Fault::MovesEquals,
        Fault::KeepsHits,
        Fault::DropsCopies,
    ];
}

pub(super) struct Plain {
    fault: Fault,
    cold_pages: ColdPages,
    clean_pages: CleanPages,
    conventional_pages: usize,
    durable_pages: usize,
    /// How often each page was changed.
    changes: Vec<u64>,
    /// How many of its changes each place has.
    on_disk: Vec<u64>,
    durable: BTreeMap<u32, u64>,
    newest_first: Vec<u32>,
    /// Dirty pages, and the checkpoints that there had been when they became dirty.
    dirty_since: BTreeMap<u32, u64>,
    hits: BTreeMap<u32, u32>,
    made: u64,
    pub(super) paging: Traffic,
    pub(super) checkpoints: Traffic,
}

impl Plain {
    pub(super) fn new(configuration: &Configuration, fault: Fault) -> Plain {
        let pages = configuration.load.database_pages() as usize;
        let durable_pages = configuration.durable_pages as usize;
        Plain {
            fault,
            cold_pages: configuration.cold_pages,
            clean_pages: configuration.clean_pages,
            conventional_pages: configuration.conventional_pages() as usize,
            durable_pages,
            changes: vec![0; pages],
            on_disk: vec![0; pages],
            durable: (0..durable_pages.min(pages) as u32).map(|page| (page, 0)).collect(),
            newest_first: Vec::new(),
            dirty_since: BTreeMap::new(),
            hits: BTreeMap::new(),
            made: 0,
            paging: Traffic::default(),
            checkpoints: Traffic::default(),
        }
    }

    pub(super) fn resident(&self) -> usize {
        self.newest_first.len()
    }

    pub(super) fn dirty(&self) -> Dirty {
        let durable = self.dirty_since.keys().filter(|page| self.durable.contains_key(page));
        let durable = durable.count() as u64;
        Dirty { on_disk: self.dirty_since.len() as u64 - durable, durable }
    }

    /// The error says what stable storage has lost.
    pub(super) fn request(&mut self, request: Request) -> Result<(), String> {
        let page = request.page;
        *self.hits.entry(page).or_default() += 1;
        match self.newest_first.iter().position(|other| *other == page) {
            Some(at) => drop(self.newest_first.remove(at)),
            None => self.load(page)?,
        }
        self.newest_first.insert(0, page);
        if request.is_write {
            self.changes[page as usize] += 1;
            self.dirty_since.entry(page).or_insert(self.made);
        }
        Ok(())
    }

    fn load(&mut self, page: u32) -> Result<(), String> {
        if self.newest_first.len() == self.conventional_pages {
            let at =
                if self.fault == Fault::NewestLeaves { 0 } else { self.newest_first.len() - 1 };
            let leaving = self.newest_first.remove(at);
            self.leave(leaving);
        }
        let read = self.durable.get(&page).copied();
        match read {
            Some(_) => self.paging.durable_reads += 1,
            None => self.paging.disk_reads += 1,
        }
        let (has, had) = (read.unwrap_or(self.on_disk[page as usize]), self.changes[page as usize]);
        (has == had).then_some(()).ok_or(format!("page {page} has {has} of {had} changes"))
    }

    fn leave(&mut self, page: u32) {
        let is_dirty = self.dirty_since.remove(&page).is_some();
        if self.fault == Fault::ForgetsChanges {
            return;
        }
        let changes = self.changes[page as usize];
        let is_written = is_dirty || self.clean_pages == CleanPages::Written;
        let has_room = self.durable.len() < self.durable_pages;
        if let Some(copy) = self.durable.get_mut(&page) {
            self.paging.durable_writes += u64::from(*copy != changes);
            *copy = changes;
        } else if is_written && has_room && self.cold_pages == ColdPages::ToDurable {
            self.paging.durable_writes += 1;
            self.durable.insert(page, changes);
        } else if is_written {
            self.paging.disk_writes += 1;
            self.on_disk[page as usize] = changes;
        }
    }

    pub(super) fn checkpoint(&mut self) {
        let is_due = |since: u64| self.fault == Fault::WritesAll || since < self.made;
        let due: BTreeSet<u32> =
            self.dirty_since.iter().filter(|it| is_due(*it.1)).map(|it| *it.0).collect();
        let kept = self.kept(&due);
        let leaving: Vec<u32> =
            self.durable.keys().filter(|page| !kept.contains(page)).copied().collect();
        leaving.into_iter().for_each(|page| self.leave_durable(page));
        for page in due {
            if self.dirty_since.remove(&page).is_none() {
                continue;
            }
            let changes = self.changes[page as usize];
            if kept.contains(&page) {
                self.checkpoints.durable_writes += 1;
                self.durable.insert(page, changes);
            } else {
                self.checkpoints.disk_writes += 1;
                self.on_disk[page as usize] = changes;
            }
        }
        self.made += 1;
        if self.fault != Fault::KeepsHits {
            self.hits.clear();
        }
    }

    /// The pages that durable memory has from now on.
    fn kept(&self, due: &BTreeSet<u32>) -> BTreeSet<u32> {
        let mut all: Vec<u32> = self.durable.keys().chain(due).copied().collect();
        all.sort_unstable();
        all.dedup();
        let place = |page: &u32| match (self.durable.contains_key(page), due.contains(page)) {
            _ if self.fault == Fault::MovesEquals => 0,
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => 2,
        };
        let hits = |page: &u32| self.hits.get(page).copied().unwrap_or(0);
        all.sort_by_key(|page| Reverse((hits(page), place(page), *page)));
        all.into_iter().take(self.durable_pages).collect()
    }

    fn leave_durable(&mut self, page: u32) {
        let copy = self.durable.remove(&page).expect("it is there");
        let is_resident = self.newest_first.contains(&page);
        let is_dirty = self.dirty_since.remove(&page).is_some();
        if self.fault == Fault::DropsCopies {
            return;
        }
        if is_dirty || copy != self.on_disk[page as usize] {
            self.checkpoints.durable_reads += u64::from(!is_resident);
            self.checkpoints.disk_writes += 1;
        }
        self.on_disk[page as usize] = self.changes[page as usize];
    }
}
