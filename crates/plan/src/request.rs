//! One request of a simulated database.
//!
//! Promise: a page, and what is done to it.
//! Never: says when.

/// One access to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The page, from 0.
    pub page: u32,
    /// Whether it is changed.
    pub is_write: bool,
}
