//! A front-end process: the hidden subcommand that the keeper starts.
//!
//! Promise: it can be killed at any instruction. What it needs to go on is in the descriptors it
//! inherits, the region and the log; it reports when it serves and why it ends.
//! Never: decides about restarts, or mounts anything.

use crate::claims::{Class, MediumKind, PowerSource, Verdict};
use crate::cli::FrontArgs;
use crate::config::{Cache, VolumeConfig};
use crate::exit::Exit;
use crate::keeper::lock::take_directory;
use crate::keeper::{self, mounts::mounted_at, stay_when_memory_is_short};
use crate::observe::{observe, region_problem};
use crate::orders::{Orders, Report, Task};
use crate::problem::{Outcome, Problem};
use crate::raw::inherited;
use crate::sizes::rounded;
use holdfast_front::fuse;
use holdfast_io::Files;
use holdfast_io::real::{RealClock, RealFiles};
use holdfast_log::{CommitError, Log, LogConfig, Mended, OpenError, Recovery, Source, words};
use holdfast_memory::{AttachError, CreateError, Region, RegionSpec};
use holdfast_volume::{CleanError, DirectVolume, VolumeError};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The roster holds a name a record, about 60 bytes; an eighth of the ring is room for most trees.
const ROSTER_BYTES_MIN: u64 = 4 << 20;
const ROSTER_BYTES_MAX: u64 = 64 << 20;

/// Says things to the keeper. A keeper that is gone hears nothing, and that is no reason to end.
struct Reporter(File);

impl Reporter {
    fn say(&mut self, report: &Report) {
        let mut line = serde_json::to_vec(report).expect("plain data");
        line.push(b'\n');
        let _ = self.0.write_all(&line);
    }
}

/// Runs a front end to its end; the exit code tells the keeper whether another start is of use.
pub(crate) fn front(args: &FrontArgs) -> Exit {
    // The process was started through a link of another name; people look for this one.
    let _ = std::fs::write("/proc/self/comm", "holdfast-front");
    end_on_any_panic();
    stay_when_memory_is_short();
    let reporter = inherited(args.report_fd).map(|fd| Reporter(File::from(fd)));
    let mut reporter = match reporter {
        Ok(reporter) => reporter,
        Err(error) => {
            tracing::error!(%error, "a front end is started by the keeper only");
            return Exit::Usage;
        }
    };
    match obey(args, &mut reporter) {
        Ok(()) => Exit::Ok,
        Err(problem) => {
            tracing::error!("{problem}");
            let exit = problem.exit;
            reporter.say(&Report::Failed(problem));
            exit
        }
    }
}

/// A front end that lost one of its threads would serve without draining, or drain without serving.
/// It ends instead, and the keeper starts a whole one.
pub(super) fn end_on_any_panic() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        say(panic);
        std::process::abort();
    }));
}

fn obey(args: &FrontArgs, reporter: &mut Reporter) -> Outcome<()> {
    let started = |error: io::Error| {
        let what = format!("taking over volume {}", args.volume);
        Problem::new(Exit::Failed, what, error, "this is a fault of the keeper; report it")
    };
    let orders = read_orders(args.orders_fd).map_err(started)?;
    let home = RealFiles::from_fd(inherited(args.home_fd).map_err(started)?);
    let log = RealFiles::from_fd(inherited(args.log_fd).map_err(started)?);
    let fuse = args.fuse_fd.map(inherited).transpose().map_err(started)?;
    let parts = Parts {
        name: orders.name,
        volume: orders.volume,
        home: Arc::new(home),
        log: Arc::new(log),
    };
    match (orders.task, fuse) {
        (Task::Serve, Some(fuse)) => {
            let session = fuse::Session::adopt(fuse);
            parts.serve(&session, orders.resume, orders.power, reporter)
        }
        (Task::Serve, None) => Err(started(io::ErrorKind::InvalidInput.into())),
        (Task::Detach, _) => parts.detach(orders.power),
        (Task::Drain, _) => parts.drain(),
    }
}

fn read_orders(number: i32) -> io::Result<Orders> {
    let mut file = File::from(inherited(number)?);
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// Does in this process what a front end does last: brings everything home and lets the memory go.
/// For a volume that no keeper has. A volume whose log was never made has nothing to bring.
pub(super) fn give_back(
    name: &str,
    volume: &VolumeConfig,
    power: PowerSource,
    say: keeper::Progress<'_>,
) -> Outcome<()> {
    if mounted_at(&volume.home).is_some_and(|mount| mount.is_ours()) {
        let what = format!("giving volume {name} back");
        let why = format!("its home {} is still covered by a mount", volume.home.display());
        return Err(Problem::new(Exit::InUse, what, why, "unmount that first"));
    }
    let parts = Parts::take(name, volume)?;
    let medium = volume.medium();
    std::thread::scope(|scope| {
        let work = scope.spawn(|| parts.detach(power));
        while !work.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
            if let Ok(seen) = observe(&medium) {
                say(&format!("{} to apply to the home", rounded(seen.unapplied_bytes())));
            }
        }
        work.join().expect("a panic has ended the process")
    })
}

/// Takes the log of a volume that nobody serves into use again after its disk failed.
pub(super) fn mend(name: &str, volume: &VolumeConfig) -> Outcome<Mended> {
    let parts = Parts::take(name, volume)?;
    let medium = volume.medium();
    let region = Region::attach(&medium).map_err(|error| match error {
        AttachError::Missing => {
            let why = "there is no memory region, so no failure is remembered";
            let remedy = format!("mount it with `holdfast mount {name}`");
            Problem::new(Exit::Usage, parts.what("mending"), why, remedy)
        }
        error => region_problem("mending", &medium, &error),
    })?;
    let config = parts.log_config();
    Log::mend(parts.log.clone(), Arc::new(region), Arc::new(RealClock), config)
        .map_err(|error| parts.log_problem(&error))
}

/// What a volume is opened from.
struct Parts {
    name: String,
    volume: VolumeConfig,
    home: Arc<dyn Files>,
    log: Arc<dyn Files>,
}

/// An open volume with its memory.
struct Opened {
    volume: DirectVolume,
    verdict: Verdict,
    recovery: String,
}

impl Parts {
    /// Opens and locks the directories of a volume that no keeper has.
    fn take(name: &str, volume: &VolumeConfig) -> Outcome<Parts> {
        let home = RealFiles::from_fd(take_directory("home", &volume.home)?);
        let log = RealFiles::from_fd(take_directory("log", &volume.log)?);
        let (name, volume) = (name.to_owned(), volume.clone());
        Ok(Parts { name, volume, home: Arc::new(home), log: Arc::new(log) })
    }

    fn serve(
        &self,
        session: &fuse::Session,
        resume: bool,
        power: PowerSource,
        reporter: &mut Reporter,
    ) -> Outcome<()> {
        let opened = self.open(power)?;
        let config = fuse::FuseConfig {
            listen: fuse::ListenConfig { threads: self.volume.threads_for(opened.verdict.class) },
            cache: match self.volume.cache {
                Cache::Direct => fuse::Cache::Direct,
                Cache::WriteThrough => fuse::Cache::WriteThrough,
            },
        };
        if resume {
            // Refused only when the mount is gone, which listening then tells.
            let _ = session.resend();
        }
        let Opened { verdict, recovery, .. } = &opened;
        reporter.say(&Report::Ready { recovery: recovery.clone(), verdict: verdict.clone() });
        let direct = &opened.volume;
        let listened = with_background(direct, || fuse::serve(session, &direct.volume, &config));
        listened.map_err(|error| {
            Problem::new(Exit::Failed, self.what("serving"), error, "the keeper starts another")
        })?;
        self.give_back(opened)
    }

    fn detach(&self, power: PowerSource) -> Outcome<()> {
        let opened = self.open(power)?;
        self.give_back(opened)
    }

    /// Everything home, then nothing of the volume is left but its log.
    fn give_back(&self, opened: Opened) -> Outcome<()> {
        opened.volume.detach().map_err(|error| match error {
            CleanError::Log(error) => self.commit_problem("giving back", &error),
            error => {
                let remedy = "nothing is lost; mend the cause, then mount and unmount it again";
                Problem::new(Exit::Failed, self.what("giving back"), error, remedy)
            }
        })?;
        drop(opened);
        let medium = self.volume.medium();
        Region::remove(&medium).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => {
                let remedy = "the home is complete; remove the region by hand";
                Err(Problem::new(Exit::Failed, self.what("removing the region of"), error, remedy))
            }
        })
    }

    /// Brings what waits in the region to the log's device.
    fn drain(&self) -> Outcome<()> {
        let medium = self.volume.medium();
        let region = match Region::attach(&medium) {
            Ok(region) => Arc::new(region),
            // Nothing waits where there is nothing.
            Err(AttachError::Missing) => return Ok(()),
            Err(error) => return Err(region_problem("draining", &medium, &error)),
        };
        let config = self.log_config();
        let (log, _) = Log::open(self.log.clone(), region, Arc::new(RealClock), config)
            .map_err(|error| self.log_problem(&error))?;
        log.close().map_err(|error| self.commit_problem("draining", &error))
    }

    /// A log that could not take more. One that failed for good meets every further attempt with
    /// the same failure, until somebody has seen to its disk.
    fn commit_problem(&self, doing: &str, error: &CommitError) -> Problem {
        let name = &self.name;
        let (exit, remedy) = match error {
            CommitError::Poisoned(_) => (
                Exit::Damaged,
                format!(
                    "the memory is kept; see to the log's disk, then `holdfast volume mend \
                     {name}` and `holdfast mount {name}`"
                ),
            ),
            _ => (
                Exit::Failed,
                "the memory is kept; make space on the log's disk, then mount again".to_owned(),
            ),
        };
        Problem::new(exit, self.what(doing), error, remedy)
    }

    fn open(&self, power: PowerSource) -> Outcome<Opened> {
        let region = Arc::new(self.region()?);
        // Only the mapping can tell what the memory is: a plain file is no persistent memory.
        let medium = match self.volume.memory.medium {
            MediumKind::Pmem if !region.survives().os => MediumKind::File,
            medium => medium,
        };
        let verdict = self.volume.verdict_on(&self.name, medium, power)?;
        let class = match verdict.class {
            Class::Memory => holdfast_volume::Class::Memory,
            Class::Disk => holdfast_volume::Class::Disk,
        };
        let config = holdfast_volume::VolumeConfig { class, log: self.log_config() };
        let clock = Arc::new(RealClock);
        let (home, log) = (self.home.clone(), self.log.clone());
        // A log that has failed and cannot even be read any more is the same failure, not another.
        let has_failed = region.word(words::POISON).load(Ordering::Relaxed) != 0;
        let volume =
            DirectVolume::open(home, log, region, clock, config).map_err(|error| match error {
                VolumeError::Log(OpenError::Io(error)) if has_failed => {
                    self.commit_problem("opening", &CommitError::Poisoned(Arc::new(error)))
                }
                error => self.volume_problem(error),
            })?;
        let recovery = recovery_text(&volume.recovery, Some(volume.attached.bytes_applied));
        Ok(Opened { volume, verdict, recovery })
    }

    /// The region as it was left, or a new one.
    fn region(&self) -> Outcome<Region> {
        let medium = self.volume.medium();
        match Region::attach(&medium) {
            Ok(region) => return Ok(region),
            Err(AttachError::Missing) => {}
            Err(error) => return Err(region_problem("attaching", &medium, &error)),
        }
        let identity = Log::identity_of(&*self.log).map_err(|error| self.log_problem(&error))?;
        let ring_bytes = self.volume.memory.size.0;
        let roster_bytes = (ring_bytes / 8).clamp(ROSTER_BYTES_MIN, ROSTER_BYTES_MAX);
        let spec = RegionSpec { ring_bytes, roster_bytes, identity };
        Region::create(&medium, &spec).map_err(|error| {
            let exit = match error {
                CreateError::Io { .. } => Exit::Failed,
                _ => Exit::Usage,
            };
            let remedy = "see memory.medium, memory.path and memory.size in the configuration";
            Problem::new(exit, self.what("making the region of"), error, remedy)
        })
    }

    fn log_config(&self) -> LogConfig {
        self.volume.log_config()
    }

    fn what(&self, doing: &str) -> String {
        format!("{doing} volume {}", self.name)
    }

    fn volume_problem(&self, error: VolumeError) -> Problem {
        match error {
            VolumeError::Log(error) => self.log_problem(&error),
            VolumeError::Record(..) => Problem::new(
                Exit::Damaged,
                self.what("opening"),
                error,
                "open it with the version that wrote it",
            ),
            error => Problem::new(
                Exit::Failed,
                self.what("opening"),
                error,
                "nothing is lost; mend the home's disk, then mount again",
            ),
        }
    }

    fn log_problem(&self, error: &OpenError) -> Problem {
        let name = &self.name;
        let (exit, remedy) = match error {
            OpenError::NoLog => {
                (Exit::Usage, format!("make it with `holdfast volume make {name}`"))
            }
            OpenError::InUse => (Exit::InUse, "unmount the volume that uses it".to_owned()),
            OpenError::RingTooSmall { .. } => (Exit::Usage, "enlarge memory.size".to_owned()),
            OpenError::Io(_) => {
                (Exit::Failed, "nothing is lost; mend the log's disk, then mount again".to_owned())
            }
            _ => (Exit::Damaged, "nothing was changed; restore what is named".to_owned()),
        };
        let what = format!("opening the log {} of volume {name}", self.volume.log.display());
        Problem::new(exit, what, error, remedy)
    }
}

/// Runs `serve` with the threads of the volume and of its log behind it.
fn with_background<T>(direct: &DirectVolume, serve: impl FnOnce() -> T) -> T {
    let DirectVolume { volume, log, .. } = direct;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| log.run_drainer(&stop));
        scope.spawn(|| volume.run_cleaner(&stop));
        scope.spawn(|| log.run_preparer(&stop));
        let served = serve();
        stop.store(true, Ordering::Relaxed);
        served
    })
}

/// What recovery found, for people; with what was applied to a home, if there is one.
pub(super) fn recovery_text(recovery: &Recovery, applied_bytes: Option<u64>) -> String {
    let kept = rounded(recovery.tail.0.saturating_sub(recovery.released.0));
    match (recovery.source, applied_bytes) {
        (Source::Ring, _) => format!("{kept} of log found in memory"),
        (Source::Segments, None) => format!("{kept} of log found on disk"),
        (Source::Segments, Some(applied_bytes)) => {
            let applied = rounded(applied_bytes);
            format!("{kept} of log found on disk, {applied} of it applied to the home")
        }
    }
}
