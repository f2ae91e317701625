//! What can go wrong in a demonstration.
//!
//! Promise: the message says what was being done, what went wrong and, where it helps, what to do.
//! Never: decides anything; a demonstration stops at its first error.

use std::io;

/// A demonstration that could not go on. Nothing it made is left behind; run it again once the
/// cause is removed.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {cause}")]
pub(crate) struct DemoError {
    doing: String,
    cause: String,
}

impl DemoError {
    /// An error met while `doing` something, with its cause in words.
    pub(crate) fn new(doing: impl Into<String>, cause: impl Into<String>) -> DemoError {
        DemoError { doing: doing.into(), cause: cause.into() }
    }
}

/// Names the step that an input or output error interrupted.
pub(crate) trait During<T> {
    /// Turns the error into a [`DemoError`] that says what was being done.
    fn during(self, doing: impl FnOnce() -> String) -> Result<T, DemoError>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, doing: impl FnOnce() -> String) -> Result<T, DemoError> {
        self.map_err(|error| DemoError::new(doing(), error.to_string()))
    }
}
