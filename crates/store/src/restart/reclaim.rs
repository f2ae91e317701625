//! Pages that no tree leads to become free.
//!
//! Promise: what is freed is nobody's and will be nobody's: nothing is left to be undone, every
//! transaction that has changed something has ended, and all trees were walked through, whole.
//! Never: is called while somebody else uses the store; frees anything if a tree is damaged.

use holdfast_pages::canary::{Invariant, holds};
use holdfast_pages::{FetchError, PageNumber};

use crate::engine::Engine;
use crate::error::ReclaimError;
use crate::tree::TreeError;
use crate::trees::NAMES_ROOT;

impl Engine {
    /// See [`crate::Store::reclaim`].
    pub(crate) fn reclaim(&self) -> Result<u64, ReclaimError> {
        if holds(Invariant::NobodyNeedsWhatIsReclaimed) {
            self.undo_whole()?;
        }
        let found = self.trees().check().map_err(|error| ReclaimError::Tree(error.into()))?;
        let mut freed = 0;
        for number in found.unreached {
            let was_used = self.free_unreached(number);
            freed += u64::from(was_used.map_err(|error| ReclaimError::Free(error.into()))?);
        }
        Ok(freed)
    }

    /// Undoes all that is left to be undone, and makes sure that nobody has more.
    pub(crate) fn undo_whole(&self) -> Result<(), ReclaimError> {
        while self.undo().map_err(|error| ReclaimError::Undo(error.into()))? {}
        let mut is_running = false;
        self.locks.survey(|_, _| is_running = true);
        if is_running { Err(ReclaimError::Running) } else { Ok(()) }
    }

    /// Frees a page, or its number alone if nothing has begun with that. True if it was a page.
    fn free_unreached(&self, number: PageNumber) -> Result<bool, TreeError<FetchError>> {
        let freed = match self.trees().tree(NAMES_ROOT).free_page(number) {
            Err(TreeError::Below(FetchError::NoSuchPage(_))) => false,
            freed => freed?,
        };
        if !freed {
            self.numbers.give_back(number);
        }
        Ok(freed)
    }
}

#[cfg(test)]
mod tests;
