//! Records that the home does not take, put aside beside the log.
//!
//! What can never be applied must not keep everything behind it from being applied. Somebody who is
//! told of it orders that it be put aside: its records are kept, whole, in files of their own, and
//! the rest goes on. What later cannot be applied without them, because a name is missing that they
//! would have made, is put aside too.
//!
//! The bytes are told in FORMAT.md of this crate.
//!
//! Promise: a record is passed over only when its file is durable, and by everybody who cleans
//! after that, so it is in the home or aside, whoever dies.
//! Never: puts anything aside that nobody ordered, but what depends on what somebody did.

mod lost;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, OpenFile, OpenHow};
use holdfast_log::Lsn;

pub(crate) use crate::clean::aside::lost::Lost;
use crate::clean::room::{self, DIRECTORY, keep_room_aside};
use crate::names::paths::to_path;
use crate::record::{self, Record};

/// What the cleaner is stuck at, for people.
const STUCK: &str = "aside/stuck";
/// The position that somebody ordered to be passed over.
const ORDER: &str = "aside/order";
/// Of a record that is passed over while its frame may still be cleaned.
const HELD: &str = "held";
/// Of a record whose frame nobody cleans any more.
const KEPT: &str = "record";
const MAGIC: [u8; 4] = *b"HFVA";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 32;
/// More than any frame holds; bounds what is read.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// One record of the log: its frame, and which of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RecordId {
    pub(crate) frame: Lsn,
    pub(crate) index: u32,
}

/// A record with everything that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) id: RecordId,
    pub(crate) bytes: Vec<u8>,
}

impl Whole {
    /// The record, and the data behind it in the payload of its frame.
    pub(crate) fn of(id: RecordId, record: &Record<'_>, data: &[u8]) -> Whole {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        bytes.extend_from_slice(data);
        Whole { id, bytes }
    }
}

/// A record that was put aside, as people are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutAside {
    /// The position of its frame in the log.
    pub lsn: Lsn,
    /// Which record of that frame.
    pub index: u32,
    /// The path it is about, below the home.
    pub path: PathBuf,
    /// What it would have done.
    pub what: String,
    /// Why the home did not take it: an error number, or 0 if it depends on another.
    pub errno: u32,
    /// Its file, in the log's directory.
    pub file: PathBuf,
}

/// What is put aside, and what depends on it.
#[derive(Default)]
pub(crate) struct Aside {
    /// The directory of the log; none where there is nowhere to put anything.
    files: Option<Arc<dyn Files>>,
    /// And why: an error number, or 0.
    held: BTreeMap<RecordId, u32>,
    /// What is lost where the next window begins.
    lost: Lost,
    /// What the note for people says.
    told: Option<String>,
}

/// Tells a replay, which meets the records in their order, what is aside.
pub(crate) struct PassedOver {
    held: BTreeMap<RecordId, u32>,
    lost: Lost,
    /// The record that comes next, if the frame goes on.
    at: RecordId,
}

impl PassedOver {
    /// What is lost behind the records that were met.
    pub(crate) fn lost(&self) -> &Lost {
        &self.lost
    }

    /// Whether the next record, of this frame, is aside or depends on what is.
    pub(crate) fn passes_over(&mut self, frame: Lsn, record: &Record<'_>) -> bool {
        let index = if self.at.frame == frame { self.at.index } else { 0 };
        self.at = RecordId { frame, index: index + 1 };
        self.lost.passes_over(self.held.contains_key(&RecordId { frame, index }), record)
    }
}

impl Aside {
    /// What an earlier process put aside. What is not `applied` is met again in the log.
    pub(crate) fn load(files: Option<Arc<dyn Files>>, applied: Lsn) -> io::Result<Aside> {
        let mut aside = Aside { files, ..Aside::default() };
        let Some(files) = aside.files.clone() else { return Ok(aside) };
        for (id, path) in listed(&*files, HELD)? {
            let (errno, bytes) = read(&*files, &path)?;
            aside.held.insert(id, errno);
            if id.frame < applied {
                aside.lost.add_encoded(&bytes);
            }
        }
        aside.told = read_text(&*files, STUCK)?;
        Ok(aside)
    }

    /// Whether a record is passed over.
    pub(crate) fn holds(&self, id: RecordId) -> bool {
        self.held.contains_key(&id)
    }

    /// Whether the home refused the record itself, and not another that it depends on.
    pub(crate) fn was_refused(&self, id: RecordId) -> bool {
        self.held.get(&id).is_some_and(|errno| *errno != 0)
    }

    /// What is lost where the next window begins.
    pub(crate) fn lost(&self) -> Lost {
        self.lost.clone()
    }

    /// A window is applied, behind which this is lost.
    pub(crate) fn lose(&mut self, lost: Lost) {
        self.lost = lost;
    }

    /// What a replay passes over.
    pub(crate) fn passed_over(&self) -> PassedOver {
        let at = RecordId { frame: Lsn::ZERO, index: 0 };
        PassedOver { held: self.held.clone(), lost: self.lost.clone(), at }
    }

    /// Puts records aside, durably, for this reason (an error number, or 0).
    pub(crate) fn put(&mut self, records: &[Whole], errno: u32) -> io::Result<()> {
        let Some(files) = self.files.clone().filter(|_| !records.is_empty()) else {
            return Ok(());
        };
        for whole in records {
            let name = |kind| file_name(whole.id, kind);
            room::RECORD.fill(&*files, &name("new"), &encode(whole, errno))?;
            files.rename(&name("new"), &name(HELD))?;
        }
        files.sync_dir(Path::new(DIRECTORY))?;
        for whole in records {
            self.held.insert(whole.id, errno);
        }
        Ok(())
    }

    /// Whether there is a place for anything.
    pub(crate) fn can_put(&self) -> bool {
        self.files.is_some()
    }

    /// Whether somebody ordered that what is at this position be passed over.
    pub(crate) fn is_ordered(&self, lsn: Lsn) -> io::Result<bool> {
        let Some(files) = &self.files else { return Ok(false) };
        let order = read_text(&**files, ORDER)?;
        Ok(order.is_some_and(|order| order.trim() == lsn.to_string()))
    }

    /// Tells people what the cleaner is stuck at, once.
    pub(crate) fn tell(&mut self, text: &str, since_ns: i64) -> io::Result<()> {
        let Some(files) = self.files.as_ref().filter(|_| !self.tells(text)) else {
            return Ok(());
        };
        let told = format!("{text}since {}\n", since_ns / 1_000_000_000);
        room::STUCK.fill(&**files, Path::new(STUCK), told.as_bytes())?;
        self.told = Some(told);
        Ok(())
    }

    fn tells(&self, text: &str) -> bool {
        self.told.as_ref().is_some_and(|told| told.starts_with(text))
    }

    /// The cleaner has gone on.
    pub(crate) fn gone_on(&mut self) -> io::Result<()> {
        let Some(files) = self.files.as_ref().filter(|_| self.told.is_some()) else {
            return Ok(());
        };
        remove(&**files, ORDER)?;
        remove(&**files, STUCK)?;
        keep_room_aside(&**files);
        self.told = None;
        Ok(())
    }

    /// Everything that the log has is applied, and numbers of nodes begin anew: nothing depends any
    /// more on what is aside.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        let Some(files) = self.files.as_ref().filter(|_| !self.held.is_empty()) else {
            return Ok(());
        };
        for id in self.held.keys() {
            files.rename(&file_name(*id, HELD), &file_name(*id, KEPT))?;
        }
        files.sync_dir(Path::new(DIRECTORY))?;
        self.held.clear();
        self.lost = Lost::default();
        Ok(())
    }
}

/// What is put aside beside a log, in the order of the log. `log` is the log's directory.
///
/// # Errors
/// A file cannot be read, or is not what was written.
pub fn put_aside(log: &dyn Files) -> io::Result<Vec<PutAside>> {
    let mut all = Vec::new();
    for kind in [KEPT, HELD] {
        for (id, file) in listed(log, kind)? {
            let (errno, bytes) = read(log, &file)?;
            let decoded = record::decode(&bytes).next();
            let (record, _) = decoded.and_then(Result::ok).ok_or_else(|| damaged(&file))?;
            let (path, what) = (to_path(record.path.to_vec()), format!("{:?}", record.op));
            all.push(PutAside { lsn: id.frame, index: id.index, path, what, errno, file });
        }
    }
    all.sort_by_key(|one| (one.lsn, one.index));
    Ok(all)
}

/// What the cleaner of a volume is stuck at, for people; none if it is not. The first line begins
/// with `lsn` and the position.
///
/// # Errors
/// The note cannot be read.
pub fn stuck_at(log: &dyn Files) -> io::Result<Option<String>> {
    read_text(log, STUCK)
}

/// Orders that what the cleaner is stuck at be put aside. It is, the next time it is tried. Returns
/// what it is stuck at; none, with nothing ordered, if it is not.
///
/// # Errors
/// The order cannot be written.
pub fn order_to_put_aside(log: &dyn Files) -> io::Result<Option<String>> {
    let Some(told) = stuck_at(log)? else { return Ok(None) };
    let lsn = told.lines().find_map(|line| line.strip_prefix("lsn "));
    room::ORDER.fill(log, Path::new(ORDER), lsn.unwrap_or_default().as_bytes())?;
    log.sync_dir(Path::new(DIRECTORY))?;
    Ok(Some(told))
}

fn file_name(id: RecordId, kind: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{}-{}.{kind}", id.frame, id.index))
}

/// The records whose files are of this kind.
fn listed(files: &dyn Files, kind: &str) -> io::Result<Vec<(RecordId, PathBuf)>> {
    let listing = match files.read_dir(Path::new(DIRECTORY)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing?,
    };
    let id_of = |name: &[u8]| {
        let stem = std::str::from_utf8(name).ok()?.strip_suffix(kind)?.strip_suffix('.')?;
        let (frame, index) = stem.split_once('-')?;
        Some(RecordId { frame: Lsn(frame.parse().ok()?), index: index.parse().ok()? })
    };
    let ids = listing.iter().filter_map(|entry| id_of(&entry.name));
    let mut ids: Vec<_> = ids.map(|id| (id, file_name(id, kind))).collect();
    ids.sort();
    Ok(ids)
}

fn encode(whole: &Whole, errno: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + whole.bytes.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&errno.to_le_bytes());
    bytes.extend_from_slice(&whole.id.frame.get().to_le_bytes());
    bytes.extend_from_slice(&whole.id.index.to_le_bytes());
    bytes.extend_from_slice(&(whole.bytes.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&whole.bytes);
    let check = crc32c(0, &bytes[12..]);
    bytes[8..12].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// Why a record was put aside, and the record.
fn read(files: &dyn Files, path: &Path) -> io::Result<(u32, Vec<u8>)> {
    let bytes = read_all(&*files.open(path, OpenHow::default())?)?;
    let word = |at: usize| bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    let word = |at| word(at).map_or(0, u32::from_le_bytes);
    let whole = bytes.len() >= HEAD_BYTES
        && bytes.starts_with(&MAGIC)
        && word(4) == VERSION
        && word(8) == crc32c(0, &bytes[12..])
        && word(28) as usize == bytes.len() - HEAD_BYTES;
    if whole { Ok((word(12), bytes[HEAD_BYTES..].to_vec())) } else { Err(damaged(path)) }
}

fn damaged(path: &Path) -> io::Error {
    let text = format!("{} is not what was put aside there", path.display());
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn read_all(file: &dyn OpenFile) -> io::Result<Vec<u8>> {
    let bytes = file.metadata()?.size_bytes.min(FILE_BYTES_MAX);
    let mut into = vec![0; bytes as usize];
    let got = file.read_full_at(&mut into, 0)?;
    into.truncate(got);
    Ok(into)
}

fn read_text(files: &dyn Files, path: &str) -> io::Result<Option<String>> {
    match files.open(Path::new(path), OpenHow::default()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => Ok(Some(String::from_utf8_lossy(&read_all(&*file?)?).into_owned())),
    }
}

fn remove(files: &dyn Files, path: &str) -> io::Result<()> {
    match files.remove_file(Path::new(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
