//! A sync that failed is not forgotten by opening the log once more before the power goes.

use holdfast_io::fake::{EIO, Effect, FakeFiles, Fault, Mood, Operation, Random};

use crate::support::{factor, new_log, open, records, work, works};

/// What the disk does at a failed sync.
const EFFECTS: [Effect; 2] = [Effect::DropsDirty, Effect::Errno(EIO)];

/// Appends until something fails, or so many times; how many records are acknowledged.
fn append(log: &crate::support::WorkLog, from: u32, more: u32) -> u32 {
    let acked = |id: &u32| log.append_durable(&work(*id)).is_ok();
    (from..from + more).take_while(acked).count() as u32 + from
}

/// The records of a log, which must be the first so many.
fn count(log: &crate::support::WorkLog, told: &str) -> u32 {
    let found = records(log).unwrap();
    assert!(found == works(0..found.len() as u32), "{told}");
    found.len() as u32
}

/// A sync fails somewhere; the log is opened again in the same boot, as often as that takes, and
/// goes on; then the power goes.
fn fail_and_go_on(seed: u64) -> (u32, FakeFiles, String) {
    let mut random = Random::new(seed);
    let (files, log) = new_log(seed);
    let effect = EFFECTS[random.below(2) as usize];
    let mut acked = append(&log, 0, 1 + random.below(40) as u32);
    let told = format!("seed {seed}: HOLDFAST_SEED={seed} cargo test -p holdfast-wal failed_syncs");
    for _ in 0..1 + random.below(3) {
        let skip = random.below(6);
        files.fail(Fault { operation: Operation::SyncData, skip, effect });
    }
    acked = append(&log, acked, 20);
    drop(log);
    let log = loop {
        if let Ok((log, _)) = open(&files) {
            break log;
        }
        assert!(files.faults_fired() > 0, "{told}");
    };
    files.forget_faults();
    let seen = count(&log, &told);
    assert!(seen >= acked, "{told}: {seen} of {acked}");
    let acked = append(&log, seen, 10);
    (acked.max(seen), files, told)
}

#[test]
fn what_is_acknowledged_after_a_failed_sync_and_a_second_opening_survives_a_power_cut() {
    let mut right = 0;
    for seed in 0..60 * factor() {
        let (acked, files, told) = fail_and_go_on(seed);
        for mood in [Mood::LoseAll, Mood::KeepAll, Mood::Scatter] {
            let image = files.after_power_cut_in(mood, seed);
            let opened = open(&image);
            let (log, _) = opened.unwrap_or_else(|error| panic!("{mood:?} {error}; {told}"));
            let found = count(&log, &told);
            assert!(found >= acked, "{mood:?}: {found} of {acked}; {told}");
            right += 1;
        }
    }
    println!("{right} directories after a failed sync, an opening and a power cut: all right");
}
