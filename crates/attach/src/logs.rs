//! What every process that opens a log does alike: the memory it stands on, and its errors as
//! problems of the user's.
//!
//! Promise: a region is taken as it was left, or made to fit its log; every problem names the log
//! and says what to do.
//! Never: opens a log.

use crate::bond::{Loss, RegionNote};
use crate::observe::region_problem;
use crate::remedy::accept_memory_lost;
use holdfast_client::protocol::{LOG_PREFIX, TABLE_PREFIX, VOLUME_PREFIX};
use holdfast_config::claims::{Memory, Verdict};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_config::{MemoryConfig, VolumeConfig};
use holdfast_io::{Files, Kind};
use holdfast_log::{FileFault, Log, OpenError, Recovery, Source, Spoilt, is_segment_name, words};
use holdfast_machine::advice::cure;
use holdfast_machine::found::memory_of;
use holdfast_machine::holders::is_mapped_by;
use holdfast_machine::lock::{CATALOGUES, take_directory};
use holdfast_memory::{AttachError, CreateError, Medium, MediumSurvival, Region, RegionSpec};
use std::io;
use std::io::ErrorKind::NotFound;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The roster holds a name a record, about 60 bytes; an eighth of the ring is room for most trees.
const ROSTER_BYTES_MIN: u64 = 4 << 20;
const ROSTER_BYTES_MAX: u64 = 64 << 20;

/// What has a log's files, for people.
pub const THE_DISK: &str = "the log's disk";

/// How long a process may take to end, with its memory gone and its files still open.
const ENDING: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Attaches the region on a medium, once whoever had it before has let go of it: a process that
/// ends gives its memory back first, so it is no longer seen to serve, and its claim a moment
/// later. `term` is the keeper's, if other hosts stand by.
pub fn attach(medium: &Medium, term: Option<u64>) -> Result<Region, AttachError> {
    let attach = || match term {
        None => Region::attach(medium),
        Some(term) => Region::attach_in_term(medium, term),
    };
    let holder = |error: &AttachError| match error {
        AttachError::InUse { pid } => Some(*pid),
        _ => None,
    };
    once_let_go(medium, attach, holder)
}

/// [`attach`] for whatever the region holds; `holder` tells who has it, if that is the error.
pub fn once_let_go<T, E>(
    medium: &Medium,
    attach: impl Fn() -> Result<T, E>,
    holder: impl Fn(&E) -> Option<u32>,
) -> Result<T, E> {
    until_let_go(attach, |error| holder(error).is_some_and(|pid| !is_mapped_by(medium, pid)))
}

/// Tries for as long as a process may take to end, while it is one that ends.
pub fn until_let_go<T, E>(
    attach: impl Fn() -> Result<T, E>,
    is_ending: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let begun = Instant::now();
    loop {
        let attached = attach();
        if !attached.as_ref().is_err_and(&is_ending) || begun.elapsed() >= ENDING {
            return attached;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The region as it was left, or a new one, with what one that is gone may have cost. `service` is
/// whose log `files` has: `volume/NAME` or `log/NAME`.
pub fn region(
    service: &str,
    memory: &MemoryConfig,
    files: &dyn Files,
    term: Option<u64>,
) -> Outcome<(Region, Option<Loss>)> {
    let medium = memory.medium();
    let attached = attach(&medium, term);
    let loss = match &attached {
        Err(AttachError::Missing | AttachError::OtherBoot) => {
            RegionNote::without(service, memory, files)?
        }
        _ => None,
    };
    loss.iter().for_each(|loss| tracing::warn!(service, "{}", loss.text()));
    match attached {
        Ok(region) if !is_to_be_replaced(&region, memory, files) => return Ok((region, None)),
        Ok(never_used) => removed(service, never_used.remove_this(&medium).map(drop))?,
        Err(AttachError::Missing) => {}
        // No claim rests on such memory, so the log's device has all that was to survive.
        Err(AttachError::OtherBoot) => remove_earlier(service, &medium)?,
        Err(error) => return Err(region_problem("attaching", (service, &medium), &error)),
    }
    let region = create(service, memory, files)?;
    term.map(|term| region.note_term(term));
    Ok((region, loss))
}

/// Takes memory of an earlier run of the system away, which is not believed.
pub fn remove_earlier(service: &str, medium: &Medium) -> Outcome<()> {
    tracing::warn!(service, "the system has restarted: memory is filled from the log anew");
    removed(service, Region::remove(medium))
}

/// Takes memory away that its log went on without, and that had nothing which the log's disk lacks.
pub fn remove_needless(service: &str, medium: &Medium) -> Outcome<()> {
    tracing::info!(service, "the log went on without memory that it did not need: it is made anew");
    removed(service, Region::remove(medium))
}

/// Whether an attempt left a region that it never used, and that has another size than memory is to
/// have by now: the log has no byte in it.
fn is_to_be_replaced(region: &Region, memory: &MemoryConfig, files: &dyn Files) -> bool {
    let is_its_own = Log::identity_of(files).is_ok_and(|log| log == region.identity());
    let is_filled = region.word(words::GENERATION).load(Ordering::Relaxed) != 0;
    let is_empty = !is_filled && region.marks().tail == 0;
    is_its_own && is_empty && region.ring_bytes() != memory.size.0
}

fn removed(service: &str, removed: io::Result<()>) -> Outcome<()> {
    removed.map_err(|error| {
        let what = format!("removing the region of {}", whose(service));
        Problem::new(Exit::Failed, what, error, "nothing was changed; remove it by hand")
    })
}

/// Refuses memory that would be made too small for its log.
pub(super) fn refuse_too_small(
    service: &str,
    memory: &MemoryConfig,
    files: &dyn Files,
) -> Outcome<()> {
    let needed_bytes = Log::ring_bytes_min(files).map_err(|error| open_problem(service, &error))?;
    let ring_bytes = memory.size.0;
    match ring_bytes < needed_bytes {
        true => Err(open_problem(service, &OpenError::RingTooSmall { ring_bytes, needed_bytes })),
        false => Ok(()),
    }
}

/// A region for a log that has none.
fn create(service: &str, memory: &MemoryConfig, files: &dyn Files) -> Outcome<Region> {
    let identity = Log::identity_of(files).map_err(|error| open_problem(service, &error))?;
    refuse_too_small(service, memory, files)?;
    let ring_bytes = memory.size.0;
    let roster_bytes = (ring_bytes / 8).clamp(ROSTER_BYTES_MIN, ROSTER_BYTES_MAX);
    let spec = RegionSpec { ring_bytes, roster_bytes, identity };
    Region::create(&memory.medium(), &spec).map_err(|error| {
        let exit = match error {
            CreateError::Io { .. } => Exit::Failed,
            _ => Exit::Usage,
        };
        let what = format!("making the region of {}", whose(service));
        let remedy = "see memory.medium, memory.path and memory.size in the configuration";
        match error {
            // Somebody was faster, and has it.
            CreateError::Exists { path } => {
                let why = format!("{} holds a region already", path.display());
                Problem::new(Exit::InUse, what, why, "nothing was changed; see whose it is")
            }
            error => Problem::new(exit, what, error, remedy),
        }
    })
}

/// Says beside the log, before anything is acknowledged, that its newest bytes are in this memory.
pub fn note_region(
    service: &str,
    files: &dyn Files,
    held: (&MemoryConfig, &Verdict, u64),
    loss: Option<Loss>,
) -> Outcome<()> {
    RegionNote::begin(files, held, loss).map_err(|error| {
        let what = format!("noting the memory of {}", whose(service));
        let remedy = format!("nothing is lost; {}", cure(&error, THE_DISK));
        Problem::new(Exit::Failed, what, error, remedy)
    })
}

/// What the memory is: only the mapping can tell whether stores reach persistent memory itself.
pub fn real_memory(memory: &MemoryConfig, region: &Region) -> Memory {
    as_mapped(memory_of(memory), region.survives())
}

/// [`real_memory`] of any mapping.
pub fn as_mapped(found: Memory, survival: MediumSurvival) -> Memory {
    match found {
        Memory::Unproven | Memory::Reserved | Memory::Persistent if !survival.os => Memory::File,
        found => found,
    }
}

/// What is wrong with the files that make a directory a log, of which one is enough, where it has
/// been one.
pub fn catalogue_problem(
    (what, service): (&str, &str),
    files: &dyn Files,
    medium: &Medium,
) -> Option<Problem> {
    let [name, _] = CATALOGUES;
    let found = CATALOGUES.map(|name| files.metadata(Path::new(name)).ok().map(|it| it.kind));
    let why = match found {
        [Some(Kind::File), _] | [_, Some(Kind::File)] => match Log::identity_of(files) {
            Err(error @ OpenError::File { .. }) if left_in_memory(service, medium).is_some() => {
                error.to_string()
            }
            _ => return None,
        },
        [Some(kind), _] => format!("the file {name} is none: it is a {}", kind_text(kind)),
        _ if has_segments(files) => {
            format!("the file {name} is missing, and the log's segments are there")
        }
        _ if left_in_memory(service, medium).is_some() => {
            format!("the file {name} is missing, and so are the log's segments")
        }
        _ => return None,
    };
    let remedy = "nothing was changed; restore `catalogue` from a copy".to_owned();
    let remedy = remedy + &left_in_memory(service, medium).map_or(String::new(), |it| it.ways());
    Some(Problem::new(Exit::Damaged, what, why, remedy))
}

/// What memory has of a log, and its reader may lack.
pub struct Left<'a> {
    /// `volume`, `log` or `table`.
    kind: &'a str,
    name: &'a str,
    bytes: u64,
}

impl Left<'_> {
    /// The ways on, as the end of a remedy.
    pub fn ways(&self) -> String {
        let Left { kind, name, bytes } = self;
        let bytes = rounded(*bytes);
        match *kind {
            "volume" => format!(
                "; or, if it is gone for good: the memory still has {bytes} that the home may \
                 lack, from which `holdfast volume mend {name}` makes the log again, and which \
                 `holdfast volume accept {name} --keep home` would give up"
            ),
            _ => format!(
                "; or, if it is gone for good: the memory still has {bytes} that nobody has \
                 released, from which `holdfast {kind} mend {name}` makes the log again"
            ),
        }
    }
}

/// What the memory of a volume, served log or table has that its reader may lack, if anything.
pub fn left_in_memory<'a>(service: &'a str, medium: &Medium) -> Option<Left<'a>> {
    let (kind, name) = service.split_once('/')?;
    let is_mendable =
        [VOLUME_PREFIX, LOG_PREFIX, TABLE_PREFIX].iter().any(|it| service.starts_with(it));
    let marks = Region::observe(medium).ok()?.marks();
    let bytes = marks.tail.saturating_sub(marks.released);
    (is_mendable && bytes > 0).then_some(Left { kind, name, bytes })
}

/// [`take_log`] of a volume.
pub fn take_log_of(name: &str, volume: &VolumeConfig) -> Outcome<OwnedFd> {
    take_log(&format!("{VOLUME_PREFIX}{name}"), &volume.log, &volume.medium())
}

/// Opens the directory of a log and takes it, as [`take_directory`]. One that is missing although
/// its memory is there is not to be made as a new one.
pub fn take_log(service: &str, log: &Path, medium: &Medium) -> Outcome<OwnedFd> {
    take_directory("log", log).map_err(|problem| {
        let is_missing = log.symlink_metadata().is_err_and(|it| it.kind() == NotFound);
        let left = is_missing.then(|| left_in_memory(service, medium)).flatten();
        let Some(left) = left else { return problem };
        let remedy = "nothing was changed; mount the file system that it is on, or put it back";
        let why = format!("the log's directory {} is missing", log.display());
        Problem::new(Exit::Damaged, problem.what, why, remedy.to_owned() + &left.ways())
    })
}

fn has_segments(files: &dyn Files) -> bool {
    let found = files.read_dir(Path::new("")).unwrap_or_default();
    found.iter().any(|entry| std::str::from_utf8(&entry.name).is_ok_and(is_segment_name))
}

fn kind_text(kind: Kind) -> &'static str {
    match kind {
        Kind::Directory => "directory",
        Kind::Symlink => "symbolic link",
        _ => "special file",
    }
}

/// Why a log cannot be opened.
pub fn open_problem(service: &str, error: &OpenError) -> Problem {
    let (kind, name) = service.split_once('/').unwrap_or(("log", service));
    let (exit, remedy) = match error {
        OpenError::NoLog => (Exit::Usage, format!("make it with `holdfast {kind} make {name}`")),
        OpenError::InUse => (Exit::InUse, "stop what uses it".to_owned()),
        OpenError::RingTooSmall { .. } => (Exit::Usage, "enlarge memory.size".to_owned()),
        OpenError::Io(error) => {
            (Exit::Failed, format!("nothing is lost; {}, then try again", cure(error, THE_DISK)))
        }
        OpenError::ForeignRegion { .. }
        | OpenError::StaleRegion { .. }
        | OpenError::OlderRegion { .. }
        | OpenError::Marks(_) => (
            Exit::Damaged,
            format!(
                "nothing was changed; put the log's memory back, or go on without it: {}",
                accept_memory_lost(kind, name)
            ),
        ),
        OpenError::Corrupt { .. } if kind == "volume" => (
            Exit::Damaged,
            format!(
                "nothing was changed; `holdfast volume check {name}` says where, and what to do"
            ),
        ),
        OpenError::File { name, fault: FileFault::NotAFile } => (Exit::Damaged, in_the_way(name)),
        OpenError::MissingSegment { .. } | OpenError::File { .. } if kind == "volume" => (
            Exit::Damaged,
            format!(
                "nothing was changed; {}restore what is named; or, to go on with the home as it \
                 is, `holdfast volume accept {name} --keep home` puts the log aside",
                cut_off(error)
            ),
        ),
        _ => {
            let remedy = format!("nothing was changed; {}restore what is named", cut_off(error));
            (Exit::Damaged, remedy)
        }
    };
    Problem::new(exit, format!("opening the log of {}", whose(service)), error, remedy)
}

/// `volume/db` for people.
fn whose(service: &str) -> String {
    service.replacen('/', " ", 1)
}

/// Says in the process's own log what the log's disk had lost.
pub fn told_lacking(name: &str, recovery: &Recovery) {
    let text = lacking_text(recovery);
    if !text.is_empty() {
        tracing::warn!(name, "the log's disk lost what it had confirmed{text}");
    }
    recovery.shortened.iter().for_each(|spoilt| tracing::warn!(name, "{}", shortened(spoilt)));
}

/// What the log's disk had lost, and what became of that, for people.
fn lacking_text(recovery: &Recovery) -> String {
    let bytes = recovery.again.iter().map(|it| it.to.0 - it.from.0).sum::<u64>();
    let again = match recovery.again.first() {
        Some(first) => format!(
            "; {}, first at LSN {}, were damaged or missing on the log's disk, and were written \
             again from memory",
            rounded(bytes),
            first.from
        ),
        None => String::new(),
    };
    let lacks = recovery.lacks.map_or(String::new(), |lacks| {
        format!("; the log's disk does not take again what it lost at LSN {}", lacks.from)
    });
    again + &lacks
}

/// What recovery found, for people; with what was applied to a home, if there is one.
pub fn recovery_text(recovery: &Recovery, applied_bytes: Option<u64>) -> String {
    found_text(recovery, applied_bytes) + &lacking_text(recovery)
}

fn found_text(recovery: &Recovery, applied_bytes: Option<u64>) -> String {
    let kept = rounded(recovery.tail.0.saturating_sub(recovery.released.0));
    let found = match (recovery.source, applied_bytes) {
        (Source::Ring, _) => format!("{kept} of log found in memory"),
        (Source::Segments, None) => format!("{kept} of log found on disk"),
        (Source::Segments, Some(applied_bytes)) => {
            let applied = rounded(applied_bytes);
            format!("{kept} of log found on disk, {applied} of it applied to the home")
        }
    };
    let remade = recovery.remade.iter().map(remade);
    let told = remade.chain(recovery.shortened.iter().map(shortened));
    told.fold(found, |text, of_file| format!("{text}; {of_file}"))
}

/// A segment that was cut to its length, for people.
fn shortened(spoilt: &Spoilt) -> String {
    let Spoilt { name, fault } = spoilt;
    format!("the log's file {name} has been cut to its length ({fault})")
}

/// A catalogue that was made again, for people.
pub fn remade(spoilt: &Spoilt) -> String {
    let Spoilt { name, fault } = spoilt;
    format!("the log's file {name} has been made again from its copy ({fault})")
}

/// What to do first about a file that is longer than it was made, and has all that it had, if what
/// it has too much is behind that; nothing about any other.
pub fn cut_off(error: &OpenError) -> String {
    let OpenError::File { name, fault: FileFault::TooLong { length, .. } } = error else {
        return String::new();
    };
    format!(
        "keep a copy of that file, and if more was added to its end, cut that off: `truncate -s \
         {length} {name}` in the log's directory, then check it; or "
    )
}

/// What to do where something else has a catalogue's name.
pub fn in_the_way(name: &str) -> String {
    format!("nothing was changed; move `{name}` away: it is made again from its copy")
}

#[cfg(test)]
mod tests;
