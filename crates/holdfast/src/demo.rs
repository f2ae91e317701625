//! Demonstrations: a real database on a Holdfast volume, measured and killed.
//!
//! Promise: a demonstration prints what it measured, says what its acknowledgements meant, and
//! leaves the machine as it found it, however it ends.
//! Never: touches anything outside its own work directory and the folder asked for.
//!
//! `show` is the course of every demonstration; `subject` says what it needs of a database, and
//! `postgres`, `mariadb` and `sqlite` are the databases. `ways` compares volumes, not databases.

mod cleanup;
mod disks;
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
mod progress;
mod report;
mod show;
mod site;
pub(crate) mod sqlite;
mod subject;
mod summary;
mod volume;
mod ways;

pub(crate) use error::DemoError;
pub(crate) use options::Options;

/// What there is to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demonstration {
    /// PostgreSQL with `pg_wal` on the volume.
    Postgres,
    /// MariaDB with its redo log on the volume.
    MariaDb,
    /// SQLite with its whole database on the volume.
    Sqlite,
    /// All databases in one report.
    Databases,
    /// All databases, and the power fails.
    PowerCut,
    /// PostgreSQL by both ways to a volume's log.
    Ways,
}

/// Runs a demonstration, writes its report and prints its result on standard output.
///
/// # Errors
/// At the first thing that cannot be done, and at the end if a kill lost or broke anything.
/// Everything is cleaned up first.
pub(crate) fn run(what: Demonstration, options: Options) -> Result<(), DemoError> {
    match what {
        Demonstration::Postgres => show::run::<postgres::Postgres>(options),
        Demonstration::MariaDb => show::run::<mariadb::MariaDb>(options),
        Demonstration::Sqlite => show::run::<sqlite::Sqlite>(options),
        Demonstration::Databases => show::databases(options),
        Demonstration::PowerCut => show::power_cuts(options),
        Demonstration::Ways => ways::run(options),
    }
}
