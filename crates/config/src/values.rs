//! Values that sections of several kinds have, and what is checked of them.
//!
//! Promise: what is checked here is the same for every kind that has it, in the same words.
//! Never: looks at the machine, but for where an earlier version has made a region.

use std::path::{Path, PathBuf};

use holdfast_log::{LogConfig, SEGMENTS_MAX};
use holdfast_memory::Medium;
use serde::{Deserialize, Serialize};

use crate::claims::{Facts, Failure, MediumKind, Verdict, judge};
use crate::exit::Exit;
use crate::problem::{Outcome, Problem};
use crate::regions;
use crate::sizes::Size;

/// Longest volume name: it becomes part of file names and of the mount's source.
const NAME_BYTES_MAX: usize = 32;
/// A front end hands over up to 1 MiB at once, as one frame, and a frame takes at most half of a
/// segment.
const SEGMENT_BYTES_MIN: u64 = 4 << 20;
const RING_BYTES_MIN: u64 = 2 * SEGMENT_BYTES_MIN;
const SEGMENT_BYTES_MAX: u64 = 1 << 30;
const SEGMENT_BYTES_DEFAULT: u64 = 16 << 20;

/// `memory = { ... }`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryConfig {
    /// What the region is made of.
    pub medium: MediumKind,
    /// Bytes of the ring, a power of two; of a block cache, the bytes of its blocks.
    pub size: Size,
    /// The file or device. Only `shm` has a default: `/dev/shm/holdfast/NAME`.
    #[serde(default)]
    pub path: Option<PathBuf>,
}

/// How a front end reaches the memory of what it serves, and a volume's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// It has it itself: the fastest way.
    #[default]
    Direct,
    /// The server has it, and is asked through a queue: a front end that goes wrong reaches nothing
    /// but its own session.
    Queue,
}

/// How the kernel caches the contents of a mounted volume's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// Not at all: each read and write reaches the front end, and each write as it is.
    Direct,
    /// Reads are cached, writes reach the front end.
    WriteThrough,
}

pub(crate) fn must_survive_default() -> Vec<Failure> {
    Failure::DEFAULT.to_vec()
}

/// What acknowledgements mean, or why the claims refuse the configuration.
pub(crate) fn verdict_of(whose: &str, facts: &Facts<'_>) -> Outcome<Verdict> {
    let remedy = "change must_survive in the configuration";
    judge(facts).map_err(|why| claims_problem(whose, why, remedy))
}

/// Claims that cannot be kept.
pub fn claims_problem(whose: &str, why: String, remedy: &str) -> Problem {
    Problem::new(Exit::Claims, format!("judging what {whose} survives"), why, remedy)
}

impl MemoryConfig {
    /// The medium as the memory crate knows it.
    pub fn medium(&self) -> Medium {
        medium_at(self.medium, self.path.as_deref())
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        check_power_of_two("memory.size", self.size, RING_BYTES_MIN, 1 << 40)?;
        match (self.medium, &self.path) {
            (MediumKind::Private, Some(_)) => Err("memory.path: private memory has none".into()),
            (MediumKind::Private, None) => Ok(()),
            _ => self.check_place("memory.path"),
        }
    }

    /// Memory that others can find has a path.
    pub(crate) fn check_place(&self, key: &str) -> Result<(), String> {
        match &self.path {
            Some(path) => check_path(key, path),
            None => Err(format!("{key} is missing; medium = \"{}\" needs it", self.medium.word())),
        }
    }
}

/// The medium at a path. Checked: every medium but private memory has one.
pub fn medium_at(medium: MediumKind, path: Option<&Path>) -> Medium {
    let path = path.unwrap_or(Path::new("")).to_owned();
    match medium {
        MediumKind::Private => Medium::Private,
        MediumKind::Shm => Medium::Shm { path: regions::where_it_is(path) },
        MediumKind::Hugetlb => Medium::HugeTlb { path },
        MediumKind::Pmem => Medium::Pmem { path },
        MediumKind::File => Medium::File { path },
    }
}

/// The segment size that is asked for, or the one that suits the memory.
pub(crate) fn segment_for(memory: &MemoryConfig, asked: Option<Size>) -> Result<Size, String> {
    let suits = (memory.size.0 / 4).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_DEFAULT);
    let segment = asked.unwrap_or(Size(suits));
    check_power_of_two("segment", segment, SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX)?;
    if segment.0 > memory.size.0 / 2 {
        return Err(format!(
            "segment = \"{segment}\" is more than half of memory.size = \"{}\"",
            memory.size
        ));
    }
    Ok(segment)
}

/// The sizes of a log over this memory, once its segment size is known.
pub(crate) fn log_config(memory: &MemoryConfig, segment: Option<Size>) -> LogConfig {
    let segment_bytes = segment.expect("a checked configuration has a segment size").0;
    // As many as the ring covers, and two more: one being filled, one being prepared.
    let segments = memory.size.0 / segment_bytes + 2;
    let segments = u32::try_from(segments).map_or(SEGMENTS_MAX, |n| n.min(SEGMENTS_MAX));
    LogConfig::in_ring(memory.size.0, segment_bytes, segments)
}

pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    match (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(plain) {
        true => Ok(()),
        false => Err(format!("a name has 1 to {NAME_BYTES_MAX} of a-z, 0-9, - and _")),
    }
}

/// Front ends are started elsewhere, so a relative path would mean another place to them.
pub(crate) fn check_path(key: &str, path: &Path) -> Result<(), String> {
    match path.is_absolute() {
        true => Ok(()),
        false => Err(format!("{key} = {path:?} is not an absolute path")),
    }
}

pub(crate) fn check_power_of_two(key: &str, size: Size, min: u64, max: u64) -> Result<(), String> {
    match size.0.is_power_of_two() && (min..=max).contains(&size.0) {
        true => Ok(()),
        false => Err(format!(
            "{key} = \"{size}\" is not a power of two from {} to {}",
            Size(min),
            Size(max)
        )),
    }
}
