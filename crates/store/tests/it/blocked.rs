//! Who is refused a lock is told where, and because of whom.

use std::time::{Duration, Instant};

use holdfast_store::Durability::Memory;
use holdfast_store::{Blocked, Direction, Services, Store, Transaction, TransactionError, Tree};

use crate::support::{config, machine, open, place};

/// Longer than anything here takes that goes on.
const LONG: Duration = Duration::from_secs(60);

fn busy<T: std::fmt::Debug>(told: Result<T, TransactionError>) -> (Blocked, String) {
    let printed = told.as_ref().map_err(ToString::to_string).expect_err("it is refused");
    match told {
        Err(TransactionError::Busy(blocked)) => (*blocked, printed),
        told => panic!("{told:?}"),
    }
}

#[test]
fn a_refused_lock_names_tree_key_and_holders() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("fruits").expect("a tree");
    let key = |first: &[u8], bytes: usize| [first, &vec![0xFF; bytes]].concat();
    let (short, long) = (key(b"app\n", 0), key(b"pear", 600));
    let mut one = store.begin();
    one.put(&tree, &short, b"1").expect("room");
    one.put(&tree, &long, b"1").expect("room");
    let mut other = store.begin_impatient();
    let (blocked, printed) = busy(other.get(&tree, &short));
    assert_eq!((blocked.tree(), blocked.key()), (Some("fruits"), &short[..]));
    assert_eq!(blocked.by().collect::<Vec<_>>(), [one.number()]);
    let by =
        format!("key \"app\\n\" in tree fruits, which is locked by transaction {}", one.number());
    assert!(printed.contains(&by), "{printed}");
    let (blocked, printed) = busy(other.put(&tree, &long, b"2"));
    assert_eq!(blocked.key(), long);
    assert!(printed.len() < 400 && printed.is_ascii(), "{printed}");
    assert!(printed.contains("pear\\xff") && printed.contains("of 604 bytes"), "{printed}");
    // A scan names the key that it has come to, whoever has it.
    let mut scan = other.scan(&tree, &short[..].., Direction::Up);
    let (blocked, _) = busy(scan.next().expect("a key"));
    assert_eq!(blocked.key(), short);
}

#[test]
fn the_victim_of_a_deadlock_is_told_at_which_key() {
    let files = machine(2);
    let config = holdfast_store::Config { services: Services::Threads, ..config() };
    let (store, _) = Store::open_at(place(&files), &config).expect("the store opens");
    let tree = store.tree("keys").expect("a tree");
    let told = std::sync::Mutex::new(Vec::new());
    let begin = std::sync::Barrier::new(2);
    std::thread::scope(|threads| {
        for [first, second] in [[b"a", b"b"], [b"b", b"a"]] {
            let (store, tree, told, begin) = (&store, &tree, &told, &begin);
            threads.spawn(move || {
                let mut one = store.begin();
                one.put(tree, first, b"").expect("room");
                begin.wait();
                match one.put(tree, second, b"") {
                    Ok(()) => drop(one.commit(Memory).expect("a log")),
                    Err(TransactionError::Deadlock(blocked)) => {
                        told.lock().expect("sound").push((blocked, second.to_vec()));
                    }
                    Err(error) => panic!("{error}"),
                }
            });
        }
    });
    let told = told.into_inner().expect("sound");
    let [(blocked, key)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((blocked.tree(), blocked.key()), (Some("keys"), &key[..]));
    assert_eq!(blocked.by().count(), 1);
}

/// Reads a key that another transaction has, and waits for so long at most.
fn reading<'s>(store: &'s Store, tree: &Tree, at_most: Duration) -> (Transaction<'s>, bool) {
    let mut reading = store.begin();
    reading.wait_at_most(at_most);
    let got = reading.get(tree, b"key");
    let is_busy = matches!(got, Err(TransactionError::Busy(_)));
    assert!(is_busy || got.is_ok(), "{got:?}");
    (reading, is_busy)
}

#[test]
fn who_waits_for_so_long_at_most_is_told_then_and_can_go_on() {
    let (store, _) = open(&machine(3));
    let tree = store.tree("keys").expect("a tree");
    let mut one = store.begin();
    one.put(&tree, b"key", b"new").expect("room");
    let begun = Instant::now();
    let (mut reading_now, is_busy) = reading(&store, &tree, Duration::from_millis(20));
    assert!(is_busy && begun.elapsed() >= Duration::from_millis(20));
    // Whoever gave up stands in nobody's way, and nobody is lost behind him.
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| reading(&store, &tree, LONG).1);
        std::thread::sleep(Duration::from_millis(20));
        one.commit(Memory).expect("a log");
        assert!(!waiting.join().expect("it reads"), "it was granted");
    });
    assert_eq!(reading_now.get(&tree, b"key").expect("it is free"), Some(b"new".to_vec()));
    reading_now.put(&tree, b"key", b"newer").expect("it is free");
    reading_now.commit(Memory).expect("a log");
}
