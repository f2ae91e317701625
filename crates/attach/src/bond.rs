//! What ties a log to its home and to its memory.
//!
//! Promise: two small files beside the log say which home it has and in which memory its newest
//! bytes were; each is the old one or the new one, whole, whatever happens while it is replaced.
//! Never: applies anything, or decides what a log means.
//!
//! Where to look: `badge` is what a home wears, `home` compares it with the log's file about it,
//! `hidden` tells whether the badge can be seen, `region` does the same for memory, `lent` has what
//! a home wore before a run, `note` keeps these files, `boot` says which run of the system this is,
//! `certain` what its clock is worth.

mod badge;
mod boot;
mod certain;
mod common;
mod hidden;
mod home;
pub mod lent;
mod note;
mod region;
#[cfg(test)]
mod tests;

pub use badge::{Badge, Wearer};
pub use boot::now_ns;
pub use certain::UNNOTED_NS;
pub use common::hex;
pub use hidden::refuse_hidden;
pub use home::{
    Bond, Ends, choose, has_note, has_nothing_more, is_complete, note_again, note_complete,
    note_unknown,
};
pub use region::{Loss, RegionNote};

/// The note beside a log that a file of this name has, if it has one.
pub(crate) fn note_in(file: &str) -> Option<&'static str> {
    [home::NAME, region::NAME].into_iter().find(|note| note::name_in(file) == *note)
}
