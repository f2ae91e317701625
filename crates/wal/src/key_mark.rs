//! By what a sealed log knows its key again.
//!
//! Promise: two keys that differ have marks that differ.
//! Never: tells anything of the key.

/// By what a sealed log knows the key again that it was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyMark {
    pub(crate) id: u32,
    pub(crate) check: [u8; 16],
}
