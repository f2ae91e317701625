//! The checkers themselves: each must notice what it is there for.

use holdfast_io::fake::Mood;
use holdfast_log::OpenError;

use crate::support::{Model, new_log, open_with, payload, region, with_a_lost_write};

/// A disk that acknowledges and loses the write of a drain is caught after the power cut.
#[test]
fn an_acknowledged_write_that_never_arrived_is_noticed() {
    for lost in 0..4 {
        let (files, model) = with_a_lost_write(lost);
        let image = files.after_power_cut_in(Mood::KeepAll, 0);
        match open_with(&image, region()) {
            Ok((log, _)) => {
                let told = model.check(&log, false);
                assert!(told.is_err(), "lost write {lost} was not noticed");
                assert_eq!(lost, 3, "only the last write has no later watermark to prove it");
            }
            Err(OpenError::Corrupt { .. }) => assert!(lost < 3),
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn the_checker_notices_a_missing_an_invented_a_changed_and_a_swapped_frame() {
    let (_files, _region, log) = new_log(2);
    let mut model = Model::default();
    for _ in 0..4 {
        model.put(&log, 100).expect("there is room");
    }
    model.check(&log, true).expect("nothing is wrong yet");
    let mut missing = model.clone();
    let mut more = model.puts[3].clone();
    more.lsn = more.end;
    more.end = more.end.advance(200);
    missing.puts.push(more);
    assert!(missing.check(&log, true).is_err());
    assert!(missing.check(&log, false).is_ok()); // it was never durable
    missing.durable = missing.puts[4].end.get();
    assert!(missing.check(&log, false).is_err());
    let mut invented = model.clone();
    invented.puts.pop();
    assert!(invented.check(&log, false).is_err());
    let mut changed = model.clone();
    changed.puts[1].payload = payload(99, 100);
    assert!(changed.check(&log, false).is_err());
    let mut swapped = model.clone();
    swapped.puts.swap(1, 2);
    assert!(swapped.check(&log, false).is_err());
}
