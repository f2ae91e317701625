//! What is said of a volume's memory is so: what was drained, how much may be lost, how much room
//! there is; and memory of another size than before is told from memory that is gone.

use crate::fixture::{Fixture, NAME, way};
use std::fs;

/// A volume over 32 MiB, killed with a file that only memory may have.
fn killed_over_32_mib() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.reconfigure("8MiB", "32MiB");
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    fixture.kill_all();
    fixture
}

#[test]
fn memory_that_is_elsewhere_is_named_with_what_it_holds_and_is_not_said_to_be_drained() {
    if way() == "queue" {
        return; // the server has the log, and a front end that cannot reach it drains nothing
    }
    let fixture = killed_over_32_mib();
    let (region, elsewhere) = (fixture.region.clone(), fixture.block_cache());
    let before = fs::read(&region).unwrap();
    let text = fs::read_to_string(fixture.config()).unwrap();
    let moved = text.replace(&format!("{region:?}"), &format!("{elsewhere:?}"));
    fixture.configure(&moved);
    let refused = fixture.holdfast(&["serve"]);
    let holds = format!("its memory {} still holds", region.display());
    refused.expect(6, &["set memory.path", &holds]);
    assert!(!refused.err.contains("drained"), "{refused:?}");
    assert!(fs::read(&region).unwrap() == before, "the region is as it was");
    fs::remove_file(&region).unwrap();
    let refused = fixture.holdfast(&["serve"]);
    refused.expect(6, &["is gone, although the system has not restarted"]);
    assert!(!refused.err.contains("drained"), "{refused:?}");
}

#[test]
fn memory_that_is_too_small_is_not_made_and_enlarging_it_helps_as_the_message_says() {
    let fixture = killed_over_32_mib();
    fs::remove_file(&fixture.region).unwrap();
    fixture.holdfast(&["volume", "accept", NAME, "--memory-lost"]).succeeded();
    fixture.reconfigure("8MiB", "8MiB");
    for words in [&["umount", NAME][..], &["volume", "check", NAME], &["umount", NAME]] {
        fixture.holdfast(words).expect(2, &["needs 16777216", "enlarge memory.size"]);
        assert!(!fixture.region.exists(), "{words:?} makes memory that is of no use");
    }
    fixture.reconfigure("8MiB", "16MiB");
    fixture.holdfast(&["volume", "check", NAME]).succeeded();
    fixture.holdfast(&["umount", NAME]).succeeded();
}

#[test]
fn what_may_be_lost_and_how_full_memory_is_go_by_the_memory_that_there_is() {
    let mut fixture = killed_over_32_mib();
    fixture.reconfigure("8MiB", "16MiB");
    let is_32_mib = |fixture: &Fixture| {
        let status = fixture.status();
        assert_eq!(status["bound_bytes"], 32 << 20, "{status}");
        let ratio = status["unapplied_bytes"].as_f64().unwrap() / f64::from(32 << 20);
        assert_eq!(status["unapplied_ratio"].as_f64(), Some(ratio), "{status}");
    };
    is_32_mib(&fixture);
    fixture.serve();
    is_32_mib(&fixture);
    fixture.kill_all();
    fs::remove_file(&fixture.region).unwrap();
    let words = ["is gone, although the system has not restarted", "at most 32.0 MiB"];
    fixture.holdfast(&["umount", NAME]).expect(6, &words);
    fixture.holdfast(&["volume", "check", NAME]).expect(6, &words);
}
