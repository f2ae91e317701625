//! Making logs, and what a volume must not be while its log is worked on.
//!
//! Promise: what refuses a log is asked before anything is changed.
//! Never: makes a log where one was used.

use holdfast_attach::bond::{Bond, Wearer, hex, lent, note_complete, refuse_hidden};
use holdfast_attach::home::Home;
use holdfast_attach::homes::{refuse_unfit, refuse_unwritable};
use holdfast_attach::logs::{THE_DISK, left_in_memory};
use holdfast_attach::made::is_made;
use holdfast_attach::observe::observe;
use holdfast_client::protocol::VOLUME_PREFIX;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_config::{Config, VolumeConfig};
use holdfast_io::Entropy;
use holdfast_io::private;
use holdfast_io::real::{MadeDirectories, RealEntropy, RealFiles};
use holdfast_keeper::attach::take_free_home;
use holdfast_keeper::control::is_there;
use holdfast_keeper::keeper;
use holdfast_log::{CreateError, Log, LogConfig};
use holdfast_machine::advice::cure;
use holdfast_machine::lock::take_directory;
use holdfast_machine::mounts::our_mount_of;
use holdfast_machine::threads::during;
use holdfast_memory::Medium;
use holdfast_process::cached;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Who gets a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// A volume whose home no other log may have changes of.
    Volume,
    /// One of a `holdfast run`, which goes with it: the home wears afterwards what it wore before.
    Run,
    /// A volume whose home counts as it is, as somebody said.
    OfHome,
}

/// Makes the log of a volume, and its directory if that is missing. The home gets its badge.
pub(super) fn make_log(
    name: &str,
    config: &Config,
    made: Made,
    say: keeper::Progress<'_>,
) -> Outcome<()> {
    let (volume, home) = (config.volume(name)?, take_to_make(name, config)?);
    make_log_of(&home, (name, volume), made, say)
}

/// Refuses a volume whose home cannot be given a log, whatever there is of one.
pub(super) fn refuse_unmakable(name: &str, config: &Config) -> Outcome<()> {
    take_to_make(name, config).map(drop)
}

fn take_to_make(name: &str, config: &Config) -> Outcome<OwnedFd> {
    holdfast_machine::places::check(name, config)?;
    take_free_home(&format!("making volume {name}"), name, config)
}

/// [`make_log`] for a home that was taken. What refuses it is asked before anything is changed.
pub(super) fn make_log_of(
    home: &OwnedFd,
    (name, volume): (&str, &VolumeConfig),
    made: Made,
    say: keeper::Progress<'_>,
) -> Outcome<()> {
    // One that is made already is told by whoever is asked to make it.
    if made != Made::OfHome && !is_made(&volume.log) {
        refuse_barred((name, volume), home, made)?;
        refuse_region(name, volume)?;
        let what = format!("making volume {name}");
        refuse_unfit(&what, (&volume.home, home))?;
        refuse_unwritable(&what, (&volume.home, home))?;
    }
    prepare_cache(home, (name, volume))?;
    make_log_in(&format!("volume {name}"), &volume.log, &volume.log_config(), say)?;
    bind_new((name, volume), home, made)
}

/// Gives the home to a log that was made in its place, however the home is.
pub(super) fn bind_made(name: &str, config: &Config) -> Outcome<()> {
    let (volume, home) = (config.volume(name)?, take_to_make(name, config)?);
    prepare_cache(&home, (name, volume))?;
    bind_new((name, volume), &home, Made::OfHome)
}

fn prepare_cache(home: &OwnedFd, (name, volume): (&str, &VolumeConfig)) -> Outcome<()> {
    let of_cache = home.try_clone().map_err(|error| {
        let what = format!("taking home {}", volume.home.display());
        Problem::new(Exit::Failed, what, error, "see whether descriptors ran out")
    })?;
    cached::prepare(name, volume, &Home::taken(&volume.home, of_cache)?)
}

/// Refuses a home that another log may have changes of: one whose file system is not mounted, for
/// example, and in whose place a new log would be made.
fn refuse_barred((name, volume): (&str, &VolumeConfig), home: &OwnedFd, made: Made) -> Outcome<()> {
    let (what, place) = (format!("making volume {name}"), volume.home.display());
    let wearer = Wearer::of(home).map_err(|error| {
        Problem::new(Exit::Failed, &*what, error, format!("see to home {place}, then try again"))
    })?;
    refuse_hidden(&what, (&volume.home, &wearer), false)?;
    let Some(log) = wearer.barred_for() else { return Ok(()) };
    let why = format!("{place} is the home of another log, {log}, which may have what it lacks");
    let remedy = match made {
        Made::Run => {
            "nothing was changed; give the volume of that log back first: `holdfast umount` \
                      with its configuration, or the `holdfast run` that was killed once more; or \
                      name another home"
                .to_owned()
        }
        _ => format!(
            "mount the file system of that log, or correct log; to go on with the home as it is, \
             `holdfast volume accept {name} --keep home`"
        ),
    };
    Err(Problem::new(Exit::Damaged, what, why, remedy))
}

/// Refuses memory that a log has already: a new one could never attach it.
pub(super) fn refuse_region(name: &str, volume: &VolumeConfig) -> Outcome<()> {
    let medium = volume.medium();
    let (Ok(seen), Some(place)) = (observe(&medium), medium.path()) else { return Ok(()) };
    let (place, log, left) = (place.display(), hex(seen.identity), rounded(seen.unapplied_bytes()));
    let what = format!("making volume {name}");
    let why = format!("{place} is the memory of another log, {log}, and holds {left} of it");
    let ways = left_in_memory(&format!("{VOLUME_PREFIX}{name}"), &medium).map_or(
        format!("; if its log is gone for good, keep a copy of {place}, and remove it"),
        |left| left.ways(),
    );
    let remedy = format!("nothing was changed; give the volume of that log back first{ways}");
    Err(Problem::new(Exit::Damaged, what, why, remedy))
}

/// Refuses a log whose memory has what its readers have not released: a new one could never attach
/// it.
pub(super) fn refuse_left_in_memory(service: &str, medium: &Medium) -> Outcome<()> {
    let Some(left) = left_in_memory(service, medium) else { return Ok(()) };
    let place = medium.path().unwrap_or(Path::new("private memory")).display();
    let what = format!("making {}", service.replacen('/', " ", 1));
    let why = format!("{place} is the memory of a log that is not there");
    let remedy = format!("nothing was changed; put that log back{}", left.ways());
    Err(Problem::new(Exit::Damaged, what, why, remedy))
}

/// The home is the new log's, whosever it was.
fn bind_new((name, volume): (&str, &VolumeConfig), home: &OwnedFd, made: Made) -> Outcome<()> {
    let log = RealFiles::from_fd(take_directory("log", &volume.log)?);
    let noted = |noted: io::Result<()>| {
        noted.map_err(|error| {
            let what = format!("noting the home of volume {name}");
            let remedy = format!("{}, then make it again", cure(&error, THE_DISK));
            Problem::new(Exit::Failed, what, error, remedy)
        })
    };
    if made == Made::Run {
        noted(lent::note(&log, home))?;
    }
    let bond = Bond::look(name, (volume, home), &log)?.expect("the log was made");
    bond.accept()?;
    bond.open_home()?;
    noted(note_complete(&log))
}

/// Makes a log in a directory. `of` says whose it is.
pub(super) fn make_log_in(
    of: &str,
    directory: &Path,
    config: &LogConfig,
    say: keeper::Progress<'_>,
) -> Outcome<()> {
    let what = format!("making the log of {of} in {}", directory.display());
    let failed = |error: &dyn std::fmt::Display, remedy: &str| {
        Problem::new(Exit::Failed, what.clone(), error, remedy)
    };
    let missing = MadeDirectories::missing(directory);
    private::directory(directory).map_err(|error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            failed(&error, &format!("{}, then make it again", cure(&error, THE_DISK)))
        }
        _ => failed(&error, "make the directory, or correct log"),
    })?;
    let files = RealFiles::from_fd(take_directory("log", directory)?);
    let mut identity = [0; 16];
    RealEntropy.fill(&mut identity);
    let bytes = config.segment_bytes * u64::from(config.segments);
    let made = aloud(
        || say(&format!("{of}: writing {} of zeros for the log", rounded(bytes))),
        || Log::create(&files, identity, config),
    );
    let made = made.map_err(|error| match error {
        CreateError::Exists => {
            let mount =
                of.strip_prefix("volume ").map(|name| format!(", or `holdfast mount {name}`"));
            let remedy = format!("use it as it is: `holdfast serve`{}", mount.unwrap_or_default());
            Problem::new(Exit::Usage, what.clone(), "there is a log in it already", remedy)
        }
        CreateError::NotEmpty { .. } | CreateError::Config(_) => {
            Problem::new(Exit::Usage, what.clone(), error, "name an empty directory as log")
        }
        CreateError::Used { .. } => {
            let remedy =
                "nothing was changed; restore `catalogue` from a copy, or name another log";
            Problem::new(Exit::Damaged, what.clone(), error, remedy)
        }
        CreateError::Io(error) => {
            failed(&error, &format!("{}, then make it again", cure(&error, THE_DISK)))
        }
        error => failed(&error, "correct the cause, then make it again"),
    });
    let close = || private::close_to_others(&private::directory_there(directory)?);
    made.and_then(|()| close().map(drop).map_err(|error| failed(&error, "run as its owner")))?;
    missing.keep();
    Ok(())
}

/// Does `work`, and calls `say` once if it takes more than a second.
pub(super) fn aloud<T: Send>(mut say: impl FnMut(), work: impl FnOnce() -> T + Send) -> T {
    let (started, mut said) = (Instant::now(), false);
    during(work, || {
        std::thread::sleep(Duration::from_millis(5));
        if !said && started.elapsed() > Duration::from_secs(1) {
            said = true;
            say();
        }
    })
}

/// Refuses work on a log that the server has as long as a keeper runs.
pub(super) fn refuse_kept(config: &Config, what: String) -> Outcome<()> {
    if !is_there(&config.keeper.socket) {
        return Ok(());
    }
    let remedy = "stop the keeper, `holdfast shutdown`, and start it again afterwards";
    Err(Problem::new(Exit::InUse, what, "the keeper's server has its log", remedy))
}

/// The remedy is of the volume that is mounted, which may have another name by now.
pub(super) fn refuse_mounted(
    what: String,
    volume: &VolumeConfig,
    remedy: impl Fn(&str) -> String,
) -> Outcome<()> {
    match our_mount_of(volume) {
        None => Ok(()),
        Some(mount) => {
            let whose = mount.whose().to_string();
            let why = format!("volume {whose} is mounted at {}", mount.point.display());
            Err(Problem::new(Exit::InUse, what, why, remedy(&whose)))
        }
    }
}

/// How what is mounted is left alone by everybody.
pub(super) fn unmount_first(mounted: &str) -> String {
    format!("`holdfast umount {mounted}` first")
}
