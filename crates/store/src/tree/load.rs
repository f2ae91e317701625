//! Leaves that are made whole, from left to right, in a tree that nobody else has.
//!
//! Promise: after each call the tree has what it was given so far, and is one that anybody could
//! use; a leaf's keys reach the log once, as its image.
//! Never: looks whether the keys are in order, or fit: who calls has.

use holdfast_pages::PageNumber;

use super::put::{By, Change, Said, put};
use super::stop::{Stop, TreeError, corrupt};
use super::{Seek, Tree};
use crate::node::body::Body;
use crate::node::contents::put_image;
use crate::node::node_change::child_value;
use crate::node::{Entry, Shape};
use crate::pool::Below;

/// A key, and what a leaf says of its value.
pub(crate) type Loaded = (Vec<u8>, Vec<u8>);

/// No page has a longer number.
const LAST_PAGE: PageNumber = PageNumber(u32::MAX as u64);

/// What came of a look at the parent of the last leaf.
struct Tried {
    is_done: bool,
    /// The level of a foster child that was passed on the way.
    passed: Option<u8>,
}

impl<B: Below> Tree<'_, B> {
    /// Fills the last leaf, which begins at `low` and has nothing, and begins the next one at
    /// `next`.
    ///
    /// # Errors
    /// See [`TreeError`]; the leaf has nothing then.
    pub(crate) fn fill_leaf(
        &self,
        low: &[u8],
        entries: &[Loaded],
        next: &[u8],
    ) -> Result<(), TreeError<B::Error>> {
        loop {
            let tried = self.again(|| self.try_to_fill(low, entries, next))?;
            let adopt = |level| self.again(|| self.adopt(low, level));
            let adopted = tried.passed.map_or(Ok(()), adopt);
            if tried.is_done {
                // A foster child that was not adopted is by whoever passes it next.
                return Ok(());
            }
            adopted?;
        }
    }

    /// Fills the last leaf, behind which there is none.
    ///
    /// # Errors
    /// See [`TreeError`]; the leaf has nothing then.
    pub(crate) fn fill_last_leaf(
        &self,
        low: &[u8],
        entries: &[Loaded],
    ) -> Result<(), TreeError<B::Error>> {
        self.again(|| {
            let (latch, _) = self.descend(Seek::At(low), 0, true)?;
            let (mut leaf, mut image) = (latch.exclusive(), Vec::new());
            self.image_of(&self.node(&leaf)?.shape(), entries, &mut image);
            let (number, said) = (leaf.number(), &[Said::Image(&image)]);
            put(self.stream, &mut [Change { page: &mut leaf, number, said }])?;
            Ok(())
        })
    }

    /// Fills the leaf if its parent has room for the next one, and else makes some.
    fn try_to_fill(
        &self,
        low: &[u8],
        entries: &[Loaded],
        next: &[u8],
    ) -> Result<Tried, Stop<B::Error>> {
        let (latch, passed) = match self.descend(Seek::At(low), 1, true) {
            Err(Stop::Low) => {
                self.grow(&mut self.pool.write(self.root)?)?;
                return Ok(Tried { is_done: false, passed: None });
            }
            found => found?,
        };
        let mut parent = latch.exclusive();
        let node = self.node(&parent)?;
        if !node.fits(next, child_value(LAST_PAGE).len()) {
            self.make_room(&mut parent, next)?;
            return Ok(Tried { is_done: false, passed });
        }
        let place = Seek::At(low).child_place(node).map_err(|why| corrupt(&parent, why))?;
        let number = node.child(place).map_err(|why| corrupt(&parent, why))?;
        let mut leaf = self.pool.write(number)?;
        let (new, mut right) = self.begin()?;
        let (mut filled, mut empty, mut above) = (Vec::new(), Vec::new(), Vec::new());
        let shape = Shape { level: 0, low, high: Some(next), foster: None };
        self.image_of(&shape, entries, &mut filled);
        self.image_of(&Shape { low: next, high: None, ..shape }, &[], &mut empty);
        Body::AdoptParent { place: place + 1, page: new, key: next }.put(&mut above);
        let at = parent.number();
        let done = put(
            self.stream,
            &mut [
                Change { page: &mut right, number: new, said: &[Said::Begin(&empty)] },
                Change { page: &mut leaf, number, said: &[Said::Image(&filled)] },
                Change { page: &mut parent, number: at, said: &[Said::Body(By::System, &above)] },
            ],
        );
        done.map_err(|error| self.take_back(new, right, error))?;
        Ok(Tried { is_done: true, passed })
    }

    /// The image of a leaf of this shape.
    fn image_of(&self, shape: &Shape<'_>, entries: &[Loaded], into: &mut Vec<u8>) {
        let prefix_bytes = shape.prefix().len();
        let entries = entries.iter().map(|(key, value)| Entry {
            suffix: &key[prefix_bytes..],
            value,
            ghost: false,
        });
        put_image(self.root, shape, entries, into);
    }
}
