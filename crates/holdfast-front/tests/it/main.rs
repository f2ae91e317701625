//! The front end as the kernel and as programs see it. Real mounts: needs root and `/dev/fuse`.

mod answers;
mod files;
mod kills;
mod memory_tree;
mod mounted;
