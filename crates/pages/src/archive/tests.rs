//! An archive is the widest valid runs that follow one another.

use holdfast_io::fake::FakeFiles;
use holdfast_log::Lsn;

use super::*;
use crate::archive::run::RunWriter;
use crate::stream::frame_index::FramePlace;

fn tag() -> Tag {
    Tag::of(b"a store in tests")
}

fn span(level: u16, begin: u64, end: u64) -> RunSpan {
    RunSpan { level, begin: Rsn(begin), end: Rsn(end) }
}

/// A run without records.
fn write(files: &FakeFiles, span: RunSpan) -> Arc<Run> {
    let (first, end, lsn, lsn_end) = (span.begin, span.end, Lsn(0), Lsn(64));
    let frame = FramePlace { first, end, lsn, lsn_end, utc_ns: 0 };
    let run = RunWriter::begin(files, tag(), span).expect("there is room");
    run.finish(b"", &[frame]).expect("there is room");
    Arc::new(Run::open(files, span, tag()).expect("it is whole"))
}

fn damage(files: &FakeFiles, span: RunSpan) {
    let bytes = files.metadata(&span.path()).expect("it is there").size_bytes;
    files.flip_bit(&span.path(), 8 * (bytes - 1)).expect("it is there");
}

fn spans_of(archive: &Archive) -> Vec<RunSpan> {
    archive.runs().iter().map(|run| run.span()).collect()
}

fn open(files: &FakeFiles) -> Result<Vec<RunSpan>, OpenArchiveError> {
    Archive::open(files, tag()).map(|archive| spans_of(&archive))
}

/// A disk with these runs.
fn disk(spans: &[RunSpan]) -> FakeFiles {
    let files = FakeFiles::new(1);
    spans.iter().for_each(|span| drop(write(&files, *span)));
    files
}

#[test]
fn runs_that_follow_one_another_are_an_archive() {
    assert_eq!(open(&disk(&[])).expect("nothing is missing"), []);
    let runs = [span(0, 8, 20), span(0, 20, 30), span(0, 30, 99)];
    let archive = Archive::open(&disk(&runs), tag()).expect("nothing is missing");
    assert_eq!((archive.begin(), archive.end()), (Some(Rsn(8)), Some(Rsn(99))));
    assert_eq!(spans_of(&archive), runs);
}

#[test]
fn what_a_merge_left_behind_is_removed_and_so_is_what_was_not_finished() {
    let (one, two, both) = (span(0, 8, 20), span(0, 20, 30), span(1, 8, 30));
    let files = disk(&[one, two, both]);
    drop(RunWriter::begin(&files, tag(), span(0, 30, 40)).expect("there is room"));
    assert_eq!(open(&files).expect("nothing is missing"), [both]);
    let left = files.read_dir(Path::new("")).expect("it is there");
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_damaged_wide_run_gives_way_to_those_that_it_was_merged_from() {
    let (one, two, both) = (span(0, 8, 20), span(0, 20, 30), span(1, 8, 30));
    let files = disk(&[one, two, both]);
    damage(&files, both);
    assert_eq!(open(&files).expect("nothing is missing"), [one, two]);
    assert_eq!(files.read_dir(Path::new("")).expect("it is there").len(), 2);
    let (last, longer) = (span(0, 30, 40), span(1, 20, 40));
    drop((write(&files, last), write(&files, longer)));
    damage(&files, last);
    damage(&files, longer);
    assert_eq!(open(&files).expect("the end is the caller's to know"), [one, two]);
    assert_eq!(files.read_dir(Path::new("")).expect("it is there").len(), 4);
}

#[test]
fn a_run_that_is_missing_or_damaged_is_told_and_nothing_is_removed() {
    let runs = [span(0, 8, 20), span(0, 20, 30), span(0, 30, 99), span(0, 22, 25)];
    let files = disk(&runs[..3]);
    damage(&files, runs[1]);
    let archive = Archive::open(&files, tag()).expect("the others are there");
    assert_eq!(archive.lost().collect::<Vec<_>>(), [span(LEVEL_LOST, 20, 30)]);
    let asked = archive.runs()[1].state();
    assert!(matches!(asked, Err(RunFault::Lost { begin: Rsn(20), end: Rsn(30) })), "{asked:?}");
    assert_eq!(files.read_dir(Path::new("")).expect("it is there").len(), 3);
    write(&files, runs[3]);
    let looked = Archive::look(&files, tag());
    let gap = OpenArchiveError::MissingRun { from: Rsn(20), to: Rsn(22) };
    assert_eq!(format!("{looked:?}"), format!("{:?}", Err::<(), _>(gap)));
    let spans = open(&files).expect("the others are there");
    let lost = [span(LEVEL_LOST, 20, 22), span(LEVEL_LOST, 25, 30)];
    assert_eq!(spans, [runs[0], lost[0], runs[3], lost[1], runs[2]]);
    assert_eq!(files.read_dir(Path::new("")).expect("it is there").len(), 4);
}

#[test]
fn what_is_missing_at_both_ends_is_lost_as_far_as_it_is_needed() {
    let archive = Archive::open(&disk(&[span(0, 20, 30)]), tag()).expect("a run");
    assert_eq!(archive.complete(Rsn(20), Rsn(30), tag()).lost().count(), 0);
    let lost = archive.complete(Rsn(19), Rsn(31), tag());
    assert_eq!(
        lost.lost().collect::<Vec<_>>(),
        [8, 30].map(|begin| { span(LEVEL_LOST, begin, if begin == 8 { 20 } else { 31 }) })
    );
    let none = Archive::default().complete(Rsn(8), Rsn(31), tag());
    assert_eq!(spans_of(&none), [span(LEVEL_LOST, 8, 31)]);
}

#[test]
fn an_archive_that_somebody_has_does_not_change() {
    let files = disk(&[span(0, 8, 20), span(0, 20, 30)]);
    let archive = Archive::open(&files, tag()).expect("nothing is missing");
    let longer = archive.with(write(&files, span(0, 30, 40)));
    let merged = longer.with(write(&files, span(1, 8, 30)));
    assert_eq!(spans_of(&archive), [span(0, 8, 20), span(0, 20, 30)]);
    assert_eq!(spans_of(&merged), [span(1, 8, 30), span(0, 30, 40)]);
}

#[test]
#[should_panic(expected = "runs follow one another")]
fn a_gap_is_our_own_mistake() {
    let files = disk(&[span(0, 8, 20)]);
    let archive = Archive::open(&files, tag()).expect("nothing is missing");
    drop(archive.with(write(&files, span(0, 21, 40))));
}
