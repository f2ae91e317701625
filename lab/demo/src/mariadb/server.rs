//! One MariaDB server, with the programs that the machine has.
//!
//! Promise: its data lie in the work directory, it listens on a unix socket there and nowhere
//! else.
//! Never: touches a server or data that were there before.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::error::{DemoError, During};
use crate::processes::{Orders, Owner, ServerProcess, said};

/// Where Debian has the server, which is not in everybody's path.
const SERVER: &str = "/usr/sbin/mariadbd";

/// The program that asks it.
const CLIENT: &str = "mariadb";

/// A directory that belongs to the user `mysql` on every machine with the server.
const HOME_OF_MYSQL: &str = "/var/lib/mysql";

/// The one file of the redo log.
const REDO_LOG: &str = "ib_logfile0";

/// Size of the redo log: more than a timed run writes, so that no checkpoint is forced in one.
const REDO_LOG_BYTES: u32 = 192 << 20;

/// The server, and its data.
pub(super) struct Server {
    /// The user it runs as.
    pub(super) owner: Owner,
    work: PathBuf,
    data: PathBuf,
    /// Where the redo log lies.
    redo: PathBuf,
    options: &'static [&'static str],
    server: ServerProcess,
}

impl Server {
    /// Makes the system tables in `data`; logs and sockets lie in `work`. The server runs with
    /// these options beside those that all have.
    pub(super) fn create(
        work: &Path,
        data: &Path,
        options: &'static [&'static str],
    ) -> Result<Server, DemoError> {
        let owner = Server::user()?;
        let (work, data, redo) = (work.to_owned(), data.to_owned(), data.to_owned());
        let orders = Orders { stop: Signal::TERM, leave: Signal::TERM };
        let server = ServerProcess::new("MariaDB", orders, &work);
        let server = Server { owner, work, data, redo, options, server };
        owner.own_directory(&server.data)?;
        owner.own_directory(&server.logs())?;
        owner.own_directory(&server.sockets())?;
        server.run("mariadb-install-db", |command| {
            command.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
            command.arg(format!("--innodb-log-file-size={REDO_LOG_BYTES}"));
            command.arg(format!("--datadir={}", server.data.display()))
        })?;
        Ok(server)
    }

    /// The user that the server runs as.
    pub(super) fn user() -> Result<Owner, DemoError> {
        Owner::of(Path::new(HOME_OF_MYSQL))
            .during(|| "looking for MariaDB (apt-get install mariadb-server)".into())
    }

    /// Directory for logs of sysbench.
    pub(super) fn logs(&self) -> PathBuf {
        self.work.join("load")
    }

    fn sockets(&self) -> PathBuf {
        self.work.join("sockets")
    }

    /// The socket it listens on.
    pub(super) fn socket(&self) -> PathBuf {
        self.sockets().join("mariadb")
    }

    /// A command that runs a program as `mysql`, inside the work directory.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.uid(self.owner.uid).gid(self.owner.gid).current_dir(&self.work).process_group(0);
        command.env("LC_ALL", "C").env("HOME", &self.work).stdin(Stdio::null());
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

    /// A command that asks the server one query.
    fn asking(&self, sql: &str) -> Command {
        let mut client = self.command(CLIENT);
        client.args(["--no-defaults", "--batch", "--skip-column-names", "--user=root"]);
        client.arg("--socket").arg(self.socket()).args(["--execute", sql]);
        client
    }

    /// Runs one query; the answer is one line a row, columns separated by tabs.
    pub(super) fn query(&self, sql: &str) -> Result<String, DemoError> {
        let output = self.asking(sql).output().during(|| format!("running {CLIENT}"))?;
        said(CLIENT, &output)
    }

    /// Moves the redo log of the stopped server. After an order to stop it holds a checkpoint
    /// and nothing else that counts; the file is copied whole all the same.
    pub(super) fn move_redo_log(&mut self, target: &Path) -> Result<(), DemoError> {
        let doing = || format!("moving the redo log to {}", target.display());
        if self.redo == target {
            return Ok(());
        }
        self.owner.own_directory(target)?;
        let (from, to) = (self.redo.join(REDO_LOG), target.join(REDO_LOG));
        fs::copy(&from, &to).during(doing)?;
        fs::File::open(&to).and_then(|file| file.sync_all()).during(doing)?;
        self.owner.own(&to)?;
        fs::remove_file(&from).during(doing)?;
        self.stay_with_redo_log(target);
        Ok(())
    }

    /// Takes the redo log from a directory that holds it already.
    pub(super) fn stay_with_redo_log(&mut self, target: &Path) {
        target.clone_into(&mut self.redo);
    }

    /// Starts the server and waits until it answers. Returns how long that took.
    pub(super) fn start(&mut self, flush_log_at_trx_commit: u8) -> Result<Duration, DemoError> {
        let mut command = self.command(SERVER);
        command.args(["--no-defaults", "--skip-networking", "--skip-log-bin"]);
        command.args(self.options);
        command.arg(format!("--innodb-log-file-size={REDO_LOG_BYTES}"));
        command.arg(format!("--innodb-flush-log-at-trx-commit={flush_log_at_trx_commit}"));
        let mut path = |option: &str, path: PathBuf| {
            command.arg(format!("--{option}={}", path.display()));
        };
        path("datadir", self.data.clone());
        path("socket", self.socket());
        path("pid-file", self.sockets().join("pid"));
        path("innodb-log-group-home-dir", self.redo.clone());
        let mut asking = self.asking("SELECT 1");
        self.server.start(command, || asking.output().is_ok_and(|said| said.status.success()))
    }

    /// Stops the server in order.
    pub(super) fn stop(&mut self) -> Result<(), DemoError> {
        self.server.stop()
    }

    /// Kills the server with SIGKILL.
    pub(super) fn kill(&mut self) -> Result<(), DemoError> {
        self.server.kill()
    }
}
