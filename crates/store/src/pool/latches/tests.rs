//! Latches are counted by thread.

use super::*;

#[test]
fn a_thread_without_latches_may_wait_whatever_others_have() {
    may_wait();
    let one = Counted::new();
    std::thread::scope(|threads| {
        threads.spawn(may_wait).join().expect("it has none");
    });
    drop(one);
    may_wait();
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "nobody waits while he has a latch")]
fn a_thread_that_has_a_latch_must_not_wait() {
    let (_one, other) = (Counted::new(), Counted::new());
    drop(other);
    may_wait();
}
