//! On whose behalf a thread works, and whether he may be kept waiting by it.
//!
//! A tree does not ask who changes it: whoever may is the front end's matter. But what the users of
//! a tree share is given out fairly among them, and a front end has other work
//! for a thread than to wait with it. So a thread says for whom it works, as the kernel knows it of
//! each of its own.
//!
//! Promise: what was said holds for what the thread does meanwhile, and for nothing else.
//! Never: has an effect on what an answer is, except that it may be [`Errno::LATER`].

use std::cell::Cell;

use crate::tree::errno::Errno;

/// What a change does that has to wait: for room in the log, for a file of the home, or until the
/// home can tell how much room it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waits {
    /// It waits.
    #[default]
    InPlace,
    /// It is refused with [`Errno::LATER`]; for want of room in the home only until the home has
    /// what was logged before, and then with what that says.
    ForTheHome,
    /// It is refused with [`Errno::LATER`].
    Never,
    /// It is refused with [`Errno::LATER`], whether there is room or not: others of the same user
    /// are before it.
    Behind,
}

/// Whom a thread works for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asker {
    /// The user; none where nobody has to be told from others, and then he may use all there is.
    pub user: Option<u32>,
    /// Whether he may be kept waiting.
    pub waits: Waits,
}

thread_local! {
    static ASKER: Cell<Asker> = const { Cell::new(Asker { user: None, waits: Waits::InPlace }) };
}

/// Does `work` on behalf of `asker`.
pub fn on_behalf_of<T>(asker: Asker, work: impl FnOnce() -> T) -> T {
    let before = ASKER.replace(asker);
    let done = work();
    ASKER.set(before);
    done
}

/// For whom this thread works.
#[must_use]
pub fn asker() -> Asker {
    ASKER.get()
}

impl Errno {
    /// The change has to wait, and whoever asked for it does not: nothing of it was done, and it
    /// may be asked for again. Said only to whoever said so. The kernel's number for a call that
    /// is to be begun again, which no program sees.
    pub const LATER: Errno = Errno(512);
}
