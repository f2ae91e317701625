//! Who may have what.
//!
//! Promise: one keeper a socket, one volume a home and a log directory, and none of them inside
//! one that is taken too. The locks are the kernel's,
//! so they are gone exactly when the last process that holds them is; nothing is left to clean up.
//! Never: writes into a home or a log directory; lets other users take, or see into, what is the
//! keeper's alone.

mod nested;

pub use nested::lock_id;

use crate::holders::{
    COMMAND_NAME, FRONT_END_NAME, Holder, SERVER_NAME, is_locked, locked_as, locked_by, place_of,
    stranger_with,
};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::private::{self, Folder};
use holdfast_io::process;
use rustix::fs::{AtFlags, FlockOperation, OFlags, flock, statat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a lock is tried for before somebody else is said to have it.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// What the kernel puts behind the name of a file that has none any more.
const NO_NAME: &str = " (deleted)";

/// The files either of which makes a directory a log.
pub const CATALOGUES: [&str; 2] = ["catalogue", "catalogue.copy"];

/// The right to be the keeper behind a socket, held until dropped.
#[derive(Debug)]
pub struct KeeperLock {
    _file: File,
}

impl KeeperLock {
    /// Takes the lock file that stands beside the socket and writes our process id into it.
    pub fn take(socket: &Path) -> Outcome<KeeperLock> {
        let path = lock_path(socket);
        let what = format!("locking {}", path.display());
        let failed = |error: std::io::Error| {
            Problem::new(Exit::Failed, what.clone(), error, "run as root, or set keeper.socket")
        };
        let (mut file, was_open) = private::lock_file(&path).map_err(failed)?;
        if was_open {
            tracing::warn!("others could take {}; now it is yours alone", path.display());
        }
        if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            return match error {
                Errno::WOULDBLOCK => Err(held(&mut file, socket)),
                error => Err(failed(error.into())),
            };
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed)?;
        Ok(KeeperLock { _file: file })
    }
}

/// The keeper that has the right to listen at this socket, whether or not it does.
pub fn keeper_with(socket: &Path) -> Option<u32> {
    let found = std::fs::metadata(lock_path(socket)).ok()?;
    let pid = locked_as(&place_of(found.dev(), found.ino()))?;
    let is_keeper = process::name(pid).is_some_and(|name| name == COMMAND_NAME);
    (is_keeper && process::lives(pid)).then_some(pid)
}

/// What has the name of the keeper's socket and is none, if anything is, and what to do about it
/// while the keeper lives.
pub fn in_the_place(socket: &Path) -> Option<Holder> {
    let kind = std::fs::symlink_metadata(socket).ok()?.file_type();
    let kind = match () {
        () if kind.is_socket() => return None,
        () if kind.is_dir() => "a directory",
        () if kind.is_symlink() => "a symbolic link",
        () => "another file",
    };
    let why = format!("{kind} is in the place of its socket, {}", socket.display());
    let remedy =
        format!("move {} away: the keeper makes its socket again within seconds", socket.display());
    Some((why, remedy))
}

fn lock_path(socket: &Path) -> PathBuf {
    let mut path = socket.to_owned().into_os_string();
    path.push(".lock");
    path.into()
}

fn held(file: &mut File, socket: &Path) -> Problem {
    let what = "starting the keeper";
    if let Some(stranger) = stranger_with(&*file) {
        let why = format!("{stranger} has locked {}", lock_path(socket).display());
        return Problem::new(Exit::InUse, what, why, "end that process, then start the keeper");
    }
    let mut pid = String::new();
    let _ = file.read_to_string(&mut pid);
    let pid = pid.trim();
    if let Some((why, remedy)) = in_the_place(socket) {
        let why = format!("the keeper with pid {pid} serves, and {why}");
        return Problem::new(Exit::InUse, what, why, format!("{remedy}, and is to be asked there"));
    }
    let why = format!("the keeper with pid {pid} has {}", socket.display());
    Problem::new(Exit::InUse, what, why, "use it, or stop it with SIGTERM first")
}

/// Opens the directory of a log and takes it for one volume, closed to other users. The lock lives
/// as long as any process has this descriptor or an inherited copy of it: the keeper and its front
/// ends, whichever ends last.
pub fn take_directory(key: &str, path: &Path) -> Outcome<OwnedFd> {
    take(key, path, || {
        let directory = private::directory_there(path)?;
        // What is not a log yet may be a folder that was named by mistake.
        let there = |name: &&str| statat(&directory, *name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let is_log = CATALOGUES.iter().any(there);
        if is_log && private::close_to_others(&directory)? {
            tracing::warn!("others could open {key} {}; now it is yours alone", path.display());
        }
        Ok(directory)
    })
}

/// [`take_directory`] of one that is held, whatever has its name by now.
pub fn take_held(key: &str, path: &Path, held: &OwnedFd) -> Outcome<OwnedFd> {
    take(key, path, || held.try_clone())
}

/// Who has the directory of a log, if anybody does; nothing is waited for.
pub fn holder_of_directory(path: &Path) -> Option<Holder> {
    let directory = private::directory_there(path).ok()?;
    if !is_locked(&directory) {
        return None;
    }
    Some(match stranger_with(&directory) {
        Some(_) => locked_by(&directory, path),
        None => {
            let Problem { why, remedy, .. } =
                in_use("log", String::new(), nested::holders(&directory));
            (why, remedy)
        }
    })
}

/// The front end that has this home, where its memory does not tell.
pub fn front_end_with(home: &Path) -> Option<u32> {
    holder_named(home, FRONT_END_NAME)
}

/// The process that serves the log in this directory, where its memory does not tell.
pub fn server_with(log: &Path) -> Option<u32> {
    holder_named(log, FRONT_END_NAME).or_else(|| holder_named(log, SERVER_NAME))
}

/// The front end or server that has locked a file whose name this was.
pub fn nameless_with(path: &Path) -> Option<u32> {
    let mut path = path.as_os_str().to_owned();
    path.push(NO_NAME);
    server_with(Path::new(&path))
}

fn holder_named(path: &Path, name: &str) -> Option<u32> {
    let is_it =
        |pid: &u32| process::name(*pid).is_some_and(|it| it.as_encoded_bytes() == name.as_bytes());
    nested::holders_at(path).into_iter().find(is_it)
}

/// Opens a home and takes it for one volume, as [`take_directory`]: a directory, whosever it is, or
/// the file or block device of a block volume. The kernel refuses a device that is mounted, and
/// mounting it.
pub fn take_home(path: &Path) -> Outcome<OwnedFd> {
    let what = || format!("taking home {}", path.display());
    let refused = |why: &str, remedy: &str| Err(Problem::new(Exit::Usage, what(), why, remedy));
    let open = |flags| take("home", path, || private::open_anybodys(path, flags));
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() && found.len() == 0 => {
            refused("the file is empty", "give it the size of the disk with `truncate -s SIZE`")
        }
        Ok(found) if found.is_file() => open(OFlags::RDWR),
        Ok(found) if found.file_type().is_block_device() => open(OFlags::RDWR | OFlags::EXCL),
        Ok(found) if !found.is_dir() => refused(
            "it is neither a directory nor a file nor a block device",
            "name one of them as home",
        ),
        // What cannot be looked at cannot be opened either, and that is told.
        _ => take("home", path, || Folder::find(path)?.open()),
    }
}

fn take(key: &str, path: &Path, open: impl Fn() -> io::Result<OwnedFd>) -> Outcome<OwnedFd> {
    let what = || format!("taking {key} {}", path.display());
    let opened = patiently(open);
    let descriptor = opened.map_err(|error| not_opened(key, path, &error))?;
    match patiently(|| Ok(flock(&descriptor, FlockOperation::NonBlockingLockExclusive)?)) {
        Ok(()) => nested::refuse_nested(key, path, &descriptor).map(|()| descriptor),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(match stranger_with(&descriptor) {
                Some(stranger) => {
                    let why = format!("{stranger} has locked it");
                    Problem::new(Exit::InUse, what(), why, "end that process, then try again")
                }
                None => in_use(key, what(), nested::holders(&descriptor)),
            })
        }
        Err(error) => Err(Problem::new(Exit::Failed, what(), error, "it must support flock")),
    }
}

fn in_use(key: &str, what: String, holders: Option<String>) -> Problem {
    let who = holders.map_or(String::new(), |who| format!(": {who}"));
    let why = "it is mounted, or another volume, or a front end whose keeper is gone, is attached \
               to it";
    let remedy = "see `holdfast status`; `holdfast umount` gives it back";
    // A server keeps the logs of its volumes, mounted or not.
    let (or, also) = match key {
        "log" => (", or a keeper's server has it", ", and `holdfast shutdown` what a server has"),
        _ => ("", ""),
    };
    Problem::new(Exit::InUse, what, format!("{why}{or}{who}"), format!("{remedy}{also}"))
}

fn not_opened(key: &str, path: &Path, error: &io::Error) -> Problem {
    let what = format!("taking {key} {}", path.display());
    match error.kind() {
        io::ErrorKind::ResourceBusy => in_use(key, what, None),
        io::ErrorKind::NotADirectory => Problem::new(
            Exit::Usage,
            what,
            "it is not a directory",
            format!("name a directory as {key}"),
        ),
        io::ErrorKind::NotFound => Problem::new(
            Exit::Usage,
            what,
            "it does not exist",
            match key {
                "log" => {
                    "make it with `holdfast volume make`, or `holdfast log make` if it is that of \
                     a [log], or mount the file system it is on"
                }
                _ => "make it, or mount the file system it is on, or correct the configuration",
            },
        ),
        _ if private::is_refusal(error) => {
            let remedy = format!("see to it that nobody else decides what {key} is");
            Problem::new(Exit::Usage, what, error, remedy)
        }
        _ => Problem::new(Exit::Failed, what, error, "run as root"),
    }
}

/// A process that has just ended, or been killed, lets go of its descriptors last of all.
fn patiently<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let started = Instant::now();
    let is_passing = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy)
    };
    loop {
        match attempt() {
            Err(error) if is_passing(&error) && started.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            ended => return ended,
        }
    }
}

#[cfg(test)]
mod tests;
