//! A small store on a modelled machine.

use std::path::Path;
use std::sync::Arc;

use holdfast_io::fake::{FakeClock, FakeEntropy, FakeFiles, Mood};
use holdfast_io::{Files, OpenHow};
use holdfast_memory::Medium;
use holdfast_pages::Keep;
use holdfast_store::{
    CheckedTrees, Config, Directories, LogPlace, Place, Recovery, Service, Services, Store,
};

/// A store so small that everything happens soon.
pub(crate) fn config() -> Config {
    Config {
        pool_bytes: 24 * 8192,
        log: LogPlace::Embedded {
            memory: Medium::Private,
            ring_bytes: 256 << 10,
            segment_bytes: 64 << 10,
        },
        checkpoint_ms: None,
        segment_pages: 4,
        keep: Keep::All,
        clean_every_bytes: 64 << 10,
        services: Services::Stepped,
        ..Config::default()
    }
}

/// A machine with directories for a store.
pub(crate) fn machine(seed: u64) -> FakeFiles {
    let files = FakeFiles::new(seed);
    for directory in ["log", "archive"] {
        files.make_dir(Path::new(directory), 0o755).expect("a directory");
    }
    files.sync_dir(Path::new("")).expect("a directory");
    files
}

/// The place of the store on a machine.
pub(crate) fn place(files: &FakeFiles) -> Place {
    place_with(files, Arc::new(FakeEntropy::new(7)))
}

/// The same, with numbers from elsewhere: two stores are two by these.
pub(crate) fn place_with(files: &FakeFiles, entropy: Arc<FakeEntropy>) -> Place {
    let below = |name: &str| -> Arc<dyn Files> {
        Arc::new(files.below(Path::new(name)).expect("the directory is there"))
    };
    let directories = Directories {
        store: Arc::new(files.clone()),
        log: below("log"),
        archive: below("archive"),
    };
    Place::modelled(directories, Arc::new(FakeClock::default()), entropy)
}

pub(crate) fn open(files: &FakeFiles) -> (Store, Recovery) {
    Store::open_at(place(files), &config()).expect("the store opens")
}

/// The machine after the power was cut and all that was not synced is lost.
pub(crate) fn cut(files: &FakeFiles) -> FakeFiles {
    files.after_power_cut_in(Mood::LoseAll, 1)
}

/// Steps every service until none has anything to do.
pub(crate) fn settle(store: &Store) {
    let step = |service: &Service| store.step(*service).expect("the machine is well");
    while Service::ALL.iter().filter(|service| step(service)).count() > 0 {}
}

/// What the trees of a store have all of whose pages are sound.
pub(crate) fn sound(store: &Store) -> CheckedTrees {
    let found = store.verify(&mut |_| ()).expect("a log");
    assert!(found.faults.is_empty(), "{found:?}");
    found.trees.expect("nothing is wrong with them")
}

/// Damages a file by replacing what is in it.
pub(crate) fn overwrite(files: &FakeFiles, name: &str, bytes: &[u8]) {
    let how = OpenHow { write: true, ..OpenHow::default() };
    let file = files.open(Path::new(name), how).expect("the file is there");
    file.write_all_at(bytes, 0).expect("there is room");
    file.sync_data().expect("the machine is well");
}

/// A whole file.
pub(crate) fn read(files: &FakeFiles, name: &Path) -> Vec<u8> {
    let file = files.open(name, OpenHow::default()).expect("the file is there");
    let mut bytes = vec![0; file.metadata().expect("the machine is well").size_bytes as usize];
    file.read_full_at(&mut bytes, 0).expect("the machine is well");
    bytes
}

/// Makes a file, or makes it anew, with these bytes.
pub(crate) fn write(files: &FakeFiles, name: &Path, bytes: &[u8]) {
    let how = OpenHow { write: true, create_mode: Some(0o644), ..OpenHow::default() };
    let file = files.open(name, how).expect("a file");
    file.set_len(bytes.len() as u64).expect("room");
    file.write_all_at(bytes, 0).expect("room");
}

/// How many times longer than usual a test with chance in it runs.
pub(crate) fn factor() -> u64 {
    let factor = std::env::var("HOLDFAST_SEEDS_FACTOR").ok();
    factor.and_then(|factor| factor.parse().ok()).unwrap_or(1).max(1)
}
