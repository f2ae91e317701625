//! Keys as they were where a snapshot stands.
//!
//! Promise: what a leaf had of a key there is found under the latch of the leaf that has it now.
//! Never: locks a key, or keeps a latch from one leaf to the next.

use holdfast_pages::Rsn;

use super::stop::TreeError;
use super::{LeafEnd, Seek, Seen, Tree};
use crate::pool::Below;
use crate::snapshot::former::Former;
use crate::snapshot::formers::Reader;

impl<B: Below> Tree<'_, B> {
    /// What the leaf of a key had of it where a snapshot stands, unless that is over by now.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn get_as_of(
        &self,
        key: &[u8],
        reader: &Reader,
    ) -> Result<Former, TreeError<B::Error>> {
        self.again(|| {
            let (leaf, _) = self.descend(Seek::At(key), 0, false)?;
            let now = Former::in_node(self.node(&leaf)?, key);
            Ok(self.formers.as_of(reader, (self.root, key), leaf.rsn(), now))
        })
    }

    /// Shows what one leaf had where a snapshot stands, as [`Tree::leaf`] shows what it has.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn leaf_as_of(
        &self,
        from: Seek<'_>,
        reader: &Reader,
        mut each: impl FnMut(&[u8], Former) -> bool,
    ) -> Result<LeafEnd, TreeError<B::Error>> {
        let last = std::cell::Cell::new(Rsn::NONE);
        self.leaf_from(
            from,
            |leaf| last.set(leaf.rsn()),
            |seen| {
                let Seen::Key { key, value, ghost } = seen else { return true };
                let now = Former::of_entry(value, ghost);
                each(key, self.formers.as_of(reader, (self.root, key), last.get(), now))
            },
        )
    }
}
