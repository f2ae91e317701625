//! What a command leaves that makes something and is refused: nothing.
//!
//! Drawn are the command, what is where it shall make something, and why that cannot be. Whatever
//! is refused, names and bytes are as they were before.

use crate::fixture::{Ended, Fixture};
use crate::seeds::{Random, for_seeds};
use crate::served::Served;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const TEST: &str = "a_command_that_is_refused_leaves_nothing_of_what_it_was_to_make";
const SEEDS: u64 = 3;
const COMMANDS: u32 = 40;

/// Every name below a directory, with the bytes of what is a file.
fn tree(directory: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut unread = vec![directory.to_owned()];
    while let Some(directory) = unread.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let bytes = path.is_file().then(|| fs::read(&path).unwrap());
            if bytes.is_none() {
                unread.push(path.clone());
            }
            found.insert(path, bytes);
        }
    }
    found
}

/// A server with a log that a store has, and what can be copied: a store that is closed, its
/// backup, and a log.
fn sources() -> Served {
    let mut served = Served::with("clients_max = 1\n");
    served.serve();
    let path = |name: &str| served.path(name).display().to_string();
    let does = |words: &[&str]| Ended::of(served.holdfast(words)).succeeded();
    let ledger = format!("{}/ledger", served.socket().display());
    does(&["store", "open", &path("owner"), "--log", &ledger]);
    does(&["store", "open", &path("a-store")]);
    does(&["store", "put", &path("a-store"), "a", "1"]);
    does(&["store", "backup", &path("a-store"), &path("a-backup")]);
    does(&["log", "create", &path("a-log"), "--record", "notes", "--format", "json"]);
    served
}

/// What stands where something is to be made; the place is in `work`.
fn prepare(random: &mut Random, work: &Path) -> PathBuf {
    let _ = fs::remove_dir_all(work);
    fs::create_dir(work).unwrap();
    let place = work.join("place");
    match random.below(6) {
        0 => fs::create_dir(&place).unwrap(),
        1 => fs::write(&place, "a file").unwrap(),
        2 => {
            fs::create_dir(&place).unwrap();
            fs::write(place.join("letter"), "somebody else's").unwrap();
        }
        3 => return work.join("no-folder/place"),
        _ => {}
    }
    place
}

/// A command that makes something, perhaps in a way that cannot be.
fn command(random: &mut Random, served: &Served, place: &Path) -> Vec<String> {
    let path = |name: &str| served.path(name).display().to_string();
    let place = place.display().to_string();
    let log = ["none", "ledger"][random.below(2) as usize];
    let socket = [served.socket(), served.path("no-server")][random.below(2) as usize].clone();
    let log = vec!["--log".to_owned(), format!("{}/{log}", socket.display())];
    let from = path(["a-store", "a-backup", "a-log", "none"][random.below(4) as usize]);
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (words, more) = match random.below(5) {
        0 => (words(&["store", "open", &place]), log),
        1 => (words(&["store", "restore", &from, &place]), log),
        2 => {
            let at = ["--at", ["rsn:999999999", "rsn:1"][random.below(2) as usize]];
            (words(&["store", "restore", &from, &place]), words(&at))
        }
        3 => (words(&["store", "backup", &from, &place]), words(&["--forward"])),
        4 if random.below(2) == 0 => (words(&["log", "repair", &from, &place]), Vec::new()),
        _ => {
            let create = ["log", "create", &place, "--record", "notes", "--format", "json"];
            (words(&create), words(&["--segment", "5KiB"]))
        }
    };
    if random.below(5) > 0 { [words, more].concat() } else { words }
}

fn live(seed: u64, served: &Served) {
    let mut random = Random::new(seed);
    let work = served.path("work");
    let mut refused = 0;
    for number in 0..COMMANDS {
        let place = prepare(&mut random, &work);
        let words = command(&mut random, served, &place);
        let before = tree(&work);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ended = Ended::of(served.holdfast(&words));
        if ended.code == Some(0) {
            continue;
        }
        refused += 1;
        let after = tree(&work);
        let names = after.keys().collect::<Vec<_>>();
        assert!(after == before, "seed {seed}, {number}: {words:?}: {ended:?}: {names:?} are left");
    }
    assert!(refused > COMMANDS / 4, "seed {seed}: hardly anything was refused");
}

#[test]
fn a_command_that_is_refused_leaves_nothing_of_what_it_was_to_make() {
    let mut served = sources();
    for_seeds(TEST, SEEDS, |seed| live(seed, &served));
    served.stop();
}

#[test]
fn a_volume_that_cannot_be_made_leaves_nothing_where_its_log_was_to_be() {
    let fixture = Fixture::new();
    let small = fixture.path("small");
    fs::create_dir(&small).unwrap();
    let log = small.join("a/b/log");
    let configured = fixture.log().display().to_string();
    fixture.reconfigure(&format!("{configured:?}"), &format!("{log:?}"));
    for room in [c"size=1m", c"nr_inodes=2", c"nr_inodes=5"] {
        mount("none", &small, "tmpfs", MountFlags::empty(), room).unwrap();
        let ended = fixture.holdfast(&["volume", "make", "v"]);
        let left = tree(&small);
        unmount(&small, UnmountFlags::empty()).unwrap();
        assert!(ended.code != Some(0) && left.is_empty(), "{room:?}: {ended:?}: {left:?} are left");
    }
    mount("none", &small, "tmpfs", MountFlags::empty(), None).unwrap();
    let home = fixture.home();
    mount("none", &home, "tmpfs", MountFlags::empty(), None).unwrap();
    mount_remount(&home, MountFlags::RDONLY, c"").unwrap();
    let ended = fixture.holdfast(&["volume", "make", "v"]);
    let left = tree(&small);
    for mounted in [&home, &small] {
        unmount(mounted, UnmountFlags::empty()).unwrap();
    }
    ended.expect(1, &["mounted read-only", "nothing was changed"]);
    assert!(left.is_empty(), "{left:?} are left");
}
