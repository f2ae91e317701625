//! A run has exactly the records that were put into it, or says that it is damaged.

use std::collections::BTreeMap;

use holdfast_io::fake::{EIO, ENOSPC, Effect, FakeFiles, Fault, Operation, Random, is_power_cut};
use holdfast_log::Lsn;

use super::*;
use crate::archive::page_records::PageRecords;
use crate::archive::run_format::{FOOTER_BYTES, NO_PAGE, VERSION};
use crate::archive::run_reader::Run;
use crate::error::{RunFault, RunPart};
use crate::stream::record::{PageLink, What};
use crate::stream::rsn::Slot;

const BEGIN: Rsn = Rsn(5000);
const STATE: &[u8] = b"what came before";

fn tag() -> Tag {
    Tag::of(b"a store in tests")
}

/// Records of a stretch of the stream, sorted by page and place, and the frames that they came in.
struct Sample {
    span: RunSpan,
    records: BTreeMap<(PageNumber, Rsn), Vec<u8>>,
    frames: Vec<FramePlace>,
}

impl Sample {
    /// So many records of so many pages, with bodies of up to `body_bytes`, drawn from `seed`.
    fn new(seed: u64, count: u64, pages: u64, body_bytes: u64) -> Sample {
        let mut random = Random::new(seed);
        let (mut next, mut lsn, mut utc_ns) = (BEGIN, 9000, 1_700_000_000_000 * NS_PER_MS);
        let (mut records, mut frames) = (BTreeMap::new(), Vec::new());
        for _ in 0..count {
            let at = PageLink { page: PageNumber(1 + random.below(pages)), before: Rsn(4000) };
            let body = vec![random.any() as u8; random.below(body_bytes) as usize];
            let what = match random.below(20) {
                0 => What::Commit(Slot(3)),
                1 => What::Image { at, bytes: &body },
                _ => What::Update { slot: Slot(3), at, body: &body },
            };
            let mut bytes = Vec::new();
            what.put(next, &mut bytes);
            let end = next.advance(bytes.len() as u64);
            records.insert((what.link().map_or(NO_PAGE, |at| at.page), next), bytes);
            let (lsn_end, first) = (Lsn(lsn + 100), next);
            frames.push(FramePlace { first, end, lsn: Lsn(lsn), lsn_end, utc_ns });
            (next, lsn) = (end, lsn + 100);
            utc_ns += (random.below(9) as i64 - 2) * NS_PER_MS;
        }
        Sample { span: RunSpan { level: 0, begin: BEGIN, end: next }, records, frames }
    }

    fn write(&self, files: &FakeFiles) -> io::Result<()> {
        self.write_as(files, Compression::None)
    }

    fn write_as(&self, files: &FakeFiles, how: Compression) -> io::Result<()> {
        let mut run = RunWriter::begin(files, tag(), self.span)?;
        run.compress(how);
        for ((page, rsn), bytes) in &self.records {
            run.push(*page, *rsn, bytes)?;
        }
        run.finish(STATE, &self.frames)
    }

    /// The records of a page as they should be gathered.
    fn of_page(&self, page: PageNumber, above: Rsn, upto: Rsn) -> Vec<&[u8]> {
        let records = self.records.range((page, above.advance(1))..=(page, upto));
        records.map(|(_, bytes)| &bytes[..]).collect()
    }
}

fn open(files: &FakeFiles, span: RunSpan) -> Result<Arc<Run>, RunFault> {
    Run::open(files, span, tag()).map(Arc::new)
}

/// All that a run says: the records of a scan, those of each page, state and frames.
fn read_all(files: &FakeFiles, sample: &Sample) -> Result<(), RunFault> {
    let run = open(files, sample.span)?;
    let mut scan = run.scan(PageNumber(1))?;
    for ((page, rsn), bytes) in &sample.records {
        let entry = scan.current().expect("the scan goes on");
        assert_eq!((entry.page, entry.rsn, entry.bytes), (*page, *rsn, &bytes[..]));
        scan.advance()?;
    }
    assert!(scan.current().is_none());
    assert_eq!((run.state()?, run.frames()?), (STATE.to_vec(), sample.frames.clone()));
    Ok(())
}

/// The records of a page that a run gives, encoded again.
fn gathered(run: &Run, page: PageNumber, above: Rsn, upto: Rsn) -> Vec<Vec<u8>> {
    let mut gathered = PageRecords::default();
    run.gather(page, above, upto, &mut gathered).expect("the run is whole");
    let encoded = |record: crate::stream::record::Record<'_>| {
        let mut bytes = Vec::new();
        record.what.put(record.rsn, &mut bytes);
        bytes
    };
    gathered.in_order().map(encoded).collect()
}

/// Whether these bytes are an image.
fn is_image(bytes: &[u8]) -> bool {
    bytes[0] == 4
}

#[test]
fn a_run_has_its_records_in_order_and_says_what_came_before_and_in_which_frames() {
    for (seed, count, pages, body_bytes) in [(1, 1, 1, 9), (2, 3000, 40, 200), (3, 40, 9, 9000)] {
        let (files, sample) = (FakeFiles::new(seed), Sample::new(seed, count, pages, body_bytes));
        sample.write(&files).expect("there is room");
        read_all(&files, &sample).expect("it is whole");
    }
}

#[test]
fn a_compressed_run_has_the_same_records_and_is_shorter_where_they_repeat_themselves() {
    for (seed, count, pages, body_bytes) in [(1, 1, 1, 9), (2, 3000, 40, 200), (3, 40, 9, 9000)] {
        let sample = Sample::new(seed, count, pages, body_bytes);
        let bytes = [Compression::None, Compression::Lz4].map(|how| {
            let files = FakeFiles::new(seed);
            sample.write_as(&files, how).expect("there is room");
            read_all(&files, &sample).expect("it is whole");
            open(&files, sample.span).expect("it is whole").bytes()
        });
        assert!(count == 1 || 2 * bytes[1] < bytes[0], "{bytes:?}");
    }
}

#[test]
fn a_pages_records_are_found_between_any_two_places() {
    for how in [Compression::None, Compression::Lz4] {
        find_between_any_two_places(how);
    }
}

fn find_between_any_two_places(how: Compression) {
    let (files, sample) = (FakeFiles::new(1), Sample::new(4, 3000, 40, 200));
    sample.write_as(&files, how).expect("there is room");
    let (run, mut random) = (open(&files, sample.span).expect("it is whole"), Random::new(5));
    for page in (0..42).map(PageNumber).chain([NO_PAGE]) {
        for _ in 0..20 {
            let place = |random: &mut Random| Rsn(random.below(sample.span.end.get() + 1000));
            let (above, upto) = (place(&mut random), place(&mut random));
            let (above, upto) = (above.min(upto), above.max(upto).advance(1));
            let wanted = sample.of_page(page, above, upto);
            let image = wanted.iter().rposition(|bytes| page != NO_PAGE && is_image(bytes));
            let found = gathered(&run, page, above, upto);
            assert_eq!(found, wanted[image.unwrap_or(0)..], "page {page}, {above} to {upto}");
        }
    }
}

#[test]
fn a_scan_begins_with_any_page() {
    let (files, sample) = (FakeFiles::new(1), Sample::new(6, 1000, 40, 200));
    sample.write(&files).expect("there is room");
    let run = open(&files, sample.span).expect("it is whole");
    for page in (0..43).map(PageNumber) {
        let scan = run.scan(page).expect("it is whole");
        let wanted = sample.records.range((page, Rsn::NONE)..).next();
        assert_eq!(scan.current().map(|entry| (entry.page, entry.rsn)), wanted.map(|some| *some.0));
    }
}

#[test]
fn every_byte_that_changed_is_noticed() {
    for how in [Compression::None, Compression::Lz4] {
        change_every_byte(how);
    }
}

fn change_every_byte(how: Compression) {
    let (files, sample) = (FakeFiles::new(1), Sample::new(7, 500, 30, 60));
    sample.write_as(&files, how).expect("there is room");
    let path = sample.span.path();
    let bytes = files.metadata(&path).expect("it is there").size_bytes;
    for byte in 0..bytes {
        let bit = byte * 8 + byte % 8;
        files.flip_bit(&path, bit).expect("it is there");
        let found = read_all(&files, &sample);
        assert!(matches!(found, Err(RunFault::Damaged(_))), "byte {byte} of {bytes}: {found:?}");
        files.flip_bit(&path, bit).expect("it is there");
    }
    read_all(&files, &sample).expect("each bit was turned back");
}

#[test]
fn a_run_that_is_cut_anywhere_is_noticed() {
    let (files, sample) = (FakeFiles::new(1), Sample::new(8, 60, 9, 60));
    sample.write(&files).expect("there is room");
    let how = OpenHow { write: true, ..OpenHow::default() };
    let file = files.open(&sample.span.path(), how).expect("it is there");
    let bytes = file.metadata().expect("it is there").size_bytes;
    for left in (0..bytes).rev() {
        file.set_len(left).expect("it is there");
        let found = open(&files, sample.span);
        assert!(matches!(found, Err(RunFault::Damaged(RunPart::Footer))), "{left}: {found:?}");
    }
}

#[test]
fn a_run_of_another_store_span_or_version_is_not_taken() {
    let (files, sample) = (FakeFiles::new(1), Sample::new(9, 60, 9, 60));
    sample.write(&files).expect("there is room");
    let foreign = Run::open(&files, sample.span, Tag::of(b"another in tests"));
    assert!(matches!(foreign, Err(RunFault::Damaged(RunPart::Footer))), "{foreign:?}");
    let other = RunSpan { level: 1, ..sample.span };
    files.rename(&sample.span.path(), &other.path()).expect("it is there");
    let renamed = open(&files, other);
    assert!(matches!(renamed, Err(RunFault::Damaged(RunPart::Footer))), "{renamed:?}");
    let how = OpenHow { write: true, ..OpenHow::default() };
    let file = files.open(&other.path(), how).expect("it is there");
    let at = file.metadata().expect("it is there").size_bytes - FOOTER_BYTES as u64;
    let mut footer = [0; FOOTER_BYTES];
    file.read_full_at(&mut footer, at).expect("it is there");
    footer[8] = VERSION as u8 + 1;
    let check = holdfast_io::checksum::crc32c(tag().get(), &footer[..FOOTER_BYTES - 4]);
    footer[FOOTER_BYTES - 4..].copy_from_slice(&check.to_le_bytes());
    file.write_all_at(&footer, at).expect("there is room");
    let newer = open(&files, other);
    assert!(matches!(newer, Err(RunFault::OtherVersion { found: 3, known: 2 })), "{newer:?}");
    assert!(matches!(open(&files, sample.span), Err(RunFault::Io(_))));
}

#[test]
fn the_power_may_go_at_any_moment_and_what_has_the_name_is_whole() {
    let sample = Sample::new(10, 300, 9, 90);
    let whole = FakeFiles::new(1);
    sample.write(&whole).expect("there is room");
    let (mut there, mut gone) = (0, 0);
    for operation in 1..=whole.operations() {
        for seed in 0..8 {
            let files = FakeFiles::new(seed);
            files.cut_power_at(operation);
            let cut = sample.write(&files).expect_err("the power goes");
            assert!(is_power_cut(&cut), "{cut}");
            let files = files.after_power_cut(seed);
            match read_all(&files, &sample) {
                Ok(()) => there += 1,
                Err(RunFault::Io(error)) if error.kind() == io::ErrorKind::NotFound => gone += 1,
                Err(error) => panic!("operation {operation}, seed {seed}: {error}"),
            }
            sample.write(&files).expect("what is left is replaced");
            read_all(&files, &sample).expect("it is whole");
        }
    }
    assert!(there > 0 && gone > 0, "{there} there, {gone} gone");
}

#[test]
fn whatever_fails_a_run_that_is_begun_again_is_whole() {
    let sample = Sample::new(11, 300, 9, 90);
    let faults = [
        (Operation::Open, ENOSPC),
        (Operation::Write, ENOSPC),
        (Operation::Write, EIO),
        (Operation::SyncData, EIO),
        (Operation::Rename, ENOSPC),
        (Operation::SyncDir, EIO),
    ];
    for (operation, errno) in faults {
        let files = FakeFiles::new(1);
        files.fail(Fault { operation, skip: 0, effect: Effect::Errno(errno) });
        let failed = sample.write(&files).expect_err("it is told");
        assert_eq!((failed.raw_os_error(), files.faults_fired()), (Some(errno), 1));
        sample.write(&files).expect("the fault is gone");
        read_all(&files, &sample).expect("it is whole");
    }
}

#[test]
fn a_span_is_told_by_its_name() {
    let span = RunSpan { level: 12, begin: Rsn(8), end: Rsn(u64::MAX) };
    assert_eq!(span.name(), "run-c-0000000000000008-ffffffffffffffff");
    assert_eq!(RunSpan::of_name(span.name().as_bytes()), Some(span));
    for name in ["run-0.new", "run-0-8-9", "run-0-0000000000000009-0000000000000009", "run-", ""] {
        assert_eq!(RunSpan::of_name(name.as_bytes()), None, "{name}");
    }
}
