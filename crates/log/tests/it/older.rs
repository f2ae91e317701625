//! A copy of a region is put in the place of the region that it was taken from.

use std::fs;
use std::sync::Arc;

use holdfast_io::fake::{FakeFiles, Random};
use holdfast_log::{Log, Lsn, OpenError};
use holdfast_memory::{Medium, Region, RegionSpec};

use crate::support::{CONFIG, IDENTITY, Model, RING_BYTES, open_shared, replay, seeds, step};

/// What became of a copy: the log that it was opened as, or that it was refused as older.
enum Became {
    Opened(Lsn),
    Refused,
}

/// A log of which the region is copied at some moment. What the device had at the end, and what
/// became of the copy.
fn copied(seed: u64) -> (Lsn, Became) {
    let folder = tempfile::tempdir().expect("a folder");
    let medium = |name: &str| Medium::File { path: folder.path().join(name) };
    let mut random = Random::new(seed);
    let (files, mut model) = (FakeFiles::new(seed), Model::default());
    Log::create(&files, IDENTITY, &CONFIG).expect("an empty disk takes a log");
    let spec = RegionSpec { ring_bytes: RING_BYTES, roster_bytes: 4096, identity: IDENTITY };
    let region = Arc::new(Region::create(&medium("region"), &spec).expect("there is room"));
    let (log, _) = open_shared(&files, &region).expect("a new log opens");
    for _ in 0..random.below(80) {
        step(&mut model, &log, &mut random).expect("the disk is sound");
    }
    fs::copy(folder.path().join("region"), folder.path().join("copy")).expect("there is room");
    for _ in 0..random.below(80) {
        step(&mut model, &log, &mut random).expect("the disk is sound");
    }
    let durable = log.marks().durable;
    drop((log, region));
    let copy = Region::attach(&medium("copy")).expect("it is a region");
    match open_shared(&files, &Arc::new(copy)) {
        Ok((_, recovery)) => (durable, Became::Opened(recovery.tail)),
        Err(OpenError::OlderRegion { region, log }) => {
            assert!(log > Lsn(region.get().min(durable.get())), "{region:?} {log:?} {durable:?}");
            (durable, Became::Refused)
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn nothing_that_the_device_has_is_cut_off_by_a_copy_of_the_region_from_earlier() {
    let (mut opened, mut refused) = (0, 0);
    for seed in seeds(300) {
        match copied(seed) {
            (durable, Became::Opened(tail)) => {
                let told = replay("nothing_that_the_device_has_is_cut_off", seed);
                assert!(tail >= durable, "{durable:?} was durable, {tail:?} is left; {told}");
                opened += 1;
            }
            (_, Became::Refused) => refused += 1,
        }
    }
    let is_mixed = opened > 0 && refused > 0;
    assert!(is_mixed || opened + refused == 1, "{opened} opened, {refused} refused");
}
