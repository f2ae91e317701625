//! The model: conventional memory, durable memory and the disk, and which of them has which page.
//!
//! Promise: every page that moves is counted, once a move; a hit, a load and a page that leaves
//! take constant time, and nothing is allocated for them.
//! Never: knows what a move costs, or when the next checkpoint is.
//!
//! A page that is changed is **dirty** until stable storage has it, which is the disk, or durable
//! memory if that has a copy of the page. A checkpoint writes what was dirty when the one before
//! was made.

use std::mem;

use crate::configuration::{CleanPages, ColdPages, Configuration};
use crate::lru::Lru;
use crate::request::Request;
use crate::room::{Candidate, Place, losers_first};
use crate::traffic::Traffic;

/// What is known of a page.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    /// Requests for it, in the interval `hit_in`.
    hits: u32,
    hit_in: u32,
    /// The interval that it was last made dirty in.
    dirtied_in: u32,
    is_dirty: bool,
    is_resident: bool,
    /// Durable memory has a copy.
    is_durable: bool,
    /// The disk has what stable storage has of it.
    is_on_disk: bool,
}

/// Pages in conventional memory that are dirty, by where a recovery finds what stable storage has
/// of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dirty {
    pub(crate) on_disk: u64,
    pub(crate) durable: u64,
}

/// Both memories.
#[derive(Debug)]
pub(crate) struct Memory {
    pages: Vec<Page>,
    resident: Lru,
    conventional_pages: u32,
    /// Pages with a copy in durable memory.
    durable: Vec<u32>,
    durable_pages: usize,
    cold_pages: ColdPages,
    clean_pages: CleanPages,
    /// Checkpoints end intervals; they are numbered from 1.
    interval: u32,
    /// Pages that became dirty in this interval and in the one before, each at most once. They may
    /// be clean again.
    dirtied_now: Vec<u32>,
    dirtied_before: Vec<u32>,
    dirty: Dirty,
    paging: Traffic,
    checkpoints: Traffic,
    candidates: Vec<Candidate>,
}

impl Memory {
    /// Memory after a crash and its recovery: nothing is in conventional memory, and durable memory
    /// has the hottest pages.
    pub(crate) fn after_crash(configuration: &Configuration) -> Memory {
        let pages = u32::try_from(configuration.load.database_pages());
        let pages = pages.expect("the pages of a simulation have numbers of 32 bits");
        let durable_pages = configuration.durable_pages as usize;
        let page = Page { is_on_disk: true, ..Page::default() };
        let list = || Vec::with_capacity(pages as usize);
        let mut memory = Memory {
            pages: vec![page; pages as usize],
            resident: Lru::new(pages),
            conventional_pages: configuration.conventional_pages().min(u64::from(pages)) as u32,
            durable: list(),
            durable_pages,
            cold_pages: configuration.cold_pages,
            clean_pages: configuration.clean_pages,
            interval: 1,
            dirtied_now: list(),
            dirtied_before: list(),
            dirty: Dirty::default(),
            paging: Traffic::default(),
            checkpoints: Traffic::default(),
            candidates: Vec::with_capacity(pages as usize),
        };
        for page in configuration.load.hottest_first().into_iter().take(durable_pages) {
            memory.enter_durable(page);
        }
        memory
    }

    /// Memory about as after a long time: both are full of the hottest pages, and all in
    /// conventional memory are dirty, half of them since before the last checkpoint.
    pub(crate) fn in_use(configuration: &Configuration) -> Memory {
        let mut memory = Memory::after_crash(configuration);
        let mut hottest = configuration.load.hottest_first();
        hottest.truncate(memory.conventional_pages as usize);
        for page in hottest.iter().rev() {
            memory.pages[*page as usize].is_resident = true;
            memory.resident.push(*page);
        }
        hottest.iter().step_by(2).for_each(|page| memory.mark_dirty(*page));
        memory.next_interval();
        hottest.iter().skip(1).step_by(2).for_each(|page| memory.mark_dirty(*page));
        memory
    }

    /// Answers a request.
    #[inline]
    pub(crate) fn request(&mut self, request: Request) {
        let Request { page: number, is_write } = request;
        let page = &mut self.pages[number as usize];
        if page.hit_in != self.interval {
            (page.hits, page.hit_in) = (0, self.interval);
        }
        page.hits += 1;
        match page.is_resident {
            true => self.resident.touch(number),
            false => self.load(number),
        }
        if is_write {
            self.mark_dirty(number);
        }
    }

    /// Writes what was dirty when the last checkpoint was made, to durable memory as far as there
    /// is room, and begins an interval.
    pub(crate) fn checkpoint(&mut self) {
        let mut due = mem::take(&mut self.dirtied_before);
        due.retain(|page| self.is_due(*page));
        self.share_durable(&due);
        for page in &due {
            self.write_due(*page);
        }
        // Its room is used again.
        self.dirtied_before = due;
        self.next_interval();
    }

    /// Pages in conventional memory.
    pub(crate) fn resident_pages(&self) -> u32 {
        self.resident.len()
    }

    /// Whether another page can be loaded only if one leaves, or none is left to load.
    pub(crate) fn is_full(&self) -> bool {
        self.resident.len() == self.conventional_pages
    }

    /// What a recovery would have to bring to where it was.
    pub(crate) fn dirty(&self) -> Dirty {
        self.dirty
    }

    /// What was moved for requests.
    pub(crate) fn paging(&self) -> Traffic {
        self.paging
    }

    /// What was moved for checkpoints.
    pub(crate) fn checkpoints(&self) -> Traffic {
        self.checkpoints
    }

    fn load(&mut self, number: u32) {
        if self.is_full()
            && let Some(oldest) = self.resident.pop_oldest()
        {
            self.leave(oldest);
        }
        self.resident.push(number);
        let page = &mut self.pages[number as usize];
        page.is_resident = true;
        match page.is_durable {
            true => self.paging.durable_reads += 1,
            false => self.paging.disk_reads += 1,
        }
    }

    /// Sends a page that leaves conventional memory to stable storage.
    fn leave(&mut self, number: u32) {
        let page = self.pages[number as usize];
        let goes_durable = self.cold_pages == ColdPages::ToDurable && self.has_durable_room();
        let is_written = page.is_dirty || self.clean_pages == CleanPages::Written;
        self.clean(number);
        self.pages[number as usize].is_resident = false;
        if page.is_durable {
            if page.is_dirty {
                self.paging.durable_writes += 1;
                self.pages[number as usize].is_on_disk = false;
            }
        } else if is_written && goes_durable {
            self.paging.durable_writes += 1;
            self.pages[number as usize].is_on_disk = !page.is_dirty;
            self.enter_durable(number);
        } else if is_written {
            self.paging.disk_writes += 1;
        }
    }

    #[inline]
    fn mark_dirty(&mut self, number: u32) {
        let page = &mut self.pages[number as usize];
        if page.is_dirty {
            return;
        }
        page.is_dirty = true;
        if page.dirtied_in != self.interval {
            page.dirtied_in = self.interval;
            self.dirtied_now.push(number);
        }
        *self.dirty_beside(number) += 1;
    }

    fn clean(&mut self, number: u32) {
        if mem::take(&mut self.pages[number as usize].is_dirty) {
            *self.dirty_beside(number) -= 1;
        }
    }

    /// The count that a page is in while it is dirty.
    fn dirty_beside(&mut self, number: u32) -> &mut u64 {
        match self.pages[number as usize].is_durable {
            true => &mut self.dirty.durable,
            false => &mut self.dirty.on_disk,
        }
    }

    fn has_durable_room(&self) -> bool {
        self.durable.len() < self.durable_pages
    }

    fn is_due(&self, number: u32) -> bool {
        let page = self.pages[number as usize];
        page.is_dirty & (page.dirtied_in != self.interval)
    }

    /// Decides which pages have copies in durable memory from this checkpoint on. Copies that have
    /// to make room are moved to disk.
    fn share_durable(&mut self, due: &[u32]) {
        if !self.is_shared_anew(due) {
            return;
        }
        let mut candidates = mem::take(&mut self.candidates);
        let new = due.iter().filter(|page| !self.pages[**page as usize].is_durable);
        candidates.extend(self.durable.iter().chain(new).map(|page| self.candidate(*page)));
        let losers = losers_first(&mut candidates, self.durable_pages);
        for loser in candidates[..losers].iter().filter(|loser| !loser.is_new()) {
            self.leave_durable(loser.page());
        }
        // The others keep their order, which is about that of the pages: the next look at all of
        // them is a walk through memory, not a jump for each.
        self.durable.retain(|page| self.pages[*page as usize].is_durable);
        for winner in candidates[losers..].iter().filter(|winner| winner.is_new()) {
            self.enter_durable(winner.page());
        }
        candidates.clear();
        self.candidates = candidates;
    }

    /// Whether a page that is due may come into durable memory: there is room, or it was hit. One
    /// that was not has no more hits than any that is there.
    fn is_shared_anew(&self, due: &[u32]) -> bool {
        let may_come = |page: &Page| {
            !page.is_durable && (self.has_durable_room() || page.hit_in == self.interval)
        };
        self.durable_pages > 0 && due.iter().any(|page| may_come(&self.pages[*page as usize]))
    }

    fn candidate(&self, number: u32) -> Candidate {
        let page = self.pages[number as usize];
        // Which way it is for a page cannot be foreseen, so there is no branch to guess.
        let hits = page.hits * u32::from(page.hit_in == self.interval);
        let place = [[Place::New, Place::New], [Place::Kept, Place::Renewed]]
            [usize::from(page.is_durable)][usize::from(self.is_due(number))];
        Candidate::new(hits, place, number)
    }

    /// Notes a copy in durable memory.
    fn enter_durable(&mut self, number: u32) {
        self.durable.push(number);
        self.set_durable(number, true);
    }

    /// Moves a copy from durable memory to disk: the page as it is now, if conventional memory has
    /// it.
    fn leave_durable(&mut self, number: u32) {
        let page = self.pages[number as usize];
        if page.is_dirty || !page.is_on_disk {
            self.checkpoints.durable_reads += u64::from(!page.is_resident);
            self.checkpoints.disk_writes += 1;
        }
        self.clean(number);
        self.pages[number as usize].is_on_disk = true;
        self.set_durable(number, false);
    }

    fn set_durable(&mut self, number: u32, is_durable: bool) {
        let is_dirty = self.pages[number as usize].is_dirty;
        *self.dirty_beside(number) -= u64::from(is_dirty);
        self.pages[number as usize].is_durable = is_durable;
        *self.dirty_beside(number) += u64::from(is_dirty);
    }

    /// Writes a page for a checkpoint, if it has not left durable memory for the disk meanwhile.
    fn write_due(&mut self, number: u32) {
        let page = self.pages[number as usize];
        if !page.is_dirty {
            return;
        }
        self.clean(number);
        self.pages[number as usize].is_on_disk = !page.is_durable;
        match page.is_durable {
            true => self.checkpoints.durable_writes += 1,
            false => self.checkpoints.disk_writes += 1,
        }
    }

    fn next_interval(&mut self) {
        mem::swap(&mut self.dirtied_now, &mut self.dirtied_before);
        self.dirtied_now.clear();
        self.interval += 1;
    }
}

#[cfg(test)]
mod tests;
