//! Which path lies inside which, asked of random trees and answered by looking.

use super::*;

use rustix::mount::{UnmountFlags, mount_bind, unmount};
use std::fs;
use std::os::unix::fs::symlink;

/// A tree of folders, links and mounts of its own parts, from one seed. Its mounts go with it.
struct Tree {
    _root: tempfile::TempDir,
    folders: Vec<PathBuf>,
    paths: Vec<PathBuf>,
    mounts: Vec<PathBuf>,
}

impl Drop for Tree {
    fn drop(&mut self) {
        for point in self.mounts.iter().rev() {
            unmount(point, UnmountFlags::DETACH).unwrap();
        }
    }
}

fn grow(seed: u64) -> Tree {
    let mut state = seed;
    // Knuth's generator (MMIX), whose high bits are the good ones.
    let mut draw = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let root = tempfile::tempdir().unwrap();
    let start = root.path().canonicalize().unwrap();
    let folders = vec![start];
    let mut tree = Tree { _root: root, folders, paths: Vec::new(), mounts: Vec::new() };
    for number in 0..9 {
        let path = tree.folders[draw(tree.folders.len())].join(format!("n{number}"));
        let target = tree.folders[draw(tree.folders.len())].clone();
        match draw(4) {
            0 => symlink(&target, &path).unwrap(),
            1 if target != tree.folders[0] && !path.starts_with(&target) => {
                fs::create_dir(&path).unwrap();
                mount_bind(&target, &path).unwrap();
                tree.mounts.push(path.clone());
            }
            _ => {
                fs::create_dir(&path).unwrap();
                tree.folders.push(path.clone());
            }
        }
        tree.paths.push(path.clone());
        tree.paths.push(path.join("..").join(target.file_name().unwrap()));
    }
    tree.paths.retain(|path| path.is_dir());
    tree
}

/// Whether a file that is made in `path` can be seen below `folder`.
fn is_seen(path: &Path, folder: &Path) -> bool {
    let marker = path.join("marker");
    fs::write(&marker, "").unwrap();
    let wanted = id(&marker).unwrap();
    let seen = below(folder, wanted);
    fs::remove_file(&marker).unwrap();
    seen
}

fn below(folder: &Path, wanted: Id) -> bool {
    fs::read_dir(folder).unwrap().flatten().any(|entry| {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        id(&path) == Some(wanted) || kind.is_dir() && below(&path, wanted)
    })
}

#[test]
fn a_path_lies_inside_a_folder_if_what_is_made_there_is_seen_in_it() {
    let factor: u64 =
        std::env::var("HOLDFAST_SEEDS_FACTOR").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    let (mut inside, mut by_letters) = (0, 0);
    for seed in 0..60 * factor {
        let tree = grow(seed);
        let mounts = all_mounts();
        for path in &tree.paths {
            for folder in &tree.paths {
                let is_in = Place::of(path, &mounts).is_in(&Place::of(folder, &mounts));
                let seen = is_seen(path, folder);
                assert!(is_in || !seen, "seed {seed}: {path:?} in {folder:?} was missed");
                // What a later mount covers is not seen, and is refused all the same.
                let may_be_covered = !tree.mounts.is_empty();
                assert!(seen || !is_in || may_be_covered, "seed {seed}: {path:?} {folder:?}");
                inside += u32::from(seen);
                by_letters += u32::from(path.starts_with(folder));
            }
        }
    }
    assert!(inside > by_letters + 100, "{inside} inside, {by_letters} of them by their letters");
}

#[test]
fn what_is_not_there_yet_is_where_it_will_be() {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join("home");
    fs::create_dir(&home).unwrap();
    symlink(&home, root.path().join("link")).unwrap();
    let mounts = all_mounts();
    let home = Place::of(&home, &mounts);
    for inside in ["link/log", "home/missing/../log", "missing/../home/a/b", "home"] {
        assert!(Place::of(&root.path().join(inside), &mounts).is_in(&home), "{inside}");
    }
    for outside in ["log", "home/../log", "homes", "link/../log"] {
        assert!(!Place::of(&root.path().join(outside), &mounts).is_in(&home), "{outside}");
    }
}
