//! `holdfast-demo`: a real database on a Holdfast volume, measured and killed.
//!
//! Promise: a demonstration prints what it measured, says what its acknowledgements meant, and
//! leaves the machine as it found it, however it ends.
//! Never: touches anything outside its own work directory and the folder asked for.
//!
//! `show` is the course of every demonstration; `subject` says what it needs of a database, and
//! `postgres`, `mariadb` and `sqlite` are the databases. `ways` compares volumes, not databases.

mod cleanup;
mod disks;
mod drills;
mod error;
mod files;
mod killed;
mod kills;
mod mariadb;
mod measure;
mod options;
mod outcome;
mod plot;
mod postgres;
mod power;
mod processes;
mod programs;
mod progress;
mod report;
mod show;
mod site;
mod sqlite;
mod subject;
mod summary;
#[cfg(test)]
mod tests;
mod ups;
mod volume;
mod ways;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::DemoError;
use options::Options;

/// Shows on this machine what Holdfast does.
#[derive(Debug, Parser)]
#[command(name = "holdfast-demo", version)]
struct Cli {
    /// What to show it with.
    #[command(subcommand)]
    command: Command,
}

/// What there is to show.
#[derive(Debug, Subcommand)]
enum Command {
    /// An unmodified PostgreSQL, measured in five settings and killed under load.
    Postgres(Options),
    /// An unmodified MariaDB, its redo log on the volume, measured and killed likewise.
    #[command(name = "mariadb")]
    MariaDb(Options),
    /// The machine's own SQLite, its whole database on the volume, measured and killed likewise.
    Sqlite(Options),
    /// MariaDB and SQLite, what full_page_writes costs PostgreSQL, and power cuts, in one report.
    Databases(Options),
    /// Each database wholly on a volume, without its own guard against torn pages: the power fails
    /// `--kills` times.
    PowerCut(Options),
    /// A power source: PostgreSQL measured while memory acknowledges because of it, classes that
    /// change under load, and `--kills` power cuts of each database at a deadline after a notice.
    Drills(Options),
    /// PostgreSQL by both ways to a volume's log, direct and through the queue: measured side by
    /// side and killed alike. The server is killed too, as often as the front end, on top of
    /// `--kills`.
    Ways(Options),
    /// One writer of `sqlite`, which starts it.
    #[command(hide = true)]
    SqliteWriter(sqlite::WriterArgs),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _unwritable = writeln!(
                io::stderr(),
                "holdfast-demo: the demonstration failed: {error}; everything was cleaned up; \
                 correct the cause and run it again"
            );
            ExitCode::FAILURE
        }
    }
}

/// Runs a demonstration, writes its report and prints its result on standard output.
///
/// # Errors
/// At the first thing that cannot be done, and at the end if a kill lost or broke anything.
/// Everything is cleaned up first.
fn run(command: Command) -> Result<(), DemoError> {
    match command {
        Command::Postgres(options) => show::run::<postgres::Postgres>(options),
        Command::MariaDb(options) => show::run::<mariadb::MariaDb>(options),
        Command::Sqlite(options) => show::run::<sqlite::Sqlite>(options),
        Command::Databases(options) => show::databases(options),
        Command::PowerCut(options) => show::power_cuts(options),
        Command::Drills(options) => drills::run(options),
        Command::Ways(options) => ways::run(options),
        Command::SqliteWriter(args) => sqlite::write(&args),
    }
}
