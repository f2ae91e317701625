//! The front end as the kernel and as programs see it. Real mounts: needs root and `/dev/fuse`.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod answers;
mod files;
mod kills;
mod memory_tree;
mod mounted;
#[allow(unsafe_code)]
mod raw;
