//! The Holdfast volume of the demonstration, driven through the command as an operator does it.
//!
//! Promise: uses only what `holdfast --help` offers: a configuration file, `volume make`, `serve`,
//! `status --json`, `umount`.
//! Never: reaches into the keeper's or the volume's insides.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mount::UnmountFlags;
use rustix::process::Signal;
use serde_json::Value;

use super::cleanup::is_mounted;
use super::disks::Disks;
use super::error::{DemoError, During};
use super::processes::{self, Owner, said, signal, spawn, this_program, wait_until_ready};

/// Name of the volume.
const NAME: &str = "demo";

/// The region: it holds what the log disk has not written yet.
pub(super) const REGION: &str = "/dev/shm/holdfast-demo";

/// How long the volume may take to come up, and to give its home back.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is dirty when a volume counts as clean.
const SETTLED_BYTES: u64 = 1 << 20;

/// The failures that acknowledgements must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Must {
    /// The death of a process and no more: class Memory. A machine may have no hold-up.
    SurviveProcess,
    /// Whatever a volume can be asked for: class Disk, with this medium.
    SurvivePower,
}

impl Must {
    fn list(self) -> &'static str {
        match self {
            Must::SurviveProcess => "\"process\"",
            Must::SurvivePower => "\"process\", \"os\", \"power\"",
        }
    }
}

/// A served volume, with the keeper behind it.
pub(super) struct Volume {
    config: PathBuf,
    mount: PathBuf,
    keeper: Child,
}

impl Volume {
    /// Makes the volume on the modelled disk, starts its keeper, and waits until it serves. The
    /// home belongs to the database beforehand: it is taken as it stands.
    pub(super) fn make(work: &Path, disks: &Disks, owner: Owner) -> Result<Volume, DemoError> {
        let doing = || "making the volume".into();
        owner.own_directory(&disks.volume_home())?;
        fs::create_dir_all(disks.volume_mount()).during(doing)?;
        configure(work, disks, Must::SurviveProcess)?;
        run(&config(work), &["volume", "make", NAME])?;
        Volume::serve(work, disks, Must::SurviveProcess)
    }

    /// Starts the keeper of a volume that was made, and waits until it serves.
    pub(super) fn serve(work: &Path, disks: &Disks, must: Must) -> Result<Volume, DemoError> {
        configure(work, disks, must)?;
        let (config, mount) = (config(work), disks.volume_mount());
        let mut volume = Volume { keeper: start_keeper(work, &config)?, config, mount };
        volume.wait_until_serving(work)?;
        Ok(volume)
    }

    fn wait_until_serving(&mut self, work: &Path) -> Result<(), DemoError> {
        let (config, mount) = (self.config.clone(), self.mount.clone());
        let serves = || {
            is_mounted(&mount) && status(&config).is_ok_and(|status| status["state"] == "serving")
        };
        let doing = "waiting for the volume to serve";
        wait_until_ready(doing, &mut self.keeper, &keeper_log(work), PATIENCE, serves)
    }

    /// What an acknowledgement means, in the keeper's own words. The figures of a volume that
    /// writes through would be figures of the disk, so that is an error.
    pub(super) fn class(&self) -> Result<String, DemoError> {
        let status = status(&self.config)?;
        let words = |value: &Value| {
            let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
            list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        };
        let verdict = &status["verdict"];
        let (survives, lost_in) = (words(&verdict["survives"]), words(&verdict["lost_in"]));
        let must = words(&status["must_survive"]);
        match verdict["class"].as_str() {
            Some("memory") => Ok(format!(
                "class Memory on {}, must_survive = [{must}]; it survives: {survives}; it is lost \
                 in: {lost_in}",
                status["medium"].as_str().unwrap_or("an unnamed medium")
            )),
            class => Err(DemoError::new("reading the claims", format!("the class is {class:?}"))),
        }
    }

    /// Process id of the front end that serves the volume now, if one does.
    pub(super) fn front_end(&self) -> Result<Option<i32>, DemoError> {
        let pid = status(&self.config)?["front_end_pid"].as_i64();
        Ok(pid.and_then(|pid| i32::try_from(pid).ok()).filter(|&pid| pid > 0))
    }

    /// Kills the front end with SIGKILL. The keeper starts another.
    pub(super) fn kill_front_end(&self) -> Result<i32, DemoError> {
        let pid = self.front_end()?.ok_or_else(|| {
            DemoError::new("killing the front end", "the status names no front end")
        })?;
        signal(pid, Signal::KILL);
        Ok(pid)
    }

    /// Waits until the home has everything, so that a run is not disturbed by what was written
    /// before it. A database that runs idly may go on writing a little.
    pub(super) fn settle(&self) -> Result<(), DemoError> {
        let give_up = Instant::now() + PATIENCE;
        while status(&self.config)?["dirty_bytes"].as_u64().is_none_or(|it| it > SETTLED_BYTES) {
            if Instant::now() > give_up {
                return Err(DemoError::new("waiting for the cleaner", "it does not catch up"));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Everything that a power cut ends: the keeper, the front end, and the region.
    pub(super) fn lose_power(mut self) -> Result<(), DemoError> {
        let doing = || "ending the volume as a power cut does".into();
        let front_end = self.front_end()?;
        self.keeper.kill().and_then(|()| self.keeper.wait()).during(doing)?;
        front_end.map(processes::kill_and_wait).transpose()?;
        rustix::mount::unmount(&self.mount, UnmountFlags::DETACH)
            .map_err(std::io::Error::from)
            .during(doing)?;
        fs::remove_file(REGION).during(doing)
    }

    /// Unmounts the volume: its home is complete and ordinary when this returns.
    pub(super) fn give_back(&mut self) -> Result<(), DemoError> {
        run(&self.config, &["umount", NAME])?;
        let give_up = Instant::now() + PATIENCE;
        while is_mounted(&self.mount) {
            if Instant::now() > give_up {
                return Err(DemoError::new("unmounting the volume", "it is still mounted"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        signal(self.keeper.id().cast_signed(), Signal::TERM);
        self.keeper.wait().during(|| "stopping the keeper".into()).map(drop)
    }
}

impl Drop for Volume {
    /// Ends a keeper that was not stopped in order; the sweep undoes the rest.
    fn drop(&mut self) {
        let _may_have_ended = self.keeper.kill();
        let _reaped = self.keeper.wait();
    }
}

fn start_keeper(work: &Path, config: &Path) -> Result<Child, DemoError> {
    let mut command = Command::new(this_program()?);
    command.arg("--config").arg(config).arg("serve");
    spawn(command, work, &keeper_log(work))
}

fn keeper_log(work: &Path) -> PathBuf {
    work.join("keeper.log")
}

/// What `holdfast status --json` says of the volume.
fn status(config: &Path) -> Result<Value, DemoError> {
    let text = run(config, &["status", "--json"])?;
    let doing = "reading the status";
    let all: Value = serde_json::from_str(&text)
        .map_err(|error| DemoError::new(doing, format!("{error} in {text}")))?;
    let volumes = all["volumes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ours = volumes.iter().find(|volume| volume["name"] == NAME);
    ours.cloned().ok_or_else(|| DemoError::new(doing, format!("no volume {NAME} in {text}")))
}

/// Where the configuration is.
fn config(work: &Path) -> PathBuf {
    work.join("holdfast.toml")
}

/// Writes the configuration of the demonstration.
fn configure(work: &Path, disks: &Disks, must: Must) -> Result<(), DemoError> {
    let text = format!(
        "[keeper]\nsocket = {socket:?}\n\n[volume.{NAME}]\nhome = {home:?}\nmount = {mount:?}\n\
         log = {log:?}\nmemory = {{ medium = \"shm\", size = \"256MiB\", path = {REGION:?} }}\n\
         must_survive = [{must}]\n",
        socket = work.join("keeper.sock"),
        home = disks.volume_home(),
        mount = disks.volume_mount(),
        log = disks.slow().join("log"),
        must = must.list(),
    );
    fs::write(config(work), text).during(|| "writing the configuration".into())
}

/// Runs one `holdfast` command to its end.
fn run(config: &Path, arguments: &[&str]) -> Result<String, DemoError> {
    let mut command = Command::new(this_program()?);
    let command = command.arg("--config").arg(config).args(arguments);
    let doing = || format!("running holdfast {}", arguments.join(" "));
    said(&format!("holdfast {}", arguments.join(" ")), &command.output().during(doing)?)
}
