//! How soon a window is to be done.
//!
//! Promise: what nobody waits for leaves the disk to a drain, as soon as that needs it.
//! Never: delays whoever waits.

use std::sync::atomic::AtomicBool;

/// The pace of one window.
#[derive(Clone, Copy)]
pub(crate) enum Pace<'a> {
    /// Somebody waits.
    Full,
    /// Nobody waits until this says so.
    Beside(&'a AtomicBool),
}
