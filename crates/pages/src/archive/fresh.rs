//! Fresh records: those that no run of the archive has yet.
//!
//! Promise: each record from the archive's end to what was pushed last is found by its place, and
//! the records of a page by one another; a clone costs a reference count, and stays as it is
//! whatever happens to the original.
//! Never: reads the log, or takes bytes that nobody has parsed.
//!
//! Nothing is indexed. A record says how far back the page's record before it stands, so whoever
//! knows the newest one finds all.

mod reused;

use std::sync::Arc;

use crate::stream::frame_index::FramePlace;
use crate::stream::record::{Record, Records, parse};
use crate::stream::rsn::{PageNumber, Rsn};
use reused::{CHUNK_BYTES_MAX, Reused};

/// Records that follow one another, from [`Fresh::begin`] to [`Fresh::end`].
#[derive(Clone, Debug)]
pub struct Fresh {
    begin: Rsn,
    end: Rsn,
    chunks: Arc<Vec<Arc<Chunk>>>,
    reused: Arc<Reused>,
}

/// Whole frames, one after the other.
#[derive(Debug)]
struct Chunk {
    first: Rsn,
    bytes: Vec<u8>,
    frames: Vec<FramePlace>,
    /// Where its memory goes.
    reused: Arc<Reused>,
}

/// A record that its page's next record leads to is not there, or is another page's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenChain {
    /// The page.
    pub page: PageNumber,
    /// Where its record should stand.
    pub rsn: Rsn,
}

impl Fresh {
    /// No records; the first one that is pushed stands at `begin`.
    #[must_use]
    pub fn new(begin: Rsn) -> Fresh {
        Fresh { begin, end: begin, chunks: Arc::default(), reused: Arc::default() }
    }

    /// Where the first record stands; those before it are in the archive.
    #[must_use]
    pub fn begin(&self) -> Rsn {
        self.begin
    }

    /// Where the first record behind all of these will stand.
    #[must_use]
    pub fn end(&self) -> Rsn {
        self.end
    }

    /// Adds the records of these frames, which have been parsed.
    ///
    /// # Panics
    /// If they do not follow those that are here, or are not the bytes of these frames.
    pub fn push(&mut self, bytes: &[u8], frames: &[FramePlace]) {
        let (Some(first), Some(last)) = (frames.first(), frames.last()) else {
            assert!(bytes.is_empty(), "records come in frames");
            return;
        };
        assert!(first.first == self.end, "fresh records follow one another");
        assert!(
            last.end.since(first.first) == bytes.len() as u64,
            "frames are as long as they say"
        );
        let chunks = Arc::make_mut(&mut self.chunks);
        let mut chunk = take_last(chunks, first.first, bytes.len(), &self.reused);
        chunk.bytes.extend_from_slice(bytes);
        chunk.frames.extend_from_slice(frames);
        // As in a binary counter: no byte moves more often than its chunk doubles.
        while let Some(before) = chunks.pop_if(|before| before.takes(&chunk)) {
            chunk = before.joined(&chunk);
        }
        chunks.push(Arc::new(chunk));
        self.end = last.end;
    }

    /// Forgets the records before this place, which the archive has.
    ///
    /// # Panics
    /// If that is behind the last of them.
    pub fn forget_below(&mut self, upto: Rsn) {
        assert!(upto <= self.end, "what the archive has was fresh once");
        self.begin = self.begin.max(upto);
        let passed = self.chunks.partition_point(|chunk| chunk.end() <= self.begin);
        if passed > 0 {
            Arc::make_mut(&mut self.chunks).drain(..passed);
        }
    }

    /// The record that stands here, if it is fresh. If none stands here this is none, or anything:
    /// ask for places that a record or a page told.
    #[must_use]
    pub fn record(&self, rsn: Rsn) -> Option<Record<'_>> {
        if rsn < self.begin {
            return None;
        }
        let chunk = self.chunks.get(self.chunks.partition_point(|chunk| chunk.end() <= rsn))?;
        parse(rsn, &chunk.bytes[rsn.since(chunk.first) as usize..]).ok()
    }

    /// The records of a page, the newest first, from the one at `newest` down to the first that is
    /// fresh. The one before that stands where its [`crate::PageLink::before`] says.
    ///
    /// # Errors
    /// The iterator ends with a [`BrokenChain`] where there is one.
    #[must_use]
    pub fn history(&self, page: PageNumber, newest: Rsn) -> History<'_> {
        History { fresh: self, page, next: newest }
    }

    /// The records from `from` to `upto`, in order; both are places of records, or the end.
    pub fn records(&self, from: Rsn, upto: Rsn) -> impl Iterator<Item = Record<'_>> {
        let first = self.chunks.partition_point(|chunk| chunk.end() <= from);
        let chunks = self.chunks[first..].iter();
        chunks
            .take_while(move |chunk| chunk.first < upto)
            .flat_map(move |chunk| chunk.records(from.max(self.begin), upto))
    }

    /// The last frame.
    #[must_use]
    pub fn newest_frame(&self) -> Option<&FramePlace> {
        self.chunks.last()?.frames.last()
    }

    /// The bytes of a record that stands at `rsn` and has so many.
    ///
    /// # Panics
    /// If there is no such record.
    #[must_use]
    pub fn bytes_of(&self, rsn: Rsn, bytes: usize) -> &[u8] {
        let chunk = &self.chunks[self.chunks.partition_point(|chunk| chunk.end() <= rsn)];
        let from = rsn.since(chunk.first) as usize;
        &chunk.bytes[from..from + bytes]
    }

    /// The frames that begin at `from` or behind it, and before `upto`, in order.
    pub fn frames(&self, from: Rsn, upto: Rsn) -> impl Iterator<Item = &FramePlace> {
        let from = from.max(self.begin);
        let frames = self.chunks.iter().flat_map(|chunk| &chunk.frames);
        frames.skip_while(move |frame| frame.first < from).take_while(move |f| f.first < upto)
    }
}

impl Chunk {
    fn has_room(&self, bytes: usize) -> bool {
        self.bytes.len() + bytes <= CHUNK_BYTES_MAX
    }

    fn end(&self) -> Rsn {
        self.first.advance(self.bytes.len() as u64)
    }

    /// Whether `next` is put behind this one rather than beside it.
    fn takes(&self, next: &Chunk) -> bool {
        self.bytes.len() <= next.bytes.len() && self.has_room(next.bytes.len())
    }

    fn joined(&self, next: &Chunk) -> Chunk {
        Chunk {
            first: self.first,
            bytes: [&self.bytes[..], &next.bytes].concat(),
            frames: [&self.frames[..], &next.frames].concat(),
            reused: Arc::clone(&self.reused),
        }
    }

    fn records(&self, from: Rsn, upto: Rsn) -> impl Iterator<Item = Record<'_>> {
        let first = from.max(self.first);
        let last = upto.min(self.end());
        let bytes = &self.bytes[first.since(self.first) as usize..last.since(self.first) as usize];
        Records::new(first, bytes).map(|record| record.expect("what is fresh was parsed before"))
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.reused.keep(std::mem::take(&mut self.bytes));
    }
}

/// Takes off the last chunk, to put so many bytes behind its own; or, if a clone has it or it is
/// full, begins one at `first`.
fn take_last(
    chunks: &mut Vec<Arc<Chunk>>,
    first: Rsn,
    bytes: usize,
    reused: &Arc<Reused>,
) -> Chunk {
    let is_full = chunks.last().is_none_or(|last| !last.has_room(bytes));
    let own = chunks.pop_if(|last| !is_full && Arc::get_mut(last).is_some());
    own.and_then(Arc::into_inner).unwrap_or_else(|| {
        // What comes behind a full one is going to be full, and does not have to move for it.
        let memory = if is_full { reused.take() } else { Vec::new() };
        Chunk { first, bytes: memory, frames: Vec::new(), reused: Arc::clone(reused) }
    })
}

/// See [`Fresh::history`].
#[derive(Clone, Debug)]
pub struct History<'a> {
    fresh: &'a Fresh,
    page: PageNumber,
    next: Rsn,
}

impl<'a> Iterator for History<'a> {
    type Item = Result<Record<'a>, BrokenChain>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next < self.fresh.begin || self.next == Rsn::NONE {
            return None;
        }
        let rsn = std::mem::take(&mut self.next);
        let record = self.fresh.record(rsn).and_then(|record| Some((record, record.what.link()?)));
        let Some((record, link)) = record.filter(|(_, link)| link.page == self.page) else {
            return Some(Err(BrokenChain { page: self.page, rsn }));
        };
        self.next = link.before;
        Some(Ok(record))
    }
}

#[cfg(test)]
mod tests;
