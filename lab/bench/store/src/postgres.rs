//! PostgreSQL, of which only the restart is measured.
//!
//! Promise: a cluster of the installed server, with a bank of pgbench's that is as large as the
//! others' and has had no checkpoint since; its server and all that it started are killed. The
//! clock runs from the start of the next server until a row has been changed durably, through a
//! `psql` that is started anew until it succeeds.
//! Never: listens on anything but a socket in its own folder.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_bench_common::place::Place;
use rustix::process::{Pid, Signal, kill_process};

use crate::Failure;
use crate::effort::CACHE_BYTES;
use crate::restart::Work;

/// What its figures are called.
pub(crate) const NAME: &str = "postgres";

/// Where Debian puts server versions.
const VERSIONS: &str = "/usr/lib/postgresql";

/// A directory that belongs to the user of the server, which does not run as root.
const HOME: &str = "/var/lib/postgresql";

/// The folder of its data, in that of its socket.
const DATA: &str = "data";

/// Megabytes of pgbench's unit of 100,000 accounts.
const UNIT_MB: u32 = 10;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(300);

/// What changes a row.
const CHANGE: &str = "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = 1";

/// What a killed server left.
pub(crate) struct Left(Place);

/// A server that runs. It ends, killed with all that it started, when this is dropped.
struct Server<'a> {
    folder: &'a Path,
    process: Child,
}

impl Left {
    /// Has a bank filled, and the server killed.
    pub(crate) fn by(work: Work, whole: &Place) -> Result<Left, Failure> {
        let place = whole.folder("left-postgres")?;
        own(place.path())?;
        let data = place.path().join(DATA);
        let initdb = ["-U", "postgres", "-A", "trust", "--no-locale", "--no-sync", "-D"];
        run(command("initdb", place.path())?.args(initdb).arg(data))?;
        let server = Server::start(place.path(), &place.path().join(DATA))?;
        server.wait("SELECT 1")?;
        let scale = (work.mb / UNIT_MB).max(1).to_string();
        run(command("pgbench", place.path())?.args(["-i", "-q", "-s", &scale]))?;
        let seconds = work.time.as_secs().max(1).to_string();
        run(command("pgbench", place.path())?.args(["-n", "-c", "2", "-j", "2", "-T", &seconds]))?;
        drop(server);
        Ok(Left(place))
    }

    /// Has a copy of it opened: milliseconds until a row was changed.
    pub(crate) fn restart_ms(&self, whole: &Place) -> Result<f64, Failure> {
        // Sockets cannot be copied, and are not among its data.
        let place = whole.copy("restart-postgres", &self.0.path().join(DATA))?;
        own(place.path())?;
        let began = Instant::now();
        let server = Server::start(place.path(), place.path())?;
        server.wait(CHANGE)?;
        Ok(began.elapsed().as_secs_f64() * 1e3)
    }
}

impl<'a> Server<'a> {
    fn start(folder: &'a Path, data: &Path) -> Result<Server<'a>, Failure> {
        let settings = [
            "listen_addresses=".to_owned(),
            format!("unix_socket_directories={}", folder.display()),
            format!("shared_buffers={}MB", CACHE_BYTES >> 20),
            "checkpoint_timeout=1h".into(),
            "max_wal_size=16GB".into(),
            "autovacuum=off".into(),
            "dynamic_shared_memory_type=mmap".into(),
        ];
        let mut postgres = command("postgres", folder)?;
        postgres.args(settings.iter().flat_map(|setting| ["-c", setting]));
        postgres.arg("-D").arg(data);
        let process = postgres.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Server { folder, process })
    }

    /// Returns when it has answered this.
    fn wait(&self, sql: &str) -> Result<(), Failure> {
        let began = Instant::now();
        while let Err(error) = run(command("psql", self.folder)?.args(["-X", "-q", "-c", sql])) {
            if began.elapsed() > PATIENCE {
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        let id = self.process.id();
        let children = format!("/proc/{id}/task/{id}/children");
        let children = fs::read_to_string(children).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|word| word.parse().ok());
        for process in std::iter::once(id.cast_signed()).chain(children) {
            // What is gone already need not be killed.
            let _gone = Pid::from_raw(process).map(|id| kill_process(id, Signal::KILL));
        }
        let _gone = self.process.wait();
    }
}

/// One of the newest server's programs, as its user, at the server of this folder.
fn command(program: &str, folder: &Path) -> Result<Command, Failure> {
    let user = fs::metadata(HOME)?;
    let mut command = Command::new(programs()?.join(program));
    command.uid(user.uid()).gid(user.gid()).current_dir(folder).stdin(Stdio::null());
    command.env("PGHOST", folder).env("PGUSER", "postgres").env("PGDATABASE", "postgres");
    Ok(command)
}

fn programs() -> Result<PathBuf, Failure> {
    let names = fs::read_dir(VERSIONS)?.flatten().map(|entry| entry.file_name());
    let versions = names.filter_map(|name| name.to_str()?.parse::<u32>().ok());
    let newest = versions.max().ok_or("no PostgreSQL; apt-get install postgresql")?;
    Ok(Path::new(VERSIONS).join(newest.to_string()).join("bin"))
}

fn run(command: &mut Command) -> Result<(), Failure> {
    let done = command.output()?;
    if done.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&done.stderr).into_owned().into())
}

/// Gives a folder, and all in it, to the server's user.
fn own(path: &Path) -> Result<(), Failure> {
    let user = fs::metadata(HOME)?;
    chown(path, Some(user.uid()), Some(user.gid()))?;
    if path.is_dir() {
        // It refuses a folder that others may read.
        fs::set_permissions(path, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(path)? {
            own(&entry?.path())?;
        }
    }
    Ok(())
}
