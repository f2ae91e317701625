//! The examples do what they say.

#[allow(dead_code)]
#[path = "../../examples/bank.rs"]
mod bank;
#[allow(dead_code)]
#[path = "../../examples/index.rs"]
mod index;
#[allow(dead_code)]
#[path = "../../examples/yesterday.rs"]
mod yesterday;

use bank::{Bank, GIFT_CENTS};
use holdfast_store::{At, Config, Durability, Store};

#[test]
fn a_bank_loses_nothing_to_threads_that_are_in_each_others_way() {
    let directory = tempfile::tempdir().expect("a directory");
    let bank = Bank::open(directory.path()).expect("a bank");
    let transfer = |from, to| bank.transfer(from, to, 3).expect("the disk is well");
    std::thread::scope(|threads| {
        for me in 0..4_u32 {
            threads.spawn(move || {
                for it in 1..50 {
                    transfer(me, (me + it) % 4);
                }
            });
        }
    });
    let sent: usize = (0..4).map(|who| bank.statement(who).expect("a page").len()).sum();
    assert!(sent > 100, "{sent}");
    assert!(!bank.transfer(0, 1, 5 * GIFT_CENTS).expect("the disk is well"));
    assert_eq!(bank.sum().expect("a page"), (4, 4 * GIFT_CENTS));
    drop(bank);
    let bank = Bank::open(directory.path()).expect("it opens without having been closed");
    assert_eq!(bank.sum().expect("a page"), (4, 4 * GIFT_CENTS));
    assert_eq!((0..4).map(|who| bank.statement(who).expect("a page").len()).sum::<usize>(), sent);
}

#[test]
fn an_index_agrees_with_what_it_is_an_index_of() {
    let directory = tempfile::tempdir().expect("a directory");
    let towns = ["Ulm", "Ulma", "Bonn"];
    for round in 0..3_u32 {
        let register = index::Register::open(directory.path()).expect("a register");
        for who in 0..20 {
            let town = towns[(who * round) as usize % towns.len()];
            register.settle(who, town).expect("the disk is well");
        }
        let mut found = 0;
        for town in towns {
            for who in register.people_in(town).expect("a page") {
                assert_eq!(register.town_of(who).expect("a page").as_deref(), Some(town));
                found += 1;
            }
        }
        assert_eq!(found, 20);
    }
}

#[test]
fn what_was_deleted_is_found_as_it_was_before() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let (store, _) = Store::open(&path("store"), &Config::default()).expect("a store");
    let tree = store.tree("main").expect("a tree");
    let mut writing = store.begin();
    for key in [b"kept", b"gone"] {
        writing.put(&tree, key, b"value").expect("room");
    }
    let then = writing.commit(Durability::Disk).expect("a device").at;
    let mut deleting = store.begin();
    deleting.delete(&tree, b"gone").expect("room");
    deleting.commit(Durability::Disk).expect("a device");
    store.close().expect("a device");
    let lost = yesterday::lost_since(&path("store"), At::Rsn(then), &path("new"), "main");
    let lost: Vec<_> = lost.expect("a store can be made").into_iter().collect();
    assert_eq!(lost, [(b"gone".to_vec(), b"value".to_vec())]);
}
