//! Tables of rows, as the server takes them up, and whoever else opens their store.
//!
//! Promise: tables are taken up as they were left; an answer is as safe as the claims say.
//! Never: makes a store where one was expected: an empty one is no answer to who asks for his rows.

use crate::store_refused::refused as store_refused;
use holdfast_attach::bond::{Loss, RegionNote};
use holdfast_attach::logs::{
    catalogue_problem, note_region, open_problem, remade, remove_earlier, remove_needless,
    until_let_go,
};
use holdfast_attach::observe::region_problem;
use holdfast_client::protocol::TABLE_PREFIX;
use holdfast_config::claims::PowerSource;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{TableConfig, durability_of};
use holdfast_io::real::RealFiles;
use holdfast_keeper::orders::{ServerOrders, ServerReady};
use holdfast_log::OpenError as LogError;
use holdfast_machine::found::verdict_of_table;
use holdfast_machine::holders::{holder, is_mapped_by};
use holdfast_memory::{AttachError, Medium, Region};
use holdfast_server::{
    Departure, RespondError, Responder, ServiceKind, ServiceSpec, ServiceWords, words,
};
use holdfast_store::{OpenError, Store};
use holdfast_table::{RespondError as TableError, Tables};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How often it is seen whether dropped tables have left something.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Tables that the server has taken up.
#[derive(Default)]
pub(super) struct TakenUp {
    pub(super) services: Vec<ServiceSpec>,
    /// The stores' directories.
    pub(super) directories: Vec<File>,
    pub(super) tables: Vec<Arc<Tables>>,
    /// The directories of their logs.
    pub(super) logs: Vec<RealFiles>,
}

/// Takes up the tables that can be.
pub(super) fn take_up(orders: &ServerOrders, ready: &mut ServerReady) -> TakenUp {
    let mut taken = TakenUp::default();
    for (name, table) in &orders.tables {
        let service = format!("{TABLE_PREFIX}{name}");
        match take_up_one(name, table, orders.power) {
            Ok((tables, directory, log)) => {
                let verdict = verdict_of_table(name, table, orders.power);
                ready.verdicts.extend(verdict.map(|verdict| (service.clone(), verdict)));
                let tables = Arc::new(tables);
                taken.services.push(spec(service, table, &tables));
                taken.directories.push(directory);
                taken.tables.push(tables);
                taken.logs.push(log);
            }
            Err(problem) => ready.unserved.push((service, problem)),
        }
    }
    taken
}

fn take_up_one(
    name: &str,
    table: &TableConfig,
    power: PowerSource,
) -> Outcome<(Tables, File, RealFiles)> {
    is_made(name, table)?;
    let tables = open(name, table, power)?;
    let directory = File::open(&table.store).map_err(|error| failed(name, error))?;
    let log = RealFiles::open(&table.log()).map_err(|error| failed(name, error))?;
    Ok((tables, directory, log))
}

fn spec(service: String, table: &TableConfig, tables: &Arc<Tables>) -> ServiceSpec {
    ServiceSpec {
        service,
        kind: ServiceKind::Responder(Arc::new(Served(Arc::clone(tables)))),
        words: Arc::new(Counters::default()),
        allow_uids: table.allow_uids.clone(),
        clients_max: table.clients_max,
    }
}

/// Takes away what dropped tables have left, until it is told to stop.
pub(super) fn sweep(tables: &[Arc<Tables>], stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        // What cannot be swept now can be later, and nobody waits for it.
        let has_more = |tables: &Arc<Tables>| tables.sweep().unwrap_or(false);
        if tables.iter().filter(|tables| has_more(tables)).count() == 0 {
            std::thread::park_timeout(SWEEP_EVERY);
        }
    }
}

/// Tables as the server asks them.
struct Served(Arc<Tables>);

impl Responder for Served {
    fn respond(
        &self,
        client: u64,
        sequence: u64,
        oldest: u64,
        request: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), RespondError> {
        let responded = self.0.respond(client, sequence, oldest, request, answer);
        responded.map_err(|error| match error {
            TableError::Number => RespondError::Forgotten,
            error => RespondError::Failed(io::Error::other(error)),
        })
    }

    fn departed(&self, client: u64, departure: Departure) {
        let done = match departure {
            Departure::InOrder => self.0.left(client),
            Departure::Vanished => self.0.vanished(client),
        };
        if let Err(error) = done {
            tracing::warn!(%error, "the answers of a client that is gone are kept for now");
        }
    }
}

/// The server's words about tables: their state is in their store, and these end with the server.
struct Counters([AtomicU64; words::REQUESTS + 1]);

impl Default for Counters {
    fn default() -> Counters {
        Counters(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl ServiceWords for Counters {
    fn word(&self, index: usize) -> &AtomicU64 {
        &self.0[index]
    }
}

/// Refuses tables that have no store yet.
pub fn is_made(name: &str, table: &TableConfig) -> Outcome<()> {
    match Store::is_at(&table.store) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let why = format!("there is no store in {}", table.store.display());
            let remedy = format!("make it: `holdfast table make {name}`");
            Err(Problem::new(Exit::Usage, what(name), why, remedy))
        }
        Err(error) => Err(refused(name, table, &OpenError::Io(error))),
    }
}

/// Opens the store of tables, over the memory that it had.
pub fn open(name: &str, table: &TableConfig, power: PowerSource) -> Outcome<Tables> {
    let verdict = verdict_of_table(name, table, power)?;
    let (service, config) = (format!("{TABLE_PREFIX}{name}"), table.store_config());
    let log = || RealFiles::open(&table.log());
    let loss = match log() {
        Ok(log) => without_memory(&service, table, &log)?,
        Err(_no_log_yet) => None,
    };
    // The process before may be about to end, and is not waited for while it serves.
    let is_ending = |error: &OpenError| is_in_use(error) && !is_served(&table.memory.medium());
    let open = || until_let_go(|| Store::open(&table.store, &config), is_ending);
    let (opened, loss) = match open() {
        // No claim rests on such memory, so the log's device has all that was to survive.
        Err(error) if matches!(of_memory(&error), Some(AttachError::OtherBoot)) => {
            let log = log().map_err(|error| failed(name, error))?;
            let loss = RegionNote::without(&service, &table.memory, &log)?;
            remove_earlier(&service, &table.memory.medium())?;
            (open(), loss)
        }
        // People had the closed store for a while, without memory.
        Err(error) if is_stale(&error) && has_needless_memory(table) => {
            remove_needless(&service, &table.memory.medium())?;
            (open(), None)
        }
        opened => (opened, loss),
    };
    let (store, found) = opened.map_err(|error| refused(name, table, &error))?;
    found.remade.iter().for_each(|spoilt| tracing::warn!(name, "{}", remade(spoilt)));
    let log = log().map_err(|error| failed(name, error))?;
    note_region(&service, &log, (&table.memory, &verdict, table.memory.size.0), loss)?;
    Tables::open(store, durability_of(&verdict)).map_err(|error| failed(name, error))
}

fn is_stale(error: &OpenError) -> bool {
    matches!(error, OpenError::Log(LogError::StaleRegion { .. }))
}

/// Whether the log's disk had everything when the memory was left. What the store notes of itself
/// behind that is in the memory alone, and nobody misses it.
fn has_needless_memory(table: &TableConfig) -> bool {
    RealFiles::open(&table.log()).is_ok_and(|log| RegionNote::is_drained(&log, &table.memory))
}

/// What memory that is gone may have cost, or why nothing goes on without it.
fn without_memory(service: &str, table: &TableConfig, log: &RealFiles) -> Outcome<Option<Loss>> {
    match Region::observe(&table.memory.medium()) {
        Err(AttachError::Missing) => RegionNote::without(service, &table.memory, log),
        _ => Ok(None),
    }
}

/// Brings everything to the disk, and notes it.
pub fn close(name: &str, table: &TableConfig, tables: Tables) -> Outcome<()> {
    tables.close().map_err(|error| failed(name, error))?;
    let log = RealFiles::open(&table.log());
    let noted = log.and_then(|log| RegionNote::drained(&log));
    noted.map_err(|error| failed(name, error))
}

/// Why a store is not opened.
fn refused(name: &str, table: &TableConfig, error: &OpenError) -> Problem {
    let is_of_memory = |error: &LogError| {
        matches!(
            error,
            LogError::ForeignRegion { .. }
                | LogError::StaleRegion { .. }
                | LogError::OlderRegion { .. }
                | LogError::Marks(_)
        )
    };
    if let Some(error @ AttachError::InUse { .. }) = of_memory(error) {
        return region_problem("opening", ("", &table.memory.medium()), error);
    }
    let service = format!("{TABLE_PREFIX}{name}");
    match error {
        OpenError::Log(LogError::NoLog) => {
            let log = RealFiles::open(&table.log()).ok();
            let medium = table.memory.medium();
            let told =
                log.and_then(|log| catalogue_problem((&what(name), &service), &log, &medium));
            told.unwrap_or_else(|| store_refused(what(name), &table.store, error))
        }
        OpenError::Log(error) if is_of_memory(error) => open_problem(&service, error),
        error if is_in_use(error) => {
            let unseen =
                || (error.to_string(), "see the store's directory, and memory.path".into());
            let (why, remedy) = holder(&table.memory.medium()).unwrap_or_else(unseen);
            Problem::new(Exit::InUse, what(name), why, remedy)
        }
        error => store_refused(what(name), &table.store, error),
    }
}

fn is_in_use(error: &OpenError) -> bool {
    let is_held = || matches!(of_memory(error), Some(AttachError::InUse { .. }));
    matches!(error, OpenError::InUse) || is_held()
}

/// Whether the process that the memory names as its server has it still.
fn is_served(medium: &Medium) -> bool {
    Region::observe(medium).is_ok_and(|seen| is_mapped_by(medium, seen.server_pid()))
}

/// Why the memory of a store's log cannot be had.
fn of_memory(error: &OpenError) -> Option<&AttachError> {
    let OpenError::Memory(error) = error else { return None };
    error.get_ref()?.downcast_ref()
}

fn what(name: &str) -> String {
    format!("opening table {name}")
}

/// The problem of tables that could not be had.
pub fn failed(name: &str, error: impl std::fmt::Display) -> Problem {
    Problem::new(Exit::Failed, what(name), error, "see to the store's disk, then try again")
}
