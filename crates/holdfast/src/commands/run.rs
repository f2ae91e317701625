//! `holdfast run`: a keeper and a volume around one command.
//!
//! Promise: the command runs on a mounted volume and its exit code is ours; afterwards the home is
//! complete and nothing of the volume is left. A run that is killed leaves log and region where the
//! next run with the same home finds and recovers them.
//! Never: reads or needs a configuration file.

use super::serve::stop_on_signals;
use super::volume::{is_made, make_log};
use crate::claims::{MediumKind, PowerSource};
use crate::cli::RunArgs;
use crate::config::{Config, MemoryConfig, VolumeConfig, Way, region_of};
use crate::exit::Exit;
use crate::found::verdict;
use crate::keeper::{Keeper, Source};
use crate::observe::observe;
use crate::output::Progress;
use crate::problem::{Outcome, Problem};
use crate::service_manager::ServiceManager;
use crate::sizes::Size;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;

/// What the volume of a run is called.
const NAME: &str = "run";

/// Runs the command; ends with its exit code.
pub(crate) fn run(args: RunArgs) -> Outcome<ExitCode> {
    let log_was_named = args.log.is_some();
    let (command, volume) = prepare(args).map_err(unstarted)?;
    let made = !is_made(&volume.log);
    let mut progress = Progress::new();
    if made {
        let made = make_log(NAME, &volume, &mut |text| progress.say(text));
        made.map_err(|problem| unstarted(known_to(&volume, problem)))?;
    }
    let log = volume.log.clone();
    let volumes = BTreeMap::from([(NAME.to_owned(), volume.clone())]);
    let config = Config { volumes, ..Config::default() };
    let keeper = Arc::new(Keeper::new(
        Source::Fixed(Box::new(config)),
        PathBuf::new(),
        ServiceManager::default(),
    ));
    // From here on a signal is the command's to obey; when it has ended, a further one cuts off
    // whoever still uses the mount.
    stop_on_signals(&keeper).map_err(unstarted)?;
    let mounted = keeper.mount(NAME, &mut |text| progress.say(text));
    let mounted = mounted.map_err(|problem| unstarted(known_to(&volume, problem)))?;
    drop(progress);
    tracing::info!("{mounted}");
    let status = run_command(&keeper, &command);
    keeper.shut_down().map_err(|problem| known_to(&volume, problem))?;
    if made || !log_was_named {
        remove_log(&log)?;
    }
    status.map(code)
}

/// The volume that the arguments describe.
fn prepare(args: RunArgs) -> Outcome<(Vec<std::ffi::OsString>, VolumeConfig)> {
    let home = absolute("--home", &args.home)?;
    let mount = absolute("--mount", &args.mount)?;
    let log = match &args.log {
        Some(log) => std::path::absolute(log).map_err(|error| bad("--log", log, &error))?,
        None => beside(&home),
    };
    let seen = home.metadata().map_err(|error| bad("--home", &home, &error))?;
    let region = region_of(&format!("run-{:x}-{:x}", seen.dev(), seen.ino()));
    let memory =
        MemoryConfig { medium: MediumKind::Shm, size: Size(args.memory), path: Some(region) };
    let mut volume = VolumeConfig {
        home,
        mount: Some(mount),
        nbd: Vec::new(),
        nbd_tls: None,
        vhost_user: None,
        ublk: None,
        log,
        memory,
        segment: None,
        must_survive: args.must_survive,
        write_through: false,
        way: Way::Direct,
        cache: None,
        block_cache: None,
        threads: None,
    };
    volume.complete(NAME).map_err(|why| {
        Problem::new(Exit::Run, "preparing the volume", why, "correct the command line")
    })?;
    verdict(NAME, &volume, PowerSource::None)?;
    Ok((args.command, volume))
}

fn absolute(flag: &str, path: &Path) -> Outcome<PathBuf> {
    std::fs::canonicalize(path).map_err(|error| bad(flag, path, &error))
}

fn bad(flag: &str, path: &Path, error: &io::Error) -> Problem {
    let what = format!("finding {flag} {}", path.display());
    Problem::new(Exit::Run, what, error, "name an existing directory")
}

/// `/a/home` -> `/a/home.holdfast`: on the home's disk, and found again by the next run.
fn beside(home: &Path) -> PathBuf {
    let mut path = home.as_os_str().to_owned();
    path.push(".holdfast");
    path.into()
}

/// What fails before the command runs has an exit code that the command's own cannot be taken for.
fn unstarted(problem: Problem) -> Problem {
    Problem { exit: Exit::Run, ..problem }
}

/// A remedy that works for the volume of a run: other commands know volumes by a configuration,
/// and this one is in none.
fn known_to(volume: &VolumeConfig, problem: Problem) -> Problem {
    let has_outlived = observe(&volume.medium()).is_ok_and(|seen| seen.front_end_pid.is_some());
    let remedy = match volume.mount.as_deref().filter(|_| has_outlived) {
        Some(mount) => {
            let mount = mount.display();
            format!("nothing is lost; when its users can pause, `umount {mount}`, and run it again")
        }
        None if problem.remedy.contains("`holdfast ") => {
            let (remedy, line) = (&problem.remedy, in_configuration(volume));
            format!("{remedy}; with `--config` and a file of this line: {line}")
        }
        None => return problem,
    };
    Problem { remedy, ..problem }
}

/// The volume as a configuration has it, in a line.
fn in_configuration(volume: &VolumeConfig) -> String {
    let path = |path: &Path| serde_json::json!(path.to_string_lossy()).to_string();
    let mount = volume.mount.as_deref().map_or(String::new(), path);
    let MemoryConfig { size, path: region, .. } = &volume.memory;
    let region = region.as_deref().map_or(String::new(), path);
    format!(
        "volume.{NAME} = {{ home = {}, mount = {mount}, log = {}, must_survive = {}, memory = {{ \
         medium = \"shm\", size = \"{size}\", path = {region} }} }}",
        path(&volume.home),
        path(&volume.log),
        serde_json::json!(volume.must_survive),
    )
}

fn run_command(keeper: &Arc<Keeper>, command: &[std::ffi::OsString]) -> Outcome<ExitStatus> {
    let what = || format!("running {}", command[0].to_string_lossy());
    let failed = |error: io::Error| Problem::new(Exit::Run, what(), error, "correct the command");
    let mut child = Command::new(&command[0]).args(&command[1..]).spawn().map_err(failed)?;
    pass_on_stop(keeper, &child);
    child.wait().map_err(failed)
}

/// Tells the command to end when we are told to: it, and no process that has its number later.
fn pass_on_stop(keeper: &Arc<Keeper>, child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let command = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let keeper = keeper.clone();
    std::thread::spawn(move || {
        keeper.wait_for_stop();
        // Refused only if it has ended already.
        let _may_have_ended = command.map(|command| pidfd_send_signal(command, Signal::TERM));
    });
}

fn code(status: ExitStatus) -> ExitCode {
    let signalled = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signalled).unwrap_or(i32::from(Exit::Failed as u8));
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Everything in the log is in the home by now.
fn remove_log(log: &Path) -> Outcome<()> {
    std::fs::remove_dir_all(log).map_err(|error| {
        let what = format!("removing the empty log {}", log.display());
        Problem::new(Exit::Failed, what, error, "remove it by hand; the home is complete")
    })
}
