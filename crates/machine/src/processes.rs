//! Looking at other processes.
//!
//! Promise: whoever looks at processes goes on once his [`Patience`] is over, and knows who did not
//! answer; who has not answered yet is silent at once when he is asked again. Of those that count,
//! and of those that do not, no more than `SILENT_MAX` keep a thread each: then others like them
//! are silent at once, too.
//! Never: ends who waits for a process: nothing could. Judges what a silence means: that is for
//! whoever asks.
//!
//! A process has locks that it holds while it changes its memory or becomes another program, and
//! both can wait for a file system that never answers, for as long as somebody likes. Whatever the
//! kernel tells under such a lock is asked here alone; what it tells without,
//! [`holdfast_io::process`] does.

mod process;
mod silent;

pub use process::Process;

use holdfast_io::private::is_trusted;
use holdfast_io::process::owner;
use silent::{Lane, Worker};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one process may take, and all together that are asked in one go, beyond what each may
/// take in any case: many that answer at once are no silence, however busy the machine is.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    each: Duration,
    all: Duration,
    in_any_case: Duration,
    /// Whether one who was silent before is waited for.
    asks_again: bool,
}

/// For what is told to people, or is done over and over. Less than whoever asks for the status
/// waits.
pub const BRIEF: Patience = Patience {
    each: Duration::from_secs(1),
    all: Duration::from_secs(4),
    in_any_case: Duration::ZERO,
    asks_again: false,
};

/// For those whose silence is refused: a large process that ends, or a busy machine, takes some.
pub const LONG: Patience = Patience {
    each: Duration::from_secs(20),
    all: Duration::from_secs(20),
    in_any_case: Duration::from_millis(100),
    asks_again: true,
};

/// What to do about one whose silence counts.
pub const HELD_UP: &str = "it is held up: end that process, and, if that does not help, \
                                  whoever serves the file system that it waits for; then try again";

/// How often one who was silent is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What one process told; nothing, if it was silent.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer<T> {
    /// Which.
    pub pid: u32,
    /// Whether it could be of anybody whom the answer is about.
    pub counts: bool,
    /// What it told.
    pub told: Option<T>,
}

/// Looks at one process. One that belongs to a stranger takes no place of one that does not.
pub fn ask<T: Send + 'static>(
    pid: u32,
    look: impl Fn(&Process) -> T + Send + Sync + 'static,
) -> Option<T> {
    ask_one(pid, BRIEF, look)
}

/// The same, with this patience.
pub(crate) fn ask_one<T: Send + 'static>(
    pid: u32,
    patience: Patience,
    look: impl Fn(&Process) -> T + Send + Sync + 'static,
) -> Option<T> {
    let lane = Lane::of(is_trusted_process(pid));
    ask_in(lane, &[pid], patience, &Arc::new(look)).pop().flatten()
}

/// Looks at all these, and first at those that count, with this patience; then briefly at the
/// others.
pub fn ask_all<T: Send + 'static>(
    pids: Vec<u32>,
    patience: Patience,
    counts: impl Fn(u32) -> bool,
    look: impl Fn(&Process) -> T + Send + Sync + 'static,
) -> Vec<Answer<T>> {
    let (counting, others): (Vec<u32>, Vec<u32>) = pids.into_iter().partition(|pid| counts(*pid));
    let look = Arc::new(look);
    let answers = |counts: bool, pids: Vec<u32>, patience| {
        let told = ask_in(Lane::of(counts), &pids, patience, &look);
        pids.into_iter().zip(told).map(move |(pid, told)| Answer { pid, counts, told })
    };
    answers(true, counting, patience).chain(answers(false, others, BRIEF)).collect()
}

/// Whether it belongs to somebody who decides here.
pub fn is_trusted_process(pid: u32) -> bool {
    owner(pid).is_some_and(is_trusted)
}

fn ask_in<T: Send + 'static, F: Fn(&Process) -> T + Send + Sync + 'static>(
    lane: Lane,
    pids: &[u32],
    patience: Patience,
    look: &Arc<F>,
) -> Vec<Option<T>> {
    let mut left = patience.all;
    let mut told = Vec::with_capacity(pids.len());
    while let Some(rest) = pids.get(told.len()..).filter(|rest| !rest.is_empty()) {
        let before = told.len();
        if may_be_asked(lane, rest[0], patience, &mut left) {
            hear(&Worker::start(lane, rest, look), rest, patience, &mut left, &mut told);
        }
        if told.len() == before {
            told.push(None);
        }
    }
    told
}

fn may_be_asked(lane: Lane, pid: u32, patience: Patience, left: &mut Duration) -> bool {
    while !left.is_zero() {
        if lane.may_ask(pid) {
            return true;
        }
        if !patience.asks_again {
            return false;
        }
        let began = Instant::now();
        std::thread::sleep(LOOK_EVERY);
        *left = left.saturating_sub(began.elapsed());
    }
    false
}

/// Takes answers until there is none in time, or the worker has ended.
fn hear<T: Send>(
    worker: &Worker<T>,
    rest: &[u32],
    patience: Patience,
    left: &mut Duration,
    told: &mut Vec<Option<T>>,
) {
    for pid in rest {
        let began = Instant::now();
        let answer = worker.answer(*pid, patience.each.min(patience.in_any_case + *left));
        *left = left.saturating_sub(began.elapsed().saturating_sub(patience.in_any_case));
        match answer {
            Ok(answer) => told.push(Some(answer)),
            Err(silent::Why::Silent) => return told.push(None),
            Err(silent::Why::Ended) => return,
        }
    }
}

#[cfg(test)]
mod tests;
