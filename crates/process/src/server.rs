//! `holdfast server`: what serves logs, disks, tables and snapshots. The keeper starts it.
//!
//! Promise: it takes over what the one before it left; what it cannot serve it says why, and
//! serves the rest; told to end by SIGTERM it finishes what it took and leaves the regions for the
//! next one, told by SIGINT it also brings everything to the logs' devices.
//! Never: serves what cannot keep its claims.

use crate::disks::{disk_spec, take_up_disks};
use crate::life::{be_deaf_to_no_orders, end_on_any_panic, end_with_keeper, give_signs_of_life};
use crate::snapshots;
use crate::stale::end_when_stale;
use crate::tables;
use holdfast_attach::bond::RegionNote;
use holdfast_attach::foreseen::refuse_to_take;
use holdfast_attach::logs::{
    catalogue_problem, note_region, open_problem, real_memory, recovery_text, region,
};
use holdfast_client::protocol::VOLUME_PREFIX;
use holdfast_config::claims::{Class, PowerSource, Verdict};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::Files;
use holdfast_io::real::{RealClock, RealFiles};
use holdfast_keeper::keeper::stay_when_memory_is_short;
use holdfast_keeper::orders::ServerArgs;
use holdfast_keeper::orders::{LogOrders, ServerOrders, ServerReady, ServerReport};
use holdfast_log::OpenError;
use holdfast_machine::found::verdict_of_log;
use holdfast_machine::holders::{SERVER_NAME, be_called};
use holdfast_machine::raw::inherited;
use holdfast_memory::Region;
use holdfast_server::{Confinement, LogSpec, ServeError, Server, ServerSpec, confine};
use holdfast_table::Tables;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

/// Runs the server to its end.
pub fn server(args: &ServerArgs) -> Exit {
    be_called(SERVER_NAME);
    end_on_any_panic();
    be_deaf_to_no_orders();
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

fn failed(what: &str, error: impl std::error::Error + 'static) -> Problem {
    Problem::caused(Exit::Failed, what, error, "see the keeper's log; the keeper tries again")
}

fn serve(args: &ServerArgs, reports: &mut File) -> Outcome<()> {
    let started = |error: io::Error| failed("taking over the services", error);
    let orders = read_orders(args.orders_fd).map_err(started)?;
    give_signs_of_life(orders.pulse_fd).map_err(started)?;
    if orders.term.is_some() {
        end_with_keeper(reports).map_err(started)?;
    }
    let listener = UnixListener::from(inherited(args.listen_fd).map_err(started)?);
    let stop = stop_on(SIGTERM).map_err(started)?;
    let drain = stop_on(SIGINT).map_err(started)?;
    let (taken, ready) = take_over(orders)?;
    say(reports, &ServerReport::Ready(ready));
    let TakenOver { server, logs, tables, table_logs, .. } = &taken;
    let drains = taken.with_background(|| server.serve(&listener, &stop, &drain, &*reports));
    match drains.map_err(|error| failed("listening for clients", error))? {
        false => Ok(()),
        true => drain_all(server, (tables, table_logs), logs),
    }
}

/// A server and what it has besides its clients.
struct TakenOver {
    server: Server,
    /// The directories of its logs.
    logs: Vec<Arc<RealFiles>>,
    tables: Vec<Arc<Tables>>,
    /// The directories of their logs.
    table_logs: Vec<RealFiles>,
    /// The regions that another host may take over.
    followed: Vec<Arc<Region>>,
}

impl TakenOver {
    /// Serves, while what dropped tables have left is taken away, with an eye on the regions.
    fn with_background<T>(&self, serve: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let stop = AtomicBool::new(false);
        let tables = &self.tables;
        std::thread::scope(|scope| {
            let watch = || end_when_stale(&self.followed, &stop);
            Builder::new().name("terms".into()).spawn_scoped(scope, watch)?;
            let sweep = || Builder::new().spawn_scoped(scope, || tables::sweep(tables, &stop));
            let sweeper = (!tables.is_empty()).then(sweep).transpose();
            let served = sweeper.and_then(|sweeper| {
                let served = serve();
                stop.store(true, Ordering::Relaxed);
                sweeper.iter().for_each(|sweeper| sweeper.thread().unpark());
                served
            });
            stop.store(true, Ordering::Relaxed);
            served
        })
    }
}

/// Brings everything to the devices.
fn drain_all(
    server: &Server,
    (tables, table_logs): (&[Arc<Tables>], &[RealFiles]),
    logs: &[Arc<RealFiles>],
) -> Outcome<()> {
    let synced: Vec<_> = tables.iter().map(|tables| tables.store().sync()).collect();
    server.drain().map_err(|error| failed("draining the served logs", error))?;
    for log in logs {
        let noted = RegionNote::drained(&**log);
        noted.map_err(|error| failed("noting that a served log is drained", error))?;
    }
    let synced: Result<(), _> = synced.into_iter().collect();
    synced.map_err(|error| failed("draining the served tables", error))?;
    for log in table_logs {
        let noted = RegionNote::drained(log);
        noted.map_err(|error| failed("noting that served tables are drained", error))?;
    }
    Ok(())
}

/// The first reason why something is not served, of those that pass by themselves if there are any.
fn first_reason(unserved: &[(String, Problem)]) -> Option<&Problem> {
    let passes = unserved.iter().find(|(_, problem)| problem.exit == Exit::InUse);
    passes.or(unserved.first()).map(|(_, problem)| problem)
}

/// Opens what can be opened. With nothing to serve at all, the first reason is the failure.
fn take_over(orders: ServerOrders) -> Outcome<(TakenOver, ServerReady)> {
    let mut ready = ServerReady::default();
    let mut opened = Vec::new();
    for log in &orders.logs {
        match open(log, orders.power, orders.term) {
            Ok(log) => opened.push(log),
            Err(problem) => ready.unserved.push((log.service.clone(), problem)),
        }
    }
    let mut disks = take_up_disks(&orders, &mut ready);
    let mut services = snapshots::take_up(&orders, &mut disks, &mut ready);
    services.extend(disks.into_values().map(|(config, vdisk)| disk_spec(&config, vdisk)));
    let taken = tables::take_up(&orders, &mut ready);
    services.extend(taken.services);
    let of_tables = taken.directories.iter().map(AsFd::as_fd);
    let directories = opened.iter().map(|opened| opened.directory.as_fd());
    let directories = directories.chain(of_tables).collect();
    let rights_kept = confine(&Confinement { directories });
    let rights_kept = rights_kept.iter().map(|kept| format!("{}: {}", kept.right, kept.why));
    ready.rights_kept = rights_kept.collect();
    let verdicts = opened.iter().map(|o| (o.spec.service.clone(), o.verdict.clone()));
    ready.verdicts.extend(verdicts);
    let files = opened.iter().map(|opened| opened.files.clone()).collect();
    let logs: Vec<_> = opened.into_iter().map(|opened| opened.spec).collect();
    let followed = logs.iter().filter(|_| orders.term.is_some());
    let followed = followed.map(|log| log.region.clone()).collect();
    let (server, errors) =
        Server::open(ServerSpec { logs, services, clients_max: orders.clients_max });
    ready.unserved.extend(errors.iter().map(unserved));
    let is_served = |service: &str| ready.unserved.iter().all(|(of, _)| of != service);
    ready.verdicts.retain(|(service, _)| is_served(service));
    ready.recovery = recovery_of(&server);
    match first_reason(&ready.unserved) {
        Some(problem) if ready.verdicts.is_empty() => Err(problem.clone()),
        _ => Ok((
            TakenOver {
                server,
                logs: files,
                tables: taken.tables,
                table_logs: taken.logs,
                followed,
            },
            ready,
        )),
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
    files: Arc<RealFiles>,
}

fn open(orders: &LogOrders, power: PowerSource, term: Option<u64>) -> Outcome<Opened> {
    let (service, config) = (&orders.service, &orders.log);
    let what = format!("opening {service}");
    let directory = inherited(orders.directory_fd).map_err(|error| failed(&what, error))?;
    let files = directory.try_clone().map_err(|error| failed(&what, error))?;
    let files = Arc::new(RealFiles::from_fd(files));
    // Asked while this process still sees the whole directory, and before anything is made.
    if let Some(problem) = catalogue_problem((&what, service), &*files, &config.memory.medium()) {
        return Err(problem);
    }
    let say = |error: &OpenError| open_problem(service, error);
    let log = (&*files as &dyn Files, &config.log_config());
    refuse_to_take(service, (&config.memory, term), log, &say)?;
    let (region, loss) = region(service, &config.memory, &*files, term)?;
    let memory = real_memory(&config.memory, &region);
    let verdict = verdict_of_log(service, config, memory, power)?;
    let held = (&config.memory, &verdict, region.ring_bytes());
    note_region(service, &*files, held, loss)?;
    // A volume's front end commits by itself what a program wants to be durable.
    let is_volume = service.starts_with(VOLUME_PREFIX);
    let spec = LogSpec {
        service: service.clone(),
        files: files.clone(),
        region: Arc::new(region),
        clock: Arc::new(RealClock),
        config: config.log_config(),
        is_written_through: verdict.class == Class::Disk && !is_volume,
        allow_uids: config.allow_uids.clone(),
        clients_max: config.clients_max,
    };
    Ok(Opened { spec, verdict, directory, files })
}

fn unserved(ServeError { service, error }: &ServeError) -> (String, Problem) {
    (service.clone(), open_problem(service, error))
}

fn recovery_of(server: &Server) -> String {
    let one = |(service, recovery)| format!("{service}: {}", recovery_text(recovery, None));
    server.recoveries().map(one).collect::<Vec<_>>().join("; ")
}
