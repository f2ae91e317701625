//! A program that touches the same two names without end is never kept waiting for long.

use crate::fixture::{Fixture, NAME};
use std::fs;
use std::time::{Duration, Instant};

/// No change takes longer: a few windows of the cleaner, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ten minutes where there is time, otherwise enough to fill the ring several times.
fn lasts() -> Duration {
    let factor = std::env::var("HOLDFAST_SEEDS_FACTOR").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(if factor.unwrap_or(1u64) > 1 { 600 } else { 8 })
}

#[test]
fn two_names_renamed_to_and_fro_fill_a_ring_over_and_over_and_never_stop() {
    let mut fixture = Fixture::made();
    fixture.watch_for(lasts() + Duration::from_secs(600));
    fixture.serve();
    let (a, b) = (fixture.mount().join("a"), fixture.mount().join("b"));
    fs::write(&a, "moved").unwrap();
    let (started, mut renames, mut longest) = (Instant::now(), 0u64, Duration::ZERO);
    // In any case often enough to fill the ring twice.
    while started.elapsed() < lasts() || renames < 150_000 {
        let before = Instant::now();
        fs::rename(&a, &b).unwrap();
        fs::rename(&b, &a).unwrap();
        longest = longest.max(before.elapsed());
        renames += 2;
    }
    assert!(longest < PATIENCE, "a rename took {longest:?}");
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("a")).unwrap(), b"moved");
    assert!(!fixture.home().join("b").exists());
}
