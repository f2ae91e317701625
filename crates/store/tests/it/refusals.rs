//! What a store says to what it cannot do, and that nothing is lost by that.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_io::checksum::crc32c;
use holdfast_io::fake::{EIO, ENOSPC, Effect, FakeEntropy, FakeFiles, Fault, Operation};
use holdfast_io::{Files, OpenHow};
use holdfast_log::{ConfigFault, CreateError as LogCreateError, OpenError as LogError};
use holdfast_memory::Medium;
use holdfast_pages::{
    AnalysisError, LoadError, OpenArchiveError, OpenError as PagesError,
    RestoreError as MomentError, Tag,
};
use holdfast_store::Durability::{Disk, Memory};
use holdfast_store::{
    At, BackUpError, CommitError, Config, Direction, LogPlace, OpenError, RestoreError, Rsn,
    Service, ServiceError, Store, TransactionError, Tree, VerifyFault, restore_at,
};

use crate::support::{
    config, cut, machine, open, overwrite, place, place_with, read, settle, write,
};

const KEYS: u32 = 200;
const FOOTER_BYTES: usize = 120;

fn put(store: &Store, tree: &Tree, key: u32, value: u8) -> Result<(), CommitError> {
    let mut one = store.begin();
    one.put(tree, &key.to_be_bytes(), &[value; 700]).expect("room");
    one.commit(Disk).map(drop)
}

/// Puts every key, with a run of the archive now and then.
fn fill(store: &Store, value: u8) {
    let tree = store.tree("keys").expect("a tree");
    for key in 0..KEYS {
        put(store, &tree, key, value).expect("a device");
        if key % 16 == 0 {
            for service in [Service::Follow, Service::Archive, Service::Base] {
                store.step(service).expect("a device");
            }
        }
    }
}

fn has_all(store: &Store, value: u8) -> bool {
    let tree = store.tree("keys").expect("a tree");
    let mut reading = store.begin_impatient();
    let mut get = |key: u32| reading.get(&tree, &key.to_be_bytes()).expect("pages");
    (0..KEYS).all(|key| get(key) == Some(vec![value; 700]))
}

/// A store that lost its power while it was in use.
fn after_cut() -> FakeFiles {
    let files = machine(1);
    let (store, _) = open(&files);
    fill(&store, 1);
    drop(store);
    cut(&files)
}

fn refused(files: &FakeFiles) -> OpenError {
    Store::open_at(place(files), &config()).map(drop).expect_err("it is refused")
}

fn runs(files: &FakeFiles) -> Vec<PathBuf> {
    let entries = files.read_dir(Path::new("archive")).expect("a directory");
    let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut names: Vec<_> = entries.iter().map(|entry| name(&entry.name)).collect();
    names.sort_by_key(|name| name[name.find('-').expect("a run") + 1..].to_owned());
    names.iter().map(|name| Path::new("archive").join(name)).collect()
}

/// Changes a file as `how` says, opens the store, and changes it back: the store is as it was.
fn refused_with(name: &Path, how: fn(&mut Vec<u8>)) -> OpenError {
    let files = after_cut();
    let sound = read(&files, name);
    let mut other = sound.clone();
    how(&mut other);
    write(&files, name, &other);
    let error = refused(&files);
    write(&files, name, &sound);
    assert!(has_all(&open(&files).0, 1), "{error:?}");
    error
}

#[test]
fn one_damaged_base_is_told_and_the_other_serves() {
    for name in ["base-0", "base-1"] {
        let files = after_cut();
        let mut bytes = read(&files, Path::new(name));
        bytes[20] ^= 1;
        write(&files, Path::new(name), &bytes);
        let (store, recovery) = open(&files);
        assert!(recovery.fell_back && has_all(&store, 1), "{name}: {recovery:?}");
    }
}

#[test]
fn two_damaged_bases_are_told_and_the_archive_has_everything() {
    let files = machine(1);
    let (store, _) = open(&files);
    fill(&store, 1);
    store.close().expect("a device");
    let names = ["base-0", "base-1"].map(Path::new);
    let sound = names.map(|name| read(&files, name));
    names.iter().for_each(|name| write(&files, name, b"no base"));
    let error = refused(&files);
    let OpenError::Pages(PagesError::Base(LoadError::Damaged(_))) = error else {
        panic!("{error:?}");
    };
    let other = machine(2);
    restore_at(&place(&files), At::End, &place(&other), &config(), &mut |_| ()).expect("a device");
    assert!(has_all(&open(&other).0, 1));
    (0..2).for_each(|which| write(&files, names[which], &sound[which]));
    assert!(has_all(&open(&files).0, 1));
}

#[test]
fn a_missing_run_is_named_and_with_it_the_store_is_as_it_was() {
    let files = after_cut();
    let runs = runs(&files);
    assert!(runs.len() > 2, "{runs:?}");
    let sound = read(&files, &runs[1]);
    files.remove_file(&runs[1]).expect("the machine is well");
    let (store, _) = open(&files);
    let lost = store.stat().lost_records;
    assert!(matches!(&lost[..], [(from, to)] if from < to), "{lost:?}");
    let found = store.verify(&mut |_| ()).expect("a log").faults;
    let is_named =
        |fault: &VerifyFault| matches!(fault, VerifyFault::Lost(_) | VerifyFault::Other(_));
    assert!(found.iter().any(|(_, fault)| is_named(fault)), "{found:?}");
    drop(store);
    write(&files, &runs[1], &sound);
    let (store, _) = open(&files);
    assert!(has_all(&store, 1) && store.stat().lost_records.is_empty());
}

#[test]
fn a_missing_segment_is_named_and_with_it_the_store_is_as_it_was() {
    let files = after_cut();
    let entries = files.read_dir(Path::new("log")).expect("a directory");
    let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut names = entries.iter().map(|entry| name(&entry.name));
    let segment = names.find(|name| name.starts_with("segment")).expect("a segment");
    let path = Path::new("log").join(&segment);
    let sound = read(&files, &path);
    files.remove_file(&path).expect("the machine is well");
    let error = refused(&files);
    let OpenError::Log(LogError::MissingSegment { name }) = error else { panic!("{error:?}") };
    assert_eq!(name, segment);
    write(&files, &path, &sound);
    assert!(has_all(&open(&files).0, 1));
}

#[test]
fn a_store_of_another_version_is_told() {
    let error = refused_with(Path::new("store"), |bytes| {
        bytes[8] = 7;
        let magic = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
        let check = crc32c(magic, &bytes[4..]);
        bytes[..4].copy_from_slice(&check.to_le_bytes());
    });
    assert!(matches!(error, OpenError::OtherVersion { found: 7, known: 3 }), "{error:?}");
}

#[test]
fn a_base_of_another_version_is_told() {
    let error = refused_with(Path::new("base-1"), |bytes| {
        bytes[8] = 7;
        let check = crc32c(0, &bytes[8..]);
        bytes[4..8].copy_from_slice(&check.to_le_bytes());
    });
    let OpenError::Pages(PagesError::Base(LoadError::OtherVersion { found, .. })) = error else {
        panic!("{error:?}");
    };
    assert_eq!(found, 7);
}

#[test]
fn a_run_of_another_version_is_told() {
    let files = after_cut();
    let runs = runs(&files);
    let (sound, header) = (read(&files, &runs[1]), read(&files, Path::new("store")));
    let tag = Tag::of(&header[16..32].try_into().expect("an identity"));
    let mut other = sound.clone();
    let at = other.len() - FOOTER_BYTES;
    let footer = &mut other[at..];
    footer[8] = 7;
    let check = crc32c(tag.get(), &footer[..FOOTER_BYTES - 4]);
    footer[FOOTER_BYTES - 4..].copy_from_slice(&check.to_le_bytes());
    write(&files, &runs[1], &other);
    let error = refused(&files);
    let OpenError::Pages(PagesError::Archive(OpenArchiveError::OtherVersion { found, .. })) = error
    else {
        panic!("{error:?}");
    };
    assert_eq!(found, 7);
    write(&files, &runs[1], &sound);
    assert!(has_all(&open(&files).0, 1));
}

/// Lets the disk be full for the next call of this kind.
fn full(files: &FakeFiles, operation: Operation) {
    files.fail(Fault { operation, skip: 0, effect: Effect::Errno(ENOSPC) });
}

/// Whether a full disk is met by a service, which tells that and goes on when there is room.
fn is_held_up(files: &FakeFiles, store: &Store, service: Service) -> bool {
    store.step(Service::Follow).expect("memory");
    full(files, Operation::Write);
    let stepped = store.step(service);
    files.forget_faults();
    store.step(service).expect("there is room");
    match (service, stepped) {
        (_, Ok(_)) => false,
        (Service::Archive | Service::Base, Err(ServiceError::Archive(_)))
        | (Service::Clean, Err(ServiceError::Clean(_))) => true,
        (_, other) => panic!("{service:?}: {other:?}"),
    }
}

#[test]
fn a_full_disk_under_archive_base_or_pages_stops_that_alone_until_there_is_room() {
    let files = machine(1);
    let (store, _) = open(&files);
    let tree = store.tree("keys").expect("a tree");
    let mut struck = [false; 3];
    for at in 0..6 * KEYS {
        put(&store, &tree, at % KEYS, (at / KEYS) as u8).expect("a device");
        if at % 40 == 0 {
            let services = [Service::Archive, Service::Base, Service::Clean].iter().enumerate();
            services.for_each(|(which, service)| {
                struck[which] |= is_held_up(&files, &store, *service);
            });
        }
    }
    assert_eq!(struck, [true; 3]);
    settle(&store);
    drop(store);
    assert!(has_all(&open(&cut(&files)).0, 5));
}

#[test]
fn a_full_disk_holds_up_transactions_and_they_go_on_when_there_is_room() {
    let files = machine(1);
    let (store, _) = open(&files);
    fill(&store, 1);
    let tree = store.tree("keys").expect("a tree");
    files.set_capacity_bytes(Some(1));
    let refused = (0..5 * KEYS).find_map(|key| {
        let mut one = store.begin();
        match one.put(&tree, &(key % KEYS).to_be_bytes(), &[2; 700]) {
            Err(TransactionError::Full(_)) => return Some(key),
            other => other.expect("a full disk is told as such"),
        }
        match one.commit(Disk) {
            Err(CommitError::NotDurable(_)) => Some(key),
            other => other.map(|_| None).expect("a full disk is told as such"),
        }
    });
    assert!(refused.is_some(), "no disk is that small");
    files.set_capacity_bytes(None);
    store.sync().expect("there is room");
    fill(&store, 3);
    drop(store);
    assert!(has_all(&open(&cut(&files)).0, 3));
}

#[test]
fn a_redo_only_transaction_that_is_too_large_is_told_and_can_end_as_it_likes() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("keys").expect("a tree");
    let fill = |commits: bool| {
        let mut one = store.begin_redo_only();
        let value = |round: u32| vec![round as u8; 1500];
        let refused = (0..10_000_u32)
            .find_map(|round| one.put(&tree, &(round % 10).to_be_bytes(), &value(round)).err());
        assert!(matches!(refused, Some(TransactionError::TooLarge)), "{refused:?}");
        if commits { one.commit(Memory).map(drop).expect("a log") } else { drop(one) }
    };
    fill(false);
    assert_eq!(store.begin().get(&tree, &1_u32.to_be_bytes()).expect("pages"), None);
    fill(true);
    assert!(store.begin().get(&tree, &1_u32.to_be_bytes()).expect("pages").is_some());
}

#[test]
fn a_log_whose_device_failed_is_told_until_the_store_is_opened_anew() {
    for effect in [Effect::Errno(EIO), Effect::DropsDirty] {
        let files = machine(1);
        let (store, _) = open(&files);
        fill(&store, 1);
        let tree = store.tree("keys").expect("a tree");
        files.fail(Fault { operation: Operation::SyncData, skip: 0, effect });
        let refused = put(&store, &tree, 1_000, 2);
        assert!(matches!(refused, Err(CommitError::Poisoned(_))), "{refused:?}");
        let mut after = store.begin();
        assert!(after.get(&tree, &3_u32.to_be_bytes()).is_ok(), "what is in memory can be read");
        let put = after.put(&tree, &3_u32.to_be_bytes(), b"never");
        assert!(matches!(put, Err(TransactionError::Poisoned(_))), "{put:?}");
        drop(after);
        assert!(matches!(store.begin().commit(Disk), Ok(_) | Err(CommitError::Poisoned(_))));
        drop(store);
        assert!(has_all(&open(&cut(&files)).0, 1));
        assert!(has_all(&open(&files).0, 1));
    }
}

#[test]
fn a_moment_outside_of_the_archive_is_told_with_what_there_is() {
    let files = machine(1);
    let (store, _) = open(&files);
    fill(&store, 1);
    let end = store.stat().stable;
    store.close().expect("a device");
    let to = machine(2);
    for at in [At::Rsn(Rsn(1)), At::Rsn(Rsn(u64::MAX)), At::Time(i64::MAX)] {
        let made = restore_at(&place(&files), at, &place(&to), &config(), &mut |_| ());
        let Err(RestoreError::Pages(MomentError::Outside { oldest, newest })) = made else {
            panic!("{at:?}: {made:?}");
        };
        assert!(oldest.rsn < newest.rsn && newest.rsn >= end, "{oldest:?} {newest:?}");
    }
    restore_at(&place(&files), At::Rsn(end), &place(&to), &config(), &mut |_| ())
        .expect("nothing stands there yet");
    assert!(has_all(&open(&to).0, 1));
}

#[test]
fn a_store_that_was_not_closed_is_not_taken_for_all_that_there_was() {
    let files = after_cut();
    let to = machine(2);
    let restore = |at| restore_at(&place(&files), at, &place(&to), &config(), &mut |_| ());
    let made = restore(At::End);
    assert!(matches!(made, Err(RestoreError::NotClosed)), "{made:?}");
    open(&files).0.close().expect("a device");
    drop(open(&files));
    let made = restore(At::End);
    assert!(matches!(made, Err(RestoreError::NotClosed)), "{made:?}");
    open(&files).0.close().expect("a device");
    restore(At::End).expect("it is closed");
    assert!(has_all(&open(&to).0, 1));
}

#[test]
fn a_backup_of_what_a_store_was_made_from_is_not_brought_forward() {
    let (files, backup, other) = (machine(1), machine(2), machine(3));
    let (store, _) = open(&files);
    fill(&store, 1);
    store.back_up_at(&place(&backup), &mut |_| ()).expect("a device");
    restore_at(&place(&backup), At::End, &place(&other), &config(), &mut |_| ()).expect("a device");
    let (restored, _) = open(&other);
    fill(&restored, 2);
    let forward = restored.forward_at(&place(&backup), &mut |_| ());
    assert!(matches!(forward, Err(BackUpError::OtherHistory)), "{forward:?}");
    store.forward_at(&place(&backup), &mut |_| ()).expect("it is this one's");
    let (backup, again) = (machine(4), machine(5));
    restored.back_up_at(&place(&backup), &mut |_| ()).expect("a device");
    restored.forward_at(&place(&backup), &mut |_| ()).expect("it is this one's");
    restore_at(&place(&backup), At::End, &place(&again), &config(), &mut |_| ()).expect("a device");
    assert!(has_all(&open(&again).0, 2));
}

/// What a file has; none if it is not there.
fn bytes_of(files: &FakeFiles, name: &str) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let file = files.open(Path::new(name), OpenHow::default()).expect("the file is there");
    let length = file.read_full_at(&mut bytes, 0).expect("a device");
    bytes.truncate(length);
    bytes
}

/// Puts a file in the place of another one, if there is one.
fn put_file(files: &FakeFiles, name: &str, bytes: &[u8]) {
    let _may_be_none = files.remove_file(Path::new(name));
    let how = OpenHow { write: true, create_mode: Some(0o644), ..OpenHow::default() };
    files.open(Path::new(name), how).expect("a device");
    overwrite(files, name, bytes);
}

/// A store that was closed, and what it and another one say of that.
struct Notes {
    closed: Vec<u8>,
    opened: Vec<u8>,
    foreign: Vec<u8>,
}

impl Notes {
    fn of(files: &FakeFiles) -> Notes {
        let [closed, opened] = ["closed", "opened"].map(|name| bytes_of(files, name));
        let other = machine(3);
        open(&other).0.close().expect("a device");
        Notes { closed, opened, foreign: bytes_of(&other, "closed") }
    }

    /// What may lie there as `closed`, and is none of the store that was used since.
    fn wrong(&self) -> Vec<(String, Vec<u8>)> {
        let mut wrong = vec![
            ("an empty one".to_owned(), Vec::new()),
            ("that of another store".to_owned(), self.foreign.clone()),
            ("an old one".to_owned(), self.closed.clone()),
            ("that of its opening".to_owned(), self.opened.clone()),
        ];
        wrong.extend(
            (0..self.closed.len()).map(|length| {
                (format!("the first {length} bytes"), self.closed[..length].to_vec())
            }),
        );
        wrong
    }
}

#[test]
fn a_store_is_closed_by_its_own_last_close_and_by_no_file_from_elsewhere() {
    let files = machine(1);
    let (store, _) = open(&files);
    fill(&store, 1);
    store.close().expect("a device");
    let notes = Notes::of(&files);
    let (store, _) = open(&files);
    put(&store, &store.tree("keys").expect("a tree"), 0, 2).expect("a device");
    drop(store);
    let files = cut(&files);
    for (what, bytes) in notes.wrong() {
        put_file(&files, "closed", &bytes);
        let made = restore_at(&place(&files), At::End, &place(&machine(2)), &config(), &mut |_| ());
        assert!(matches!(made, Err(RestoreError::NotClosed)), "{what}: {made:?}");
    }
}

#[test]
fn every_bit_counts_of_what_says_that_a_store_is_closed() {
    let files = machine(1);
    let (store, _) = open(&files);
    fill(&store, 1);
    store.close().expect("a device");
    for name in ["closed", "opened"] {
        let sound = bytes_of(&files, name);
        for bit in 0..sound.len() * 8 {
            let mut flipped = sound.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            put_file(&files, name, &flipped);
            let made =
                restore_at(&place(&files), At::End, &place(&machine(2)), &config(), &mut |_| ());
            assert!(matches!(made, Err(RestoreError::NotClosed)), "{name} {bit}: {made:?}");
        }
        put_file(&files, name, &sound);
    }
    restore_at(&place(&files), At::End, &place(&machine(2)), &config(), &mut |_| ())
        .expect("it is closed");
}

#[test]
fn an_archive_that_does_not_end_where_it_was_closed_is_not_all_that_there_was() {
    let files = machine(1);
    let (store, _) = open(&files);
    fill(&store, 1);
    store.close().expect("a device");
    let notes = Notes::of(&files);
    let (store, _) = open(&files);
    fill(&store, 2);
    drop(store);
    let files = cut(&files);
    put_file(&files, "opened", &notes.opened);
    put_file(&files, "closed", &notes.closed);
    let made = restore_at(&place(&files), At::End, &place(&machine(2)), &config(), &mut |_| ());
    assert!(matches!(made, Err(RestoreError::NotClosed)), "{made:?}");
}

/// Puts an older log in the place of a store's.
fn put_log(files: &FakeFiles, log: &[(PathBuf, Vec<u8>)]) {
    log.iter().for_each(|(path, bytes)| write(files, path, bytes));
}

/// All that there is in the store's directory of its log.
fn log_of(files: &FakeFiles) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = files.read_dir(Path::new("log")).expect("a directory");
    let paths = entries.iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned());
    let paths = paths.map(|name| Path::new("log").join(name));
    let mut all: Vec<_> = paths.map(|path| (path.clone(), read(files, &path))).collect();
    all.sort();
    all
}

#[test]
fn memory_that_is_refused_is_left_as_it_was_with_the_log_and_none_is_made_for_a_damaged_one() {
    let (files, folder) = (machine(1), tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("region");
    let (memory, (ring_bytes, segment_bytes)) =
        (Medium::File { path: path.clone() }, (256 << 10, 64 << 10));
    let log = LogPlace::Embedded { memory, ring_bytes, segment_bytes };
    let config = Config { log, ..config() };
    let open = || Store::open_at(place(&files), &config);
    let region = || fs::read(&path).ok();
    let (store, _) = open().expect("a new store");
    fill(&store, 1);
    drop(store);
    let older = region().expect("memory outlives a store that is not closed");
    let (store, _) = open().expect("it goes on from memory");
    fill(&store, 2);
    store.close().expect("a device");
    let (newer, before) = (region(), log_of(&files));
    let segment = |segment: &(PathBuf, Vec<u8>)| {
        let name = segment.0.to_string_lossy().into_owned();
        name.contains("segment-") && segment.1.iter().any(|byte| *byte != 0)
    };
    for round in 0..2 {
        match round {
            0 => fs::write(&path, &older).expect("room"),
            _ => {
                let _there_may_be_none = fs::remove_file(&path);
                let damaged = before.iter().filter(|file| segment(file));
                damaged.for_each(|(name, bytes)| write(&files, name, &vec![0; bytes.len()]));
            }
        }
        let (memory, log) = (region(), log_of(&files));
        open().map(drop).expect_err("it is refused");
        assert!(region() == memory, "memory was changed, round {round}");
        let changed = log_of(&files).into_iter().zip(log).filter(|(is, was)| is != was);
        let changed: Vec<PathBuf> = changed.map(|(is, _)| is.0).collect();
        assert_eq!(changed, Vec::<PathBuf>::new(), "the log was changed, round {round}");
        put_log(&files, &before);
    }
    newer.iter().for_each(|newer| fs::write(&path, newer).expect("room"));
    assert!(has_all(&open().expect("it is as it was").0, 2));
}

#[test]
fn an_older_log_under_a_newer_store_is_told_and_with_the_newer_one_it_is_as_it_was() {
    let files = machine(1);
    let (store, _) = open(&files);
    fill(&store, 1);
    store.close().expect("a device");
    let older = log_of(&files);
    let (store, _) = open(&files);
    fill(&store, 2);
    store.close().expect("a device");
    let newer = log_of(&files);
    put_log(&files, &older);
    let error = refused(&files);
    assert!(matches!(error, OpenError::OlderLog { end, least } if end < least), "{error:?}");
    // A store of a version that did not write down how far its log was.
    let opened = read(&files, Path::new("opened"));
    files.remove_file(Path::new("opened")).expect("a device");
    let error = refused(&files);
    let OpenError::Pages(PagesError::Log(AnalysisError::Older { end, need })) = error else {
        panic!("{error:?}");
    };
    assert!(end < need);
    put_log(&files, &newer);
    write(&files, Path::new("opened"), &opened);
    assert!(has_all(&open(&files).0, 2));
}

#[test]
fn a_change_that_panics_changes_nothing_and_hinders_nobody() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("keys").expect("a tree");
    put(&store, &tree, 1, 1).expect("a device");
    let key = 1_u32.to_be_bytes();
    for begin in [Store::begin, Store::begin_redo_only] {
        let mut one = begin(&store);
        let changed = catch_unwind(AssertUnwindSafe(|| {
            one.update(&tree, &key, |value| {
                value.clear();
                panic!("the caller's own mistake");
            })
        }));
        assert!(changed.is_err());
        assert_eq!(one.get(&tree, &key).expect("pages"), Some(vec![1; 700]));
        one.put(&tree, &2_u32.to_be_bytes(), b"it goes on").expect("room");
        one.commit(Disk).expect("a device");
        put(&store, &tree, 1, 1).expect("so does everybody else");
    }
    settle(&store);
    let mut reading = store.begin();
    assert_eq!(reading.get(&tree, &key).expect("pages"), Some(vec![1; 700]));
}

#[test]
fn a_tree_of_another_store_is_refused_and_one_of_this_store_is_good_for_ever() {
    let (files, elsewhere) = (machine(1), machine(2));
    let (store, _) = open(&files);
    let entropy = Arc::new(FakeEntropy::new(8));
    let (other, _) = Store::open_at(place_with(&elsewhere, entropy), &config()).expect("a store");
    let (tree, foreign) = (store.tree("keys").expect("a tree"), other.tree("keys").expect("one"));
    put(&store, &tree, 1, 1).expect("a device");
    let mut one = store.begin();
    let key = 1_u32.to_be_bytes();
    let refusals = [
        one.get(&foreign, &key).map(drop),
        one.get_for_update(&foreign, &key).map(drop),
        one.put(&foreign, &key, b""),
        one.insert(&foreign, &key, b"").map(drop),
        one.delete(&foreign, &key).map(drop),
        one.update(&foreign, &key, |_| ()).map(drop),
        one.scan::<&[u8]>(&foreign, .., Direction::Up).try_for_each(|found| found.map(drop)),
    ];
    for refused in refusals {
        assert!(matches!(refused, Err(TransactionError::OtherStore)), "{refused:?}");
    }
    drop(one);
    drop(store);
    let (store, _) = open(&files);
    assert!(store.begin().get(&tree, &key).expect("pages").is_some());
}

#[test]
fn a_savepoint_of_another_transaction_is_refused() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("keys").expect("a tree");
    for begin in [Store::begin, Store::begin_redo_only] {
        let (mut one, mut other) = (begin(&store), begin(&store));
        let (before, foreign) = (one.savepoint(), other.savepoint());
        one.put(&tree, b"one", b"").expect("room");
        other.put(&tree, b"other", b"").expect("room");
        let behind = other.savepoint();
        for foreign in [foreign, behind] {
            let refused = one.roll_back_to(foreign);
            assert!(matches!(refused, Err(TransactionError::SavepointGone)), "{refused:?}");
        }
        assert!(one.get(&tree, b"one").expect("pages").is_some());
        one.roll_back_to(before).expect("it is its own");
        assert!(one.get(&tree, b"one").expect("pages").is_none());
    }
}

#[test]
fn a_pool_of_any_size_serves() {
    for pool_bytes in [0, 1, 16 * 8192, 1 << 44, u64::MAX - 8191, u64::MAX] {
        let (files, config) = (machine(1), Config { pool_bytes, ..config() });
        let (store, _) = Store::open_at(place(&files), &config).expect("a store");
        fill(&store, 1);
        assert!(has_all(&store, 1), "{pool_bytes}");
        store.close().expect("a device");
    }
}

#[test]
fn a_ring_that_no_log_has_is_refused_before_anything_is_made_and_a_right_one_serves_then() {
    let directory = tempfile::tempdir().expect("a directory");
    let sized = |ring_bytes| {
        let (memory, segment_bytes) = (Medium::Private, 64 << 10);
        Config { log: LogPlace::Embedded { memory, ring_bytes, segment_bytes }, ..config() }
    };
    for path in [directory.path().join("new"), directory.path().to_owned()] {
        for found in [0, 1, 64 << 10, 1_000_000, 256 << 20, 1 << 63, u64::MAX] {
            let refused = Store::open(&path, &sized(found)).map(drop);
            let Err(OpenError::CreateLog(LogCreateError::Config(fault))) = refused else {
                panic!("{found}: {refused:?}")
            };
            assert_eq!(fault, ConfigFault::RingBytes { found });
            let is_empty =
                |path| fs::read_dir(path).map_or(true, |mut names| names.next().is_none());
            assert!(is_empty(&path), "{found}");
        }
        let (store, recovery) = Store::open(&path, &sized(1 << 20)).expect("it is made");
        assert!(recovery.is_new);
        store.close().expect("a disk");
        fs::remove_dir_all(&path).expect("it is there");
    }
}
