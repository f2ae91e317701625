//! What can go wrong.
//!
//! Promise: the message says what was being done and what went wrong.
//! Never: decides anything; a run stops at its first error.

use std::io;

/// A run that could not go on, or a row that is gone.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {cause}")]
pub struct GuestError {
    doing: String,
    cause: String,
}

impl GuestError {
    /// An error met while `doing` something, with its cause in words.
    pub(crate) fn new(doing: impl Into<String>, cause: impl Into<String>) -> GuestError {
        GuestError { doing: doing.into(), cause: cause.into() }
    }
}

/// Names the step that an input or output error interrupted.
pub(crate) trait During<T> {
    /// Turns the error into a [`GuestError`] that says what was being done.
    fn during(self, doing: &str) -> Result<T, GuestError>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, doing: &str) -> Result<T, GuestError> {
        self.map_err(|error| GuestError::new(doing, error.to_string()))
    }
}
