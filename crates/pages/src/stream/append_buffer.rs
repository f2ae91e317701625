//! Where records get their places, before the log has them.
//!
//! Promise: records stand in the stream in the order in which they were put; what is taken is a
//! prefix of it without a hole, which ends where a group does.
//! Never: waits for the log, or for anybody but who puts a group this moment.

use std::sync::{Mutex, MutexGuard};

use crate::stream::record::What;
use crate::stream::rsn::Rsn;

/// Records that nobody has taken yet.
pub(crate) struct AppendBuffer {
    staged: Mutex<Staged>,
    /// The most bytes that a group may have.
    group_bytes_max: u64,
}

struct Staged {
    /// Where the next record will stand.
    next: Rsn,
    /// The records before that.
    bytes: Vec<u8>,
    /// Where each group of them ends.
    ends: Vec<Rsn>,
}

/// A group that is being put: records that reach the log together or not at all.
#[derive(Debug)]
pub struct Group<'a> {
    next: Rsn,
    bytes: &'a mut Vec<u8>,
}

impl Group<'_> {
    /// Where the next record will stand.
    #[must_use]
    #[inline]
    pub fn next(&self) -> Rsn {
        self.next
    }

    /// Puts a record behind the others, and returns where it stands.
    ///
    /// # Panics
    /// If it is about a page whose record before it does not stand before it.
    #[inline]
    pub fn put(&mut self, what: &What<'_>) -> Rsn {
        let (rsn, from) = (self.next, self.bytes.len());
        what.put(rsn, self.bytes);
        self.next = rsn.advance((self.bytes.len() - from) as u64);
        rsn
    }
}

/// The group is longer than a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge {
    pub(crate) bytes: u64,
    pub(crate) bytes_max: u64,
}

impl AppendBuffer {
    /// An empty stage whose first record will stand at `next`.
    pub(crate) fn new(next: Rsn, group_bytes_max: u64) -> AppendBuffer {
        let staged = Staged { next, bytes: Vec::new(), ends: Vec::new() };
        AppendBuffer { staged: Mutex::new(staged), group_bytes_max }
    }

    /// Where the next record will stand.
    pub(crate) fn next(&self) -> Rsn {
        self.lock().next
    }

    /// Puts a group, and returns where it ends. If it is too large nothing of it is put.
    #[inline]
    pub(crate) fn append(&self, write: &mut dyn FnMut(&mut Group<'_>)) -> Result<Rsn, TooLarge> {
        let mut staged = self.lock();
        let (first, from) = (staged.next, staged.bytes.len());
        let mut group = Group { next: first, bytes: &mut staged.bytes };
        write(&mut group);
        let end = group.next;
        let bytes = end.since(first);
        if bytes > self.group_bytes_max {
            staged.bytes.truncate(from);
            return Err(TooLarge { bytes, bytes_max: self.group_bytes_max });
        }
        if end > first {
            staged.next = end;
            staged.ends.push(end);
        }
        Ok(end)
    }

    /// Moves all that was put into `batch`, which is empty.
    pub(crate) fn take(&self, batch: &mut FlushBatch) {
        let mut staged = self.lock();
        batch.at = Rsn(staged.next.get() - staged.bytes.len() as u64);
        std::mem::swap(&mut batch.bytes, &mut staged.bytes);
        std::mem::swap(&mut batch.ends, &mut staged.ends);
    }

    fn lock(&self) -> MutexGuard<'_, Staged> {
        self.staged.lock().expect("nothing panics with the buffer")
    }
}

/// Records that were taken, on their way into frames.
#[derive(Debug, Default)]
pub(crate) struct FlushBatch {
    /// Where the first record stands that is in no frame yet.
    at: Rsn,
    /// How many bytes of records are in a frame already.
    used: usize,
    /// How many groups are.
    groups_used: usize,
    bytes: Vec<u8>,
    ends: Vec<Rsn>,
}

/// Groups that fit into one frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut<'a> {
    /// Where they begin.
    pub(crate) first: Rsn,
    /// Where they end.
    pub(crate) end: Rsn,
    /// Their records.
    pub(crate) bytes: &'a [u8],
    /// How many groups there are.
    pub(crate) groups: usize,
}

impl FlushBatch {
    /// As many groups as fit into a frame, or none if there is nothing left.
    pub(crate) fn cut(&self, bytes_max: u64) -> Option<Cut<'_>> {
        let ends = &self.ends[self.groups_used..];
        let groups = ends.partition_point(|end| end.since(self.at) <= bytes_max);
        assert!(groups > 0 || ends.is_empty(), "a group that is put fits into a frame");
        let end = *ends.get(groups.checked_sub(1)?)?;
        let bytes = &self.bytes[self.used..self.used + end.since(self.at) as usize];
        Some(Cut { first: self.at, end, bytes, groups })
    }

    /// Forgets so many groups, which end at `end`.
    pub(crate) fn pass(&mut self, groups: usize, end: Rsn) {
        self.used += end.since(self.at) as usize;
        self.groups_used += groups;
        self.at = end;
        if self.groups_used == self.ends.len() {
            self.bytes.clear();
            self.ends.clear();
            (self.used, self.groups_used) = (0, 0);
        }
    }

    /// Whether there is nothing left.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

#[cfg(test)]
mod tests;
