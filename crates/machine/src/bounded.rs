//! Reading from a file system that may never answer.
//!
//! Promise: whoever asks goes on after `PATIENCE`, knowing that there is no answer; what owes
//! one for longer than that is not asked again before it has given it.
//! Never: ends who waits for it: nothing could.

use crate::mounts::mount_above;
use crate::standstill::Standstill;
use crate::threads::beside;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// How long an answer may take. Less than whoever asks for the status waits.
const PATIENCE: Duration = Duration::from_secs(2);

/// Since when somebody waits for file systems, by where they are mounted or by their devices.
static ASKED: Mutex<BTreeMap<PathBuf, Vec<Instant>>> = Mutex::new(BTreeMap::new());

/// Reads from what is at this path. `Err` says for how long there is no answer.
pub fn read<T: Send + 'static>(
    path: &Path,
    read: impl FnOnce(&Path) -> T + Send + 'static,
) -> Result<T, Duration> {
    let (place, path) = (file_system_of(path), path.to_owned());
    ask(place, move || read(&path))
}

/// Asks the file system that goes by this name. `Err` as [`read`].
pub fn ask<T: Send + 'static>(
    place: PathBuf,
    ask: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Duration> {
    if let Some(since) = owes_since(&place) {
        return Err(since.elapsed());
    }
    let asked = Instant::now();
    lock().entry(place.clone()).or_default().push(asked);
    let told = within(PATIENCE, move || {
        let told = ask();
        answered(&place, asked);
        told
    });
    told.ok_or_else(|| asked.elapsed())
}

/// Does what may never come to an end. `None` if it has not in so long.
pub fn within<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (answers, answer) = mpsc::channel();
    // Where there is no other thread it is this one that waits.
    beside("looks", move |_| {
        let _nobody_waits = answers.send(work());
    });
    answer.recv_timeout(patience).ok()
}

/// That a disk does not answer, for how long, and whose it is.
pub fn silent(whose: &str, path: &Path, time: Duration) -> Standstill {
    Standstill::new(format!("{whose} disk does not answer: {}", path.display()), time)
}

/// Where the file system is mounted that has this path; nobody is asked for that.
fn file_system_of(path: &Path) -> PathBuf {
    mount_above(path).map_or_else(PathBuf::new, |mount| mount.point)
}

/// Since when it owes an answer, if that is too long.
fn owes_since(place: &Path) -> Option<Instant> {
    let oldest = lock().get(place)?.iter().min().copied()?;
    (oldest.elapsed() >= PATIENCE).then_some(oldest)
}

fn answered(place: &Path, asked: Instant) {
    if let Some(waiting) = lock().get_mut(place)
        && let Some(at) = waiting.iter().position(|since| *since == asked)
    {
        waiting.swap_remove(at);
    }
}

fn lock() -> MutexGuard<'static, BTreeMap<PathBuf, Vec<Instant>>> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
