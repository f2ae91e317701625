//! What is read from QEMU's words, and which ratio counts.

use holdfast_figures::{Better, Figure};

use super::{took_s, worst};

#[test]
fn the_seconds_of_a_run_are_found_among_other_words_and_not_in_them() {
    let said = "Sending 8000 read requests, 4096 bytes each, 1 in parallel\n\
                Run completed in 0.274 seconds.\n";
    assert_eq!(took_s(said), Some(0.274));
    assert_eq!(took_s("Run completed in no seconds.\n"), None);
    assert_eq!(took_s("qemu-img: Failed request: Input/output error\n"), None);
}

#[test]
fn the_ratio_with_the_least_median_is_the_one_that_counts() {
    let figure = |id: &str, unit, runs| Figure::of(id, unit, Better::Higher, runs);
    let figures = [
        figure("a rate", "requests/s", vec![0.1]),
        figure("one bad run", "ratio", vec![0.2, 1.4, 1.5]),
        figure("always bad", "ratio", vec![0.8, 0.9, 1.1]),
    ];
    let worst = worst(&figures).unwrap();
    assert_eq!((worst.value, worst.runs.len(), worst.goal), (0.9, 3, Some(1.0)));
    assert!(worst.peer.unwrap().contains("always bad"));
}
