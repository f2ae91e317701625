//! The machine itself.
//!
//! Promise: each method is the system call that its name says, once.
//! Never: caches, buffers or retries.

mod clock;
mod entropy;
mod files;
mod open_file;

pub use clock::RealClock;
pub use entropy::RealEntropy;
pub use files::RealFiles;
