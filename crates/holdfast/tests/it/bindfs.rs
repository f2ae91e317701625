//! A home on a file system that a process makes, which may tell two names of a file as two files:
//! what is read is what was written, by whichever name and whichever front end.

use crate::fixture::{Fixture, NAME, wait_until};
use crate::slow_disk;
use holdfast_io::fake::Random;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

const EPERM: i32 = 1;
const STEPS: u64 = 250;
const KILL_EVERY: u64 = 60;
const BYTES_MAX: u64 = 12_000;

/// A volume whose home is what bindfs shows of a directory; none where there is no bindfs.
fn on_bindfs() -> Option<Fixture> {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("backing")).unwrap();
    let shown = Command::new("bindfs").arg(fixture.path("backing")).arg(fixture.home()).status();
    if !shown.is_ok_and(|status| status.success()) {
        println!("no bindfs here: this is not tested");
        return None;
    }
    Some(fixture)
}

/// As git does: a file is written by a name of its own, and gets its real one by a link; where
/// links are refused, by a rename. True if it was a link.
fn put(directory: &Path, name: &str, contents: &[u8]) -> bool {
    let (new, real) = (directory.join("new"), directory.join(name));
    let mut file = File::create_new(&new).unwrap();
    contents.chunks(4096).for_each(|chunk| file.write_all(chunk).unwrap());
    drop(file);
    let linked = fs::hard_link(&new, &real);
    match &linked {
        Ok(()) => fs::remove_file(&new).unwrap(),
        Err(error) if error.raw_os_error() == Some(EPERM) => fs::rename(&new, &real).unwrap(),
        Err(error) => panic!("neither a link nor a refusal: {error}"),
    }
    linked.is_ok()
}

fn any_bytes(random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![0; 1 + random.below(BYTES_MAX) as usize];
    random.fill(&mut bytes);
    bytes
}

/// One change of one of the files, and of what should be in them. True if one was linked.
fn step(
    mount: &Path,
    number: u64,
    model: &mut BTreeMap<String, Vec<u8>>,
    random: &mut Random,
) -> bool {
    let nth = random.below(model.len().max(1) as u64) as usize;
    let known = model.keys().nth(nth).cloned();
    match (random.below(10), known) {
        (0..2, Some(name)) => {
            let (offset, bytes) = (random.below(BYTES_MAX), any_bytes(random));
            let file = File::options().write(true).open(mount.join(&name)).unwrap();
            file.write_all_at(&bytes, offset).unwrap();
            let contents = model.get_mut(&name).unwrap();
            let end = offset as usize + bytes.len();
            contents.resize(contents.len().max(end), 0);
            contents[offset as usize..end].copy_from_slice(&bytes);
        }
        (2, Some(name)) => {
            let to = format!("renamed-{number}");
            fs::rename(mount.join(&name), mount.join(&to)).unwrap();
            let contents = model.remove(&name).unwrap();
            model.insert(to, contents);
        }
        (3, Some(name)) => {
            fs::remove_file(mount.join(&name)).unwrap();
            model.remove(&name);
        }
        (4 | 5, Some(name)) => assert!(fs::read(mount.join(&name)).unwrap() == model[&name]),
        _ => {
            let (name, contents) = (format!("file-{number}"), any_bytes(random));
            let is_linked = put(mount, &name, &contents);
            model.insert(name, contents);
            return is_linked;
        }
    }
    false
}

#[track_caller]
fn assert_all(directory: &Path, model: &BTreeMap<String, Vec<u8>>, told: &str) {
    for (name, contents) in model {
        let path = directory.join(name);
        assert!(fs::read(&path).unwrap() == *contents, "{told}: {name} has something else");
        assert_eq!(path.metadata().unwrap().nlink(), 1, "{told}: {name}");
    }
}

/// A life with front ends that die, to the home that is given back. How many links there were.
fn live(fixture: &mut Fixture, home: &Path, seed: u64) -> u64 {
    println!("seed {seed}");
    let (mut random, mut model, mut links) = (Random::new(seed), BTreeMap::new(), 0);
    fixture.serve();
    for number in 0..STEPS {
        links += u64::from(step(&fixture.mount(), number, &mut model, &mut random));
        if random.below(KILL_EVERY) == 0 {
            fixture.replace_front_end();
        }
    }
    fixture.replace_front_end();
    assert_all(&fixture.mount(), &model, &format!("seed {seed}, served"));
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_all(home, &model, &format!("seed {seed}, at home"));
    links
}

#[test]
fn what_is_written_by_one_name_and_read_by_another_is_the_same_through_front_ends_that_die() {
    for seed in 0..3 {
        let Some(mut fixture) = on_bindfs() else { return };
        fixture.holdfast(&["volume", "make", NAME]).succeeded();
        let home = fixture.home();
        assert_eq!(live(&mut fixture, &home, seed), 0, "seed {seed}: links were not refused");
        assert!(fixture.keeper_log().contains("links are refused"), "{}", fixture.keeper_log());
    }
}

#[test]
fn a_file_that_has_two_names_there_is_read_and_removed_and_not_changed() {
    let Some(mut fixture) = on_bindfs() else { return };
    fs::write(fixture.path("backing/one"), "as it was").unwrap();
    fs::hard_link(fixture.path("backing/one"), fixture.path("backing/other")).unwrap();
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    let (one, other) = (fixture.mount().join("one"), fixture.mount().join("other"));
    let refused = |done: std::io::Result<()>| done.unwrap_err().raw_os_error();
    assert_eq!(refused(fs::write(&one, "changed")), Some(EPERM));
    let mode = fs::Permissions::from_mode(0o600);
    assert_eq!(refused(fs::set_permissions(&other, mode)), Some(EPERM));
    assert_eq!(refused(fs::hard_link(&one, fixture.mount().join("third"))), Some(EPERM));
    assert_eq!(fs::read(&other).unwrap(), b"as it was");
    fs::remove_file(&one).unwrap();
    assert_eq!(fs::read(&other).unwrap(), b"as it was");
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.path("backing/other")).unwrap(), b"as it was");
    assert!(!fixture.path("backing/one").exists());
}

#[test]
fn where_two_names_show_the_same_there_are_links() {
    let mut fixture = Fixture::new();
    let (backing, home) = (fixture.path("backing"), fixture.home().join("inside"));
    fs::create_dir_all(backing.join("inside")).unwrap();
    fixture.reconfigure(&format!("home = {:?}", fixture.home()), &format!("home = {home:?}"));
    let fast = ["--rpm", "600000"];
    let mut disk = slow_disk::command(&backing, &fixture.home(), &fast).spawn().unwrap();
    wait_until(|| fixture.is_mounted(), || "the disk is not mounted".into());
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    assert!(live(&mut fixture, &home, 7) > 0, "seed 7: no links");
    assert!(!fixture.keeper_log().contains("links are refused"), "{}", fixture.keeper_log());
    fixture.stop();
    fixture.take_mounts_away();
    disk.wait().unwrap();
}
