//! A home that was lent to a log which goes with its run: the file `lent` beside that log.
//!
//! Promise: what the home wore before is kept until the home wears it again, over the deaths of
//! any number of runs.
//! Never: gives a home back that is barred.

use super::badge::{Badge, Wearer};
use super::common::{FORMAT, Note, hex};
use super::home::{has_note, has_nothing_more};
use super::note::{get, put};
use holdfast_io::Files;
use holdfast_log::Log;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::AsFd;

/// Name of the file.
const NAME: &str = "lent";

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LentNote {
    pub format: u32,
    /// The badge that the home wore before, if it wore one.
    pub badge: Option<String>,
}

/// Notes what the home wears, before the log gives it a badge of its own.
pub fn note(log: &dyn Files, home: impl AsFd) -> io::Result<()> {
    let badge = Wearer::of(home)?.badge().map(|badge| badge.text());
    put(log, NAME, &LentNote { format: FORMAT, badge })
}

/// Whether the log goes with its run.
pub fn is_lent(log: &dyn Files) -> bool {
    !matches!(get::<LentNote>(log, NAME), Ok(Note::Missing))
}

/// Whether a log of which no memory is left is of no use any more: it has nothing that a home
/// lacks, and this home is not its own any more, or not yet.
pub fn is_over(log: &dyn Files, home: impl AsFd) -> io::Result<bool> {
    let is_bound = is_worn(log, &Wearer::of(home)?);
    Ok(!is_bound && (is_lent(log) || !has_note(log)) && has_nothing_more(log))
}

/// Has a home that has all of the log wear what it wore before. One that is another log's by now
/// keeps what it has.
pub fn give_back(log: &dyn Files, home: impl AsFd) -> io::Result<()> {
    let wearer = Wearer::of(home)?;
    match get::<LentNote>(log, NAME)? {
        _ if !is_worn(log, &wearer) => Ok(()),
        Note::Missing => Ok(()),
        Note::Unreadable => Err(io::Error::other(format!("the file \"{NAME}\" is damaged"))),
        Note::Found(_) if wearer.barred_for().is_some() => {
            Err(io::Error::other("the log may have what the home lacks"))
        }
        Note::Found(note) => wearer.wear_again(note.badge.as_deref().and_then(Badge::parse)),
    }
}

fn is_worn(log: &dyn Files, wearer: &Wearer) -> bool {
    let identity = Log::identity_of(log).ok().map(hex);
    wearer.badge().is_some_and(|badge| Some(badge.identity) == identity)
}
