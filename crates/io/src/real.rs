//! The machine itself.
//!
//! Promise: each method is the system call that its name says, once.
//! Never: caches, buffers or retries; a lock alone is tried for a moment.

mod clock;
mod device;
mod entropy;
mod files;
mod held;
mod limits;
mod lock;
mod open_file;
#[allow(unsafe_code)]
mod raw;
mod xattr;

pub use clock::RealClock;
pub use entropy::RealEntropy;
pub use files::{RealFiles, RootMode, SHADOWED};
pub use lock::{DirectoryLock, MadeDirectories};
pub use open_file::file_from_fd;
