//! FORMAT.md and the code say the same.

use holdfast_format_docs::Tables as Format;
use holdfast_io::fake::Random;
use holdfast_store::{Config, Direction, Durability, LogPlace, Medium, Services, Store};

use crate::answer::{self, Outcome, Status};
use crate::once::NUMBERS_AHEAD_MAX;
use crate::{
    ANSWER_BYTES_MAX, Action, Change, Condition, Disagreement, Edge, FIELDS_MAX, INDEXES_MAX,
    Index, Kind, NAME_BYTES_MAX, Operation, ROW_BYTES_MAX, Range, Request, SCAN_BYTES_MAX, Schema,
    TOUCHED_BYTES_MAX, TOUCHED_PER_BYTE, Tables, Value, row,
};

const FORMAT: Format = Format::of(include_str!("../FORMAT.md"));

mod agree;
mod bytes;

/// Fields of two kinds, the first the key, the second with a unique index, the third with another.
pub(crate) fn schema() -> Schema {
    let index = |field, is_unique| Index { fields: vec![field], is_unique };
    let kinds = vec![Kind::U64, Kind::Bytes, Kind::I64];
    Schema::new(kinds, 1, vec![index(1, true), index(2, false)]).expect("it is sound")
}

/// An operation of each kind, in the order of their numbers.
pub(crate) fn samples() -> Vec<Operation> {
    let range = Range {
        low: Some(Edge { values: row!["a"], is_inclusive: false }),
        high: None,
        is_down: true,
        limit: 7,
    };
    let actions = [
        Action::Make(schema()),
        Action::Drop,
        Action::Insert(row![1_u64, "a\0b", -2_i64]),
        Action::Upsert(row![1_u64, "a\0b", -2_i64]),
        Action::Update(row![1_u64], vec![(1, Change::Set("b".into())), (2, Change::Add(-3))]),
        Action::Delete(row![1_u64]),
        Action::Get(row![1_u64]),
        Action::Scan(Some(0), range),
        Action::Expect(row![1_u64], Condition::Has(vec![(2, Value::I64(5))])),
        Action::List,
    ];
    actions.map(|action| Operation { table: "t".to_owned(), action }).into()
}

/// A field's bytes in the samples, spelled out by hand.
fn bytes_of(number: u64, name: &str) -> Vec<u8> {
    let row =
        b"\x03\0\0\0\x01\x01\0\0\0\0\0\0\0\x03\x03\0\0\0a\0b\x02\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
    let bytes: &[u8] = match name {
        "`row`" => row,
        "`key`" => b"\x01\0\0\0\x01\x01\0\0\0\0\0\0\0",
        "`schema`" => {
            b"\x03\0\0\0\x01\x03\x02\x01\0\0\0\x02\0\0\0\x01\x01\0\0\0\x01\0\x01\0\0\0\x02"
        }
        "`changes`" => b"\x02\0\0\0\x01\0\x03\x01\0\0\0b\x02\x01\xFD\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
        "`index`" => b"\0",
        "`range`" => b"\x01\x07\0\0\0\x01\x01\0\0\0\x03\x01\0\0\0a\0\0\0\0\0",
        "`condition`" => b"\x01\x01\0\0\0\x02\x02\x05\0\0\0\0\0\0\0",
        _ => unreachable!("operation {number} has no field {name}"),
    };
    bytes.to_vec()
}

#[test]
fn each_operation_is_written_as_its_row_says() {
    let rows = FORMAT.rows("Request");
    assert_eq!(rows.len(), samples().len());
    for (row, operation) in rows.iter().zip(samples()) {
        let number: u64 = row[0].parse().expect("a number");
        let mut wanted = vec![1, number as u8];
        wanted.extend_from_slice(b"\x01\0\0\0t");
        let fields = row[2].split(", ").filter(|name| !name.is_empty());
        fields.for_each(|name| wanted.extend(bytes_of(number, name)));
        let request = Request { operations: vec![operation] };
        assert_eq!(request.encode(), wanted, "{}", row[1]);
        assert_eq!(Request::decode(&wanted), Ok(request), "{}", row[1]);
    }
}

#[test]
fn each_outcome_is_written_as_its_row_says() {
    let one = b"\x01\0\0\0\x01\x09\0\0\0\0\0\0\0";
    let rows = [row![9_u64], row![9_u64]].to_vec();
    let samples = [
        (Outcome::Done, vec![]),
        (Outcome::NoRow, vec![]),
        (Outcome::Row(row![9_u64]), one.to_vec()),
        (Outcome::Rows { rows, has_more: true }, [&b"\x01\x02\0\0\0"[..], one, one].concat()),
        (
            Outcome::Tables { tables: vec![("t".to_owned(), schema())], has_more: false },
            [&b"\0\x01\0\0\0\x01\0\0\0t"[..], &bytes_of(4, "`schema`")].concat(),
        ),
    ];
    let numbers = FORMAT.numbers("Answer");
    assert_eq!(numbers.len(), samples.len());
    for ((number, name), (outcome, fields)) in numbers.into_iter().zip(samples) {
        let mut out = Vec::new();
        answer::begin(&mut out);
        answer::put_outcome(&outcome, &mut out);
        assert_eq!(out, [&[1, 0, number as u8][..], &fields].concat(), "{name}");
        assert!(format!("{outcome:?}").starts_with(&name), "{name}");
        assert_eq!(answer::decode(&out), Ok(Ok(vec![outcome])), "{name}");
    }
}

#[test]
fn each_status_and_each_kind_has_the_number_that_its_row_says() {
    let said = |status: Status| (status as u64, format!("{status:?}"));
    assert_eq!(FORMAT.numbers("Status"), Status::ALL.map(said));
    let said = |kind: Kind| (u64::from(kind.number()), format!("{kind:?}"));
    assert_eq!(FORMAT.numbers("Kinds"), Kind::ALL.map(said));
}

#[test]
fn the_limits_are_told() {
    let words = FORMAT.words();
    let told = [
        format!("1 to {NAME_BYTES_MAX} of them"),
        format!("at most {FIELDS_MAX} fields and {INDEXES_MAX} indexes"),
        format!("An answer has at most {ANSWER_BYTES_MAX} bytes, a row {ROW_BYTES_MAX}."),
        format!("reached {SCAN_BYTES_MAX} bytes."),
        format!("at most {TOUCHED_BYTES_MAX} bytes together"),
        format!("or {TOUCHED_PER_BYTE} times the request's own bytes"),
        format!("modulo {NUMBERS_AHEAD_MAX}, 2 bytes"),
    ];
    told.into_iter().for_each(|told| assert!(words.contains(&told), "{told}"));
}

/// Tables in memory and a directory.
pub(crate) fn opened(directory: &std::path::Path) -> Tables {
    let log = LogPlace::Embedded {
        memory: Medium::Private,
        ring_bytes: 256 << 10,
        segment_bytes: 64 << 10,
    };
    let config = Config { log, services: Services::Stepped, ..Config::default() };
    let (store, _) = Store::open(directory, &config).expect("a store");
    Tables::open(store, Durability::Memory).expect("tables")
}

/// Asks, and is answered.
pub(crate) fn ask(tables: &Tables, sequence: u64, request: &Request) -> answer::Answer {
    let mut answer = Vec::new();
    tables.respond(5, sequence, sequence, &request.encode(), &mut answer).expect("a machine");
    answer::decode(&answer).expect("an answer")
}

#[test]
fn the_trees_have_what_their_table_says() {
    let directory = tempfile::tempdir().expect("a directory");
    let tables = opened(directory.path());
    let request = Request::new().make("t", schema()).insert("t", row![1_u64, "a\0b", -2_i64]);
    assert_eq!(ask(&tables, 65, &request), Ok(vec![Outcome::Done; 2]));
    let gone = Request::new().make("gone", schema()).drop("gone");
    assert_eq!(ask(&tables, 66, &gone), Ok(vec![Outcome::Done; 2]));
    let has = |tree: &str, key: &[u8]| {
        let tree = tables.store().tree(tree).expect("it is there");
        tables.store().begin().get(&tree, key).expect("a page").expect("an entry")
    };
    assert_eq!(has("catalogue", b"V"), [1]);
    assert_eq!(has("catalogue", b"N"), [6, 0, 0, 0]);
    assert_eq!(has("catalogue", b"Tt"), [&[0; 4][..], &bytes_of(1, "`schema`")].concat());
    assert_eq!(has("catalogue", b"D\0\0\0\x03"), [3, 0, 0, 0]);
    let (one, text) = (&b"\0\0\0\0\0\0\0\x01"[..], &b"a\0\xFFb\0\0"[..]);
    let minus_two = &b"\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFE"[..];
    assert_eq!(has("entries", &[&[0; 4][..], one].concat()), [text, minus_two].concat());
    assert_eq!(has("entries", &[&[0, 0, 0, 1][..], text].concat()), one);
    assert_eq!(has("entries", &[&[0, 0, 0, 2][..], minus_two, one].concat()), one);
    let kept = [65, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    assert_eq!(has("answers", &[0, 0, 0, 0, 0, 0, 0, 5, 0, 65]), kept);
    assert_eq!(has("clients", &[0, 0, 0, 0, 0, 0, 0, 5]), [0; 8]);
    tables.vanished(5).expect("a machine");
    assert_eq!(has("clients", &[0, 0, 0, 0, 0, 0, 0, 5]), [1, 0, 0, 0, 0, 0, 0, 0]);
    let rows = FORMAT.rows("Trees");
    assert_eq!(rows.len(), 8);
    let names = tables.store().tree_names().expect("names");
    let mut told: Vec<_> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    told.sort_unstable();
    told.dedup();
    assert_eq!(names, told);
}
