//! One PostgreSQL cluster, with the programs of the installed server.
//!
//! Promise: the cluster lives in the work directory, listens on a unix socket there and nowhere
//! else, and runs with `fsync=on`.
//! Never: touches a cluster that was there before.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::demo::error::{DemoError, During};

/// Where Debian puts server versions.
const VERSIONS: &str = "/usr/lib/postgresql";

/// A directory that belongs to the user `postgres` on every machine with the server.
const HOME_OF_POSTGRES: &str = "/var/lib/postgresql";

/// pgbench's scale: 100,000 accounts each.
pub(super) const SCALE: u32 = 10;

/// How long a server may take to start or stop. Recovery of this database takes seconds.
const PATIENCE: Duration = Duration::from_secs(120);

const SETTINGS: &str = "
listen_addresses = ''
fsync = on
full_page_writes = on
autovacuum = off
shared_buffers = 512MB
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
    uid: u32,
    gid: u32,
    work: PathBuf,
    server: Option<Child>,
}

impl Cluster {
    /// Makes a cluster in `work` and fills it with pgbench's tables.
    pub(super) fn create(work: &Path) -> Result<Cluster, DemoError> {
        let owner = fs::metadata(HOME_OF_POSTGRES)
            .during(|| "looking for PostgreSQL (apt-get install postgresql)".into())?;
        let cluster = Cluster {
            programs: newest_programs()?,
            uid: owner.uid(),
            gid: owner.gid(),
            work: work.to_owned(),
            server: None,
        };
        cluster.own_directory(&cluster.sockets())?;
        cluster.own_directory(&cluster.data())?;
        cluster.own_directory(&cluster.logs())?;
        // Nothing of value is in there yet; the first shutdown syncs everything.
        let initdb = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"];
        cluster.run("initdb", |command| command.args(initdb).arg("-D").arg(cluster.data()))?;
        cluster.configure()?;
        Ok(cluster)
    }

    /// Data directory.
    pub(super) fn data(&self) -> PathBuf {
        self.work.join("data")
    }

    /// Directory for logs of pgbench.
    pub(super) fn logs(&self) -> PathBuf {
        self.work.join("load")
    }

    fn sockets(&self) -> PathBuf {
        self.work.join("sockets")
    }

    /// Makes a directory that only PostgreSQL can enter, if it is missing.
    pub(super) fn own_directory(&self, path: &Path) -> Result<(), DemoError> {
        let doing = || format!("making {}", path.display());
        fs::create_dir_all(path).during(doing)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).during(doing)?;
        self.own(path)
    }

    /// Gives a file to PostgreSQL.
    pub(super) fn own(&self, path: &Path) -> Result<(), DemoError> {
        chown(path, Some(self.uid), Some(self.gid))
            .during(|| format!("giving {} to postgres", path.display()))
    }

    fn configure(&self) -> Result<(), DemoError> {
        let doing = || "writing postgresql.conf".into();
        let path = self.data().join("postgresql.conf");
        let mut file = File::options().append(true).open(path).during(doing)?;
        file.write_all(SETTINGS.as_bytes()).during(doing)?;
        writeln!(file, "unix_socket_directories = '{}'", self.sockets().display()).during(doing)
    }

    /// A command that runs one of the server's programs as `postgres`, inside the work directory.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.uid(self.uid).gid(self.gid).current_dir(&self.work).process_group(0);
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

    /// Starts the server and waits until it answers. Returns how long that took.
    pub(super) fn start(&mut self, synchronous_commit: &str) -> Result<Duration, DemoError> {
        assert!(self.server.is_none(), "the server runs already");
        let doing = || "starting PostgreSQL".into();
        let began = Instant::now();
        let log = self.work.join("postgresql.log");
        let log = File::options().create(true).append(true).open(log).during(doing)?;
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data());
        command.arg("-c").arg(format!("synchronous_commit={synchronous_commit}"));
        command.stdout(log.try_clone().during(doing)?).stderr(log);
        self.server = Some(command.spawn().during(doing)?);
        while !self.answers() {
            self.expect_alive()?;
            if began.elapsed() > PATIENCE {
                return Err(DemoError::new(doing(), self.complaint("it does not answer")));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(began.elapsed())
    }

    fn answers(&self) -> bool {
        let status = self.command("pg_isready").stdout(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    fn expect_alive(&mut self) -> Result<(), DemoError> {
        let ended = self.server.as_mut().and_then(|server| server.try_wait().ok().flatten());
        match ended {
            None => Ok(()),
            Some(status) => {
                self.server = None;
                let cause = self.complaint(&format!("it ended with {status}"));
                Err(DemoError::new("running PostgreSQL", cause))
            }
        }
    }

    /// `what`, and the last lines of the server's log.
    fn complaint(&self, what: &str) -> String {
        let log = fs::read_to_string(self.work.join("postgresql.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        format!("{what}; its log ends with\n{}", lines[lines.len().saturating_sub(8)..].join("\n"))
    }

    /// Stops the server in order: everything is checkpointed and synced.
    pub(super) fn stop(&mut self) -> Result<(), DemoError> {
        let Some(mut server) = self.server.take() else {
            return Ok(());
        };
        signal(server.id().cast_signed(), Signal::INT);
        let began = Instant::now();
        while server.try_wait().during(|| "stopping PostgreSQL".into())?.is_none() {
            if began.elapsed() > PATIENCE {
                let cause = self.complaint("it does not stop");
                return Err(DemoError::new("stopping PostgreSQL", cause));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Kills the whole server with SIGKILL: the postmaster and every process it started. The
    /// postmaster is stopped first, so that it starts no process while they are being counted.
    pub(super) fn kill(&mut self) -> Result<(), DemoError> {
        let mut server = self
            .server
            .take()
            .ok_or_else(|| DemoError::new("killing PostgreSQL", "it does not run"))?;
        let postmaster = server.id().cast_signed();
        signal(postmaster, Signal::STOP);
        let children = children_of(postmaster);
        signal(postmaster, Signal::KILL);
        children.iter().for_each(|&child| signal(child, Signal::KILL));
        server.wait().during(|| "waiting for the killed PostgreSQL".into())?;
        let began = Instant::now();
        while children.iter().any(|&child| runs(child)) {
            if began.elapsed() > PATIENCE {
                return Err(DemoError::new("killing PostgreSQL", "its processes do not die"));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Drop for Cluster {
    /// A server that still runs belongs to a run that failed: it is told to go at once, and the
    /// sweep sees to it that it does.
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            signal(server.id().cast_signed(), Signal::QUIT);
        }
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

/// What a finished program printed, or why it failed.
pub(super) fn said(program: &str, output: &Output) -> Result<String, DemoError> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let cause =
        format!("{}; it said: {} {}", output.status, text(&output.stderr), text(&output.stdout));
    Err(DemoError::new(format!("running {program}"), cause))
}

/// Sends a signal to a process that may be gone already.
pub(super) fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _may_be_gone = kill_process(pid, signal);
    }
}

/// Direct children of a process that is stopped. It asks the kernel about this process alone: a
/// walk over all of `/proc` waits for any process that is stuck.
fn children_of(parent: i32) -> Vec<i32> {
    let list = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let list = list.unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// True unless the process is gone or waits only to be reaped. The name that stands before the
/// state may itself hold spaces and parentheses.
fn runs(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}
