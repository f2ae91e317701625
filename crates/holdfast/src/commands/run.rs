//! `holdfast run`: a keeper and a volume around one command.
//!
//! Promise: the command runs on a mounted volume and its exit code is ours; afterwards the home is
//! complete, wears what it wore before, and nothing of the volume is left. What refuses a run
//! leaves everything as it was. A run that is killed leaves log and region where the next run with
//! the same home finds and recovers them.
//! Never: reads or needs a configuration file.

use crate::cli::RunArgs;
use crate::commands::making::{Made, make_log_of};
use crate::output::Progress;
use holdfast_attach::bond::lent;
use holdfast_attach::made::is_made;
use holdfast_attach::observe::{is_gone, observe};
use holdfast_attach::whereabouts::home_elsewhere;
use holdfast_config::Section;
use holdfast_config::claims::{MediumKind, PowerSource};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::Size;
use holdfast_config::{Config, MemoryConfig, VolumeConfig, Way, region_of};
use holdfast_io::private;
use holdfast_io::real::RealFiles;
use holdfast_keeper::attach::take_home_to_serve;
use holdfast_keeper::keeper::{self, Keeper, Source};
use holdfast_keeper::whose::refuse_kept_by_another;
use holdfast_machine::found::verdict;
use holdfast_machine::lock::{take_directory, take_held};
use holdfast_machine::mounts::served::connections_of;
use holdfast_machine::mounts::{all_mounts, users_text};
use holdfast_machine::service_manager::ServiceManager;
use holdfast_machine::threads::thread;
use holdfast_process::serve::stop_on_signals;
use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
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
    let (command, config) = prepare(args).map_err(unstarted)?;
    let volume = config.volume(NAME)?.clone();
    let told = |problem| unstarted(known_to(&volume, problem));
    let mut progress = Progress::new();
    let (made, held) = make_ready(&config, &mut |text| progress.say(text)).map_err(told)?;
    let keeper = Arc::new(Keeper::new(
        Source::Fixed(Box::new(config)),
        PathBuf::new(),
        ServiceManager::default(),
    ));
    // From here on a signal is the command's to obey; when it has ended, a further one cuts off
    // whoever still uses the mount.
    let mounted = stop_on_signals(&keeper).and_then(|()| {
        keeper.mount(NAME, &mut |text| progress.say(text)).inspect_err(|_| {
            if made {
                undo(&keeper, (&volume, &held));
            }
        })
    });
    let mounted = mounted.map_err(told)?;
    drop(progress);
    tracing::info!("{mounted}");
    let status = run_command(&keeper, &command);
    keeper.shut_down().map_err(|problem| known_to(&volume, problem))?;
    end((&volume, &held), !log_was_named)?;
    status.map(code)
}

/// Makes the log, unless that of a run that was killed goes on; true if it did. Whatever refuses
/// the home or the mount does so before anything is changed.
fn make_ready(config: &Config, say: keeper::Progress<'_>) -> Outcome<(bool, Held)> {
    let volume = config.volume(NAME)?;
    let what = format!("running on {}", volume.home.display());
    refuse_running(&what, volume)?;
    let home = take_home_to_serve(&what, NAME, config)?;
    if let Some(log) = left_over(volume, &home)? {
        remove_log(&volume.log, &log)?;
    }
    let is_new = !is_made(&volume.log);
    if is_new {
        make_log_of(&home, (NAME, volume), Made::Run, say)?;
    }
    let held = Held::of(volume, &home).map_err(|error| {
        Problem::new(Exit::Failed, what, error, "nothing was changed in the home; run it again")
    })?;
    Ok((is_new, held))
}

/// What is worked on until the end. Whoever can rename what is above the home decides what has its
/// name by then, and that of the log.
struct Held {
    home: OwnedFd,
    log: OwnedFd,
}

impl Held {
    /// Without the locks, which the keeper takes.
    fn of(volume: &VolumeConfig, home: &OwnedFd) -> io::Result<Held> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let home = openat(home, ".", flags, Mode::empty())?;
        Ok(Held { home, log: private::directory_there(&volume.log)? })
    }
}

/// Refuses what another run serves, or its front end alone.
fn refuse_running(what: &str, volume: &VolumeConfig) -> Outcome<()> {
    let seen = observe(&volume.medium()).ok();
    let Some(pid) = seen.and_then(|seen| seen.front_end_pid) else { return Ok(()) };
    refuse_kept_by_another(what, Some(pid))?;
    let devices = connections_of(pid);
    let mount = all_mounts().into_iter().find(|mount| devices.contains(&mount.device));
    let point = mount.map(|mount| mount.point).or_else(|| volume.mount.clone()).unwrap_or_default();
    let (users, point) = (users_text(&point), point.display());
    let why = format!("front end {pid} goes on serving it at {point}, and its keeper is gone");
    let remedy = format!(
        "nothing is lost; when its users ({users}) can pause, `umount {point}`, and run it again"
    );
    Err(Problem::new(Exit::InUse, what, why, remedy))
}

/// The log that a run that has ended left, if it died before the log was gone.
fn left_over(volume: &VolumeConfig, home: &OwnedFd) -> Outcome<Option<OwnedFd>> {
    // Memory that is there is taken up by its log.
    if !is_made(&volume.log) || !is_gone(&volume.medium()) {
        return Ok(None);
    }
    let log = take_directory("log", &volume.log)?;
    let failed = |error| {
        let what = format!("looking at home {}", volume.home.display());
        Problem::new(Exit::Failed, what, error, "mend its disk, or the log's")
    };
    let is_over = files_of(&log).and_then(|files| lent::is_over(&files, home)).map_err(failed)?;
    Ok(is_over.then_some(log))
}

fn files_of(log: &OwnedFd) -> io::Result<RealFiles> {
    log.try_clone().map(RealFiles::from_fd)
}

/// The log was made for a command that never began: everything is as it was again, unless a front
/// end may have left something.
fn undo(keeper: &Keeper, run: (&VolumeConfig, &Held)) {
    if let Err(problem) = keeper.shut_down().and_then(|()| end(run, true)) {
        tracing::warn!("the log of this run stays, and the next run takes it up: {problem}");
    }
}

/// Gives the home back as it was and removes the log, if that goes with the run. In this order: a
/// log whose home is given back is known for what it is.
fn end((volume, held): (&VolumeConfig, &Held), is_ours: bool) -> Outcome<()> {
    let Held { home, log } = held;
    if let Some(there) = home_elsewhere(home, &volume.home) {
        tracing::warn!("the home was moved while its command ran: it is at {there}");
    }
    let failed = |error| {
        let what = format!("giving home {} back as it was", volume.home.display());
        Problem::new(Exit::Failed, what, error, "run it again: log and memory are kept")
    };
    let files = files_of(&take_held("log", &volume.log, log)?).map_err(failed)?;
    if !lent::is_lent(&files) {
        return if is_ours { remove_log(&volume.log, log) } else { Ok(()) };
    }
    let home = take_held("home", &volume.home, home)?;
    // Without memory nothing was ever acknowledged, or all of it is home.
    let given_back = match is_gone(&volume.medium()) {
        true => lent::give_back(&files, &home),
        false => Err(io::Error::other("its memory is still there")),
    };
    given_back.map_err(failed)?;
    remove_log(&volume.log, log)
}

/// The command, and the volume that the arguments describe.
fn prepare(args: RunArgs) -> Outcome<(Vec<std::ffi::OsString>, Config)> {
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
    let volumes = BTreeMap::from([(NAME.to_owned(), volume)]);
    Ok((args.command, Config { volumes, ..Config::default() }))
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
    // What is in use is another volume's business.
    let is_its_own = problem.exit != Exit::InUse && is_made(&volume.log);
    let remedy = match is_its_own && problem.remedy.contains("`holdfast ") {
        true => {
            let (remedy, line) = (&problem.remedy, in_configuration(volume));
            format!("{remedy}; with `--config` and a file of this line: {line}")
        }
        false => return problem,
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
    let pass_on = move || {
        keeper.wait_for_stop();
        // Refused only if it has ended already.
        let _may_have_ended = command.map(|command| pidfd_send_signal(command, Signal::TERM));
    };
    let passed_on = thread("stop", pass_on);
    let _ = passed_on.map_err(|why| tracing::warn!("the command is not told to end: {why}"));
}

fn code(status: ExitStatus) -> ExitCode {
    let signalled = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signalled).unwrap_or(i32::from(Exit::Failed as u8));
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Everything in the log is in the home by now.
fn remove_log(log: &Path, held: &OwnedFd) -> Outcome<()> {
    private::remove_directory(log, held).map_err(|error| {
        let what = format!("removing the empty log {}", log.display());
        Problem::new(Exit::Failed, what, error, "remove it by hand; the home is complete")
    })
}
