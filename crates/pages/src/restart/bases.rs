//! Two files with all that a restart has to know, each as of its own place in the stream.
//!
//! Byte table: FORMAT.md, "Base".
//!
//! Promise: each file is the old one or the new one, whole, whatever happens while it is replaced;
//! the older of the two is the one that is; one that is damaged is noticed, and the other serves.
//! Never: decides when to write one, or that the records below are durable.

use std::io;
use std::path::Path;
use std::sync::Arc;

use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, OpenHow};

use crate::canary::{Invariant, holds};
use crate::error::{BaseFault, LoadError};
use crate::restart::analysis_state::State;
use crate::stream::rsn::Rsn;
use crate::stream::tag::Tag;

const NAMES: [&str; 2] = ["base-0", "base-1"];
/// Name of either's successor while it is written.
const NAME_NEW: &str = "base-new";

const MAGIC: u32 = 0x4142_4648;
/// The version of bases that this program reads and writes.
const VERSION: u16 = 1;
const HEAD_BYTES: usize = 32;

/// The two files of one store.
pub struct Bases {
    files: Arc<dyn Files>,
    tag: Tag,
    /// Up to where each of them certainly is, if it is one.
    ats: [Option<Rsn>; 2],
}

/// What the files say.
#[derive(Debug)]
pub struct Loaded {
    /// The newest state.
    pub state: State,
    /// Why one of the files does not serve, unless there never was one.
    pub damaged: Option<BaseFault>,
}

impl Bases {
    /// Whether there is a file of either name, whatever is in it.
    ///
    /// # Errors
    /// Of the machine.
    pub(crate) fn are_there(files: &dyn Files) -> io::Result<bool> {
        let entries = files.read_dir(Path::new(""))?;
        Ok(entries.iter().any(|entry| NAMES.iter().any(|name| name.as_bytes() == entry.name)))
    }

    /// Makes the first base of a store, on a directory that has none. It survives a power cut when
    /// this returns.
    ///
    /// # Errors
    /// Of the machine; there may be a base then, or none.
    pub fn create(files: Arc<dyn Files>, tag: Tag, state: &State) -> io::Result<Bases> {
        let mut bases = Bases { files, tag, ats: [None; 2] };
        bases.write(state)?;
        Ok(bases)
    }

    /// Reads both files. A state behind `archived`, where the archive ends, does not serve: the
    /// records before it would be nowhere.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(
        files: Arc<dyn Files>,
        tag: Tag,
        archived: Rsn,
    ) -> Result<(Bases, Loaded), LoadError> {
        let bases = NAMES.map(|name| {
            let base = read(&*files, name, tag)?;
            let (at, is_ahead) = (base.at, base.at > archived);
            if is_ahead { Err(BaseFault::Ahead { at, archived }) } else { Ok(base) }
        });
        for fault in bases.iter().filter_map(|base| base.as_ref().err()) {
            match *fault {
                BaseFault::Foreign => return Err(LoadError::Foreign),
                BaseFault::OtherVersion { found } => {
                    return Err(LoadError::OtherVersion { found, known: VERSION });
                }
                _ => {}
            }
        }
        let ats = [0, 1].map(|which: usize| bases[which].as_ref().ok().map(|base| base.at));
        let loaded = newest(bases)?;
        Ok((Bases { files, tag, ats }, loaded))
    }

    /// Up to where the files go that are bases of this store, the shortest first.
    pub(crate) fn ends(files: &dyn Files, tag: Tag) -> Vec<Rsn> {
        let ends = NAMES.iter().filter_map(|name| read(files, name, tag).ok().map(|base| base.at));
        let mut ends: Vec<Rsn> = ends.collect();
        ends.sort_unstable();
        ends
    }

    /// Replaces the older base, or the one that is missing or damaged. All records before the
    /// state's place must be durable. The new one is read back before it takes the old one's name,
    /// and survives a power cut when this returns.
    ///
    /// # Errors
    /// Of the machine, or `InvalidData` if what is read back is not what was written. Either file
    /// may be there then; both serve.
    pub fn write(&mut self, state: &State) -> io::Result<()> {
        let mut bytes = vec![0; HEAD_BYTES];
        state.put_whole(&mut bytes);
        seal(&mut bytes, state.at(), self.tag);
        let which = usize::from(self.ats[1] < self.ats[0]);
        self.write_new(&bytes)?;
        self.files.rename(Path::new(NAME_NEW), Path::new(NAMES[which]))?;
        self.files.sync_dir(Path::new(""))?;
        self.ats[which] = Some(state.at());
        Ok(())
    }

    /// From where on records are needed to go on from either file.
    ///
    /// # Panics
    /// Never: there is a base once there are [`Bases`].
    #[must_use]
    pub fn needed_from(&self) -> Rsn {
        let ats = self.ats.into_iter().flatten();
        let older = if holds(Invariant::BasesAreChecked) { ats.min() } else { ats.max() };
        older.expect("one of them was written or read")
    }

    /// Up to where the newer one is.
    #[must_use]
    pub fn newest(&self) -> Option<Rsn> {
        self.ats.into_iter().flatten().max()
    }

    fn write_new(&self, bytes: &[u8]) -> io::Result<()> {
        let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
        let file = self.files.open(Path::new(NAME_NEW), how)?;
        file.set_len(bytes.len() as u64)?;
        file.write_all_at(bytes, 0)?;
        if !holds(Invariant::BasesAreChecked) {
            return Ok(());
        }
        file.sync_data()?;
        let mut found = vec![0; bytes.len()];
        file.read_full_at(&mut found, 0)?;
        if found == bytes { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}

/// A base that is whole. What it says is looked at only if it is needed.
struct Checked {
    at: Rsn,
    bytes: Vec<u8>,
}

impl Checked {
    fn state(self) -> Result<State, BaseFault> {
        let state = State::parse(&self.bytes[HEAD_BYTES..]).map_err(BaseFault::State)?;
        if state.at() == self.at { Ok(state) } else { Err(BaseFault::Check) }
    }
}

/// The newer one, if there are two.
fn newest(bases: [Result<Checked, BaseFault>; 2]) -> Result<Loaded, LoadError> {
    let at = |base: &Result<Checked, BaseFault>| base.as_ref().ok().map(|base| base.at);
    let is_in_order = at(&bases[0]) >= at(&bases[1]);
    let [one, other] = bases;
    let (newer, older) = if is_in_order { (one, other) } else { (other, one) };
    let (state, damaged) = match newer.and_then(Checked::state) {
        Ok(state) => (state, older.err()),
        Err(fault) => match older.and_then(Checked::state) {
            Ok(state) => (state, Some(fault)),
            Err(other) => return Err(LoadError::Damaged([fault, other])),
        },
    };
    let damaged = damaged.filter(|fault| !matches!(fault, BaseFault::Missing));
    Ok(Loaded { state, damaged })
}

fn read(files: &dyn Files, name: &str, tag: Tag) -> Result<Checked, BaseFault> {
    let bytes = read_all(files, name).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => BaseFault::Missing,
        _ => BaseFault::Unreadable(Arc::new(error)),
    })?;
    check(bytes, tag)
}

fn read_all(files: &dyn Files, name: &str) -> io::Result<Vec<u8>> {
    let file = files.open(Path::new(name), OpenHow::default())?;
    let mut bytes = vec![0; file.metadata()?.size_bytes as usize];
    let got = file.read_full_at(&mut bytes, 0)?;
    bytes.truncate(got);
    Ok(bytes)
}

/// Fills in the head of a base whose state is there.
fn seal(bytes: &mut [u8], at: Rsn, tag: Tag) {
    let state_bytes = (bytes.len() - HEAD_BYTES) as u64;
    bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&tag.get().to_le_bytes());
    bytes[16..24].copy_from_slice(&at.get().to_le_bytes());
    bytes[24..32].copy_from_slice(&state_bytes.to_le_bytes());
    let check = crc32c(0, &bytes[8..]);
    bytes[4..8].copy_from_slice(&check.to_le_bytes());
}

fn check(bytes: Vec<u8>, tag: Tag) -> Result<Checked, BaseFault> {
    let (head, state) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or(BaseFault::Check)?;
    let check = u32::from_le_bytes(field(head, 4));
    let sound = u32::from_le_bytes(field(head, 0)) == MAGIC && check == crc32c(0, &bytes[8..]);
    if holds(Invariant::BasesAreChecked) && !sound {
        return Err(BaseFault::Check);
    }
    if u32::from_le_bytes(field(head, 12)) != tag.get() {
        return Err(BaseFault::Foreign);
    }
    match u16::from_le_bytes(field(head, 8)) {
        VERSION => {}
        found => return Err(BaseFault::OtherVersion { found }),
    }
    let at = Rsn(u64::from_le_bytes(field(head, 16)));
    let is_whole = u64::from_le_bytes(field(head, 24)) == state.len() as u64;
    if is_whole { Ok(Checked { at, bytes }) } else { Err(BaseFault::Check) }
}

fn field<const BYTES: usize>(head: &[u8; HEAD_BYTES], at: usize) -> [u8; BYTES] {
    head[at..at + BYTES].try_into().expect("a slice is as long as it was cut")
}

impl std::fmt::Debug for Bases {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Bases").field("ats", &self.ats).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
