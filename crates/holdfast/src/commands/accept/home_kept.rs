//! `holdfast volume accept NAME --keep home`: a log that does not count makes room for a new one.
//!
//! Promise: the new log is whole beside the old one before anything is put aside, so that what is
//! refused leaves everything as it was; dead at any step, the same command goes on; what was put
//! aside is whole, and is named.
//! Never: removes what only log or memory has.

use super::place::{aside, asides, unmoved};
use crate::commands::making::{
    Made, bind_made, make_log, make_log_in, refuse_region, refuse_unmakable,
};
use crate::output::Progress;
use holdfast_attach::bond::{Bond, Wearer, hex, refuse_hidden};
use holdfast_attach::made::{has_remains, is_made};
use holdfast_attach::observe::{observe, refuse_unseen, region_problem};
use holdfast_client::protocol::VOLUME_PREFIX;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_config::{Config, VolumeConfig};
use holdfast_io::private;
use holdfast_io::real::RealFiles;
use holdfast_log::{Foreseen, Log, Lsn, OpenError, words};
use holdfast_machine::lock::{take_directory, take_home};
use holdfast_machine::mounts::{all_mounts, leads_to};
use holdfast_memory::{AttachError, Medium, Region};
use holdfast_process::parts::Parts;
use rustix::process::{Signal, getpid, kill_process};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Behind the name of a log stands this while another one is made that is to have its place.
const COMING: &str = ".coming";

/// Who hears how far it is.
type Say<'a> = holdfast_keeper::keeper::Progress<'a>;

/// The home counts. What refuses it a log is asked first, and the new log is made whole beside the
/// old one; then each step can be done again: where there is no log, it was put aside before.
pub(super) fn keep_home(name: &str, config: &Config) -> Outcome<String> {
    let volume = config.volume(name)?;
    refuse_unmakable(name, config)?;
    refuse_hidden_badge(name, volume)?;
    refuse_unseen("looking at", (&format!("{VOLUME_PREFIX}{name}"), &volume.medium()))?;
    let before = [Some(&*volume.log), volume.medium().path()].map(|of| of.map_or(vec![], asides));
    let unapplied = unapplied_text(name, volume);
    let mut progress = Progress::new();
    let aside = replace_log(name, config, &mut |text| progress.say(text))?;
    drop(progress);
    let now = aside.text();
    let before = before_text(&before.concat());
    let home = volume.home.display();
    Ok(format!("{name} goes on with {home} as it is{unapplied}; {now}{before}"))
}

/// Puts what there is of a log aside, and a new one in its place.
fn replace_log(name: &str, config: &Config, say: Say<'_>) -> Outcome<PutAside> {
    let volume = config.volume(name)?;
    if !has_remains(&volume.log) {
        return make_where_none_is(name, config, say);
    }
    refuse_mount_point(volume)?;
    make_coming(name, volume, say)?;
    may_die_here();
    let aside = put_aside(name, volume).inspect_err(|_| remove_coming(volume))?;
    may_die_here();
    coming_in(name, config)?;
    Ok(aside)
}

/// [`replace_log`] where there is nothing but the memory of a log.
fn make_where_none_is(name: &str, config: &Config, say: Say<'_>) -> Outcome<PutAside> {
    let volume = config.volume(name)?;
    // An attempt may have made one beside the log that it had put aside by then.
    let is_to_come = is_made(&coming(&volume.log));
    if is_to_come {
        make_coming(name, volume, say)?;
    }
    let put = put_memory_of_no_log_aside(name, volume)?;
    may_die_here();
    let made = match is_to_come {
        true => coming_in(name, config),
        false => make_log(name, config, Made::OfHome, say),
    };
    match made {
        Ok(()) => Ok(put),
        Err(problem) => {
            if !is_made(&volume.log) {
                put.undo(volume);
            }
            Err(problem)
        }
    }
}

/// Where a log is made that is to have the place of another one.
fn coming(log: &Path) -> PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push(COMING);
    path.into()
}

/// Makes the log that is to come. One that an attempt has left is as good, if it was never used.
/// Where there is no room for it, nothing has been changed.
fn make_coming(name: &str, volume: &VolumeConfig, say: Say<'_>) -> Outcome<()> {
    let (coming, config) = (coming(&volume.log), volume.log_config());
    if !is_made(&coming) {
        let made = make_log_in(&format!("volume {name}"), &coming, &config, say);
        return made.map_err(|problem| {
            // Of one that could not be finished nothing else is left.
            let _ = std::fs::remove_dir(&coming);
            let remedy = format!("nothing was changed; {}", problem.remedy);
            Problem { remedy, ..problem }
        });
    }
    let what = format!("making the log of volume {name} in {}", coming.display());
    let files = RealFiles::from_fd(take_directory("log", &coming)?);
    match is_unused(&files, volume) {
        true => Ok(()),
        false => {
            let why = "there is a log that was used, or that cannot be read";
            Err(Problem::new(Exit::Damaged, what, why, "move it away, then try again"))
        }
    }
}

fn is_unused(files: &RealFiles, volume: &VolumeConfig) -> bool {
    let foreseen = Log::foresee(files, None, &volume.log_config());
    matches!(foreseen, Ok(Foreseen { tail: Lsn::ZERO, .. }))
}

/// The log that was to come is of no use where the other one stays. What has its name by now may be
/// another one, which has been used.
fn remove_coming(volume: &VolumeConfig) {
    let coming = coming(&volume.log);
    let Ok(held) = take_directory("log", &coming) else { return };
    let files = held.try_clone().map(RealFiles::from_fd);
    if files.is_ok_and(|files| is_unused(&files, volume)) {
        // What cannot be removed is taken by the next attempt.
        let _ = private::remove_directory(&coming, held);
    }
}

/// Gives the log that was made its place, where nothing is any more, and the home to it.
fn coming_in(name: &str, config: &Config) -> Outcome<()> {
    let log = &config.volume(name)?.log;
    let failed = |error: std::io::Error| {
        let what = format!("giving the log of volume {name} the place {}", log.display());
        let remedy = "what was there is beside it; see to the log's disk, then do the same again";
        Problem::new(Exit::Failed, what, error, remedy)
    };
    std::fs::rename(coming(log), log).map_err(failed)?;
    let beside = log.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all());
    beside.map_err(failed)?;
    may_die_here();
    bind_made(name, config)
}

/// Refuses a log that cannot be put aside, as it has its file system to itself.
fn refuse_mount_point(volume: &VolumeConfig) -> Outcome<()> {
    let log = leads_to(&volume.log);
    if all_mounts().iter().all(|mount| mount.point != log) {
        return Ok(());
    }
    let what = format!("putting the log {} aside", volume.log.display());
    let remedy = "nothing was changed; name a log that is no mount point, then try again";
    Err(Problem::new(Exit::Failed, what, "it is a mount point", remedy))
}

/// Refuses a home whose badge this process cannot see: the new log would not come together with it.
fn refuse_hidden_badge(name: &str, volume: &VolumeConfig) -> Outcome<()> {
    let what = || format!("looking at home {} of volume {name}", volume.home.display());
    let home = take_home(&volume.home)?;
    let wearer = Wearer::of(&home).map_err(|error| unmoved(what(), error))?;
    refuse_hidden(&what(), (&volume.home, &wearer), false)?;
    match take_directory("log", &volume.log) {
        Ok(log) => Bond::look(name, (volume, &home), &RealFiles::from_fd(log)).map(drop),
        // What is not there knows of no home.
        Err(_) => Ok(()),
    }
}

/// How much the home goes on without, as far as log and memory tell.
fn unapplied_text(name: &str, volume: &VolumeConfig) -> String {
    let of_log = || {
        let home = take_home(&volume.home).ok()?;
        let log = RealFiles::from_fd(take_directory("log", &volume.log).ok()?);
        let bond = Bond::look(name, (volume, &home), &log).ok()??;
        bond.unapplied_bytes()
    };
    let of_memory = || observe(&volume.medium()).ok().map(|seen| seen.unapplied_bytes());
    match of_log().or_else(of_memory) {
        Some(0) | None => String::new(),
        Some(bytes) => {
            format!(", without {} that were acknowledged and not applied to it", rounded(bytes))
        }
    }
}

/// What became of a log that does not count.
struct PutAside {
    /// Its directory, if there was anything of it.
    log: Option<PathBuf>,
    /// Its memory, if that had what the log's disk does not have.
    memory: Option<PathBuf>,
    /// The log of which nothing was there, if the home says that it may lack something of it.
    missing: Option<String>,
}

impl PutAside {
    /// Memory is in its place again, as far as it can be, as no log came into the other's.
    fn undo(&self, volume: &VolumeConfig) {
        if let (Some(aside), Some(place)) = (&self.memory, volume.medium().path()) {
            let _stays_aside = std::fs::rename(aside, place);
        }
    }

    /// For people.
    fn text(&self) -> String {
        let memory = self.memory.as_deref().map(Path::display);
        match (self.log.as_deref().map(Path::display), memory) {
            (None, None) => match &self.missing {
                None => "no log of before was there".to_owned(),
                Some(log) => format!(
                    "neither log {log} was there, which may have had what the home lacks, nor \
                     its memory: what only they had is not in the home"
                ),
            },
            (None, Some(memory)) => format!(
                "no log of before was there, but its memory, which had what no disk has: that is \
                 whole in {memory}; keep a copy before the system restarts"
            ),
            (Some(log), None) => format!("what was put aside is whole in {log}"),
            (Some(log), Some(memory)) => format!(
                "what was put aside is whole in {log}, and its memory, which had what the log's \
                 disk did not have, in {memory}: keep a copy before the system restarts; both back \
                 in their places, it is as it was"
            ),
        }
    }
}

/// What lay aside already: an attempt that did not end may have put it there, or one long ago.
fn before_text(before: &[PathBuf]) -> String {
    let places: Vec<_> = before.iter().map(|path| path.display().to_string()).collect();
    match places.is_empty() {
        true => String::new(),
        false => format!("; what was put aside before is in {}", places.join(", ")),
    }
}

/// Puts the memory aside that is left of a log, where there is nothing else of it.
fn put_memory_of_no_log_aside(name: &str, volume: &VolumeConfig) -> Outcome<PutAside> {
    let medium = volume.medium();
    let what = || format!("putting the memory of volume {name} aside");
    let home = take_home(&volume.home)?;
    let home = Wearer::of(&home).map_err(|error| unmoved(what(), error))?;
    let Ok(seen) = observe(&medium) else {
        return Ok(PutAside { log: None, memory: None, missing: home.barred_for() });
    };
    if home.barred_for() != Some(hex(seen.identity)) {
        refuse_region(name, volume)?;
    }
    let why = "nothing else has what it holds, and it has no other place";
    let lacking = Problem::new(Exit::Damaged, what(), why, "restore the log from a copy");
    let memory = put_memory_aside(&medium, &what, lacking)?;
    Ok(PutAside { log: None, memory, missing: None })
}

/// Puts all there is aside: what waits in memory is brought to the log first; where the log's disk
/// does not have everything then, memory is put aside, too.
fn put_aside(name: &str, volume: &VolumeConfig) -> Outcome<PutAside> {
    let what = || format!("putting the log {} aside", volume.log.display());
    let parts = Parts::take_unbound(name, volume)?;
    let memory = match disk_has_all(&parts, volume) {
        Ok(()) => {
            // A log whose memory is gone behind this has lost nothing with it.
            parts.note_drained();
            let _ = Region::remove(&volume.medium());
            None
        }
        Err(lacking) => put_memory_aside(&volume.medium(), &what, lacking)?,
    };
    drop(parts);
    may_die_here();
    let log = aside(&volume.log);
    let put = PutAside { log: Some(log.clone()), memory, missing: None };
    std::fs::rename(&volume.log, &log).map_err(|error| {
        put.undo(volume);
        let remedy = "name a log in a directory of which others can be renamed, then try again";
        Problem::new(Exit::Failed, what(), error, remedy)
    })?;
    Ok(put)
}

/// Brings what waits in memory to the log's disk, and reads that it is there.
fn disk_has_all(parts: &Parts, volume: &VolumeConfig) -> Outcome<()> {
    let medium = volume.medium();
    let tail = match Region::observe(&medium) {
        // An attachment that failed may have made it, and no byte of the log came there.
        Ok(seen) if seen.word(words::GENERATION) == 0 => return Ok(()),
        Ok(seen) => Lsn(seen.marks().tail),
        Err(AttachError::Missing | AttachError::OtherBoot) => return Ok(()),
        Err(error) => return Err(region_problem("draining", (&parts.service(), &medium), &error)),
    };
    parts.drain()?;
    let files = RealFiles::open(&volume.log);
    let files = files.map_err(|error| parts.log_problem(&OpenError::Io(error)))?;
    let alone = Log::foresee(&files, None, &volume.log_config());
    let alone = alone.map_err(|error| parts.log_problem(&error))?;
    match alone.tail < tail {
        true => Err(parts.log_problem(&OpenError::Corrupt { from: alone.tail, to: tail })),
        false => Ok(()),
    }
}

/// Memory that has what nothing else has stays whole. `lacking` is why the log's disk lacks that.
fn put_memory_aside(
    medium: &Medium,
    what: &dyn Fn() -> String,
    lacking: Problem,
) -> Outcome<Option<PathBuf>> {
    let Some(path) = medium.path() else { return Ok(None) };
    let name = aside(path);
    match Region::put_aside(medium, name.file_name().expect("it has the name of a file")) {
        Ok(aside) => Ok(Some(aside)),
        // A device has one place, and what is there has to reach the log first.
        Err(error) if error.kind() == ErrorKind::Unsupported => Err(lacking),
        Err(error) => Err(unmoved(what(), error)),
    }
}

/// A place where a test may have the process die; the test says at which, counted from 1. A build
/// for users listens to nobody.
fn may_die_here() {
    static PLACES: AtomicU32 = AtomicU32::new(0);
    if !cfg!(debug_assertions) {
        return;
    }
    let last = std::env::var("HOLDFAST_TEST_REPLACES_UNTIL").ok();
    let last = last.and_then(|text| text.parse().ok());
    if last == Some(PLACES.fetch_add(1, Ordering::Relaxed) + 1) {
        let _ends_here = kill_process(getpid(), Signal::KILL);
    }
}
