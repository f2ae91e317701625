//! Work on threads of its own, where the system has threads.
//!
//! Promise: work that is better done on a thread of its own is done without one if there is none,
//! or is an error of whoever asked for it.
//! Never: waits for threads to come back.

use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, ScopedJoinHandle, scope};

/// A thread of its own for `work`, or why there is none.
pub fn thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Outcome<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(work).map_err(|error| no_thread(name, error))
}

/// Does `work` on a thread of its own; or on this one, which it is told, if there is no other.
pub fn beside(name: &str, work: impl FnOnce(Outcome<()>) + Send + 'static) {
    let ours = Once::new(work);
    let theirs = ours.clone();
    if let Err(problem) = thread(name, move || theirs.take().map(|work| work(Ok(())))) {
        ours.take().into_iter().for_each(|work| work(Err(problem.clone())));
    }
}

/// Does `work` while `meanwhile` is called again and again until it is done; without that if there
/// is no second thread.
pub fn during<T: Send>(work: impl FnOnce() -> T + Send, mut meanwhile: impl FnMut()) -> T {
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
pub fn for_each<I: Sync, T: Send>(all: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
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
