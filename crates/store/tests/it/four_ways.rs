//! One history, and four ways back to its end: a restart that does everything first, one that does
//! it when it is needed, a backup, and the archive alone.

use std::path::Path;

use holdfast_io::fake::{FakeFiles, Mood};
use holdfast_io::{Files, OpenHow};
use holdfast_store::{At, Config, Restart, Store, restore_at};

use crate::life::{contents, work};
use crate::model::{Contents, Model};
use crate::support::{config, factor, machine, place, settle, sound};

const PAGE_BYTES: usize = 8192;
/// A page begins with its check, which a device's copy alone has.
const CHECK_BYTES: usize = 4;

/// What a way back leads to.
#[derive(PartialEq, Eq)]
struct Found {
    contents: Contents,
    pages: Vec<u8>,
}

/// A store that lost its power in the middle of its work, what it should hold, and a backup of it
/// from some time before.
struct Crashed {
    files: FakeFiles,
    model: Model,
    backup: FakeFiles,
}

impl Crashed {
    /// With losers if asked for; else every transaction ended in time.
    fn new(seed: u64, has_losers: bool) -> Crashed {
        let (files, backup, mut model) = (machine(seed), machine(seed + 1), Model::default());
        let (store, _) = Store::open_at(place(&files), &config()).unwrap();
        let tree = store.tree("accounts").unwrap();
        drop(work(&store, &tree, &mut model, seed, 500).unwrap());
        store.back_up_at(&place(&backup), &mut |_| ()).unwrap();
        let running = work(&store, &tree, &mut model, seed + 1, 700).unwrap();
        if has_losers {
            store.sync().unwrap();
            std::mem::forget(running);
        } else {
            drop(running);
            store.sync().unwrap();
        }
        model.is_durable();
        let files = files.after_power_cut_in(Mood::LoseAll, seed);
        Crashed { files, model, backup }
    }

    fn copy(&self) -> FakeFiles {
        self.files.after_power_cut_in(Mood::KeepAll, 1)
    }

    fn by_restart(&self, restart: Restart) -> Found {
        found(&self.copy(), &Config { restart, ..config() })
    }

    /// The store, opened and closed, and with it the backup brought forward.
    fn closed(&self) -> FakeFiles {
        let files = self.copy();
        let (store, _) = Store::open_at(place(&files), &config()).unwrap();
        store.forward_at(&place(&self.backup), &mut |_| ()).unwrap();
        store.close().unwrap();
        files
    }
}

/// What a store comes to, once nothing is left to be done and all pages are in its page file.
fn found(files: &FakeFiles, config: &Config) -> Found {
    let (store, _) = Store::open_at(place(files), config).unwrap();
    let contents = contents(&store, &store.tree("accounts").unwrap()).unwrap();
    // Only what is archived reaches the page file.
    store.close().unwrap();
    let (store, _) = Store::open_at(place(files), config).unwrap();
    // What was restored writes all pages without being asked.
    if !store.stat().is_restoring {
        store.replace_pages().unwrap();
    }
    settle(&store);
    sound(&store);
    store.close().unwrap();
    Found { contents, pages: pages(files) }
}

/// The bytes of all pages.
fn pages(files: &FakeFiles) -> Vec<u8> {
    let file = files.open(Path::new("pages"), OpenHow::default()).unwrap();
    let mut bytes = vec![0; file.metadata().unwrap().size_bytes as usize];
    file.read_full_at(&mut bytes, 0).unwrap();
    bytes.chunks_mut(PAGE_BYTES).for_each(|page| page[..CHECK_BYTES].fill(0));
    bytes
}

fn restored(from: &FakeFiles) -> Found {
    let to = machine(9);
    restore_at(&place(from), At::End, &place(&to), &config(), &mut |_| ()).unwrap();
    found(&to, &config())
}

fn four_ways(crashed: &Crashed) -> [Found; 4] {
    let classical = crashed.by_restart(Restart::Classical);
    let instant = crashed.by_restart(Restart::Instant);
    let closed = crashed.closed();
    [classical, instant, restored(&crashed.backup), restored(&closed)]
}

#[test]
fn four_ways_lead_to_the_same_pages() {
    for seed in 1..=4 * factor() {
        let crashed = Crashed::new(seed, false);
        let ways = four_ways(&crashed);
        assert!(ways[0].contents == crashed.model.now(), "seed {seed}: nothing was lost");
        assert!(ways[0].pages.len() > 4 * PAGE_BYTES, "seed {seed}: there are pages");
        for (way, other) in ways.iter().enumerate().skip(1) {
            assert!(ways[0].contents == other.contents, "seed {seed} way {way}: contents");
            let same = ways[0].pages == other.pages;
            assert!(same, "seed {seed} way {way}: {}", difference(&ways[0].pages, &other.pages));
        }
    }
}

#[test]
fn four_ways_undo_the_same_losers() {
    for seed in 101..=100 + 4 * factor() {
        let crashed = Crashed::new(seed, true);
        for (way, found) in four_ways(&crashed).iter().enumerate() {
            assert!(found.contents == crashed.model.now(), "seed {seed} way {way}");
        }
    }
}

/// Where pages differ first.
fn difference(one: &[u8], other: &[u8]) -> String {
    let at = one.iter().zip(other).position(|(one, other)| one != other);
    let at = at.unwrap_or(one.len().min(other.len()));
    let (page, byte) = (at / PAGE_BYTES, at % PAGE_BYTES);
    format!("page {page}, byte {byte}; {} and {} bytes", one.len(), other.len())
}

#[test]
fn a_page_that_differs_would_be_noticed() {
    let crashed = Crashed::new(1, false);
    let (one, mut other) =
        (crashed.by_restart(Restart::Instant), crashed.by_restart(Restart::Instant));
    assert!(one == other);
    other.pages[5 * CHECK_BYTES] ^= 1;
    assert!(one != other);
    assert!(difference(&one.pages, &other.pages).starts_with("page 0, byte 20"));
}
