//! What there is to know at a place of the stream, as bytes: all of it, or what changed.
//!
//! Byte table: FORMAT.md, "State".
//!
//! Promise: equal states give equal bytes; a difference makes of the state where it begins the one
//! where it ends, or changes nothing; other bytes are a [`StateFault`].
//! Never: decides when, or where the bytes go.

use crate::restart::analysis_state::State;
use crate::restart::stale::PAGES_MAX;
use crate::restart::undo::Stack;
use crate::stream::rsn::{PageNumber, Rsn, Slot};
use crate::varint;

const WHOLE: u8 = 1;
const DIFFERENCE: u8 = 2;
/// How a checkpoint begins that is neither: what whoever uses pages says of them, to compare that
/// with a difference. A restart does not look at it.
pub const SURVEY: u8 = 3;

/// Why bytes are no state, or not one that can be reached from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateFault {
    /// Neither all of a state nor a difference, as asked for.
    Form(u8),
    /// The bytes end too early, or a number is written as none is.
    Short,
    /// A number is larger or smaller than it can be, or not in order.
    Number,
    /// There are bytes behind the end.
    Length,
    /// The difference does not begin here.
    Elsewhere {
        /// Where it begins.
        from: Rsn,
    },
}

/// What changed between two places of the stream, as it was found.
#[derive(Clone, Debug)]
pub struct Difference<'a> {
    from: Rsn,
    at: Rsn,
    cleaned: Rsn,
    next_page: PageNumber,
    slots: Vec<SlotChange<'a>>,
    pages: Vec<PageChange>,
}

#[derive(Clone, Debug)]
struct SlotChange<'a> {
    slot: Slot,
    kept: usize,
    bodies: Vec<&'a [u8]>,
}

#[derive(Clone, Copy, Debug)]
struct PageChange {
    page: PageNumber,
    last: Rsn,
    is_free: bool,
}

impl State {
    /// Appends all of the state.
    pub fn put_whole(&self, out: &mut Vec<u8>) {
        out.push(WHOLE);
        put_all(out, [self.at.get(), self.cleaned.get(), self.next_page.get()]);
        varint::put(self.free.len() as u64, out);
        put_pages(self.free(), out, |_, _| {});
        varint::put(self.undo.running().count() as u64, out);
        for (slot, stack) in self.undo.running() {
            varint::put(slot.0.into(), out);
            put_bodies(stack, 0, out);
        }
        varint::put(self.stale().count() as u64, out);
        put_pages(self.stale().map(|(page, _)| page), out, |page, out| {
            varint::put(self.behind(page), out);
        });
    }

    /// Appends what changed since the last mark.
    pub fn put_difference(&self, out: &mut Vec<u8>) {
        out.push(DIFFERENCE);
        let heads = [self.marked, self.at, self.cleaned].map(Rsn::get);
        put_all(out, heads);
        varint::put(self.next_page.get(), out);
        varint::put(self.undo.changed().count() as u64, out);
        for (slot, stack) in self.undo.changed() {
            put_all(out, [slot.0.into(), stack.kept() as u64]);
            put_bodies(stack, stack.kept(), out);
        }
        let mut pages = self.touched.clone();
        pages.sort_unstable();
        varint::put(pages.len() as u64, out);
        put_pages(pages.into_iter(), out, |page, out| {
            let is_free = u64::from(self.free.contains(&page));
            varint::put(self.behind(page) << 1 | is_free, out);
        });
    }

    /// How far behind the end a page's last record stands.
    fn behind(&self, page: PageNumber) -> u64 {
        self.at.since(self.lasts[page.get() as usize])
    }

    /// The state that [`State::put_whole`] wrote; its last mark is where it ends.
    ///
    /// # Errors
    /// See [`StateFault`].
    pub fn parse(bytes: &[u8]) -> Result<State, StateFault> {
        let mut parts = Parts::of(WHOLE, bytes)?;
        let (at, cleaned, next_page) = parts.head()?;
        let mut state = State { at, cleaned, next_page, ..State::new() };
        parts.pages(next_page, |page, _| {
            state.free.insert(page);
            Ok(())
        })?;
        parts.slots(|slot, parts| {
            let bodies = parts.bodies()?;
            state.undo.replace(slot, 0, &bodies);
            if bodies.is_empty() { Err(StateFault::Number) } else { Ok(()) }
        })?;
        parts.pages(next_page, |page, parts| {
            let last = parts.last(at, cleaned)?;
            state.note(page, last);
            Ok(())
        })?;
        parts.ended()?;
        state.mark();
        Ok(state)
    }

    /// Becomes the state where the difference ends, and marks that place.
    ///
    /// # Errors
    /// [`StateFault::Elsewhere`] if the difference does not begin where the state ends and was
    /// marked last; [`StateFault::Number`] if it does not fit the state. Nothing has changed then.
    pub fn apply(&mut self, difference: &Difference<'_>) -> Result<(), StateFault> {
        let Difference { from, at, cleaned, next_page, .. } = *difference;
        if (from, from) != (self.at, self.marked) {
            return Err(StateFault::Elsewhere { from });
        }
        let has = |change: &SlotChange<'_>| change.kept <= self.undo.len(change.slot);
        if cleaned < self.cleaned || next_page < self.next_page || !difference.slots.iter().all(has)
        {
            return Err(StateFault::Number);
        }
        (self.at, self.cleaned, self.next_page) = (at, cleaned, next_page);
        for SlotChange { slot, kept, bodies } in &difference.slots {
            self.undo.replace(*slot, *kept, bodies);
        }
        for PageChange { page, last, is_free } in &difference.pages {
            self.note(*page, *last);
            if *is_free {
                self.free.insert(*page)
            } else {
                self.free.remove(page)
            };
        }
        self.mark();
        Ok(())
    }
}

impl<'a> Difference<'a> {
    /// What [`State::put_difference`] wrote.
    ///
    /// # Errors
    /// See [`StateFault`].
    pub fn parse(bytes: &'a [u8]) -> Result<Difference<'a>, StateFault> {
        let mut parts = Parts::of(DIFFERENCE, bytes)?;
        let from = Rsn(parts.number()?);
        let (at, cleaned, next_page) = parts.head()?;
        let (mut slots, mut pages) = (Vec::new(), Vec::new());
        parts.slots(|slot, parts| {
            let kept = parts.count()?;
            slots.push(SlotChange { slot, kept, bodies: parts.bodies()? });
            Ok(())
        })?;
        parts.pages(next_page, |page, parts| {
            let (last, is_free) = parts.last_and_free(at, from)?;
            pages.push(PageChange { page, last, is_free });
            Ok(())
        })?;
        parts.ended()?;
        Ok(Difference { from, at, cleaned, next_page, slots, pages })
    }

    /// Where it begins.
    #[must_use]
    pub fn from(&self) -> Rsn {
        self.from
    }

    /// Where it ends.
    #[must_use]
    pub fn at(&self) -> Rsn {
        self.at
    }
}

fn put_all<const COUNT: usize>(out: &mut Vec<u8>, numbers: [u64; COUNT]) {
    numbers.into_iter().for_each(|number| varint::put(number, out));
}

/// Pages in ascending order, each with what `each` appends.
fn put_pages(
    pages: impl Iterator<Item = PageNumber>,
    out: &mut Vec<u8>,
    each: impl Fn(PageNumber, &mut Vec<u8>),
) {
    let mut before = 0;
    for page in pages {
        varint::put(page.get() - before, out);
        each(page, out);
        before = page.get();
    }
}

fn put_bodies(stack: &Stack, kept: usize, out: &mut Vec<u8>) {
    let bodies = stack.bodies_above(kept);
    varint::put(bodies.len() as u64, out);
    for body in bodies {
        crate::bodies::put(body, out);
    }
}

/// What is left of the bytes of a state.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn of(form: u8, bytes: &'a [u8]) -> Result<Parts<'a>, StateFault> {
        let (found, rest) = bytes.split_first().ok_or(StateFault::Short)?;
        if *found == form { Ok(Parts(rest)) } else { Err(StateFault::Form(*found)) }
    }

    fn number(&mut self) -> Result<u64, StateFault> {
        varint::take(&mut self.0).ok_or(StateFault::Short)
    }

    /// A number of things, each of which takes a byte at least, or took one elsewhere.
    fn count(&mut self) -> Result<usize, StateFault> {
        usize::try_from(self.number()?).map_err(|_| StateFault::Number)
    }

    /// `at`, `cleaned` and `next_page`.
    fn head(&mut self) -> Result<(Rsn, Rsn, PageNumber), StateFault> {
        let (at, cleaned, next) = (Rsn(self.number()?), Rsn(self.number()?), self.number()?);
        let ordered = Rsn::FIRST <= cleaned && cleaned <= at;
        let fits = ordered && (1..=PAGES_MAX).contains(&next);
        if fits { Ok((at, cleaned, PageNumber(next))) } else { Err(StateFault::Number) }
    }

    /// A count, and so many pages below `next` with what `each` takes.
    fn pages(
        &mut self,
        next: PageNumber,
        mut each: impl FnMut(PageNumber, &mut Parts<'a>) -> Result<(), StateFault>,
    ) -> Result<(), StateFault> {
        let mut before = 0_u64;
        for _ in 0..self.count()? {
            let page = before.checked_add(self.number()?).ok_or(StateFault::Number)?;
            if page == before || page >= next.get() {
                return Err(StateFault::Number);
            }
            each(PageNumber(page), self)?;
            before = page;
        }
        Ok(())
    }

    /// A count, and so many slots in order with what `each` takes.
    fn slots(
        &mut self,
        mut each: impl FnMut(Slot, &mut Parts<'a>) -> Result<(), StateFault>,
    ) -> Result<(), StateFault> {
        let mut before = None;
        for _ in 0..self.count()? {
            let slot = u16::try_from(self.number()?).map_err(|_| StateFault::Number)?;
            if before.replace(slot).is_some_and(|before| before >= slot) {
                return Err(StateFault::Number);
            }
            each(Slot(slot), self)?;
        }
        Ok(())
    }

    fn bodies(&mut self) -> Result<Vec<&'a [u8]>, StateFault> {
        let mut bodies = Vec::new();
        for _ in 0..self.count()? {
            bodies.push(crate::bodies::take(&mut self.0).ok_or(StateFault::Short)?);
        }
        Ok(bodies)
    }

    /// A record from `least` to `at`, told by how far it lies behind `at`.
    fn last(&mut self, at: Rsn, least: Rsn) -> Result<Rsn, StateFault> {
        let behind = self.number()?;
        last(at, least, behind)
    }

    fn last_and_free(&mut self, at: Rsn, least: Rsn) -> Result<(Rsn, bool), StateFault> {
        let number = self.number()?;
        Ok((last(at, least, number >> 1)?, number & 1 == 1))
    }

    fn ended(&self) -> Result<(), StateFault> {
        if self.0.is_empty() { Ok(()) } else { Err(StateFault::Length) }
    }
}

fn last(at: Rsn, least: Rsn, behind: u64) -> Result<Rsn, StateFault> {
    let last = at.get().checked_sub(behind).map(Rsn).filter(|last| least <= *last && *last < at);
    last.ok_or(StateFault::Number)
}

#[cfg(test)]
mod tests;
