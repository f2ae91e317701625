//! `holdfast volume accept`, `holdfast log accept` and `holdfast table accept`.
//!
//! Promise: says which side counts where a volume was refused, and what that costs; a log that does
//! not count is put aside whole, once the new one is, so that what is refused leaves all as it was;
//! a loss is accepted only where there is one.
//! Never: applies anything, or works on a volume that is served.

mod home_kept;
mod place;

use self::place::{aside, unmoved};
use crate::cli::{Accepted, Side};
use crate::commands::making::{refuse_kept, refuse_mounted, unmount_first};
use crate::output::Output;
use holdfast_attach::bond::{Bond, RegionNote, is_complete};
use holdfast_attach::foreseen;
use holdfast_attach::logs::{open_problem, take_log, take_log_of};
use holdfast_attach::observe::refuse_unseen;
use holdfast_client::protocol::{LOG_PREFIX, TABLE_PREFIX, VOLUME_PREFIX};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{Config, MemoryConfig, VolumeConfig};
use holdfast_io::Files;
use holdfast_io::real::RealFiles;
use holdfast_log::{Foreseen, Log, LogConfig};
use holdfast_machine::configuration;
use holdfast_machine::lock::take_home;
use holdfast_memory::{AttachError, Medium, Region};
use std::io::ErrorKind;
use std::path::Path;

/// Why there is no loss to accept, of a log that never had memory or has all of it on its disk.
const NOTHING_MISSED: &str = "its log's disk has all of it, and misses no memory";

/// Goes on as somebody says.
pub(super) fn accept(config: &Config, name: &str, what: Accepted, output: Output) -> Outcome<()> {
    let volume = config.volume(name)?;
    refuse_mounted(format!("accepting what became of volume {name}"), volume, unmount_first)?;
    let done = match what.keep {
        Some(Side::Home) => home_kept::keep_home(name, config)?,
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
    refuse_unseen("looking at", (service, &medium))?;
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
        "nothing was changed; serve it: of its memory nothing is in the way",
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
