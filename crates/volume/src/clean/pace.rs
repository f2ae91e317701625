//! How soon a window is to be done.
//!
//! Promise: what nobody waits for leaves the disk to a drain, as soon as that needs it.
//! Never: delays whoever waits.

/// The pace of one window.
#[derive(Clone, Copy)]
pub(crate) enum Pace<'a> {
    /// Somebody waits.
    Full,
    /// Nobody waits yet: this returns once the disk is free, or somebody does.
    Beside(&'a dyn Fn()),
}

impl Pace<'_> {
    /// Before each thing that may keep the disk.
    pub(crate) fn give_way(self) {
        if let Pace::Beside(wait) = self {
            wait();
        }
    }
}
