//! `holdfast-demo sqlite`: the machine's own SQLite with its whole database on the volume.
//!
//! Promise: four settings differ in nothing but the place of the database and `synchronous`; rows
//! are read back through SQL, and files are checked by SQLite's own `integrity_check`.
//! Never: needs anything but root, `libsqlite3.so.0` and FUSE.

#[allow(unsafe_code)]
mod raw;
mod writer;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use self::raw::{Library, SqliteError};
use super::disks::{Disks, Places, Setting};
use super::error::{DemoError, During};
use super::kills::{self, FIRST_CANARY_ROUND, LOAD_UNTIL_KILLED_S, Moments};
use super::outcome::{self, LOG_PREFIX, Outcome, Present};
use super::processes::{self, Owner, spawn};
use super::subject::{Case, Database, Goal, Subject, Words};

pub(crate) use self::writer::{WriterArgs, run as write};

/// How long a writer may need beyond its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Rounds of timed runs, which nobody looks up.
const TIMED_ROUND: u32 = 2_000_000;

const WAL: Case = Case { id: "wal", title: "WAL" };
const DELETE: Case = Case { id: "delete", title: "DELETE" };

const SUBJECT: Subject = Subject {
    id: "sqlite",
    name: "SQLite",
    load: "one insert a commit, the whole database on",
    place: "database",
    cases: &[WAL, DELETE],
    settings: &[
        Words::of(Setting::Sync, "sync", "synchronous=FULL", "nothing"),
        Words::of(Setting::Async, "async", "synchronous=OFF", "the database"),
        Words::HOLDFAST,
        Words::of(Setting::Tmpfs, "tmpfs", "in tmpfs (bound)", "the database"),
    ],
    goals: &[
        Goal::rate("wal.holdfast_over_sync", "wal", Setting::Sync, 50.0),
        Goal::rate("delete.holdfast_over_sync", "delete", Setting::Sync, 30.0),
    ],
    canary: "A kill of SQLite's writer after which its WAL was removed",
    canary_id: "wal_removed_lost",
};

/// Databases in a directory, one for each journal mode, and what they are written with.
pub(crate) struct Sqlite {
    library: Library,
    work: PathBuf,
    places: Places,
    folder: PathBuf,
    setting: Setting,
}

impl Sqlite {
    fn new(work: &Path, places: Places, setting: Setting) -> Result<Sqlite, DemoError> {
        let library =
            Library::load().map_err(|error| DemoError::new("loading SQLite", error.to_string()))?;
        let (work, folder) = (work.to_owned(), places.of(setting).to_owned());
        let sqlite = Sqlite { library, work, places, folder, setting };
        Owner::this().own_directory(&sqlite.logs())?;
        Ok(sqlite)
    }

    fn file(&self, case: &Case) -> PathBuf {
        self.folder.join(format!("{}.db", case.id))
    }

    fn logs(&self) -> PathBuf {
        self.work.join("load")
    }

    /// Starts a writer.
    fn start(&self, case: &Case, round: u32, seconds: u32) -> Result<Writer, DemoError> {
        outcome::empty(&self.logs()).during(|| "removing the logs of the last run".into())?;
        let synchronous = match (self.setting, &self.places) {
            (Setting::Async, _) => "off",
            // With `full` it waits for all but the removal of its journal, which is the commit.
            (_, Places::One(_)) => "extra",
            _ => "full",
        };
        let errors = self.logs().join("stderr");
        let this = std::env::current_exe().during(|| "finding this program".into())?;
        let mut command = Command::new(this);
        command.arg("sqlite-writer").arg("--database").arg(self.file(case));
        command.args(["--journal-mode", case.id, "--synchronous", synchronous]);
        command.args(["--round", &round.to_string(), "--seconds", &seconds.to_string()]);
        command.arg("--log").arg(self.logs().join(LOG_PREFIX));
        Ok(Writer { child: spawn(command, &self.work, &errors)?, errors, seconds })
    }

    /// Runs one statement on the database of a journal mode.
    fn query(&self, case: &Case, sql: &str) -> Result<Vec<String>, DemoError> {
        let ask = || self.library.open(&self.file(case))?.query(sql);
        ask().map_err(|error: SqliteError| DemoError::new(format!("asking `{sql}`"), error.0))
    }
}

/// A running writer.
pub(crate) struct Writer {
    child: Child,
    errors: PathBuf,
    seconds: u32,
}

impl Drop for Writer {
    /// A load that is dropped unfinished belongs to a run that failed.
    fn drop(&mut self) {
        let _may_have_ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Database for Sqlite {
    const SUBJECT: Subject = SUBJECT;
    const UNGUARDED: Setting = Setting::Async;
    type Load = Writer;

    fn create(work: &Path, disks: &Disks) -> Result<Sqlite, DemoError> {
        Sqlite::new(work, disks.places(), Setting::Sync)
    }

    /// Nothing guards SQLite against torn pages but its syncs, so those are what is switched off.
    fn create_whole(work: &Path, data: &Path) -> Result<Sqlite, DemoError> {
        Sqlite::new(work, Places::One(data.to_owned()), Setting::Async)
    }

    fn user() -> Result<Owner, DemoError> {
        Ok(Owner::this())
    }

    /// There is no server: a setting is a place and a pragma.
    fn enter(&mut self, setting: Setting) -> Result<Duration, DemoError> {
        (self.setting, self.folder) = (setting, self.places.of(setting).to_owned());
        fs::create_dir_all(&self.folder).during(|| format!("making {}", self.folder.display()))?;
        Ok(Duration::ZERO)
    }

    fn leave(&mut self) -> Result<(), DemoError> {
        Ok(())
    }

    /// Each timed run has a new database.
    fn run(&mut self, case: &Case, seconds: u32) -> Result<Outcome, DemoError> {
        let _may_be_missing = fs::remove_file(self.file(case));
        let writer = self.start(case, TIMED_ROUND, seconds)?;
        self.finish(writer, false)
    }

    fn load(&mut self, round: u32, seconds: u32) -> Result<Writer, DemoError> {
        self.start(case_of(round), round, seconds)
    }

    fn kill(&mut self, load: &mut Writer) -> Result<(), DemoError> {
        let doing = || "killing the writer".into();
        load.child.kill().and_then(|()| load.child.wait()).during(doing).map(drop)
    }

    fn finish(&mut self, mut load: Writer, killed: bool) -> Result<Outcome, DemoError> {
        let doing = || "waiting for the writer".into();
        let patience = PATIENCE + Duration::from_secs(load.seconds.into());
        let ended = processes::wait(&mut load.child, patience).during(doing)?;
        let said = fs::read_to_string(&load.errors).during(doing)?;
        let in_order = ended.is_some_and(|status| status.success());
        let acknowledged = outcome::read_transactions(&self.logs()).during(doing)?;
        if acknowledged.is_empty() {
            let cause = format!("no transaction was acknowledged; it said: {said}");
            return Err(DemoError::new("running the writer", cause));
        }
        Ok(Outcome::counted(acknowledged, u64::from(!killed && !in_order), said))
    }

    /// Recovery is the first thing that the next opener does.
    fn recover(&mut self, setting: Setting) -> Result<Duration, DemoError> {
        self.setting = setting;
        let began = Instant::now();
        for case in SUBJECT.cases.iter().filter(|case| self.file(case).exists()) {
            self.query(case, "SELECT count(*) FROM sqlite_schema")?;
        }
        Ok(began.elapsed())
    }

    fn present(&self, round: u32) -> Result<Present, DemoError> {
        let sql = format!("SELECT '0|' || seq FROM acknowledged WHERE round = {round}");
        Present::parse(&self.query(case_of(round), &sql)?.join(
            "
",
        ))
    }

    fn complaint(&self) -> Result<String, DemoError> {
        let mut complaint = String::new();
        for case in SUBJECT.cases.iter().filter(|case| self.file(case).exists()) {
            let found = self.query(case, "PRAGMA integrity_check")?.join("; ");
            let wrong = self.query(case, writer::WRONG)?.join("; ");
            if found != "ok" || wrong != "0" {
                complaint += &format!("{}: {found}; {wrong} rows changed ", case.id);
            }
        }
        Ok(complaint)
    }

    /// The death of a process alone takes nothing from SQLite, whatever `synchronous` says: the
    /// kernel has the pages. So the WAL is removed too.
    fn canary(&mut self, seed: u64) -> Result<u64, DemoError> {
        self.enter(Setting::Sync)?;
        let round = FIRST_CANARY_ROUND;
        let mut writer = self.start(&WAL, round, LOAD_UNTIL_KILLED_S)?;
        thread::sleep(Moments::from(!seed).next());
        self.kill(&mut writer)?;
        let outcome = self.finish(writer, true)?;
        let log = self.file(&WAL).with_extension("db-wal");
        fs::remove_file(&log).during(|| format!("removing {}", log.display()))?;
        match self.present(round)?.missing(&outcome.acknowledged) {
            0 => Err(kills::blind(SUBJECT.canary)),
            lost => Ok(lost),
        }
    }

    fn enter_home(&mut self, home: &Path) -> Result<(), DemoError> {
        self.folder = home.to_owned();
        Ok(())
    }
}

/// The journal mode of a round: whoever is killed in the even rounds meets both, and so does
/// whoever is killed in the odd ones.
fn case_of(round: u32) -> &'static Case {
    &SUBJECT.cases[((round + round / 2) % 2) as usize]
}

#[cfg(test)]
mod tests;
