//! What others changed in a home while its log has something that the home lacks.
//!
//! The cleaner notes when it touched the home last, in a word that a death leaves behind. Behind
//! that moment a change of what the log is about to change again is not the volume's own.
//!
//! Promise: a change of the volume's own is never taken for one of somebody else's: a death while
//! the home was touched leaves nothing to tell by ([`crate::home::touched`]).
//! Never: changes the home or the log.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use holdfast_io::{Files, Kind, Metadata};
use holdfast_log::{CommitLog, Frame, Lsn};

use crate::clean::error::CleanError;
use crate::clean::frames::decode;
use crate::error::VolumeError;
use crate::names::paths::to_path;
use crate::own::ORPHANS_NAME;
use crate::record::{Op, Record};
use crate::{home::touched, replay, words};

/// [`Unapplied::changed_by_others`] of an open log.
///
/// # Errors
/// See [`VolumeError`].
pub fn changed_by_others(
    home: &dyn Files,
    log: &dyn CommitLog,
    told: Told,
) -> Result<Vec<PathBuf>, VolumeError> {
    let mut unapplied = Unapplied::default();
    replay::for_each(log, |lsn, record, _| {
        unapplied.name(lsn, record);
        Ok(())
    })?;
    let word = |index| log.word(index).map_err(|error| VolumeError::Clean(CleanError::Word(error)));
    let (touched_ns, window_end) = (word(words::HOME_TOUCHED_NS)?, word(words::WINDOW_END)?);
    let left = Left { released: log.marks().released, touched_ns, window_end };
    unapplied.changed_by_others(home, left, told)
}

/// Moments that others know, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// Only others can have changed the home behind it; 0 if none is known.
    pub alone_since_ns: i64,
    /// Changes up to it do not count.
    pub accepted_ns: i64,
    /// The present one.
    pub now_ns: i64,
}

/// What a log and its memory know of how far the home is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Left {
    /// The home has what is below.
    pub released: Lsn,
    /// The word [`words::HOME_TOUCHED_NS`]; 0 where there is no memory.
    pub touched_ns: u64,
    /// The word [`words::WINDOW_END`]; 0 where there is no memory.
    pub window_end: u64,
}

/// Every path that a record which is not applied is about, and the directories that names come
/// into; with the newest frame that has such a record.
#[derive(Debug, Default)]
pub struct Unapplied {
    paths: BTreeMap<PathBuf, Lsn>,
}

impl Unapplied {
    /// Takes in a frame of a log that nobody has open.
    ///
    /// # Errors
    /// See [`VolumeError`].
    pub fn take(&mut self, frame: &Frame<'_>) -> Result<(), VolumeError> {
        let lsn = frame.header.lsn;
        let records = decode(lsn, frame.payload, frame.payload_lsn)?;
        records.iter().for_each(|(record, _)| self.name(lsn, record));
        Ok(())
    }

    /// What somebody else changed, of what the log will change: files that are not as the volume
    /// left them, and directories with other names in them.
    ///
    /// Where the memory tells when the volume touched the home last, that moment counts instead of
    /// [`Told::alone_since_ns`]. Where anything that was done lies ahead of the present moment, the
    /// clock has stepped back since, and nothing can be told by it.
    ///
    /// # Errors
    /// See [`VolumeError`].
    pub fn changed_by_others(
        &self,
        home: &dyn Files,
        left: Left,
        told: Told,
    ) -> Result<Vec<PathBuf>, VolumeError> {
        let since_ns = left.alone_since(told.alone_since_ns).filter(|since| *since <= told.now_ns);
        let Some(since_ns) = since_ns else { return Ok(Vec::new()) };
        let since_ns = since_ns.max(told.accepted_ns);
        let mut changed = Vec::new();
        let named = self.paths.iter().filter(|(_, newest)| **newest >= left.released);
        for (path, _) in named.filter(|(path, _)| !is_own(path)) {
            let touched = touched_ns(home, path);
            let touched = touched.map_err(|error| VolumeError::Home(error.into()))?;
            match touched {
                Some(touched) if touched > i128::from(told.now_ns) => return Ok(Vec::new()),
                Some(touched) if touched > i128::from(since_ns) => changed.push(path.clone()),
                _ => {}
            }
        }
        Ok(changed)
    }

    fn name(&mut self, lsn: Lsn, record: &Record<'_>) {
        let mut add = |path: &[u8]| {
            let path = to_path(path.to_vec());
            path.parent().map(|parent| self.paths.insert(parent.to_owned(), lsn));
            self.paths.insert(path, lsn);
        };
        add(record.path);
        if let Op::Rename { to, .. } | Op::Link { to } | Op::Exchange { to, .. } = record.op {
            add(to);
        }
    }
}

impl Left {
    /// Since when nobody but others touched the home, if anybody knows.
    fn alone_since(self, told_ns: i64) -> Option<i64> {
        let is_in_window = self.window_end > self.released.get();
        let touched_ns = touched::moment_ns(self.touched_ns).filter(|_| !is_in_window);
        touched_ns.or_else(|| (told_ns > 0).then_some(told_ns))
    }
}

/// The root, in which the volume makes a directory of its own when it wants one, and that.
fn is_own(path: &Path) -> bool {
    path.as_os_str().is_empty() || path == to_path(ORPHANS_NAME.to_vec())
}

/// When it was touched. What is not there was removed, which its directory tells; or there is a
/// file, or a link, where the log makes a directory later, which has a path of its own. Of a
/// directory only its names count.
fn touched_ns(home: &dyn Files, path: &Path) -> io::Result<Option<i128>> {
    let metadata = match home.metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if IS_NO_DIRECTORY.contains(&error.raw_os_error()) => return Ok(None),
        metadata => metadata?,
    };
    Ok(match metadata.kind {
        Kind::BlockDevice => None,
        Kind::Directory => Some(changed_names_ns(&metadata)),
        _ => Some(metadata.changed_ns),
    })
}

/// What a path through a file is answered with, `ENOTDIR`, and one through a link, `ELOOP`.
const IS_NO_DIRECTORY: [Option<i32>; 2] = [Some(20), Some(40)];

/// When names in a directory changed last. A program may set that time as it likes, into the
/// future too, and the time of the change with it is the kernel's.
fn changed_names_ns(metadata: &Metadata) -> i128 {
    metadata.modified_ns.min(metadata.changed_ns)
}
