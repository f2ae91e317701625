//! A log that is made again from memory, and whoever does it dies at every step.

use std::path::Path;
use std::sync::Arc;

use holdfast_io::Files;
use holdfast_io::fake::{FakeFiles, Mood, Random};
use holdfast_log::{CreateError, Log, RemakeError};
use holdfast_memory::{Medium, Region, RegionSpec};

use crate::support::{
    CONFIG, IDENTITY, Model, RING_BYTES, open_shared, open_with, region, replay, seeds, step,
};

/// A log that was killed, and whose files are gone: its memory, and what it has to have.
fn left_in_memory(medium: &Medium, seed: u64) -> Model {
    let mut random = Random::new(seed);
    let (files, mut model) = (FakeFiles::new(seed), Model::default());
    Log::create(&files, IDENTITY, &CONFIG).expect("an empty disk takes a log");
    let spec = RegionSpec { ring_bytes: RING_BYTES, roster_bytes: 4096, identity: IDENTITY };
    let ring = Arc::new(Region::create(medium, &spec).expect("there is room"));
    let (log, _) = open_shared(&files, &ring).expect("a new log opens");
    for _ in 0..random.below(200) {
        step(&mut model, &log, &mut random).expect("the disk is sound");
    }
    model
}

/// Makes it again, as often as it takes, and opens it.
fn made_again(files: &FakeFiles, medium: &Medium, model: &mut Model) -> Result<(), String> {
    let seen = Region::observe(medium).expect("it is a region");
    match Log::remake(files, &seen, &CONFIG) {
        Err(RemakeError::Place(CreateError::Exists)) if Log::identity_of(files).is_ok() => {}
        made => made.map_err(|error| format!("made again: {error}"))?,
    }
    drop(seen);
    let ring = Arc::new(Region::attach(medium).expect("it is a region"));
    let (log, _) = open_shared(files, &ring).map_err(|error| format!("opened: {error}"))?;
    model.check(&log, true)?;
    drop((log, ring));
    let alone = files.after_power_cut_in(Mood::LoseAll, 0);
    let (log, _) = open_with(&alone, region()).map_err(|error| format!("alone: {error}"))?;
    model.check(&log, false)
}

fn dies_at_every_step(seed: u64) -> Result<u64, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let medium = Medium::File { path: folder.path().join("region") };
    let mut model = left_in_memory(&medium, seed);
    let kept = std::fs::read(folder.path().join("region")).expect("it is a file");
    let whole = FakeFiles::new(seed);
    let seen = Region::observe(&medium).expect("it is a region");
    Log::remake(&whole, &seen, &CONFIG).map_err(|error| format!("undisturbed: {error}"))?;
    drop(seen);
    for at in 1..=whole.operations() {
        let files = FakeFiles::new(seed);
        files.cut_power_at(at);
        let seen = Region::observe(&medium).expect("it is a region");
        let died = Log::remake(&files, &seen, &CONFIG);
        assert!(died.is_err(), "step {at} of {} was not taken", whole.operations());
        drop(seen);
        for mood in [Mood::KeepAll, Mood::LoseAll, Mood::Subset] {
            std::fs::write(folder.path().join("region"), &kept).expect("it is a file");
            let image = files.after_power_cut_in(mood, at);
            made_again(&image, &medium, &mut model)
                .map_err(|error| format!("died at {at}, {mood:?}: {error}"))?;
        }
        std::fs::write(folder.path().join("region"), &kept).expect("it is a file");
    }
    Ok(whole.operations())
}

#[test]
fn a_log_that_is_made_again_from_memory_has_everything_wherever_its_maker_died() {
    let mut steps = 0;
    for seed in seeds(6) {
        steps += dies_at_every_step(seed).unwrap_or_else(|error| {
            panic!("{error}; {}", replay("a_log_that_is_made_again_from_memory", seed))
        });
    }
    assert!(steps > 60, "{steps} steps are few");
}

#[test]
fn a_log_that_is_there_is_not_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let medium = Medium::File { path: folder.path().join("region") };
    let _model = left_in_memory(&medium, 1);
    let files = FakeFiles::new(1);
    Log::create(&files, IDENTITY, &CONFIG).expect("an empty disk takes a log");
    let seen = Region::observe(&medium).expect("it is a region");
    let refused = Log::remake(&files, &seen, &CONFIG);
    assert!(matches!(refused, Err(RemakeError::Place(CreateError::Exists))), "{refused:?}");
}

#[test]
fn memory_that_never_was_the_log_makes_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let medium = Medium::File { path: folder.path().join("region") };
    let spec = RegionSpec { ring_bytes: RING_BYTES, roster_bytes: 4096, identity: IDENTITY };
    drop(Region::create(&medium, &spec).expect("there is room"));
    let seen = Region::observe(&medium).expect("it is a region");
    let files = FakeFiles::new(1);
    let refused = Log::remake(&files, &seen, &CONFIG);
    assert!(matches!(refused, Err(RemakeError::Memory(_))), "{refused:?}");
    assert!(files.read_dir(Path::new("")).expect("a directory").is_empty());
}
