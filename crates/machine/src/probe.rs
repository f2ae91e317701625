//! Whether a restart of the system spares memory: a pattern is written before, and looked at after.
//!
//! Promise: a proof says that every byte of a pattern was read back in another run of the system
//! than the one that wrote it, on memory that no page cache is in front of, under which firmware.
//! Never: restarts anything, or claims more than was seen: whoever restarted the system knows how.
//!
//! The pattern is an area of its own, so it goes the way of everything that is acknowledged from
//! memory. The proof lies on the same file system, and is lost when that is.

use holdfast_io::checksum::crc32c;
use holdfast_io::private;
use holdfast_memory::{Area, AreaSpec, AttachError, CreateError, Medium};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;

/// The file of the pattern, in the folder that is probed.
pub const PATTERN_FILE: &str = "holdfast-probe";
/// The file of the proof.
pub const PROOF_FILE: &str = "holdfast-proof";

/// What the area of a pattern holds.
const CONTENT: [u8; 8] = *b"HFPROBE\0";
/// The area's first page has the run of the system that wrote it, in two words. Then comes the
/// pattern.
const HEAD_BYTES: u64 = 4096;
const PAGE_BYTES: u64 = 4096;
const WORD_BYTES: u64 = 8;

/// Version of [`Proof`] as it is kept.
const FORMAT: u32 = 1;

/// What tells one firmware from another.
const FIRMWARE: [&str; 4] = ["bios_vendor", "bios_version", "bios_date", "board_name"];

/// What a restart left of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    format: u32,
    /// Bytes of the pattern.
    pub bytes: u64,
    /// Those that were read back as written.
    pub kept_bytes: u64,
    /// The run of the system that wrote the pattern.
    pub written_in: String,
    /// The run that looked at it.
    pub looked_at_in: String,
    /// The firmware between them.
    pub firmware: String,
}

/// What was found of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The system has not restarted since it was written.
    SameRun,
    /// It has, and this is left.
    Restarted {
        /// Bytes of the pattern.
        bytes: u64,
        /// Those that are as they were written.
        kept_bytes: u64,
        /// The run of the system that wrote it.
        written_in: [u64; 2],
    },
}

/// Writes a pattern of `bytes`, a multiple of 4096, that `nonce` tells from every other. False if
/// a page cache is in front of the memory: nothing can be proved then, and nothing is left.
pub fn write(
    medium: &Medium,
    bytes: u64,
    nonce: [u8; 16],
    run: [u64; 2],
) -> Result<bool, CreateError> {
    let spec = AreaSpec { content: CONTENT, identity: nonce, bytes: HEAD_BYTES + bytes };
    let area = Area::create(medium, &spec, |area| {
        area.copy_in(0, &run.map(u64::to_le_bytes).concat());
        for at in (0..bytes).step_by(PAGE_BYTES as usize) {
            area.copy_in(HEAD_BYTES + at, &page(nonce, at));
        }
        area.persist(0, area.bytes());
    })?;
    let reaches_memory = area.survives().os;
    drop(area);
    if !reaches_memory && matches!(medium, Medium::Pmem { .. }) {
        remove(medium).map_err(|source| CreateError::Io { doing: "remove the pattern", source })?;
        return Ok(false);
    }
    Ok(true)
}

/// Looks at the pattern in this run of the system, and leaves it.
pub fn look(medium: &Medium, run: [u64; 2]) -> Result<Seen, AttachError> {
    let area = Area::attach(medium, CONTENT)?;
    let mut head = [0; 16];
    area.copy_out(0, &mut head);
    let [first, second] =
        [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|i| head[at + i])));
    let written_in = [first, second];
    if written_in == run {
        return Ok(Seen::SameRun);
    }
    let bytes = area.bytes() - HEAD_BYTES;
    let mut found = [0; PAGE_BYTES as usize];
    let mut kept_bytes = 0;
    for at in (0..bytes).step_by(PAGE_BYTES as usize) {
        area.copy_out(HEAD_BYTES + at, &mut found);
        kept_bytes += kept(&page(area.identity(), at), &found);
    }
    Ok(Seen::Restarted { bytes, kept_bytes, written_in })
}

/// Removes the pattern, if there is one.
pub fn remove(medium: &Medium) -> io::Result<()> {
    match holdfast_memory::Region::remove(medium) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Bytes in words that are the same: single bytes are the same by chance.
fn kept(written: &[u8; PAGE_BYTES as usize], found: &[u8; PAGE_BYTES as usize]) -> u64 {
    let (written, found) = (written.as_chunks::<8>().0, found.as_chunks::<8>().0);
    written.iter().zip(found).filter(|(written, found)| written == found).count() as u64
        * WORD_BYTES
}

/// A page of the pattern: words that no other place and no other pattern has (SplitMix64: G.
/// Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators").
fn page(nonce: [u8; 16], at: u64) -> [u8; PAGE_BYTES as usize] {
    let (low, high) =
        (u128::from_le_bytes(nonce) as u64, (u128::from_le_bytes(nonce) >> 64) as u64);
    let mut page = [0; PAGE_BYTES as usize];
    for (word, index) in page.as_chunks_mut::<8>().0.iter_mut().zip(at / WORD_BYTES..) {
        let mut mixed = low.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ high;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        *word = (mixed ^ (mixed >> 31)).to_le_bytes();
    }
    page
}

/// What this machine's firmware calls itself; empty if it says nothing.
pub fn firmware() -> String {
    let word = |name| fs::read_to_string(Path::new("/sys/class/dmi/id").join(name)).ok();
    let words: Vec<String> = FIRMWARE.into_iter().filter_map(word).collect();
    words.iter().map(|word| word.trim()).collect::<Vec<_>>().join(" ")
}

/// A run of the system as the kernel writes it.
pub fn run_text([first, second]: [u64; 2]) -> String {
    format!("{first:016x}{second:016x}")
}

impl Proof {
    /// What was found of a pattern in the run `looked_at_in`.
    pub fn new(
        (bytes, kept_bytes): (u64, u64),
        written_in: [u64; 2],
        looked_at_in: [u64; 2],
        firmware: &str,
    ) -> Proof {
        Proof {
            format: FORMAT,
            bytes,
            kept_bytes,
            written_in: run_text(written_in),
            looked_at_in: run_text(looked_at_in),
            firmware: firmware.to_owned(),
        }
    }

    /// True if this firmware kept every byte.
    pub fn holds(&self, firmware: &str) -> bool {
        self.bytes > 0 && self.kept_bytes == self.bytes && self.firmware == firmware
    }

    /// True if there is a proof in the folder, and it holds.
    pub(crate) fn holds_in(folder: &Path, firmware: &str) -> bool {
        Proof::get(folder).is_ok_and(|proof| proof.is_some_and(|proof| proof.holds(firmware)))
    }

    /// The proof in a folder, if there is one that is whole.
    pub fn get(folder: &Path) -> io::Result<Option<Proof>> {
        let opened = match private::open(&folder.join(PROOF_FILE), false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let text = io::read_to_string(opened)?;
        let (proof, check) = text.split_once('\n').unwrap_or_default();
        if check.trim_end() != check_of(proof) {
            return Ok(None);
        }
        let proof: Proof = serde_json::from_str(proof)?;
        Ok((proof.format == FORMAT).then_some(proof))
    }

    /// Keeps the proof in a folder, durably: wholly or not at all.
    pub fn put(&self, folder: &Path) -> io::Result<()> {
        let proof = serde_json::to_string(self)?;
        let text = format!("{proof}\n{}\n", check_of(&proof));
        private::replace(&folder.join(PROOF_FILE), text.as_bytes())
    }
}

/// What stands behind a proof, so that no accident is one.
fn check_of(proof: &str) -> String {
    format!("{:08x}", crc32c(0, proof.as_bytes()))
}

#[cfg(test)]
mod tests;
