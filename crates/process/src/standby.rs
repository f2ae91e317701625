//! `holdfast standby`: the keeper, on one of several hosts at a time.
//!
//! Promise: this host serves only in a term of its own, begun after the last owner has ended, or
//! was silent for as long as is configured and the fence said that it writes no more. Once another
//! term has begun, or nobody can be told that this host lives, every process here ends, and gives
//! nothing back.
//! Never: serves without a fence; removes what another host left.

use crate::serve::{Running, run};
use crate::terms::{Beat, Begun, Machine, Owned, Owner, Term, Terms};
use holdfast_config::StandbyConfig;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::configuration;
use holdfast_machine::service_manager::ServiceManager;
use holdfast_machine::threads::thread;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often is looked whether a fence has ended, or is to be waited for no more.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The term before this host's, whose owner is over.
struct Before {
    /// Its number; 0 if there was none.
    number: u64,
    /// The term, if its owner never said that it has ended.
    silent: Option<Term>,
}

/// Waits for its turn, then serves until told to stop.
pub fn standby(config_path: PathBuf) -> Outcome<()> {
    // Nothing is kept for a keeper that comes later: another host may have taken over by then.
    let manager = ServiceManager::none();
    let config = configuration::load(&config_path)?;
    let standby = config.standby.clone().ok_or_else(|| {
        let why = "the configuration has no [standby]";
        Problem::new(Exit::Usage, "standing by", why, "add it, or use `holdfast serve`")
    })?;
    let running = Running::begin(&config_path, config, manager)?;
    let terms = Terms::at(&standby.folder);
    let Some(before) = wait_for_turn(&terms, &standby, &running)? else { return Ok(()) };
    // A term is begun only when the one before is over, so one fence is enough, whoever fails next.
    let machine = Machine::this().map_err(|error| failed("telling this machine", &error))?;
    before.silent.map_or(Ok(()), |term| fence(&standby, &term, &machine, &running))?;
    if running.stops_within(Duration::ZERO) {
        return Ok(());
    }
    let owned = begin(&terms, before.number, &standby, &machine)?;
    tracing::info!(host = standby.host, term = owned.term().number, "this host has taken over");
    running.begin_term(owned.term().number);
    let (given_back, beats) = channel();
    let beats = thread("beats", move || beat_until(owned, &standby, &beats))?;
    let served = run(running);
    if served.is_ok() {
        // Nobody listens only if the process is about to end.
        let _may_have_ended = given_back.send(());
    }
    drop(given_back);
    let ended = beats.join().expect("a thread that cannot go on ends the process");
    served.and(ended.map_err(|error| failed("ending the term", &error)))
}

/// Waits until the owner of the newest term has ended, or was silent for long enough. `None` if
/// this host was told to stop first.
fn wait_for_turn(
    terms: &Terms,
    standby: &StandbyConfig,
    running: &Running,
) -> Outcome<Option<Before>> {
    let (mut seen, mut since) = (None, Instant::now());
    loop {
        let newest = terms.newest().map_err(|error| failed("looking for the owner", &error))?;
        let Some((term, beat)) = newest else {
            return Ok(Some(Before { number: 0, silent: None }));
        };
        let (number, host) = (term.number, term.host.clone());
        if beat == Some(Beat::Ended) {
            return Ok(Some(Before { number, silent: None }));
        }
        if seen != Some((number, beat)) {
            if seen.is_none_or(|(before, _)| before != number) {
                tracing::info!(owner = host, term = number, "standing by");
            }
            (seen, since) = (Some((number, beat)), Instant::now());
        }
        if since.elapsed() >= standby.patience() {
            tracing::warn!(owner = host, term = number, "the owner is silent");
            return Ok(Some(Before { number, silent: Some(term) }));
        }
        if running.stops_within(standby.beat_every()) {
            return Ok(None);
        }
    }
}

fn begin(terms: &Terms, before: u64, standby: &StandbyConfig, machine: &Machine) -> Outcome<Owned> {
    let begun = terms.begin(before, &standby.host, machine);
    match begun.map_err(|error| failed("taking over", &error))? {
        Begun::Won(owned) => Ok(owned),
        Begun::Lost(term) => {
            let why = format!("host {} has taken over, in term {}", term.host, term.number);
            let remedy = "start `holdfast standby` again to stand by for it";
            Err(Problem::new(Exit::InUse, "taking over", why, remedy))
        }
    }
}

/// Has a silent owner write no more. On this very machine the kernel's locks do. A host that is
/// told to stop meanwhile has fenced nobody off, and takes nothing over.
fn fence(
    standby: &StandbyConfig,
    silent: &Term,
    machine: &Machine,
    running: &Running,
) -> Outcome<()> {
    let host = &silent.host;
    match silent.owner(&standby.host, machine) {
        Owner::This => return Ok(()),
        Owner::Unknown => {
            tracing::warn!(host, "an earlier version began the last term; it is this machine's");
            return Ok(());
        }
        Owner::Namesake => {
            let why = format!("another machine served as host {host}, and is silent");
            let remedy = "give each host a name of its own in standby.host (and an \
                          /etc/machine-id), see to it that the other machine serves no more, and \
                          stand by again";
            return Err(Problem::new(Exit::Usage, format!("fencing host {host} off"), why, remedy));
        }
        Owner::Other => {}
    }
    let (program, arguments) = standby.fence.split_first().expect("a checked fence has a program");
    let child = Command::new(program).args(arguments).arg(host).spawn();
    let status = child.and_then(|child| end_of(child, running));
    if running.stops_within(Duration::ZERO) {
        return Ok(());
    }
    let why = match status {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => format!("{program} ended with {status}"),
        Err(error) => format!("{program}: {error}"),
    };
    let remedy = "nothing was taken over; see to the fence, then stand by again";
    Err(Problem::new(Exit::Failed, format!("fencing host {host} off"), why, remedy))
}

/// How a fence ends. It is ended when this host is told to stop: it may wait for what never
/// answers.
fn end_of(mut fence: Child, running: &Running) -> io::Result<ExitStatus> {
    loop {
        if let Some(ended) = fence.try_wait()? {
            return Ok(ended);
        }
        if running.stops_within(LOOK_EVERY) {
            fence.kill()?;
        }
    }
}

/// Says that this host lives until everything was `given_back`, and then that its term has ended.
/// Ends the process if that cannot be said for nearly as long as others have patience, or if
/// another term has begun: front ends and server end with it, whatever they are doing.
fn beat_until(
    mut owned: Owned,
    standby: &StandbyConfig,
    given_back: &Receiver<()>,
) -> io::Result<()> {
    let mut said = Instant::now();
    loop {
        match owned.beat() {
            Ok(Ok(())) => said = Instant::now(),
            Ok(Err(newer)) => end_now(&format!(
                "stale term {}: host {} has taken over in term {}",
                owned.term().number,
                newer.host,
                newer.number
            )),
            Err(error) if said.elapsed() >= standby.patience() - standby.beat_every() => {
                end_now(&format!("nobody can be told that this host lives: {error}"));
            }
            Err(error) => tracing::warn!(%error, "a beat was missed"),
        }
        match given_back.recv_timeout(standby.beat_every()) {
            Ok(()) => return owned.end(),
            // What could not be given back may still be served until this process ends.
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Ends every process of this host's at once, as a kill would: nothing is given back, because it
/// is another's by now.
fn end_now(why: &str) -> ! {
    tracing::error!("{why}; nothing more is acknowledged here");
    std::process::exit(Exit::InUse as i32)
}

fn failed(what: &str, error: &io::Error) -> Problem {
    Problem::new(Exit::Failed, what, error, "see whether standby.folder can be reached")
}
