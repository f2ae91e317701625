//! Signs of life, of this process and of a stopped one.

use super::*;
use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;

#[test]
fn a_process_that_never_began_is_not_silent_and_one_that_beats_is_not_either() {
    let pulse = Pulse::new().unwrap();
    assert_eq!(pulse.silence(), None);
    beat(pulse.0.try_clone().unwrap(), || 7).unwrap();
    while pulse.number_at(TIME_AT) == Some(0) {
        std::thread::yield_now();
    }
    assert_eq!((pulse.silence(), pulse.mortal_connections()), (None, 7));
}

#[test]
fn a_process_whose_last_sign_is_long_ago_is_silent_until_another_begins() {
    let pulse = Pulse::new().unwrap();
    let long_ago = now_ns() - SILENT_AFTER.as_nanos() as u64;
    pulse.0.write_all_at(&long_ago.to_le_bytes(), TIME_AT).unwrap();
    assert!(pulse.silence().unwrap() >= SILENT_AFTER);
    pulse.begin_anew().unwrap();
    assert_eq!(pulse.silence(), None);
}

#[test]
fn a_stopped_process_is_told_from_one_that_runs_and_one_that_is_gone() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = child.id();
    assert_eq!(why_stopped(pid), None);
    kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
    while why_stopped(pid).is_none() {
        std::thread::yield_now();
    }
    assert!(why_silent(pid).contains(&format!("kill -CONT {pid}")));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((why_stopped(pid), why_silent(pid).as_str()), (None, "it has just ended"));
}
