//! A page that is not what it should be is made again of its records, once, before it is called
//! damaged.
//!
//! Promise: what is thrown away is a copy in memory, all of whose records can be found again.
//! Never: is needed by a tree whose memory is sound: what comes from a device was checked before.

use holdfast_pages::PageNumber;

use super::Tree;
use super::stop::{Doubt, TreeError};
use crate::pool::Below;

impl<B: Below> Tree<'_, B> {
    /// Has the pages of a doubt loaded anew by whoever wants them next. No latch may be held.
    pub(super) fn look_anew(&self, doubt: Doubt) -> Result<(), TreeError<B::Error>> {
        [Some(doubt.page), doubt.above]
            .into_iter()
            .flatten()
            .try_for_each(|page| self.drop_frame(page))
    }

    /// Lets go of a page's frame, once all its records can be found: nobody may have added one
    /// since they were looked for.
    fn drop_frame(&self, number: PageNumber) -> Result<(), TreeError<B::Error>> {
        while let Some(rsn) = self.pool.in_frame(number).map(|latch| latch.rsn()) {
            self.flush()?;
            self.pool.below.settle().map_err(TreeError::Below)?;
            let latch = self.pool.in_frame(number);
            if let Some(latch) = latch.filter(|latch| latch.rsn() == rsn) {
                self.pool.throw_away(latch);
                break;
            }
        }
        Ok(())
    }
}
