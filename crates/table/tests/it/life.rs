//! Clients that use tables, the same ones for the same seed.
//!
//! Promise: every answer is compared with the model's; so is everything at the beginning, which may
//! lack the last request, if that was not answered.
//! Never: goes on after an error of the machine.

use std::collections::BTreeMap;
use std::error::Error;

use holdfast_io::fake::{FakeFiles, Random};
use holdfast_store::{Durability, Service, Store};
use holdfast_table::{
    Action, Answer, Change, Condition, Edge, Index, Kind, Operation, Outcome, Range, Request, Row,
    Schema, Status, Tables, Value, decode_answer, row,
};

use crate::model::Model;
use crate::support::{config, place};

pub(crate) type Failed = Box<dyn Error>;

const CLIENT: u64 = 7;
const NAMES: [&str; 3] = ["one", "two", "three"];

/// What tables should have, and what was asked at last.
#[derive(Clone, Default)]
pub(crate) struct World {
    model: Model,
    sequence: u64,
    /// The last request, unless its answer came; and what tables should have if it was done.
    under_way: Option<(Request, Model, Answer)>,
}

/// Asks, and is answered.
pub(crate) fn ask(tables: &Tables, sequence: u64, request: &Request) -> Result<Answer, Failed> {
    let mut answer = Vec::new();
    tables.respond(CLIENT, sequence, sequence, &request.encode(), &mut answer)?;
    Ok(decode_answer(&answer)?)
}

/// All rows of all tables that there may be.
fn contents(tables: &Tables) -> Result<BTreeMap<String, Vec<Row>>, Failed> {
    let mut contents = BTreeMap::new();
    for name in NAMES {
        let answer = ask(tables, 1, &Request::new().scan(name, Range::all()))?;
        let outcomes = match answer {
            Err(refusal) if refusal.status == Status::NoTable => continue,
            answer => answer?,
        };
        let [Outcome::Rows { rows, .. }] = &outcomes[..] else { panic!("{outcomes:?}") };
        contents.insert(name.to_owned(), rows.clone());
    }
    Ok(contents)
}

impl World {
    /// Compares what there is with the model, and asks again what was not answered.
    fn begin(&mut self, tables: &Tables) -> Result<(), Failed> {
        let found = contents(tables)?;
        let Some((request, done, answer)) = self.under_way.clone() else {
            assert_eq!(found, self.model.contents());
            return Ok(());
        };
        assert!([self.model.contents(), done.contents()].contains(&found), "{found:?}");
        assert_eq!(ask(tables, self.sequence, &request)?, answer, "{request:?}");
        (self.model, self.under_way) = (done, None);
        assert_eq!(contents(tables)?, self.model.contents());
        Ok(())
    }

    fn step(&mut self, tables: &Tables, random: &mut Random) -> Result<(), Failed> {
        match random.below(10) {
            0..=2 => {
                let service = Service::ALL[random.below(Service::ALL.len() as u64) as usize];
                tables.store().step(service)?;
            }
            3 => drop(tables.sweep()?),
            _ => {
                let request = any_request(random);
                self.sequence += 1;
                let mut done = self.model.clone();
                let wanted = done.respond(&request);
                self.under_way = Some((request.clone(), done.clone(), wanted.clone()));
                let answer = ask(tables, self.sequence, &request)?;
                assert_eq!(answer, wanted, "{request:?}");
                // From here on it must not be lost.
                (self.model, self.under_way) = (done, None);
                if random.chance(20) {
                    let wanted = again(&request, &self.model, wanted);
                    assert_eq!(ask(tables, self.sequence, &request)?, wanted, "{request:?}");
                }
            }
        }
        Ok(())
    }
}

/// What a request is answered that is asked a second time.
fn again(request: &Request, done: &Model, first: Answer) -> Answer {
    let reads = |operation: &Operation| {
        let action = &operation.action;
        matches!(action, Action::Get(_) | Action::Scan(..) | Action::Expect(..) | Action::List)
    };
    let only_reads = request.operations.iter().all(reads);
    if only_reads { done.clone().respond(request) } else { first }
}

/// Opens tables, finds in them what should be there, and asks so often.
pub(crate) fn life(
    files: &FakeFiles,
    world: &mut World,
    seed: u64,
    steps: u32,
) -> Result<(), Failed> {
    let (store, _) = Store::open_at(place(files), &config())?;
    let tables = Tables::open(store, Durability::Disk)?;
    world.begin(&tables)?;
    let mut random = Random::new(seed);
    for _ in 0..steps {
        world.step(&tables, &mut random)?;
    }
    let checked = tables.check()?;
    assert!(checked.disagreements.is_empty(), "seed {seed}: {checked:?}");
    Ok(())
}

fn any_request(random: &mut Random) -> Request {
    let count = 1 + random.below(4);
    let mut request = Request::new();
    for _ in 0..count {
        let name = NAMES[random.below(3) as usize];
        request = request.with(name, any_action(random));
    }
    request
}

fn any_action(random: &mut Random) -> Action {
    let key = row![random.below(12)];
    match random.below(24) {
        0..=2 => Action::Make(any_schema(random)),
        3 if random.chance(30) => Action::Drop,
        3 => Action::List,
        4..=8 => Action::Insert(any_row(random)),
        9..=12 => Action::Upsert(any_row(random)),
        13..=15 => Action::Update(key, vec![any_change(random)]),
        16 | 17 => Action::Delete(key),
        18 => Action::Get(key),
        19 => Action::Expect(key, any_condition(random)),
        _ => any_scan(random),
    }
}

/// Rows of a number, bytes and a number, by which they are found in several ways.
fn any_schema(random: &mut Random) -> Schema {
    let all = [(vec![1], true), (vec![2, 1], false), (vec![2], false), (vec![0, 2], true)];
    let all = all.map(|(fields, is_unique)| Index { fields, is_unique });
    let indexes = all[random.below(4) as usize..].to_vec();
    Schema::new(vec![Kind::U64, Kind::Bytes, Kind::I64], 1, indexes).expect("it is sound")
}

fn any_text(random: &mut Random) -> Value {
    let texts: [&[u8]; 7] = [b"", b"\0", b"a", b"a\0", b"a\0b", b"b\xFF", &[7; 300]];
    Value::from(texts[random.below(7) as usize])
}

fn any_number(random: &mut Random) -> i64 {
    [random.below(5).cast_signed() - 2, i64::MAX][usize::from(random.chance(10))]
}

fn any_row(random: &mut Random) -> Row {
    match random.below(20) {
        0 => row![1_u64],
        1 => row![1_u64, 2_u64, 3_i64],
        _ => vec![Value::U64(random.below(12)), any_text(random), Value::I64(any_number(random))],
    }
}

fn any_change(random: &mut Random) -> (u8, Change) {
    match random.below(5) {
        0 => (1, Change::Set(any_text(random))),
        1 => (random.below(5) as u8, Change::Add(1)),
        _ => (2, Change::Add(any_number(random))),
    }
}

fn any_condition(random: &mut Random) -> Condition {
    match random.below(3) {
        0 => Condition::Absent,
        1 => Condition::Has(vec![]),
        _ => Condition::Has(vec![(2, Value::I64(any_number(random))), (1, any_text(random))]),
    }
}

fn any_scan(random: &mut Random) -> Action {
    let index = Some(random.below(5) as u8).filter(|index| *index < 4);
    let (low, high) = (any_edge(random), any_edge(random));
    let limit = [u32::MAX, random.below(4) as u32][random.below(2) as usize];
    Action::Scan(index, Range { low, high, is_down: random.chance(50), limit })
}

fn any_edge(random: &mut Random) -> Option<Edge> {
    let number = Value::I64(any_number(random));
    let values = match random.below(6) {
        0 => return None,
        1 => vec![Value::U64(random.below(12))],
        2 => vec![any_text(random)],
        3 => vec![number],
        4 => vec![number, any_text(random)],
        _ => vec![Value::U64(random.below(12)), number],
    };
    Some(Edge { values, is_inclusive: random.chance(50) })
}
