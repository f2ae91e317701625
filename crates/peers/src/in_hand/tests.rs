//! Threads that have something in hand, and the looks at them.

use super::*;
use std::sync::mpsc::channel;
use std::thread;

/// Has a thread keep a request in hand while `look` looks.
fn while_in_hand(doing: Doing, look: impl FnOnce(u32)) {
    let ((told, tell), (end, wait)) = (channel(), channel());
    let work = thread::spawn(move || {
        let _in_hand = InHand::take(doing);
        told.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
        let _ended: Result<(), _> = wait.recv();
    });
    look(tell.recv().unwrap());
    end.send(()).unwrap();
    work.join().unwrap();
}

/// What of this thread is seen: tests beside this one have requests of their own in hand.
fn of(looks: &mut Looks, thread: u32, now_ns: u64) -> Option<Unanswered> {
    let seen = looks.0.iter_mut().zip(&PLACES);
    let seen = seen.filter_map(|(seen, place)| seen.again(place, now_ns));
    seen.filter(|it| it.thread == thread).min_by_key(|it| it.since_ns)
}

#[test]
fn what_is_in_hand_is_as_old_as_the_first_look_that_saw_it_and_gone_when_it_is_answered() {
    let mut looks = Looks::new();
    let mut hung = 0;
    while_in_hand(Doing::Open, |thread| {
        let expected = Unanswered { thread, doing: Doing::Open, since_ns: 5 };
        assert_eq!(of(&mut looks, thread, 5), Some(expected));
        assert_eq!(of(&mut looks, thread, 900), Some(expected));
        assert!(looks.look(901).is_some_and(|oldest| oldest.since_ns <= 5));
        hung = thread;
    });
    assert_eq!(of(&mut looks, hung, 1000), None);
}

#[test]
fn a_thread_that_takes_one_request_after_another_has_none_in_hand_for_long() {
    let mut looks = Looks::new();
    let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    for now_ns in 1..100 {
        let _in_hand = InHand::take(Doing::Write);
        assert_eq!(of(&mut looks, thread, now_ns).map(|it| it.since_ns), Some(now_ns));
    }
    assert_eq!(of(&mut looks, thread, 100), None);
}

#[test]
fn a_place_comes_back_with_the_end_of_its_thread() {
    for _ in 0..3 {
        let (end, wait) = channel::<()>();
        let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
        let threads: Vec<_> = (0..WATCHED_MAX / 8)
            .map(|_| {
                let wait = wait.clone();
                thread::spawn(move || {
                    let _in_hand = InHand::take(Doing::Read);
                    let _ended = wait.lock().unwrap().recv();
                })
            })
            .collect();
        drop(end);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
    let taken = PLACES.iter().filter(|place| place.thread.load(Ordering::Relaxed) != 0).count();
    assert!(taken < WATCHED_MAX / 8, "{taken} places are kept");
}

#[test]
fn every_word_is_another() {
    let mut texts: Vec<_> = ALL.iter().map(|doing| doing.text()).collect();
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), ALL.len());
    assert!(ALL.iter().all(|doing| Doing::of(*doing as u64 | 7 << DOING_BITS) == Some(*doing)));
    assert_eq!((Doing::of(7 << DOING_BITS), Doing::of(255)), (None, None));
}
