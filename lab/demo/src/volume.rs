//! The Holdfast volume of the demonstration, driven through the command as an operator does it.
//!
//! Promise: uses only what `holdfast --help` offers: a configuration file, `volume make`, `serve`,
//! `status --json`, `umount`.
//! Never: reaches into the keeper's or the volume's insides.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mount::UnmountFlags;
use rustix::process::Signal;
use serde_json::Value;

use super::cleanup::is_mounted;
use super::disks::Setting;
use super::error::{DemoError, During};
use super::processes::{self, Owner, said, signal, spawn, wait_until_ready};
use super::site::{Site, Way};
use super::ups::{Outage, Power};

/// How long the volume may take to come up, and to give its home back.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a question for the status may take: none is under way when the power goes.
const ASKING: Duration = Duration::from_millis(100);

/// What is dirty when a volume counts as clean.
const SETTLED_BYTES: u64 = 1 << 20;

/// The failures that acknowledgements must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MustSurvive {
    /// The death of a process and no more: class Memory. A machine may have no hold-up.
    Process,
    /// The death of a process, and a power cut that a power source gives a notice of: class Memory
    /// while it is armed.
    Noticed,
    /// Whatever a volume can be asked for: class Disk, with this medium.
    Power,
}

impl MustSurvive {
    /// As the configuration has it.
    pub(super) fn list(self) -> &'static str {
        match self {
            MustSurvive::Process => "\"process\"",
            MustSurvive::Noticed => "\"process\", \"power\"",
            MustSurvive::Power => "\"process\", \"os\", \"power\"",
        }
    }
}

/// A process that serves a volume, and that the keeper replaces when it dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The process through which programs see the volume.
    FrontEnd,
    /// The process that owns the volume's log, if the way leads through the queue.
    Server,
}

impl Part {
    /// The parts of a volume whose log is reached by this way.
    pub(super) fn of(way: Way) -> &'static [Part] {
        match way {
            Way::Direct => &[Part::FrontEnd],
            Way::Queue => &[Part::FrontEnd, Part::Server],
        }
    }

    /// Its name for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Part::FrontEnd => "front end",
            Part::Server => "server",
        }
    }
}

/// A served volume, with the keeper behind it.
pub(super) struct Volume {
    site: Site,
    keeper: Child,
}

impl Volume {
    /// Makes the volume, starts its keeper, and waits until it serves. The
    /// home belongs to the database beforehand: it is taken as it stands.
    pub(super) fn make(site: Site, owner: Owner) -> Result<Volume, DemoError> {
        owner.own_directory(&site.home())?;
        fs::create_dir_all(site.mount()).during(|| "making the volume".into())?;
        let must = site.must();
        configure(&site, must)?;
        run(&site, &["volume", "make", &site.name()])?;
        Volume::serve(site, must)
    }

    /// Starts the keeper of a volume that was made, and waits until it serves.
    pub(super) fn serve(site: Site, must: MustSurvive) -> Result<Volume, DemoError> {
        configure(&site, must)?;
        let mut volume = Volume { keeper: start_keeper(&site)?, site };
        volume.wait_until_serving()?;
        Ok(volume)
    }

    /// [`Self::serve`] after the machine lost its memory. Here it did not really restart, so
    /// somebody has to say so.
    pub(super) fn serve_without_memory(site: Site, must: MustSurvive) -> Result<Volume, DemoError> {
        configure(&site, must)?;
        run(&site, &["volume", "accept", &site.name(), "--memory-lost"])?;
        Volume::serve(site, must)
    }

    /// Every part must be there: a volume that needs no server has another way than was asked for.
    fn wait_until_serving(&mut self) -> Result<(), DemoError> {
        let (site, doing) = (&self.site, "waiting for the volume to serve");
        let runs = |part: &Part| process(site, *part).is_ok_and(|pid| pid.is_some());
        let serves = || {
            is_mounted(&site.mount())
                && of_volume(site).is_ok_and(|status| status["state"] == "serving")
                && Part::of(site.way).iter().all(runs)
        };
        wait_until_ready(doing, &mut self.keeper, &site.keeper_log(), PATIENCE, serves)
    }

    /// Where it is mounted.
    pub(super) fn mount(&self) -> PathBuf {
        self.site.mount()
    }

    /// Its home.
    pub(super) fn home(&self) -> PathBuf {
        self.site.home()
    }

    /// The setting of a database that uses it.
    pub(super) fn setting(&self) -> Setting {
        self.site.setting()
    }

    /// What an acknowledgement means, in the keeper's own words. The figures of a volume that
    /// writes through without having been told to would be figures of the disk, so that is an
    /// error.
    pub(super) fn class(&self) -> Result<String, DemoError> {
        let status = match self.site.must() {
            MustSurvive::Noticed => self.arm()?,
            _ => of_volume(&self.site)?,
        };
        let words = |value: &Value| {
            let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
            list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        };
        let verdict = &status["verdict"];
        let (survives, lost_in) = (words(&verdict["survives"]), words(&verdict["lost_in"]));
        let must = words(&status["must_survive"]);
        let class = match (verdict["class"].as_str(), self.site.must()) {
            (Some("memory"), _) => {
                format!("Memory on {}", status["medium"].as_str().unwrap_or("an unnamed medium"))
            }
            (Some("disk"), MustSurvive::Power) => "Disk".to_owned(),
            (class, _) => {
                return Err(DemoError::new(
                    "reading the claims",
                    format!("the class is {class:?}"),
                ));
            }
        };
        Ok(format!(
            "class {class}, must_survive = [{must}]; it survives: {survives}; it is lost in: \
             {lost_in}"
        ))
    }

    /// The processes that serve it.
    pub(super) fn parts(&self) -> &'static [Part] {
        Part::of(self.site.way)
    }

    /// Process id of a part, if there is one now.
    pub(super) fn process(&self, part: Part) -> Result<Option<i32>, DemoError> {
        process(&self.site, part)
    }

    /// Kills a part with SIGKILL. The keeper starts another.
    pub(super) fn kill(&self, part: Part) -> Result<i32, DemoError> {
        let name = part.name();
        let pid = self.process(part)?.ok_or_else(|| {
            DemoError::new(format!("killing the {name}"), format!("the status names no {name}"))
        })?;
        signal(pid, Signal::KILL);
        Ok(pid)
    }

    /// Waits until the home has everything, so that a run is not disturbed by what was written
    /// before it. A database that runs idly may go on writing a little.
    pub(super) fn settle(&self) -> Result<(), DemoError> {
        let give_up = Instant::now() + PATIENCE;
        while of_volume(&self.site)?["dirty_bytes"].as_u64().is_none_or(|it| it > SETTLED_BYTES) {
            if Instant::now() > give_up {
                return Err(DemoError::new("waiting for the cleaner", "it does not catch up"));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Has memory acknowledge because of the power source: after a drill, if there was none yet.
    /// Returns the status that says so.
    pub(super) fn arm(&self) -> Result<Value, DemoError> {
        if status(&self.site)?["power"]["drill"].is_null() {
            run(&self.site, &["drill"])?;
        }
        let give_up = Instant::now() + PATIENCE;
        loop {
            let volume = of_volume(&self.site)?;
            if volume["verdict"]["class"] == "memory" {
                return Ok(volume);
            }
            if Instant::now() > give_up {
                let why = status(&self.site)?["power"]["why"].to_string();
                return Err(DemoError::new("waiting until memory acknowledges", why));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// How many milliseconds the last drill took, and how many it might have.
    pub(super) fn drilled_ms(&self) -> Result<(u64, u64), DemoError> {
        let doing = || "reading the drill".into();
        let text = fs::read_to_string(self.site.drills()).during(doing)?;
        let drill: Value = serde_json::from_str(text.lines().last().unwrap_or_default())
            .map_err(|error| DemoError::new(doing(), error.to_string()))?;
        let ms = |key: &str| {
            let found = drill[key].as_u64();
            found.ok_or_else(|| DemoError::new(doing(), format!("it has no `{key}`")))
        };
        Ok((ms("took_ms")?, ms("had_ms")?))
    }

    /// What the power source has come to, as `holdfast status` has it.
    pub(super) fn power(&self) -> Result<Value, DemoError> {
        Ok(status(&self.site)?["power"].clone())
    }

    /// How long it takes, from now on, until nothing is in memory alone; nothing if it is not seen
    /// before that.
    fn watch_drain(&self, until: Instant) -> Result<Option<Duration>, DemoError> {
        let began = Instant::now();
        while Instant::now() < until {
            if self.power()?["state"] == "safe" {
                return Ok(Some(began.elapsed()));
            }
        }
        Ok(None)
    }

    /// Everything that a power cut ends: the keeper, what it started, and the region. Returns how
    /// long it took to drain after a notice, if that was seen.
    pub(super) fn lose_power(mut self, outage: Outage<'_>) -> Result<Option<Duration>, DemoError> {
        let doing = || "ending the volume as a power cut does".into();
        let parts: Result<Vec<_>, _> = self.parts().iter().map(|&it| self.process(it)).collect();
        let mut drained = None;
        if let Outage::Noticed(ups, after) = outage {
            let gone = Instant::now() + after;
            ups.say(Power::Low);
            drained = self.watch_drain(gone - ASKING.min(after))?;
            thread::sleep(gone.saturating_duration_since(Instant::now()));
        }
        self.keeper.kill().and_then(|()| self.keeper.wait()).during(doing)?;
        parts?.into_iter().flatten().try_for_each(processes::kill_and_wait)?;
        rustix::mount::unmount(self.mount(), UnmountFlags::DETACH)
            .map_err(std::io::Error::from)
            .during(doing)?;
        fs::remove_file(self.site.region()).during(doing)?;
        Ok(drained)
    }

    /// Unmounts the volume: its home is complete and ordinary when this returns.
    pub(super) fn give_back(&mut self) -> Result<(), DemoError> {
        run(&self.site, &["umount", &self.site.name()])?;
        let give_up = Instant::now() + PATIENCE;
        while is_mounted(&self.mount()) {
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

fn start_keeper(site: &Site) -> Result<Child, DemoError> {
    let mut command = Command::new(site.holdfast());
    command.arg("--config").arg(site.config()).arg("serve");
    spawn(command, site.work(), &site.keeper_log())
}

/// What `holdfast status --json` says, whether or not all is well.
fn status(site: &Site) -> Result<Value, DemoError> {
    let output = holdfast(site, &["status", "--json"])?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .map_err(|error| DemoError::new("reading the status", format!("{error} in {text}")))
}

/// What it says of the volume.
fn of_volume(site: &Site) -> Result<Value, DemoError> {
    let all = status(site)?;
    let volumes = all["volumes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ours = volumes.iter().find(|volume| volume["name"] == site.name());
    ours.cloned().ok_or_else(|| DemoError::new("reading the status", format!("no volume in {all}")))
}

/// Process id of a part of the volume, if there is one now.
fn process(site: &Site, part: Part) -> Result<Option<i32>, DemoError> {
    let pid = match part {
        Part::FrontEnd => of_volume(site)?["front_end_pid"].as_i64(),
        Part::Server => status(site)?["server"]["pid"].as_i64(),
    };
    Ok(pid.and_then(|pid| i32::try_from(pid).ok()).filter(|&pid| pid > 0))
}

/// Writes the configuration of a volume.
fn configure(site: &Site, must: MustSurvive) -> Result<(), DemoError> {
    fs::write(site.config(), site.configuration(must)).during(|| "writing the configuration".into())
}

/// Runs one `holdfast` command to its end.
fn run(site: &Site, arguments: &[&str]) -> Result<String, DemoError> {
    said(&format!("holdfast {}", arguments.join(" ")), &holdfast(site, arguments)?)
}

/// The same, however it ends.
fn holdfast(site: &Site, arguments: &[&str]) -> Result<Output, DemoError> {
    let mut command = Command::new(site.holdfast());
    let command = command.arg("--config").arg(site.config()).args(arguments);
    command.output().during(|| format!("running holdfast {}", arguments.join(" ")))
}
