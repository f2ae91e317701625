//! The cleaner: what the device's log has becomes what the home has.
//!
//! Promise: one step applies one window of frames, syncs the home, says so in the log, waits until
//! the device has that, and only then gives the ring's bytes back. A step that fails changes
//! nothing that matters: it is repeated from the log.
//! Never: runs ahead of the durable mark, so the home is never ahead of the log.

mod apply;
mod plan;

use std::io;
use std::path::{Path, PathBuf};

use holdfast_io::Files;
use holdfast_log::{AppendError, CommitError, Lsn, ReadError, WordError};

use crate::clean::apply::Applier;
use crate::clean::plan::{Contents, Window};
use crate::extents::Piece;
use crate::names::ORPHANS_NAME;
use crate::node::Node;
use crate::record::{self, Record, RecordFault};
use crate::volume::DirectoryVolume;
use crate::words;

/// Bytes of log in one window: enough to be worth its syncs, not so much that a front end that
/// takes over, and finishes the window first, is long about it.
const WINDOW_BYTES_MAX: u64 = 16 << 20;

/// Pieces of an overlay that are let go of at a time: some ten microseconds.
const PIECES_AT_ONCE: usize = 128;

/// What one step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Records applied.
    pub records: u64,
    /// Bytes written to the home.
    pub bytes: u64,
    /// Bytes of the ring given back.
    pub released_bytes: u64,
}

impl Cleaned {
    /// True if there was nothing to do.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.records == 0
    }
}

/// What the home refused to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Act {
    /// Make a file, directory or other node.
    Make,
    /// Give a second name.
    Link,
    /// Remove a name.
    Remove,
    /// Rename.
    Rename,
    /// Open a file.
    Open,
    /// Write a file.
    Write,
    /// Change attributes.
    Change,
    /// Make durable.
    Sync,
}

/// Why a step failed. The log still has everything: mend the cause and step again.
#[derive(Debug)]
#[non_exhaustive]
pub enum CleanError {
    /// The home failed.
    Home {
        /// What was tried.
        act: Act,
        /// On which path below the home.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The log failed. Final.
    Log(CommitError),
    /// The log did not give back what it has.
    Read(ReadError),
    /// The log did not keep, or tell, how far the home is.
    Word(WordError),
    /// A frame holds what no version of Holdfast writes.
    Record(Lsn, RecordFault),
}

impl CleanError {
    pub(crate) fn home(act: Act, path: &Path, error: io::Error) -> CleanError {
        CleanError::Home { act, path: path.to_path_buf(), error }
    }

    /// The error number behind it, for a status word.
    pub(crate) fn errno(&self) -> u64 {
        match self {
            CleanError::Home { error, .. } => {
                error.raw_os_error().unwrap_or(5).unsigned_abs().into()
            }
            _ => 5,
        }
    }
}

impl std::fmt::Display for CleanError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CleanError::Home { act, path, error } => {
                write!(out, "{act:?} of {} in the home failed: {error}", path.display())
            }
            CleanError::Log(error) => write!(out, "the log failed: {error}"),
            CleanError::Read(error) => write!(out, "the log cannot be read: {error}"),
            CleanError::Word(error) => write!(out, "{error}"),
            CleanError::Record(lsn, fault) => {
                write!(out, "the frame at LSN {lsn} holds no known record: {fault:?}")
            }
        }
    }
}

impl std::error::Error for CleanError {}

/// How far the home is.
pub(crate) struct Cleaner {
    applied: Lsn,
    /// The next window may have been applied in part by an earlier process.
    repeats: bool,
}

impl Cleaner {
    pub(crate) fn new(applied: Lsn) -> Cleaner {
        Cleaner { applied, repeats: true }
    }

    /// Applies one window, if anything is durable and not applied.
    pub(crate) fn step(&mut self, volume: &DirectoryVolume) -> Result<Cleaned, CleanError> {
        let begun = begun(volume)?;
        let limit = self.limit(volume, begun);
        if self.applied >= limit {
            return Ok(Cleaned::default());
        }
        let (window, upto) = self.window(volume, limit)?;
        if window.records == 0 {
            // Nothing but marks and padding, which the next window passes over too.
            return Ok(Cleaned::default());
        }
        let finishing = begun.filter(|end| *end > upto);
        set_word(volume, words::WINDOW_END, finishing.unwrap_or(upto).0)?;
        let bytes = Applier::new(volume, self.applied).run(&window)?;
        volume.space.came_home(upto);
        set_word(volume, words::HOME_ERRNO, 0)?;
        let released_bytes = upto.since(self.applied);
        note_applied(volume, upto)?;
        settle(volume, &window, upto);
        volume.log.release(upto);
        self.applied = upto;
        self.repeats = finishing.is_some();
        volume.log.add_to_word(words::WINDOWS, 1);
        volume.log.add_to_word(words::APPLIED_BYTES, bytes);
        Ok(Cleaned { records: window.records, bytes, released_bytes })
    }

    /// Where the next window ends at the latest. One that was begun and not finished, by this
    /// process or one before it, is finished first, and nothing more.
    fn limit(&self, volume: &DirectoryVolume, begun: Option<Lsn>) -> Lsn {
        match begun {
            Some(end) if end > self.applied => end,
            _ => volume.log.marks().durable,
        }
    }

    /// The longest window from the applied mark, and where it ends.
    fn window(&self, volume: &DirectoryVolume, durable: Lsn) -> Result<(Window, Lsn), CleanError> {
        let mut window = Window::new(self.repeats);
        let limit = self.applied.advance(WINDOW_BYTES_MAX);
        let mut end = Ok(durable);
        let read = volume.log.read(self.applied, durable, &mut |frame| {
            let lsn = frame.header.lsn;
            let records = decode(lsn, frame.payload, frame.payload_lsn);
            let taken = records.map(|records| lsn <= limit && window.take(lsn, &records));
            let goes_on = matches!(taken, Ok(true));
            if !goes_on {
                end = taken.map(|_| lsn);
            }
            goes_on
        });
        read.map_err(CleanError::Read)?;
        Ok((window, end?))
    }
}

/// Sets a word that the next process goes by.
fn set_word(volume: &DirectoryVolume, word: usize, value: u64) -> Result<(), CleanError> {
    volume.log.set_word(word, value).map_err(CleanError::Word)
}

/// Where the window ends that was begun last.
fn begun(volume: &DirectoryVolume) -> Result<Option<Lsn>, CleanError> {
    let end = volume.log.word(words::WINDOW_END).map_err(CleanError::Word)?;
    Ok((end > 0).then_some(Lsn(end)))
}

/// Finishes the window that a process died in, so that the home is where the log says it is.
pub(crate) fn finish_begun(volume: &DirectoryVolume) -> Result<u64, CleanError> {
    let mut bytes = 0;
    while begun(volume)?.is_some_and(|end| end > volume.log.marks().released) {
        let cleaned = volume.clean_step()?;
        bytes += cleaned.bytes;
        if cleaned.is_idle() {
            break;
        }
    }
    Ok(bytes)
}

/// The records of a frame, each with the LSN of its data.
pub(crate) fn decode(
    lsn: Lsn,
    payload: &[u8],
    payload_lsn: Lsn,
) -> Result<Vec<(Record<'_>, Lsn)>, CleanError> {
    record::decode(payload)
        .map(|decoded| {
            let (record, data_at) = decoded.map_err(|fault| CleanError::Record(lsn, fault))?;
            Ok((record, payload_lsn.advance(data_at as u64)))
        })
        .collect()
}

/// Says in the log, durably, that the home has everything below `upto`.
fn note_applied(volume: &DirectoryVolume, upto: Lsn) -> Result<(), CleanError> {
    loop {
        match volume.log.mark(upto) {
            Ok(()) => break,
            Err(AppendError::Poisoned(error)) => {
                return Err(CleanError::Log(CommitError::Poisoned(error)));
            }
            Err(AppendError::Unreachable(error)) => {
                return Err(CleanError::Log(CommitError::Unreachable(error)));
            }
            // The ring keeps a reserve for marks, so only undrained bytes can be in the way.
            // By now another may have drained them, and then this returns at once.
            Err(_) => volume.log.commit(volume.log.marks().tail).map_err(CleanError::Log)?,
        }
    }
    volume.log.commit(volume.log.marks().tail).map_err(CleanError::Log)
}

/// The overlay lets go of what the home has.
fn settle(volume: &DirectoryVolume, window: &Window, upto: Lsn) {
    for id in &window.nodes {
        let node = volume.names().entry(*id).map(|entry| entry.node.clone());
        let Some(node) = node else { continue };
        // A node that lost or changed names may have lost contents that the window knew.
        let contents = window.contents.get(id).filter(|_| window.steps.is_empty());
        match contents {
            Some(contents) => settle_pieces(&node, contents, upto),
            None => node.body_mut().applied(upto),
        }
        if !node.is_remembered() {
            volume.names_mut().drop_if_clean(*id, upto);
        }
    }
}

/// Lets go of as many pieces at a time as whoever uses the node can wait for. Cuts go first: behind
/// one that counts nothing is looked for in the home.
fn settle_pieces(node: &Node, contents: &Contents, upto: Lsn) {
    node.body_mut().applied_cuts(upto);
    let pieces: Vec<Piece> = contents.extents.iter().collect();
    for pieces in pieces.chunks(PIECES_AT_ONCE) {
        node.body_mut().applied_pieces(pieces, upto);
    }
    debug_assert!(
        node.body().extents.iter().all(|piece| piece.at >= upto),
        "a piece was forgotten"
    );
}

/// Removes the directory of files that had no name but were open.
pub(crate) fn remove_orphans(home: &dyn Files) -> Result<(), CleanError> {
    let orphans = crate::names::to_path(ORPHANS_NAME.to_vec());
    let fail = |error| CleanError::home(Act::Remove, &orphans, error);
    let listing = match home.read_dir(&orphans) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listing => listing.map_err(fail)?,
    };
    for entry in listing {
        home.remove_file(&orphans.join(crate::names::to_path(entry.name))).map_err(fail)?;
    }
    home.remove_dir(&orphans).map_err(fail)?;
    home.sync_dir(Path::new("")).map_err(fail)
}
