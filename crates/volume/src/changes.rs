//! What programs ask of a volume, a file for each sort of request.
//!
//! Promise: a change is in the log before it is answered; what is told is what the log and the home
//! amount to together.
//! Never: changes the home: the cleaner does.

pub(crate) mod make;
pub(crate) mod read;
pub(crate) mod remove;
pub(crate) mod rename;
pub(crate) mod serve;
pub(crate) mod write;
pub(crate) mod xattr;
