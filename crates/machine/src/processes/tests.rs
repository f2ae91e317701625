//! Processes that answer late, or never.

use super::silent::SILENT_MAX;
use super::*;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex};

/// No process has such a number.
const NOBODY: u32 = u32::MAX;

/// What some processes wait for.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn pass(&self) {
        drop(self.1.wait_while(self.0.lock().unwrap(), |open| !*open).unwrap());
    }

    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
}

#[test]
fn no_more_threads_than_the_most_wait_however_many_processes_are_silent() {
    const LANE: Lane = Lane("a test");
    let brief = Patience { each: Duration::from_millis(200), ..BRIEF };
    let all: Vec<u32> = (0..4 * SILENT_MAX as u32).map(|at| NOBODY - 1 - at).collect();
    let (gate, asked) = (Arc::new(Gate::default()), Arc::new(Mutex::new(BTreeSet::new())));
    let (closed, heard) = (gate.clone(), asked.clone());
    let look = Arc::new(move |it: &Process| {
        heard.lock().unwrap().insert(it.pid());
        if it.pid().is_multiple_of(2) {
            closed.pass();
        }
        it.pid()
    });
    let told = ask_in(LANE, &all, brief, &look);
    let asked = || asked.lock().unwrap().len();
    let is_true =
        |(pid, told): (&u32, &Option<u32>)| told.is_none_or(|it| it == *pid && it % 2 == 1);
    assert!(all.iter().zip(&told).all(is_true), "{told:?}");
    let wait = asked() - told.iter().flatten().count();
    assert!(wait <= SILENT_MAX && told.len() == all.len(), "{wait} wait: {told:?}");
    // Who is silent is not asked again, and nobody else is while there is no room.
    let before = asked();
    assert!(wait < SILENT_MAX || ask_in(LANE, &all, brief, &look).iter().all(Option::is_none));
    // A thread that had not come to its look when the patience was over may have done so since.
    assert!((before..=before + SILENT_MAX - wait).contains(&asked()), "{} after {before}", asked());
    gate.open();
    let long = LONG;
    assert_eq!(ask_in(LANE, &all, long, &look), all.into_iter().map(Some).collect::<Vec<_>>());
}

#[test]
fn many_that_answer_in_time_are_no_silence_together() {
    const LANE: Lane = Lane("a test of many");
    let patience = Patience { all: Duration::from_millis(1), in_any_case: LONG.each, ..LONG };
    let all: Vec<u32> = (0..20).map(|at| NOBODY - 100 - at).collect();
    let look = |it: &Process| {
        std::thread::sleep(Duration::from_millis(1));
        it.pid()
    };
    let told = ask_in(LANE, &all, patience, &Arc::new(look));
    assert_eq!(told, all.into_iter().map(Some).collect::<Vec<_>>());
}

#[test]
fn one_that_does_not_tell_keeps_nothing_of_others_back() {
    let gate = Arc::new(Gate::default());
    let (closed, own) = (gate.clone(), std::process::id());
    let look = move |it: &Process| {
        if it.pid() == NOBODY {
            closed.pass();
        }
        it.at("comm").exists()
    };
    let counts = move |pid| pid == own;
    let answers = ask_all(vec![NOBODY, own], BRIEF, counts, look);
    let told = |pid, counts, told| Answer { pid, counts, told };
    assert_eq!(answers, [told(own, true, Some(true)), told(NOBODY, false, None)]);
    assert_eq!(ask(NOBODY, |_| ()), None, "it has not answered yet");
    gate.open();
    while ask(NOBODY, |_| ()).is_none() {
        std::thread::yield_now();
    }
}

#[test]
fn a_look_that_fails_is_no_answer_and_the_next_process_is_looked_at() {
    let look = |it: &Process| match it.pid() {
        0 => panic!("as the test wants it"),
        pid => pid,
    };
    let told = ask_in(Lane("another test"), &[7, 0, 9], BRIEF, &Arc::new(look));
    assert_eq!(told, [Some(7), None, Some(9)]);
}
