//! What the system does not have at the moment.
//!
//! Promise: one answer to whether an error will pass by itself: there is no process, thread,
//! descriptor or memory just now, because others have them all. Work that is better done on a
//! thread of its own is done without one, or is an error of whoever asked for it.
//! Never: waits for them to come back.

use crate::exit::Exit;
use crate::problem::{Outcome, Problem};
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, ScopedJoinHandle, scope};

/// What a call says for want of processes, threads, descriptors or memory.
const SHORT: [i32; 4] = [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE];

/// What a process of the keeper's ends with that lacks something and cannot say: `EX_TEMPFAIL`.
pub(crate) const LACKING: i32 = 75;

/// What becomes of something that is lacking.
pub(crate) const AGAIN: &str = "it is tried again every second";

/// Whether this is, or came of, a lack that passes.
pub(crate) fn passes(error: &(dyn Error + 'static)) -> bool {
    let of_io = |error: &io::Error| match error.raw_os_error() {
        Some(number) => SHORT.contains(&number),
        // Its source is only what lies behind the error that it holds.
        None => error.get_ref().is_some_and(|held| passes(held)),
    };
    let is_short =
        match (error.downcast_ref::<io::Error>(), error.downcast_ref::<rustix::io::Errno>()) {
            (Some(error), _) => of_io(error),
            (_, Some(error)) => SHORT.contains(&error.raw_os_error()),
            (None, None) => false,
        };
    is_short || error.source().is_some_and(passes)
}

/// A thread of its own for `work`, or why there is none.
pub(crate) fn thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Outcome<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(work).map_err(|error| no_thread(name, error))
}

/// Does `work` on a thread of its own; or on this one, which it is told, if there is no other.
pub(crate) fn beside(name: &str, work: impl FnOnce(Outcome<()>) + Send + 'static) {
    let ours = Once::new(work);
    let theirs = ours.clone();
    if let Err(problem) = thread(name, move || theirs.take().map(|work| work(Ok(())))) {
        ours.take().into_iter().for_each(|work| work(Err(problem.clone())));
    }
}

/// Does `work` while `meanwhile` is called again and again until it is done; without that if there
/// is no second thread.
pub(crate) fn during<T: Send>(work: impl FnOnce() -> T + Send, mut meanwhile: impl FnMut()) -> T {
    let ours = Once::new(work);
    let theirs = ours.clone();
    let done = scope(|scope| {
        let work = move || theirs.take_it()();
        let thread = Builder::new().name("work".into()).spawn_scoped(scope, work);
        let thread = thread.ok()?;
        while !thread.is_finished() {
            meanwhile();
        }
        Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    done.unwrap_or_else(|| ours.take_it()())
}

/// Does `work` for each of them at the same time; for those that get no thread, in turn.
pub(crate) fn for_each<I: Sync, T: Send>(all: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let work = &work;
    scope(|scope| {
        let start = |one| Builder::new().spawn_scoped(scope, move || work(one)).map_err(|_| one);
        let begun: Vec<_> = all.iter().map(start).collect();
        let end = |begun: Result<ScopedJoinHandle<'_, T>, &I>| match begun {
            Ok(thread) => thread.join().ok(),
            Err(one) => Some(work(one)),
        };
        begun.into_iter().filter_map(end).collect()
    })
}

/// Something that one of two takes.
struct Once<T>(Arc<Mutex<Option<T>>>);

impl<T> Once<T> {
    fn new(what: T) -> Once<T> {
        Once(Arc::new(Mutex::new(Some(what))))
    }

    fn clone(&self) -> Once<T> {
        Once(self.0.clone())
    }

    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// For whoever is the only one of the two.
    fn take_it(&self) -> T {
        self.take().expect("the other one has never begun")
    }
}

/// That there is no thread, for whoever asked for what it was to do.
pub(crate) fn no_thread(name: &str, error: io::Error) -> Problem {
    let what = format!("making the thread {name:?}");
    Problem::caused(Exit::Failed, what, error, "end some processes and try again")
}

#[cfg(test)]
mod tests;
