//! `holdfast volume accept` and `holdfast log accept`.
//!
//! Promise: says which side counts where a volume was refused, and what that costs; a log that does
//! not count is put aside whole.
//! Never: applies anything, or works on a volume that is served.

use super::attached::Parts;
use super::volume::{is_made, make_log, refuse_kept, refuse_mounted};
use crate::bond::{Bond, RegionNote, describe_unapplied, is_complete};
use crate::cli::{Accepted, Side};
use crate::config::{Config, MemoryConfig, VolumeConfig};
use crate::exit::Exit;
use crate::keeper::lock::{take_directory, take_home};
use crate::output::{Output, Progress};
use crate::problem::{Outcome, Problem};
use holdfast_io::real::RealFiles;
use holdfast_log::Log;
use holdfast_memory::{Medium, Region};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Behind the name of a log that was put aside stands this, and a number.
const ASIDE: &str = ".aside-";

/// Goes on as somebody says.
pub(super) fn accept(config: &Config, name: &str, what: Accepted, output: Output) -> Outcome<()> {
    let volume = config.volume(name)?;
    let remedy = format!("`holdfast umount {name}` first");
    refuse_mounted(format!("accepting what became of volume {name}"), volume, remedy)?;
    let done = match what.keep {
        Some(Side::Home) => keep_home(name, volume)?,
        Some(Side::Log) => with_bond(name, volume, |bond, log| {
            let left = left_text(log);
            bond.accept_changes()?;
            Ok(format!("{name} goes on with its log: {left}"))
        })?,
        None if what.memory_lost => {
            accept_memory(&format!("volume {name}"), &volume.log, &volume.memory)?
        }
        None => with_bond(name, volume, |bond, log| {
            let left = left_text(log);
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
    let config = Config::load(config)?;
    let log = config.log(name)?;
    refuse_kept(&config, format!("accepting that the memory of log {name} is lost"))?;
    output.done(&accept_memory(&format!("log {name}"), &log.log, &log.memory)?);
    Ok(())
}

/// What the home lacks, for people; of a log that knows that it is nothing, without reading it.
fn left_text(log: &RealFiles) -> String {
    match is_complete(log) {
        true => "nothing of the log is still to be applied".to_owned(),
        false => describe_unapplied(log),
    }
}

fn with_bond(
    name: &str,
    volume: &VolumeConfig,
    work: impl FnOnce(&Bond<'_>, &RealFiles) -> Outcome<String>,
) -> Outcome<String> {
    let home = take_home(&volume.home)?;
    let log = RealFiles::from_fd(take_directory("log", &volume.log)?);
    match Bond::look(name, (&volume.home, &home), &log)? {
        Some(bond) => work(&bond, &log),
        None => {
            let what = format!("accepting what became of volume {name}");
            let remedy = format!("`holdfast volume check {name}` says why");
            Err(Problem::new(Exit::Damaged, what, "its log cannot be read", remedy))
        }
    }
}

fn accept_memory(whose: &str, log: &Path, memory: &MemoryConfig) -> Outcome<String> {
    let files = RealFiles::from_fd(take_directory("log", log)?);
    let what = || format!("accepting that the memory of {whose} is lost");
    let left = leave_memory(&files, &memory.medium(), &what)?;
    let loss = RegionNote::accept_loss(&files, memory).map_err(|error| {
        Problem::new(Exit::Failed, what(), error, "mend the log's disk, then try again")
    })?;
    Ok(format!("{whose} goes on with what its log's disk has{left}; {}", loss.text()))
}

/// Puts memory aside that is in the place of what was lost: from another moment, of another log, or
/// damaged. Memory that has all of the log is not lost.
fn leave_memory(files: &RealFiles, medium: &Medium, what: &dyn Fn() -> String) -> Outcome<String> {
    let Some(path) = medium.path().filter(|path| path.exists()) else { return Ok(String::new()) };
    let place = path.display();
    let is_whole = Region::observe(medium).is_ok_and(|seen| {
        let ring = Log::check_ring(files, &seen);
        ring.is_ok_and(|ring| ring.is_some_and(|ring| ring.lost.is_none()))
    });
    if is_whole {
        let why = format!("{place} has all of it");
        return Err(Problem::new(Exit::Usage, what(), why, "serve it: nothing of it is lost"));
    }
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

/// The home counts. Each step can be done again: where there is no log, it was put aside before.
fn keep_home(name: &str, volume: &VolumeConfig) -> Outcome<String> {
    if is_made(&volume.log) {
        put_aside(name, volume)?;
    }
    let mut progress = Progress::new();
    make_log(name, volume, &mut |text| progress.say(text))?;
    drop(progress);
    let asides: Vec<_> = asides(&volume.log).iter().map(|it| it.display().to_string()).collect();
    let aside = match asides.is_empty() {
        true => "no log of before was there".to_owned(),
        false => format!("what was put aside is whole in {}", asides.join(", ")),
    };
    Ok(format!("{name} goes on with {} as it is; {aside}", volume.home.display()))
}

/// What waits in memory is brought to the log first, so that what is put aside is all there is.
fn put_aside(name: &str, volume: &VolumeConfig) -> Outcome<()> {
    let parts = Parts::take_unbound(name, volume)?;
    parts.drain()?;
    // A log whose memory is gone behind this has lost nothing with it.
    parts.note_drained();
    // The memory says what the log that is put aside has by now.
    let _ = Region::remove(&volume.medium());
    drop(parts);
    std::fs::rename(&volume.log, aside(&volume.log)).map_err(|error| {
        let what = format!("putting the log {} aside", volume.log.display());
        Problem::new(Exit::Failed, what, error, "name a log that is no mount point, then try again")
    })
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

/// The logs that were put aside, oldest first.
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
