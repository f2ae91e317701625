//! What a disk refuses.
//!
//! Promise: each variant says what the caller can do.
//! Never: decides.

use std::fmt;
use std::io;

/// Why a disk keeps its size.
#[derive(Debug)]
#[non_exhaustive]
pub enum ResizeError {
    /// The home is a device, and has the size it has. Give the volume another home.
    Device,
    /// No file can be as large. Ask for less.
    TooLarge,
    /// The log or the home failed. Whether the size has changed is not known.
    Failed(io::Error),
}

impl fmt::Display for ResizeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResizeError::Device => write!(out, "the home is a device, which cannot be resized"),
            ResizeError::TooLarge => write!(out, "no file can be as large"),
            ResizeError::Failed(error) => write!(out, "{error}"),
        }
    }
}

impl std::error::Error for ResizeError {}
