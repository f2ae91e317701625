//! Clients that are in one another's way.

use std::thread;

use holdfast_io::fake::Random;
use holdfast_store::{Config, Durability, Store};
use holdfast_table::{
    Kind, Outcome, Range, Request, Row, Schema, Tables, Value, decode_answer, row,
};

const CLIENTS: u64 = 4;
const REQUESTS: u64 = 200;
const ACCOUNTS: u64 = 20;

fn open(directory: &std::path::Path) -> Tables {
    let (store, _) = Store::open(directory, &Config::default()).expect("a store");
    Tables::open(store, Durability::Memory).expect("tables")
}

fn ask(tables: &Tables, client: u64, sequence: u64, request: &Request) -> Vec<Outcome> {
    let mut answer = Vec::new();
    tables.respond(client, sequence, sequence, &request.encode(), &mut answer).expect("a machine");
    decode_answer(&answer).expect("an answer").expect("it is not refused")
}

/// Three balances and a line of history: what TPC-B does, as one request.
fn pay(random: &mut Random, client: u64, number: u64) -> (Request, i64) {
    let (account, cents) = (random.below(ACCOUNTS), random.below(200).cast_signed() - 100);
    let (teller, branch) = (account % 5, account % 2);
    let request = Request::new()
        .add("accounts", row![account], 1, cents)
        .add("tellers", row![teller], 1, cents)
        .add("branches", row![branch], 1, cents)
        .insert("history", row![client, number, account, cents])
        .get("accounts", row![account]);
    (request, cents)
}

fn made(tables: &Tables) {
    let balances = Schema::new(vec![Kind::U64, Kind::I64], 1, vec![]).expect("it is sound");
    let kinds = vec![Kind::U64, Kind::U64, Kind::U64, Kind::I64];
    let history = Schema::new(kinds, 2, vec![]).expect("it is sound");
    let mut request = Request::new().make("history", history);
    for (name, count) in [("accounts", ACCOUNTS), ("tellers", 5), ("branches", 2)] {
        request = request.make(name, balances.clone());
        for number in 0..count {
            request = request.insert(name, row![number, 0_i64]);
        }
    }
    ask(tables, 99, 1, &request);
}

/// The sum of a field over all rows, and how many they are.
fn sum(tables: &Tables, name: &str, field: usize) -> (i64, usize) {
    let outcomes = ask(tables, 99, 2, &Request::new().scan(name, Range::all()));
    let [Outcome::Rows { rows, has_more: false }] = &outcomes[..] else { panic!("{outcomes:?}") };
    let number = |row: &Row| match row[field] {
        Value::I64(number) => number,
        _ => panic!("{row:?}"),
    };
    (rows.iter().map(number).sum(), rows.len())
}

#[test]
fn sums_agree_after_clients_were_in_one_anothers_way() {
    let directory = tempfile::tempdir().expect("a directory");
    let tables = open(directory.path());
    made(&tables);
    let run = |client: u64| {
        let mut random = Random::new(client);
        let mut paid = 0;
        for number in 1..=REQUESTS {
            let (request, cents) = pay(&mut random, client, number);
            let first = ask(&tables, client, number, &request);
            if random.chance(10) {
                assert_eq!(ask(&tables, client, number, &request), first);
            }
            paid += cents;
        }
        paid
    };
    let paid: i64 = thread::scope(|threads| {
        let clients: Vec<_> =
            (0..CLIENTS).map(|client| threads.spawn(move || run(client))).collect();
        clients.into_iter().map(|client| client.join().expect("it ends")).sum()
    });
    let lines = (CLIENTS * REQUESTS) as usize;
    assert_eq!(sum(&tables, "history", 3), (paid, lines));
    assert_eq!(sum(&tables, "accounts", 1), (paid, ACCOUNTS as usize));
    assert_eq!(sum(&tables, "tellers", 1), (paid, 5));
    assert_eq!(sum(&tables, "branches", 1), (paid, 2));
    tables.close().expect("the machine is well");
    assert_eq!(sum(&open(directory.path()), "branches", 1), (paid, 2));
}

#[test]
fn a_request_that_is_asked_by_several_at_once_is_done_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let tables = open(directory.path());
    made(&tables);
    for sequence in 1..=30 {
        let request =
            Request::new().add("accounts", row![1_u64], 1, 1).get("accounts", row![1_u64]);
        let (tables, request) = (&tables, &request);
        let answers: Vec<_> = thread::scope(|threads| {
            let asked: Vec<_> = (0..CLIENTS)
                .map(|_| threads.spawn(move || ask(tables, 1, sequence, request)))
                .collect();
            asked.into_iter().map(|asked| asked.join().expect("it ends")).collect()
        });
        let wanted = vec![Outcome::Done, Outcome::Row(row![1_u64, sequence.cast_signed()])];
        assert!(answers.iter().all(|answer| *answer == wanted), "{answers:?}");
    }
}

#[test]
fn clients_that_ask_in_circles_are_all_answered() {
    let directory = tempfile::tempdir().expect("a directory");
    let tables = open(directory.path());
    made(&tables);
    thread::scope(|threads| {
        for client in 0..CLIENTS {
            let tables = &tables;
            threads.spawn(move || {
                for number in 1..=REQUESTS {
                    let mut accounts = [0, 1, 2, 3].map(|at| (client + at) % 4);
                    if number % 2 == 0 {
                        accounts.reverse();
                    }
                    let add = |request: Request, account: u64| {
                        request.add("accounts", row![account], 1, 1)
                    };
                    ask(tables, client, number, &accounts.into_iter().fold(Request::new(), add));
                }
            });
        }
    });
    let wanted = (4 * CLIENTS * REQUESTS).cast_signed();
    assert_eq!(sum(&tables, "accounts", 1), (wanted, ACCOUNTS as usize));
}
