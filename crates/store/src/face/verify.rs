//! Every page compared with its records, while the store is in use.
//!
//! Promise: a page that is other than its records say is told, in memory and on its device; so is
//! what trees make of them all.
//! Never: repairs; keeps a latch while it compares.

use holdfast_pages::{Checked, CompareError, FaultKind, FetchError, FlushError, PageNumber};

use crate::engine::Engine;
use crate::transaction_error::TransactionError;
use crate::tree::TreeError;
use crate::trees::CheckedTrees;

/// What there is to know of the pages of a store.
#[derive(Debug, Default)]
pub struct Verified {
    /// Pages that there are, free ones included.
    pub pages: u64,
    /// Those in memory, which were compared.
    pub compared: u64,
    /// What is wrong, with which page.
    pub faults: Vec<(PageNumber, VerifyFault)>,
    /// What the trees have, unless a page of theirs is damaged, which is among the faults then.
    pub trees: Option<CheckedTrees>,
}

/// What is wrong with a page.
#[derive(Debug)]
#[non_exhaustive]
pub enum VerifyFault {
    /// In memory it is other than its records say. Open the store anew.
    InMemory(CompareError),
    /// On its device it is not what it should be. It is rebuilt when it is read or cleaned.
    OnDevice(FaultKind),
    /// It is not what its records make of nothing although it is taken for it, or these cannot be
    /// had. Put the archive's runs there from a backup, or restore the store.
    Other(CompareError),
    /// It cannot be had from its device or its records.
    Lost(FetchError),
    /// It is not what its neighbours say.
    InTree(TransactionError),
}

impl Engine {
    /// See [`crate::Store::verify`].
    pub(crate) fn verify(
        &self,
        progress: &mut dyn FnMut(&Verified),
    ) -> Result<Verified, FlushError> {
        let (mut verified, (next, _)) = (Verified::default(), self.numbers.unused());
        for number in (1..next.get()).map(PageNumber) {
            self.verify_page(number, &mut verified)?;
            verified.pages += 1;
            progress(&verified);
        }
        match self.trees().check() {
            Ok(trees) => verified.trees = Some(trees),
            Err(error) => {
                let page = match error {
                    TreeError::Corrupt { page, .. } => page,
                    _ => PageNumber::NONE,
                };
                verified.faults.push((page, VerifyFault::InTree(error.into())));
            }
        }
        Ok(verified)
    }

    fn verify_page(&self, number: PageNumber, verified: &mut Verified) -> Result<(), FlushError> {
        let faults = &mut verified.faults;
        if let Some(page) = self.pool.copy(number) {
            self.stream().flush()?;
            let compared = self.pages.compare(&page);
            faults.extend(compared.err().map(|error| (number, VerifyFault::InMemory(error))));
            verified.compared += 1;
        }
        match self.pages.check(number) {
            Ok(Checked::Sound) => {}
            Ok(Checked::OnDevice(kind)) => faults.push((number, VerifyFault::OnDevice(kind))),
            Ok(Checked::Other(error)) => faults.push((number, VerifyFault::Other(error))),
            Err(error) => faults.push((number, VerifyFault::Lost(error))),
        }
        Ok(())
    }
}
