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

use rustix::process::Signal;
use serde_json::Value;

use super::cluster::{Cluster, said, signal};
use super::settings::{Places, spawn, this_program};
use crate::demo::cleanup::is_mounted;
use crate::demo::error::{DemoError, During};

/// Name of the volume.
const NAME: &str = "pgwal";

/// The region: it holds what the log disk has not written yet.
pub(super) const REGION: &str = "/dev/shm/holdfast-demo-pgwal";

/// How long the volume may take to come up, and to give its home back.
const PATIENCE: Duration = Duration::from_secs(60);

/// A served volume, with the keeper behind it.
pub(super) struct Volume {
    config: PathBuf,
    mount: PathBuf,
    keeper: Child,
}

impl Volume {
    /// Makes the volume on the modelled disk, starts its keeper, and waits until it serves. The
    /// home belongs to PostgreSQL beforehand: it is taken as it stands.
    pub(super) fn serve(
        work: &Path,
        places: &Places,
        cluster: &Cluster,
    ) -> Result<Volume, DemoError> {
        let doing = || "making the volume".into();
        let (config, mount) = (work.join("holdfast.toml"), places.volume_mount());
        cluster.own_directory(&places.volume_home())?;
        fs::create_dir_all(&mount).during(doing)?;
        fs::write(&config, configuration(work, places)).during(doing)?;
        run(&config, &["volume", "make", NAME])?;
        let mut command = Command::new(this_program()?);
        command.arg("--config").arg(&config).arg("serve");
        let log = work.join("keeper.log");
        let mut volume = Volume { keeper: spawn(command, work, &log)?, config, mount };
        volume.wait_until_serving(&log)?;
        Ok(volume)
    }

    fn wait_until_serving(&mut self, log: &Path) -> Result<(), DemoError> {
        let doing = || "waiting for the volume to serve".into();
        let give_up = Instant::now() + PATIENCE;
        while !(is_mounted(&self.mount) && self.is_serving()) {
            let ended = self.keeper.try_wait().during(doing)?.is_some();
            if ended || Instant::now() > give_up {
                let log = fs::read_to_string(log).unwrap_or_default();
                return Err(DemoError::new(doing(), format!("the keeper said: {log}")));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn is_serving(&self) -> bool {
        self.status().is_ok_and(|status| status["state"] == "serving")
    }

    /// What `holdfast status --json` says of the volume.
    pub(super) fn status(&self) -> Result<Value, DemoError> {
        let text = run(&self.config, &["status", "--json"])?;
        let doing = "reading the status";
        let all: Value = serde_json::from_str(&text)
            .map_err(|error| DemoError::new(doing, format!("{error} in {text}")))?;
        let volumes = all["volumes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ours = volumes.iter().find(|volume| volume["name"] == NAME);
        ours.cloned().ok_or_else(|| DemoError::new(doing, format!("no volume {NAME} in {text}")))
    }

    /// What an acknowledgement means, in the keeper's own words. The figures of a volume that
    /// writes through would be figures of the disk, so that is an error.
    pub(super) fn class(&self) -> Result<String, DemoError> {
        let status = self.status()?;
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
        let pid = self.status()?["front_end_pid"].as_i64();
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

/// The configuration of the demonstration. This machine may have no hold-up, so the volume claims
/// to survive the death of a process and no more.
fn configuration(work: &Path, places: &Places) -> String {
    format!(
        "[keeper]\nsocket = {socket:?}\n\n[volume.{NAME}]\nhome = {home:?}\nmount = {mount:?}\n\
         log = {log:?}\nmemory = {{ medium = \"shm\", size = \"256MiB\", path = {REGION:?} }}\n\
         must_survive = [\"process\"]\n",
        socket = work.join("keeper.sock"),
        home = places.volume_home(),
        mount = places.volume_mount(),
        log = places.slow_disk().join("log"),
    )
}

/// Runs one `holdfast` command to its end.
fn run(config: &Path, arguments: &[&str]) -> Result<String, DemoError> {
    let mut command = Command::new(this_program()?);
    let command = command.arg("--config").arg(config).args(arguments);
    let doing = || format!("running holdfast {}", arguments.join(" "));
    said(&format!("holdfast {}", arguments.join(" ")), &command.output().during(doing)?)
}
