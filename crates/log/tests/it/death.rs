//! The process dies and the region survives: everything stable is there.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_io::fake::{EIO, Effect, FakeFiles, Fault, Mood, Operation, Random};
use holdfast_log::{Log, Source, words};
use holdfast_memory::Region;

use crate::support::{
    CONFIG, Failure, IDENTITY, Model, new_log, open_shared, open_with, region, replay, seeds, step,
};

/// What the next process makes of a region. That the power was cut, a dead process did not learn.
fn reattached(region: Arc<Region>) -> Arc<Region> {
    let mut region = Arc::into_inner(region).expect("the log is gone");
    region.word(words::POISON).store(0, Ordering::Relaxed);
    region.reattach().expect("the marks are in order");
    Arc::new(region)
}

/// What becomes of the region between two lives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ring {
    Survives,
    Lost,
}

fn life(
    files: &FakeFiles,
    region: &Arc<Region>,
    model: &mut Model,
    (ring, seed): (Ring, u64),
) -> Result<(), Failure> {
    let (log, recovery) = open_shared(files, region).map_err(Failure::Open)?;
    // A new region may be one whose filling was cut short, so it says nothing about the source.
    assert!(recovery.source == Source::Segments || ring == Ring::Survives);
    let all = ring == Ring::Survives && recovery.source == Source::Ring;
    model.check(&log, all).map_err(Failure::Wrong)?;
    model.adopt(&log, &recovery);
    let mut random = Random::new(seed);
    for _ in 0..50 {
        step(model, &log, &mut random)?;
    }
    log.close().map_err(Failure::Commit)
}

/// Six lives, each ended by a power cut. The page cache survives the process alone; with a region
/// that survives the power as well, the disk may be in any mood.
fn lives(seed: u64) -> (u64, u64) {
    let mut random = Random::new(seed);
    let mut files = FakeFiles::new(seed);
    Log::create(&files, IDENTITY, &CONFIG).expect("an empty disk takes a log");
    let (mut region, mut ring) = (Arc::new(region()), Ring::Lost);
    let mut model = Model::default();
    let (mut survived, mut lost) = (0, 0);
    for _ in 0..6 {
        files.cut_power_at(files.operations() + 1 + random.below(60));
        let outcome = life(&files, &region, &mut model, (ring, random.any()));
        let cut = outcome.as_ref().err().is_none_or(Failure::is_power_cut);
        assert!(cut, "{outcome:?}; {}", replay("what_was_appended", seed));
        files = match random.chance(50) {
            true => files.after_power_cut_in(Mood::KeepAll, random.any()),
            false => files.after_power_cut(random.any()),
        };
        if random.chance(75) {
            (region, ring) = (reattached(region), Ring::Survives);
            survived += 1;
        } else {
            (region, ring) = (Arc::new(crate::support::region()), Ring::Lost);
            lost += 1;
        }
    }
    (survived, lost)
}

#[test]
fn what_was_appended_is_there_after_a_death_at_any_io() {
    let (mut survived, mut lost) = (0, 0);
    for seed in seeds(300) {
        let counts = lives(seed);
        survived += counts.0;
        lost += counts.1;
    }
    println!("{survived} deaths with the region alive, {lost} without");
}

#[test]
fn frames_that_were_only_in_a_cache_are_synced_before_they_count_as_durable() {
    let (files, ring, log) = new_log(4);
    let mut model = Model::default();
    model.put(&log, 3000).expect("there is room");
    let effect = Effect::Errno(EIO);
    files.fail(Fault { operation: Operation::SyncData, skip: 0, effect });
    log.commit(log.marks().tail).expect_err("the sync fails");
    drop((log, ring));
    let (log, recovery) = open_with(&files, region()).expect("the cache has everything");
    assert!(recovery.durable >= model.puts[0].end);
    model.note(&log);
    let image = files.after_power_cut_in(Mood::LoseAll, 0);
    let (log, _) = open_with(&image, region()).expect("the disk is sound");
    model.check(&log, false).expect("what counted as durable");
}

#[test]
fn a_log_opens_again_and_again_without_growing_out_of_its_ring() {
    let (files, mut ring, log) = new_log(1);
    let mut model = Model::default();
    while model.put(&log, 5000).is_ok() {
        log.commit(log.marks().tail).expect("the disk is sound");
    }
    drop(log);
    for _ in 0..400 {
        ring = reattached(ring);
        let (log, _) = open_shared(&files, &ring).expect("a full ring opens, too");
        log.drain().expect("there is always room for a seal");
        model.check(&log, true).expect("all of it");
        drop(log);
    }
    ring = reattached(ring);
    let (log, _) = open_shared(&files, &ring).expect("a full ring opens, too");
    model.check(&log, true).expect("all of it");
    model.apply(&log).expect("the reader can always mark");
    model.put(&log, 5000).expect("and then there is room");
}

#[test]
fn a_mark_counts_even_if_its_process_died_before_the_release() {
    let (files, mut ring, log) = new_log(3);
    let mut model = Model::default();
    while model.put(&log, 5000).is_ok() {
        log.commit(log.marks().tail).expect("the disk is sound");
    }
    let mut log = Some(log);
    for _ in 0..50 {
        let dying = log.take().expect("it is put back below");
        let durable = dying.marks().durable;
        dying.mark(durable).expect("the reader can always mark");
        dying.drain().expect("the disk is sound");
        drop(dying);
        ring = reattached(ring);
        let (next, recovery) = open_shared(&files, &ring).expect("the ring is whole");
        assert_eq!(recovery.released, durable);
        log = Some(next);
    }
}

#[test]
fn a_death_while_the_ring_is_filled_again_starts_over_from_the_segments() {
    let (files, first, log) = new_log(2);
    let mut model = Model::default();
    model.put(&log, 20_000).expect("there is room");
    log.commit(log.marks().tail).expect("the disk is sound");
    drop((log, first));
    let ring = Arc::new(region());
    let (log, _) = open_shared(&files, &ring).expect("it was committed");
    drop(log);
    // As a death before the last step of filling leaves it.
    ring.word(words::GENERATION).store(0, Ordering::Relaxed);
    let ring = reattached(ring);
    let (log, recovery) = open_shared(&files, &ring).expect("the segments are whole");
    assert_eq!(recovery.source, Source::Segments);
    model.check(&log, true).expect("all of it");
}

/// As many openings as bounds of generations are moved a few times in, some of them cut short. How
/// many those were.
fn openings(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let (mut files, mut ring, log) = new_log(seed);
    let mut model = Model::default();
    model.put(&log, 3000).expect("there is room");
    drop(log);
    let mut died = 0;
    for _ in 0..300 {
        ring = reattached(ring);
        files.cut_power_at(files.operations() + 1 + random.below(8));
        match open_shared(&files, &ring) {
            Ok((log, _)) => model.check(&log, true).expect("the region is alive"),
            Err(error) => {
                let why = Failure::Open(error);
                assert!(why.is_power_cut(), "{why:?}; {}", replay("a_death_in_an_opening", seed));
                died += 1;
            }
        }
        files = files.after_power_cut_in(Mood::KeepAll, random.any());
    }
    died
}

#[test]
fn a_death_in_an_opening_keeps_nobody_from_the_next() {
    let died: u64 = seeds(8).into_iter().map(openings).sum();
    assert!(died > 0, "no opening was cut short");
    println!("{died} openings were cut short");
}
