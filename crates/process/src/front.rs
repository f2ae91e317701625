//! A front-end process: the hidden subcommand that the keeper starts.
//!
//! Promise: it can be killed at any instruction. What it needs to go on is in the descriptors it
//! inherits, the region and the log; it reports when it serves and why it ends.
//! Never: decides about restarts, or mounts anything.

use crate::attached::Kernel;
use crate::disk_front;
use crate::life::{
    Reporter, be_deaf_to_no_orders, end_on_any_panic, end_with_keeper, end_with_keeper_and_server,
    give_signs_of_life,
};
use crate::parts::{Parts, Place};
use crate::users::{Seen, Users, tls_of};
use holdfast_attach::home::Home;
use holdfast_attach::logs;
use holdfast_attach::observe::{observe, region_problem};
use holdfast_attach::whereabouts::{self, Lost};
use holdfast_client::protocol::VOLUME_PREFIX;
use holdfast_config::claims::{PowerSource, Storage};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_config::{Cache, VolumeConfig};
use holdfast_front::fuse;
use holdfast_io::private;
use holdfast_io::real::{RealClock, RealFiles};
use holdfast_keeper::keeper::{self, stay_when_memory_is_short};
use holdfast_keeper::orders::FrontArgs;
use holdfast_keeper::orders::{Orders, Report, Task};
use holdfast_log::{Log, Mended, OpenError};
use holdfast_machine::confinement::confine_front;
use holdfast_machine::found::storage_below;
use holdfast_machine::holders::{FRONT_END_NAME, be_called};
use holdfast_machine::lock::take_home;
use holdfast_machine::mounts::mounted_at;
use holdfast_machine::raw::inherited;
use holdfast_machine::threads::during;
use holdfast_memory::{AttachError, Region};
use holdfast_power::lease::Page;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Runs a front end to its end; the exit code tells the keeper whether another start is of use.
pub fn front(args: &FrontArgs) -> Exit {
    // The process was started through a link of another name; people look for this one.
    be_called(FRONT_END_NAME);
    end_on_any_panic();
    let_files_grow();
    be_deaf_to_no_orders();
    stay_when_memory_is_short();
    confine_front();
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

/// How large a file may be is for those to be told who ask for it; their own limit is the kernel's
/// business. Whoever started the keeper had one for itself: where it cannot be lifted, the home's
/// largest file is found to be as small.
fn let_files_grow() {
    let _ = setrlimit(Resource::Fsize, Rlimit { current: None, maximum: None });
}

fn obey(args: &FrontArgs, reporter: &mut Reporter) -> Outcome<()> {
    let started = |error: io::Error| {
        let what = format!("taking over volume {}", args.volume);
        Problem::caused(Exit::Failed, what, error, "this is a fault of the keeper; report it")
    };
    let orders = read_orders(args.orders_fd).map_err(started)?;
    give_signs_of_life(orders.pulse_fd).map_err(started)?;
    if orders.term.is_some() || orders.ends_with_keeper {
        end_with_keeper(&reporter.0).map_err(started)?;
    } else if orders.server.is_some() {
        end_with_keeper_and_server(&reporter.0, orders.medium()).map_err(started)?;
    }
    let (Some(volume), Some(home)) = (orders.volume.clone(), args.home_fd) else {
        return disk_front::obey(&orders, args.fuse_fd, reporter);
    };
    let home = inherited(home).map_err(started)?;
    let storage = match orders.task {
        Task::Serve => storage_below(&volume, home.as_fd()),
        Task::Detach | Task::Drain => Storage::Disk,
    };
    let home = Home::of(home).map_err(started)?;
    let log = match (args.log_fd, &orders.server) {
        (_, Some(server)) => Place::Server(server.clone()),
        (Some(log), None) => {
            Place::Here(Arc::new(RealFiles::from_fd(inherited(log).map_err(started)?)))
        }
        (None, None) => return Err(started(io::ErrorKind::InvalidInput.into())),
    };
    let lease = orders.lease_fd.map(inherited).transpose().map_err(started)?.map(Page::of);
    let (name, term) = (orders.name.clone(), orders.term);
    let parts = Parts { name, volume, home, log, storage, term, lease };
    match orders.task {
        Task::Serve => {
            let (fuse, tls) = (args.fuse_fd.map(inherited).transpose(), tls_of(&orders)?);
            let users = fuse.and_then(|fuse| Users::of(fuse, &orders, tls)).map_err(started)?;
            serve(&parts, users, (orders.resume, orders.power), reporter)
        }
        Task::Detach => {
            disk_front::remove_device(orders.ublk())?;
            detach(&parts, orders.power)
        }
        Task::Drain => {
            parts.drain()?.into_iter().for_each(|text| reporter.say(&Report::Drained(text)));
            Ok(())
        }
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
pub fn give_back(
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
    disk_front::remove_device(volume.device_of(name))?;
    let parts = Parts::take(name, volume)?;
    let medium = volume.medium();
    during(
        || detach(&parts, power),
        || {
            thread::sleep(Duration::from_millis(20));
            if let Ok(seen) = observe(&medium) {
                say(&format!("{} to apply to the home", rounded(seen.unapplied_bytes())));
            }
        },
    )
}

/// Takes the log of a volume that nobody serves into use again after its disk failed, or its files
/// were removed.
pub fn mend(name: &str, volume: &VolumeConfig) -> Outcome<Mended> {
    if is_gone(volume) {
        make_again(name, volume)?;
    }
    let parts = Parts::take_log(name, volume)?;
    let Place::Here(log) = &parts.log else { unreachable!("the directory was taken") };
    let medium = volume.medium();
    if let Ok(seen) = Region::observe_to_attach(&medium) {
        Log::check_ring(&**log, &seen).map_err(|error| parts.log_problem(&error))?;
    }
    let region = logs::attach(&medium, parts.term).map_err(|error| match error {
        AttachError::Missing => {
            let why = "there is no memory region, so no failure is remembered";
            let remedy = format!("mount it with `holdfast mount {name}`");
            Problem::new(Exit::Usage, parts.what("mending"), why, remedy)
        }
        error => region_problem("mending", (&parts.service(), &medium), &error),
    })?;
    let config = volume.log_config();
    Log::mend(log.clone(), Arc::new(region), Arc::new(RealClock), config)
        .map_err(|error| parts.log_problem(&error))
}

/// Whether there is no log where it is to be, and memory of one.
fn is_gone(volume: &VolumeConfig) -> bool {
    let is_missing = match private::directory_there(&volume.log) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(log) => {
            let found = Log::identity_of(&RealFiles::from_fd(log));
            matches!(found, Err(OpenError::NoLog | OpenError::File { .. }))
        }
    };
    is_missing && Region::observe_to_attach(&volume.medium()).is_ok()
}

/// Makes the log again from its memory, with the note of its home.
fn make_again(name: &str, volume: &VolumeConfig) -> Outcome<()> {
    let home = take_home(&volume.home)?;
    let service = format!("{VOLUME_PREFIX}{name}");
    let (medium, config) = (volume.medium(), volume.log_config());
    let home = Some(whereabouts::Home::Opened(&volume.home, &home));
    let (log, is_of_store) = (volume.log.as_path(), false);
    let lost = Lost { service: &service, log, medium, config, home, is_of_store };
    lost.make_again_unserved().map(drop)
}

fn serve(
    parts: &Parts,
    users: Users,
    (resume, power): (bool, PowerSource),
    reporter: &mut Reporter,
) -> Outcome<()> {
    let kernel = if resume { Kernel::GoesOn } else { Kernel::KnowsNothing };
    let opened = parts.open(power, kernel)?;
    if !resume && let Err(problem) = parts.refuse_used() {
        return Err(match parts.give_back(opened) {
            Ok(()) => problem,
            Err(kept) => problem.and(kept),
        });
    }
    opened.volume.served_by(std::process::id());
    if !opened.volume.has_links() {
        tracing::warn!(
            volume = parts.name,
            "links are refused: its home has none, or shows two names of a file as two files"
        );
    }
    let volume = &parts.volume;
    let config = fuse::FuseConfig {
        listen: fuse::ListenConfig { threads: volume.threads_for(opened.verdict.class) },
        cache: match volume.cache() {
            Cache::Direct if volume.is_shown_as_disk() => fuse::Cache::Nowhere,
            Cache::Direct => fuse::Cache::Direct,
            Cache::WriteThrough => fuse::Cache::WriteThrough,
        },
    };
    if resume {
        // Versions that noted nothing kept no pages unless the configuration said so.
        let kept_pages = volume.cache == Some(Cache::WriteThrough);
        opened.volume.mount_began(kept_pages).map_err(|error| {
            Problem::new(Exit::Failed, parts.what("serving"), error, "the keeper starts another")
        })?;
        users.ask_again();
    }
    let (recovery, verdict) = (opened.recovery.clone(), opened.verdict.clone());
    let armed = opened.leased.as_ref().map(|it| it.verdict_while_held().clone());
    let aside = Mutex::new(reporter.try_clone().map_err(|error| failed(parts, error))?);
    let given_up = |taken_back| {
        let mut reporter = aside.lock().unwrap_or_else(PoisonError::into_inner);
        reporter.say(&Report::GivenUp { taken_back });
    };
    let ready = || reporter.say(&Report::Ready { recovery, verdict, armed });
    let let_go = || opened.volume.let_go();
    let (tree, blocks) = (opened.volume.tree(), opened.volume.blocks());
    let seen = Seen { tree, blocks, let_go: &let_go };
    let listened =
        opened.with_background(&given_up, || users.serve(&parts.name, &seen, &config, ready));
    let listened = listened.unwrap_or_else(|error| Err(error.into()));
    listened.map_err(|error| failed(parts, io::Error::other(error)))?;
    parts.give_back(opened)
}

/// Why a front end serves no longer.
fn failed(parts: &Parts, error: io::Error) -> Problem {
    Problem::caused(Exit::Failed, parts.what("serving"), error, "the keeper starts another")
}

fn detach(parts: &Parts, power: PowerSource) -> Outcome<()> {
    let opened = parts.open(power, Kernel::KnowsNothing)?;
    parts.give_back(opened)
}
