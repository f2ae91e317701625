//! Why an operation of a tree stops, for good or until something was done.
//!
//! Promise: what may be the fault of a copy in memory is told from what is damaged.
//! Never: looks at a page again.

use holdfast_pages::{FlushError, Page, PageNumber, StageError, Unfit};

use crate::pool::FixError;

/// Pages that one operation has made again before it gives up: a page, and the one that led there.
pub(super) const DOUBTS_MAX: usize = 2;

/// Why a tree cannot say or do what was asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TreeError<E> {
    /// A page cannot be had.
    Below(E),
    /// A page is not what its neighbours say. Verify the store; what is in other pages is there.
    Corrupt {
        /// The page.
        page: PageNumber,
        /// What is wrong.
        why: Unfit,
    },
    /// The key is longer than [`crate::KEY_BYTES_MAX`]. Use a shorter one.
    KeyTooLarge,
    /// The value is longer than [`crate::VALUE_BYTES_MAX`]. Use a shorter one.
    ValueTooLarge,
    /// No record is put any more; see [`StageError`].
    Stage(StageError),
    /// Records could not be handed to the log, so no page can leave the pool; see [`FlushError`].
    Flush(FlushError),
    /// All frames of the pool are latched. Use a larger pool.
    PoolTooSmall,
}

/// What a transaction has to undo is no change.
impl<E> From<Unfit> for TreeError<E> {
    fn from(why: Unfit) -> TreeError<E> {
        TreeError::Corrupt { page: PageNumber::NONE, why }
    }
}

/// Why a step of an operation stopped.
pub(crate) enum Stop<E> {
    /// For good.
    Error(TreeError<E>),
    /// Until a page is loaded anew; nothing has changed.
    Doubt(Doubt),
    /// Until records are flushed; nothing has changed.
    NoFrame,
    /// The root is of a lower level than the node that was looked for.
    Low,
}

pub(crate) fn corrupt<E>(page: &Page, why: Unfit) -> Stop<E> {
    Stop::Doubt(Doubt { page: page.number(), above: None, why })
}

impl<E> From<FixError<E>> for Stop<E> {
    fn from(error: FixError<E>) -> Stop<E> {
        match error {
            FixError::Below(error) => Stop::Error(TreeError::Below(error)),
            FixError::NoFrame => Stop::NoFrame,
            FixError::NoSuchPage(page) => {
                let why = Unfit("no page has such a number");
                Stop::Doubt(Doubt { page, above: None, why })
            }
        }
    }
}

impl<E> From<StageError> for Stop<E> {
    fn from(error: StageError) -> Stop<E> {
        Stop::Error(TreeError::Stage(error))
    }
}

/// What is not as it should be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt {
    /// The page that is called damaged, if it stays so.
    pub(super) page: PageNumber,
    /// Who led there, if anybody did.
    pub(super) above: Option<PageNumber>,
    pub(super) why: Unfit,
}

impl Doubt {
    pub(super) fn error<E>(self) -> TreeError<E> {
        TreeError::Corrupt { page: self.page, why: self.why }
    }
}

impl<E> Stop<E> {
    /// The same, and that this page led there, which may be wrong itself.
    pub(super) fn led_by(self, above: &Page) -> Stop<E> {
        match self {
            Stop::Doubt(doubt) => Stop::Doubt(Doubt { above: Some(above.number()), ..doubt }),
            stop => stop,
        }
    }
}
