//! The moments of kills.
//!
//! Promise: as a report's seed repeats them.
//! Never: kills.

use super::*;

#[test]
fn a_seed_repeats_the_moments_of_every_victim_and_no_two_victims_share_them() {
    let of = |seed, victim| -> Vec<Duration> {
        let mut moments = streams(seed).nth(victim).unwrap();
        (0..20).map(|_| moments.next()).collect()
    };
    assert_eq!(of(7, 1), of(7, 1));
    assert_ne!(of(7, 0), of(7, 1));
    assert!(of(7, 2).iter().all(|it| KILL_AFTER_MS.contains(&(it.as_millis() as u64))));
}
