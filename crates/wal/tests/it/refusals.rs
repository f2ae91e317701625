//! Bad input gets an error of its own, and nothing is lost.

use std::path::Path;
use std::sync::Arc;

use holdfast_io::fake::{FakeClock, FakeEntropy, FakeFiles};
use holdfast_io::{Files, OpenHow};
use holdfast_wal::format::{Json, MessagePack, Raw};
use holdfast_wal::{
    AppendError, ConfigFault, CreateError, FileFault, LabelFault, Log, OpenError, Place, Record,
};
use serde::{Deserialize, Serialize};

use crate::support::{SMALL, Work, make_old, new_log, open, place, records, work, works};

/// A log of three work items, closed.
fn closed() -> FakeFiles {
    let (files, log) = new_log(1);
    log.append_all(&works(0..3)).unwrap();
    log.close().unwrap();
    files
}

/// Opens as `R` and `F`, and nothing more.
fn open_as<R: Record, F: holdfast_wal::format::Format<R>>(
    files: &FakeFiles,
) -> Result<(), OpenError> {
    Log::<R, F>::open_at(place(files), &SMALL).map(drop)
}

/// The log is as `closed` left it.
fn is_whole(files: &FakeFiles) {
    assert_eq!(records(&open(files).unwrap().0).unwrap(), works(0..3));
}

#[derive(Serialize, Deserialize)]
struct Later(Work);

impl Record for Later {
    const NAME: &'static str = Work::NAME;
    const VERSION: u32 = 2;
}

#[test]
fn another_record_type_is_refused() {
    let files = closed();
    let refused = open_as::<String, MessagePack>(&files);
    let Err(OpenError::OtherRecord { found, wanted }) = refused else { panic!("{refused:?}") };
    assert_eq!((found.as_str(), wanted.as_str()), ("paper.record", "text"));
    is_whole(&files);
}

#[test]
fn another_version_of_the_record_type_is_refused() {
    let files = closed();
    let refused = open_as::<Later, MessagePack>(&files);
    assert!(
        matches!(refused, Err(OpenError::OtherRecordVersion { found: 1, known: 2 })),
        "{refused:?}"
    );
    is_whole(&files);
}

#[test]
fn another_format_is_refused() {
    let files = closed();
    let refused = open_as::<Work, Json>(&files);
    let Err(OpenError::OtherFormat { found, wanted }) = refused else { panic!("{refused:?}") };
    assert_eq!((found.as_str(), wanted.as_str()), ("message-pack", "json"));
    is_whole(&files);
}

#[test]
fn another_version_of_the_log_is_refused() {
    for (names, bit) in [(&["label"][..], 1), (&["catalogue", "catalogue.copy"], 2)] {
        let files = closed();
        if names == ["label"] {
            make_old(&files);
        }
        let flip = |name: &&str| files.flip_bit(name.as_ref(), 4 * 8 + bit).unwrap();
        names.iter().for_each(flip);
        let refused = open_as::<Work, MessagePack>(&files);
        assert!(
            matches!(refused, Err(OpenError::OtherVersion { found: 3 | 6, known: 1..=3 })),
            "{names:?}: {refused:?}"
        );
        names.iter().for_each(flip);
        is_whole(&files);
    }
}

#[test]
fn pitfall_20_a_log_that_is_open_is_not_opened_twice() {
    let directory = tempfile::tempdir().unwrap();
    let (log, _) = Log::<Work, MessagePack>::open_or_create(directory.path(), &SMALL).unwrap();
    let twice = || Log::<Work, MessagePack>::open(directory.path(), &SMALL).map(drop);
    assert!(matches!(twice(), Err(OpenError::InUse)));
    let made = Log::<Work, MessagePack>::create(directory.path(), &SMALL);
    assert!(matches!(made, Err(CreateError::InUse)), "{made:?}");
    let tail = log.tail(log.stat().end);
    drop(log);
    assert!(matches!(twice(), Err(OpenError::InUse)), "a tail still reads");
    drop(tail);
    twice().unwrap();
}

#[test]
fn an_oversized_record_or_set_is_refused_and_the_log_goes_on() {
    let (_files, log) = new_log(2);
    let max = log.stat().set_bytes_max as usize;
    let huge = Work { id: 1, comment: "x".repeat(max), objects: Vec::new() };
    let refused = log.append(&huge);
    assert!(matches!(refused, Err(AppendError::TooLarge { .. })), "{refused:?}");
    let refused = log.append_all(&works(0..5000));
    assert!(matches!(refused, Err(AppendError::TooLarge { .. })), "{refused:?}");
    let refused = log.append_all(&vec![work(0); 70_000]);
    assert!(matches!(refused, Err(AppendError::TooMany { records: 70_000 })), "{refused:?}");
    // With what MessagePack adds, this is as long as can be.
    let long = Work { id: 1, comment: "x".repeat(max - 6), objects: Vec::new() };
    log.append_durable(&long).unwrap();
    assert_eq!(records(&log).unwrap(), [long]);
}

/// A record that no format can write.
#[derive(Deserialize)]
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("not today"))
    }
}

impl Record for Unwritable {
    const NAME: &'static str = "unwritable";
}

#[test]
fn a_record_that_cannot_be_written_leaves_nothing_behind() {
    let files = FakeFiles::new(3);
    Log::<Unwritable, Json>::create_at(&place(&files), &SMALL).unwrap();
    let (log, _) = Log::<Unwritable, Json>::open_at(place(&files), &SMALL).unwrap();
    let before = log.stat().end;
    let refused = log.append_all(&[Unwritable, Unwritable]);
    let Err(AppendError::Unencodable(reason)) = refused else { panic!("{refused:?}") };
    assert_eq!(reason.to_string(), "not today");
    assert_eq!(log.stat().end, before);
}

#[test]
fn a_closed_log_takes_nothing_more_and_can_be_read() {
    let (_files, log) = new_log(4);
    log.append(&work(0)).unwrap();
    log.close().unwrap();
    assert!(matches!(log.append(&work(1)), Err(AppendError::Closed)));
    assert_eq!(records(&log).unwrap(), [work(0)]);
    log.close().unwrap();
}

#[test]
fn pitfall_11_a_missing_segment_is_named() {
    let files = closed();
    files.rename("segment-00000000".as_ref(), "elsewhere".as_ref()).unwrap();
    let refused = open_as::<Work, MessagePack>(&files);
    let Err(OpenError::MissingSegment { name }) = refused else { panic!("{refused:?}") };
    assert_eq!(name, "segment-00000000");
    files.rename("elsewhere".as_ref(), "segment-00000000".as_ref()).unwrap();
    is_whole(&files);
}

/// Copies a file from one modelled disk to another.
fn copy(from: &FakeFiles, to: &FakeFiles, name: &str) {
    let mut bytes = vec![0; 1 << 20];
    let file = from.open(name.as_ref(), OpenHow::default()).unwrap();
    let length = file.read_full_at(&mut bytes, 0).unwrap();
    let how = OpenHow { write: true, ..Default::default() };
    to.open(name.as_ref(), how).unwrap().write_all_at(&bytes[..length], 0).unwrap();
}

/// A closed log with another identity.
fn another() -> FakeFiles {
    let files = FakeFiles::new(7);
    let (shared, clock) = (Arc::new(files.clone()), Arc::new(FakeClock::default()));
    let place = Place::modelled(shared, clock, Arc::new(FakeEntropy::new(99)));
    Log::<Work, MessagePack>::create_at(&place, &SMALL).unwrap();
    files
}

#[test]
fn a_file_of_another_log_is_named() {
    let files = closed();
    copy(&another(), &files, "segment-00000001");
    let refused = open_as::<Work, MessagePack>(&files);
    let Err(OpenError::ForeignFile { name }) = refused else { panic!("{refused:?}") };
    assert_eq!(name, "segment-00000001");
    let (files, another) = (closed(), another());
    make_old(&files);
    make_old(&another);
    copy(&another, &files, "label");
    let refused = open_as::<Work, MessagePack>(&files);
    assert!(matches!(refused, Err(OpenError::Label(LabelFault::Foreign))), "{refused:?}");
}

#[test]
fn a_damaged_catalogue_is_named() {
    let files = closed();
    files.remove_file("catalogue.copy".as_ref()).unwrap();
    files.flip_bit("catalogue".as_ref(), 45 * 8).unwrap();
    let refused = open_as::<Work, MessagePack>(&files);
    let Err(OpenError::File { name, fault }) = refused else { panic!("{refused:?}") };
    assert_eq!((name.as_str(), fault), ("catalogue", FileFault::Check));
    files.flip_bit("catalogue".as_ref(), 45 * 8).unwrap();
    is_whole(&files);
}

#[test]
fn a_log_without_label_is_refused() {
    let files = closed();
    make_old(&files);
    files.remove_file("label".as_ref()).unwrap();
    let refused = open_as::<Work, MessagePack>(&files);
    assert!(matches!(refused, Err(OpenError::Label(LabelFault::Missing))), "{refused:?}");
}

#[test]
fn there_is_no_log_where_none_was_made_and_none_is_made_over_another() {
    assert!(matches!(open_as::<Work, MessagePack>(&FakeFiles::new(1)), Err(OpenError::NoLog)));
    let nowhere = Log::<Work, MessagePack>::open(Path::new("/nowhere/at/all"), &SMALL).map(drop);
    assert!(matches!(nowhere, Err(OpenError::NoLog)), "{nowhere:?}");
    let files = closed();
    let again = Log::<Vec<u8>, Raw>::create_at(&place(&files), &SMALL);
    assert!(matches!(again, Err(CreateError::Exists)), "{again:?}");
    is_whole(&files);
}

#[test]
fn a_directory_with_something_else_in_it_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a letter"), "dear").unwrap();
    let made = Log::<Work, MessagePack>::create(directory.path(), &SMALL);
    assert!(matches!(&made, Err(CreateError::NotEmpty { name }) if name == "a letter"), "{made:?}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn sizes_that_no_log_has_are_refused() {
    let files = FakeFiles::new(1);
    let options = SMALL.with_segment_bytes(100_000);
    let made = Log::<Work, MessagePack>::create_at(&place(&files), &options);
    let Err(CreateError::Options(fault)) = made else { panic!("{made:?}") };
    assert_eq!(fault, ConfigFault::SegmentBytes { found: 100_000 });
}

#[test]
fn a_ring_that_no_log_has_is_refused_with_what_was_asked_for() {
    let whole = closed();
    for found in [u64::MAX, (1 << 63) + 1, 1 << 62] {
        let (files, options) = (FakeFiles::new(1), SMALL.with_ring_bytes(found));
        let made = Log::<Work, MessagePack>::create_at(&place(&files), &options);
        let Err(CreateError::Options(fault)) = made else { panic!("{made:?}") };
        assert_eq!(fault, ConfigFault::RingBytes { found });
        assert!(files.read_dir(Path::new("")).unwrap().is_empty());
        let opened = Log::<Work, MessagePack>::open_at(place(&whole), &options).map(drop);
        let Err(OpenError::Options(fault)) = opened else { panic!("{opened:?}") };
        assert_eq!(fault, ConfigFault::RingBytes { found });
    }
    is_whole(&whole);
}

#[test]
fn a_directory_below_one_that_is_missing_is_named_where_a_log_was_to_be_made() {
    let directory = tempfile::tempdir().unwrap();
    let below = directory.path().join("missing").join("log");
    let opened = Log::<Work, MessagePack>::open_or_create(&below, &SMALL).map(drop);
    let Err(OpenError::Io(error)) = opened else { panic!("{opened:?}") };
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert!(error.to_string().contains(below.to_str().unwrap()), "{error}");
    let made = Log::<Work, MessagePack>::create(&below, &SMALL);
    assert!(matches!(made, Err(CreateError::Io(_))), "{made:?}");
    // Who wants to open what is there and makes nothing is told that there is no log.
    let opened = Log::<Work, MessagePack>::open(&below, &SMALL).map(drop);
    assert!(matches!(opened, Err(OpenError::NoLog)), "{opened:?}");
}

#[test]
fn a_ring_that_is_too_small_for_the_segments_is_made_larger() {
    let files = FakeFiles::new(1);
    let large = SMALL.with_segment_bytes(1 << 20);
    Log::<Work, MessagePack>::create_at(&place(&files), &large).unwrap();
    let (log, _) = open(&files).unwrap();
    log.append_durable(&work(0)).unwrap();
    assert_eq!(records(&log).unwrap(), [work(0)]);
}

#[test]
fn no_other_user_can_open_the_directory_that_a_log_is_made_in_nor_lock_it() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("log");
    Log::<Work, MessagePack>::create(&directory, &SMALL).unwrap();
    let mode = std::fs::metadata(&directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700);
}
