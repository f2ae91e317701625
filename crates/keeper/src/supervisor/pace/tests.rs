//! The pauses between attempts.

use super::{FIRST, OFTEN, Pace, SELDOM};
use std::time::{Duration, Instant};

#[test]
fn the_pauses_grow_up_to_their_bound_and_there_is_always_another_attempt() {
    for longest in [OFTEN, SELDOM] {
        let (mut pace, mut now, mut last) = (Pace::default(), Instant::now(), Duration::ZERO);
        assert!(pace.is_due(now));
        for attempt in 0..100 {
            let pause = pace.attempt(now, longest);
            assert!((FIRST.min(longest)..=longest).contains(&pause) && pause >= last, "{attempt}");
            assert!(!pace.is_due(now) && pace.is_due(now + pause), "{attempt}");
            (now, last) = (now + pause, pause);
        }
        assert_eq!(last, longest);
    }
}
