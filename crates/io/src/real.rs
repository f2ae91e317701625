//! The machine itself.
//!
//! Promise: each method is the system call that its name says, once.
//! Never: caches, buffers or retries; a lock alone is tried for a moment.

mod clock;
mod device;
mod entropy;
mod file_systems;
mod files;
mod from_fd;
mod held;
mod limits;
mod lock;
mod open_file;
#[allow(unsafe_code)]
mod raw;
mod root;
mod stat;
mod xattr;

pub use clock::RealClock;
pub use entropy::RealEntropy;
pub use files::{RealFiles, SHADOWED};
pub use from_fd::file_from_fd;
pub use lock::{DirectoryLock, MadeDirectories};
pub use root::RootNotes;
