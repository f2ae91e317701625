//! What is kept of clients that left, and of those that vanished.

use holdfast_memory::Medium;
use holdfast_store::{Config, Direction, Durability, LogPlace, Store};
use holdfast_table::{Tables, VANISHED_CLIENTS_MAX, row};

use crate::basics::open;
use crate::once::{ask, count, counted, made};
use crate::support::{cut, machine, settle};

const BOUND: u64 = VANISHED_CLIENTS_MAX as u64;
/// Behind the one that makes the tables.
const FIRST: u64 = 1_000;

/// How many entries a tree of the tables has.
fn entries(tables: &Tables, tree: &str) -> u64 {
    let tree = tables.store().tree(tree).expect("it is there");
    let mut reading = tables.store().begin();
    reading.scan::<&[u8]>(&tree, .., Direction::Up).count() as u64
}

/// One request of a client, its first.
fn first(tables: &Tables, client: u64) -> holdfast_table::Answer {
    ask(tables, client, 1, 1, &count()).expect("the machine is well")
}

/// So many clients ask once and vanish.
fn vanish(tables: &Tables, clients: impl Iterator<Item = u64>) {
    for client in clients {
        assert!(first(tables, client).is_ok());
        tables.vanished(client).expect("the machine is well");
    }
}

/// Every second one leaves in order, the others vanish.
#[test]
fn a_hundred_thousand_clients_that_ask_once_fill_neither_the_log_nor_the_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let (ring_bytes, segment_bytes) = (1 << 20, 256 << 10);
    let log = LogPlace::Embedded { memory: Medium::Private, ring_bytes, segment_bytes };
    let (store, _) =
        Store::open(directory.path(), &Config { log, ..Config::default() }).expect("a store");
    let tables = Tables::open(store, Durability::Memory).expect("tables");
    made(&tables);
    tables.left(99).expect("the machine is well");
    let (request, mut answer) = (count().encode(), Vec::new());
    for client in FIRST..FIRST + 100_000 {
        // Real names are drawn at random.
        let name = client.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        tables.respond(name, 1, 1, &request, &mut answer).expect("the machine is well");
        let gone = if client % 2 == 0 { tables.left(name) } else { tables.vanished(name) };
        gone.expect("the machine is well");
    }
    assert_eq!(entries(&tables, "answers"), BOUND);
    assert_eq!(entries(&tables, "clients"), BOUND);
    let pages = tables.store().stat().pages;
    println!("{pages} pages");
    assert!(pages < 100, "{pages} pages");
    assert!(tables.check().expect("the machine is well").disagreements.is_empty());
}

#[test]
fn a_client_that_left_leaves_nothing_and_others_keep_what_they_have() {
    let tables = open(&machine(3));
    made(&tables);
    for client in [1, 2] {
        for sequence in 1..=300 {
            assert!(ask(&tables, client, sequence, 1, &count()).is_ok());
        }
    }
    tables.left(1).expect("the machine is well");
    assert_eq!(entries(&tables, "answers"), 301, "of one client, and of who made the table");
    assert_eq!(ask(&tables, 2, 300, 1, &count()).expect("well"), counted(600));
    tables.left(1).expect("it is gone already");
    tables.left(77).expect("it never was there");
}

#[test]
fn a_client_that_vanished_is_known_until_as_many_others_have() {
    let tables = open(&machine(3));
    made(&tables);
    vanish(&tables, FIRST..FIRST + BOUND);
    assert_eq!(entries(&tables, "clients"), BOUND + 1);
    vanish(&tables, [FIRST + BOUND].into_iter());
    assert_eq!(entries(&tables, "clients"), BOUND + 1, "the first one is forgotten");
    assert_eq!(first(&tables, FIRST + 1), counted(2), "the second one is not");
    assert_eq!(first(&tables, FIRST), counted((BOUND + 2).cast_signed()), "nobody knows it");
}

#[test]
fn a_client_that_came_back_is_not_forgotten() {
    let tables = open(&machine(3));
    made(&tables);
    vanish(&tables, 1..=3);
    assert_eq!(first(&tables, 1), counted(1), "it asks again");
    assert_eq!(ask(&tables, 2, 2, 2, &count()).expect("well"), counted(4), "it goes on");
    vanish(&tables, FIRST..FIRST + BOUND + 5);
    assert_eq!(first(&tables, 1), counted(1));
    assert_eq!(ask(&tables, 2, 2, 2, &count()).expect("well"), counted(4));
    let (third, all) = (first(&tables, 3), (BOUND + 10).cast_signed());
    assert_eq!(third, counted(all), "who did not come back is forgotten");
}

#[test]
fn who_was_there_when_the_machine_died_is_forgotten_after_those_who_had_vanished() {
    let files = machine(3);
    {
        let tables = open(&files);
        made(&tables);
        vanish(&tables, (FIRST..FIRST + BOUND).rev());
        assert_eq!(first(&tables, 0), counted((BOUND + 1).cast_signed()));
        settle(tables.store());
    }
    let tables = open(&cut(&files));
    assert!(ask(&tables, 99, 2, 2, &count()).is_ok(), "who made the tables is back");
    vanish(&tables, [FIRST + BOUND].into_iter());
    assert_eq!(first(&tables, 0), counted((BOUND + 1).cast_signed()), "it may come back");
    assert_eq!(entries(&tables, "clients"), BOUND + 1);
    let forgotten = ask(&tables, FIRST + BOUND - 1, 1, 1, &count()).expect("well");
    assert_eq!(forgotten, counted((BOUND + 4).cast_signed()), "the first that vanished");
}

#[test]
fn reading_alone_leaves_nothing() {
    let tables = open(&machine(3));
    made(&tables);
    let before = entries(&tables, "clients");
    let reads = holdfast_table::Request::new().get("counters", row![0_u64]);
    assert!(ask(&tables, 5, 1, 1, &reads).is_ok());
    tables.vanished(5).expect("the machine is well");
    assert_eq!(entries(&tables, "clients"), before);
}
