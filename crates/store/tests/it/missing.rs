//! Stores of which files are missing: one, some that are drawn, or all but those of a directory.
//!
//! Whatever is missing, the store opens with all that it had, and says what was made again, or it
//! is refused, and is whole again with the files; it is never begun anew over what is left.

use std::path::{Path, PathBuf};

use holdfast_io::checksum::crc32c;
use holdfast_io::fake::FakeFiles;
use holdfast_io::{Files, Kind};
use holdfast_store::Durability::Disk;
use holdfast_store::{Service, Store};

use crate::support::{config, cut, factor, machine, open, place, read, write};

const KEYS: u32 = 60;

fn filled(is_closed: bool) -> FakeFiles {
    let files = machine(1);
    let (store, _) = open(&files);
    let tree = store.tree("keys").expect("a tree");
    for key in 0..KEYS {
        let mut one = store.begin();
        one.put(&tree, &key.to_be_bytes(), &[7; 700]).expect("room");
        one.commit(Disk).expect("a device");
        if key % 16 == 0 {
            for service in [Service::Follow, Service::Archive, Service::Base, Service::Clean] {
                store.step(service).expect("a device");
            }
        }
    }
    if is_closed {
        store.close().expect("a device");
    }
    cut(&files)
}

/// Every file of the store.
fn all_files(files: &FakeFiles) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in ["", "log", "archive"] {
        for entry in files.read_dir(Path::new(directory)).expect("a directory") {
            let name = String::from_utf8(entry.name).expect("a name");
            if entry.kind == Kind::File {
                found.push(Path::new(directory).join(name));
            }
        }
    }
    found.sort();
    found
}

fn has_all(store: &Store) -> bool {
    let tree = store.tree("keys").expect("a tree");
    let mut reading = store.begin_impatient();
    (0..KEYS).all(|key| {
        let found = reading.get(&tree, &key.to_be_bytes());
        found.is_ok_and(|value| value == Some(vec![7; 700]))
    })
}

/// Takes files away and opens the store; with them it is as it was.
fn without(is_closed: bool, missing: &dyn Fn(&Path) -> bool) {
    let files = filled(is_closed);
    let gone: Vec<_> = all_files(&files).into_iter().filter(|it| missing(it)).collect();
    let kept: Vec<_> = gone.iter().map(|name| read(&files, name)).collect();
    gone.iter().for_each(|name| files.remove_file(name).expect("a machine"));
    let is_empty = all_files(&files).is_empty();
    match Store::open_at(place(&files), &config()) {
        Ok((store, recovery)) => {
            println!("  {gone:?}: {recovery:?}");
            assert!(!recovery.is_new || is_empty, "begun anew over what is left, without {gone:?}");
            let has_lost = !store.stat().lost_records.is_empty();
            assert!(is_empty || has_lost || has_all(&store), "lost in silence, without {gone:?}");
            let is_catalogue = |it: &PathBuf| it.to_string_lossy().starts_with("log/catalogue");
            let told = recovery.remade.iter().map(|it| Path::new("log").join(&it.name));
            let catalogues: Vec<_> = gone.iter().filter(|it| is_catalogue(it)).cloned().collect();
            assert!(is_empty || told.eq(catalogues), "not told: {gone:?}, {:?}", recovery.remade);
        }
        Err(error) => {
            println!("  {gone:?}: {error}");
            gone.iter().zip(kept).for_each(|(name, bytes)| write(&files, name, &bytes));
            assert!(has_all(&open(&files).0), "not as it was, with {gone:?}");
        }
    }
}

#[test]
fn a_store_without_one_of_its_files_has_everything_or_is_refused() {
    for is_closed in [false, true] {
        for name in all_files(&filled(is_closed)) {
            without(is_closed, &|it| it == name);
        }
    }
}

#[test]
fn a_store_without_some_of_its_files_is_never_begun_anew_over_the_others() {
    for is_closed in [false, true] {
        for kept in ["log", "archive", "log/segment", "log/catalogue", "pages", "base", "store"] {
            without(is_closed, &|it| !it.to_string_lossy().starts_with(kept));
            without(is_closed, &|it| it.to_string_lossy().starts_with(kept));
        }
        without(is_closed, &|_| true);
    }
    for seed in 1..=40 * factor() {
        println!("seed {seed}");
        let is_gone = |name: &Path| {
            crc32c(seed as u32, name.as_os_str().as_encoded_bytes()).is_multiple_of(3)
        };
        without(seed % 2 == 0, &is_gone);
    }
}
