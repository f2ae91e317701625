//! Checkpoints that returned, of several threads at once, and a power cut at any moment.

use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_io::fake::{FakeFiles, Mood, Random};
use holdfast_wal::{CheckpointError, Lsn, ReplayError};

use crate::support::{WorkLog, factor, new_log, open, records, work, works};

const THREADS: u64 = 4;

/// Threads that append and checkpoint what they know of, until the power goes. What is returned was
/// told to be the checkpoint, and how many checkpoints were made.
fn life(log: &WorkLog, seed: u64, steps: u64) -> (Lsn, u64) {
    let (highest, made) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (highest, made) = (&highest, &made);
            scope.spawn(move || {
                let mut random = Random::new(seed * THREADS + thread);
                for step in 0..steps {
                    let appended = log.append(&work(step as u32));
                    let Ok(ticket) = appended else { return };
                    if random.chance(50) {
                        continue;
                    }
                    match log.checkpoint(ticket.end()) {
                        Ok(()) => {
                            highest.fetch_max(ticket.end().get(), Ordering::SeqCst);
                            made.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(CheckpointError::NotDurable(_)) => return,
                        // The power went while it looked at what the ring had let go of.
                        Err(CheckpointError::Unreadable(ReplayError::Io(_))) => return,
                        Err(error) => panic!("seed {seed}: {error:?}"),
                    }
                }
            });
        }
    });
    (Lsn(highest.into_inner()), made.into_inner())
}

#[test]
fn a_checkpoint_that_returned_is_the_checkpoint_after_a_power_cut_at_any_moment() {
    let (mut images, mut made_in_all) = (0, 0);
    for seed in 0..40 * factor() {
        let (files, log): (FakeFiles, _) = new_log(seed);
        files.cut_power_at(files.operations() + 1 + seed % 150 * 2);
        let (told, made) = life(&log, seed, 120);
        made_in_all += made;
        for mood in [Mood::LoseAll, Mood::KeepAll, Mood::Scatter] {
            let image = files.after_power_cut_in(mood, seed);
            let (log, recovery) = open(&image).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let found = recovery.checkpoint;
            assert!(found >= told, "seed {seed} {mood:?}: told {told}, found {found}");
            records(&log).unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
            images += 1;
        }
    }
    println!("{made_in_all} checkpoints of {THREADS} threads, {images} power cuts: all kept");
    assert!(made_in_all > 100);
}

#[test]
fn a_checkpoint_that_another_thread_has_passed_is_made() {
    let (files, log) = new_log(1);
    let ends: Vec<_> = works(0..2000).iter().map(|w| log.append(w).unwrap().end()).collect();
    log.checkpoint(ends[1500]).unwrap();
    for end in &ends[..1501] {
        log.checkpoint(*end).unwrap();
    }
    drop(log);
    assert_eq!(open(&files).unwrap().1.checkpoint, ends[1500]);
}
