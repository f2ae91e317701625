//! Bits that turn over at rest.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_io::fake::{FakeFiles, Mood};
use holdfast_io::{Files, OpenHow};
use holdfast_log::{Log, Lsn, OpenError, Recovery, Verdict};
use holdfast_memory::{Medium, Region, RegionSpec};

use crate::support::{
    IDENTITY, Model, RING_BYTES, contents, new_log, open_shared, open_with, payload, region,
};

const SEGMENT: &str = "segment-00000000";
/// Where frames start in a segment file.
const FRAMES_OFFSET: u64 = 4096;

/// Three commits of one frame each. Returns also where each was drained from.
fn small_log(close: bool) -> (FakeFiles, Model, Vec<Lsn>) {
    let (files, _region, log) = new_log(1);
    let mut model = Model::default();
    log.commit(log.marks().tail).expect("the disk is sound");
    let mut starts = Vec::new();
    for bytes in [60, 700, 90] {
        starts.push(log.marks().durable);
        model.put(&log, bytes).expect("there is room");
        log.commit(log.marks().tail).expect("the disk is sound");
    }
    if close {
        log.close().expect("the disk is sound");
    }
    model.note(&log);
    (files, model, starts)
}

/// Opens a damaged image; whether the damage was reported. What is not reported is not there.
fn is_reported(files: &FakeFiles, name: &str, bit: u64, model: &Model) -> bool {
    let image = files.after_power_cut_in(Mood::KeepAll, 0);
    image.flip_bit(Path::new(name), bit).expect("the file is long enough");
    match open_with(&image, region()) {
        Ok((log, _)) => {
            let checked = model.check(&log, false);
            assert!(checked.is_ok(), "{name} bit {bit}: {checked:?}");
            false
        }
        Err(OpenError::Io(error)) => panic!("{name} bit {bit}: {error}"),
        Err(_) => true,
    }
}

/// The bits to try: all where headers and payloads are, one of each byte in the zeros between.
fn bits(bytes: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
    bytes.flat_map(|byte| {
        let dense = byte % 4096 < 800;
        let first = if dense { 0 } else { byte % 8 };
        let last = if dense { 8 } else { first + 1 };
        (first..last).map(move |bit| byte * 8 + bit)
    })
}

#[test]
fn any_bit_of_a_closed_log_that_turns_over_is_reported() {
    let (files, model, _) = small_log(true);
    let end = FRAMES_OFFSET + model.durable;
    let (mut tried, mut reported) = (0, 0);
    for bit in bits(FRAMES_OFFSET..end) {
        reported += u64::from(is_reported(&files, SEGMENT, bit, &model));
        tried += 1;
    }
    println!("{tried} bits turned, {reported} reported");
    assert_eq!(reported, tried, "the zeros between frames count, too");
}

#[test]
fn any_bit_of_the_files_heads_that_turns_over_is_reported_or_harmless() {
    let (files, model, _) = small_log(true);
    for bit in 0..FRAMES_OFFSET {
        is_reported(&files, SEGMENT, bit, &model);
    }
    let alone = files.after_power_cut_in(Mood::KeepAll, 0);
    alone.remove_file(Path::new("catalogue.copy")).expect("it is there");
    for bit in 0..8 * 104 {
        assert!(!is_reported(&files, "catalogue", bit, &model), "bit {bit}: the copy is whole");
        assert!(is_reported(&alone, "catalogue", bit, &model), "bit {bit} of the one catalogue");
    }
}

#[test]
fn any_bit_of_an_unclosed_log_is_reported_harmless_or_in_the_uncovered_last_drain() {
    let (files, mut model, starts) = small_log(false);
    // The watermark in the last drain's seal covers everything before that drain.
    let end = FRAMES_OFFSET + model.durable;
    model.durable = starts[2].get();
    let mut tried = 0;
    for bit in bits(FRAMES_OFFSET..end) {
        is_reported(&files, SEGMENT, bit, &model);
        tried += 1;
    }
    println!("{tried} bits turned");
}

#[test]
fn pitfall_06_damage_below_a_watermark_is_corruption_and_above_it_a_torn_tail() {
    let (files, model, starts) = small_log(false);
    let covered = files.after_power_cut_in(Mood::KeepAll, 0);
    let first = model.puts[0].lsn;
    covered.flip_bit(Path::new(SEGMENT), (FRAMES_OFFSET + first.get() + 60) * 8).expect("a bit");
    match open_with(&covered, region()) {
        Err(OpenError::Corrupt { from, to }) => {
            assert_eq!(from, first);
            assert!(to > from && to <= starts[1], "{to}");
        }
        other => panic!("{other:?}"),
    }
    let uncovered = files.after_power_cut_in(Mood::KeepAll, 0);
    let last = model.puts[2].lsn;
    uncovered.flip_bit(Path::new(SEGMENT), (FRAMES_OFFSET + last.get() + 60) * 8).expect("a bit");
    let (_log, recovery) = open_with(&uncovered, region()).expect("a torn tail is legal");
    assert_eq!(recovery.verdict, Verdict::Torn { at: last });
}

#[test]
fn whole_frames_of_a_torn_drain_are_kept_and_count_as_durable_only_once_drained_again() {
    let (files, _region, log) = new_log(2);
    log.commit(log.marks().tail).expect("the disk is sound");
    let from = log.marks().durable;
    let mut model = Model::default();
    for _ in 0..3 {
        model.put(&log, 3000).expect("there is room");
    }
    log.commit(log.marks().tail).expect("the disk is sound");
    let bit = (FRAMES_OFFSET + model.puts[2].lsn.get() + 60) * 8;
    files.flip_bit(Path::new(SEGMENT), bit).expect("a bit");
    let (log, recovery) = open_with(&files, region()).expect("a torn tail is legal");
    assert_eq!((recovery.durable, recovery.tail), (from, model.puts[2].lsn));
    model.adopt(&log, &recovery);
    assert_eq!(contents(&log), model.puts);
    log.commit(recovery.tail).expect("the disk is sound");
    let image = files.after_power_cut_in(Mood::LoseAll, 0);
    let (log, _) = open_with(&image, region()).expect("the disk is sound");
    model.check(&log, true).expect("all that was kept");
}

#[test]
fn pitfall_09_what_lies_behind_a_cut_is_gone_from_the_device_when_the_log_is_open() {
    let (files, model, starts) = small_log(false);
    let bit = (FRAMES_OFFSET + model.puts[2].lsn.get() + 60) * 8;
    files.flip_bit(Path::new(SEGMENT), bit).expect("a bit");
    let (_log, recovery) = open_with(&files, region()).expect("a torn tail is legal");
    assert_eq!(recovery.verdict, Verdict::Torn { at: starts[2] });
    let image = files.after_power_cut_in(Mood::LoseAll, 0);
    let file = image.open(Path::new(SEGMENT), OpenHow::default()).expect("it is there");
    let mut rest = vec![1; 8192];
    file.read_full_at(&mut rest, FRAMES_OFFSET + starts[2].get()).expect("the disk is sound");
    assert!(rest.iter().all(|byte| *byte == 0));
}

#[test]
fn a_corrupt_log_is_left_exactly_as_it_was() {
    let (files, model, _) = small_log(true);
    let bit = (FRAMES_OFFSET + model.puts[0].lsn.get() + 60) * 8;
    files.flip_bit(Path::new(SEGMENT), bit).expect("a bit");
    let before = files.operations();
    for _ in 0..3 {
        assert!(matches!(open_with(&files, region()), Err(OpenError::Corrupt { .. })));
    }
    assert_eq!(files.operations(), before);
    files.flip_bit(Path::new(SEGMENT), bit).expect("a bit");
    let (log, _) = open_with(&files, region()).expect("the damage is gone");
    model.check(&log, true).expect("all of it");
}

/// A region in a file, so that its bytes can be damaged.
pub(crate) struct FileRegion {
    path: PathBuf,
}

impl FileRegion {
    pub(crate) fn new(name: &str) -> (FileRegion, Arc<Region>) {
        let path = std::env::temp_dir().join(format!("holdfast-{name}-{}", std::process::id()));
        let place = FileRegion { path };
        let spec = RegionSpec { ring_bytes: RING_BYTES, roster_bytes: 4096, identity: IDENTITY };
        let _absent = Region::remove(&place.medium());
        let region = Region::create(&place.medium(), &spec).expect("a file can be made");
        (place, Arc::new(region))
    }

    fn medium(&self) -> Medium {
        Medium::File { path: self.path.clone() }
    }

    fn attach(&self) -> Arc<Region> {
        Arc::new(Region::attach(&self.medium()).expect("the marks are in order"))
    }

    /// Turns over a bit in the only copy of these bytes.
    fn damage(&self, needle: &[u8]) {
        let mut bytes = needle.to_vec();
        bytes[0] ^= 1;
        self.replace(needle, &bytes);
    }

    /// Turns over this bit of the bytes that begin so far before where these are first.
    pub(crate) fn turn_over(&self, needle: &[u8], before: usize, bit: usize) {
        let found = fs::read(&self.path).expect("the region is a file");
        let at = found.windows(needle.len()).position(|window| window == needle);
        let at = at.expect("the bytes are in the region") - before + bit / 8;
        let file = fs::File::options().write(true).open(&self.path).expect("the region is a file");
        file.write_all_at(&[found[at] ^ 1 << (bit % 8)], at as u64).expect("it can be written");
    }

    /// Puts bytes in the place of these, where they are first.
    fn replace(&self, needle: &[u8], bytes: &[u8]) {
        let found = fs::read(&self.path).expect("the region is a file");
        let at = found.windows(needle.len()).position(|window| window == needle);
        let at = at.expect("the bytes are in the region");
        let file = fs::File::options().write(true).open(&self.path).expect("the region is a file");
        file.write_all_at(bytes, at as u64).expect("bytes can be written");
    }
}

impl Drop for FileRegion {
    fn drop(&mut self) {
        let _removed = Region::remove(&self.medium());
    }
}

/// A log whose first frame is durable and whose second is only in the ring; then its process dies.
fn durable_and_stable(name: &str) -> (FileRegion, FakeFiles, Model) {
    let files = FakeFiles::new(1);
    Log::create(&files, IDENTITY, &crate::support::CONFIG).expect("an empty disk takes a log");
    let (place, region) = FileRegion::new(name);
    let (log, _) = open_shared(&files, &region).expect("a new log opens");
    let mut model = Model::default();
    model.put(&log, 1000).expect("there is room");
    log.commit(log.marks().tail).expect("the disk is sound");
    model.put(&log, 1000).expect("there is room");
    (place, files, model)
}

#[test]
fn a_ring_damaged_where_the_device_has_the_bytes_is_healed_from_the_device() {
    let (place, files, model) = durable_and_stable("healed");
    place.damage(&payload(0, 1000)[100..200]);
    let (log, recovery) = open_shared(&files, &place.attach()).expect("the segments are whole");
    assert_eq!(recovery.verdict, Verdict::Healed { at: model.puts[0].lsn });
    model.check(&log, true).expect("all of it");
}

#[test]
fn a_ring_damaged_where_only_it_has_the_bytes_is_reported() {
    let (place, files, model) = durable_and_stable("reported");
    place.damage(&payload(1, 1000)[100..200]);
    match open_shared(&files, &place.attach()) {
        Err(OpenError::Corrupt { from, .. }) => assert_eq!(from, model.puts[1].lsn),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_ring_whose_marks_tell_of_more_than_is_durable_is_reported() {
    let files = FakeFiles::new(1);
    Log::create(&files, IDENTITY, &crate::support::CONFIG).expect("an empty disk takes a log");
    let (place, region) = FileRegion::new("marked");
    let (log, recovery) = open_shared(&files, &region).expect("a new log opens");
    log.commit(log.marks().tail).expect("the disk is sound");
    let before = log.marks().durable;
    // So many blocks as no size in the region's header.
    Model::default().put(&log, 18_000).expect("there is room");
    log.commit(log.marks().tail).expect("the disk is sound");
    let marked = log.marks().durable;
    log.mark(marked).expect("there is room");
    assert!(recovery.released < before && before < marked);
    drop((log, region));
    place.replace(&marked.get().to_le_bytes(), &before.get().to_le_bytes());
    match open_shared(&files, &place.attach()) {
        Err(OpenError::Corrupt { from, to }) => assert_eq!((from, to), (before, marked)),
        other => panic!("{other:?}"),
    }
}

/// Opens it with a region that a process before may have used.
fn open_again(files: &FakeFiles, region: &mut Arc<Region>) -> (Log, Recovery) {
    Arc::get_mut(region).expect("no log has it").reattach().expect("the marks are in order");
    open_shared(files, region).expect("one catalogue is enough")
}

/// From a ring as from segments, and said once.
#[test]
fn a_catalogue_that_is_gone_or_damaged_is_made_again_by_the_next_open() {
    for name in ["catalogue", "catalogue.copy"] {
        for (from_ring, damage) in [(true, None), (true, Some(200)), (false, None)] {
            let (files, region, log) = new_log(1);
            drop(log);
            match damage {
                None => files.remove_file(Path::new(name)).expect("it is there"),
                Some(bit) => files.flip_bit(Path::new(name), bit).expect("it is there"),
            }
            let mut region = if from_ring { region } else { Arc::new(self::region()) };
            let (log, recovery) = open_again(&files, &mut region);
            let remade: Vec<_> = recovery.remade.iter().map(|spoilt| &*spoilt.name).collect();
            assert_eq!(remade, [name]);
            drop(log);
            let looked = Log::verify(&files, &mut |_| {}).expect("it is sound");
            assert_eq!(looked.spoilt, []);
            let (_, recovery) = open_again(&files, &mut region);
            assert_eq!(recovery.remade, []);
        }
    }
}
