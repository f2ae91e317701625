//! One PostgreSQL cluster, with the programs of the installed server.
//!
//! Promise: the cluster lives in the work directory, listens on a unix socket there and nowhere
//! else, and runs with `fsync=on`.
//! Never: touches a cluster that was there before.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::error::{DemoError, During};
use crate::processes::{Orders, Owner, ServerProcess, said};

/// Where Debian puts server versions.
const VERSIONS: &str = "/usr/lib/postgresql";

/// A directory that belongs to the user `postgres` on every machine with the server.
const HOME_OF_POSTGRES: &str = "/var/lib/postgresql";

/// pgbench's scale: 100,000 accounts each.
pub(super) const SCALE: u32 = 10;

/// What every cluster is configured with.
const SETTINGS: &str = "
listen_addresses = ''
fsync = on
autovacuum = off
min_wal_size = 1GB
max_wal_size = 4GB
checkpoint_timeout = 1h
max_connections = 40
dynamic_shared_memory_type = mmap
jit = off
";

/// The cluster, and the server if it runs.
pub(super) struct Cluster {
    /// Folder of `postgres`, `psql`, `pgbench`.
    programs: PathBuf,
    pub(super) owner: Owner,
    work: PathBuf,
    data: PathBuf,
    server: ServerProcess,
}

impl Cluster {
    /// Makes a cluster whose logs and sockets lie in `work` and whose data lie in `data`, with
    /// checksums of its pages or without, and with these settings beside those that all have.
    pub(super) fn create(
        work: &Path,
        data: &Path,
        checksums: bool,
        settings: &str,
    ) -> Result<Cluster, DemoError> {
        let owner = Cluster::user()?;
        let (programs, work, data) = (newest_programs()?, work.to_owned(), data.to_owned());
        let orders = Orders { stop: Signal::INT, leave: Signal::QUIT };
        let server = ServerProcess::new("PostgreSQL", orders, &work);
        let cluster = Cluster { programs, owner, work, data, server };
        owner.own_directory(&cluster.sockets())?;
        owner.own_directory(cluster.data())?;
        owner.own_directory(&cluster.logs())?;
        // Nothing of value is in there yet; the first shutdown syncs everything.
        let initdb = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"];
        cluster.run("initdb", |command| {
            command.args(initdb).args(checksums.then_some("--data-checksums"));
            command.arg("-D").arg(cluster.data())
        })?;
        cluster.configure(settings)?;
        Ok(cluster)
    }

    /// The user that the server runs as.
    pub(super) fn user() -> Result<Owner, DemoError> {
        Owner::of(Path::new(HOME_OF_POSTGRES))
            .during(|| "looking for PostgreSQL (apt-get install postgresql)".into())
    }

    /// Data directory.
    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    /// Directory for logs of pgbench.
    pub(super) fn logs(&self) -> PathBuf {
        self.work.join("load")
    }

    fn sockets(&self) -> PathBuf {
        self.work.join("sockets")
    }

    fn configure(&self, settings: &str) -> Result<(), DemoError> {
        let doing = || "writing postgresql.conf".into();
        let path = self.data().join("postgresql.conf");
        let mut file = File::options().append(true).open(path).during(doing)?;
        writeln!(file, "{SETTINGS}{settings}").during(doing)?;
        writeln!(file, "unix_socket_directories = '{}'", self.sockets().display()).during(doing)
    }

    /// A command that runs one of the server's programs as `postgres`, inside the work directory.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.uid(self.owner.uid).gid(self.owner.gid).current_dir(&self.work).process_group(0);
        command.env("PGHOST", self.sockets()).env("PGUSER", "postgres");
        command.env("PGDATABASE", "postgres").env("LC_ALL", "C").stdin(Stdio::null());
        command
    }

    /// Runs a program to its end; what it says on standard error explains a failure.
    pub(super) fn run(
        &self,
        program: &str,
        arguments: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Result<String, DemoError> {
        let mut command = self.command(program);
        let output = arguments(&mut command).output().during(|| format!("running {program}"))?;
        said(program, &output)
    }

    /// Runs one query; the answer is one line per row, columns separated by `|`.
    pub(super) fn query(&self, sql: &str) -> Result<String, DemoError> {
        self.run("psql", |psql| {
            psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql])
        })
    }

    /// Starts the server with these settings beside those of its file, and waits until it answers.
    /// Returns how long that took.
    pub(super) fn start(&mut self, settings: &[&str]) -> Result<Duration, DemoError> {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data());
        command.args(settings.iter().flat_map(|setting| ["-c", *setting]));
        let mut asking = self.command("pg_isready");
        asking.stdout(Stdio::null());
        self.server.start(command, || asking.status().is_ok_and(|status| status.success()))
    }

    /// Stops the server in order: everything is checkpointed and synced.
    pub(super) fn stop(&mut self) -> Result<(), DemoError> {
        self.server.stop()
    }

    /// Kills the whole server with SIGKILL: the postmaster and every process it started.
    pub(super) fn kill(&mut self) -> Result<(), DemoError> {
        self.server.kill()
    }
}

/// The programs of the newest installed server.
fn newest_programs() -> Result<PathBuf, DemoError> {
    let doing = "looking for PostgreSQL";
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|version| programs_of(*version).join("initdb").exists())
        .max();
    newest.map(programs_of).ok_or_else(|| {
        DemoError::new(doing, format!("no server below {VERSIONS}; apt-get install postgresql"))
    })
}

fn programs_of(version: u32) -> PathBuf {
    Path::new(VERSIONS).join(version.to_string()).join("bin")
}
