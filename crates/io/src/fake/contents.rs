//! The bytes of one file: what is read now, what is on the platter, what lies between.
//!
//! Promise: a power cut keeps everything synced; of the rest each 512-byte sector is as some write
//! left it, and the size is one the file really had.
//! Never: mixes two versions inside a sector, unless [`Sectors::Garbage`] is asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Mood, Random, Sectors};
use crate::Seek;

/// What a disk writes whole or not at all.
pub(super) const SECTOR_BYTES: u64 = 512;
/// What a direct transfer is made of, and pages have if nobody says otherwise.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// Bytes with holes. Bytes beyond the size are zero. Copies share their pages.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    size_bytes: u64,
    /// The unit of allocation.
    page_bytes: u64,
    pages: BTreeMap<u64, Arc<[u8]>>,
}

impl Contents {
    /// No bytes yet, in pages of this size.
    pub(super) fn new(page_bytes: u64) -> Contents {
        Contents { size_bytes: 0, page_bytes, pages: BTreeMap::new() }
    }

    pub(super) fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub(super) fn allocated_bytes(&self) -> u64 {
        self.pages.len() as u64 * self.page_bytes
    }

    /// Where the next page, or the next hole between pages, begins.
    pub(super) fn seek(&self, offset: u64, what: Seek) -> Option<u64> {
        if offset >= self.size_bytes {
            return None;
        }
        let unit = offset / self.page_bytes;
        let found = match what {
            Seek::Data => *self.pages.range(unit..).next()?.0,
            Seek::Hole => (unit..).find(|unit| !self.pages.contains_key(unit))?,
        };
        let found = (found * self.page_bytes).max(offset);
        match what {
            Seek::Data => Some(found).filter(|found| *found < self.size_bytes),
            Seek::Hole => Some(found.min(self.size_bytes)),
        }
    }

    /// Whether a page at `offset` or behind it is there.
    pub(super) fn has_room_behind(&self, offset: u64) -> bool {
        self.pages.range(offset / self.page_bytes..).next().is_some()
    }

    /// Copies out what lies below the size; returns how much.
    pub(super) fn read(&self, into: &mut [u8], offset: u64) -> usize {
        let there = self.size_bytes.saturating_sub(offset).min(into.len() as u64);
        for piece in pieces(offset, there, self.page_bytes) {
            let target = &mut into[piece.from..piece.from + piece.bytes];
            match self.pages.get(&piece.unit) {
                Some(page) => target.copy_from_slice(&page[piece.within..][..piece.bytes]),
                None => target.fill(0),
            }
        }
        there as usize
    }

    /// Stores bytes without changing the size.
    fn put(&mut self, from: &[u8], offset: u64) {
        for piece in pieces(offset, from.len() as u64, self.page_bytes) {
            let source = &from[piece.from..piece.from + piece.bytes];
            self.page(piece.unit)[piece.within..][..piece.bytes].copy_from_slice(source);
        }
    }

    /// Makes the size at least this.
    fn grow(&mut self, size_bytes: u64) {
        self.size_bytes = self.size_bytes.max(size_bytes);
    }

    /// Cuts or extends; what lay beyond the new size is gone for good.
    fn set_len(&mut self, size_bytes: u64) {
        self.size_bytes = size_bytes;
        self.pages.split_off(&size_bytes.div_ceil(self.page_bytes));
        let kept = (size_bytes % self.page_bytes) as usize;
        if let Some(page) = self.pages.get_mut(&(size_bytes / self.page_bytes)) {
            Arc::make_mut(page)[kept..].fill(0);
        }
    }

    /// Frees whole pages and zeroes the rest of the range.
    fn punch(&mut self, offset: u64, bytes: u64) {
        for piece in pieces(offset, bytes, self.page_bytes) {
            if piece.bytes as u64 == self.page_bytes {
                self.pages.remove(&piece.unit);
            } else if let Some(page) = self.pages.get_mut(&piece.unit) {
                Arc::make_mut(page)[piece.within..][..piece.bytes].fill(0);
            }
        }
    }

    /// A page to write to; a hole becomes zeros.
    fn page(&mut self, unit: u64) -> &mut [u8] {
        let zeros = || vec![0; self.page_bytes as usize].into();
        let page = self.pages.entry(unit).or_insert_with(zeros);
        Arc::make_mut(page)
    }

    /// Allocates every page of a range.
    pub(super) fn reserve(&mut self, offset: u64, bytes: u64) {
        for piece in pieces(offset, bytes, self.page_bytes) {
            self.page(piece.unit);
        }
    }

    /// How many leading bytes of a range need no more than `free_bytes` of new pages.
    pub(super) fn fitting(&self, offset: u64, bytes: u64, free_bytes: u64) -> u64 {
        let mut free_pages = free_bytes / self.page_bytes;
        for piece in pieces(offset, bytes, self.page_bytes) {
            if self.pages.contains_key(&piece.unit) {
                continue;
            }
            if free_pages == 0 {
                return piece.from as u64;
            }
            free_pages -= 1;
        }
        bytes
    }

    /// Whether there was such a bit.
    fn flip_bit(&mut self, bit: u64) -> bool {
        let byte = bit / 8;
        if byte >= self.size_bytes {
            return false;
        }
        let (unit, within) = (byte / self.page_bytes, (byte % self.page_bytes) as usize);
        self.page(unit)[within] ^= 1 << (bit % 8);
        true
    }
}

/// The part of a range that lies in one page or sector.
struct Piece {
    /// Which page or sector.
    unit: u64,
    /// Where in it the part begins.
    within: usize,
    /// Where in the range the part begins.
    from: usize,
    bytes: usize,
}

/// Cuts a range at the borders of pages or sectors.
fn pieces(offset: u64, bytes: u64, unit_bytes: u64) -> impl Iterator<Item = Piece> {
    let end = offset + bytes;
    let mut at = offset;
    std::iter::from_fn(move || {
        let next = end.min((at / unit_bytes + 1) * unit_bytes);
        let piece = Piece {
            unit: at / unit_bytes,
            within: (at % unit_bytes) as usize,
            from: (at - offset) as usize,
            bytes: (next - at) as usize,
        };
        at = next;
        (piece.bytes > 0).then_some(piece)
    })
}

/// What a write does below the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Goes where it should.
    Sound,
    /// Is acknowledged and never arrives.
    Lost,
    /// Arrives at this offset instead.
    Misdirected(u64),
}

/// One change not yet synced.
#[derive(Clone, Debug)]
enum Edit {
    /// `bytes` arrive at `offset` (never, if lost); the file becomes at least `end` long.
    Write {
        offset: u64,
        bytes: Arc<[u8]>,
        end: u64,
        lost: bool,
    },
    SetLen {
        bytes: u64,
        shrinks: bool,
    },
    Punch {
        offset: u64,
        bytes: u64,
    },
}

#[derive(Clone, Debug)]
struct Unsynced {
    /// The operation that made it, counted over the whole machine.
    operation: u64,
    edit: Edit,
}

/// One file's bytes through time.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// What a read shows.
    pub(super) volatile: Contents,
    durable: Contents,
    unsynced: Vec<Unsynced>,
}

impl History {
    /// A file without bytes, in pages of this size.
    pub(super) fn new(page_bytes: u64) -> History {
        History::at_rest(Contents::new(page_bytes))
    }

    /// A file that was found on the platter.
    pub(super) fn at_rest(contents: Contents) -> History {
        History { volatile: contents.clone(), durable: contents, unsynced: Vec::new() }
    }

    /// Writes. A page cache shows what was asked for whatever the device does with it; without one
    /// (`direct`) a read shows what the device did.
    pub(super) fn write(
        &mut self,
        operation: u64,
        from: &[u8],
        offset: u64,
        delivery: Delivery,
        direct: bool,
    ) {
        let end = offset + from.len() as u64;
        let arrives = match delivery {
            Delivery::Misdirected(elsewhere) => elsewhere,
            Delivery::Sound | Delivery::Lost => offset,
        };
        let lost = delivery == Delivery::Lost;
        if !direct {
            self.volatile.put(from, offset);
        } else if !lost {
            self.volatile.put(from, arrives);
        }
        self.volatile.grow(end);
        let edit = Edit::Write { offset: arrives, bytes: from.into(), end, lost };
        self.unsynced.push(Unsynced { operation, edit });
    }

    /// Cuts or extends the file.
    pub(super) fn set_len(&mut self, operation: u64, bytes: u64, growing_frees: bool) {
        let shrinks = bytes < self.volatile.size_bytes;
        match bytes > self.volatile.size_bytes && !growing_frees {
            true => self.volatile.grow(bytes),
            false => self.volatile.set_len(bytes),
        }
        self.unsynced.push(Unsynced { operation, edit: Edit::SetLen { bytes, shrinks } });
    }

    /// Makes a hole.
    pub(super) fn punch(&mut self, operation: u64, offset: u64, bytes: u64) {
        self.volatile.punch(offset, bytes);
        self.unsynced.push(Unsynced { operation, edit: Edit::Punch { offset, bytes } });
    }

    /// Everything written so far reaches the platter.
    pub(super) fn sync(&mut self) {
        for Unsynced { edit, .. } in self.unsynced.drain(..) {
            match edit {
                Edit::Write { offset, bytes, end, lost } => {
                    if !lost {
                        self.durable.put(&bytes, offset);
                    }
                    self.durable.grow(end);
                }
                Edit::SetLen { bytes, .. } => self.durable.set_len(bytes),
                Edit::Punch { offset, bytes } => self.durable.punch(offset, bytes),
            }
        }
    }

    /// A sync that failed: the cache still shows the writes, and nothing will carry them down any
    /// more (Rebello et al., "Can applications recover from fsync failures?", 2020, section 3).
    pub(super) fn drop_dirty(&mut self) {
        for Unsynced { edit, .. } in &mut self.unsynced {
            if let Edit::Write { lost, .. } = edit {
                *lost = true;
            }
        }
    }

    /// Damages the file at rest and in the cache; whether there was such a bit.
    pub(super) fn flip_bit(&mut self, bit: u64) -> bool {
        self.durable.flip_bit(bit) | self.volatile.flip_bit(bit)
    }

    /// What the platter holds when power is gone.
    pub(super) fn after_power_cut(
        &self,
        mood: Mood,
        sectors: Sectors,
        random: &mut Random,
    ) -> Contents {
        // Three questions to luck: how far did metadata get, what came after it can still matter,
        // and which version does each sector hold?
        let named = self.sizes_kept(mood, random);
        let reach = self.reach(named);
        let mut cuts = self.sector_cuts(reach, mood, random);
        self.order_borders(named, &mut cuts);
        let mut image = self.durable.clone();
        for (index, Unsynced { edit, .. }) in self.unsynced[..reach].iter().enumerate() {
            match edit {
                Edit::Write { offset, bytes, end, lost } => {
                    if !lost {
                        put_sectors(&mut image, *offset, bytes, |sector| index < cuts[&sector]);
                    }
                    if index < named {
                        image.grow(*end);
                    }
                }
                Edit::SetLen { bytes, .. } if index < named => image.set_len(*bytes),
                Edit::Punch { offset, bytes } if index < named => image.punch(*offset, *bytes),
                Edit::SetLen { .. } | Edit::Punch { .. } => {}
            }
        }
        self.grow_partly(&mut image, named, mood, random);
        let partial = !matches!(mood, Mood::LoseAll | Mood::KeepAll);
        if partial && sectors == Sectors::Garbage {
            spoil(&mut image, cuts.keys(), random);
        }
        // Sectors that arrived beyond the size are not part of the file.
        image.set_len(image.size_bytes);
        image
    }

    /// How many of the first changes keep their effect on size and holes: those are metadata, which
    /// a journalling file system keeps in order.
    fn sizes_kept(&self, mood: Mood, random: &mut Random) -> usize {
        let count = self.unsynced.len();
        match mood {
            Mood::LoseAll => 0,
            Mood::KeepAll => count,
            Mood::Prefix(last) => self.unsynced.partition_point(|edit| edit.operation <= last),
            Mood::Subset | Mood::Scatter => random.below(count as u64 + 1) as usize,
        }
    }

    /// How many of the first changes can have any effect: what was written after a cut or a hole
    /// that did not survive went to blocks that nothing points to.
    fn reach(&self, named: usize) -> usize {
        let is_border = |unsynced: &Unsynced| {
            matches!(unsynced.edit, Edit::SetLen { shrinks: true, .. } | Edit::Punch { .. })
        };
        let border = self.unsynced[named..].iter().position(is_border);
        border.map_or(self.unsynced.len(), |position| named + position)
    }

    /// For every sector written, how many of the first changes it has seen.
    fn sector_cuts(&self, reach: usize, mood: Mood, random: &mut Random) -> BTreeMap<u64, usize> {
        let whole: Vec<bool> = (0..reach).map(|_| random.chance(50)).collect();
        self.writers(reach)
            .into_iter()
            .map(|(sector, writers)| {
                let cut = match mood {
                    Mood::LoseAll => 0,
                    Mood::KeepAll => reach,
                    Mood::Prefix(last) => self.torn_prefix(&writers, last, random),
                    // A page cache has one version of a sector: the last write that got through
                    // carried the earlier ones with it.
                    Mood::Subset => {
                        let kept = writers.iter().rev().find(|&&index| whole[index]);
                        kept.map_or(0, |index| index + 1)
                    }
                    Mood::Scatter => {
                        let chosen = random.below(writers.len() as u64 + 1) as usize;
                        chosen.checked_sub(1).map_or(0, |position| writers[position] + 1)
                    }
                };
                (sector, cut)
            })
            .collect()
    }

    /// A cut or hole that ends inside a sector zeroes a part of it, and the new size is not durable
    /// before that sector is (as with ext4 in its ordered mode).
    fn order_borders(&self, named: usize, cuts: &mut BTreeMap<u64, usize>) {
        for (index, Unsynced { edit, .. }) in self.unsynced[..named].iter().enumerate() {
            let borders = match edit {
                Edit::SetLen { bytes, shrinks: true } => [*bytes, *bytes],
                Edit::Punch { offset, bytes } => [*offset, offset + bytes],
                Edit::SetLen { .. } | Edit::Write { .. } => continue,
            };
            for border in borders.into_iter().filter(|border| border % SECTOR_BYTES != 0) {
                cuts.entry(border / SECTOR_BYTES).and_modify(|cut| *cut = index.max(*cut));
            }
        }
    }

    /// Everything before operation `last`, and `last` itself torn by sectors.
    fn torn_prefix(&self, writers: &[usize], last: u64, random: &mut Random) -> usize {
        let torn = random.chance(50);
        let arrived = |&&index: &&usize| {
            let operation = self.unsynced[index].operation;
            operation < last || (operation == last && !torn)
        };
        writers.iter().rev().find(arrived).map_or(0, |index| index + 1)
    }

    /// The changes that wrote each sector, oldest first.
    fn writers(&self, reach: usize) -> BTreeMap<u64, Vec<usize>> {
        let mut writers: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (index, Unsynced { edit, .. }) in self.unsynced[..reach].iter().enumerate() {
            if let Edit::Write { offset, bytes, lost: false, .. } = edit {
                for piece in pieces(*offset, bytes.len() as u64, SECTOR_BYTES) {
                    writers.entry(piece.unit).or_default().push(index);
                }
            }
        }
        writers
    }

    /// File systems move the size forward as data arrives, so a long write may leave it half-way.
    fn grow_partly(&self, image: &mut Contents, named: usize, mood: Mood, random: &mut Random) {
        let Some(Unsynced { edit: Edit::Write { end, .. }, .. }) = self.unsynced.get(named) else {
            return;
        };
        if mood == Mood::Scatter && *end > image.size_bytes {
            let sectors = (end - image.size_bytes) / SECTOR_BYTES;
            let border = image.size_bytes / SECTOR_BYTES * SECTOR_BYTES;
            image.grow(border + random.below(sectors + 1) * SECTOR_BYTES);
        }
    }
}

/// Stores those sectors of a write for which `arrived` holds.
fn put_sectors(image: &mut Contents, offset: u64, bytes: &[u8], arrived: impl Fn(u64) -> bool) {
    for piece in pieces(offset, bytes.len() as u64, SECTOR_BYTES) {
        if arrived(piece.unit) {
            let at = piece.unit * SECTOR_BYTES + piece.within as u64;
            image.put(&bytes[piece.from..piece.from + piece.bytes], at);
        }
    }
}

/// Leaves noise in some of the sectors that were being written.
fn spoil<'a>(image: &mut Contents, sectors: impl Iterator<Item = &'a u64>, random: &mut Random) {
    for sector in sectors {
        if random.chance(20) {
            let mut noise = [0; SECTOR_BYTES as usize];
            random.fill(&mut noise);
            image.put(&noise, sector * SECTOR_BYTES);
        }
    }
}
