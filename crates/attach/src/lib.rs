//! What a log knows of its home and its memory, and what an attachment comes to.
//!
//! Promise: a log is brought together with no home and no memory but its own, as it was left. What
//! refuses an attachment is found before anything is changed, and says what to do.
//! Never: serves anybody, or starts a process.
//!
//! Where to look: `bond` ties a log to its home and memory; `foreseen` says what an attachment
//! would find, and refuse; `homes` and `users` look at what is in a home and who uses it, `barrier`
//! at whether others were let into it; `home` is one that was opened, `logs` has what every process
//! that opens a log does alike. `observe` looks into a region from outside, `made` and `stuck` into
//! a log's directory, `whereabouts` at that of a log that is served. `remedy` has commands that
//! messages name.

#![deny(unsafe_code)]

pub mod barrier;
pub mod bond;
pub mod foreseen;
pub mod home;
pub mod homes;
pub mod logs;
pub mod made;
pub mod observe;
pub mod remedy;
pub mod stuck;
pub mod users;
pub mod whereabouts;
