//! `holdfast table make | check | list | get | scan`, and the tables that the server takes up.
//!
//! Promise: tables are taken up as they were left; an answer is as safe as the claims say.
//! Never: makes a store where one was expected: an empty one is no answer to who asks for his rows.

mod asked;
mod read;
mod values;

use super::logs::until_let_go;
use super::store::advice;
use crate::claims::PowerSource;
use crate::cli::table::TableCommand;
use crate::config::{Config, TableConfig, durability_of};
use crate::exit::Exit;
use crate::found::verdict_of_table;
use crate::orders::{ServerOrders, ServerReady};
use crate::output::Output;
use crate::problem::{Outcome, Problem};
use crate::report::verdict_text;
use holdfast_client::protocol::TABLE_PREFIX;
use holdfast_io::private;
use holdfast_memory::AttachError;
use holdfast_server::{
    Departure, RespondError, Responder, ServiceKind, ServiceSpec, ServiceWords, words,
};
use holdfast_store::{OpenError, Store};
use holdfast_table::{RespondError as TableError, Tables};
use serde_json::json;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How often it is seen whether dropped tables have left something.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Does what is asked of tables.
pub(crate) fn table(config: &Path, command: TableCommand, output: Output) -> Outcome<()> {
    let config = Config::load(config)?;
    match command {
        TableCommand::Make { name } => make(&config, &name, output),
        TableCommand::Check { name } => check(&config, &name, output),
        TableCommand::List { name } => read::list(&config, &name, output),
        TableCommand::Get { table, key } => read::get(&config, &table, &key, output),
        TableCommand::Scan { table, part } => read::scan(&config, &table, &part, output),
    }
}

fn make(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let table = config.table(name)?;
    let verdict = verdict_of_table(name, table, config.keeper.power)?;
    private::directory(&table.store).map_err(|error| {
        let what = format!("making table {name} in {}", table.store.display());
        Problem::new(Exit::Failed, what, error, "make the directory, or correct store")
    })?;
    let tables = open(name, table, config.keeper.power)?;
    tables.close().map_err(|error| failed(name, error))?;
    output.done(&format!("{name} is made, without tables\n{}", verdict_text(&verdict)));
    Ok(())
}

fn check(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let table = config.table(name)?;
    is_made(name, table)?;
    let tables = open(name, table, config.keeper.power)?;
    let checked = tables.check().map_err(|error| failed(name, error))?;
    tables.close().map_err(|error| failed(name, error))?;
    if let Some(first) = checked.disagreements.first() {
        let (count, remedy) = (checked.disagreements.len(), "restore the store as it was");
        let why = format!("{count} disagreements, the first of which is {first:?}");
        return Err(Problem::new(Exit::Damaged, format!("checking table {name}"), why, remedy));
    }
    let (tables, rows, entries) = (checked.tables, checked.rows, checked.entries);
    let text = format!("{tables} tables, {rows} rows, {entries} entries of indexes: all agree");
    output.result(&json!({ "tables": tables, "rows": rows, "entries": entries }), &text);
    Ok(())
}

/// Tables that the server has taken up.
#[derive(Default)]
pub(super) struct TakenUp {
    pub(super) services: Vec<ServiceSpec>,
    /// The stores' directories.
    pub(super) directories: Vec<File>,
    pub(super) tables: Vec<Arc<Tables>>,
}

/// Takes up the tables that can be.
pub(super) fn take_up(orders: &ServerOrders, ready: &mut ServerReady) -> TakenUp {
    let mut taken = TakenUp::default();
    for (name, table) in &orders.tables {
        let service = format!("{TABLE_PREFIX}{name}");
        match take_up_one(name, table, orders.power) {
            Ok((tables, directory)) => {
                let verdict = verdict_of_table(name, table, orders.power);
                ready.verdicts.extend(verdict.map(|verdict| (service.clone(), verdict)));
                let tables = Arc::new(tables);
                taken.services.push(spec(service, table, &tables));
                taken.directories.push(directory);
                taken.tables.push(tables);
            }
            Err(problem) => ready.unserved.push((service, problem)),
        }
    }
    taken
}

fn take_up_one(name: &str, table: &TableConfig, power: PowerSource) -> Outcome<(Tables, File)> {
    is_made(name, table)?;
    let tables = open(name, table, power)?;
    let directory = File::open(&table.store).map_err(|error| failed(name, error))?;
    Ok((tables, directory))
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

fn is_made(name: &str, table: &TableConfig) -> Outcome<()> {
    match Store::is_at(&table.store) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let why = format!("there is no store in {}", table.store.display());
            let remedy = format!("make it: `holdfast table make {name}`");
            Err(Problem::new(Exit::Usage, what(name), why, remedy))
        }
        Err(error) => Err(failed(name, error)),
    }
}

fn open(name: &str, table: &TableConfig, power: PowerSource) -> Outcome<Tables> {
    let durability = durability_of(&verdict_of_table(name, table, power)?);
    let config = table.store_config();
    // The process before may be about to end.
    let opened = until_let_go(|| Store::open(&table.store, &config), is_in_use);
    let (store, _) = opened.map_err(|error| {
        let in_use = (Exit::InUse, "see the store's directory, and memory.path");
        let (exit, remedy) = if is_in_use(&error) { in_use } else { advice(&error) };
        Problem::new(exit, what(name), error, remedy)
    })?;
    Tables::open(store, durability).map_err(|error| failed(name, error))
}

fn is_in_use(error: &OpenError) -> bool {
    match error {
        OpenError::InUse => true,
        OpenError::Memory(error) => {
            let error = error.get_ref().and_then(|error| error.downcast_ref());
            matches!(error, Some(AttachError::InUse { .. }))
        }
        _ => false,
    }
}

fn what(name: &str) -> String {
    format!("opening table {name}")
}

fn failed(name: &str, error: impl std::fmt::Display) -> Problem {
    Problem::new(Exit::Failed, what(name), error, "see to the store's disk, then try again")
}
