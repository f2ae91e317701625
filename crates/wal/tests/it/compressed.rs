//! Sets that are compressed: shorter, and as they were.

use holdfast_io::fake::FakeFiles;
use holdfast_wal::format::{Archive, Raw};
use holdfast_wal::{AppendError, Compression, Log, Options, Record};

use crate::support::{SMALL, place, records};

const PACKED: Options = SMALL.with_compression(Compression::Lz4);

fn log_of(options: &Options) -> (FakeFiles, Log<Vec<u8>, Raw>) {
    let files = FakeFiles::new(1);
    Log::<Vec<u8>, Raw>::create_at(&place(&files), options).unwrap();
    let log = Log::open_at(place(&files), options).unwrap().0;
    (files, log)
}

/// Text that repeats itself.
fn text(bytes: usize) -> Vec<u8> {
    b"the same words, and ".iter().copied().cycle().take(bytes).collect()
}

/// Bytes that do not.
fn noise(bytes: usize) -> Vec<u8> {
    let mut random = holdfast_io::fake::Random::new(bytes as u64);
    std::iter::repeat_with(|| random.below(256) as u8).take(bytes).collect()
}

fn bytes_taken(log: &Log<Vec<u8>, Raw>, item: &Vec<u8>) -> u64 {
    let ticket = log.append(item).unwrap();
    ticket.end().since(ticket.lsn())
}

#[test]
fn what_repeats_itself_takes_less_and_everything_comes_back() {
    let (files, log) = log_of(&PACKED);
    let items: Vec<Vec<u8>> =
        (0..200).map(|n| if n % 2 == 0 { text(n * 50) } else { noise(n * 30) }).collect();
    for set in items.chunks(3) {
        log.append_all(set).unwrap();
    }
    log.close().unwrap();
    assert!(records(&log).unwrap() == items);
    drop(log);
    for options in [SMALL, PACKED] {
        let (log, _) = Log::<Vec<u8>, Raw>::open_at(place(&files), &options).unwrap();
        assert!(records(&log).unwrap() == items, "whatever is chosen later");
    }
}

#[test]
fn noise_is_stored_as_it_is_and_text_is_not() {
    let (_, plain) = log_of(&SMALL);
    let (_, packed) = log_of(&PACKED);
    for item in [noise(4000), noise(100), text(100)] {
        assert_eq!(bytes_taken(&packed, &item), bytes_taken(&plain, &item));
    }
    assert!(bytes_taken(&packed, &text(4000)) * 10 < bytes_taken(&plain, &text(4000)));
}

#[test]
fn a_set_that_would_fit_only_compressed_is_refused() {
    let (_, log) = log_of(&PACKED);
    let max = log.stat().set_bytes_max;
    let refused = log.append(&vec![0; max as usize + 1]);
    assert!(
        matches!(refused, Err(AppendError::TooLarge { set_bytes_max, .. }) if set_bytes_max == max),
        "{refused:?}"
    );
    log.append_durable(&vec![0; max as usize - 64]).unwrap();
    assert_eq!(records(&log).unwrap(), [vec![0; max as usize - 64]]);
}

/// Records that are read where they lie.
#[derive(Clone, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct Row(u64, String);

impl Record for Row {
    const NAME: &'static str = "row";
}

#[test]
fn views_work_on_what_was_compressed() {
    let files = FakeFiles::new(1);
    Log::<Row, Archive>::create_at(&place(&files), &PACKED).unwrap();
    let (log, _) = Log::<Row, Archive>::open_at(place(&files), &PACKED).unwrap();
    let rows: Vec<Row> = (0..100).map(|id| Row(id, "again and ".repeat(id as usize))).collect();
    rows.chunks(7).for_each(|set| {
        log.append_all(set).unwrap();
    });
    log.commit().unwrap();
    let (mut replay, mut id) = (log.iter(), 0);
    while let Some(entry) = replay.next_view().unwrap() {
        assert_eq!((entry.record.0.to_native(), entry.record.1.len() as u64), (id, id * 10));
        id += 1;
    }
    assert_eq!(id, 100);
}
