//! The catalogue: which files are the log's, where it begins, and where there is nothing of it.
//!
//! Promise: of the two files the whole one with the higher sequence counts.
//! Never: goes by files that no catalogue lists.

use std::collections::BTreeMap;

use crate::Directory;
use crate::check::{crc32c, u16_at, u32_at, u64_at};

const NAMES: [&str; 2] = ["catalogue", "catalogue.copy"];
const MAGIC: u32 = u32::from_le_bytes(*b"HFFC");
/// Where the entries begin.
const HEAD_BYTES: usize = 72;
const ENTRY_BYTES: usize = 16;

/// One catalogue.
#[derive(Clone, Debug)]
pub(crate) struct Catalogue {
    pub(crate) identity: [u8; 16],
    pub(crate) segment_bytes: u64,
    pub(crate) first: u64,
    pub(crate) durable: u64,
    /// Numbers in the names of files, by number of segment.
    pub(crate) files: BTreeMap<u64, u32>,
    /// Where there is nothing of the log: from, and where it goes on.
    pub(crate) gaps: Vec<(u64, u64)>,
    sequence: u64,
}

impl Catalogue {
    /// The one that counts.
    pub(crate) fn newest(directory: &Directory) -> Result<Catalogue, String> {
        let all = NAMES.iter().filter_map(|name| Catalogue::parse(directory.get(*name)?));
        let newest = all.max_by_key(|it| it.sequence);
        newest.ok_or("no catalogue of version 2 or 3 is whole".to_owned())
    }

    fn parse(bytes: &[u8]) -> Option<Catalogue> {
        let version = u32_at(bytes, 4)?;
        if u32_at(bytes, 0)? != MAGIC || !(2..=3).contains(&version) {
            return None;
        }
        let (count, holes) = (u32_at(bytes, 12)? as usize, usize::from(u16_at(bytes, 62)?));
        let holes_at = HEAD_BYTES.checked_add(count.checked_mul(ENTRY_BYTES)?)?;
        let cuts_at = holes_at.checked_add(holes * ENTRY_BYTES)?;
        let cuts = if version == 3 { usize::try_from(u64_at(bytes, cuts_at)?).ok()? } else { 0 };
        let cuts_end = (cuts_at + ENTRY_BYTES).checked_add(cuts.checked_mul(ENTRY_BYTES)?)?;
        let end = if version == 3 { cuts_end } else { cuts_at };
        if crc32c(0, bytes.get(12..end)?) != u32_at(bytes, 8)? {
            return None;
        }
        let pair = |at: usize| Some((u64_at(bytes, at)?, u64_at(bytes, at + 8)?));
        let pairs = |at: usize, count: usize| {
            (0..count).map(|n| pair(at + n * ENTRY_BYTES)).collect::<Option<Vec<_>>>()
        };
        let mut gaps = pairs(holes_at, holes)?;
        gaps.extend(pairs(cuts_at + ENTRY_BYTES, cuts)?);
        let entries = pairs(HEAD_BYTES, count)?.into_iter();
        Some(Catalogue {
            identity: *bytes.get(16..)?.first_chunk()?,
            segment_bytes: u64_at(bytes, 32)?,
            first: u64_at(bytes, 40)?,
            durable: u64_at(bytes, 48)?,
            // The number in the name is the lower half of the first word.
            files: entries.map(|(name, number)| (number, name as u32)).collect(),
            gaps,
            sequence: u64_at(bytes, 64)?,
        })
    }
}
