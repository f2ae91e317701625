//! A log that stays on its device: longer than its ring, read by cursors.

use std::sync::Arc;
use std::time::Duration;

use holdfast_io::Files;
use holdfast_io::fake::{FakeClock, FakeFiles, Mood, is_power_cut};
use holdfast_log::{
    AppendError, CreateError, Cursor, CursorError, Log, LogConfig, Lsn, OpenError, Recovery,
    Retention,
};
use holdfast_memory::Region;

use crate::support::{CONFIG, IDENTITY, Put, payload, region};

pub(crate) const ON_DEVICE: LogConfig = LogConfig { retention: Retention::OnDevice, ..CONFIG };

pub(crate) fn open(
    files: &FakeFiles,
    region: Arc<Region>,
) -> Result<(Arc<Log>, Recovery), OpenError> {
    open_as(files, region, ON_DEVICE)
}

pub(crate) fn open_as(
    files: &FakeFiles,
    region: Arc<Region>,
    config: LogConfig,
) -> Result<(Arc<Log>, Recovery), OpenError> {
    let files: Arc<dyn Files> = Arc::new(files.clone());
    let (log, recovery) = Log::open(files, region, Arc::new(FakeClock::default()), config)?;
    Ok((Arc::new(log), recovery))
}

pub(crate) fn new_log(seed: u64) -> (FakeFiles, Arc<Log>) {
    let files = FakeFiles::new(seed);
    Log::create(&files, IDENTITY, &ON_DEVICE).expect("an empty disk takes a log");
    let (log, _) = open(&files, Arc::new(region())).expect("a new log opens");
    (files, log)
}

/// Appends one, making room by draining; None if the log's disk has failed.
pub(crate) fn one(log: &Log, number: u64) -> Option<Put> {
    let payload = payload(number, (number * 397 % 9_000) as usize);
    loop {
        match log.append(1, &[&payload]) {
            Ok(at) => return Some(Put { lsn: at.lsn, end: at.end, payload }),
            Err(AppendError::Full) => log.wait_for_room(payload.len() as u64).ok()?,
            Err(_) => return None,
        }
    }
}

/// Appends these.
pub(crate) fn append(log: &Log, numbers: std::ops::Range<u64>) -> Vec<Put> {
    numbers.map(|number| one(log, number).expect("the disk is sound")).collect()
}

/// Everything that is durable from where the cursor is.
pub(crate) fn rest(cursor: &mut Cursor) -> Vec<Put> {
    let mut found = Vec::new();
    while let Some(frame) = cursor.next_frame().expect("nothing is damaged") {
        let (lsn, end) = (frame.header.lsn, frame.end());
        found.push(Put { lsn, end, payload: frame.payload.to_vec() });
    }
    found
}

#[test]
fn a_log_many_times_longer_than_its_ring_is_read_back_whole_also_after_a_restart() {
    let (files, log) = new_log(1);
    let mut puts = append(&log, 0..400);
    log.commit(log.marks().tail).unwrap();
    assert!(log.marks().tail.0 > 4 * region().ring_bytes(), "{:?}", log.marks());
    assert_eq!(rest(&mut log.cursor(log.first())), puts);
    log.close().unwrap();
    drop(log);
    let (log, recovery) = open(&files, Arc::new(region())).unwrap();
    assert_eq!(recovery.released, Lsn(0));
    puts.extend(append(&log, 400..500));
    log.commit(log.marks().tail).unwrap();
    assert!(rest(&mut log.cursor(log.first())) == puts);
}

#[test]
fn a_cursor_shows_only_what_is_durable_and_goes_on_when_there_is_more() {
    let (_files, log) = new_log(2);
    let mut cursor = log.cursor(log.first());
    let puts = append(&log, 0..3);
    assert_eq!(rest(&mut cursor), []);
    assert!(!cursor.wait(Duration::ZERO));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            while !cursor.wait(Duration::from_secs(60)) {}
            rest(&mut cursor)
        });
        log.commit(puts[2].end).unwrap();
        assert_eq!(waiting.join().unwrap(), puts);
    });
}

#[test]
fn several_cursors_read_from_wherever_they_like() {
    let (_files, log) = new_log(3);
    let puts = append(&log, 0..200);
    log.commit(log.marks().tail).unwrap();
    for start in [0, 1, 77, 199] {
        assert_eq!(rest(&mut log.cursor(puts[start].lsn)), puts[start..]);
    }
    let mut amid = log.cursor(puts[5].lsn.advance(8));
    assert!(matches!(amid.next_frame(), Err(CursorError::Damaged { .. })));
}

#[test]
fn what_is_marked_makes_room_on_the_device_and_a_late_cursor_is_told() {
    let (files, log) = new_log(4);
    let puts = append(&log, 0..100);
    log.commit(log.marks().tail).unwrap();
    let mut late = log.cursor(puts[0].lsn);
    let files_there = || files.read_dir("".as_ref()).unwrap().len();
    let mut counts = Vec::new();
    for round in 0..10 {
        let more = append(&log, round * 100..round * 100 + 100);
        log.commit(log.marks().tail).unwrap();
        log.mark(more[90].lsn).unwrap();
        log.commit(log.marks().tail).unwrap();
        counts.push(files_there());
    }
    assert_eq!(counts[2], counts[9], "files are used again: {counts:?}");
    let truncated = late.next_frame();
    assert!(
        matches!(truncated, Err(CursorError::Truncated { first }) if first == log.first()),
        "{truncated:?}"
    );
}

#[test]
fn damage_on_the_device_is_reported_where_it_is() {
    let (files, log) = new_log(5);
    let puts = append(&log, 0..20);
    log.commit(log.marks().tail).unwrap();
    // Position p lies at byte 4096 + p of the first file.
    let byte = 4096 + puts[7].end.0 - 16;
    files.flip_bit("segment-00000000".as_ref(), byte * 8 + 3).unwrap();
    let mut cursor = log.cursor(log.first());
    for put in &puts[..7] {
        assert_eq!(cursor.next_frame().unwrap().unwrap().header.lsn, put.lsn);
    }
    let damaged = cursor.next_frame();
    assert!(
        matches!(damaged, Err(CursorError::Damaged { at }) if at == puts[7].lsn),
        "{damaged:?}"
    );
    assert_eq!(cursor.position(), puts[7].lsn, "it stays there");
}

/// Makes the log unless it is there, and opens it; None if the power goes.
pub(crate) fn made(files: &FakeFiles, config: LogConfig) -> Option<Arc<Log>> {
    let made = Log::create(files, IDENTITY, &config);
    made.err().is_none_or(|error| matches!(error, CreateError::Exists)).then_some(())?;
    match crate::survivor::open(files, config) {
        Ok((log, _)) => Some(log),
        Err(OpenError::Io(error)) if is_power_cut(&error) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Makes the log unless it is there, checks that it begins with `durable`, appends and commits a
/// few times, and returns all that was durable when the power went.
fn life(files: &FakeFiles, durable: &mut Vec<Put>, count: u64) -> Option<()> {
    let log = made(files, ON_DEVICE)?;
    log.commit(log.marks().tail).ok()?;
    let found = rest(&mut log.cursor(log.first()));
    assert!(found.starts_with(durable), "acknowledged as durable, and not there");
    *durable = found;
    for _ in 0..count {
        let next = durable.len() as u64;
        let put = one(&log, next)?;
        log.commit(put.end).ok()?;
        durable.push(put);
    }
    log.close().ok()
}

#[test]
fn what_was_durable_is_read_back_after_a_power_cut_at_any_io() {
    let whole = FakeFiles::new(6);
    life(&whole, &mut Vec::new(), 40).expect("nothing is in the way");
    let mut images = 0;
    for cut in 1..=whole.operations() {
        let files = FakeFiles::new(6);
        files.cut_power_at(cut);
        let mut durable = Vec::new();
        assert!(life(&files, &mut durable, 40).is_none(), "cut {cut} was not reached");
        for mood in [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter] {
            let image = files.after_power_cut_in(mood, cut);
            let survived = life(&image, &mut durable.clone(), 3);
            assert!(survived.is_some(), "cut {cut} {mood:?}");
            images += 1;
        }
    }
    println!("{images} images of a log on its device");
}
