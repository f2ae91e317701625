//! `holdfast volume check`.
//!
//! Promise: paths, claims, every frame of the log that is still needed, and every frame that waits
//! in memory are looked at; what is damaged is named by position, file and offset, with what to do.
//! Never: changes anything; looks at a volume that is served.

use super::volume::{aloud, refuse_mounted};
use crate::config::{Config, VolumeConfig};
use crate::exit::Exit;
use crate::found::verdict;
use crate::keeper::lock::{take_directory, take_home};
use crate::observe::region_problem;
use crate::output::{Output, Progress};
use crate::problem::{Outcome, Problem};
use crate::report::verdict_text;
use crate::sizes::rounded;
use holdfast_io::real::RealFiles;
use holdfast_log::{CheckVerdict, CheckedRing, FilePlace, Log, OpenError, Verified};
use holdfast_memory::{AttachError, Region};

/// What is checked, and where.
struct Check<'a> {
    name: &'a str,
    volume: &'a VolumeConfig,
    files: RealFiles,
}

/// What waits in memory.
struct Memory {
    ring: Option<CheckedRing>,
    dirty_bytes: u64,
    unapplied_bytes: u64,
}

impl Memory {
    /// Whether a mount needs nothing of what the log's disk has.
    fn has_all(&self) -> bool {
        self.ring.is_some_and(|ring| ring.healable.is_none())
    }
}

/// Checks a volume that is not mounted.
pub(super) fn check(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let volume = config.volume(name)?;
    let verdict = verdict(name, volume, config.keeper.power)?;
    let remedy = "`holdfast status` tells how it is".to_owned();
    refuse_mounted(format!("checking volume {name}"), volume, remedy)?;
    // Held to the end: nobody takes the volume into use while it is read.
    let _home = take_home(&volume.home)?;
    let files = RealFiles::from_fd(take_directory("log", &volume.log)?);
    let check = Check { name, volume, files };
    let mut progress = Progress::new();
    let say = || progress.say(&format!("{name}: reading every frame of the log"));
    let (log, memory) = aloud(say, || check.look())?;
    drop(progress);
    let text = format!(
        "{name}: paths, log and memory are sound\n  log     {}\n  memory  {}\n{}",
        log_text(&log),
        memory_text(memory.as_ref()),
        verdict_text(&verdict)
    );
    output.result(&json(name, &log, memory.as_ref(), &text), &text);
    Ok(())
}

impl Check<'_> {
    /// The log first: it says what the ring should be.
    fn look(&self) -> Outcome<(Verified, Option<Memory>)> {
        let log =
            Log::verify(&self.files, &mut |_| {}).map_err(|error| self.log_problem(&error))?;
        let memory = self.memory();
        if let CheckVerdict::Corrupt { from, to } = log.verdict {
            let has_all = memory.is_ok_and(|memory| memory.is_some_and(|m| m.has_all()));
            return Err(self.corrupt(&OpenError::Corrupt { from, to }, &log, has_all));
        }
        Ok((log, memory?))
    }

    /// The region, if there is one, must be whole and belong to the log.
    fn memory(&self) -> Outcome<Option<Memory>> {
        let medium = self.volume.medium();
        let seen = match Region::observe(&medium) {
            Ok(seen) => seen,
            Err(AttachError::Missing) => return Ok(None),
            Err(error) => return Err(region_problem("looking at", &medium, &error)),
        };
        let ring = Log::check_ring(&self.files, &seen).map_err(|e| self.region_problem(&e))?;
        if let Some(at) = ring.and_then(|ring| ring.lost) {
            return Err(self.lost(at.get(), seen.marks().tail));
        }
        let marks = seen.marks();
        let (dirty_bytes, unapplied_bytes) =
            (marks.tail.saturating_sub(marks.durable), marks.tail.saturating_sub(marks.released));
        Ok(Some(Memory { ring, dirty_bytes, unapplied_bytes }))
    }

    fn what(&self) -> String {
        format!("checking the log {} of volume {}", self.volume.log.display(), self.name)
    }

    fn log_problem(&self, error: &OpenError) -> Problem {
        let (exit, remedy) = match error {
            OpenError::NoLog => {
                (Exit::Usage, format!("make it with `holdfast volume make {}`", self.name))
            }
            OpenError::Io(_) => (Exit::Failed, "mend the log's disk, then check again".to_owned()),
            OpenError::OtherVersion { .. } => {
                (Exit::Damaged, "use the version that made it".to_owned())
            }
            _ => (Exit::Damaged, "nothing was changed; restore that file".to_owned()),
        };
        Problem::new(exit, self.what(), error, remedy)
    }

    fn corrupt(&self, fault: &OpenError, log: &Verified, memory_has_all: bool) -> Problem {
        let place = log.place.as_ref().map_or_else(String::new, place_text);
        let (name, directory) = (self.name, self.volume.log.display());
        let remedy = match memory_has_all {
            true => format!(
                "nothing was changed, and memory has all that the home lacks: `holdfast umount \
                 {name}` brings it home; then move {directory} away and `holdfast volume make \
                 {name}`"
            ),
            false => format!(
                "nothing was changed; restore that file from a copy, or, to go on with the home \
                 as it is, move {directory} away and `holdfast volume make {name}`"
            ),
        };
        Problem::new(Exit::Damaged, self.what(), format!("{fault}{place}"), remedy)
    }

    fn lost(&self, at: u64, tail: u64) -> Problem {
        let medium = self.volume.medium();
        let region = medium.path().unwrap_or("private memory".as_ref()).display();
        let what = format!("checking the region {region} of volume {}", self.name);
        let why = format!("acknowledged bytes from LSN {at} to LSN {tail} are damaged in memory");
        let remedy = format!(
            "nothing was changed; keep a copy of {region}, then remove it: what the disk has is \
             recovered"
        );
        Problem::new(Exit::Damaged, what, why, remedy)
    }

    fn region_problem(&self, error: &OpenError) -> Problem {
        let what = format!("checking the region of volume {}", self.name);
        let (exit, remedy) = match error {
            OpenError::ForeignRegion { .. } => (Exit::Damaged, "correct memory.path or log"),
            OpenError::InUse => (Exit::InUse, "check it when nobody serves it"),
            OpenError::Io(_) => (Exit::Failed, "mend the log's disk, then check again"),
            _ => (Exit::Damaged, "nothing was changed; keep a copy of the region"),
        };
        Problem::new(exit, what, error, remedy)
    }
}

fn place_text(place: &FilePlace) -> String {
    format!(", first in {} at byte {}", place.file, place.offset)
}

fn log_text(log: &Verified) -> String {
    let end = match log.verdict {
        CheckVerdict::Torn { at } => format!(
            "it ends at LSN {at} before the remains of an unfinished write, which the next mount \
             cuts off",
            at = at.get()
        ),
        _ => format!("it ends at LSN {}", log.end.get()),
    };
    format!("{} frames are whole, {} read; {end}", log.frames, rounded(log.bytes_scanned))
}

fn memory_text(memory: Option<&Memory>) -> String {
    let Some(memory) = memory else {
        return "there is no region: nothing waits in memory".to_owned();
    };
    let (dirty, unapplied) = (rounded(memory.dirty_bytes), rounded(memory.unapplied_bytes));
    let frames = match memory.ring {
        None => "the region was never filled".to_owned(),
        Some(CheckedRing { frames, healable: None, .. }) => format!("{frames} frames are whole"),
        Some(CheckedRing { healable: Some(at), .. }) => format!(
            "the frame at LSN {} is damaged, and the next mount takes it from the log",
            at.get()
        ),
    };
    format!("{frames}; {dirty} are not on the disk, {unapplied} not in the home")
}

fn json(name: &str, log: &Verified, memory: Option<&Memory>, text: &str) -> serde_json::Value {
    let torn_at = match log.verdict {
        CheckVerdict::Torn { at } => Some(at.get()),
        _ => None,
    };
    serde_json::json!({
        "done": text,
        "name": name,
        "log": {
            "frames": log.frames,
            "bytes_scanned": log.bytes_scanned,
            "first_lsn": log.first.get(),
            "end_lsn": log.end.get(),
            "end_file": log.place.as_ref().map(|place| &place.file),
            "end_offset": log.place.as_ref().map(|place| place.offset),
            "verdict": if torn_at.is_some() { "torn" } else { "clean" },
            "torn_at_lsn": torn_at,
        },
        "memory": memory.map(|memory| serde_json::json!({
            "frames": memory.ring.map(|ring| ring.frames),
            "damaged_lsn": memory.ring.and_then(|ring| ring.healable).map(|at| at.get()),
            "dirty_bytes": memory.dirty_bytes,
            "unapplied_bytes": memory.unapplied_bytes,
        })),
    })
}
