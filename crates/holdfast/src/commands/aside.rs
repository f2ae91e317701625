//! `holdfast volume skip | aside`.
//!
//! Promise: `skip` puts aside what a cleaner is stuck at, and nothing else, by an order that lies
//! beside the log: whoever cleans the volume next carries it out, now or at the next mount. `aside`
//! changes nothing.
//! Never: applies anything itself.

use crate::output::Output;
use holdfast_attach::logs::THE_DISK;
use holdfast_attach::observe::observe;
use holdfast_attach::stuck::{in_one_line, state_of};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{Config, VolumeConfig};
use holdfast_io::Shown;
use holdfast_io::real::RealFiles;
use holdfast_machine::advice::cure;
use holdfast_volume::{PutAside, order_to_put_aside, put_aside};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a front end has to carry an order out; it tries several times a second.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn skip(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let volume = config.volume(name)?;
    let what = || format!("putting aside what volume {name} is stuck at");
    let failed = |error: io::Error| {
        let remedy = cure(&error, THE_DISK);
        Problem::new(Exit::Failed, what(), error, remedy)
    };
    let files = log_of(name, volume, what)?.map_err(failed)?;
    let Some(told) = order_to_put_aside(&files).map_err(failed)? else {
        let remedy = "see `holdfast status`; nothing was ordered";
        return Err(Problem::new(Exit::Usage, what(), "it is stuck at nothing", remedy));
    };
    let told_before = in_one_line(&told);
    let is_served = || observe(&volume.medium()).is_ok_and(|seen| seen.front_end_pid.is_some());
    let done = if is_served() && has_gone_on(volume, &told_before) {
        format!("{name} has gone on; `holdfast volume aside {name}` lists what is aside")
    } else {
        format!("{name}: ordered; it is put aside when the volume is next cleaned or mounted")
    };
    output.done(&format!("{done}\n  {told_before}"));
    Ok(())
}

/// Waits until the cleaner is no longer stuck at the same.
fn has_gone_on(volume: &VolumeConfig, told: &str) -> bool {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if state_of(&volume.log).0.is_none_or(|now| now != told) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

/// The directory of its log, which must have been made.
fn log_of(
    name: &str,
    volume: &VolumeConfig,
    what: impl Fn() -> String,
) -> Outcome<io::Result<RealFiles>> {
    let files = RealFiles::open(&volume.log);
    if files.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        let remedy = format!("`holdfast volume make {name}`, or mount the file system it is on");
        return Err(Problem::new(Exit::Usage, what(), "its log does not exist", remedy));
    }
    Ok(files)
}

pub(super) fn aside(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let volume = config.volume(name)?;
    let what = || format!("reading what volume {name} has put aside");
    let failed = |error: io::Error| {
        let remedy = format!("nothing was changed; {}", cure(&error, THE_DISK));
        Problem::new(Exit::Failed, what(), error, remedy)
    };
    let files = log_of(name, volume, what)?.map_err(failed)?;
    let aside = put_aside(&files).map_err(failed)?;
    let listed: Vec<_> = aside.iter().map(|one| listed(one, &volume.log)).collect();
    let text = aside.iter().map(|one| line(one, volume)).collect::<String>();
    let text = if text.is_empty() { format!("{name} has put nothing aside") } else { text };
    output.result(&listed, &text);
    Ok(())
}

fn listed(one: &PutAside, log: &Path) -> serde_json::Value {
    serde_json::json!({
        "lsn": one.lsn.get(),
        "record": one.index,
        "path": Shown::name(&one.path).to_string(),
        "what": one.what,
        "why": why(one),
        "file": log.join(&one.file),
    })
}

fn why(one: &PutAside) -> String {
    match i32::try_from(one.errno) {
        Ok(errno) if errno > 0 => io::Error::from_raw_os_error(errno).to_string(),
        _ => "depends on one before".to_owned(),
    }
}

fn line(one: &PutAside, volume: &VolumeConfig) -> String {
    let (path, file) = (Shown::name(&one.path), volume.log.join(&one.file));
    format!("LSN {}  {path}  {}  {}\n    {}\n", one.lsn, one.what, why(one), file.display())
}

#[cfg(test)]
mod tests;
