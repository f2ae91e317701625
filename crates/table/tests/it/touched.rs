//! How much a request of few bytes makes the store do.

use holdfast_io::fake::Random;
use holdfast_store::{Config, Durability, Store};
use holdfast_table::{
    Condition, Index, Kind, Outcome, Range, Refusal, Request, Schema, Status, TOUCHED_BYTES_MAX,
    Tables, row,
};

use crate::life::ask;
use crate::power::with_seeds;

/// Bytes of the wide rows.
const WIDE_BYTES: usize = 500 << 10;
const WIDE_ROWS: u64 = 3;

/// So many operations on them are no request that is done.
const OPERATIONS: u64 = 600;

/// A change is told with what was there, and told again when it is undone.
const LOG_BYTES_PER_TOUCHED: u64 = 4;

/// Tables with some wide rows, in a directory that goes with them.
fn with_wide_rows() -> (tempfile::TempDir, Tables) {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(directory.path(), &Config::default()).unwrap();
    let tables = Tables::open(store, Durability::Memory).unwrap();
    let index = Index { fields: vec![1], is_unique: false };
    let wide = Schema::new(vec![Kind::U64, Kind::U64, Kind::Bytes], 1, vec![index]).unwrap();
    ask(&tables, 1, &Request::new().make("wide", wide)).unwrap().unwrap();
    for number in 0..WIDE_ROWS {
        let row = row![number, 0_u64, vec![7; WIDE_BYTES]];
        ask(&tables, 2 + number, &Request::new().insert("wide", row)).unwrap().unwrap();
    }
    (directory, tables)
}

/// One more operation of few bytes about a wide row, that alone would be done.
fn with_one_more(request: Request, at: u64, random: &mut Random) -> Request {
    let key = row![random.below(WIDE_ROWS)];
    match random.below(5) {
        0 => request.set("wide", key, 1, at),
        1 => request.add("wide", key, 1, 1),
        2 => request.expect("wide", row![9_u64], Condition::Absent).set("wide", key, 1, at),
        3 => request.scan("wide", Range::all().limit(0)).add("wide", key, 1, 1),
        _ => request.add("wide", key.clone(), 1, 1).add("wide", key, 1, -1),
    }
}

fn play(seed: u64) -> u64 {
    let (_directory, tables) = with_wide_rows();
    let random = &mut Random::new(seed);
    let more = |request, at| with_one_more(request, at, random);
    let request = (0..OPERATIONS).fold(Request::new(), more);
    let before = tables.store().stat().next.get();
    let answer = ask(&tables, 10, &request).unwrap();
    let bytes = tables.store().stat().next.get() - before;
    let most = LOG_BYTES_PER_TOUCHED * TOUCHED_BYTES_MAX as u64;
    let asked = request.encode().len();
    assert!(bytes <= most, "{asked} bytes of a request made {bytes} bytes of records");
    assert!(matches!(answer, Err(Refusal { status: Status::TooLarge, .. })), "{answer:?}");
    let some =
        (0..10_u64).fold(Request::new(), |request, at| request.set("wide", row![1_u64], 1, at));
    assert_eq!(ask(&tables, 11, &some).unwrap(), Ok(vec![Outcome::Done; 10]));
    assert_eq!(tables.check().unwrap().disagreements, vec![]);
    1
}

#[test]
fn few_bytes_that_name_wide_rows_again_and_again_make_no_more_log_than_the_bound() {
    with_seeds(1..4, "touched::few_bytes_that_name", play);
}

#[test]
fn few_bytes_that_look_at_wide_rows_again_and_again_are_refused() {
    let (_directory, tables) = with_wide_rows();
    let has = || Condition::Has(vec![(1, 0_u64.into())]);
    let scans = (0..OPERATIONS)
        .fold(Request::new(), |request, _| request.scan("wide", Range::all().limit(0)));
    let answer = ask(&tables, 10, &scans).unwrap();
    assert!(matches!(answer, Err(Refusal { status: Status::TooLarge, .. })), "{answer:?}");
    let looks = (0..OPERATIONS).fold(Request::new(), |it, _| it.expect("wide", row![1_u64], has()));
    let answer = ask(&tables, 11, &looks).unwrap();
    assert!(matches!(answer, Err(Refusal { status: Status::TooLarge, .. })), "{answer:?}");
}

#[test]
fn a_request_of_many_bytes_may_touch_as_much_as_it_has() {
    let (_directory, tables) = with_wide_rows();
    let rows = (TOUCHED_BYTES_MAX / WIDE_BYTES) as u64 + 10;
    let more =
        |request: Request, at: u64| request.upsert("wide", row![100 + at, at, vec![7; WIDE_BYTES]]);
    let request = (0..rows).fold(Request::new(), more);
    assert!(ask(&tables, 10, &request).unwrap().is_ok(), "its own bytes are more than the bound");
    assert!(ask(&tables, 11, &request).unwrap().is_ok(), "and so are the rows that it replaces");
}
