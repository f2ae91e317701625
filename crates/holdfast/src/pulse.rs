//! Signs of life of the keeper's processes.
//!
//! Promise: whether a process still runs can be told at once and without asking it, from a file
//! without a name into which it writes the time; and why not, as far as the kernel knows.
//! Never: waits for the process, or ends it: one that was stopped has lost nothing.

use rustix::fs::MemfdFlags;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::thread::Builder;
use std::time::Duration;

/// How often a process gives a sign of life.
const BEAT_EVERY: Duration = Duration::from_millis(250);

/// A process that gave none for this long is said not to answer. Far longer than a busy machine
/// keeps a thread waiting that does nothing else.
pub(crate) const SILENT_AFTER: Duration = Duration::from_secs(3);

const _: () = assert!(SILENT_AFTER.as_millis() > 8 * BEAT_EVERY.as_millis());

/// Where the time is, and behind it how many connections will not outlive the process.
const TIME_AT: u64 = 0;
const MORTAL_AT: u64 = 8;

/// The signs of life of one process after another, for who started them.
#[derive(Debug)]
pub(crate) struct Pulse(File);

impl Pulse {
    /// That of a process to be started.
    pub(crate) fn new() -> io::Result<Pulse> {
        let pulse = rustix::fs::memfd_create("holdfast-pulse", MemfdFlags::CLOEXEC)?;
        let pulse = Pulse(File::from(pulse));
        pulse.begin_anew()?;
        Ok(pulse)
    }

    /// Whatever gave signs before has ended.
    pub(crate) fn begin_anew(&self) -> io::Result<()> {
        self.0.write_all_at(&[0; 16], TIME_AT)
    }

    /// How long the process has given no sign of life, if that is too long. One that has not given
    /// its first is starting, and that has a bound of its own.
    pub(crate) fn silence(&self) -> Option<Duration> {
        let newest = self.number_at(TIME_AT).filter(|time| *time > 0)?;
        let silence = Duration::from_nanos(now_ns().saturating_sub(newest));
        (silence >= SILENT_AFTER).then_some(silence)
    }

    /// How many connections end with the process, whatever takes its place.
    pub(crate) fn mortal_connections(&self) -> u64 {
        self.number_at(MORTAL_AT).unwrap_or(0)
    }

    fn number_at(&self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, at).ok()?;
        Some(u64::from_le_bytes(bytes))
    }
}

impl AsFd for Pulse {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Gives signs of life from now on until the process ends. `mortal` counts the connections that
/// will end with it.
pub(crate) fn beat(pulse: File, mortal: impl Fn() -> u64 + Send + 'static) -> io::Result<()> {
    let beat = move || loop {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&now_ns().to_le_bytes());
        bytes[8..].copy_from_slice(&mortal().to_le_bytes());
        // It is memory: it fails for want of that alone, and is tried again.
        let _ = pulse.write_all_at(&bytes, TIME_AT);
        std::thread::sleep(BEAT_EVERY);
    };
    Builder::new().name("pulse".into()).spawn(beat).map(drop)
}

/// A clock that all processes share, and that stands still while the machine sleeps.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Why a process gives no sign of life, for people.
pub(crate) fn why_silent(pid: u32) -> String {
    match state_of(pid) {
        Some('T') => stopped_text(pid),
        Some('t') => "a debugger holds it".to_owned(),
        Some('D') => format!("it waits for a device, in {}", waits_in(pid)),
        None | Some('Z' | 'X') => "it has just ended".to_owned(),
        Some(_) => "it gets no time: the machine is overloaded, or its cgroup is frozen".to_owned(),
    }
}

/// Why a process cannot answer, if it is plain that it cannot.
pub(crate) fn why_stopped(pid: u32) -> Option<String> {
    (state_of(pid) == Some('T')).then(|| stopped_text(pid))
}

fn stopped_text(pid: u32) -> String {
    format!("a signal has stopped it, and `kill -CONT {pid}` lets it go on")
}

/// The letter that the kernel has for what a process does.
fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything.
    stat.rsplit_once(") ")?.1.chars().next()
}

fn waits_in(pid: u32) -> String {
    let wchan = std::fs::read_to_string(format!("/proc/{pid}/wchan"));
    wchan.unwrap_or_else(|_| "the kernel".to_owned())
}

#[cfg(test)]
mod tests;
