//! The superblock: the first page of a region, which says what the rest is.
//!
//! Promise: bytes that decode were written by [`Superblock::encode`] for a region of this version;
//! another version is told apart from damage, and each field has its own error.
//! Never: reads shared memory twice: it decodes a copy.
//!
//! Byte table: FORMAT.md, "Superblock". Bytes 0..128 are written once; the check covers them in
//! every version, so that a newer version is recognised as whole. The generation behind them
//! changes on each attach and carries its own check in the same word, so one store replaces both.

use std::mem::offset_of;

use crate::control::{CONTROL_BYTES, PAGE_BYTES};
use crate::lock::HOLDER_MAX;
use crate::medium;

/// The format version of a region with a ring.
const RING_VERSION: u32 = 1;

/// That of an area, and the newest that this program knows.
pub(crate) const VERSION: u32 = 2;

/// The first bytes of every region of every version.
pub(crate) const MAGIC: [u8; 8] = *b"HFREGION";

/// The part written once and covered by the check.
const STATIC_BYTES: usize = 128;

/// The largest region: a bound that keeps sums of offsets far from overflow.
pub(crate) const REGION_BYTES_MAX: u64 = 1 << 46;

/// The page's fields, where they lie. Read through a copy, never by reference.
#[repr(C)]
struct RawSuperblock {
    magic: [u8; 8],
    version: u32,
    header_check: u32,
    identity: [u8; 16],
    medium: u32,
    section_count: u32,
    region_bytes: u64,
    sections: [RawSection; SECTIONS],
    content: [u8; 8],
    reserved: [u8; 24],
    generation: u64,
}

/// One row of the section table.
#[repr(C)]
struct RawSection {
    offset: u64,
    bytes: u64,
}

/// Control page, roster, ring or area, in this order.
const SECTIONS: usize = 3;
const SECTION_NAMES: [&str; SECTIONS] = ["control", "roster", "ring"];

const _: () = assert!(offset_of!(RawSuperblock, generation) == STATIC_BYTES);

/// The content of a region whose last section is the ring of a log. Any other is an area.
pub(crate) const RING: [u8; 8] = [0; 8];

/// Where the generation lies: after the static part, in a word of its own.
pub(crate) const GENERATION_OFFSET: u64 = offset_of!(RawSuperblock, generation) as u64;

/// The fields of the page: name, bytes from the start of the region, size in bytes.
#[cfg(test)]
pub(crate) const FIELDS: [(&str, usize, usize); 13] = [
    ("magic", offset_of!(RawSuperblock, magic), 8),
    ("version", offset_of!(RawSuperblock, version), 4),
    ("header_check", offset_of!(RawSuperblock, header_check), 4),
    ("identity", offset_of!(RawSuperblock, identity), 16),
    ("medium", offset_of!(RawSuperblock, medium), 4),
    ("section_count", offset_of!(RawSuperblock, section_count), 4),
    ("region_bytes", offset_of!(RawSuperblock, region_bytes), 8),
    ("control", section_offset(0), size_of::<RawSection>()),
    ("roster", section_offset(1), size_of::<RawSection>()),
    ("ring", section_offset(2), size_of::<RawSection>()),
    ("content", offset_of!(RawSuperblock, content), 8),
    ("reserved", offset_of!(RawSuperblock, reserved), 24),
    ("generation", offset_of!(RawSuperblock, generation), 8),
];

/// A piece of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Section {
    pub(crate) fn end(self) -> u64 {
        self.offset + self.bytes
    }
}

/// What the static part of the page says, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) identity: [u8; 16],
    pub(crate) medium: u32,
    pub(crate) content: [u8; 8],
    pub(crate) roster: Section,
    /// The ring, or the area.
    pub(crate) ring: Section,
}

/// Why a page is no superblock of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SuperblockFault {
    /// Whole, and of another version.
    OtherVersion { found: u32 },
    /// The field at the offset does not hold what it must.
    Field { name: &'static str, offset: usize },
}

/// The fault of a field, found by its name in the struct.
macro_rules! fault {
    ($name:literal, $field:ident) => {
        SuperblockFault::Field { name: $name, offset: offset_of!(RawSuperblock, $field) }
    };
}

impl Superblock {
    /// The superblock of a new region: sections one after another, each on a page boundary.
    pub(crate) fn plan(identity: [u8; 16], medium: u32, roster: u64, ring: u64) -> Superblock {
        let roster = Section {
            offset: PAGE_BYTES + CONTROL_BYTES,
            bytes: roster.next_multiple_of(PAGE_BYTES),
        };
        let ring = Section { offset: roster.end(), bytes: ring };
        Superblock { identity, medium, content: RING, roster, ring }
    }

    /// Bytes of the whole region.
    pub(crate) fn region_bytes(&self) -> u64 {
        self.ring.end()
    }

    /// The page; making it is the first attachment.
    pub(crate) fn encode(&self) -> [u8; PAGE_BYTES as usize] {
        let control = Section { offset: PAGE_BYTES, bytes: CONTROL_BYTES };
        let mut page = [0; PAGE_BYTES as usize];
        put(&mut page, offset_of!(RawSuperblock, magic), &MAGIC);
        let version = version_of(&self.content).to_le_bytes();
        put(&mut page, offset_of!(RawSuperblock, version), &version);
        put(&mut page, offset_of!(RawSuperblock, identity), &self.identity);
        put(&mut page, offset_of!(RawSuperblock, medium), &self.medium.to_le_bytes());
        let count = (SECTIONS as u32).to_le_bytes();
        put(&mut page, offset_of!(RawSuperblock, section_count), &count);
        let region_bytes = self.region_bytes().to_le_bytes();
        put(&mut page, offset_of!(RawSuperblock, region_bytes), &region_bytes);
        for (index, section) in [control, self.roster, self.ring].iter().enumerate() {
            let at = section_offset(index);
            put(&mut page, at, &section.offset.to_le_bytes());
            put(&mut page, at + 8, &section.bytes.to_le_bytes());
        }
        put(&mut page, offset_of!(RawSuperblock, content), &self.content);
        let check = static_check(&page).to_le_bytes();
        put(&mut page, offset_of!(RawSuperblock, header_check), &check);
        let generation = generation_word(&self.identity, 1).to_le_bytes();
        put(&mut page, offset_of!(RawSuperblock, generation), &generation);
        page
    }

    /// Checks a copy of the page against itself and against the `mapped_bytes` there are.
    pub(crate) fn decode(page: &[u8], mapped_bytes: u64) -> Result<Superblock, SuperblockFault> {
        if !page.starts_with(&MAGIC) {
            return Err(fault!("magic", magic));
        }
        let whole = u32_at(page, offset_of!(RawSuperblock, header_check)) == static_check(page);
        match u32_at(page, offset_of!(RawSuperblock, version)) {
            RING_VERSION | VERSION if whole => {}
            RING_VERSION | VERSION => return Err(fault!("header_check", header_check)),
            found if whole => return Err(SuperblockFault::OtherVersion { found }),
            _ => return Err(fault!("version", version)),
        }
        let superblock = decode_fields(page)?;
        if superblock.region_bytes() > mapped_bytes {
            return Err(fault!("region_bytes", region_bytes));
        }
        Ok(superblock)
    }
}

/// The fields behind the version, each with its own check although the page's check passed: a
/// program that wrote nonsense with a right check is still wrong.
fn decode_fields(page: &[u8]) -> Result<Superblock, SuperblockFault> {
    let medium = u32_at(page, offset_of!(RawSuperblock, medium));
    if medium::name_of(medium).is_none() {
        return Err(fault!("medium", medium));
    }
    if u32_at(page, offset_of!(RawSuperblock, section_count)) as usize != SECTIONS {
        return Err(fault!("section_count", section_count));
    }
    let control = section_at(page, 0, PAGE_BYTES)?;
    let roster = section_at(page, 1, control.end())?;
    let ring = section_at(page, 2, roster.end())?;
    if control.bytes != CONTROL_BYTES {
        return Err(SuperblockFault::Field { name: "control", offset: section_offset(0) });
    }
    let content = array_at(page, offset_of!(RawSuperblock, content));
    if u32_at(page, offset_of!(RawSuperblock, version)) != version_of(&content) {
        return Err(fault!("content", content));
    }
    if content == RING && !ring.bytes.is_power_of_two() {
        return Err(SuperblockFault::Field { name: "ring", offset: section_offset(2) });
    }
    if u64_at(page, offset_of!(RawSuperblock, region_bytes)) != ring.end() {
        return Err(fault!("region_bytes", region_bytes));
    }
    let reserved = offset_of!(RawSuperblock, reserved);
    if page[reserved..STATIC_BYTES].iter().any(|byte| *byte != 0) {
        return Err(fault!("reserved", reserved));
    }
    let identity = array_at(page, offset_of!(RawSuperblock, identity));
    Ok(Superblock { identity, medium, content, roster, ring })
}

/// The version of a region that holds this.
fn version_of(content: &[u8; 8]) -> u32 {
    if *content == RING { RING_VERSION } else { VERSION }
}

/// One row of the section table: it must start where the one before it ends.
fn section_at(page: &[u8], index: usize, starts: u64) -> Result<Section, SuperblockFault> {
    let at = section_offset(index);
    let section = Section { offset: u64_at(page, at), bytes: u64_at(page, at + 8) };
    let whole_pages = section.bytes != 0 && section.bytes.is_multiple_of(PAGE_BYTES);
    if section.offset != starts || !whole_pages || section.bytes > REGION_BYTES_MAX {
        return Err(SuperblockFault::Field { name: SECTION_NAMES[index], offset: at });
    }
    Ok(section)
}

/// The word that holds a generation: the number in the low half, its check in the high half.
pub(crate) fn generation_word(identity: &[u8; 16], generation: u32) -> u64 {
    let check = crc32c::crc32c_append(crc32c::crc32c(identity), &generation.to_le_bytes());
    u64::from(generation) | u64::from(check) << 32
}

/// The generation in `word`, if the word is whole.
pub(crate) fn generation_in(identity: &[u8; 16], word: u64) -> Option<u32> {
    let generation = (word & u64::from(u32::MAX)) as u32;
    let whole = word == generation_word(identity, generation);
    (whole && generation <= HOLDER_MAX).then_some(generation)
}

/// The check over the static part, the check itself left out.
fn static_check(page: &[u8]) -> u32 {
    let at = offset_of!(RawSuperblock, header_check);
    crc32c::crc32c_append(crc32c::crc32c(&page[..at]), &page[at + 4..STATIC_BYTES])
}

const fn section_offset(index: usize) -> usize {
    offset_of!(RawSuperblock, sections) + index * size_of::<RawSection>()
}

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

fn u32_at(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(page, at))
}

fn u64_at(page: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(page, at))
}

fn array_at<const BYTES: usize>(page: &[u8], at: usize) -> [u8; BYTES] {
    page[at..at + BYTES].try_into().expect("as many bytes were cut")
}
