//! One call to a fake machine, and what it comes to.
//!
//! Promise: errors are the system's numbers.
//! Never: knows the machine.

use rustix::io::Errno;

use super::Effect;

pub(super) type Outcome<T> = Result<T, Errno>;

/// One call that is being served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Which operation it is; calls that change nothing share the number of the one before.
    pub(super) number: u64,
    /// The power fails during it.
    pub(super) cut: bool,
    /// A fault that the call itself has to bring about.
    pub(super) effect: Option<Effect>,
}
