//! What can be told only from inside: FORMAT.md and the code say the same, and what a death after
//! any single store leaves.

mod cache;
mod format;
mod home;
mod recorded;
mod stores;
