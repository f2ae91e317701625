//! `holdfast server`: the process that serves logs. The keeper starts it.
//!
//! Promise: it takes over what the one before it left; what it cannot serve it says why, and ends;
//! told to end by SIGTERM it finishes what it took and leaves the regions for the next one, told by
//! SIGINT it also brings everything to the logs' devices.
//! Never: opens a log whose claims cannot be kept.

use super::front::{end_on_any_panic, recovery_text};
use crate::claims::{Class, MediumKind, PowerSource, Verdict};
use crate::cli::ServerArgs;
use crate::exit::Exit;
use crate::keeper::stay_when_memory_is_short;
use crate::observe::region_problem;
use crate::orders::{LogOrders, ServerOrders, ServerReport};
use crate::problem::{Outcome, Problem};
use crate::raw::inherited;
use holdfast_io::real::{RealClock, RealFiles};
use holdfast_log::{Log, OpenError};
use holdfast_memory::{AttachError, Region, RegionSpec};
use holdfast_server::{Confinement, LogSpec, ServeError, Server, ServerSpec, confine};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

/// Notes of the reader, and of requests under way.
const ROSTER_BYTES_MIN: u64 = 1 << 20;
const ROSTER_BYTES_MAX: u64 = 64 << 20;

/// Runs the server to its end.
pub(crate) fn server(args: &ServerArgs) -> Exit {
    let _ = std::fs::write("/proc/self/comm", "holdfast-server");
    end_on_any_panic();
    stay_when_memory_is_short();
    let mut reports = match inherited(args.report_fd) {
        Ok(reports) => File::from(reports),
        Err(error) => {
            tracing::error!(%error, "the server is started by the keeper only");
            return Exit::Usage;
        }
    };
    match serve(args, &mut reports) {
        Ok(()) => Exit::Ok,
        Err(problem) => {
            tracing::error!("{problem}");
            let exit = problem.exit;
            say(&mut reports, &ServerReport::Failed(problem));
            exit
        }
    }
}

/// A keeper that is gone hears nothing, and that is no reason to end.
fn say(reports: &mut File, report: &ServerReport) {
    let mut line = serde_json::to_vec(report).expect("plain data");
    line.push(b'\n');
    let _ = reports.write_all(&line);
}

fn failed(what: &str, error: impl std::fmt::Display) -> Problem {
    Problem::new(Exit::Failed, what, error, "see the keeper's log; the keeper tries again")
}

fn serve(args: &ServerArgs, reports: &mut File) -> Outcome<()> {
    let started = |error: io::Error| failed("taking over the served logs", error);
    let orders = read_orders(args.orders_fd).map_err(started)?;
    let listener = UnixListener::from(inherited(args.listen_fd).map_err(started)?);
    let stop = stop_on(SIGTERM).map_err(started)?;
    let drain = stop_on(SIGINT).map_err(started)?;
    let mut opened = Vec::new();
    for log in &orders.logs {
        opened.push(open(log, orders.power)?);
    }
    let directories = opened.iter().map(|opened| opened.directory.as_fd()).collect();
    let verdicts = opened.iter().map(|o| (o.spec.name.clone(), o.verdict.clone())).collect();
    let rights_kept = confine(&Confinement { directories });
    let rights_kept = rights_kept.iter().map(|kept| format!("{}: {}", kept.right, kept.why));
    let rights_kept = rights_kept.collect();
    let logs = opened.into_iter().map(|opened| opened.spec).collect();
    let server = Server::open(ServerSpec { logs, clients_max: orders.clients_max });
    let server = server.map_err(serve_problem)?;
    let recovery = recovery_of(&server);
    say(reports, &ServerReport::Ready { recovery, verdicts, rights_kept });
    let drains = server.serve(&listener, &stop, &drain);
    match drains.map_err(|error| failed("listening for clients", error))? {
        false => Ok(()),
        true => server.drain().map_err(|error| failed("draining the served logs", error)),
    }
}

/// A stream from which there is something to read once the signal came.
fn stop_on(signal: i32) -> io::Result<UnixStream> {
    let (told, tell) = UnixStream::pair()?;
    pipe::register(signal, tell)?;
    Ok(told)
}

fn read_orders(number: i32) -> io::Result<ServerOrders> {
    let mut file = File::from(inherited(number)?);
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// A log that is ready to be served.
struct Opened {
    spec: LogSpec,
    verdict: Verdict,
    directory: OwnedFd,
}

fn open(orders: &LogOrders, power: PowerSource) -> Outcome<Opened> {
    let (name, config) = (&orders.name, &orders.log);
    let what = format!("opening log {name}");
    let directory = inherited(orders.directory_fd).map_err(|error| failed(&what, error))?;
    let files = directory.try_clone().map_err(|error| failed(&what, error))?;
    let files = Arc::new(RealFiles::from_fd(files));
    let region = region(orders, &files)?;
    // Only the mapping can tell what the memory is: a plain file is no persistent memory.
    let medium = match config.memory.medium {
        MediumKind::Pmem if !region.survives().os => MediumKind::File,
        medium => medium,
    };
    let verdict = config.verdict_on(name, medium, power)?;
    let spec = LogSpec {
        name: name.clone(),
        files,
        region: Arc::new(region),
        clock: Arc::new(RealClock),
        config: config.log_config(),
        is_written_through: verdict.class == Class::Disk,
        allow_uids: config.allow_uids.clone(),
        clients_max: config.clients_max,
    };
    Ok(Opened { spec, verdict, directory })
}

/// The region as it was left, or a new one.
fn region(orders: &LogOrders, files: &RealFiles) -> Outcome<Region> {
    let (name, config) = (&orders.name, &orders.log);
    let medium = config.memory.medium();
    match Region::attach(&medium) {
        Ok(region) => return Ok(region),
        Err(AttachError::Missing) => {}
        Err(error) => return Err(region_problem("attaching", &medium, &error)),
    }
    let identity = Log::identity_of(files);
    let identity = identity.map_err(|error| open_problem(name, &error))?;
    let ring_bytes = config.memory.size.0;
    let roster_bytes = (ring_bytes / 8).clamp(ROSTER_BYTES_MIN, ROSTER_BYTES_MAX);
    let spec = RegionSpec { ring_bytes, roster_bytes, identity };
    Region::create(&medium, &spec).map_err(|error| {
        let what = format!("making the region of log {name}");
        let remedy = "see memory.medium, memory.path and memory.size in the configuration";
        Problem::new(Exit::Failed, what, error, remedy)
    })
}

fn serve_problem(error: ServeError) -> Problem {
    match &error {
        ServeError::Open { name, error } => open_problem(name, error),
        _ => {
            let remedy = "nothing was changed; keep a copy of the region, then remove it";
            Problem::new(Exit::Damaged, "opening the served logs", error, remedy)
        }
    }
}

fn open_problem(name: &str, error: &OpenError) -> Problem {
    let (exit, remedy) = match error {
        OpenError::NoLog => (Exit::Usage, format!("make it with `holdfast log make {name}`")),
        OpenError::InUse => (Exit::InUse, "stop what uses it".to_owned()),
        OpenError::RingTooSmall { .. } => (Exit::Usage, "enlarge memory.size".to_owned()),
        OpenError::Io(_) => (Exit::Failed, "nothing is lost; mend the log's disk".to_owned()),
        _ => (Exit::Damaged, "nothing was changed; restore what is named".to_owned()),
    };
    Problem::new(exit, format!("opening log {name}"), error, remedy)
}

fn recovery_of(server: &Server) -> String {
    let one = |(service, recovery)| format!("{service}: {}", recovery_text(recovery, None));
    server.recoveries().map(one).collect::<Vec<_>>().join("; ")
}
