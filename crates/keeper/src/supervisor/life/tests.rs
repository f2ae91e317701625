//! One process after the other: of which binary, and when no more.

use super::*;
use crate::memory::Memories;
use crate::supervisor::restart::DEATHS_MAX;
use crate::supervisor::upgrade::open_binary;
use holdfast_config::exit::Exit;
use holdfast_config::problem::Outcome;
use std::collections::BTreeMap;
use std::os::linux::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::Receiver;

const OLD: &str = "/bin/true";
const NEW: &str = "/bin/false";

fn life() -> (Life<()>, Arc<Watched<()>>) {
    let memories = Arc::<Memories>::default();
    let watched = Watched::new(("it", "it"), (), memories, BTreeMap::new()).unwrap();
    let watched = Arc::new(watched);
    let binary = open_binary(Path::new(OLD)).unwrap();
    (Life::new("it".to_owned(), binary, watched.clone()), watched)
}

/// Asks for the new binary; what is told of that comes to the receiver.
fn asked(life: &mut Life<()>) -> Receiver<Outcome<()>> {
    let (request, outcome) = Request::of(open_binary(Path::new(NEW)).unwrap());
    life.upgrade(request);
    outcome
}

fn is_of(life: &Life<()>, path: &str) -> bool {
    let of = rustix::fs::fstat(life.binary()).unwrap();
    std::fs::metadata(path).unwrap().st_ino() == of.st_ino
}

fn broken() -> Problem {
    Problem::new(Exit::Failed, "serving it", "it is broken", "mend it")
}

fn crash() -> Death {
    Death { lived: Duration::ZERO, was_ready: false, was_killed: false }
}

#[test]
fn a_process_that_was_to_replace_another_and_dies_is_followed_by_one_of_the_old_binary() {
    let (mut life, _) = life();
    let outcome = asked(&mut life);
    assert!(life.is_changing() && life.waits_for_the_old() && is_of(&life, NEW));
    assert!(life.was_replaced(), "the old one ended for the sake of the new one");
    life.started(7);
    assert!(!life.was_replaced(), "the end of the new one is a death");
    assert!(life.hands_back(&broken()) && is_of(&life, OLD));
    assert!(outcome.recv().unwrap().unwrap_err().why.contains("it is broken"));
    assert!(!life.is_changing() && !life.hands_back(&broken()), "once");
}

#[test]
fn a_process_that_serves_ends_an_upgrade_and_is_counted_as_one() {
    let (mut life, watched) = life();
    let outcome = asked(&mut life);
    life.started(7);
    life.serves(|_| {});
    outcome.recv().unwrap().unwrap();
    let known = watched.known();
    assert_eq!((known.state, known.upgrades, known.restarts), (State::Serving, 1, 0));
    assert!(is_of(&life, NEW) && !life.is_changing());
}

#[test]
fn a_process_that_was_told_to_end_for_the_next_one_has_not_died() {
    let (mut life, watched) = life();
    life.renew();
    assert_eq!(watched.lock().state, State::Restarting);
    assert!(life.is_changing() && !life.is_upgrading());
    assert!(life.was_replaced() && !life.was_replaced(), "the next one's end is its own");
}

#[test]
fn deaths_at_every_start_end_the_starts_and_somebody_who_asks_begins_them_anew() {
    let (mut life, watched) = life();
    let mut starts = || (1..100).find(|_| life.after(crash(), broken(), false).is_err());
    assert_eq!(starts(), Some(DEATHS_MAX));
    assert_eq!(watched.lock().restarts, u64::from(DEATHS_MAX) - 1);
    assert_eq!(watched.lock().state, State::Starting, "nobody waits for it");
    life.begin_anew();
    assert!(life.after(crash(), broken(), true).is_ok());
    assert_eq!(watched.lock().state, State::Restarting);
}
