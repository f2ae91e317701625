//! Logs that only who has their key can read, or write.
//!
//! Byte table: FORMAT.md, "Sealed payload".
//!
//! Promise: AES-256-GCM-SIV, with a key of its own for every segment of every log, and a nonce that
//! no two frames on a device share; a set that is read was written by somebody who has the key, at
//! that place of that log. Checks of frames cover what the cipher gave, so that a log is checked
//! and repaired without a key.
//! Never: writes a key, or a record that is not sealed; notices that frames are missing: whoever
//! can write the files can cut the log, or bring back how it was. Guards what is in memory.

use std::cell::Cell;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::aead::{Aad, Nonce};
use holdfast_log::{AppendError, Appended, Contents, FLAG_SEALED, Frame, FrameHeader, Log, Lsn};

use crate::aligned::Aligned;
use crate::error::{CreateError, OpenError, ReplayError};
use crate::key_mark::KeyMark;
use crate::options::Options;

mod ciphers;
mod derive;
mod keys;
mod padding;

use ciphers::Cipher;
pub(crate) use ciphers::Ciphers;
pub use keys::{Keys, KeysFault};
pub use padding::Padding;

/// Id of the key.
const ID_BYTES: usize = 4;
/// Length of the set, inside the cipher.
const LENGTH_BYTES: usize = 4;
/// The cipher's tag.
const TAG_BYTES: usize = 16;
/// How much longer a sealed set is at the least.
const EXTRA_BYTES: u64 = (ID_BYTES + LENGTH_BYTES + TAG_BYTES) as u64;

/// What the cipher is told of a frame, besides the payload.
struct Scene {
    lsn: Lsn,
    generation: u32,
    segment: u64,
    contents: Contents,
    key: u32,
}

impl Scene {
    fn nonce(&self) -> Nonce {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&self.lsn.get().to_le_bytes());
        nonce[8..].copy_from_slice(&self.generation.to_le_bytes());
        Nonce::assume_unique_for_key(nonce)
    }

    fn associated(&self, identity: [u8; 16]) -> Aad<[u8; 39]> {
        let mut bytes = [0; 39];
        bytes[..16].copy_from_slice(&identity);
        bytes[16..24].copy_from_slice(&self.segment.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.lsn.get().to_le_bytes());
        bytes[32..36].copy_from_slice(&self.key.to_le_bytes());
        bytes[36..38].copy_from_slice(&self.contents.records.to_le_bytes());
        bytes[38] = self.contents.flags;
        Aad::from(bytes)
    }
}

/// Memory for sealed sets that a thread keeps between appends.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What seals the sets of one log.
pub(crate) struct Seal {
    identity: [u8; 16],
    keys: Arc<Keys>,
    padding: Padding,
    /// Of whoever appends.
    writing: Mutex<Ciphers>,
}

impl Seal {
    /// Whether a log can be made with these options.
    ///
    /// # Errors
    /// The options are those of a sealed log, without its keys.
    pub(crate) fn check(options: &Options) -> Result<(), CreateError> {
        match (&options.keys, options.padding) {
            (Some(_), _) | (None, Padding::None) => Ok(()),
            (None, _) => Err(CreateError::PaddingWithoutKeys),
        }
    }

    /// What the label of a new log says of the key.
    pub(crate) fn mark(options: &Options, identity: [u8; 16]) -> Option<KeyMark> {
        let keys = options.keys.as_deref()?;
        let (id, key) = keys.current();
        Some(KeyMark { id, check: derive::check(key, &identity) })
    }

    /// What the log with this mark in its label is sealed with, if it is.
    pub(crate) fn of(
        options: &Options,
        mark: Option<KeyMark>,
        identity: [u8; 16],
    ) -> Result<Option<Seal>, OpenError> {
        let (keys, mark) = match (&options.keys, mark) {
            (None, None) if options.padding == Padding::None => return Ok(None),
            (None, None) => return Err(OpenError::PaddingWithoutKeys),
            (None, Some(_)) => return Err(OpenError::Sealed),
            (Some(_), None) => return Err(OpenError::NotSealed),
            (Some(keys), Some(mark)) => (Arc::clone(keys), mark),
        };
        let known = keys.get(mark.id);
        if known.is_some_and(|key| derive::check(key, &identity) != mark.check) {
            return Err(OpenError::WrongKey { id: mark.id });
        }
        let writing = Mutex::new(Ciphers::new(Arc::clone(&keys), identity));
        Ok(Some(Seal { identity, keys, padding: options.padding, writing }))
    }

    /// What a reader opens sets with.
    pub(crate) fn reading(&self) -> Ciphers {
        Ciphers::new(Arc::clone(&self.keys), self.identity)
    }

    /// Whether there are keys besides the one with this id.
    pub(crate) fn has_others(&self, id: u32) -> bool {
        self.keys.has_others(id)
    }

    /// The longest set, where a frame takes so many bytes.
    pub(crate) fn set_bytes_max(payload_bytes_max: u64) -> u64 {
        payload_bytes_max - EXTRA_BYTES
    }

    /// Appends a set. It is sealed for the place where it will probably go, because appends come
    /// one at a time and the cipher takes longer than all the rest; where another append was
    /// quicker, once more for the place where it goes. What was sealed in vain reaches no device.
    pub(crate) fn append(
        &self,
        log: &Log,
        contents: Contents,
        set: &[u8],
    ) -> Result<Appended, AppendError> {
        let contents = Contents { flags: contents.flags | FLAG_SEALED, ..contents };
        let outside = (ID_BYTES + TAG_BYTES) as u64;
        let inside = (LENGTH_BYTES + set.len()) as u64;
        let most = (log.payload_bytes_max() - outside).max(inside);
        let padded = self.padding.of(inside).min(most);
        let bytes = outside + padded;
        let key = self.keys.current().0;
        let scene = |(lsn, generation)| {
            let segment = log.segment_number(lsn);
            Scene { lsn, generation, segment, contents, key }
        };
        let likely = log.next_place(bytes);
        let mut sealed = SCRATCH.take();
        sealed.resize(bytes as usize, 0);
        self.fill(&scene(likely), set, &mut sealed);
        let appended = log.append_filled(contents, bytes, &mut |lsn, generation, into| match (
            lsn, generation,
        )
            == likely
        {
            true => into.copy_from_slice(&sealed),
            false => self.fill(&scene((lsn, generation)), set, into),
        });
        if sealed.capacity() <= SCRATCH_BYTES_MAX {
            SCRATCH.set(sealed);
        }
        appended
    }

    fn cipher(&self, scene: &Scene) -> Arc<Cipher> {
        let mut ciphers = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let cipher = ciphers.get(scene.key, scene.segment).expect("the current key is in the ring");
        Arc::clone(cipher)
    }

    /// Writes key id, ciphertext and tag.
    fn fill(&self, scene: &Scene, set: &[u8], into: &mut [u8]) {
        let (id, rest) = into.split_at_mut(ID_BYTES);
        let (inside, tag) = rest.split_at_mut(rest.len() - TAG_BYTES);
        id.copy_from_slice(&scene.key.to_le_bytes());
        let (length, room) = inside.split_at_mut(LENGTH_BYTES);
        length.copy_from_slice(&(set.len() as u32).to_le_bytes());
        room[..set.len()].copy_from_slice(set);
        room[set.len()..].fill(0);
        let associated = scene.associated(self.identity);
        let cipher = self.cipher(scene);
        let sealed = cipher.seal_in_place_separate_tag(scene.nonce(), associated, inside);
        let made = sealed.expect("a set is shorter than what the cipher takes");
        tag.copy_from_slice(made.as_ref());
    }
}

/// Opens a sealed frame, and returns where its set lies in `into`.
pub(crate) fn open(
    ciphers: &mut Ciphers,
    frame: &Frame<'_>,
    segment: u64,
    into: &mut Aligned,
) -> Result<Range<usize>, ReplayError> {
    let FrameHeader { lsn, generation, records, flags, .. } = frame.header;
    let broken = || ReplayError::DamagedRecord { lsn, index: 0 };
    let (id, rest) = frame.payload.split_first_chunk().ok_or_else(broken)?;
    let (inside, tag) = rest.split_last_chunk::<TAG_BYTES>().ok_or_else(broken)?;
    let key = u32::from_le_bytes(*id);
    let contents = Contents { records, flags };
    let scene = Scene { lsn, generation, segment, contents, key };
    let associated = scene.associated(ciphers.identity());
    let cipher = ciphers.get(key, segment).ok_or(ReplayError::NoKey { lsn, id: key })?;
    // The length first, then the set, at a multiple of 8.
    let start = 2 * LENGTH_BYTES;
    let room = &mut into.room(LENGTH_BYTES + inside.len())[LENGTH_BYTES..];
    let opened = cipher.open_separate_gather(scene.nonce(), associated, inside, tag, room);
    opened.map_err(|_| ReplayError::WrongKey { lsn, id: key })?;
    let (length, set) = room.split_first_chunk().ok_or_else(broken)?;
    let length = u32::from_le_bytes(*length) as usize;
    (length <= set.len()).then_some(start..start + length).ok_or_else(broken)
}

#[cfg(test)]
mod tests;
