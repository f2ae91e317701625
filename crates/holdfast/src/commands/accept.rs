//! `holdfast volume accept`, `holdfast log accept` and `holdfast table accept`.
//!
//! Promise: says which side counts where a volume was refused, and what that costs; a log that does
//! not count is put aside whole; a loss is accepted only where there is one.
//! Never: applies anything, or works on a volume that is served.

use crate::cli::{Accepted, Side};
use crate::commands::making::{
    Made, make_log, refuse_kept, refuse_mounted, refuse_region, refuse_unmakable, unmount_first,
};
use crate::output::{Output, Progress};
use holdfast_attach::bond::{Bond, RegionNote, Wearer, hex, is_complete};
use holdfast_attach::foreseen;
use holdfast_attach::logs::{open_problem, take_log, take_log_of};
use holdfast_attach::made::has_remains;
use holdfast_attach::observe::{observe, region_problem};
use holdfast_client::protocol::{LOG_PREFIX, TABLE_PREFIX, VOLUME_PREFIX};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_config::{Config, MemoryConfig, VolumeConfig};
use holdfast_io::Files;
use holdfast_io::real::RealFiles;
use holdfast_log::{Foreseen, Log, LogConfig, Lsn, OpenError, words};
use holdfast_machine::configuration;
use holdfast_machine::lock::{take_directory, take_home};
use holdfast_memory::{AttachError, Medium, Region};
use holdfast_process::parts::Parts;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Behind the name of a log that was put aside stands this, and a number.
const ASIDE: &str = ".aside-";

/// Why there is no loss to accept, of a log that never had memory or has all of it on its disk.
const NOTHING_MISSED: &str = "its log's disk has all of it, and misses no memory";

/// Goes on as somebody says.
pub(super) fn accept(config: &Config, name: &str, what: Accepted, output: Output) -> Outcome<()> {
    let volume = config.volume(name)?;
    refuse_mounted(format!("accepting what became of volume {name}"), volume, unmount_first)?;
    let done = match what.keep {
        Some(Side::Home) => keep_home(name, config)?,
        Some(Side::Log) => with_bond(name, volume, |bond, log| {
            let left = left_text(bond, log);
            refuse_what_is_not_served(name, volume, log)?;
            bond.accept_changes()?;
            Ok(format!("{name} goes on with its log: {left}"))
        })?,
        None if what.memory_lost => {
            let log = (&*volume.log, &volume.log_config());
            accept_memory(&format!("{VOLUME_PREFIX}{name}"), log, &volume.memory)?
        }
        None => with_bond(name, volume, |bond, log| {
            let left = left_text(bond, log);
            refuse_what_is_not_served(name, volume, log)?;
            bond.accept()?;
            let home = volume.home.display();
            let bits = match bond.has_lost_bits() {
                true => "; its permissions were lost with its attributes: it will have 700",
                false => "",
            };
            Ok(format!("{home} is the home of {name}: {left}{bits}"))
        })?,
    };
    output.done(&done);
    Ok(())
}

/// Goes on without the memory of a served log.
pub(super) fn memory_of_log(config: &Path, name: &str, output: Output) -> Outcome<()> {
    let config = configuration::load(config)?;
    let log = config.log(name)?;
    refuse_kept(&config, format!("accepting that the memory of log {name} is lost"))?;
    let of = (&*log.log, &log.log_config());
    output.done(&accept_memory(&format!("{LOG_PREFIX}{name}"), of, &log.memory)?);
    Ok(())
}

/// Goes on without the memory of tables.
pub(super) fn memory_of_table(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let table = config.table(name)?;
    refuse_kept(config, format!("accepting that the memory of table {name} is lost"))?;
    let (log, sizes) = (table.log(), table.log_config());
    let of = (&*log, &sizes);
    output.done(&accept_memory(&format!("{TABLE_PREFIX}{name}"), of, &table.memory)?);
    Ok(())
}

/// What the home lacks, for people; of a log that knows that it is nothing, without reading it.
fn left_text(bond: &Bond<'_>, log: &RealFiles) -> String {
    match is_complete(log) {
        true => "nothing of the log is still to be applied".to_owned(),
        false => bond.describe_unapplied(),
    }
}

/// Nothing is accepted that would be refused all the same, for its log or its memory.
fn refuse_what_is_not_served(name: &str, volume: &VolumeConfig, log: &RealFiles) -> Outcome<()> {
    let log = (log as &dyn Files, &volume.log_config());
    foreseen::refuse(&format!("{VOLUME_PREFIX}{name}"), &volume.memory, log)
}

fn with_bond(
    name: &str,
    volume: &VolumeConfig,
    work: impl FnOnce(&Bond<'_>, &RealFiles) -> Outcome<String>,
) -> Outcome<String> {
    let home = take_home(&volume.home)?;
    let log = RealFiles::from_fd(take_log_of(name, volume)?);
    match Bond::look(name, (volume, &home), &log)? {
        Some(bond) => work(&bond, &log),
        None => {
            let what = format!("accepting what became of volume {name}");
            let remedy = format!("`holdfast volume check {name}` says why");
            Err(Problem::new(Exit::Damaged, what, "its log cannot be read", remedy))
        }
    }
}

fn accept_memory(
    service: &str,
    (log, config): (&Path, &LogConfig),
    memory: &MemoryConfig,
) -> Outcome<String> {
    let whose = service.replacen('/', " ", 1);
    let medium = memory.medium();
    let files = RealFiles::from_fd(take_log(service, log, &medium)?);
    let what = || format!("accepting that the memory of {whose} is lost");
    refuse_to_lose(service, memory, (&files, config), &what)?;
    Log::foresee(&files, None, config).map_err(|error| open_problem(service, &error))?;
    let left = leave_memory(&medium, &what)?;
    let loss = RegionNote::accept_loss(&files, memory).map_err(|error| {
        Problem::new(Exit::Failed, what(), error, "mend the log's disk, then try again")
    })?;
    Ok(format!("{whose} goes on with what its log's disk has{left}; {}", loss.text()))
}

/// Memory that the log goes on from, or goes on without by itself, is not given up: an attachment
/// that nothing refuses for its memory is asked for instead.
fn refuse_to_lose(
    service: &str,
    memory: &MemoryConfig,
    (files, config): (&RealFiles, &LogConfig),
    what: &dyn Fn() -> String,
) -> Outcome<()> {
    let medium = memory.medium();
    let why = match Region::observe_to_attach(&medium) {
        Ok(seen) => match Log::foresee(files, Some(&seen), config) {
            Ok(Foreseen { ring: Some(_), .. }) => {
                let place = medium.path().unwrap_or("private memory".as_ref()).display();
                format!("{place} has all of it")
            }
            Ok(_) => NOTHING_MISSED.to_owned(),
            Err(_) => return Ok(()),
        },
        Err(AttachError::Missing | AttachError::OtherBoot) => {
            match RegionNote::without(service, memory, files) {
                Ok(None) => NOTHING_MISSED.to_owned(),
                Ok(Some(loss)) => format!("it goes on without that by itself: {}", loss.text()),
                Err(problem) if problem.exit == Exit::Failed => return Err(problem),
                Err(_) => return Ok(()),
            }
        }
        Err(_) => return Ok(()),
    };
    Err(Problem::new(
        Exit::Usage,
        what(),
        why,
        "nothing was changed; serve it: nothing is in the way",
    ))
}

/// Puts memory aside that is in the place of what was lost: from another moment, of another log, or
/// damaged.
fn leave_memory(medium: &Medium, what: &dyn Fn() -> String) -> Outcome<String> {
    let Some(path) = medium.path().filter(|path| path.exists()) else { return Ok(String::new()) };
    let place = path.display();
    let name = aside(path);
    match Region::put_aside(medium, name.file_name().expect("it has the name of a file")) {
        Ok(aside) => Ok(format!(", and {place} is whole in {}", aside.display())),
        // What lies behind the head of a device stays there until the log goes on.
        Err(error) if error.kind() == ErrorKind::Unsupported => Region::remove(medium)
            .map(|()| format!(", and {place} is begun anew"))
            .map_err(|error| unmoved(what(), error)),
        Err(error) => Err(unmoved(what(), error)),
    }
}

fn unmoved(what: String, error: std::io::Error) -> Problem {
    Problem::new(Exit::Failed, what, error, "nothing was changed; stop what uses that memory")
}

/// The home counts. What refuses it a log is asked first; then each step can be done again: where
/// there is no log, it was put aside before.
fn keep_home(name: &str, config: &Config) -> Outcome<String> {
    let volume = config.volume(name)?;
    refuse_unmakable(name, config)?;
    let before = [Some(&*volume.log), volume.medium().path()].map(|of| of.map_or(vec![], asides));
    let unapplied = unapplied_text(name, volume);
    let aside = put_remains_aside(name, volume)?;
    let mut progress = Progress::new();
    make_log(name, config, Made::OfHome, &mut |text| progress.say(text))?;
    drop(progress);
    let now = aside.text();
    let before = before_text(&before.concat());
    let home = volume.home.display();
    Ok(format!("{name} goes on with {home} as it is{unapplied}; {now}{before}"))
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

/// Puts aside what there is of a log: all of it, or the memory that is left of one.
fn put_remains_aside(name: &str, volume: &VolumeConfig) -> Outcome<PutAside> {
    if has_remains(&volume.log) {
        return put_aside(name, volume);
    }
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
    let log = aside(&volume.log);
    std::fs::rename(&volume.log, &log).map_err(|error| {
        Problem::new(
            Exit::Failed,
            what(),
            error,
            "name a log that is no mount point, then try again",
        )
    })?;
    Ok(PutAside { log: Some(log), memory, missing: None })
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

/// `/a/log` -> `/a/log.aside-SECONDS`, the first that is free.
fn aside(log: &Path) -> PathBuf {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let named = |number| {
        let mut path = log.as_os_str().to_owned();
        path.push(format!("{ASIDE}{number}"));
        PathBuf::from(path)
    };
    (seconds..).map(named).find(|path| !path.exists()).expect("there are fewer logs than numbers")
}

/// What was put aside of a log or a region, oldest first.
fn asides(log: &Path) -> Vec<PathBuf> {
    let mut start = log.file_name().unwrap_or_default().to_owned();
    start.push(ASIDE);
    let is_aside = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        name.starts_with(start.as_encoded_bytes())
    };
    let beside = log.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let paths = beside.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut asides: Vec<_> = paths.filter(is_aside).collect();
    asides.sort();
    asides
}
