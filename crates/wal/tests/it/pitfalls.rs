//! What goes wrong with write-ahead logs, and does not with this one: docs/pitfalls.md has the
//! list, and names a test for each. Here are those that no other file has.

use std::collections::BTreeSet;
use std::path::Path;

use holdfast_io::fake::{EIO, Effect, FakeFiles, Fault, Mood, Operation};
use holdfast_io::{Files, OpenHow};
use holdfast_wal::format::MessagePack;
use holdfast_wal::{
    CheckVerdict, Log, LsnRange, OpenError, Options, ReplayError, Scanned, Ticket, verify_at,
};

use crate::support::{SMALL, Work, new_log, open, place, records, work, works};

const FIRST: &str = "segment-00000000";
/// Position p of a log lies at this byte plus p of its first segment file.
const FRAMES_OFFSET: u64 = 4096;
const SEGMENT_BYTES: u64 = 64 << 10;
/// Opens read everything.
const WHOLE: Options = SMALL.with_scan(Scanned::Whole);

/// A closed log of so many sets of one, of several segments if there are a thousand, and where
/// they went.
fn closed(count: u32) -> (FakeFiles, Vec<LsnRange>) {
    let (files, log) = new_log(1);
    let sets = (0..count).map(|id| stretch(log.append(&work(id)).unwrap())).collect();
    log.close().unwrap();
    (files, sets)
}

fn stretch(ticket: Ticket<'_>) -> LsnRange {
    LsnRange { from: ticket.lsn(), to: ticket.end() }
}

fn copy(files: &FakeFiles) -> FakeFiles {
    files.after_power_cut_in(Mood::KeepAll, 0)
}

fn open_whole(files: &FakeFiles) -> Result<Log<Work, MessagePack>, OpenError> {
    Log::open_at(place(files), &WHOLE).map(|(log, _)| log)
}

/// The disk as it is if only what was synced is there.
fn synced(files: &FakeFiles) -> FakeFiles {
    files.after_power_cut_in(Mood::LoseAll, 0)
}

#[test]
fn pitfall_04_names_are_durable_before_they_count() {
    let (files, log) = new_log(1);
    assert!(records(&open(&synced(&files)).unwrap().0).unwrap().is_empty());
    let before = files.read_dir(Path::new("")).unwrap().len();
    works(0..2000).iter().for_each(|item| {
        log.append(item).unwrap();
    });
    log.commit().unwrap();
    assert!(files.read_dir(Path::new("")).unwrap().len() > before, "files were made on the way");
    assert!(records(&open(&synced(&files)).unwrap().0).unwrap() == works(0..2000));
    // The canary: a name that nobody made durable is gone.
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    files.open(Path::new("other"), how).unwrap().sync_data().unwrap();
    assert!(synced(&files).metadata(Path::new("other")).is_err());
}

#[test]
fn pitfall_07_a_damaged_length_neither_ends_the_log_nor_hides_what_follows() {
    let (files, sets) = closed(20);
    let (frame, next) = (sets[7], sets[8]);
    for bit in (24 * 8..28 * 8).chain(0..32) {
        let image = copy(&files);
        let at = (FRAMES_OFFSET + frame.from.get()) * 8 + bit;
        image.flip_bit(FIRST.as_ref(), at).unwrap();
        let found = verify_at(&place(&image), &mut |_| {}).unwrap();
        let damage: Vec<_> = found.damaged.iter().map(|damage| damage.stretch).collect();
        assert_eq!((damage.len(), damage[0].from, damage[0].to), (1, frame.from, next.from));
    }
    // All zeros are no end either.
    let how = OpenHow { write: true, ..OpenHow::default() };
    let file = files.open(FIRST.as_ref(), how).unwrap();
    file.write_all_at(&[0; 48], FRAMES_OFFSET + frame.from.get()).unwrap();
    assert!(matches!(open_whole(&files).map(drop), Err(OpenError::Corrupt { .. })));
}

#[test]
fn pitfall_10_a_read_that_fails_is_not_the_end_of_the_log() {
    let (files, _) = closed(1000);
    for skip in 0.. {
        let image = copy(&files);
        image.fail(Fault { operation: Operation::Read, skip, effect: Effect::Errno(EIO) });
        match open_whole(&image) {
            Ok(log) => {
                let fired = image.faults_fired() > 0;
                image.forget_faults();
                assert!(records(&log).unwrap() == works(0..1000), "read {skip} failed");
                if !fired {
                    assert!(skip > 5);
                    return;
                }
            }
            Err(error) => assert!(matches!(error, OpenError::Io(_)), "read {skip}: {error:?}"),
        }
    }
}

#[test]
fn pitfall_12_a_segment_that_is_followed_by_another_has_no_torn_end() {
    let (files, sets) = closed(1000);
    let last = sets.iter().rfind(|set| set.to.get() <= SEGMENT_BYTES).unwrap();
    files.flip_bit(FIRST.as_ref(), (FRAMES_OFFSET + last.from.get() + 60) * 8).unwrap();
    match open_whole(&files).map(drop) {
        Err(OpenError::Corrupt { from, .. }) => assert_eq!(from, last.from),
        other => panic!("{other:?}"),
    }
}

#[test]
fn pitfall_13_a_set_is_in_one_segment_and_there_as_a_whole_or_not_at_all() {
    let (files, log) = new_log(1);
    let sets: Vec<_> = (0..400).map(|set| works(set * 4..set * 4 + 4)).collect();
    let places: Vec<_> = sets.iter().map(|set| stretch(log.append_all(set).unwrap())).collect();
    log.close().unwrap();
    let segment = |position: u64| position / SEGMENT_BYTES;
    let within = |place: &LsnRange| segment(place.from.get()) == segment(place.to.get() - 1);
    assert!(places.iter().all(within));
    assert!(segment(places[399].from.get()) > 0, "there were borders to cross");
    drop(log);
    // Its last record only.
    let end = places[9].to.get();
    files.flip_bit(FIRST.as_ref(), (FRAMES_OFFSET + end - 16) * 8).unwrap();
    let (log, _) = open(&files).unwrap();
    let read: Vec<_> = log.iter().map_while(Result::ok).map(|entry| entry.record).collect();
    assert!(read == works(0..36));
}

#[test]
fn pitfall_15_a_file_system_without_direct_transfers_is_used_through_its_cache() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let (log, _) = Log::<Work, MessagePack>::open_or_create(directory.path(), &SMALL).unwrap();
    log.append_all(&works(0..50)).unwrap().wait().unwrap();
    log.close().unwrap();
    drop(log);
    let (log, _) = Log::<Work, MessagePack>::open(directory.path(), &SMALL).unwrap();
    assert_eq!(records(&log).unwrap(), works(0..50));
}

#[test]
fn pitfall_16_what_is_durable_has_left_every_cache() {
    let (files, log) = new_log(1);
    for id in 0..40 {
        let ticket = log.append(&work(id)).unwrap();
        let lost = records(&open(&synced(&files)).unwrap().0).unwrap();
        assert_eq!(lost, works(0..id), "the canary: it was in a cache");
        ticket.wait().unwrap();
        assert_eq!(records(&open(&synced(&files)).unwrap().0).unwrap(), works(0..id + 1));
    }
}

#[test]
fn pitfall_23_a_read_that_fails_is_an_error_and_no_signal() {
    let (files, log) = new_log(1);
    log.append_all(&works(0..100)).unwrap().wait().unwrap();
    files.fail(Fault { operation: Operation::Read, skip: 0, effect: Effect::Errno(EIO) });
    assert!(matches!(records(&log), Err(ReplayError::Io(_))));
    assert_eq!(records(&log).unwrap(), works(0..100), "nothing is mapped, nothing is remembered");
}

#[test]
fn pitfall_24_files_of_different_moments_are_no_log() {
    let (files, log) = new_log(1);
    works(0..300).iter().for_each(|item| {
        log.append(item).unwrap();
    });
    log.close().unwrap();
    drop(log);
    let older = copy(&files);
    let (log, _) = open(&files).unwrap();
    works(300..1500).iter().for_each(|item| {
        log.append(item).unwrap();
    });
    log.close().unwrap();
    drop(log);
    let mut refused = BTreeSet::new();
    for entry in older.read_dir(Path::new("")).unwrap() {
        let name = String::from_utf8(entry.name).unwrap();
        let mixed = copy(&files);
        replace(&mixed, &name, &older);
        let whole = match open_whole(&mixed) {
            Ok(log) => records(&log).unwrap() == works(0..1500),
            Err(OpenError::Corrupt { .. } | OpenError::File { .. }) => false,
            Err(error) => panic!("{name}: {error:?}"),
        };
        let verdict = verify_at(&place(&mixed), &mut |_| {}).map(|found| found.verdict);
        assert!(whole || !matches!(verdict, Ok(CheckVerdict::Clean)), "{name}: {verdict:?}");
        refused.insert((name.split('-').next().unwrap().to_owned(), whole));
    }
    let told = |name: &str| refused.contains(&(name.to_owned(), false));
    assert!(told("segment") && !told("catalogue"), "{refused:?}");
}

/// Puts a file of another disk in the place of one of this.
fn replace(files: &FakeFiles, name: &str, from: &FakeFiles) {
    let old = from.open(name.as_ref(), OpenHow::default()).unwrap();
    let mut bytes = vec![0; old.metadata().unwrap().size_bytes as usize];
    old.read_full_at(&mut bytes, 0).unwrap();
    let file = files.open(name.as_ref(), OpenHow { write: true, ..OpenHow::default() }).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    file.sync_data().unwrap();
}

/// The list, and where the tests are that it names.
const LIST: &str = include_str!("../../../../docs/pitfalls.md");

/// Number, test and file of each row.
fn rows() -> Vec<(usize, String, String)> {
    let cells = LIST.lines().filter(|line| line.starts_with("| ")).skip(1);
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        (cells[1].parse().unwrap(), cells[3].to_owned(), cells[4].to_owned())
    };
    cells.map(row).collect()
}

#[test]
fn every_pitfall_of_the_list_has_a_test_that_is_there() {
    let numbers: BTreeSet<usize> = rows().iter().map(|row| row.0).collect();
    assert!(numbers.into_iter().eq(1..=25));
    for (number, test, file) in rows() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(&file);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.contains(&format!("fn {test}(")), "{number}: no test {test} in {file}");
    }
}
