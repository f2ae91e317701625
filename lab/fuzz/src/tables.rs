//! What a client of tables may send, as a script, and what must hold of whoever answers.
//!
//! The first byte of a script says what the rest is: the bytes of an answer, or requests one behind
//! the other, each with its length before it, of which some are asked twice.
//!
//! Promise: nothing panics, whatever the bytes; a request is answered as a list of rows would, or
//! was too large; asked again it is answered the same and not done again; afterwards tables and
//! indexes agree.
//! Never: needs more than the script to repeat a case.

use holdfast_store::{Durability, Store};
use holdfast_table::{Action, Answer, Change, Condition, decode_answer, row};
use holdfast_table::{Index, Kind, Range, Refusal, Request, Schema, Status, Tables};

use super::model::Model;
use super::support::{config, machine, place, settle};

/// In the place of a script's first byte: the rest is an answer.
const ANSWER: u8 = 0;

/// Requests of a script, at most.
const REQUESTS_MAX: u64 = 24;

/// Before the length of a request that is asked twice.
const TWICE: u8 = 0x80;

/// Plays a script.
pub(crate) fn run(script: &[u8]) {
    match script.split_first() {
        Some((&ANSWER, answer)) => drop(decode_answer(answer)),
        Some((_, requests)) => play(requests),
        None => {}
    }
}

fn play(mut script: &[u8]) {
    let (store, _) = Store::open_at(place(&machine(7)), &config()).expect("a store");
    let tables = Tables::open(store, Durability::Memory).expect("tables");
    let mut model = Model::default();
    for sequence in 1..=REQUESTS_MAX {
        let Some((bytes, is_twice)) = next(&mut script) else { break };
        let answer = ask(&tables, sequence, bytes);
        judge(&answer, bytes, &mut model);
        // One that only reads is done again, and nothing has changed since.
        if is_twice {
            assert_eq!(ask(&tables, sequence, bytes), answer);
        }
        settle(tables.store());
    }
    let checked = tables.check().expect("the machine is well");
    assert!(checked.disagreements.is_empty(), "{checked:?}");
}

/// The next request, and whether it is asked twice.
fn next<'s>(script: &mut &'s [u8]) -> Option<(&'s [u8], bool)> {
    let (&[high, low], rest) = script.split_first_chunk()?;
    let bytes = usize::from(high & !TWICE) << 8 | usize::from(low);
    let (request, rest) = rest.split_at(bytes.min(rest.len()));
    *script = rest;
    Some((request, high & TWICE != 0))
}

fn ask(tables: &Tables, sequence: u64, bytes: &[u8]) -> Answer {
    let mut answer = Vec::new();
    tables.respond(1, sequence, sequence, bytes, &mut answer).expect("the machine is well");
    decode_answer(&answer).expect("it is an answer")
}

/// Compares an answer with the model's, which has no limits.
fn judge(answer: &Answer, bytes: &[u8], model: &mut Model) {
    let Ok(request) = Request::decode(bytes) else {
        let refusal = Refusal { status: Status::Malformed, operation: 0 };
        return assert_eq!(*answer, Err(refusal));
    };
    assert_eq!(Request::decode(&request.encode()).as_ref(), Ok(&request));
    if matches!(answer, Err(refusal) if refusal.status == Status::TooLarge) {
        return;
    }
    assert_eq!(*answer, model.respond(&request), "{request:?}");
}

/// Where the fuzzer begins, by name.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let made = || Request::new().make("t", schema()).insert("t", row![1_u64, "a", -2_i64]);
    let more =
        Request::new().insert("t", row![2_u64, "b", 7_i64]).upsert("t", row![1_u64, "c", 1_i64]);
    let change = Request::new().set("t", row![2_u64], 1, "d").add("t", row![1_u64], 2, i64::MAX);
    let has = Condition::Has(vec![(2, 7_i64.into())]);
    let expect = Request::new().expect("t", row![2_u64], has).delete("t", row![2_u64]);
    let absent = Request::new().expect("t", row![3_u64], Condition::Absent).get("t", row![1_u64]);
    let low = Range::all().behind(row!["a"]).limit(1);
    let scans = Request::new().scan("t", Range::of(row![1_u64]).down()).scan_by("t", 0, low);
    let both = vec![(1, Change::Set("e".into())), (2, Change::Add(-1))];
    let update = Request::new().with("t", Action::Update(row![1_u64], both)).list("\0");
    let dropped = Request::new().drop("t").make("t", schema());
    vec![
        ("answer", vec![ANSWER, 1, 0, 3, 1, 0, 0, 0, 0]),
        ("changes", script(&[made(), more.clone(), change, update])),
        ("conditions", script(&[made(), more.clone(), expect, absent])),
        ("dropped", script(&[made(), dropped, made()])),
        ("scans", script(&[made(), more, scans])),
    ]
}

/// A table with both kinds of indexes.
fn schema() -> Schema {
    let index = |field, is_unique| Index { fields: vec![field], is_unique };
    let kinds = vec![Kind::U64, Kind::Bytes, Kind::I64];
    Schema::new(kinds, 1, vec![index(1, true), index(2, false)]).expect("it is sound")
}

/// A script of requests, every second of which is asked twice.
fn script(requests: &[Request]) -> Vec<u8> {
    let mut script = vec![1];
    for (at, request) in requests.iter().enumerate() {
        let bytes = request.encode();
        let twice = if at % 2 == 0 { TWICE } else { 0 };
        script.extend([(bytes.len() >> 8) as u8 | twice, bytes.len() as u8]);
        script.extend(bytes);
    }
    script
}
