//! Signs of life of the keeper's processes.
//!
//! Promise: whether a process still runs, and how long it has had a request in hand that it has not
//! answered, can be told at once and without asking it, from a file without a name into which it
//! writes both; and why, as far as the kernel knows.
//! Never: waits for the process, or ends it: one that was stopped has lost nothing.

use holdfast_io::process;
use holdfast_machine::processes::{Process, ask};
use holdfast_machine::standstill::STANDS_AFTER;
use holdfast_peers::in_hand::{Looks, Unanswered};
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

/// Where the time is, and behind it how many connections will not outlive the process; then the
/// oldest request in hand: since when (0 if there is none), the thread, and what it does. Versions
/// that watch over no requests write nothing there.
const TIME_AT: u64 = 0;
const MORTAL_AT: u64 = 8;
const SINCE_AT: u64 = 16;
const THREAD_AT: u64 = 24;
const DOING_AT: u64 = 32;
const BYTES: usize = 80;

/// Room for what is done, in words; the rest is zeros.
const DOING_BYTES: usize = BYTES - DOING_AT as usize;

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
        self.0.write_all_at(&[0; BYTES], TIME_AT)
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

    /// The oldest request that was taken and is not answered, if it is too old: for how long, who
    /// has it, and what is done for it.
    pub(crate) fn unanswered(&self) -> Option<(Duration, u32, String)> {
        let since = self.number_at(SINCE_AT).filter(|since| *since > 0)?;
        let time = Duration::from_nanos(now_ns().saturating_sub(since));
        let thread = u32::try_from(self.number_at(THREAD_AT)?).ok()?;
        let mut doing = [0; DOING_BYTES];
        self.0.read_exact_at(&mut doing, DOING_AT).ok()?;
        let doing = String::from_utf8_lossy(&doing).trim_end_matches('\0').to_owned();
        (time >= STANDS_AFTER).then_some((time, thread, doing))
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
pub fn beat(pulse: File, mortal: impl Fn() -> u64 + Send + 'static) -> io::Result<()> {
    let mut looks = Looks::new();
    let beat = move || loop {
        let now = now_ns();
        let sign = sign(now, mortal(), looks.look(now));
        // It is memory: it fails for want of that alone, and is tried again.
        let _ = pulse.write_all_at(&sign, TIME_AT);
        std::thread::sleep(BEAT_EVERY);
    };
    Builder::new().name("pulse".into()).spawn(beat).map(drop)
}

/// What one beat writes.
fn sign(now_ns: u64, mortal: u64, oldest: Option<Unanswered>) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let mut put = |at: u64, what: &[u8]| bytes[at as usize..][..what.len()].copy_from_slice(what);
    put(TIME_AT, &now_ns.to_le_bytes());
    put(MORTAL_AT, &mortal.to_le_bytes());
    if let Some(Unanswered { thread, doing, since_ns }) = oldest {
        put(SINCE_AT, &since_ns.to_le_bytes());
        put(THREAD_AT, &u64::from(thread).to_le_bytes());
        put(DOING_AT, doing.text().as_bytes());
    }
    bytes
}

/// A clock that all processes share, and that stands still while the machine sleeps.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Why a process gives no sign of life, for people.
pub(crate) fn why_silent(pid: u32) -> String {
    match state_of(process::status(pid)) {
        Some('T') => stopped_text(pid),
        Some('t') => "a debugger holds it".to_owned(),
        Some('D') => format!("it waits for a device, in {}", waits_in(pid, pid)),
        None | Some('Z' | 'X') => "it has just ended".to_owned(),
        Some(_) => "it gets no time: the machine is overloaded, or its cgroup is frozen".to_owned(),
    }
}

/// Why a process cannot answer, if it is plain that it cannot.
pub fn why_stopped(pid: u32) -> Option<String> {
    (state_of(process::status(pid)) == Some('T')).then(|| stopped_text(pid))
}

fn stopped_text(pid: u32) -> String {
    format!("a signal has stopped it, and `kill -CONT {pid}` lets it go on")
}

/// What a thread of a process does that has not answered, as far as the kernel says.
pub(crate) fn what_it_does(pid: u32, thread: u32) -> String {
    match state_of(process::status_of_thread(pid, thread)) {
        Some('R') => "it works on it".to_owned(),
        Some('T') => stopped_text(pid),
        Some(_) => format!("it waits, in {}", waits_in(pid, thread)),
        None => "it has just ended".to_owned(),
    }
}

/// The letter that the kernel has for what a process or a thread does.
fn state_of(status: Option<String>) -> Option<char> {
    process::state(&status?)
}

/// The place in the kernel, where it may be known.
fn waits_in(pid: u32, thread: u32) -> String {
    let place = move |it: &Process| it.at(&format!("task/{thread}/wchan"));
    let wchan = ask(pid, move |it| std::fs::read_to_string(place(it)).ok());
    wchan.flatten().filter(|place| place != "0").unwrap_or_else(|| "the kernel".to_owned())
}

#[cfg(test)]
mod tests;
