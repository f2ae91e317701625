//! Values that are too large for a leaf come, are read, and go.
//!
//! Promise: the pages of a value begin before a leaf says where it is, and are freed after none
//! does, as soon as there is room for that; in between they do not change. A crash between leaves
//! pages that nobody reaches, which a check of all trees tells.
//! Never: asks whether somebody still reads a value that it frees: its key was locked.

use std::borrow::Cow;

use holdfast_pages::{FlushError, PageKind, PageNumber, Unfit};

use super::put::{Change, Said, put};
use super::stop::{Stop, TreeError, corrupt};
use super::{FLUSH_EVERY_BYTES, Tree};
use crate::node::contents::put_large_image;
use crate::node::large::{LARGE_PAGE_BYTES, LARGE_VALUE_BYTES_MAX, Large, Part, Stored, plain};
use crate::pool::latches;
use crate::pool::unfreed::{PutOff, UNFREED_PAGES_MAX};
use crate::pool::{Below, WriteLatch};

impl<B: Below> Tree<'_, B> {
    /// What a leaf says of a value. If that is too large to lie there it gets pages of its own,
    /// which are nobody's until a leaf says so.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn store<'v>(&self, value: &'v [u8]) -> Result<Cow<'v, [u8]>, TreeError<B::Error>> {
        if let Some(stored) = plain(value) {
            return Ok(stored);
        }
        Ok(Cow::Owned(self.store_large(value)?.stored()))
    }

    /// Gives bytes pages of their own, which are nobody's until somebody says so.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn store_large(&self, value: &[u8]) -> Result<Large, TreeError<B::Error>> {
        if value.len() > LARGE_VALUE_BYTES_MAX {
            return Err(TreeError::ValueTooLarge);
        }
        let (mut first, mut rest, mut unflushed_bytes) = (PageNumber::NONE, value, 0);
        while !rest.is_empty() {
            // From the end, so that each page knows the one behind it.
            let (before, bytes) =
                rest.split_at((rest.len() - 1) / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES);
            let part = Part { next: first, bytes };
            unflushed_bytes += bytes.len();
            let begun = self.flush_if_many(&mut unflushed_bytes);
            let begun = begun.and_then(|()| self.again(|| self.begin_part(part)));
            let behind = Large { bytes: value.len() - rest.len(), first };
            first = begun.inspect_err(|_| self.leave(behind))?;
            rest = before;
        }
        Ok(Large { bytes: value.len(), first })
    }

    /// Hands what was put to the log, if that is much: else it would all wait in memory.
    fn flush_if_many(&self, unflushed_bytes: &mut usize) -> Result<(), TreeError<B::Error>> {
        if *unflushed_bytes >= FLUSH_EVERY_BYTES {
            latches::may_wait();
            self.stream.flush().map_err(TreeError::Flush)?;
            *unflushed_bytes = 0;
        }
        Ok(())
    }

    /// The value that a leaf says this of. Its key has been locked since.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn load(&self, stored: &[u8]) -> Result<Vec<u8>, TreeError<B::Error>> {
        let lost = |why| TreeError::Corrupt { page: self.root, why };
        match Stored::of(stored).map_err(lost)? {
            Stored::Plain(value) => Ok(value.to_vec()),
            Stored::Large(large) => self.load_large(large),
        }
    }

    /// The bytes that have these pages.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn load_large(&self, large: Large) -> Result<Vec<u8>, TreeError<B::Error>> {
        let mut value = Vec::with_capacity(large.bytes);
        self.each_part(large, |_, part| value.extend_from_slice(part.bytes))?;
        Ok(value)
    }

    /// Frees the pages of a value that no leaf tells of any more, or has them freed when no
    /// snapshot shows it any more.
    ///
    /// # Errors
    /// See [`TreeError`]; the pages that are left are nobody's. For want of room they are put off.
    pub(crate) fn free(&self, large: Large) -> Result<(), TreeError<B::Error>> {
        let pages = self.put_off_of(large);
        if !self.formers.keep(pages, large.bytes as u64, || self.stream.next()) {
            self.free_now(large)?;
        }
        self.formers.bound();
        self.relieve(large);
        Ok(())
    }

    /// Takes part in freeing what waits for that, if it is too much. Twice as many pages as the
    /// value has that the caller leaves behind: so it becomes less, however many do that.
    fn relieve(&self, large: Large) {
        if self.numbers.put_off_pages() + self.formers.left_pages() > UNFREED_PAGES_MAX {
            // What cannot be freed waits on.
            let _ = self.free_waiting(2 * large.pages());
        }
    }

    /// Frees pages that wait for it, of any tree, so many at most. Returns how many that were.
    ///
    /// # Errors
    /// As [`Tree::free`].
    pub(crate) fn free_waiting(&self, pages_max: u64) -> Result<u64, TreeError<B::Error>> {
        latches::may_wait();
        let _alone = self.numbers.freeing();
        let mut freed = 0;
        while freed < pages_max {
            let next = self.numbers.take_put_off().or_else(|| self.formers.take_left());
            let Some(next) = next else { break };
            let of = Tree { root: next.tree, ..*self };
            freed += of.free_from(next, pages_max - freed)?;
        }
        Ok(freed)
    }

    fn put_off_of(&self, large: Large) -> PutOff {
        PutOff { tree: self.root, first: large.first, pages: large.pages() }
    }

    /// Shows every page of a value, in order.
    pub(super) fn each_part(
        &self,
        large: Large,
        mut each: impl FnMut(PageNumber, Part<'_>),
    ) -> Result<(), TreeError<B::Error>> {
        let (mut number, mut bytes) = (large.first, 0);
        while bytes < large.bytes {
            (number, bytes) = self.again(|| {
                let page = self.pool.read(number)?;
                let part = Part::of(&page, self.root).map_err(|why| corrupt(&page, why))?;
                let (end, last) = (bytes + part.bytes.len(), part.next == PageNumber::NONE);
                if part.bytes.is_empty() || last != (end == large.bytes) || end > large.bytes {
                    return Err(corrupt(&page, Unfit("a large value has another length")));
                }
                each(number, part);
                Ok((part.next, end))
            })?;
        }
        Ok(())
    }

    fn begin_part(&self, part: Part<'_>) -> Result<PageNumber, Stop<B::Error>> {
        let (number, mut page) = self.begin()?;
        let mut image = Vec::with_capacity(part.bytes.len() + 32);
        put_large_image(self.root, part, &mut image);
        let said = Said::Begin(&image);
        let done = put(self.stream, &mut [Change { page: &mut page, number, said: &[said] }]);
        match done {
            Ok(_) => Ok(number),
            Err(error) => Err(self.take_back(number, page, error)),
        }
    }

    /// Frees what lies elsewhere of a value that no leaf tells of, as nobody could ever see it.
    pub(crate) fn let_stored_go(&self, stored: &[u8]) {
        if let Some(large) = Stored::large_of(stored) {
            self.leave(large);
        }
    }

    /// Frees pages now or later: no leaf tells of them.
    fn leave(&self, large: Large) {
        let _ = self.free_now(large);
    }

    /// Frees the pages of a value that no leaf and no snapshot leads to. What cannot be freed for
    /// want of room is put off.
    pub(crate) fn free_now(&self, large: Large) -> Result<(), TreeError<B::Error>> {
        self.free_from(self.put_off_of(large), u64::MAX).map(drop)
    }

    /// The same, of so many pages at most; the others are put off. Returns how many it freed.
    fn free_from(&self, from: PutOff, pages_max: u64) -> Result<u64, TreeError<B::Error>> {
        let (mut left, mut freed) = (from, 0);
        while left.first != PageNumber::NONE && freed < pages_max {
            let next = self.again(|| self.free_part(left.first));
            if let Err(TreeError::Flush(FlushError::Full(_)) | TreeError::PoolTooSmall) = next {
                self.numbers.put_off(left);
            }
            left = PutOff { first: next?, pages: left.pages.saturating_sub(1), ..left };
            freed += 1;
        }
        if left.first != PageNumber::NONE {
            self.numbers.put_off(left);
        }
        Ok(freed)
    }

    /// Frees one page, and returns the next.
    fn free_part(&self, number: PageNumber) -> Result<PageNumber, Stop<B::Error>> {
        let page = self.pool.write(number)?;
        let part = Part::of(&page, self.root).map_err(|why| corrupt(&page, why))?;
        let next = part.next;
        self.free_latched(number, page)?;
        Ok(next)
    }

    /// Frees a page that nobody reaches, whatever it is. False if it is free.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn free_page(&self, number: PageNumber) -> Result<bool, TreeError<B::Error>> {
        self.again(|| {
            let page = self.pool.write(number)?;
            if page.kind() == Some(PageKind::Free) {
                return Ok(false);
            }
            self.free_latched(number, page)?;
            Ok(true)
        })
    }

    fn free_latched(
        &self,
        number: PageNumber,
        mut page: WriteLatch<'_>,
    ) -> Result<(), Stop<B::Error>> {
        put(self.stream, &mut [Change { page: &mut page, number, said: &[Said::Free] }])?;
        drop(page);
        self.numbers.give_back(number);
        Ok(())
    }
}
