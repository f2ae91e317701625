//! A look at a whole log that is not in use.

use std::path::Path;
use std::sync::Arc;

use holdfast_io::fake::{EIO, Effect, FakeFiles, Fault, Mood, Operation};
use holdfast_io::{Files, OpenHow};
use holdfast_log::{CheckVerdict, FilePlace, Kind, Log, Lsn, OpenError, Verified};
use holdfast_memory::{Medium, Region, RegionSpec};

use crate::support::{
    CONFIG, IDENTITY, Model, RING_BYTES, new_log, open_shared, open_with, region,
};

/// Where frames start in a segment file.
const FRAMES_OFFSET: u64 = 4096;
/// Of a frame, before its payload.
const HEADER_BYTES: u64 = 48;

/// A log that was closed after `count` frames of 3000 bytes.
fn closed_log(count: u64) -> (FakeFiles, Model) {
    let (files, _region, log) = new_log(1);
    let mut model = Model::default();
    for _ in 0..count {
        model.put_surely_unread(&log, 3000).expect("there is room");
    }
    log.close().expect("the disk is sound");
    model.note(&log);
    (files, model)
}

fn checked(files: &FakeFiles) -> Verified {
    Log::verify(files, &mut |_| {}).expect("the disk can be read")
}

/// The bit in the middle of a frame's payload, and the segment file that has it.
fn bit_in(lsn: Lsn) -> (String, u64) {
    let number = lsn.get() / CONFIG.segment_bytes;
    let byte = FRAMES_OFFSET + lsn.get() % CONFIG.segment_bytes + HEADER_BYTES + 20;
    (format!("segment-{number:08}"), byte * 8)
}

fn flip(files: &FakeFiles, lsn: Lsn) -> String {
    let (name, bit) = bit_in(lsn);
    files.flip_bit(Path::new(&name), bit).expect("the file is long enough");
    name
}

#[test]
fn a_closed_log_is_clean_and_every_frame_of_every_segment_is_counted() {
    let (files, model) = closed_log(50);
    let found = checked(&files);
    assert_eq!(found.verdict, CheckVerdict::Clean);
    assert_eq!((found.first, found.end), (Lsn(0), Lsn(model.durable)));
    assert!(found.end.get() > 2 * CONFIG.segment_bytes, "three segments");
    assert!(found.bytes_scanned >= found.end.get());
    let (log, _) = open_with(&files, region()).expect("a sound log");
    let frames = log.frames(Lsn(0), Lsn(model.durable));
    // A reader of frames passes over the padding.
    assert!(found.frames > frames.iter().count() as u64, "{found:?}");
    let data = frames.iter().filter(|frame| frame.header.kind == Kind::Data).count();
    assert_eq!(data, 50);
}

#[test]
fn a_new_log_is_clean_and_empty() {
    let files = FakeFiles::new(1);
    Log::create(&files, IDENTITY, &CONFIG).expect("an empty disk takes a log");
    let found = checked(&files);
    assert_eq!((found.frames, found.end, found.verdict), (0, Lsn(0), CheckVerdict::Clean));
    let place = FilePlace { file: "segment-00000000".into(), offset: FRAMES_OFFSET };
    assert_eq!(found.place, Some(place));
}

#[test]
fn the_remains_of_an_unfinished_write_are_a_torn_end_and_no_damage() {
    let (files, _region, log) = new_log(1);
    let mut model = Model::default();
    for _ in 0..3 {
        model.put(&log, 3000).expect("there is room");
        log.commit(log.marks().tail).expect("the disk is sound");
    }
    let last = model.puts[2].lsn;
    let name = flip(&files, last);
    let found = checked(&files);
    assert_eq!(found.verdict, CheckVerdict::Torn { at: last });
    let offset = FRAMES_OFFSET + last.get();
    assert_eq!(found.place, Some(FilePlace { file: name, offset }));
    let (_log, recovery) = open_with(&files, region()).expect("a torn end is legal");
    assert_eq!(recovery.tail, found.end);
}

/// The canary, too: every frame, once damaged, is found, whichever segment has it.
#[test]
fn a_bit_that_turned_over_in_any_acknowledged_frame_is_named_by_position_file_and_offset() {
    let (files, model) = closed_log(50);
    for put in &model.puts {
        let image = files.after_power_cut_in(Mood::KeepAll, 0);
        let file = flip(&image, put.lsn);
        let found = checked(&image);
        match found.verdict {
            CheckVerdict::Corrupt { from, to } => {
                assert_eq!(from, put.lsn);
                assert!(to > from, "{to}");
            }
            other => panic!("the frame at {}: {other:?}", put.lsn),
        }
        let offset = FRAMES_OFFSET + put.lsn.get() % CONFIG.segment_bytes;
        assert_eq!(found.place, Some(FilePlace { file, offset }));
    }
}

#[test]
fn a_segment_that_is_missing_is_named() {
    let (files, _) = closed_log(50);
    files.remove_file(Path::new("segment-00000001")).expect("it is there");
    match Log::verify(&files, &mut |_| {}) {
        Err(OpenError::MissingSegment { name }) => assert_eq!(name, "segment-00000001"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_read_that_fails_is_no_verdict_but_repeated_or_an_error_with_its_place() {
    let (files, _) = closed_log(50);
    let sound = checked(&files);
    let reads = (0..).take_while(|skip| {
        let image = files.after_power_cut_in(Mood::KeepAll, 0);
        let effect = Effect::Errno(EIO);
        image.fail(Fault { operation: Operation::Read, skip: *skip, effect });
        match Log::verify(&image, &mut |_| {}) {
            Ok(found) => assert_eq!((found.end, found.verdict), (sound.end, sound.verdict)),
            Err(error) => assert!(matches!(error, OpenError::Io(_)), "read {skip}: {error:?}"),
        }
        image.faults_fired() > 0
    });
    assert!(reads.count() >= 4, "a catalogue and three segments");
    // The whole of the last segment, so that nobody knows what lies behind the last frame.
    for skip in 14..60 {
        files.fail(Fault { operation: Operation::Read, skip, effect: Effect::Errno(EIO) });
    }
    let text = Log::verify(&files, &mut |_| {}).expect_err("reads fail").to_string();
    assert!(text.contains("reading segment-0000000") && text.contains("from byte"), "{text}");
}

/// Every byte of every file.
fn image_of(files: &FakeFiles) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names: Vec<_> =
        files.read_dir(Path::new("")).expect("a directory").into_iter().map(|e| e.name).collect();
    names.sort();
    let read = |name: Vec<u8>| {
        let path = String::from_utf8(name.clone()).expect("a name of ours");
        let file = files.open(Path::new(&path), OpenHow::default()).expect("it is there");
        let mut bytes = vec![0; file.metadata().expect("it is open").size_bytes as usize];
        file.read_full_at(&mut bytes, 0).expect("the disk is sound");
        (name, bytes)
    };
    names.into_iter().map(read).collect()
}

#[test]
fn nothing_is_changed_and_a_disk_that_takes_no_writes_is_checked_all_the_same() {
    let (files, model) = closed_log(50);
    for damaged in [None, Some(model.puts[49].lsn), Some(model.puts[0].lsn)] {
        damaged.map(|lsn| flip(&files, lsn));
        let (before, operations) = (image_of(&files), files.operations());
        let found = checked(&files);
        files.set_read_only(true);
        assert_eq!(checked(&files), found);
        files.set_read_only(false);
        assert_eq!(files.operations(), operations);
        assert!(image_of(&files) == before);
    }
}

/// A region that another process can look at.
struct Shared(Medium);

impl Shared {
    fn new(name: &str) -> (Shared, Arc<Region>) {
        let path = std::env::temp_dir().join(format!("holdfast-{name}-{}", std::process::id()));
        let medium = Medium::File { path };
        let _absent = Region::remove(&medium);
        let spec = RegionSpec { ring_bytes: RING_BYTES, roster_bytes: 4096, identity: IDENTITY };
        let region = Region::create(&medium, &spec).expect("a file can be made");
        (Shared(medium), Arc::new(region))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _removed = Region::remove(&self.0);
    }
}

/// Turns over a byte of the region's file where these bytes are.
fn damage(medium: &Medium, needle: &[u8]) {
    let path = medium.path().expect("a file");
    let mut bytes = std::fs::read(path).expect("the region is a file");
    let at = bytes.windows(needle.len()).position(|window| window == needle);
    let at = at.expect("the bytes are in the ring");
    bytes[at] ^= 1;
    let file = std::fs::File::options().write(true).open(path).expect("the region is a file");
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes[at..=at], at as u64).expect("one byte");
}

#[test]
fn a_ring_is_read_frame_by_frame_without_claiming_its_region() {
    let files = FakeFiles::new(1);
    Log::create(&files, IDENTITY, &CONFIG).expect("an empty disk takes a log");
    let (shared, region) = Shared::new("check-ring");
    let look = || {
        let seen = Region::observe(&shared.0).expect("a region");
        Log::check_ring(&files, &seen).expect("the region of this log")
    };
    assert_eq!(look(), None, "never filled");
    let (log, _) = open_shared(&files, &region).expect("a new log opens");
    let mut model = Model::default();
    model.put(&log, 1000).expect("there is room");
    log.commit(log.marks().tail).expect("the disk is sound");
    model.put(&log, 1000).expect("there is room");
    let marks = log.marks();
    let frames = log.frames(marks.released, marks.tail).iter().count() as u64;
    let pads = 1;
    drop(log);
    drop(region);
    let before = std::fs::read(shared.0.path().expect("a file")).expect("the region is a file");
    let sound = look().expect("filled");
    assert_eq!((sound.frames, sound.lost, sound.healable), (frames + pads, None, None));
    assert_eq!(sound.bytes_scanned, marks.tail.since(marks.released));
    let after = std::fs::read(shared.0.path().expect("a file")).expect("the region is a file");
    assert!(before == after, "a look leaves no trace");
    damage(&shared.0, &model.puts[0].payload[100..200]);
    let healable = look().expect("filled");
    assert_eq!((healable.lost, healable.healable), (None, Some(model.puts[0].lsn)));
    damage(&shared.0, &model.puts[1].payload[100..200]);
    assert_eq!(look().expect("filled").lost, Some(model.puts[1].lsn));
}

#[test]
fn what_a_log_keeps_for_its_reader_is_known_from_its_files_alone() {
    let left = |files: &FakeFiles| Log::left(files).expect("the disk can be read");
    let (files, _region, log) = new_log(1);
    assert_eq!(left(&files), 0, "a new log");
    let mut model = Model::default();
    for _ in 0..8 {
        model.put(&log, 3000).expect("there is room");
    }
    log.drain().expect("the disk is sound");
    let all = left(&files);
    let durable = log.marks().durable.get();
    assert!(all > 8 * 3000 && all <= durable, "{all} of {durable}");
    model.apply(&log).expect("the disk is sound");
    log.drain().expect("the disk is sound");
    assert_eq!(left(&files), 0, "its reader has everything");
    model.put(&log, 3000).expect("there is room");
    log.close().expect("the disk is sound");
    // The frame lies behind the mark and what fills the block of that.
    assert!((3000..9000).contains(&left(&files)), "{}", left(&files));
}

/// What a reader would be given of a log that nobody has open: where its frames are, and where it
/// has got to.
fn unapplied(files: &FakeFiles, region: Option<&Medium>) -> Vec<Lsn> {
    let seen = region.map(|medium| Region::observe(medium).expect("a region"));
    let mut shown = Vec::new();
    let from = Log::unapplied(files, seen.as_ref(), &mut |frame| shown.push(frame.header.lsn));
    let from = from.expect("the log can be read");
    shown.retain(|lsn| *lsn >= from);
    shown
}

#[test]
fn what_a_reader_lacks_is_shown_of_the_ring_and_of_the_segments_without_opening_the_log() {
    let files = FakeFiles::new(1);
    Log::create(&files, IDENTITY, &CONFIG).expect("an empty disk takes a log");
    let (shared, region) = Shared::new("unapplied");
    assert_eq!(unapplied(&files, Some(&shared.0)), [], "a ring that was never filled");
    let (log, _) = open_shared(&files, &region).expect("a new log opens");
    let mut model = Model::default();
    for _ in 0..3 {
        model.put(&log, 1000).expect("there is room");
    }
    log.drain().expect("the disk is sound");
    model.apply(&log).expect("the disk is sound");
    let applied = model.puts.len();
    model.put(&log, 1000).expect("there is room");
    log.drain().expect("the disk is sound");
    model.put(&log, 1000).expect("there is room");
    let lsns: Vec<Lsn> = model.puts[applied..].iter().map(|put| put.lsn).collect();
    drop(log);
    drop(region);
    assert_eq!(unapplied(&files, Some(&shared.0)), lsns);
    assert_eq!(unapplied(&files, None), lsns[..1], "the disk has no more");
    damage(&shared.0, &model.puts[applied].payload[100..200]);
    assert!(unapplied(&files, Some(&shared.0)).contains(&lsns[0]), "the segments have it");
}
