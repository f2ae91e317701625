//! `holdfast-demo mariadb`: an unmodified MariaDB with its redo log on the volume.
//!
//! Promise: four settings differ in nothing but the place of the redo log and
//! `innodb_flush_log_at_trx_commit`; acknowledgements come from sysbench, rows from SQL, and
//! tables are checked by MariaDB's own `CHECK TABLE ... EXTENDED`.
//! Never: needs anything but root, MariaDB, sysbench and FUSE.

mod load;
mod server;

use std::path::Path;
use std::time::Duration;

use self::load::{DATABASE, Load, Running};
use self::server::Server;
use super::disks::{Disks, Places, Setting};
use super::error::DemoError;
use super::kills;
use super::outcome::{Outcome, Present};
use super::processes::Owner;
use super::subject::{Case, Database, Goal, Subject, Words};

/// Length of the discarded load after each start: the first seconds on a slow disk are not like
/// those that follow.
const WARM_UP_S: u32 = 2;

/// Threads of the load that is killed, and of the warm-up.
const THREADS: u32 = 8;

/// For the comparison: no page leaves memory during a timed run.
const OPTIONS: &[&str] = &["--innodb-buffer-pool-size=512M"];

/// For power cuts: pages are written out all the time, and none is written twice.
const OPTIONS_WHOLE: &[&str] = &[
    "--innodb-buffer-pool-size=8M",
    "--innodb-max-dirty-pages-pct=1",
    "--skip-innodb-doublewrite",
];

const SUBJECT: Subject = Subject {
    id: "mariadb",
    name: "MariaDB",
    load: "sysbench oltp_write_only, redo log on",
    place: "redo log",
    cases: &[Case { id: "t1", title: "1 thread" }, Case { id: "t8", title: "8 threads" }],
    settings: &[
        Words::of(Setting::Sync, "sync", "sync (the default)", "nothing"),
        Words::of(
            Setting::Async,
            "async",
            "flush_log_at_trx_commit=0",
            "the last second, also at a crash of the server",
        ),
        Words::HOLDFAST,
        Words::of(Setting::Tmpfs, "tmpfs", "log in tmpfs (bound)", "the database"),
    ],
    goals: &[
        Goal::rate("t1.holdfast_over_sync", "t1", Setting::Sync, 15.0),
        Goal::rate("t8.holdfast_over_sync", "t8", Setting::Sync, 10.0),
    ],
    canary: "The same kill of MariaDB with innodb_flush_log_at_trx_commit=0",
    canary_id: "async_lost",
};

/// The server, and where its redo log may lie.
pub(crate) struct MariaDb {
    server: Server,
    places: Places,
}

impl MariaDb {
    /// Fills a new server with sysbench's tables.
    fn fill(mut server: Server, places: Places) -> Result<MariaDb, DemoError> {
        server.start(0)?;
        server.query(&format!("CREATE DATABASE {DATABASE}"))?;
        server.query(&format!(
            "CREATE TABLE {DATABASE}.acknowledged (round INT, client INT, seq BIGINT, \
             PRIMARY KEY (round, client, seq)) ENGINE=InnoDB"
        ))?;
        load::prepare(&server)?;
        server.stop()?;
        Ok(MariaDb { server, places })
    }

    fn tables(&self) -> Result<String, DemoError> {
        self.server.query(&format!(
            "SELECT group_concat('`', table_name, '`') FROM information_schema.tables \
             WHERE table_schema = '{DATABASE}'"
        ))
    }
}

impl Database for MariaDb {
    const SUBJECT: Subject = SUBJECT;
    const UNGUARDED: Setting = Setting::Sync;
    type Load = Running;

    fn create(work: &Path, disks: &Disks) -> Result<MariaDb, DemoError> {
        let server = Server::create(work, &work.join("data"), OPTIONS)?;
        MariaDb::fill(server, disks.places())
    }

    fn create_whole(work: &Path, data: &Path) -> Result<MariaDb, DemoError> {
        let server = Server::create(work, data, OPTIONS_WHOLE)?;
        MariaDb::fill(server, Places::One(data.to_owned()))
    }

    fn user() -> Result<Owner, DemoError> {
        Server::user()
    }

    fn enter(&mut self, setting: Setting) -> Result<Duration, DemoError> {
        self.server.move_redo_log(self.places.of(setting))?;
        let took = self.recover(setting)?;
        Load { threads: THREADS, seconds: WARM_UP_S, round: None }
            .start(&self.server)?
            .finish()?
            .undisturbed()?;
        Ok(took)
    }

    fn leave(&mut self) -> Result<(), DemoError> {
        self.server.stop()
    }

    fn run(&mut self, case: &Case, seconds: u32) -> Result<Outcome, DemoError> {
        let threads = if case.id == "t1" { 1 } else { THREADS };
        Load { threads, seconds, round: None }.start(&self.server)?.finish()
    }

    fn load(&mut self, round: u32, seconds: u32) -> Result<Running, DemoError> {
        Load { threads: THREADS, seconds, round: Some(round) }.start(&self.server)
    }

    fn kill(&mut self, _load: &mut Running) -> Result<(), DemoError> {
        self.server.kill()
    }

    fn finish(&mut self, load: Running, killed: bool) -> Result<Outcome, DemoError> {
        if killed { load.end() } else { load.finish() }
    }

    fn recover(&mut self, setting: Setting) -> Result<Duration, DemoError> {
        self.server.start(if setting == Setting::Async { 0 } else { 1 })
    }

    fn present(&self, round: u32) -> Result<Present, DemoError> {
        let sql = format!("SELECT client, seq FROM {DATABASE}.acknowledged WHERE round = {round}");
        Present::parse(&self.server.query(&sql)?)
    }

    fn complaint(&self) -> Result<String, DemoError> {
        let sql = format!("USE {DATABASE}; CHECK TABLE {} EXTENDED", self.tables()?);
        Ok(complaints(&self.server.query(&sql)?))
    }

    fn canary(&mut self, seed: u64) -> Result<u64, DemoError> {
        kills::canary(self, seed)
    }

    fn enter_home(&mut self, home: &Path) -> Result<(), DemoError> {
        self.server.stay_with_redo_log(home);
        self.recover(Setting::Sync).map(drop)
    }
}

/// What `CHECK TABLE` says beyond that a table is well. Index entries of deleted rows that wait in
/// vain for their removal are no damage: InnoDB leaves some after any kill, on any disk, ignores
/// them, warns of one an index, and still calls the table well.
fn complaints(said: &str) -> String {
    const LEFT_OVER: [&str; 2] = [
        "\tWarning\tInnoDB: Clustered index record not found for index",
        "\tWarning\tInnoDB: Unpurged clustered index record",
    ];
    let is_fine = |line: &&str| {
        line.ends_with("\tstatus\tOK") || LEFT_OVER.iter().any(|words| line.contains(words))
    };
    let bad: Vec<&str> = said.lines().filter(|line| !is_fine(line)).collect();
    bad.join("; ")
}

#[cfg(test)]
mod tests;
