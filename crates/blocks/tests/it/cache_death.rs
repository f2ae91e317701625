//! A process killed at any instant while its threads read and write a cached file.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use holdfast_blocks::{BlockCache, CacheSpec, CachedFiles};
use holdfast_io::fake::Random;
use holdfast_io::real::RealFiles;
use holdfast_io::{Files, OpenFile, OpenHow};
use holdfast_memory::{Area, AreaSpec, Medium, Region};

use crate::common::{BLOCK, IDENTITY, for_seeds, path_of, shm};

/// Set for a child: what it does, where the home is, the cache, and what says that it is at work.
const ROLE: &str = "HOLDFAST_TEST_ROLE";
const FOLDER: &str = "HOLDFAST_TEST_FOLDER";
const CACHE: &str = "HOLDFAST_TEST_CACHE";
const NOTES: &str = "HOLDFAST_TEST_NOTES";
const SEED: &str = "HOLDFAST_TEST_SEED";

const HOME: &str = "home";
const BLOCKS: u64 = 100;
const PLEDGE: u64 = 5;
const CONTENT: [u8; 8] = *b"A TEST'S";

fn open(files: &dyn Files) -> Arc<dyn OpenFile> {
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    files.open(Path::new(HOME), how).unwrap()
}

fn cached(folder: &Path, medium: &Medium) -> CachedFiles {
    let files = Arc::new(RealFiles::open(folder).unwrap());
    let cache = Arc::new(BlockCache::attach(medium, IDENTITY).unwrap());
    CachedFiles::new(files, HOME, cache, PLEDGE).unwrap()
}

fn content(files: &dyn Files) -> Vec<u8> {
    let mut content = vec![0; BLOCKS as usize * BLOCK];
    open(files).read_full_at(&mut content, 0).unwrap();
    content
}

#[test]
#[ignore = "not a test: the process that the tests of this file start and kill"]
fn the_user_to_be_killed() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let medium = |name| Medium::Shm { path: std::env::var_os(name).unwrap().into() };
    let folder = std::env::var_os(FOLDER).unwrap();
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let files = cached(Path::new(&folder), &medium(CACHE));
    let behind = RealFiles::open(Path::new(&folder)).unwrap();
    let work = |thread: u64| {
        let mut random = Random::new(seed * 8 + thread);
        let (file, behind) = (open(&files), open(&behind));
        loop {
            let (block, count) = (random.below(BLOCKS), 1 + random.below(8));
            let bytes = (count.min(BLOCKS - block) as usize) * BLOCK;
            let offset = block * BLOCK as u64;
            match random.below(4) {
                0 => file.write_all_at(&vec![random.any() as u8; bytes], offset).unwrap(),
                1 => file.write_all_at(&vec![random.any() as u8; bytes - 7], offset).unwrap(),
                // Past the cache, as nobody must.
                2 if role == "behind" => {
                    behind.write_all_at(&vec![random.any() as u8; bytes], offset).unwrap();
                }
                _ => drop(file.read_full_at(&mut vec![0; bytes], offset).unwrap()),
            }
        }
    };
    thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || work(thread));
        }
        let notes = Area::attach(&medium(NOTES), CONTENT).unwrap();
        notes.counter(0).store(1, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(3600));
    });
}

/// Runs a user of the file until it is killed at work.
fn use_and_kill(role: &str, folder: &Path, medium: &Medium, seed: u64, random: &mut Random) {
    let (_notes, notes) = shm();
    let spec = AreaSpec { content: CONTENT, identity: IDENTITY, bytes: 4096 };
    drop(Area::create(&notes, &spec, |_| ()).unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cache_death::the_user_to_be_killed", "--ignored"])
        .env(ROLE, role)
        .env(FOLDER, folder)
        .env(CACHE, path_of(medium))
        .env(NOTES, path_of(&notes))
        .env(SEED, seed.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let observed = Region::observe(&notes).unwrap();
    while observed.word(0) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_micros(random.below(15_000)));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Kills users again and again; how often the cache then held something that the home does not, and
/// how many bytes it held in all.
fn kill_again_and_again(role: &str, deaths: u64, seed: u64, random: &mut Random) -> (u64, u64) {
    let (folder, (_shm, medium)) = (tempfile::tempdir().unwrap(), shm());
    let files = RealFiles::open(folder.path()).unwrap();
    open(&files).write_all_at(&vec![1; BLOCKS as usize * BLOCK], 0).unwrap();
    let spec = CacheSpec { bytes: 64 * BLOCK as u64, identity: IDENTITY };
    drop(BlockCache::create(&medium, &spec).unwrap());
    let (mut faults, mut held) = (0, 0);
    for death in 1..=deaths {
        use_and_kill(role, folder.path(), &medium, seed * 1000 + death, random);
        let cached_files = cached(folder.path(), &medium);
        held += BlockCache::observe(&medium).unwrap().held_bytes;
        faults += u64::from(content(&cached_files) != content(&files));
    }
    (faults, held)
}

#[test]
fn users_that_are_killed_leave_a_warm_cache_that_is_as_the_home() {
    let name = "users_that_are_killed_leave_a_warm_cache_that_is_as_the_home";
    for_seeds(name, 3, |seed, random| {
        let (faults, held) = kill_again_and_again("honest", 8, seed, random);
        assert_eq!(faults, 0);
        assert!(held > 0, "warm");
    });
}

#[test]
fn a_user_that_writes_past_the_cache_is_caught_by_the_same_kills() {
    let (faults, _) = kill_again_and_again("behind", 20, 1, &mut Random::new(1));
    assert_ne!(faults, 0);
}
