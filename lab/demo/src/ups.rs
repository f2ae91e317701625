//! A power source, as hardware of one's own would be read: a file that says the same again and
//! again.
//!
//! Promise: it is written many times before a keeper would take it for stale, and says another
//! thing from the moment it is told to.
//! Never: has anything to do with this machine's real power.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use holdfast_io::private;

use super::error::{DemoError, During};

/// How often it is written.
const EVERY: Duration = Duration::from_millis(3);

/// What it can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Power {
    /// The mains are there.
    Mains,
    /// They have failed.
    Battery,
    /// The machine is about to lose its power.
    Low,
}

impl Power {
    fn text(self) -> &'static str {
        match self {
            Power::Mains => "ups.status: OL\nbattery.runtime: 20\n",
            Power::Battery => "ups.status: OB DISCHRG\nbattery.runtime: 20\n",
            Power::Low => "ups.status: OB DISCHRG LB\nbattery.runtime: 20\n",
        }
    }
}

/// How the power goes.
#[derive(Clone, Copy)]
pub(super) enum Outage<'a> {
    /// Nobody was told.
    Sudden,
    /// The source says that it is about to go, and so long after that it is gone.
    Noticed(&'a Ups, Duration),
}

/// The source. Dropped, it falls silent, and its file is gone.
pub(super) struct Ups {
    path: PathBuf,
    tell: Option<Sender<Power>>,
    writer: Option<JoinHandle<()>>,
}

impl Ups {
    /// Starts to say in this file that the mains are there.
    pub(super) fn start(path: PathBuf) -> Result<Ups, DemoError> {
        let doing = || "writing what the power source says".into();
        private::make_memory_folder().during(doing)?;
        write(&path, Power::Mains, 0).during(doing)?;
        let (tell, told) = channel();
        let there = path.clone();
        let writer = thread::spawn(move || write_until_told_no_more(&there, &told));
        Ok(Ups { path, tell: Some(tell), writer: Some(writer) })
    }

    /// Says that from now on.
    pub(super) fn say(&self, power: Power) {
        let writes = self.tell.as_ref().is_some_and(|tell| tell.send(power).is_ok());
        assert!(writes, "the power source writes as long as it is there");
    }
}

impl Drop for Ups {
    fn drop(&mut self) {
        self.tell = None;
        let _has_ended = self.writer.take().map(JoinHandle::join);
        let _may_be_gone = fs::remove_file(&self.path);
    }
}

/// A source that cannot write falls silent, which keepers take for what it is.
fn write_until_told_no_more(path: &Path, told: &Receiver<Power>) {
    let mut power = Power::Mains;
    for number in 1_u64.. {
        match told.recv_timeout(EVERY) {
            Ok(next) => power = next,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let _falls_silent = write(path, power, number);
    }
}

/// Over a rename, so that nobody reads half of it; numbered, so that it differs each time.
fn write(path: &Path, power: Power, number: u64) -> io::Result<()> {
    let next = path.with_extension("next");
    fs::write(&next, format!("{}written: {number}\n", power.text()))?;
    fs::rename(&next, path)
}
