//! How far the log is released and durable, as it goes into the catalogue.
//!
//! Others move both meanwhile: a commit what is durable, then a checkpoint what is released, up to
//! what it has seen to be durable.
//!
//! Promise: of what is read together no more is released than durable, and so it is with what is
//! written, by however many threads: who writes reads in his turn.
//! Never: knows a file.

use holdfast_core::Lsn;

use crate::orderings::{LOOKED_AT_IN_TURN, MARKED_SEE, MARKED_TELL, RELEASED_FIRST};
use crate::sync::{AtomicU64, Mutex};

/// The marks that decide what can be recycled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    pub(crate) released: Lsn,
    pub(crate) durable: Lsn,
    pub(crate) generation: u32,
}

impl Needs {
    /// What the catalogue says with these marks that said `first` before. That stays where it is
    /// while its new place is not listed.
    pub(crate) fn begin(self, first: Lsn, is_listed: bool) -> Lsn {
        if is_listed { first.max(self.released) } else { first }
    }
}

/// Says that the reader is done with what lies below `released`, which was durable when it looked.
pub(crate) fn tell_marked(marked: &AtomicU64, released: Lsn) {
    // EDGE marked: the durable mark was looked at before.
    marked.fetch_max(released.get(), MARKED_TELL);
}

/// The reader's mark, and what is seen after it: no less is durable there.
pub(crate) fn see_marked<T>(marked: &AtomicU64, look: impl Fn() -> T) -> (Lsn, T) {
    let early = (!RELEASED_FIRST).then(&look);
    // EDGE marked: whoever sees the mark sees the durable mark that allowed it.
    let released = Lsn(marked.load(MARKED_SEE));
    (released, early.unwrap_or_else(look))
}

/// What one thread at a time writes.
pub(crate) struct InTurn<T>(Mutex<T>);

impl<T> InTurn<T> {
    pub(crate) fn new(own: T) -> InTurn<T> {
        InTurn(Mutex::new(own))
    }

    /// Writes what is to be seen when it is this thread's turn. With what was seen before, less
    /// could be written as durable than another thread has written as released meanwhile.
    pub(crate) fn write<N, R>(
        &self,
        look: impl Fn() -> N,
        write: impl FnOnce(&mut T, N) -> R,
    ) -> R {
        let early = (!LOOKED_AT_IN_TURN).then(&look);
        let mut own = self.0.lock().expect("nobody panics while he writes");
        write(&mut own, early.unwrap_or_else(look))
    }
}
