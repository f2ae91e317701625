//! Signs of life, of this process and of a stopped one.

use super::*;
use holdfast_peers::in_hand::Doing;
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

#[test]
fn a_request_that_is_in_hand_for_too_long_is_told_with_who_has_it() {
    let pulse = Pulse::new().unwrap();
    let say = |since_ns| {
        let oldest = Unanswered { thread: 7, doing: Doing::Open, since_ns };
        pulse.0.write_all_at(&sign(now_ns(), 0, Some(oldest)), TIME_AT).unwrap();
    };
    say(now_ns());
    assert_eq!(pulse.unanswered(), None);
    say(now_ns() - STANDS_AFTER.as_nanos() as u64);
    let (time, thread, doing) = pulse.unanswered().unwrap();
    assert!(time >= STANDS_AFTER && (thread, &*doing) == (7, "an open"), "{time:?}, {doing}");
    pulse.0.write_all_at(&sign(now_ns(), 0, None), TIME_AT).unwrap();
    assert_eq!(pulse.unanswered(), None);
}

#[test]
fn every_word_for_what_is_done_has_room_in_a_sign_of_life() {
    let room = |doing: Doing| doing.text().len() <= DOING_BYTES;
    assert!([Doing::Make, Doing::Attributes, Doing::List, Doing::Service].into_iter().all(room));
}

#[test]
fn what_a_thread_does_is_told_as_far_as_the_kernel_says() {
    let (told, tell) = std::sync::mpsc::channel();
    let (end, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        told.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
        let _ended = wait.recv();
    });
    let (pid, thread_id) = (std::process::id(), tell.recv().unwrap());
    while !what_it_does(pid, thread_id).starts_with("it waits, in ") {
        std::thread::yield_now();
    }
    drop(end);
    thread.join().unwrap();
    while what_it_does(pid, thread_id) != "it has just ended" {
        std::thread::yield_now();
    }
}
