//! What each operation does, and what it is refused for.

use holdfast_io::fake::FakeFiles;
use holdfast_store::{Config, Durability, Store};
use holdfast_table::{
    Action, Answer, Change, Condition, Index, Kind, OpenError, Outcome, Range, Refusal, Request,
    Row, Schema, Status, Tables, row,
};

use crate::life::ask;
use crate::support::{config, cut, machine, place};

pub(crate) fn open(files: &FakeFiles) -> Tables {
    let (store, _) = Store::open_at(place(files), &config()).expect("a store");
    Tables::open(store, Durability::Disk).expect("tables")
}

/// People: number, town, cents. Found by town, and by town and cents.
pub(crate) fn people() -> Schema {
    let index = |fields: &[u8], is_unique| Index { fields: fields.to_vec(), is_unique };
    let kinds = vec![Kind::U64, Kind::Bytes, Kind::I64];
    Schema::new(kinds, 1, vec![index(&[1], false), index(&[1, 2], true)]).expect("it is sound")
}

/// A client that numbers its requests, of tables on this machine.
struct Client {
    tables: Tables,
    sequence: u64,
    _directory: tempfile::TempDir,
}

impl Client {
    fn new() -> Client {
        let directory = tempfile::tempdir().expect("a directory");
        let (store, _) = Store::open(directory.path(), &Config::default()).expect("a store");
        let tables = Tables::open(store, Durability::Memory).expect("tables");
        let mut client = Client { tables, sequence: 0, _directory: directory };
        let request = Request::new()
            .make("people", people())
            .insert("people", row![1_u64, "Ulm", 10_i64])
            .insert("people", row![2_u64, "Ulm", 20_i64])
            .insert("people", row![3_u64, "Bonn", 10_i64]);
        assert_eq!(client.ask(&request), Ok(vec![Outcome::Done; 4]));
        client
    }

    fn ask(&mut self, request: &Request) -> Answer {
        self.sequence += 1;
        ask(&self.tables, self.sequence, request).expect("the machine is well")
    }

    fn refused(&mut self, request: &Request) -> (Status, u32) {
        let before = self.rows(Range::all());
        let Refusal { status, operation } = self.ask(request).expect_err("it is refused");
        assert_eq!(self.rows(Range::all()), before, "nothing was done");
        (status, operation)
    }

    fn rows(&mut self, range: Range) -> Vec<Row> {
        self.scan(&Request::new().scan("people", range)).0
    }

    fn numbers_by(&mut self, index: u8, range: Range) -> Vec<Row> {
        let rows = self.scan(&Request::new().scan_by("people", index, range)).0;
        rows.into_iter().map(|row| row[..1].to_vec()).collect()
    }

    fn scan(&mut self, request: &Request) -> (Vec<Row>, bool) {
        let mut outcomes = self.ask(request).expect("it is not refused");
        let Some(Outcome::Rows { rows, has_more }) = outcomes.pop() else { panic!("no rows") };
        (rows, has_more)
    }
}

#[test]
fn rows_are_found_by_their_key_and_by_each_index() {
    let mut client = Client::new();
    let outcome = client.ask(&Request::new().get("people", row![2_u64]).get("people", row![9_u64]));
    assert_eq!(outcome, Ok(vec![Outcome::Row(row![2_u64, "Ulm", 20_i64]), Outcome::NoRow]));
    assert_eq!(client.rows(Range::all().from(row![2_u64])).len(), 2);
    assert_eq!(client.numbers_by(0, Range::all()), [row![3_u64], row![1_u64], row![2_u64]]);
    assert_eq!(client.numbers_by(0, Range::of(row!["Ulm"])), [row![1_u64], row![2_u64]]);
    let down = Range::of(row!["Ulm"]).down();
    assert_eq!(client.numbers_by(1, down), [row![2_u64], row![1_u64]]);
    let behind = Range::all().behind(row!["Ulm", 1_u64]);
    assert_eq!(client.numbers_by(0, behind), [row![2_u64]]);
    assert_eq!(client.numbers_by(1, Range::all().before(row!["Ulm", 20_i64])).len(), 2);
}

#[test]
fn changes_are_seen_by_what_follows_in_the_request() {
    let mut client = Client::new();
    let request = Request::new()
        .add("people", row![1_u64], 2, 5)
        .set("people", row![1_u64], 1, "Trier")
        .delete("people", row![3_u64])
        .delete("people", row![3_u64])
        .upsert("people", row![4_u64, "Ulm", 1_i64])
        .upsert("people", row![2_u64, "Ulm", 2_i64])
        .scan("people", Range::all());
    let outcomes = client.ask(&request).expect("it is not refused");
    let rows =
        vec![row![1_u64, "Trier", 15_i64], row![2_u64, "Ulm", 2_i64], row![4_u64, "Ulm", 1_i64]];
    assert_eq!(outcomes[2..4], [Outcome::Done, Outcome::NoRow]);
    assert_eq!(outcomes[6], Outcome::Rows { rows, has_more: false });
    assert_eq!(client.numbers_by(1, Range::all()), [row![1_u64], row![4_u64], row![2_u64]]);
}

#[test]
fn a_refused_request_has_done_nothing_and_says_which_operation_it_was() {
    let mut client = Client::new();
    let changed = || Request::new().set("people", row![1_u64], 2, 77_i64);
    let key = || row![2_u64];
    let cases = [
        (changed().get("nobody", key()), Status::NoTable),
        (changed().make("people", people()), Status::TableExists),
        (changed().insert("people", row![2_u64, "Ulm", 99_i64]), Status::RowExists),
        (changed().insert("people", row![9_u64, "Bonn", 10_i64]), Status::NotUnique),
        (changed().upsert("people", row![2_u64, "Bonn", 10_i64]), Status::NotUnique),
        (changed().set("people", row![9_u64], 2, 1_i64), Status::NoRow),
        (changed().set("people", key(), 0, 1_u64), Status::Mismatch),
        (changed().set("people", key(), 3, 1_u64), Status::Mismatch),
        (changed().set("people", key(), 2, 1_u64), Status::Mismatch),
        (changed().add("people", key(), 1, 1), Status::Mismatch),
        (changed().insert("people", row![2_u64, "Ulm"]), Status::Mismatch),
        (changed().get("people", row!["Ulm"]), Status::Mismatch),
        (changed().scan_by("people", 2, Range::all()), Status::Mismatch),
        (changed().scan("people", Range::of(row![1_i64])), Status::Mismatch),
        (changed().add("people", key(), 2, i64::MAX), Status::Overflow),
        (changed().expect("people", key(), Condition::Absent), Status::NotAsExpected),
        (changed().insert("people", row![9_u64, vec![1; 800], 1_i64]), Status::TooLarge),
        (changed().insert("people", row![9_u64, vec![1; 600_000], 1_i64]), Status::TooLarge),
    ];
    for (request, status) in cases {
        assert_eq!(client.refused(&request), (status, 1), "{request:?}");
    }
    assert_eq!(client.refused(&changed().get("people", key()).drop("none")), (Status::NoTable, 2));
}

#[test]
fn an_expectation_is_of_a_row_and_of_fields() {
    let mut client = Client::new();
    let mut expect = |key: u64, condition: Condition| {
        let request = Request::new().expect("people", row![key], condition);
        client.ask(&request).is_ok()
    };
    let has = |value: i64| Condition::Has(vec![(2, value.into())]);
    assert!(expect(1, has(10)) && !expect(1, has(11)) && !expect(9, has(10)));
    assert!(expect(9, Condition::Absent) && !expect(1, Condition::Absent));
    assert!(expect(1, Condition::Has(vec![])) && !expect(9, Condition::Has(vec![])));
}

#[test]
fn a_scan_ends_at_its_limit_and_goes_on_behind_it() {
    let mut client = Client::new();
    for number in 10..300_u64 {
        let row = row![number, "Trier", number.cast_signed()];
        assert!(client.ask(&Request::new().insert("people", row)).is_ok());
    }
    for limit in [1, 63, 64, 65, 200] {
        let (mut low, mut numbers) = (row![0_u64], Vec::new());
        loop {
            let range = Range::all().behind(low).limit(limit);
            let (rows, has_more) = client.scan(&Request::new().scan("people", range));
            numbers.extend(rows.iter().map(|row| row[0].clone()));
            if !has_more {
                break;
            }
            assert_eq!(rows.len(), limit as usize);
            low = row![0_u64];
            low[0] = rows[rows.len() - 1][0].clone();
        }
        assert_eq!(numbers.len(), 293, "limit {limit}");
        assert!(numbers.is_sorted(), "limit {limit}");
    }
    let nothing = Range::all().limit(0);
    assert_eq!(client.scan(&Request::new().scan("people", nothing)), (vec![], true));
    let nothing = Range::all().from(row![7_u64]).to(row![5_u64]);
    assert_eq!(client.scan(&Request::new().scan("people", nothing)), (vec![], false));
}

#[test]
fn a_scan_of_large_rows_ends_before_its_answer_is_too_large() {
    let mut client = Client::new();
    let kinds = vec![Kind::U64, Kind::Bytes];
    let large = Schema::new(kinds, 1, vec![]).expect("it is sound");
    assert!(client.ask(&Request::new().make("large", large)).is_ok());
    for number in 0..4_u64 {
        let row = row![number, vec![7; 200_000]];
        assert!(client.ask(&Request::new().insert("large", row)).is_ok());
    }
    let (rows, has_more) = client.scan(&Request::new().scan("large", Range::all()));
    assert_eq!((rows.len(), has_more), (2, true));
    let all = || Request::new().scan("large", Range::all());
    let mut request = all();
    (0..2).for_each(|_| request.operations.extend(all().operations));
    let refusal = Refusal { status: Status::TooLarge, operation: 2 };
    assert_eq!(client.ask(&request), Err(refusal));
}

#[test]
fn a_request_that_changes_more_than_the_ring_holds_is_done_whole() {
    let mut client = Client::new();
    let kinds = vec![Kind::U64, Kind::Bytes];
    let wide = Schema::new(kinds, 1, vec![]).expect("it is sound");
    let mut request = Request::new().make("wide", wide);
    for number in 0..3000_u64 {
        request = request.insert("wide", row![number, vec![7; 1900]]);
    }
    assert!(client.ask(&request).is_ok());
    for number in [0_u64, 1234, 2999] {
        assert!(client.ask(&Request::new().get("wide", row![number])).is_ok());
    }
    let checked = client.tables.check().expect("the machine is well");
    assert_eq!((checked.rows, checked.disagreements), (3003, vec![]));
}

#[test]
fn what_a_dropped_table_had_goes_and_its_name_is_free_at_once() {
    let mut client = Client::new();
    for number in 10..400_u64 {
        let row = row![number, "Trier", number.cast_signed()];
        assert!(client.ask(&Request::new().insert("people", row)).is_ok());
    }
    let request = Request::new().drop("people").make("people", people());
    assert!(client.ask(&request).is_ok());
    assert!(client.rows(Range::all()).is_empty());
    let checked = client.tables.check().expect("the machine is well");
    assert_eq!((checked.rows, checked.dropped, checked.disagreements), (0, 393 * 3, vec![]));
    let mut steps = 0;
    while client.tables.sweep().expect("the machine is well") {
        steps += 1;
    }
    assert!(steps > 4, "{steps}");
    assert_eq!(client.tables.check().expect("the machine is well").dropped, 0);
}

#[test]
fn a_schema_that_cannot_be_is_none() {
    let schema = |fields: usize, key, indexes: Vec<Vec<u8>>| {
        let index = |fields| Index { fields, is_unique: false };
        let indexes = indexes.into_iter().map(index).collect();
        Schema::new(vec![Kind::U64; fields], key, indexes).is_some()
    };
    assert!(schema(1, 1, vec![]) && schema(64, 64, vec![vec![63]; 16]));
    let wrong = [
        schema(0, 0, vec![]),
        schema(1, 0, vec![]),
        schema(1, 2, vec![]),
        schema(65, 1, vec![]),
        schema(2, 1, vec![vec![1]; 17]),
        schema(2, 1, vec![vec![2]]),
        schema(2, 1, vec![vec![]]),
        schema(2, 1, vec![vec![0, 1, 0]]),
    ];
    assert!(!wrong.contains(&true), "{wrong:?}");
}

#[test]
fn tables_of_another_version_are_not_opened() {
    let (store, _) = Store::open_at(place(&machine(1)), &config()).expect("a store");
    let catalogue = store.tree("catalogue").expect("a tree");
    let mut writing = store.begin();
    writing.put(&catalogue, b"V", &[2]).expect("room");
    writing.commit(Durability::Disk).expect("a device");
    let refused = Tables::open(store, Durability::Disk);
    assert!(matches!(refused, Err(OpenError::OtherVersion)));
}

#[test]
fn tables_are_there_after_the_power_was_cut() {
    let files = machine(1);
    let tables = open(&files);
    let request = Request::new()
        .make("people", people())
        .insert("people", row![1_u64, "Ulm", 10_i64])
        .with("people", Action::Update(row![1_u64], vec![(2, Change::Add(-3))]));
    assert!(ask(&tables, 1, &request).expect("the machine is well").is_ok());
    let tables = open(&cut(&files));
    let found = ask(&tables, 2, &Request::new().scan_by("people", 0, Range::all()));
    let rows = vec![row![1_u64, "Ulm", 7_i64]];
    assert_eq!(found.expect("a machine"), Ok(vec![Outcome::Rows { rows, has_more: false }]));
}
