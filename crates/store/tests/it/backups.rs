//! Backups, and stores made from them or from archives.

use std::fmt::Debug;
use std::path::Path;

use holdfast_io::Files;
use holdfast_io::fake::{FakeFiles, Mood};
use holdfast_store::Durability::{Disk, Memory};
use holdfast_store::{
    At, BackUpError, Direction, OpenError, Progress, RestoreError, Rsn, Store, Tree, restore_at,
};

use crate::model::Contents;
use crate::support::{config, cut, machine, open, place, settle, sound};

fn put(store: &Store, tree: &Tree, key: u32, value: u8) {
    let mut one = store.begin();
    one.put(tree, &key.to_be_bytes(), &[value; 400]).expect("room");
    one.commit(if key.is_multiple_of(2) { Memory } else { Disk }).expect("a log");
}

fn contents(store: &Store) -> Contents {
    let tree = store.tree("keys").expect("a tree");
    let mut reading = store.begin_impatient();
    let scan = reading.scan::<&[u8]>(&tree, .., Direction::Up);
    scan.map(|found| found.expect("nobody is at it")).collect()
}

#[test]
fn a_backup_has_what_was_committed_and_not_what_was_running() {
    let files = machine(1);
    let (store, _) = open(&files);
    let tree = store.tree("keys").expect("a tree");
    (0..200).for_each(|key| put(&store, &tree, key, 1));
    let wanted = contents(&store);
    let mut running = store.begin();
    running.put(&tree, &7_u32.to_be_bytes(), b"never").expect("room");
    let to = machine(2);
    store.back_up_at(&place(&to), &mut |_| ()).expect("a device");
    assert!(matches!(store.back_up_at(&place(&to), &mut |_| ()), Err(BackUpError::Exists)));
    running.commit(Disk).expect("a log");
    (0..200).for_each(|key| put(&store, &tree, key, 2));

    let restored = machine(3);
    let restore = || restore_at(&place(&to), At::End, &place(&restored), &config(), &mut |_| ());
    restore().expect("a device");
    assert!(matches!(restore(), Err(RestoreError::Exists)));
    let (other, recovery) = open(&cut(&restored));
    assert_eq!(recovery.losers, 1);
    assert_eq!(contents(&other), wanted);
    settle(&other);
    sound(&other);
}

#[test]
fn a_backup_that_is_brought_forward_is_as_a_new_one() {
    let files = machine(1);
    let (store, _) = open(&files);
    let tree = store.tree("keys").expect("a tree");
    (0..100).for_each(|key| put(&store, &tree, key, 1));
    let to = machine(2);
    store.back_up_at(&place(&to), &mut |_| ()).expect("a device");
    (50..200).for_each(|key| put(&store, &tree, key, 2));
    store.forward_at(&place(&to), &mut |_| ()).expect("a device");
    let wanted = contents(&store);
    let restored = machine(3);
    restore_at(&place(&to), At::End, &place(&restored), &config(), &mut |_| ()).expect("a device");
    assert_eq!(contents(&open(&restored).0), wanted);
}

/// What is told while something takes long: more and more, up to all of it.
fn told_of<Made, Error: Debug>(
    work: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<Made, Error>,
) -> Vec<Progress> {
    let mut told = Vec::new();
    work(&mut |at| told.push(at)).expect("a device");
    told
}

fn is_progress(told: &[Progress]) -> bool {
    let (Some(first), Some(last)) = (told.first(), told.last()) else { return false };
    told.is_sorted_by(|one, next| one.done_bytes < next.done_bytes)
        && told.iter().all(|at| at.total_bytes == first.total_bytes)
        && last.done_bytes == last.total_bytes
}

#[test]
fn how_far_it_is_is_told_until_all_of_it_is_done() {
    let files = machine(1);
    let (store, _) = open(&files);
    let tree = store.tree("keys").expect("a tree");
    (0..2000).for_each(|key| put(&store, &tree, key, 1));
    let (backup, restored) = (place(&machine(2)), place(&machine(3)));
    let made = told_of(|tell| store.back_up_at(&backup, tell));
    (0..2000).for_each(|key| put(&store, &tree, key, 2));
    let forward = told_of(|tell| store.forward_at(&backup, tell));
    let again = told_of(|tell| restore_at(&backup, At::End, &restored, &config(), tell));
    for told in [&made, &forward, &again] {
        assert!(told.len() > 1 && is_progress(told), "{told:?}");
    }
    // There is nothing to do, and that is told too.
    let nothing = told_of(|tell| store.forward_at(&backup, tell));
    assert!(is_progress(&nothing), "{nothing:?}");
}

#[test]
fn progress_that_goes_back_changes_its_end_or_never_gets_there_is_none() {
    let told = |told: &[(u64, u64)]| -> Vec<Progress> {
        told.iter().map(|&(done_bytes, total_bytes)| Progress { done_bytes, total_bytes }).collect()
    };
    assert!(is_progress(&told(&[(1, 3), (3, 3)])));
    for canary in [&[][..], &[(1, 3), (2, 3)], &[(2, 3), (1, 3)], &[(1, 2), (3, 3)], &[(4, 3)]] {
        assert!(!is_progress(&told(canary)), "{canary:?}");
    }
}

#[test]
fn a_store_is_made_as_it_was_at_any_commit() {
    let files = machine(1);
    let (store, _) = open(&files);
    let tree = store.tree("keys").expect("a tree");
    let mut then = Vec::new();
    for key in 0..60_u32 {
        put(&store, &tree, key % 20, key as u8);
        then.push((store.stat().stable, contents(&store)));
        if key.is_multiple_of(7) {
            settle(&store);
        }
    }
    store.close().expect("a device");
    for (at, wanted) in then {
        let restored = machine(3);
        let moment =
            restore_at(&place(&files), At::Rsn(at), &place(&restored), &config(), &mut |_| ());
        assert_eq!(moment.expect("it is in the archive").rsn, at);
        assert_eq!(contents(&open(&restored).0), wanted, "at {at}");
    }
}

#[test]
fn what_is_no_backup_is_told() {
    let (from, to) = (machine(1), machine(2));
    let restored = restore_at(&place(&from), At::End, &place(&to), &config(), &mut |_| ());
    assert!(matches!(restored, Err(RestoreError::From(OpenError::NotAStore))), "{restored:?}");
}

#[test]
fn a_page_file_that_is_lost_comes_back_while_the_store_is_used() {
    let files = machine(1);
    let (store, _) = open(&files);
    let tree = store.tree("keys").expect("a tree");
    (0..300).for_each(|key| put(&store, &tree, key, 1));
    settle(&store);
    let wanted = contents(&store);
    store.replace_pages().expect("a device");
    assert!(store.stat().is_restoring);
    assert_eq!(contents(&store), wanted);
    (0..20).for_each(|key| put(&store, &tree, key, 2));
    settle(&store);
    assert!(!store.stat().is_restoring);
    sound(&store);
}

/// Cuts the power at every I/O of a restore from here. Whatever is left is no store, or has this.
fn cut_restores(from: &FakeFiles, held: &Contents) {
    let whole = machine(2);
    let before = whole.operations();
    restore_at(&place(from), At::End, &place(&whole), &config(), &mut |_| ()).unwrap();
    for cut in before + 1..=whole.operations() {
        let to = machine(2);
        to.cut_power_at(cut);
        restore_at(&place(from), At::End, &place(&to), &config(), &mut |_| ())
            .expect_err("the power is cut");
        for mood in [Mood::LoseAll, Mood::KeepAll] {
            let to = to.after_power_cut_in(mood, cut);
            let Ok((store, recovery)) = Store::open_at(place(&to), &config()) else { continue };
            // Before anything, or after everything.
            let wanted = if recovery.is_new { &Contents::new() } else { held };
            assert!(contents(&store) == *wanted, "cut {cut} {mood:?}: {recovery:?}");
        }
    }
}

#[test]
fn a_restore_that_is_cut_short_leaves_no_store_and_is_made_again_elsewhere() {
    let files = machine(1);
    let (store, _) = open(&files);
    let tree = store.tree("keys").unwrap();
    (0..40).for_each(|key| put(&store, &tree, key, 1));
    let held = contents(&store);
    store.close().unwrap();
    cut_restores(&files, &held);
}

/// A backup whose records begin late, and what it has.
fn late_backup() -> (FakeFiles, Contents) {
    let (files, backup) = (machine(1), machine(4));
    let (store, _) = open(&files);
    let tree = store.tree("keys").unwrap();
    for value in 1..4 {
        (0..200).for_each(|key| put(&store, &tree, key, value));
        settle(&store);
    }
    store.back_up_at(&place(&backup), &mut |_| ()).unwrap();
    let runs = backup.read_dir(Path::new("archive")).unwrap();
    let is_first = |name: &[u8]| String::from_utf8_lossy(name).contains("-0000000000000008-");
    assert!(!runs.iter().any(|run| is_first(&run.name)), "it has all records: {runs:?}");
    (backup, contents(&store))
}

#[test]
fn a_restore_from_a_backup_alone_that_is_cut_short_leaves_no_store() {
    let (backup, held) = late_backup();
    cut_restores(&backup, &held);
}

#[test]
fn a_store_made_from_a_backup_alone_is_backed_up_restored_and_closed_like_any_other() {
    let (mut from, held) = late_backup();
    for seed in 5..8 {
        let files = machine(seed);
        restore_at(&place(&from), At::End, &place(&files), &config(), &mut |_| ()).unwrap();
        let (store, _) = open(&files);
        assert!(contents(&store) == held, "round {seed}");
        if seed % 2 == 0 {
            settle(&store);
            from = machine(seed + 10);
            store.back_up_at(&place(&from), &mut |_| ()).unwrap();
        } else {
            // Nothing was put since.
            store.close().unwrap();
            from = files;
        }
    }
}

/// A store of some lives, closed after each; what it had then, and where its records ended.
fn lives(files: &FakeFiles) -> Vec<(Contents, Rsn)> {
    let live = |life: u8| {
        let (store, _) = open(files);
        let tree = store.tree("keys").expect("a tree");
        (0..40).for_each(|key| put(&store, &tree, key, life));
        let (had, end) = (contents(&store), store.stat().next);
        store.close().expect("a device");
        (had, end)
    };
    (1..6).map(live).collect()
}

fn begin_of_run(name: &str) -> Rsn {
    let begin = name.rsplit('-').nth(1).and_then(|it| u64::from_str_radix(it, 16).ok());
    Rsn(begin.expect("runs are named after their records"))
}

#[test]
fn moments_before_a_run_that_is_missing_are_there_and_those_behind_it_are_refused() {
    let files = machine(1);
    let lives = lives(&files);
    let archive = files.below(Path::new("archive")).expect("it is there");
    let runs = archive.read_dir(Path::new("")).expect("it is there");
    let runs: Vec<_> =
        runs.iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned()).collect();
    let newest = runs.iter().map(|run| begin_of_run(run)).max().expect("there are runs");
    let (mut made, mut refused) = (0, 0);
    for run in &runs {
        let (path, begin) = (Path::new("archive").join(run), begin_of_run(run));
        let lacking = cut(&files);
        lacking.remove_file(&path).expect("it is there");
        for (had, end) in &lives {
            let to = machine(2);
            let restored =
                restore_at(&place(&lacking), At::Rsn(*end), &place(&to), &config(), &mut |_| ());
            match restored {
                Ok(_) if *end <= begin => made += 1,
                Err(RestoreError::Pages(_)) if *end > begin => refused += 1,
                other => panic!("{other:?} at {end} without {run}"),
            }
            if *end <= begin {
                assert_eq!(contents(&open(&to).0), *had, "at {end} without {run}");
            }
        }
        // What the newest one had may be in the log still.
        let told = open(&lacking).0.stat().kept_upto;
        assert!(told == Some(begin) || told.is_none() && begin == newest, "{told:?} without {run}");
    }
    assert!(made >= 4 && refused >= 4, "{made} made, {refused} refused");
}
