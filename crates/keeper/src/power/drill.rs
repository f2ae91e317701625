//! A drill: whether what memory may hold gets to the disks in the time that there is.
//!
//! Promise: memory acknowledges nothing while it goes on; what is measured is what an outage does:
//! every front end gives its lease up, then all logs' devices are written at the same time, each
//! with as much as may be in its memory alone, and flushed once. A drill that fails disarms at
//! once.
//! Never: goes on in an outage, or leaves a name behind.

use super::drills::{Drill, Log, now_s};
use super::{Power, bytes_of_drill};
use crate::supervisor::progress::Progress;
use holdfast_attach::observe::observe;
use holdfast_config::VolumeConfig;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_io::private;
use holdfast_machine::threads::for_each;
use holdfast_power::lease::Lease;
use holdfast_power::monitor::Report;
use holdfast_power::state::{State, Why};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// What a drill is doing, for messages.
const DRILLING: &str = "drilling";

/// How long all front ends may take to give their lease up, whatever the source says.
const GIVING_UP_MAX: Duration = Duration::from_secs(30);

/// How often is looked whether they have.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// What is written at once.
const PIECE_BYTES: usize = 1 << 20;

/// Ends the drill, however it goes.
struct Goes<'a>(&'a Power);

impl Drop for Goes<'_> {
    fn drop(&mut self) {
        self.0.monitor.drill(false);
    }
}

impl Power {
    /// Drills with these volumes, by name. What came of it, for people.
    pub(crate) fn drill(
        &self,
        volumes: &[(String, VolumeConfig)],
        say: Progress<'_>,
    ) -> Outcome<String> {
        let before = self.monitor.report();
        refuse_now(&before)?;
        if volumes.is_empty() {
            let why = "no volume is mounted whose memory could acknowledge because of the power";
            let remedy = "mount one, with way = \"direct\", and memory and must_survive for which \
                          the power is all that is missing";
            return Err(Problem::new(Exit::Usage, DRILLING, why, remedy));
        }
        let Ok(_one) = self.drilling.try_lock() else {
            let remedy = "wait for its end: `holdfast status` tells what came of it";
            return Err(Problem::new(Exit::InUse, DRILLING, "another drill goes on", remedy));
        };
        self.monitor.drill(true);
        let goes = Goes(self);
        let log = |volume: &VolumeConfig| Log {
            path: volume.log.clone(),
            ring_bytes: volume.memory.size.0,
        };
        let logs = volumes.iter().map(|(_, volume)| log(volume)).collect();
        let mut drill = Drill { when_s: now_s(), logs, ..Drill::default() };
        let measured = self.measure(&mut drill, volumes, say);
        // An outage that came in between says nothing of the disks.
        refuse_now(&self.monitor.report())?;
        drill.is_passed = measured.is_ok() && drill.is_in_time();
        drill.stopped = measured.as_ref().err().map(|problem| problem.why.clone());
        let noted = self.known.drills.add(&drill);
        drop(goes);
        tracing::info!(drill = drill.text(), "a drill");
        measured?;
        noted.map_err(|error| {
            let path = self.config.drills.display();
            let remedy = format!(
                "let the keeper write {path}; if it has anything but drills, move it away, or set \
                 power.drills to a place of its own"
            );
            Problem::new(Exit::Failed, format!("noting a drill in {path}"), error, remedy)
        })?;
        match drill.is_passed {
            true => Ok(passed_text(&drill) + &self.not_in_it()),
            false => Err(failed(&drill)),
        }
    }

    /// What a drill is not about, and an outage would take, for people.
    fn not_in_it(&self) -> String {
        let unserved = self.known.unserved();
        match unserved.is_empty() {
            true => String::new(),
            false => format!("; not in it, and in memory alone: {}", unserved.join("; ")),
        }
    }

    fn measure(
        &self,
        drill: &mut Drill,
        volumes: &[(String, VolumeConfig)],
        say: Progress<'_>,
    ) -> Outcome<()> {
        say("every front end gives its lease up");
        drill.given_up_ms = self.wait_until_given_up()?;
        drill.had_ms = self.monitor.report().usable_ms;
        let (drain_ms, sharers) = (drill.had_ms, volumes.len() as u64);
        let bytes_per_s_max = u64::MAX;
        let lease = Lease { drain_ms, sharers, bytes_per_s_max, ..Lease::default() };
        say("the logs' devices are written as in an outage");
        let (bytes, took) = write_all(volumes, &lease)?;
        drill.bytes = bytes;
        drill.took_ms = (took.as_millis() as u64).max(1);
        Ok(())
    }

    /// Waits until nothing of any lease is left. How long that took, in milliseconds.
    fn wait_until_given_up(&self) -> Outcome<u64> {
        let begun = Instant::now();
        loop {
            let report = self.monitor.report();
            let holding = self.known.holding(report.taken_back);
            if report.state != State::Armed && holding.is_empty() {
                return Ok(begun.elapsed().as_millis() as u64);
            }
            if begun.elapsed() > GIVING_UP_MAX {
                let logs: Vec<_> = holding.iter().map(|it| it.log.display().to_string()).collect();
                let why = format!(
                    "what memory has acknowledged was not brought to {} in {} s",
                    logs.join(", "),
                    GIVING_UP_MAX.as_secs()
                );
                let remedy = "`holdfast status` says what stands still; until a drill is passed, \
                              volumes wait for their disks";
                return Err(Problem::new(Exit::Failed, DRILLING, why, remedy));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Refuses to drill while the machine may go down, nobody knows whether it will, or there is no
/// time that a drill could be compared with.
fn refuse_now(report: &Report) -> Outcome<()> {
    let remedy = match (report.state, report.why) {
        (State::OnBattery | State::Draining | State::Safe, _) => "wait for the mains",
        (State::Stale, _) => "see to the source: docs/power.md",
        (_, Some(Why::HoldUpUnknown)) => "set hold_up_ms under [power], and start the keeper again",
        (_, Some(Why::TooShort(_) | Why::Low)) => "wait until it is charged, or set reserve_ms",
        (_, Some(Why::Faulty)) => "see to the UPS",
        _ => return Ok(()),
    };
    let trouble = report.trouble.as_ref().map_or(String::new(), |it| format!(" ({it})"));
    let why = report.why.map_or_else(String::new, |why| why.to_string());
    let why = format!("the power is {}: {why}{trouble}", report.state);
    Err(Problem::new(Exit::Failed, DRILLING, why, remedy))
}

/// Writes to all logs' devices at the same time: how much, and how long it took.
fn write_all(volumes: &[(String, VolumeConfig)], lease: &Lease) -> Outcome<(u64, Duration)> {
    let bytes_for = |volume: &VolumeConfig| {
        let rate = observe(&volume.medium()).map_or(0, |seen| seen.drain_rate_bytes_per_s);
        bytes_of_drill(lease, rate, volume.memory.size.0)
    };
    let wanted: Vec<(&VolumeConfig, u64)> =
        volumes.iter().map(|(_, volume)| (volume, bytes_for(volume))).collect();
    let begun = Instant::now();
    let written = for_each(&wanted, |(volume, bytes)| write(&volume.log, *bytes));
    let took = begun.elapsed();
    for (written, (volume, bytes)) in written.into_iter().zip(&wanted) {
        written.map_err(|error| {
            let what = format!("writing {} to {}", rounded(*bytes), volume.log.display());
            let remedy = "see to the log's disk, and whether it has room for as much as the memory";
            Problem::new(Exit::Failed, what, error, remedy)
        })?;
    }
    Ok((wanted.iter().map(|(_, bytes)| bytes).sum(), took))
}

/// Writes that much into a file without a name, and flushes it.
fn write(directory: &Path, bytes: u64) -> io::Result<()> {
    let mut file = private::nameless_file(directory)?;
    let piece = vec![0x5a; PIECE_BYTES];
    let mut left = bytes;
    while left > 0 {
        let now = left.min(PIECE_BYTES as u64);
        file.write_all(&piece[..now as usize])?;
        left -= now;
    }
    file.sync_data()
}

fn passed_text(drill: &Drill) -> String {
    let Drill { bytes, took_ms, had_ms, given_up_ms, .. } = drill;
    // What may be used is half of what is there.
    let margin = 2.0 * *had_ms as f64 / *took_ms as f64;
    format!(
        "the drill is passed: {} were on the disks after {took_ms} ms, and {had_ms} ms may be used \
         (the hold-up is {margin:.1} times what is needed); every lease was given up within \
         {given_up_ms} ms",
        rounded(*bytes)
    )
}

fn failed(drill: &Drill) -> Problem {
    let Drill { bytes, took_ms, had_ms, given_up_ms, .. } = drill;
    let why = format!(
        "{} were on the disks after {took_ms} ms, and leases were given up after {given_up_ms} ms: \
         {had_ms} ms may be used",
        rounded(*bytes)
    );
    let remedy = "let less wait in memory (memory.size), have a faster disk for the logs, or a \
                  longer hold-up; until a drill is passed, volumes wait for their disks";
    Problem::new(Exit::Failed, DRILLING, why, remedy)
}
