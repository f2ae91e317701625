//! `holdfast-demo postgres`: an unmodified PostgreSQL with `pg_wal` on the volume.
//!
//! Promise: the settings differ in nothing but the place of `pg_wal` and `synchronous_commit`;
//! acknowledgements come from pgbench's log, rows from SQL, and heaps and indexes are checked by
//! PostgreSQL's own amcheck.
//! Never: needs anything but root, PostgreSQL and FUSE.

mod cluster;
mod load;
pub(super) mod pages;
mod verify;
mod wal;

use std::path::Path;
use std::time::Duration;

use holdfast_figures::Better;

use self::cluster::{Cluster, SCALE};
use self::load::{Load, Running};
use super::disks::{Disks, Places, Setting};
use super::error::DemoError;
use super::kills;
use super::outcome::{Outcome, Present};
use super::processes::Owner;
use super::site::FAST_LOG;
use super::subject::{Case, Database, Goal, Subject, Words};

/// Length of the discarded load after each start.
const WARM_UP_S: u32 = 1;

/// Clients of the load that is killed, and of the warm-up.
const CLIENTS: u32 = 8;

/// For the comparison: no page leaves memory during a timed run.
const SETTINGS: &str = "shared_buffers = 512MB";

/// For power cuts: pages are written out all the time, and none is in the log as a whole.
const SETTINGS_WHOLE: &str = "shared_buffers = 8MB\nfull_page_writes = off";

const SUBJECT: Subject = Subject {
    id: "postgres",
    name: "PostgreSQL",
    load: "pgbench TPC-B, pg_wal on",
    place: "pg_wal",
    cases: &[Case { id: "c1", title: "1 client" }, Case { id: "c8", title: "8 clients" }],
    settings: &[
        Words::of(Setting::Sync, "sync", "sync (the default)", "nothing"),
        Words::of(Setting::FastLog, FAST_LOG, "Holdfast, log on a fast disk", "nothing"),
        Words::of(
            Setting::Async,
            "async",
            "synchronous_commit=off",
            "the last transactions, also at a crash of the server",
        ),
        Words::HOLDFAST,
        Words::of(Setting::Tmpfs, "tmpfs", "log in tmpfs (bound)", "the database"),
    ],
    goals: GOALS,
    canary: "The same kill of PostgreSQL with synchronous_commit=off",
    canary_id: "async_lost",
};

const GOALS: &[Goal] = &[
    Goal::beside("c1.fastlog_over_sync", "c1", Setting::FastLog, Setting::Sync),
    Goal {
        goal: Some(8.0),
        ..Goal::beside("c8.fastlog_over_sync", "c8", Setting::FastLog, Setting::Sync)
    },
    Goal::rate("c1.holdfast_over_sync", "c1", Setting::Sync, 12.0),
    Goal::rate("c8.holdfast_over_sync", "c8", Setting::Sync, 15.0),
    Goal::rate("c8.holdfast_over_async", "c8", Setting::Async, 0.9),
    Goal::rate("c8.holdfast_over_tmpfs", "c8", Setting::Tmpfs, 0.7),
    Goal {
        id: "c8.p99_over_sync",
        case: "c8",
        ours: Setting::HOLDFAST,
        measure: |sample| sample.p99_ms,
        peer: Setting::Sync,
        better: Better::Lower,
        goal: Some(0.1),
    },
];

/// The cluster, and where its `pg_wal` may lie.
pub(super) struct Postgres {
    cluster: Cluster,
    places: Places,
}

impl Postgres {
    /// Fills a new cluster with pgbench's tables.
    fn fill(mut cluster: Cluster, places: Places) -> Result<Postgres, DemoError> {
        cluster.start(&["synchronous_commit=off"])?;
        cluster.run("pgbench", |pgbench| pgbench.args(["-i", "-q", "-s", &SCALE.to_string()]))?;
        verify::prepare(&cluster)?;
        cluster.stop()?;
        Ok(Postgres { cluster, places })
    }
}

impl Database for Postgres {
    const SUBJECT: Subject = SUBJECT;
    const UNGUARDED: Setting = Setting::Sync;
    type Load = Running;

    fn create(work: &Path, disks: &Disks) -> Result<Postgres, DemoError> {
        let cluster = Cluster::create(work, &work.join("data"), false, SETTINGS)?;
        Postgres::fill(cluster, disks.places())
    }

    fn create_whole(work: &Path, data: &Path) -> Result<Postgres, DemoError> {
        let cluster = Cluster::create(work, data, true, SETTINGS_WHOLE)?;
        Postgres::fill(cluster, Places::One(data.join("pg_wal")))
    }

    fn user() -> Result<Owner, DemoError> {
        Cluster::user()
    }

    fn enter(&mut self, setting: Setting) -> Result<Duration, DemoError> {
        wal::move_to(&self.cluster, self.places.of(setting))?;
        let took = self.recover(setting)?;
        Load { clients: CLIENTS, seconds: WARM_UP_S, round: None }
            .start(&self.cluster)?
            .finish()?
            .undisturbed()?;
        Ok(took)
    }

    fn leave(&mut self) -> Result<(), DemoError> {
        self.cluster.stop()
    }

    fn run(&mut self, case: &Case, seconds: u32) -> Result<Outcome, DemoError> {
        let clients = if case.id == "c1" { 1 } else { CLIENTS };
        Load { clients, seconds, round: None }.start(&self.cluster)?.finish()
    }

    fn load(&mut self, round: u32, seconds: u32) -> Result<Running, DemoError> {
        Load { clients: CLIENTS, seconds, round: Some(round) }.start(&self.cluster)
    }

    fn kill(&mut self, _load: &mut Running) -> Result<(), DemoError> {
        self.cluster.kill()
    }

    /// pgbench ends by itself when its server is gone.
    fn finish(&mut self, load: Running, _killed: bool) -> Result<Outcome, DemoError> {
        load.finish()
    }

    fn recover(&mut self, setting: Setting) -> Result<Duration, DemoError> {
        let commit = if setting == Setting::Async { "off" } else { "on" };
        self.cluster.start(&[&format!("synchronous_commit={commit}")])
    }

    fn present(&self, round: u32) -> Result<Present, DemoError> {
        verify::present(&self.cluster, round)
    }

    fn complaint(&self) -> Result<String, DemoError> {
        let books = if verify::balanced(&self.cluster)? { "" } else { "the books do not balance " };
        Ok(format!("{books}{}", verify::amcheck(&self.cluster)?))
    }

    fn canary(&mut self, seed: u64) -> Result<u64, DemoError> {
        kills::canary(self, seed)
    }

    fn enter_home(&mut self, home: &Path) -> Result<(), DemoError> {
        wal::relink_to(&self.cluster, home)?;
        self.recover(Setting::Sync).map(drop)
    }
}
