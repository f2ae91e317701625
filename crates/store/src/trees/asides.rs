//! Changes of running transactions, in pages of their own.
//!
//! Promise: changes lie in pages before a record says that they do, and are told whole in a record
//! before the pages are free. A crash between leaves pages that nobody reaches.
//! Never: undoes a change; has more of a transaction in memory than was put aside at once.

use holdfast_pages::{Slot, What};

use super::{NAMES_ROOT, Trees};
use crate::locks::names::Name;
use crate::node::aside::{Aside, Opened, put_parts};
use crate::pool::Below;
use crate::tree::{Tree, TreeError};

/// Bytes of a record besides the bodies that it tells.
const RECORD_BYTES: u64 = 64;

impl<B: Below> Trees<'_, B> {
    /// See [`crate::restart::rollback::Undoer::put_aside`].
    pub(super) fn lay_aside(
        &self,
        slot: Slot,
        count: u64,
        told: &[u8],
    ) -> Result<Aside, TreeError<B::Error>> {
        let aside = self.store_aside(told)?;
        let mut body = Vec::new();
        put_parts(Some(aside), std::iter::empty(), &mut body);
        self.retell(slot, count, &body).inspect_err(|_| self.free_one(aside))?;
        Ok(aside)
    }

    /// See [`crate::restart::rollback::Undoer::bring_back`].
    pub(super) fn fetch_aside(
        &self,
        slot: Slot,
        aside: Aside,
    ) -> Result<Vec<u8>, TreeError<B::Error>> {
        let told = self.asides().load_large(aside.large)?;
        let told = self.shortened(told)?;
        self.retell(slot, 1, &told)?;
        self.free_one(aside);
        Ok(told)
    }

    /// Shows the changes that lie there, the newest first.
    pub(crate) fn each_aside<E: From<TreeError<B::Error>>>(
        &self,
        aside: Aside,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut next = Some(aside);
        while let Some(aside) = next {
            let told = self.asides().load_large(aside.large)?;
            let opened = Opened::of(&told).map_err(TreeError::from)?;
            opened.bodies.iter().rev().try_for_each(|body| each(body))?;
            next = opened.older;
        }
        Ok(())
    }

    /// The names of what a body is about that a transaction has to undo.
    pub(crate) fn names_of(
        &self,
        body: &[u8],
        each: &mut dyn FnMut(Name),
    ) -> Result<(), TreeError<B::Error>> {
        let mut name = |body: &[u8]| {
            each(Name::of_change(body)?);
            Ok(())
        };
        match Aside::parse(body)? {
            Some(aside) => self.each_aside(aside, name),
            None => name(body),
        }
    }

    /// Frees the pages of changes that nobody will undo. What cannot be freed is nobody's.
    pub(crate) fn free_aside(&self, aside: Aside) {
        let mut next = Some(aside);
        while let Some(aside) = next {
            let told = self.asides().load_large(aside.large);
            let opened = told.ok().and_then(|told| Opened::of(&told).ok()?.older);
            self.free_one(aside);
            next = opened;
        }
    }

    /// What comes back, if it is not longer than what a record has room for; else the older of it
    /// are put aside again, alone.
    fn shortened(&self, told: Vec<u8>) -> Result<Vec<u8>, TreeError<B::Error>> {
        let room = self.stream.group_bytes_max() - RECORD_BYTES;
        if told.len() as u64 <= room {
            return Ok(told);
        }
        let opened = Opened::of(&told)?;
        let (mut newer, mut left) = (opened.bodies.len(), room / 2);
        while newer > 0 && (left == room / 2 || opened.bodies[newer - 1].len() as u64 <= left) {
            newer -= 1;
            left = left.saturating_sub(opened.bodies[newer].len() as u64);
        }
        let (older, newer) = opened.bodies.split_at(newer);
        let mut bytes = Vec::new();
        put_parts(opened.older, older.iter().copied(), &mut bytes);
        let older = self.store_aside(&bytes)?;
        bytes.clear();
        put_parts(Some(older), newer.iter().copied(), &mut bytes);
        Ok(bytes)
    }

    fn store_aside(&self, told: &[u8]) -> Result<Aside, TreeError<B::Error>> {
        let changes = Opened::of(told)?.changes();
        Ok(Aside { changes, large: self.asides().store_large(told)? })
    }

    fn retell(&self, slot: Slot, count: u64, bodies: &[u8]) -> Result<(), TreeError<B::Error>> {
        let what = What::Retold { slot, count, bodies };
        let put = self.stream.append(&mut |group| {
            group.put(&what);
        });
        put.map(drop).map_err(TreeError::Stage)
    }

    /// Frees pages that no record tells of any more. A snapshot reads them while it is taken, and
    /// not afterwards. Where they cannot be freed they are nobody's.
    fn free_one(&self, aside: Aside) {
        let (pages, large) = (self.asides(), aside.large);
        let is_read = self.formers.are_being_taken();
        let _ = if is_read { pages.free(large) } else { pages.free_now(large) };
    }

    fn asides(&self) -> Tree<'_, B> {
        self.tree(NAMES_ROOT)
    }
}
