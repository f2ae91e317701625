//! What is found on the fake disk after the power was cut.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use holdfast_io::fake::{FakeFiles, Mood, Random, Sectors, is_power_cut};
use holdfast_io::{Change, DirEntry, Files, Kind, OpenHow};

use super::{CREATE, contents, create, for_seeds};

const SECTOR: usize = 512;
const ROOT: &str = "";

/// A file of `sectors` sectors full of `byte`, with name and contents synced.
fn synced(files: &FakeFiles, path: &str, byte: u8, sectors: usize) {
    let file = create(files, path);
    file.write_all_at(&vec![byte; sectors * SECTOR], 0).unwrap();
    file.sync_data().unwrap();
    files.sync_dir(Path::new(path).parent().unwrap()).unwrap();
}

/// What `path` holds in each of `count` images of this moment.
fn images(files: &FakeFiles, path: &str, count: u64) -> BTreeSet<Option<Vec<u8>>> {
    (0..count).map(|seed| contents(&files.after_power_cut(seed), path)).collect()
}

#[test]
fn what_was_synced_is_always_there() {
    let files = FakeFiles::new(1);
    synced(&files, "f", 7, 9);
    assert_eq!(images(&files, "f", 300), BTreeSet::from([Some(vec![7; 9 * SECTOR])]));
}

#[test]
fn what_was_not_synced_is_lost_or_kept_or_torn_at_a_sector() {
    let files = FakeFiles::new(1);
    synced(&files, "f", 0, 8);
    create(&files, "f").write_all_at(&[1; 8 * SECTOR], 0).unwrap();
    let found = images(&files, "f", 300);
    assert!(found.contains(&Some(vec![0; 8 * SECTOR])), "the canary: unsynced data must get lost");
    assert!(found.contains(&Some(vec![1; 8 * SECTOR])));
    assert!(found.len() > 20, "torn in only {} ways", found.len());
    for image in found {
        for sector in image.expect("its name was synced").chunks(SECTOR) {
            assert!(sector.iter().all(|byte| byte == &sector[0]), "two versions in one sector");
        }
    }
}

#[test]
fn a_sector_written_twice_is_found_in_any_of_its_three_versions() {
    let files = FakeFiles::new(1);
    synced(&files, "f", 0, 1);
    create(&files, "f").write_all_at(&[1; SECTOR], 0).unwrap();
    create(&files, "f").write_all_at(&[2; SECTOR], 0).unwrap();
    let expected = [0, 1, 2].map(|byte| Some(vec![byte; SECTOR]));
    assert_eq!(images(&files, "f", 300), BTreeSet::from(expected));
}

#[test]
fn a_longer_file_is_found_with_a_size_on_the_way_and_holes_read_as_zeros() {
    let files = FakeFiles::new(1);
    synced(&files, "f", 9, 1);
    create(&files, "f").write_all_at(&[1; 3 * SECTOR], SECTOR as u64).unwrap();
    let found = images(&files, "f", 400);
    let sizes: BTreeSet<usize> = found.iter().map(|image| image.as_ref().unwrap().len()).collect();
    assert_eq!(sizes, (1..=4).map(|sectors| sectors * SECTOR).collect());
    for image in found.into_iter().flatten() {
        assert_eq!(image[..SECTOR], [9; SECTOR]);
        assert!(image[SECTOR..].iter().all(|byte| matches!(byte, 0 | 1)));
    }
}

#[test]
fn bytes_cut_off_and_written_anew_never_meet_the_old_ones() {
    let files = FakeFiles::new(1);
    synced(&files, "f", 9, 4);
    let file = create(&files, "f");
    file.set_len(0).unwrap();
    file.write_all_at(&[1; 4 * SECTOR], 0).unwrap();
    for image in images(&files, "f", 300).into_iter().flatten() {
        let old = image.iter().filter(|&&byte| byte == 9).count();
        assert!(old == 0 || old == 4 * SECTOR, "{old} bytes of before the cut");
    }
}

#[test]
fn syncing_a_new_file_does_not_keep_its_name() {
    let files = FakeFiles::new(1);
    let file = create(&files, "f");
    file.write_all_at(b"all of it", 0).unwrap();
    file.sync_data().unwrap();
    let expected = [None, Some(b"all of it".to_vec())];
    assert_eq!(images(&files, "f", 100), BTreeSet::from(expected));
}

#[test]
fn syncing_a_directory_does_not_keep_the_contents_of_its_files() {
    let files = FakeFiles::new(1);
    create(&files, "f").write_all_at(b"all of it", 0).unwrap();
    files.sync_dir(Path::new(ROOT)).unwrap();
    let found = images(&files, "f", 100);
    assert!(found.contains(&Some(Vec::new())), "an empty file must be possible");
    assert!(!found.contains(&None));
}

#[test]
fn syncing_a_new_directory_does_not_keep_its_own_name() {
    let files = FakeFiles::new(1);
    files.make_dir(Path::new("d"), 0o700).unwrap();
    create(&files, "d/f");
    files.sync_dir(Path::new("d")).unwrap();
    let found: BTreeSet<_> = (0..100)
        .map(|seed| {
            let image = files.after_power_cut(seed);
            (image.metadata(Path::new("d")).is_ok(), image.metadata(Path::new("d/f")).is_ok())
        })
        .collect();
    assert_eq!(found, BTreeSet::from([(false, false), (true, true)]));
}

#[test]
fn a_synced_name_brings_along_the_move_that_made_room_for_it() {
    let files = FakeFiles::new(1);
    synced(&files, "f", 1, 1);
    files.make_dir(Path::new("d"), 0o700).unwrap();
    files.make_dir(Path::new("d/e"), 0o700).unwrap();
    files.rename(Path::new("f"), Path::new("d/e/f")).unwrap();
    let second = create(&files, "f");
    second.write_all_at(&[2; SECTOR], 0).unwrap();
    second.sync_data().unwrap();
    // Neither `d` nor `d/e` is ever synced.
    files.sync_dir(Path::new(ROOT)).unwrap();
    let image = files.after_power_cut_in(Mood::LoseAll, 0);
    assert_eq!(contents(&image, "f"), Some(vec![2; SECTOR]));
    assert_eq!(contents(&image, "d/e/f"), Some(vec![1; SECTOR]), "and the first is not lost");
}

/// Replaces the contents of `f` by way of `t`, as everybody does.
fn replace(files: &FakeFiles, sync: bool) -> io::Result<()> {
    let file = files.open(Path::new("t"), CREATE)?;
    file.write_all_at(&[2; 4 * SECTOR], 0)?;
    if sync {
        file.sync_data()?;
    }
    files.rename(Path::new("t"), Path::new("f"))?;
    files.sync_dir(Path::new(ROOT))
}

#[test]
fn a_file_replaced_by_sync_and_rename_is_old_or_new_at_every_moment() {
    let (old, new) = (Some(vec![1; 4 * SECTOR]), Some(vec![2; 4 * SECTOR]));
    let mut found = BTreeSet::new();
    let start = FakeFiles::new(1);
    synced(&start, "f", 1, 4);
    let start = start.after_power_cut_in(Mood::LoseAll, 0);
    for operation in 1.. {
        let files = start.after_power_cut_in(Mood::LoseAll, 0);
        files.cut_power_at(operation);
        match replace(&files, true) {
            Ok(()) => break,
            Err(error) => assert!(is_power_cut(&error)),
        }
        found.append(&mut images(&files, "f", 100));
    }
    assert_eq!(found, BTreeSet::from([old, new]));
}

#[test]
fn a_file_replaced_without_the_sync_is_found_damaged() {
    let files = FakeFiles::new(1);
    synced(&files, "f", 1, 4);
    replace(&files, false).unwrap();
    let found = images(&files, "f", 100);
    assert!(found.len() > 3, "the canary: a missing sync must be seen, found {}", found.len());
}

#[test]
fn a_mode_is_kept_by_a_sync_of_the_file_or_of_its_directory() {
    let path = Path::new("f");
    let mode_in = |image: &FakeFiles| image.metadata(path).unwrap().mode;
    for sync_the_file in [true, false] {
        let files = FakeFiles::new(1);
        synced(&files, "f", 1, 1);
        files.change(path, &Change { mode: Some(0o400), ..Change::default() }).unwrap();
        assert_eq!(mode_in(&files.after_power_cut_in(Mood::LoseAll, 0)), 0o644);
        assert_eq!(mode_in(&files.after_power_cut_in(Mood::KeepAll, 0)), 0o400);
        match sync_the_file {
            true => create(&files, "f").sync_data().unwrap(),
            false => files.sync_dir(Path::new(ROOT)).unwrap(),
        }
        assert_eq!(mode_in(&files.after_power_cut_in(Mood::LoseAll, 0)), 0o400);
    }
}

#[test]
fn the_file_of_the_interrupted_operation_is_torn_and_nothing_works_any_more() {
    let files = FakeFiles::new(1);
    synced(&files, "f", 0, 8);
    let file = create(&files, "f");
    files.cut_power_at(files.operations() + 1);
    let error = file.write_at(&[1; 8 * SECTOR], 0).unwrap_err();
    assert!(is_power_cut(&error), "{error}");
    assert!(is_power_cut(&file.read_at(&mut [0], 0).unwrap_err()));
    assert!(is_power_cut(&files.metadata(Path::new("f")).unwrap_err()));
    assert!(images(&files, "f", 300).len() > 20);
}

#[test]
fn an_interrupted_sync_promises_nothing() {
    let files = FakeFiles::new(1);
    synced(&files, "f", 0, 2);
    let file = create(&files, "f");
    file.write_all_at(&[1; 2 * SECTOR], 0).unwrap();
    files.cut_power_at(files.operations() + 1);
    assert!(file.sync_data().is_err());
    assert_eq!(images(&files, "f", 200).len(), 4);
}

#[test]
fn noise_is_found_in_torn_sectors_only_if_asked_for() {
    let strange = |files: &FakeFiles| {
        let found = images(files, "f", 200);
        found.iter().flatten().flatten().any(|byte| !matches!(byte, 0 | 1))
    };
    let files = FakeFiles::new(1);
    synced(&files, "f", 0, 8);
    create(&files, "f").write_all_at(&[1; 4 * SECTOR], 0).unwrap();
    assert!(!strange(&files));
    files.set_sectors(Sectors::Garbage);
    assert!(strange(&files));
    for image in images(&files, "f", 200).into_iter().flatten() {
        assert!(image[4 * SECTOR..].iter().all(|&byte| byte == 0), "noise in a sector at rest");
    }
}

#[test]
fn the_same_seed_finds_the_same_disk() {
    let files = FakeFiles::new(1);
    create(&files, "f").write_all_at(&[1; 64 * SECTOR], 0).unwrap();
    for seed in 0..50 {
        let [one, other] = [0, 1].map(|_| contents(&files.after_power_cut(seed), "f"));
        assert_eq!(one, other);
    }
}

#[test]
fn a_killed_process_loses_nothing() {
    let files = FakeFiles::new(1);
    {
        let of_the_process = files.clone();
        create(&of_the_process, "f").write_all_at(b"unsynced", 0).unwrap();
    }
    assert_eq!(contents(&files, "f").unwrap(), b"unsynced");
}

#[test]
fn one_power_cut_strikes_all_directories_of_a_machine() {
    let machine = FakeFiles::new(1);
    for dir in ["home", "log"] {
        machine.make_dir(Path::new(dir), 0o700).unwrap();
    }
    machine.sync_dir(Path::new(ROOT)).unwrap();
    let [home, log] = ["home", "log"].map(|dir| machine.below(Path::new(dir)).unwrap());
    synced(&home, "f", 1, 1);
    assert!(log.metadata(Path::new("f")).is_err());
    assert!(log.metadata(Path::new("../home/f")).is_err(), "no way out");
    log.cut_power_at(log.operations() + 1);
    assert!(is_power_cut(&home.remove_file(Path::new("f")).unwrap_err()));
    assert!(is_power_cut(&log.metadata(Path::new(ROOT)).unwrap_err()));
    let image = machine.after_power_cut_in(Mood::LoseAll, 0).below(Path::new("home")).unwrap();
    assert_eq!(contents(&image, "f"), Some(vec![1; SECTOR]));
    assert_eq!(contents(&home.after_power_cut_in(Mood::KeepAll, 0), "f"), None);
}

#[test]
fn a_root_that_was_lost_with_the_power_is_reported() {
    let machine = FakeFiles::new(1);
    machine.make_dir(Path::new("home"), 0o700).unwrap();
    let home = machine.below(Path::new("home")).unwrap();
    let image = home.after_power_cut_in(Mood::LoseAll, 0);
    assert!(image.metadata(Path::new(ROOT)).is_err());
    assert!(image.open(Path::new("f"), CREATE).is_err());
}

#[test]
fn a_prefix_holds_all_operations_up_to_its_end_and_no_later_one() {
    let files = FakeFiles::new(1);
    for number in 0..6 {
        create(&files, &format!("f{number}")).write_all_at(&[1; SECTOR], 0).unwrap();
    }
    // Operations 5 and 6 make and fill the third file.
    let image = files.after_power_cut_in(Mood::Prefix(6), 3);
    for number in 0..6 {
        let found = contents(&image, &format!("f{number}")).map(|bytes| bytes.len());
        let expected = (number < 3).then_some(SECTOR);
        assert_eq!(found, expected, "f{number}");
    }
}

/// Everything below a directory: path to inode.
fn walk(files: &dyn Files, dir: &Path, found: &mut BTreeMap<PathBuf, DirEntry>) {
    use std::os::unix::ffi::OsStrExt;
    for entry in files.read_dir(dir).expect("a directory") {
        let path = dir.join(std::ffi::OsStr::from_bytes(&entry.name));
        if entry.kind == Kind::Directory {
            walk(files, &path, found);
        }
        found.insert(path, entry);
    }
}

fn paths(files: &dyn Files) -> BTreeMap<PathBuf, DirEntry> {
    let mut found = BTreeMap::new();
    walk(files, Path::new(ROOT), &mut found);
    found
}

fn any_path(random: &mut Random) -> PathBuf {
    let names = 1 + random.below(3);
    (0..names).map(|_| ["a", "b", "c"][random.below(3) as usize]).collect()
}

/// Moves names about without ever removing the last one of a file, syncing now and then.
fn shuffle_names(files: &FakeFiles, random: &mut Random) {
    let (from, to) = (any_path(random), any_path(random));
    let target = files.metadata(&to);
    // Most calls fail on such paths, as they should.
    let _ = match random.below(12) {
        0 | 1 => files.make_dir(&from, 0o700),
        2 => files.link(&from, &to),
        3..6 if target.is_err() => files.rename(&from, &to),
        6 | 7 => files.exchange(&from, &to),
        8 if target.is_ok_and(|target| target.links > 1) => files.remove_file(&to),
        9 => files.sync_dir(&from),
        10 => files.sync_dir(Path::new(ROOT)),
        11 => files.remove_dir(&from),
        _ => Ok(()),
    };
}

#[test]
fn moving_a_file_about_never_loses_it() {
    for_seeds(300, "moving_a_file", |seed| {
        let files = FakeFiles::new(seed);
        let mut random = Random::new(seed);
        for path in ["a", "b", "c"] {
            files.make_dir(Path::new(path), 0o700).unwrap();
        }
        files.sync_dir(Path::new(ROOT)).unwrap();
        for path in ["a/a", "b/b", "c/c"] {
            synced(&files, path, path.as_bytes()[0], 1);
        }
        let kept: BTreeSet<u64> = files_in(&files);
        assert_eq!(kept.len(), 3);
        for step in 0..60 {
            shuffle_names(&files, &mut random);
            assert_eq!(files_in(&files), kept, "the workload itself lost a file");
            let image = files.after_power_cut(random.any());
            assert_eq!(files_in(&image), kept, "seed {seed}, step {step}");
        }
    });
}

/// The inodes of all ordinary files, each of which must be whole.
fn files_in(files: &FakeFiles) -> BTreeSet<u64> {
    let found = paths(files);
    for (path, entry) in &found {
        let links = found.values().filter(|other| other.inode == entry.inode).count();
        if entry.kind == Kind::File {
            let path = path.to_str().expect("our names are ASCII");
            assert_eq!(contents(files, path).expect("a file").len(), SECTOR);
            assert_eq!(files.metadata(Path::new(path)).unwrap().links as usize, links);
        } else {
            assert_eq!(links, 1, "{path:?}: a directory has one name");
        }
    }
    let files = found.values().filter(|entry| entry.kind == Kind::File);
    files.map(|entry| entry.inode).collect()
}

#[test]
fn a_file_that_was_lost_would_be_missed() {
    let files = FakeFiles::new(1);
    synced(&files, "f", 1, 1);
    let kept = files_in(&files);
    files.remove_file(Path::new("f")).unwrap();
    assert!((0..50).any(|seed| files_in(&files.after_power_cut(seed)) != kept));
}

#[test]
fn the_names_of_a_directory_synced_last_are_found_as_they_were() {
    for_seeds(300, "the_names_of_a_directory", |seed| {
        let files = FakeFiles::new(seed);
        let mut random = Random::new(seed);
        for _ in 0..40 {
            let path = any_path(&mut random);
            let other = any_path(&mut random);
            let _ = match random.below(6) {
                0 | 1 => files.make_dir(&path, 0o700),
                2 => files.make_node(&path, Kind::File, 0o600, 0),
                3 => files.rename(&path, &other),
                4 => files.remove_file(&path),
                _ => files.remove_dir(&path),
            };
        }
        // Bottom up or top down, all directories at last.
        let all = paths(&files);
        for (path, _) in all.iter().filter(|(_, entry)| entry.kind == Kind::Directory) {
            files.sync_dir(path).unwrap();
        }
        files.sync_dir(Path::new(ROOT)).unwrap();
        assert_eq!(paths(&files.after_power_cut(random.any())), all, "seed {seed}");
        let image = files.after_power_cut_in(Mood::LoseAll, 0);
        assert_eq!(paths(&image), all, "seed {seed}");
    });
}

/// One file as a program knows it.
struct Known {
    /// Its contents when last synced, and after each change since.
    versions: Vec<Vec<u8>>,
}

impl Known {
    fn check(&self, found: &[u8]) {
        let sizes: Vec<usize> = self.versions.iter().map(Vec::len).collect();
        let least = *sizes.iter().min().expect("there is a synced version");
        let most = *sizes.iter().max().expect("there is a synced version");
        assert!((least..=most).contains(&found.len()), "{} is not in {sizes:?}", found.len());
        for (index, sector) in found.chunks(SECTOR).enumerate() {
            let at = index * SECTOR;
            let matches = |version: &Vec<u8>| {
                // A version that is shorter here reads as zeros in a longer file.
                let byte = |offset: usize| version.get(at + offset).copied().unwrap_or(0);
                sector.iter().enumerate().all(|(offset, &found)| found == byte(offset))
            };
            assert!(self.versions.iter().any(matches), "sector {index} is of no version");
        }
    }
}

/// Random writes, truncations and syncs of one file; after each, an image is checked.
fn write_and_check(seed: u64, sync_works: bool) {
    let files = FakeFiles::new(seed);
    let mut random = Random::new(seed);
    synced(&files, "f", 0xee, 4);
    let file = files.open(Path::new("f"), OpenHow { write: true, ..OpenHow::default() }).unwrap();
    let mut known = Known { versions: vec![vec![0xee; 4 * SECTOR]] };
    for step in 0..40 {
        let mut now = known.versions.last().expect("there is a synced version").clone();
        let (offset, bytes) = (random.below(5000) as usize, 1 + random.below(3000) as usize);
        match random.below(6) {
            0 => {
                file.set_len(offset as u64).unwrap();
                now.resize(offset, 0);
                known.versions.push(now);
            }
            1 => {
                if sync_works {
                    file.sync_data().unwrap();
                }
                known.versions = vec![now];
            }
            _ => {
                file.write_all_at(&vec![step; bytes], offset as u64).unwrap();
                now.resize(now.len().max(offset + bytes), 0);
                now[offset..offset + bytes].fill(step);
                known.versions.push(now);
            }
        }
        known.check(&contents(&files.after_power_cut(random.any()), "f").expect("a synced name"));
    }
}

#[test]
fn every_sector_found_is_the_synced_one_or_a_later_one() {
    for_seeds(300, "every_sector_found", |seed| write_and_check(seed, true));
}

#[test]
fn a_sync_that_does_nothing_would_be_noticed() {
    let noticed =
        (0..20).filter(|&seed| std::panic::catch_unwind(|| write_and_check(seed, false)).is_err());
    assert!(noticed.count() > 10, "the canary sings: the check above notices nothing");
}

/// Each rename builds on the one before in two ways, so a search of all paths through them would
/// double with every one.
#[test]
fn a_sync_behind_a_thousand_unsynced_renames_ends() {
    let files = FakeFiles::new(1);
    for directory in ["p", "q"] {
        files.make_dir(Path::new(directory), 0o755).unwrap();
    }
    files.sync_dir(Path::new("")).unwrap();
    synced(&files, "f", 1, 1);
    let (mut from, mut to) = (Path::new("f"), Path::new("p/f"));
    for step in 0..1000 {
        files.rename(from, to).unwrap();
        from = to;
        to = Path::new(if step % 2 == 0 { "q/f" } else { "p/f" });
    }
    files.sync_dir(Path::new("p")).unwrap();
    files.sync_dir(Path::new("q")).unwrap();
    files.sync_dir(Path::new("")).unwrap();
    assert!(contents(&files.after_power_cut(3), from.to_str().unwrap()).is_some());
}
