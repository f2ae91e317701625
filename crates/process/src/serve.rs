//! `holdfast serve`: the keeper in the foreground.
//!
//! Promise: one keeper a socket; every configured volume is mounted, or the log says why not;
//! SIGTERM and SIGINT give everything back before it ends; no signal of a terminal that closes, or
//! that was meant for others, ends it.
//! Never: goes into the background; a service manager or a shell does that better.

use holdfast_config::Config;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::private;
use holdfast_keeper::control::Server;
use holdfast_keeper::keeper::{Keeper, Source, stay_when_memory_is_short};
use holdfast_keeper::report::StatusReport;
use holdfast_machine::configuration;
use holdfast_machine::confinement::confine_keeper;
use holdfast_machine::lock::KeeperLock;
use holdfast_machine::service_manager::ServiceManager;
use holdfast_machine::signals::obey_orders;
use holdfast_machine::threads::for_each;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often is looked for what could not be had, and whether the service manager is to be told how
/// everything is.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Descriptors that a process may have: what Linux lets any have, unless it was told otherwise.
const DESCRIPTORS_MAX: u64 = 1 << 20;

/// With fewer it is said: what most systems let a process have that asks for no more.
const DESCRIPTORS_FEW: u64 = 1024;

/// Runs the keeper until it is told to stop.
pub fn serve(config_path: PathBuf) -> Outcome<()> {
    let manager = ServiceManager::of_this_process();
    let config = configuration::load(&config_path)?;
    if config.standby.is_some() {
        let why = "the configuration has [standby], so another host may be serving";
        let remedy = "use `holdfast standby`: it serves when no other host does";
        return Err(Problem::new(Exit::Usage, "starting the keeper", why, remedy));
    }
    run(Running::begin(&config_path, config, manager)?)
}

/// The front ends that a keeper starts have a descriptor for each file that programs have open, or
/// that is to come home: whoever started the keeper counted on none of that. What cannot be lifted
/// stays.
fn let_descriptors_grow() {
    let before = getrlimit(Resource::Nofile);
    if before.current.is_none_or(|limit| limit >= DESCRIPTORS_MAX) {
        return;
    }
    let maximum = before.maximum.map(|limit| limit.max(DESCRIPTORS_MAX));
    let raised = Rlimit { current: Some(DESCRIPTORS_MAX), maximum };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        return;
    }
    let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before });
    let limit = before.maximum.unwrap_or(DESCRIPTORS_MAX);
    if limit < DESCRIPTORS_FEW {
        tracing::warn!(limit, "few descriptors: programs may have no more files open than that");
    }
}

/// A keeper that has nothing yet and hears nobody but signals.
pub(super) struct Running {
    config: Config,
    socket: PathBuf,
    keeper: Arc<Keeper>,
    _lock: KeeperLock,
}

impl Running {
    /// Takes the right to be the keeper behind the configured socket.
    pub(super) fn begin(
        config_path: &Path,
        config: Config,
        manager: ServiceManager,
    ) -> Outcome<Running> {
        let socket = config.keeper.socket.clone();
        make_directory_of(&socket)?;
        let lock = KeeperLock::take(&socket)?;
        stay_when_memory_is_short();
        let_descriptors_grow();
        confine_keeper(config.standby.is_some());
        let file = std::path::absolute(config_path).unwrap_or_else(|_| config_path.to_owned());
        let keeper = Arc::new(Keeper::new(Source::File(file), socket.clone(), manager));
        stop_on_signals(&keeper)?;
        keeper.end_in_any_case()?;
        Ok(Running { config, socket, keeper, _lock: lock })
    }

    /// Serves in this term of the host's.
    pub(super) fn begin_term(&self, number: u64) {
        self.keeper.begin_term(number);
    }

    /// Waits that long; true as soon as somebody asked the keeper to stop.
    pub(super) fn stops_within(&self, patience: Duration) -> bool {
        self.keeper.is_asked_to_stop_within(patience)
    }
}

/// Serves everything that is configured until the keeper is told to stop.
pub(super) fn run(running: Running) -> Outcome<()> {
    let Running { config, socket, keeper, _lock } = running;
    let _server = Server::start(&socket, keeper.clone())?;
    tracing::info!(socket = %socket.display(), pid = std::process::id(), "keeper listens");
    let config = keeper.begin_as_kept(config);
    let mut refused = Vec::new();
    let begun = begin_all(&keeper, &config, &mut refused);
    keeper.without_section().iter().for_each(|memory| tracing::warn!("{memory}"));
    if begun.is_ok() {
        keeper.manager().ready();
        serve_until_stopped(&keeper, refused);
    }
    keeper.manager().stopping();
    tracing::info!("giving every volume back");
    let ended = keeper.shut_down();
    // Who was asked to end before everything had begun has not failed.
    let how = if keeper.is_ending() { ended } else { begun.and(ended) };
    keeper.say_how_it_ended(&how);
    how
}

/// Waits for the end. Meanwhile what could not be had is tried again, and the service manager, if
/// there is one, hears what is not served, and when it is again.
fn serve_until_stopped(keeper: &Arc<Keeper>, mut refused: Refused) {
    let mut said = None;
    keeper.pursue(&refused);
    loop {
        keeper.try_again(&mut refused);
        if keeper.is_asked_to_stop_within(LOOK_EVERY) {
            return;
        }
        if keeper.manager().keeps() {
            let line =
                keeper.status().map_or_else(|problem| problem.to_string(), StatusReport::line);
            if said.as_ref() != Some(&line) {
                keeper.manager().say(&line);
                said = Some(line);
            }
        }
    }
}

/// The volumes that are not mounted, and why.
type Refused = Vec<(String, Problem)>;

/// Begins to serve whatever can be. A keeper that could serve nothing at all has the first reason,
/// unless programs may wait for what it has.
fn begin_all(keeper: &Keeper, config: &Config, refused: &mut Refused) -> Outcome<()> {
    if let Err(problem) = keeper.start_power(config) {
        tracing::error!("{problem}");
    }
    let started = keeper.start_server(config);
    match &started {
        Ok(text) => text.iter().for_each(|text| tracing::info!("{text}")),
        Err(problem) => tracing::error!("{problem}"),
    }
    let served = started.map(|started| started.is_some() && config.serves_programs());
    let begun = [served, keeper.start_disks(config), mount_all(keeper, config, refused)];
    match begun.contains(&Ok(true)) || keeper.has_users() {
        true => Ok(()),
        false => begun.into_iter().collect::<Outcome<Vec<bool>>>().map(drop),
    }
}

/// SIGTERM and SIGINT ask the keeper to stop; a second one cuts off who still uses a mount. SIGPWR
/// tells it that the power is about to fail.
pub fn stop_on_signals(keeper: &Arc<Keeper>) -> Outcome<()> {
    let (stopped, warned) = (keeper.clone(), keeper.clone());
    obey_orders(move || stopped.ask_to_stop(), move || warned.notice_power())
}

fn make_directory_of(socket: &Path) -> Outcome<()> {
    let directory = socket.parent().unwrap_or(Path::new("/"));
    private::public_directory(directory).map(drop).map_err(|error| {
        let what = format!("making the directory {}", directory.display());
        Problem::new(Exit::Failed, what, error, "run as root, or set keeper.socket")
    })
}

/// Mounts what is configured, all at the same time. A volume that cannot be mounted does not keep
/// the others from being served. True if one is; the first reason if there should be and is not.
fn mount_all(keeper: &Keeper, config: &Config, refused: &mut Refused) -> Outcome<bool> {
    let mount = |name: &&String| {
        let outcome = keeper.have_mounted(name, &mut |text| tracing::info!("{text}"));
        match &outcome {
            Ok(text) => tracing::info!("{text}"),
            Err(problem) => tracing::error!("{problem}"),
        }
        (String::clone(name), outcome.map(drop))
    };
    let names: Vec<&String> = config.volumes.keys().collect();
    let outcomes: Vec<(String, Outcome<()>)> = for_each(&names, mount);
    let problem_of = |(name, it): &(String, Outcome<()>)| Some((name.clone(), it.clone().err()?));
    refused.extend(outcomes.iter().filter_map(problem_of));
    match outcomes.iter().any(|(_, outcome)| outcome.is_ok()) {
        true => Ok(true),
        false => outcomes.into_iter().try_for_each(|(_, outcome)| outcome).map(|()| false),
    }
}
