//! Frames are made when they are wanted, and each has one user.

use std::thread;

use super::*;

/// How many frames there is memory for.
fn made(frames: &Frames) -> usize {
    frames.parts.iter().filter(|part| part.get().is_some()).count() * PART
}

#[test]
fn frames_are_made_when_they_are_asked_for() {
    let frames = Frames::new(1 << 20);
    assert_eq!(made(&frames), 0);
    let at = frames.take().expect("nothing is in any");
    let first: *const Frame = &frames[at];
    assert_eq!(made(&frames), PART);
    let _ = &frames[(1 << 20) - 1];
    assert_eq!(made(&frames), 2 * PART);
    assert!(std::ptr::eq(first, &frames[at]), "a frame stays where it is");
}

#[test]
fn frames_whose_number_is_no_multiple_of_a_part_are_all_there() {
    let frames = Frames::new(PART + 1);
    let all: Vec<usize> = std::iter::from_fn(|| frames.take()).collect();
    assert_eq!(all, (0..=PART).collect::<Vec<_>>());
    assert_eq!(frames[PART].held.read().expect("nobody panics").number, PageNumber::NONE);
    assert!(std::panic::catch_unwind(|| frames[2 * PART].used.load(Ordering::Relaxed)).is_err());
}

#[test]
fn each_frame_is_taken_by_one_and_again_when_it_is_given_back() {
    let frames = Frames::new(3 * PART);
    let took = || std::iter::from_fn(|| frames.take()).collect::<Vec<usize>>();
    let mut all: Vec<usize> = thread::scope(|scope| {
        let threads = [scope.spawn(took), scope.spawn(took)];
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    all.sort_unstable();
    assert_eq!(all, (0..3 * PART).collect::<Vec<_>>());
    frames.give_back(7);
    assert_eq!(frames.used().count(), 3 * PART - 1);
    assert!(frames.used().all(|at| at != 7));
    assert_eq!(frames.take(), Some(7));
    assert_eq!(frames.take(), None);
}
