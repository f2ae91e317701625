//! Sealed logs: what they take comes back under their keys, and says nothing without.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_io::fake::{FakeFiles, Mood};
use holdfast_io::{Files, OpenHow};
use holdfast_log::CheckVerdict;
use holdfast_wal::format::{Archive, Format, MessagePack, Raw};
use holdfast_wal::{
    AppendError, Compression, CreateError, Keys, Log, Lsn, OpenError, Options, Padding, Record,
    ReplayError,
};

use crate::support::{SMALL, Work, place, records, work, works};

/// The key with this id; every other id has another.
fn key(id: u32) -> [u8; 32] {
    let mut key = [0x5a; 32];
    key[..4].copy_from_slice(&id.to_le_bytes());
    key
}

/// Options with a ring of these keys, of which the first is current.
pub(crate) fn sealed(ids: &[u32]) -> Options {
    let ring: Vec<_> = ids.iter().map(|id| (*id, key(*id))).collect();
    let ring: Vec<_> = ring.iter().map(|(id, key)| (*id, key)).collect();
    SMALL.with_keys(Keys::new(ring[0], &ring[1..]).unwrap())
}

pub(crate) fn open_as<R: Record, F: Format<R>>(
    files: &FakeFiles,
    options: &Options,
) -> Result<Log<R, F>, OpenError> {
    Log::open_at(place(files), options).map(|(log, _)| log)
}

fn open(files: &FakeFiles, options: &Options) -> Result<Log<Work, MessagePack>, OpenError> {
    open_as(files, options)
}

/// A new log on a new disk.
pub(crate) fn new_log<R: Record, F: Format<R>>(options: &Options) -> (FakeFiles, Log<R, F>) {
    let files = FakeFiles::new(1);
    Log::<R, F>::create_at(&place(&files), options).unwrap();
    let log = open_as(&files, options).unwrap();
    (files, log)
}

/// What a file holds.
pub(crate) fn contents(files: &FakeFiles, name: &std::path::Path) -> Vec<u8> {
    let mut bytes = vec![0; 1 << 20];
    let file = files.open(name, OpenHow::default()).unwrap();
    let length = file.read_full_at(&mut bytes, 0).unwrap();
    bytes.truncate(length);
    bytes
}

#[test]
fn padding_without_keys_is_refused_and_nothing_is_made_or_changed() {
    let files = FakeFiles::new(1);
    let padded = SMALL.with_padding(Padding::Padme);
    let before = files.operations();
    let made = Log::<Work, MessagePack>::create_at(&place(&files), &padded);
    assert!(matches!(made, Err(CreateError::PaddingWithoutKeys)), "{made:?}");
    assert_eq!(files.operations(), before);
    let (files, log) = new_log::<Work, MessagePack>(&SMALL);
    drop(log);
    let before = files.operations();
    let opened = open(&files, &padded).map(drop);
    assert!(matches!(opened, Err(OpenError::PaddingWithoutKeys)), "{opened:?}");
    assert_eq!(files.operations(), before);
    open(&files, &SMALL).unwrap();
    let (files, _) = new_log::<Work, MessagePack>(&sealed(&[1]).with_padding(Padding::Padme));
    assert!(
        matches!(open(&files, &padded), Err(OpenError::Sealed)),
        "its keys are what is missing"
    );
}

/// Whether any file of the disk has these bytes in it.
fn appears(files: &FakeFiles, wanted: &[u8]) -> bool {
    let names = files
        .read_dir("".as_ref())
        .unwrap()
        .into_iter()
        .map(|entry| String::from_utf8(entry.name).unwrap());
    let mut all = names.map(|name| contents(files, name.as_ref()));
    all.any(|bytes| bytes.windows(wanted.len()).any(|window| window == wanted))
}

#[test]
fn a_sealed_log_gives_back_what_it_took_and_its_files_do_not_show_it() {
    for compression in [Compression::None, Compression::Lz4] {
        let options = sealed(&[1]).with_compression(compression);
        let (files, log) = new_log::<Work, MessagePack>(&options);
        works(0..2000).chunks(3).for_each(|set| {
            log.append_all(set).unwrap();
        });
        log.close().unwrap();
        assert!(records(&log).unwrap() == works(0..2000));
        drop(log);
        assert!(records(&open(&files, &options).unwrap()).unwrap() == works(0..2000));
        assert!(!appears(&files, b"work item") && !appears(&files, &key(1)[4..]));
        let verified = holdfast_log::Log::verify(&files, &mut |_| {}).unwrap();
        assert_eq!(verified.verdict, CheckVerdict::Clean);
    }
}

#[test]
fn what_a_log_shows_that_is_not_sealed_would_be_found() {
    let (files, log) = new_log::<Work, MessagePack>(&SMALL);
    log.append_durable(&work(1)).unwrap();
    assert!(appears(&files, b"work item"));
}

#[test]
fn an_empty_log_knows_its_key() {
    let (files, log) = new_log::<Work, MessagePack>(&sealed(&[1]));
    drop(log);
    let wrong = SMALL.with_keys(Keys::new((1, &key(2)), &[]).unwrap());
    let opened = open(&files, &wrong).map(drop);
    assert!(matches!(opened, Err(OpenError::WrongKey { id: 1 })), "{opened:?}");
    let opened = open(&files, &SMALL).map(drop);
    assert!(matches!(opened, Err(OpenError::Sealed)), "{opened:?}");
    open(&files, &sealed(&[1])).unwrap();
}

#[test]
fn keys_for_a_log_that_is_not_sealed_are_refused() {
    let (files, log) = new_log::<Work, MessagePack>(&SMALL);
    drop(log);
    let opened = open(&files, &sealed(&[1])).map(drop);
    assert!(matches!(opened, Err(OpenError::NotSealed)), "{opened:?}");
    open(&files, &SMALL).unwrap();
}

/// A log of ten work items under each of the keys 1 to 3, and the end of those under key 2.
fn rotated() -> (FakeFiles, Lsn) {
    let (files, log) = new_log::<Work, MessagePack>(&sealed(&[1]));
    drop(log);
    let mut end = Lsn(0);
    for id in 1..=3 {
        let older: Vec<u32> = (1..=id).rev().collect();
        let log = open(&files, &sealed(&older)).unwrap();
        let ticket = log.append_all(&works(id * 10..id * 10 + 10)).unwrap();
        ticket.wait().unwrap();
        end = if id == 2 { ticket.end() } else { end };
    }
    (files, end)
}

#[test]
fn a_log_under_several_keys_is_read_with_a_ring_of_them() {
    let (files, _) = rotated();
    for ids in [[1, 2, 3], [3, 2, 1]] {
        assert_eq!(records(&open(&files, &sealed(&ids)).unwrap()).unwrap(), works(10..40));
    }
}

#[test]
fn a_key_that_is_not_there_is_named_and_the_reader_stays() {
    let (files, _) = rotated();
    let log = open(&files, &sealed(&[3, 1])).unwrap();
    let mut replay = log.iter();
    let before: Vec<_> = replay.by_ref().take(10).map(|entry| entry.unwrap().record).collect();
    assert_eq!(before, works(10..20));
    let missing = replay.next();
    assert!(matches!(missing, Some(Err(ReplayError::NoKey { id: 2, .. }))), "{missing:?}");
    assert!(replay.next().is_none());
    let mut tail = log.tail(log.stat().checkpoint);
    for id in 10..20 {
        assert_eq!(tail.next(Duration::ZERO).unwrap().unwrap().record, work(id));
    }
    for _ in 0..2 {
        let missing = tail.next(Duration::ZERO);
        assert!(matches!(missing, Err(ReplayError::NoKey { id: 2, .. })), "{missing:?}");
    }
}

#[test]
fn another_key_under_the_id_of_older_sets_is_refused_until_a_checkpoint_has_passed_them() {
    let (files, end) = rotated();
    let ring = |id: u32| {
        let ring = Keys::new((3, &key(3)), &[(1, &key(1)), (2, &key(id))]).unwrap();
        SMALL.with_keys(ring)
    };
    let refused = open(&files, &ring(7)).map(drop);
    assert!(matches!(refused, Err(OpenError::WrongKey { id: 2 })), "{refused:?}");
    let log = open(&files, &ring(2)).unwrap();
    assert_eq!(records(&log).unwrap(), works(10..40));
    log.checkpoint(end).unwrap();
    drop(log);
    open(&files, &ring(7)).expect("no set is left that it sealed");
}

#[test]
fn another_key_under_the_id_of_the_newest_set_is_refused_when_the_log_is_opened() {
    let (files, _) = rotated();
    let ring = |id: u32| Keys::new((3, &key(id)), &[(1, &key(1)), (2, &key(2))]).unwrap();
    for _ in 0..2 {
        let refused = open(&files, &SMALL.with_keys(ring(7))).map(drop);
        assert!(matches!(refused, Err(OpenError::WrongKey { id: 3 })), "{refused:?}");
    }
    let log = open(&files, &SMALL.with_keys(ring(3))).unwrap();
    assert_eq!(records(&log).unwrap(), works(10..40));
    log.checkpoint(log.stat().end).unwrap();
    log.close().unwrap();
    drop(log);
    open(&files, &SMALL.with_keys(ring(7))).expect("no set is left that it sealed");
}

#[test]
fn a_key_is_needed_until_a_checkpoint_has_passed_what_it_sealed() {
    let (files, end) = rotated();
    let log = open(&files, &sealed(&[3])).unwrap();
    assert!(records(&log).is_err());
    log.checkpoint(end).unwrap();
    assert_eq!(records(&log).unwrap(), works(30..40));
    drop(log);
    assert_eq!(records(&open(&files, &sealed(&[3])).unwrap()).unwrap(), works(30..40));
}

#[test]
fn sets_of_other_lengths_are_equally_long_once_they_are_padded() {
    let lengths = |padding, range: std::ops::Range<usize>| {
        let options = sealed(&[1]).with_padding(padding);
        let (_files, log) = new_log::<Vec<u8>, Raw>(&options);
        let items: Vec<_> = range.map(|length| vec![length as u8; length]).collect();
        let mut lengths: Vec<u64> = items
            .iter()
            .map(|item| log.append(item).map(|ticket| ticket.end().since(ticket.lsn())).unwrap())
            .collect();
        log.commit().unwrap();
        assert!(records(&log).unwrap() == items);
        lengths.sort_unstable();
        lengths.dedup();
        lengths.len()
    };
    // Where a block ends a frame may be up to 48 bytes longer.
    assert!(lengths(Padding::None, 0..450) > 40);
    assert!(lengths(Padding::Multiple(512), 0..450) <= 4);
    assert!(lengths(Padding::Padme, 2000..2100) <= 6);
}

#[test]
fn the_longest_set_is_sealed_whatever_it_is_padded_to() {
    for padding in [Padding::None, Padding::Padme, Padding::Multiple(u32::MAX)] {
        let (_files, log) = new_log::<Vec<u8>, Raw>(&sealed(&[1]).with_padding(padding));
        let max = log.stat().set_bytes_max as usize;
        let refused = log.append(&vec![7; max + 1]);
        assert!(matches!(refused, Err(AppendError::TooLarge { .. })), "{refused:?}");
        let longest = (max - 16..=max).rev().find(|bytes| log.append(&vec![7; *bytes]).is_ok());
        let longest = longest.expect("a record takes at most 16 bytes of its set");
        log.append_durable(&vec![7; 3]).unwrap();
        assert_eq!(records(&log).unwrap(), [vec![7; longest], vec![7; 3]]);
    }
}

/// Records that are read where they lie.
#[derive(Clone, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct Row(u64, String);

impl Record for Row {
    const NAME: &'static str = "row";
}

#[test]
fn views_work_on_what_was_sealed() {
    for compression in [Compression::None, Compression::Lz4] {
        let options = sealed(&[1]).with_compression(compression);
        let (_files, log) = new_log::<Row, Archive>(&options);
        let rows: Vec<Row> = (0..100).map(|id| Row(id, "again, ".repeat(id as usize))).collect();
        rows.chunks(7).for_each(|set| {
            log.append_all(set).unwrap();
        });
        log.commit().unwrap();
        let (mut replay, mut id) = (log.iter(), 0);
        while let Some(entry) = replay.next_view().unwrap() {
            assert_eq!((entry.record.0.to_native(), entry.record.1.len() as u64), (id, id * 7));
            id += 1;
        }
        assert_eq!(id, 100);
    }
}

/// Opens the log, and appends the same record again and again. Returns the disk as it is if the
/// power fails before anything of that is synced, and the frames that were written, by position.
fn life(files: &FakeFiles) -> (FakeFiles, BTreeMap<Lsn, Vec<u8>>) {
    let log = open(files, &sealed(&[1])).unwrap();
    let tickets: Vec<_> = (0..200).map(|_| log.append(&work(1)).unwrap()).collect();
    let lost = files.after_power_cut_in(Mood::LoseAll, 1);
    log.commit().unwrap();
    let segment = contents(files, "segment-00000000".as_ref());
    let frame = |lsn: Lsn, end: Lsn| {
        segment[4096 + lsn.get() as usize + 48..4096 + end.get() as usize].to_vec()
    };
    (lost, tickets.iter().map(|at| (at.lsn(), frame(at.lsn(), at.end()))).collect())
}

#[test]
fn what_is_written_again_where_a_power_cut_took_it_is_sealed_anew() {
    let mut disk = FakeFiles::new(1);
    Log::<Work, MessagePack>::create_at(&place(&disk), &sealed(&[1])).unwrap();
    let (mut seen, mut again) = (BTreeMap::new(), 0);
    for _ in 0..3 {
        let (lost, frames) = life(&disk);
        for (lsn, frame) in frames {
            let before = seen.insert(lsn, frame.clone());
            assert_ne!(before, Some(frame), "the same place, key, record and ciphertext");
            again += u32::from(before.is_some());
        }
        disk = lost;
    }
    assert!(again > 10, "few places were written again: {again}");
}
