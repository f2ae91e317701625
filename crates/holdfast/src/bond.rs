//! What ties a log to its home and to its memory.
//!
//! Promise: two small files beside the log say which home it has and in which memory its newest
//! bytes were; each is the old one or the new one, whole, whatever happens while it is replaced.
//! Never: applies anything, or decides what a log means.
//!
//! Where to look: `badge` is what a home wears, `home` compares it with the log's file about it,
//! `region` does the same for memory, `boot` says which run of the system this is,
//! `certain` what its clock is worth.

mod badge;
mod boot;
mod certain;
mod home;
mod region;
#[cfg(test)]
mod tests;

pub(crate) use badge::{Badge, Wearer};
pub(crate) use boot::now_ns;
pub(crate) use certain::UNNOTED_NS;
pub(crate) use home::{Bond, choose, describe_unapplied, is_complete, note_complete};
pub(crate) use region::{Loss, RegionNote, accept_memory_lost};

use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, OpenHow};
use rustix::process::{Signal, getpid, kill_process};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Version of both files.
const FORMAT: u32 = 1;

/// More than any of the two files needs; bounds what is read.
const NOTE_BYTES_MAX: u64 = 64 << 10;

/// A file beside the log, as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note<T> {
    /// There is none: an earlier version made the log.
    Missing,
    /// It is damaged, or of another version.
    Unreadable,
    /// It is whole.
    Found(T),
}

impl<T> Note<T> {
    /// What it says, if it is whole.
    pub(crate) fn found(&self) -> Option<&T> {
        match self {
            Note::Found(found) => Some(found),
            _ => None,
        }
    }
}

/// The file of that name in the root of `files`.
fn get<T: DeserializeOwned>(files: &dyn Files, name: &str) -> io::Result<Note<T>> {
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("the file \"{name}\" beside the log: {error}"))
    };
    read(files, name).map_err(named)
}

fn read<T: DeserializeOwned>(files: &dyn Files, name: &str) -> io::Result<Note<T>> {
    let file = match files.open(Path::new(name), OpenHow::default()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Note::Missing),
        file => file?,
    };
    let size = file.metadata()?.size_bytes.min(NOTE_BYTES_MAX);
    let mut bytes = vec![0; size as usize];
    let got = file.read_full_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes[..got]);
    let (body, check) = text.split_once('\n').unwrap_or_default();
    let body = Some(body).filter(|body| check.trim_end() == check_of(body));
    let value = body.and_then(|body| serde_json::from_str::<serde_json::Value>(body).ok());
    let known = value.filter(|value| value["format"] == FORMAT);
    let read = known.and_then(|value| serde_json::from_value(value).ok());
    Ok(read.map_or(Note::Unreadable, Note::Found))
}

/// Makes this the file of that name: when it returns, it is, and survives a power cut.
fn put<T: Serialize>(files: &dyn Files, name: &str, note: &T) -> io::Result<()> {
    let body = serde_json::to_string(note)?;
    let text = format!("{body}\n{}\n", check_of(&body));
    let new = format!("{name}.new");
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    may_die_here();
    let file = files.open(Path::new(&new), how)?;
    file.set_len(text.len() as u64)?;
    file.write_all_at(text.as_bytes(), 0)?;
    file.sync_data()?;
    may_die_here();
    files.rename(Path::new(&new), Path::new(name))?;
    may_die_here();
    files.sync_dir(Path::new(""))
}

/// A place in the work on a bond where a test may have the process die; the test says at which,
/// counted from 1. A build for users listens to nobody.
fn may_die_here() {
    static PLACES: AtomicU32 = AtomicU32::new(0);
    if !cfg!(debug_assertions) {
        return;
    }
    let last = std::env::var("HOLDFAST_TEST_DIES_AT").ok().and_then(|text| text.parse().ok());
    if last == Some(PLACES.fetch_add(1, Ordering::Relaxed) + 1) {
        let _ends_here = kill_process(getpid(), Signal::KILL);
    }
}

fn check_of(body: &str) -> String {
    format!("{:08x}", crc32c(0, body.as_bytes()))
}

/// An identity as people see it.
pub(crate) fn hex(identity: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(identity))
}
