//! A block volume under a guest, and the processes that serve it.
//!
//! Promise: the volume is served when [`Volume::serve`] returns, and its home is complete and
//! ordinary when [`Volume::give_back`] does. A volume that is dropped leaves no process, mount or
//! region behind.
//! Never: reads what is on the disk.

use crate::error::{During, GuestError};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Far longer than a keeper takes for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// Name of the volume.
const NAME: &str = "guest";

const NBD_SOCKET: &str = "nbd.sock";
const VHOST_USER_SOCKET: &str = "vhost-user.sock";

/// What an acknowledgement of the disk's is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Acknowledged from memory that outlives every process.
    Memory,
    /// Acknowledged when the log's device has it.
    Disk,
}

/// A served volume.
pub(crate) struct Volume {
    program: PathBuf,
    folder: PathBuf,
    region: PathBuf,
    keeper: Child,
}

impl Volume {
    /// Makes a volume of the image `folder`/disk and serves it.
    pub(crate) fn serve(program: &Path, folder: &Path, class: Class) -> Result<Volume, GuestError> {
        let doing = "making a volume";
        fs::create_dir_all(folder.join("mount")).during(doing)?;
        let region = format!("/dev/shm/holdfast-guests-{}", std::process::id()).into();
        fs::write(folder.join("holdfast.toml"), configuration(folder, &region, class))
            .during(doing)?;
        run(program, folder, &["volume", "make", NAME])?;
        let said = fs::File::create(folder.join("keeper.log")).during(doing)?;
        let mut keeper = command(program, folder);
        keeper.arg("serve").stdin(Stdio::null()).stderr(said);
        let keeper = keeper.spawn().during(doing)?;
        let volume =
            Volume { program: program.to_owned(), folder: folder.to_owned(), region, keeper };
        volume.wait("serving the volume", |status| status["state"] == "serving")?;
        Ok(volume)
    }

    /// The disk as a file.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join("mount/disk")
    }

    /// Where the disk is a network block device.
    pub(crate) fn nbd_socket(&self) -> PathBuf {
        self.folder.join(NBD_SOCKET)
    }

    /// Where hypervisors hand their guests' queues over.
    pub(crate) fn vhost_user_socket(&self) -> PathBuf {
        self.folder.join(VHOST_USER_SOCKET)
    }

    /// Kills the process that serves the volume, and waits until another one does.
    pub(crate) fn kill_front_end(&self) -> Result<(), GuestError> {
        let doing = "killing the front end";
        let before = self.front_end()?;
        kill_process(before, Signal::KILL).map_err(std::io::Error::from).during(doing)?;
        self.wait("replacing the front end", |status| {
            let pid = status["front_end_pid"].as_i64();
            status["state"] == "serving"
                && pid.is_some_and(|it| it != i64::from(before.as_raw_nonzero().get()))
        })
    }

    /// Syncs of the log's device so far.
    pub(crate) fn syncs(&self) -> Result<u64, GuestError> {
        let status = self.status()?;
        status["syncs"]
            .as_u64()
            .ok_or_else(|| GuestError::new("counting syncs", status.to_string()))
    }

    /// Unmounts the volume, and leaves what was its home. Its front end may not have heard yet that
    /// the guest is gone.
    pub(crate) fn give_back(self) -> Result<PathBuf, GuestError> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            match run(&self.program, &self.folder, &["umount", NAME]) {
                Ok(_) => return Ok(self.folder.join("disk")),
                Err(error) if Instant::now() > give_up => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    fn front_end(&self) -> Result<Pid, GuestError> {
        let status = self.status()?;
        let pid = status["front_end_pid"].as_i64().and_then(|it| Pid::from_raw(it as i32));
        pid.ok_or_else(|| GuestError::new("looking for the front end", status.to_string()))
    }

    fn wait(&self, doing: &str, reached: impl Fn(&Value) -> bool) -> Result<(), GuestError> {
        let give_up = Instant::now() + PATIENCE;
        // A keeper that has only begun does not answer yet.
        while !self.status().is_ok_and(|status| reached(&status)) {
            if Instant::now() > give_up {
                let said = fs::read_to_string(self.folder.join("keeper.log")).unwrap_or_default();
                return Err(GuestError::new(doing, said));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// What is said of the volume, whether or not all is well.
    fn status(&self) -> Result<Value, GuestError> {
        let mut command = command(&self.program, &self.folder);
        let output = command.args(["status", "--json"]).output().during("asking for the status")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let status: Value = serde_json::from_str(&text)
            .map_err(|error| GuestError::new("reading the status", format!("{error} in {text}")))?;
        Ok(status["volumes"][0].clone())
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let front_end = self.front_end();
        let _may_have_ended = self.keeper.kill();
        let _reaped = self.keeper.wait();
        if let Ok(pid) = front_end {
            let _may_have_ended = kill_process(pid, Signal::KILL);
        }
        let _may_be_gone = Command::new("umount").arg("-l").arg(self.folder.join("mount")).output();
        let _may_be_gone = fs::remove_file(&self.region);
    }
}

fn configuration(folder: &Path, region: &PathBuf, class: Class) -> String {
    let write_through = class == Class::Disk;
    let path = |name: &str| folder.join(name);
    format!(
        "[keeper]\nsocket = {:?}\n\n[server]\nsocket = {:?}\n\n[volume.{NAME}]\nhome = {:?}\n\
         mount = {:?}\nnbd = [\"unix:{}\"]\nvhost-user = {:?}\nlog = {:?}\n\
         memory = {{ medium = \"shm\", size = \"64MiB\", path = {region:?} }}\n\
         must_survive = [\"process\"]\nwrite_through = {write_through}\n",
        path("run/control.sock"),
        path("run/server.sock"),
        path("disk"),
        path("mount"),
        path(NBD_SOCKET).display(),
        path(VHOST_USER_SOCKET),
        path("log"),
    )
}

fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--config").arg(folder.join("holdfast.toml"));
    command
}

/// What a subcommand said, once it has succeeded.
fn run(program: &Path, folder: &Path, arguments: &[&str]) -> Result<String, GuestError> {
    let doing = format!("running holdfast {}", arguments.join(" "));
    let output = command(program, folder).args(arguments).output().during(&doing)?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(GuestError::new(doing, String::from_utf8_lossy(&output.stderr))),
    }
}
