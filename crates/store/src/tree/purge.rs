//! Ghosts go, and leaves that are thin then are drawn together.
//!
//! Promise: a ghost goes only when nobody has a lock on its key or on the gap behind it, so nobody
//! can want it back, or rely on the gap ending there; and when no snapshot shows the key. What
//! could have gone but for that is told to whoever tries again.
//! Never: knows locks: the caller says under the latch which keys are free.

use holdfast_pages::varint;

use super::merge::{is_sparse, is_thinner};
use super::put::{By, Change, Said, put};
use super::stop::{Stop, TreeError};
use super::{Seek, Tree};
use crate::node::Node;
use crate::node::body::Body;
use crate::node::large::{Large, Stored};
use crate::pool::Below;

/// What became of a leaf.
#[derive(Default)]
struct Purged {
    /// So many ghosts went,
    count: usize,
    /// and these values of theirs that lie elsewhere.
    large: Vec<Large>,
    /// Whether the ghost of the key is still there.
    stays: bool,
    /// Whether it is much thinner than it was.
    is_thinner: bool,
    is_sparse: bool,
}

impl<B: Below> Tree<'_, B> {
    /// Takes those ghosts out of the leaf of a key that `is_free` says nobody has a lock on, or
    /// waits for one, and what they have elsewhere; merges the leaf if little is left. Returns how
    /// many ghosts went.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn purge(
        &self,
        key: &[u8],
        mut is_free: impl FnMut(&[u8]) -> bool,
    ) -> Result<usize, TreeError<B::Error>> {
        let purged = self.purge_ghosts(key, &mut is_free)?;
        let mut is_all = !purged.stays;
        if purged.is_thinner {
            is_all &= self.draw_together(key, &mut is_free)?.1;
        }
        if !is_all {
            self.numbers.note_untidy(self.root, key);
        }
        Ok(purged.count)
    }

    /// The same, of a leaf that somebody has noted, however long ago it became thin. Returns
    /// whether something has gone.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn tidy(
        &self,
        key: &[u8],
        mut is_free: impl FnMut(&[u8]) -> bool,
    ) -> Result<bool, TreeError<B::Error>> {
        let purged = self.purge_ghosts(key, &mut is_free)?;
        let (mut merged, mut is_all) = (0, !purged.stays);
        if purged.is_sparse {
            let (count, is_close) = self.draw_together(key, &mut is_free)?;
            (merged, is_all) = (count, is_all && is_close);
        }
        if !is_all {
            self.numbers.note_untidy(self.root, key);
        }
        Ok(purged.count + merged > 0)
    }

    fn purge_ghosts(
        &self,
        key: &[u8],
        is_free: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<Purged, TreeError<B::Error>> {
        let mut purged = self.again(|| self.purge_leaf(key, is_free))?;
        let freed: Vec<_> = purged.large.drain(..).map(|large| self.free(large)).collect();
        freed.into_iter().collect::<Result<(), _>>()?;
        Ok(purged)
    }

    fn purge_leaf(
        &self,
        key: &[u8],
        is_free: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<Purged, Stop<B::Error>> {
        let mut leaf = self.descend(Seek::At(key), 0, true)?.0.exclusive();
        let node = self.node(&leaf)?;
        let mut may_go = |key: &[u8]| is_free(key) && !self.formers.shows(self.root, key);
        let (free, room) = (free_ghosts(node, &mut may_go), node.room());
        let large = free.iter().filter_map(|place| Stored::large_of(node.entry(*place).value));
        let mut purged = Purged { count: free.len(), large: large.collect(), ..Purged::default() };
        if !free.is_empty() {
            // A snapshot that is taken from here on knows nothing of them.
            let are_kept = self.formers.are_wanted();
            let kept = free.iter().filter(|_| are_kept).map(|place| node.key(*place));
            let kept: Vec<_> = kept.collect();
            let (mut places, mut body) = (Vec::new(), Vec::new());
            free.iter().for_each(|place| varint::put(*place as u64, &mut places));
            Body::Purge { places: &places }.put(&mut body);
            let (number, said) = (leaf.number(), Said::Body(By::System, &body));
            put(self.stream, &mut [Change { page: &mut leaf, number, said: &[said] }])?;
            kept.iter().for_each(|key| self.formers.forget(self.root, key));
        }
        let node = self.node(&leaf)?;
        purged.stays = node.find(key).is_ok_and(|place| node.entry(place).ghost);
        (purged.is_thinner, purged.is_sparse) = (is_thinner(room, node), is_sparse(node));
        Ok(purged)
    }
}

/// The places of the ghosts whose keys are free, in order.
fn free_ghosts(node: Node<'_>, is_free: &mut impl FnMut(&[u8]) -> bool) -> Vec<usize> {
    let ghosts = node.entries().enumerate().filter(|(_, entry)| entry.ghost);
    ghosts.map(|(place, _)| place).filter(|place| is_free(&node.key(*place))).collect()
}
