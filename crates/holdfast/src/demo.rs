//! Demonstrations: a real database on a Holdfast volume, measured and killed.
//!
//! Promise: a demonstration prints what it measured, says what its acknowledgements meant, and
//! leaves the machine as it found it, however it ends.
//! Never: touches anything outside its own work directory and the folder asked for.

mod cleanup;
mod error;
mod figures;
mod plot;
pub(crate) mod postgres;
mod progress;
mod report;

pub(crate) use error::DemoError;
