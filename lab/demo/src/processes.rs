//! Processes of a demonstration: other people's programs, and this one in other parts.
//!
//! Promise: each is started in the work directory, where the sweep finds it, and away from the
//! terminal's Ctrl-C; a program that fails is quoted.
//! Never: waits without an end.

use holdfast_io::process;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::error::{DemoError, During};

/// How long a killed process may take to be gone.
const DEATH_PATIENCE: Duration = Duration::from_secs(60);

/// How long a database server may take to start or stop; recovery takes seconds.
const SERVER_PATIENCE: Duration = Duration::from_secs(120);

/// How many lines of a log explain a failure.
const LAST_LINES: usize = 8;

/// The user that a database runs as.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Owner {
    /// This user.
    pub(super) fn this() -> Owner {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        Owner { uid: uid.as_raw(), gid: gid.as_raw() }
    }

    /// Whoever owns `path`.
    pub(super) fn of(path: &Path) -> io::Result<Owner> {
        let found = fs::metadata(path)?;
        Ok(Owner { uid: found.uid(), gid: found.gid() })
    }

    /// Makes a directory that only this user can enter, if it is missing.
    pub(super) fn own_directory(self, path: &Path) -> Result<(), DemoError> {
        let doing = || format!("making {}", path.display());
        fs::create_dir_all(path).during(doing)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).during(doing)?;
        self.own(path)
    }

    /// Gives a file to this user.
    pub(super) fn own(self, path: &Path) -> Result<(), DemoError> {
        chown(path, Some(self.uid), Some(self.gid))
            .during(|| format!("giving {} to user {}", path.display(), self.uid))
    }
}

/// Starts a program in the work directory with its output appended to a file.
pub(super) fn spawn(mut command: Command, work: &Path, log: &Path) -> Result<Child, DemoError> {
    let doing = || format!("starting a program whose output goes to {}", log.display());
    let log = File::options().create(true).append(true).open(log).during(doing)?;
    command.current_dir(work).process_group(0).stdin(Stdio::null());
    command.stdout(log.try_clone().during(doing)?).stderr(log);
    command.spawn().during(doing)
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

/// `what`, and the last lines of a log.
pub(super) fn complaint(what: &str, log: &Path) -> String {
    let mut bytes = Vec::new();
    let _explains_nothing = File::open(log).and_then(|mut log| log.read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
    format!("{what}; its log ends with\n{last}")
}

/// Waits for a process to end by itself; `None` if it does not within `patience`.
pub(super) fn wait(child: &mut Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let give_up = Instant::now() + patience;
    loop {
        let ended = child.try_wait()?;
        if ended.is_some() || Instant::now() > give_up {
            return Ok(ended);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The process of a database server.
pub(super) struct ServerProcess {
    /// What people call it.
    name: &'static str,
    orders: Orders,
    work: PathBuf,
    log: PathBuf,
    process: Option<Child>,
}

/// The signals by which a server is told what to do.
pub(super) struct Orders {
    /// End in order.
    pub(super) stop: Signal,
    /// Go at once.
    pub(super) leave: Signal,
}

impl ServerProcess {
    /// A server that does not run yet; its log will lie in the work directory.
    pub(super) fn new(name: &'static str, orders: Orders, work: &Path) -> ServerProcess {
        let log = work.join(format!("{}.log", name.to_lowercase()));
        ServerProcess { name, orders, work: work.to_owned(), log, process: None }
    }

    /// Starts the server and waits until it answers. Returns how long that took.
    pub(super) fn start(
        &mut self,
        command: Command,
        answers: impl FnMut() -> bool,
    ) -> Result<Duration, DemoError> {
        assert!(self.process.is_none(), "the server runs already");
        let began = Instant::now();
        let process = self.process.insert(spawn(command, &self.work, &self.log)?);
        let doing = format!("starting {}", self.name);
        wait_until_ready(&doing, process, &self.log, SERVER_PATIENCE, answers)?;
        Ok(began.elapsed())
    }

    /// Stops the server in order, if it runs.
    pub(super) fn stop(&mut self) -> Result<(), DemoError> {
        let Some(mut process) = self.process.take() else {
            return Ok(());
        };
        let doing = || format!("stopping {}", self.name);
        signal(process.id().cast_signed(), self.orders.stop);
        match wait(&mut process, SERVER_PATIENCE).during(doing)? {
            Some(_) => Ok(()),
            None => Err(DemoError::new(doing(), complaint("it does not stop", &self.log))),
        }
    }

    /// Kills the server and every process that it started with SIGKILL.
    pub(super) fn kill(&mut self) -> Result<(), DemoError> {
        let none = || DemoError::new(format!("killing {}", self.name), "it does not run");
        kill_with_children(self.process.take().ok_or_else(none)?)
    }
}

impl Drop for ServerProcess {
    /// A server that still runs belongs to a run that failed: it is told to go at once, and the
    /// sweep sees to it that it does.
    fn drop(&mut self) {
        if let Some(process) = &self.process {
            signal(process.id().cast_signed(), self.orders.leave);
        }
    }
}

/// Waits until `ready` holds of a server that was just started. An end of the server, or of the
/// patience, is an error that quotes its log.
pub(super) fn wait_until_ready(
    doing: &str,
    server: &mut Child,
    log: &Path,
    patience: Duration,
    mut ready: impl FnMut() -> bool,
) -> Result<(), DemoError> {
    let give_up = Instant::now() + patience;
    while !ready() {
        if let Some(status) = server.try_wait().during(|| doing.into())? {
            return Err(DemoError::new(doing, complaint(&format!("it ended with {status}"), log)));
        }
        if Instant::now() > give_up {
            return Err(DemoError::new(doing, complaint("it does not answer", log)));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Sends a signal to a process that may be gone already.
pub(super) fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _may_be_gone = kill_process(pid, signal);
    }
}

/// Kills a server with SIGKILL: its first process and every process that one started. The first is
/// stopped before, so that it starts no process while they are being counted.
fn kill_with_children(mut server: Child) -> Result<(), DemoError> {
    let doing = || "killing a server".into();
    let first = server.id().cast_signed();
    signal(first, Signal::STOP);
    let children = children_of(first);
    signal(first, Signal::KILL);
    children.iter().for_each(|&child| signal(child, Signal::KILL));
    server.wait().during(doing)?;
    children.into_iter().try_for_each(kill_and_wait)
}

/// Kills a process that is not a child of this one, and waits until it is gone.
pub(super) fn kill_and_wait(pid: i32) -> Result<(), DemoError> {
    signal(pid, Signal::KILL);
    let give_up = Instant::now() + DEATH_PATIENCE;
    while runs(pid) {
        if Instant::now() > give_up {
            return Err(DemoError::new("killing a process", format!("process {pid} does not die")));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Direct children of a process that is stopped.
fn children_of(parent: i32) -> Vec<i32> {
    process::children(parent.cast_unsigned()).into_iter().map(u32::cast_signed).collect()
}

/// True unless the process is gone or waits only to be reaped.
fn runs(pid: i32) -> bool {
    let state = process::status(pid.cast_unsigned()).and_then(|told| process::state(&told));
    state.is_some_and(|state| state != 'Z' && state != 'X')
}
