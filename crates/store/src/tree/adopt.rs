//! A parent gets to know a foster child.
//!
//! Promise: the child is reached from above or from its left neighbour, at every moment.
//! Never: waits for the left neighbour; who is busy is adopted later.

use super::put::{By, Change, Said, put};
use super::stop::{Stop, corrupt};
use super::{Seek, Tree};
use crate::node::body::Body;
use crate::node::node_change::child_value;
use crate::pool::Below;

impl<B: Below> Tree<'_, B> {
    /// Lets the parent above this level have the foster child that is next to where `key` is. If
    /// the parent is full it gets room instead, for next time.
    pub(super) fn adopt(&self, key: &[u8], level: u8) -> Result<(), Stop<B::Error>> {
        let Some(mut parent) = self.parent(key, level)? else { return Ok(()) };
        let node = self.node(&parent)?;
        let place = Seek::At(key).child_place(node).map_err(|why| corrupt(&parent, why))?;
        let number = node.child(place).map_err(|why| corrupt(&parent, why))?;
        let Some(mut child) = self.pool.try_write(number) else { return Ok(()) };
        let Some(foster) = self.node(&child)?.shape().foster else { return Ok(()) };
        if !node.fits(foster.key, child_value(foster.page).len()) {
            drop(child);
            return self.make_room(&mut parent, key);
        }
        let (mut above, mut below) = (Vec::new(), Vec::new());
        Body::AdoptParent { place: place + 1, page: foster.page, key: foster.key }.put(&mut above);
        Body::AdoptChild.put(&mut below);
        let at = parent.number();
        put(
            self.stream,
            &mut [
                Change { page: &mut parent, number: at, said: &[Said::Body(By::System, &above)] },
                Change { page: &mut child, number, said: &[Said::Body(By::System, &below)] },
            ],
        )?;
        Ok(())
    }
}
