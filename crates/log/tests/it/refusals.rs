//! What is not opened or made, and why.

use std::path::Path;
use std::sync::Arc;

use holdfast_io::fake::{FakeFiles, Mood};
use holdfast_io::{Files, OpenHow};
use holdfast_log::{ConfigFault, CreateError, FileFault, Log, LogConfig, OpenError};

use crate::support::{
    CONFIG, IDENTITY, Model, RING_BYTES, new_log, open_shared, open_with, region, region_of,
};

const OTHER: [u8; 16] = *b"some other log!!";

fn image(files: &FakeFiles) -> FakeFiles {
    files.after_power_cut_in(Mood::KeepAll, 0)
}

#[test]
fn a_directory_without_a_log_is_not_opened() {
    let refused = open_with(&FakeFiles::new(1), region());
    assert!(matches!(refused, Err(OpenError::NoLog)), "{refused:?}");
}

#[test]
fn a_log_is_not_made_over_another_or_over_foreign_files() {
    let (files, _region, _log) = new_log(1);
    let refused = Log::create(&files, OTHER, &CONFIG);
    assert!(matches!(refused, Err(CreateError::Exists)), "{refused:?}");
    let files = FakeFiles::new(1);
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    files.open(Path::new("thesis.tex"), how).expect("a file can be made");
    let refused = Log::create(&files, OTHER, &CONFIG);
    assert!(matches!(refused, Err(CreateError::NotEmpty { .. })), "{refused:?}");
}

#[test]
fn sizes_that_cannot_be_are_refused_by_name() {
    for segment_bytes in [0, 4096, (64 << 10) + 1, 3 << 20, 2 << 30] {
        let refused =
            Log::create(&FakeFiles::new(1), OTHER, &LogConfig { segment_bytes, ..CONFIG });
        let fault = ConfigFault::SegmentBytes { found: segment_bytes };
        assert!(matches!(refused, Err(CreateError::Config(found)) if found == fault));
    }
    for segments in [0, 1, 4097] {
        let refused = Log::create(&FakeFiles::new(1), OTHER, &LogConfig { segments, ..CONFIG });
        let fault = ConfigFault::Segments { found: segments };
        assert!(matches!(refused, Err(CreateError::Config(found)) if found == fault));
    }
}

#[test]
fn a_region_of_another_log_is_refused() {
    let (files, _region, _log) = new_log(1);
    let refused = open_with(&files, region_of(OTHER, RING_BYTES));
    match refused {
        Err(OpenError::ForeignRegion { region, log }) => {
            assert_eq!((region, log), (OTHER, IDENTITY))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_ring_that_cannot_hold_two_segments_or_the_frames_is_refused() {
    let (files, _region, log) = new_log(1);
    let refused = open_with(&image(&files), region_of(IDENTITY, 64 << 10));
    assert!(matches!(refused, Err(OpenError::RingTooSmall { .. })), "{refused:?}");
    let mut model = Model::default();
    for _ in 0..70 {
        model.put(&log, 3000).expect("there is room");
        log.commit(log.marks().tail).expect("the disk is sound");
        if log.marks().tail.get() > (130 << 10) {
            break;
        }
    }
    let refused = open_with(&image(&files), region_of(IDENTITY, 128 << 10));
    assert!(matches!(refused, Err(OpenError::RingTooSmall { .. })), "{refused:?}");
}

#[test]
fn a_missing_segment_is_named() {
    let (files, _region, log) = new_log(1);
    let mut model = Model::default();
    while log.marks().durable.get() <= 64 << 10 {
        model.put(&log, 3000).expect("there is room");
        log.commit(log.marks().tail).expect("the disk is sound");
    }
    for name in ["segment-00000000", "segment-00000001"] {
        let image = image(&files);
        image.remove_file(Path::new(name)).expect("it is there");
        match open_with(&image, region()) {
            Err(OpenError::MissingSegment { name: told }) => assert_eq!(told, name),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_missing_segment_that_can_have_had_nothing_is_made_again_and_any_other_is_refused() {
    let files = FakeFiles::new(1);
    let config = LogConfig { segments: 3, ..CONFIG };
    Log::create(&files, IDENTITY, &config).expect("an empty disk takes a log");
    let (log, _) = open_with(&files, region()).expect("a new log opens");
    let mut model = Model::default();
    let name = Path::new("segment-00000002");
    loop {
        model.put(&log, 3000).expect("there is room");
        log.commit(log.marks().tail).expect("the disk is sound");
        model.note(&log);
        let image = image(&files);
        image.remove_file(name).expect("it is there");
        let looked = Log::verify(&image, &mut |_| {});
        let opened = open_with(&image, region());
        assert_eq!(looked.is_ok(), opened.is_ok(), "{looked:?} {opened:?}");
        let Ok((log, _)) = opened else { break };
        model.check(&log, false).expect("all that was there");
        let mut model = model.clone();
        while log.marks().durable.get() <= 144 << 10 {
            model.put(&log, 3000).expect("there is room");
            log.commit(log.marks().tail).expect("the file is made again");
        }
        model.note(&log);
        drop(log);
        let (log, _) = open_with(&image, region()).expect("it is there");
        model.check(&log, false).expect("all of it");
    }
    let durable = log.marks().durable;
    assert!(durable.get() >= 64 << 10, "behind one that is there and has nothing: {durable}");
}

#[test]
fn a_segment_of_another_log_or_of_the_wrong_length_is_refused() {
    let (files, _region, _log) = new_log(1);
    let other = FakeFiles::new(2);
    Log::create(&other, OTHER, &CONFIG).expect("an empty disk takes a log");
    let mut block = vec![0; 4096];
    let name = Path::new("segment-00000001");
    let theirs = other.open(name, OpenHow::default()).expect("it is there");
    theirs.read_full_at(&mut block, 0).expect("the disk is sound");
    let how = OpenHow { write: true, ..OpenHow::default() };
    let foreign = image(&files);
    let ours = foreign.open(name, how).expect("it is there");
    ours.write_all_at(&block, 0).expect("the disk is sound");
    let refused = open_with(&foreign, region());
    let fault = FileFault::Foreign;
    assert!(matches!(refused, Err(OpenError::File { fault: found, .. }) if found == fault));
    let short = image(&files);
    short.open(name, how).expect("it is there").set_len(8192).expect("the disk is sound");
    let refused = open_with(&short, region());
    let fault = FileFault::Length { found: 8192 };
    assert!(matches!(refused, Err(OpenError::File { fault: found, .. }) if found == fault));
    let long = image(&files);
    let file = long.open(name, how).expect("it is there");
    let length = file.metadata().expect("it is open").size_bytes;
    file.write_all_at(b"x", length).expect("the disk is sound");
    let refused = open_with(&long, region());
    let fault = FileFault::TooLong { found: length + 1, length };
    assert!(matches!(refused, Err(OpenError::File { fault: found, .. }) if found == fault));
    // What is in it is as it was: without what it has too much, it is the log again.
    file.set_len(length).expect("the disk is sound");
    open_with(&long, region()).expect("it has its length again");
}

#[test]
fn another_version_is_told_apart_from_damage() {
    let (files, _region, _log) = new_log(1);
    let how = OpenHow { write: true, ..OpenHow::default() };
    for name in ["catalogue", "catalogue.copy"] {
        let file = files.open(Path::new(name), how).expect("it is there");
        file.write_all_at(&7u32.to_le_bytes(), 4).expect("the disk is sound");
    }
    let refused = open_with(&files, region());
    assert!(matches!(refused, Err(OpenError::OtherVersion { found: 7, known: 3 })), "{refused:?}");
}

#[test]
fn a_log_is_opened_once_with_a_region_and_again_when_it_is_gone() {
    let (files, ring, log) = new_log(1);
    let refused = open_shared(&files, &ring);
    assert!(matches!(refused, Err(OpenError::InUse)), "{refused:?}");
    drop(log);
    open_shared(&files, &ring).expect("the first one is gone");
}

#[test]
fn a_region_left_behind_while_the_log_went_on_is_stale() {
    let (files, old, log) = new_log(1);
    log.append(1, &[b"only in the old ring"]).expect("there is room");
    drop(log);
    let (log, _) = open_with(&files, region()).expect("a new region opens from the segments");
    drop(log);
    let refused = open_shared(&files, &old);
    assert!(matches!(refused, Err(OpenError::StaleRegion { .. })), "{refused:?}");
    assert_eq!(Arc::strong_count(&old), 1);
}
