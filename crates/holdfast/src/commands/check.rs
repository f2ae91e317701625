//! `holdfast volume check`.
//!
//! Promise: paths, the home, claims, every frame of the log that is still needed, and every frame
//! that waits in memory are looked at; what is damaged is named by position, file and offset, what
//! somebody changed in the home by its path, with what to do. What an attachment would refuse for
//! its home or its memory is refused.
//! Never: changes anything; looks at a volume that is served.

use crate::commands::making::{aloud, refuse_mounted};
use crate::output::{Output, Progress};
use holdfast_attach::bond::{Bond, Ends, Loss, RegionNote};
use holdfast_attach::foreseen::{Seen, changed_by_others, foresee};
use holdfast_attach::foreseen::{changed_home, paths_text};
use holdfast_attach::home::Home;
use holdfast_attach::homes::refuse_strange;
use holdfast_attach::logs::{THE_DISK, catalogue_problem, cut_off, take_log_of};
use holdfast_attach::observe::refuse_poisoned;
use holdfast_client::protocol::VOLUME_PREFIX;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_config::verdict_text;
use holdfast_config::{Config, VolumeConfig};
use holdfast_io::Files;
use holdfast_io::real::RealFiles;
use holdfast_keeper::attach::check_ways;
use holdfast_log::{CheckVerdict, CheckedRing, FilePlace, Log, OpenError, Verified};
use holdfast_machine::advice::cure;
use holdfast_machine::found::verdict;
use holdfast_machine::lock::take_home;
use holdfast_memory::Observed;
use holdfast_process::cached::check_home;
use std::os::fd::OwnedFd;

/// How many changed paths are named.
const LISTED_MAX: usize = 100;

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
    fn of(region: &Observed, ring: Option<CheckedRing>) -> Memory {
        let marks = region.marks();
        let dirty_bytes = marks.tail.saturating_sub(marks.durable);
        let unapplied_bytes = marks.tail.saturating_sub(marks.released);
        Memory { ring, dirty_bytes, unapplied_bytes }
    }
}

/// Whether a mount needs nothing of what the log's disk has.
fn memory_has_all(seen: &Seen) -> bool {
    seen.log.ring.is_some_and(|ring| ring.healable.is_none())
}

/// Checks a volume that is not mounted.
pub(super) fn check(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let volume = config.volume(name)?;
    let verdict = verdict(name, volume, config.power_of(volume))?;
    let remedy = |mounted: &str| {
        format!(
            "`holdfast status` tells how it is; what is given back can be checked: `holdfast \
             umount {mounted}`, or `holdfast umount {mounted} --force` where it was given up, and \
             programs wait"
        )
    };
    refuse_mounted(format!("checking volume {name}"), volume, remedy)?;
    // Held to the end: nobody takes the volume into use while it is read.
    let home = take_home(&volume.home)?;
    refuse_strange(&format!("checking volume {name}"), (&volume.home, &home))?;
    let files = RealFiles::from_fd(take_log_of(name, volume)?);
    let check = Check { name, volume, files };
    check_ways(name, config, &home, &format!("checking volume {name}"))?;
    check.block_cache(&home)?;
    check.home(&home)?;
    let mut progress = Progress::new();
    let say = || progress.say(&format!("{name}: reading every frame of the log"));
    let (log, seen) = aloud(say, || check.look())?;
    drop(progress);
    check.ends(&home, &Ends::of(&seen.log))?;
    let memory = seen.region.as_ref().map(|region| Memory::of(region, seen.log.ring));
    let loss = check.loss(seen.loss);
    let lost = loss.as_ref().map_or(String::new(), |loss| format!("\n  before  {}", loss.text()));
    let text = format!(
        "{name}: paths, home, log and memory are sound\n  log     {}\n  memory  {}{lost}\n{}",
        log_text(&log),
        memory_text(memory.as_ref()),
        verdict_text(&verdict)
    );
    let mut json = json(name, &log, memory.as_ref(), &text);
    json["loss"] = serde_json::json!(loss);
    output.result(&json, &text);
    Ok(())
}

impl Check<'_> {
    /// Only one file or device has blocks to keep.
    fn block_cache(&self, home: &OwnedFd) -> Outcome<()> {
        if self.volume.block_cache.is_none() {
            return Ok(());
        }
        let home = home.try_clone().map_err(|error| {
            let remedy = "see whether descriptors ran out";
            Problem::new(Exit::Failed, self.what(), error, remedy)
        })?;
        check_home(self.name, self.volume, &Home::taken(&self.volume.home, home)?)
    }

    /// Whose it is, and whether anybody changed what the log is about to change.
    fn home(&self, home: &OwnedFd) -> Outcome<()> {
        let bond = Bond::look(self.name, (self.volume, home), &self.files)?;
        let Some(bond) = bond else { return Ok(()) };
        let changed = match bond.told() {
            Some(told) => changed_by_others(self.volume, home, &self.files, told)?,
            None => Vec::new(),
        };
        bond.check_saying(&paths_text(&changed, LISTED_MAX))?;
        match changed.is_empty() {
            true => Ok(()),
            false => Err(changed_home(&self.what(), self.name, self.volume, &changed, LISTED_MAX)),
        }
    }

    /// Whether the log reaches what the home has had of it, and the home what the log gave back.
    fn ends(&self, home: &OwnedFd, ends: &Ends) -> Outcome<()> {
        let bond = Bond::look(self.name, (self.volume, home), &self.files)?;
        bond.map_or(Ok(()), |bond| bond.check_ends(ends))
    }

    /// What an attachment would find, and whether the log's disk has what it should have. One that
    /// lacks something is named even where memory has it: it does not outlive that.
    fn look(&self) -> Outcome<(Verified, Seen)> {
        let what = format!("checking volume {}", self.name);
        refuse_poisoned(&what, self.name, &self.volume.medium())?;
        let seen = self.foresee();
        let has_all = seen.as_ref().is_ok_and(memory_has_all);
        let log = match Log::verify(&self.files, &mut |_| {}) {
            Err(error) if has_all => return Err(self.lacking(&error.to_string())),
            log => log.map_err(|error| self.log_problem(&error))?,
        };
        if let CheckVerdict::Corrupt { from, to } = log.verdict {
            return Err(self.corrupt(&OpenError::Corrupt { from, to }, &log, has_all));
        }
        let seen = seen?;
        match seen.log.ring.and_then(|ring| ring.lacking) {
            Some(at) => Err(self.lacking(&format!(
                "the log's disk does not have what it had confirmed from LSN {at} on"
            ))),
            None => Ok((log, seen)),
        }
    }

    fn foresee(&self) -> Outcome<Seen> {
        let service = format!("{VOLUME_PREFIX}{}", self.name);
        let log = (&self.files as &dyn Files, &self.volume.log_config());
        foresee(&service, &self.volume.memory, log, &|error| self.region_problem(error))
    }

    /// What memory that is gone may have cost, now or the last time.
    fn loss(&self, now: Option<Loss>) -> Option<Loss> {
        let before = || RegionNote::of(&self.files).ok().and_then(|it| it.found()?.loss.clone());
        now.or_else(before)
    }

    fn what(&self) -> String {
        format!("checking the log {} of volume {}", self.volume.log.display(), self.name)
    }

    fn log_problem(&self, error: &OpenError) -> Problem {
        let (what, service) = (self.what(), format!("{VOLUME_PREFIX}{}", self.name));
        let medium = self.volume.medium();
        if let Some(problem) = catalogue_problem((&what, &service), &self.files, &medium) {
            return problem;
        }
        let (exit, remedy) = match error {
            OpenError::NoLog => {
                (Exit::Usage, format!("make it with `holdfast volume make {}`", self.name))
            }
            OpenError::Io(error) => {
                (Exit::Failed, format!("{}, then check again", cure(error, THE_DISK)))
            }
            OpenError::OtherVersion { .. } => {
                (Exit::Damaged, "use the version that made it".to_owned())
            }
            OpenError::MissingSegment { .. } | OpenError::File { .. } => (
                Exit::Damaged,
                format!(
                    "nothing was changed; {}restore that file; or, to go on with the home as it \
                     is, `holdfast volume accept {} --keep home` puts the log aside",
                    cut_off(error),
                    self.name
                ),
            ),
            _ => (Exit::Damaged, "nothing was changed; restore that file".to_owned()),
        };
        Problem::new(exit, self.what(), error, remedy)
    }

    fn corrupt(&self, fault: &OpenError, log: &Verified, memory_has_all: bool) -> Problem {
        let place = log.place.as_ref().map_or_else(String::new, place_text);
        let why = format!("{fault}{place}");
        if memory_has_all {
            return self.lacking(&why);
        }
        let remedy = format!(
            "nothing was changed; restore that file from a copy, or, to go on with the home as it \
             is, `holdfast volume accept {} --keep home` puts the log aside",
            self.name
        );
        Problem::new(Exit::Damaged, self.what(), why, remedy)
    }

    /// The log's disk is damaged, and nobody needs what it had.
    fn lacking(&self, why: &str) -> Problem {
        let remedy = format!(
            "nothing was changed, and memory has all that the home lacks: `holdfast umount {}` \
             brings it home, and `holdfast serve` writes it to the log again; see to that disk",
            self.name
        );
        Problem::new(Exit::Damaged, self.what(), why, remedy)
    }

    fn region_problem(&self, error: &OpenError) -> Problem {
        let what = format!("checking the region of volume {}", self.name);
        let (exit, remedy) = match error {
            OpenError::ForeignRegion { .. } => {
                (Exit::Damaged, "correct memory.path or log".to_owned())
            }
            OpenError::InUse => (Exit::InUse, "check it when nobody serves it".to_owned()),
            OpenError::Io(error) => {
                (Exit::Failed, format!("{}, then check again", cure(error, THE_DISK)))
            }
            _ => (Exit::Damaged, self.without_memory()),
        };
        Problem::new(exit, what, error, remedy)
    }

    fn without_memory(&self) -> String {
        format!(
            "nothing was changed; `holdfast volume accept {} --memory-lost` puts this memory \
             aside, and what the disk has is recovered",
            self.name
        )
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
