//! Ghosts go.
//!
//! Promise: a ghost goes only when nobody has a lock on its key or on the gap behind it, so nobody
//! can want it back, or rely on the gap ending there.
//! Never: knows locks: the caller says under the latch which keys are free.

use holdfast_pages::varint;

use super::put::{By, Change, Said, put};
use super::{Seek, Stop, Tree, TreeError};
use crate::body::Body;
use crate::large::{Large, Stored};
use crate::node::Node;
use crate::pool::Below;

impl<B: Below> Tree<'_, B> {
    /// Takes those ghosts out of the leaf of a key that `is_free` says nobody has a lock on, or
    /// waits for one, and what they have elsewhere. Returns how many went.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn purge(
        &self,
        key: &[u8],
        mut is_free: impl FnMut(&[u8]) -> bool,
    ) -> Result<usize, TreeError<B::Error>> {
        let (count, large) = self.again(|| self.purge_leaf(key, &mut is_free))?;
        let freed: Vec<_> = large.into_iter().map(|large| self.free(large)).collect();
        freed.into_iter().collect::<Result<(), _>>()?;
        Ok(count)
    }

    fn purge_leaf(
        &self,
        key: &[u8],
        is_free: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<(usize, Vec<Large>), Stop<B::Error>> {
        let mut leaf = self.descend(Seek::At(key), 0, true)?.0.exclusive();
        let node = self.node(&leaf)?;
        let free = free_ghosts(node, is_free);
        if free.is_empty() {
            return Ok((0, Vec::new()));
        }
        let large = free.iter().filter_map(|place| Stored::large_of(node.entry(*place).value));
        let large = large.collect();
        let (mut places, mut body) = (Vec::new(), Vec::new());
        free.iter().for_each(|place| varint::put(*place as u64, &mut places));
        Body::Purge { places: &places }.put(&mut body);
        let (number, said) = (leaf.number(), Said::Body(By::System, &body));
        put(self.stream, &mut [Change { page: &mut leaf, number, said: &[said] }])?;
        Ok((free.len(), large))
    }
}

/// The places of the ghosts whose keys are free, in order.
fn free_ghosts(node: Node<'_>, is_free: &mut impl FnMut(&[u8]) -> bool) -> Vec<usize> {
    let ghosts = node.entries().enumerate().filter(|(_, entry)| entry.ghost);
    ghosts.map(|(place, _)| place).filter(|place| is_free(&node.key(*place))).collect()
}
