//! What redo-only transactions leave in the log.

use std::path::Path;
use std::sync::Arc;

use holdfast_io::Files;
use holdfast_io::fake::{FakeClock, FakeEntropy, FakeFiles, Random};
use holdfast_pages::{Framed, Tag, What};

use crate::{
    Config, Directories, Durability, LogPlace, Medium, Place, Services, Store, Transaction, Tree,
};

fn store() -> Store {
    let files = FakeFiles::new(1);
    let below = |name: &str| -> Arc<dyn Files> {
        files.make_dir(Path::new(name), 0o755).expect("a directory");
        Arc::new(files.below(Path::new(name)).expect("it is there"))
    };
    let (log, archive) = (below("log"), below("archive"));
    let directories = Directories { store: Arc::new(files.clone()), log, archive };
    let (clock, entropy) = (Arc::new(FakeClock::default()), Arc::new(FakeEntropy::new(7)));
    let (memory, ring_bytes, segment_bytes) = (Medium::Private, 1 << 20, 256 << 10);
    let config = Config {
        pool_bytes: 64 * 8192,
        log: LogPlace::Embedded { memory, ring_bytes, segment_bytes },
        services: Services::Stepped,
        checkpoint_ms: None,
        ..Config::default()
    };
    let place = Place::modelled(directories, clock, entropy);
    Store::open_at(place, &config).expect("the store opens").0
}

/// What transactions left in the log: records that may be undone, that undo, and that end one.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    updates: usize,
    compensates: usize,
    ends: usize,
}

fn told(store: &Store) -> Told {
    store.sync().expect("a device");
    let log = store.work.log.as_commit_log();
    let mut told = Told { updates: 0, compensates: 0, ends: 0 };
    let (marks, tag) = (log.marks(), Tag::of(&store.header.identity));
    let read = log.read(marks.released, marks.tail, &mut |frame| {
        let framed = Framed::parse(frame.payload, tag).expect("a frame of this store");
        for record in framed.records() {
            match record.expect("a record").what {
                What::Update { .. } => told.updates += 1,
                What::Compensate { .. } => told.compensates += 1,
                What::Commit(_) | What::Aborted(_) => told.ends += 1,
                _ => {}
            }
        }
        true
    });
    read.expect("the log is there");
    told
}

/// A transaction that changes keys, goes back, and ends in one way or the other.
fn any(mut one: Transaction<'_>, tree: &Tree, random: &mut Random) {
    for _ in 0..10 {
        let key = format!("{:02}", random.below(40)).into_bytes();
        let savepoint = one.savepoint();
        if random.chance(30) {
            one.delete(tree, &key).expect("pages");
        } else {
            let value = vec![7; random.below(3000) as usize];
            one.put(tree, &key, &value).expect("room");
        }
        if random.chance(20) {
            one.roll_back_to(savepoint).expect("it is there");
        }
    }
    if random.chance(40) {
        one.abort().expect("pages");
    } else {
        one.commit(Durability::Memory).expect("a log");
    }
}

#[test]
fn nothing_in_the_log_is_ever_undone_or_could_be() {
    let store = store();
    let tree = store.tree("accounts").expect("a tree");
    let (before, mut random) = (told(&store), Random::new(1));
    for _ in 0..40 {
        any(store.begin_redo_only(), &tree, &mut random);
    }
    assert_eq!(told(&store), before);
    any(store.begin(), &tree, &mut random);
    assert_ne!(told(&store), before, "others are noticed");
}
