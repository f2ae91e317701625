//! The writer: a process that inserts one row a commit, and notes each acknowledgement.
//!
//! Promise: a line stands in the log exactly if SQLite had said that the commit is done; a row's
//! payload follows from its number, so a row that was changed shows.
//! Never: goes on after an error: it is said on standard error, and ends the process.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::raw::{Library, SqliteError};
use crate::error::{DemoError, During};

/// The one table.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS acknowledged (round INTEGER, seq INTEGER, \
    payload TEXT, PRIMARY KEY (round, seq)) WITHOUT ROWID";

/// One row of 100 bytes and two numbers.
const INSERT: &str = "INSERT INTO acknowledged VALUES (?1, ?2, printf('%0100d', ?2))";

/// Rows whose payload is not the one that was inserted.
pub(super) const WRONG: &str =
    "SELECT count(*) FROM acknowledged WHERE payload IS NOT printf('%0100d', seq)";

/// What to write, and how.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WriterArgs {
    /// The database file.
    #[arg(long)]
    pub(super) database: PathBuf,
    /// SQLite's `journal_mode`.
    #[arg(long)]
    pub(super) journal_mode: String,
    /// SQLite's `synchronous`.
    #[arg(long)]
    pub(super) synchronous: String,
    /// What the rows carry as round.
    #[arg(long)]
    pub(super) round: u32,
    /// For how long.
    #[arg(long)]
    pub(super) seconds: u32,
    /// Where acknowledgements are noted.
    #[arg(long)]
    pub(super) log: PathBuf,
}

/// Writes until the time is over.
///
/// # Errors
/// At the first thing that fails.
pub(crate) fn run(args: &WriterArgs) -> Result<(), DemoError> {
    let log = File::create(&args.log).during(|| format!("making {}", args.log.display()))?;
    write(args, log).map_err(|error| DemoError::new("writing to the database", error.to_string()))
}

fn write(args: &WriterArgs, mut log: File) -> Result<(), Box<dyn std::error::Error>> {
    let library = Library::load()?;
    let connection = library.open(&args.database)?;
    let mode = connection.query(&format!("PRAGMA journal_mode = {}", args.journal_mode))?;
    if mode != [args.journal_mode.clone()] {
        let refused = format!("journal_mode is {mode:?}, not {}", args.journal_mode);
        return Err(refused.into());
    }
    connection.query(&format!("PRAGMA synchronous = {}", args.synchronous))?;
    connection.query(TABLE)?;
    let mut insert = connection.prepare(INSERT)?;
    let end = Instant::now() + Duration::from_secs(args.seconds.into());
    for seq in 1_i64.. {
        let began = Instant::now();
        if began >= end {
            break;
        }
        commit(&mut insert, args.round, seq)?;
        log.write_all(line(seq, began.elapsed()).as_bytes())?;
    }
    Ok(())
}

/// Inserts one row. The database has committed it when this returns.
fn commit(insert: &mut super::raw::Statement<'_>, round: u32, seq: i64) -> Result<(), SqliteError> {
    insert.bind(1, round.into())?;
    insert.bind(2, seq)?;
    insert.step()?;
    insert.reset()
}

/// One line of a transaction log, as pgbench writes it.
fn line(seq: i64, latency: Duration) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, micros) = (now.as_secs(), now.subsec_micros());
    format!("0 {seq} {} 0 {seconds} {micros}\n", latency.as_micros())
}
