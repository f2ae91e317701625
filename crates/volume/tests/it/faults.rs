//! The home or the log fails: a step fails, nothing is lost, and the next one goes on.

use holdfast_io::fake::{Effect, FakeLimits, Fault, Operation};
use holdfast_io::tree::{Allocate, Errno, NewNode, NodeId, ROOT, RenameHow, SetXattr, Tree};
use holdfast_io::{Files, Kind};
use holdfast_log::Health;
use holdfast_volume::DirectoryVolume;

use crate::model::{Life, image_of, image_through};
use crate::world::{Opened, World};

/// Everything that a cleaner may ask of a home.
const OPERATIONS: [Operation; 16] = [
    Operation::Open,
    Operation::Metadata,
    Operation::ReadDir,
    Operation::MakeDir,
    Operation::MakeSymlink,
    Operation::MakeNode,
    Operation::Link,
    Operation::Rename,
    Operation::RemoveFile,
    Operation::RemoveDir,
    Operation::Change,
    Operation::SyncDir,
    Operation::Write,
    Operation::SetLen,
    Operation::Reserve,
    Operation::Punch,
];
const EINTR: i32 = 4;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;
/// Calls of each kind that fail in turn.
const CALLS: u64 = 20;

fn make(tree: &DirectoryVolume, parent: NodeId, name: &str, kind: Kind) -> NodeId {
    let new = NewNode { kind, mode: 0o640, umask: 0, uid: 1, gid: 2, rdev: 0, target: b"there" };
    tree.make(parent, name.as_bytes(), &new).expect("a free name").node
}

/// A tree in which a cleaner finds something of every kind to do.
fn fill(volume: &Opened) {
    let directory = make(volume, ROOT, "directory", Kind::Directory);
    make(volume, directory, "link", Kind::Symlink);
    make(volume, directory, "gone", Kind::Directory);
    for number in 0..4 {
        let node = make(volume, directory, &format!("file-{number}"), Kind::File);
        volume.write(node, &[number; 5000], 0, false).expect("room");
        volume.allocate(node, Allocate::Reserve { keep_size: true }, 0, 9000).expect("a file");
    }
    let node = volume.lookup(directory, b"file-0").expect("made above").node;
    volume.link(node, ROOT, b"second").expect("a free name");
    volume.drain_step().expect("a sound log");
    while !volume.clean_step().expect("a sound home").is_idle() {}
    change(volume, directory, node);
}

fn change(volume: &DirectoryVolume, directory: NodeId, node: NodeId) {
    let set = holdfast_io::tree::SetAttributes { size_bytes: Some(3000), ..Default::default() };
    volume.set_attributes(node, &set).expect("a file");
    volume.allocate(node, Allocate::PunchHole, 0, 1000).expect("a file");
    let (from, to) = ((directory, &b"file-1"[..]), (ROOT, &b"file-1"[..]));
    volume.rename(from, to, RenameHow::Replace).expect("a name");
    let (from, to) = ((directory, &b"file-2"[..]), (directory, &b"file-3"[..]));
    volume.rename(from, to, RenameHow::Replace).expect("a name");
    volume.remove_dir(directory, b"gone").expect("empty");
    volume.remove_file(ROOT, b"second").expect("a name");
    volume.link(node, ROOT, b"third").expect("a free name");
    make(volume, ROOT, "link", Kind::Symlink);
    let made = make(volume, ROOT, "made", Kind::Directory);
    let file = make(volume, made, "file", Kind::File);
    volume.write(file, &[9; 3000], 0, false).expect("room");
    let open = make(volume, ROOT, "open", Kind::File);
    volume.write(open, &[8; 100], 0, false).expect("room");
    volume.remove_file(ROOT, b"open").expect("a name");
}

/// Cleans while `fault` waits, then without it. Returns whether the fault struck.
fn clean_through(fault: Fault) -> bool {
    let told = format!("{fault:?}");
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    fill(&volume);
    let seen = image_through(&volume);
    volume.log().commit(volume.log().marks().tail).expect("a sound log");
    let before = world.files.faults_fired();
    world.files.fail(fault);
    while volume.clean_step().is_ok_and(|cleaned| !cleaned.is_idle()) {}
    let struck = world.files.faults_fired() > before;
    world.files.forget_faults();
    assert_eq!(image_through(&volume), seen, "{told}: seen in the middle of a window");
    if !matches!(volume.log().health(), Health::Sound) {
        return false; // it struck the log, which does not forgive
    }
    volume.detach().unwrap_or_else(|error| panic!("{told}: still fails: {error}"));
    assert_eq!(image_of(&*world.home()), seen, "{told}: the home is not what was seen");
    struck
}

#[test]
fn whatever_call_of_the_home_fails_the_step_is_repeated_and_nothing_is_lost() {
    let mut struck = 0;
    for operation in OPERATIONS {
        for skip in 0..CALLS {
            for errno in [EIO, ENOSPC] {
                let fault = Fault { operation, skip, effect: Effect::Errno(errno) };
                struck += u64::from(clean_through(fault));
            }
        }
    }
    assert!(struck > 60, "only {struck} faults struck: the tree gives too little to do");
}

#[test]
fn short_and_interrupted_transfers_are_gone_on_with() {
    for operation in [Operation::Write, Operation::Read] {
        for skip in 0..CALLS {
            for effect in [Effect::Short, Effect::Errno(EINTR)] {
                clean_through(Fault { operation, skip, effect });
            }
        }
    }
}

/// A sync of the home that failed may have lost what it should have kept: the window is applied
/// again, so the bytes are written again, and not only synced.
#[test]
fn a_failed_sync_of_the_home_is_not_taken_for_done_by_the_next() {
    for skip in 0..CALLS {
        let world = World::new(1);
        let (volume, _) = world.open().expect("a new volume");
        fill(&volume);
        let seen = crate::model::timeless(image_through(&volume));
        volume.log().commit(volume.log().marks().tail).expect("a sound log");
        // The drain of the marks syncs too; a sync of the log that fails poisons it.
        let fault = Fault { operation: Operation::SyncData, skip, effect: Effect::DropsDirty };
        world.files.fail(fault);
        while volume.clean_step().is_ok_and(|cleaned| !cleaned.is_idle()) {}
        world.files.forget_faults();
        while volume.clean_step().is_ok_and(|cleaned| !cleaned.is_idle()) {}
        drop(volume);
        let world = world.after_power_cut(skip);
        let (volume, _) = world.open().expect("what was durable");
        volume.detach().expect("a sound disk");
        let home = crate::model::timeless(image_of(&*world.home()));
        assert_eq!(home, seen, "sync {skip}: lost by a failed sync");
    }
}

/// What the home has of a window before the log says so: it takes room there, and waits no more.
#[test]
fn what_a_window_has_brought_home_does_not_count_as_waiting_too() {
    const CHUNK_BYTES: u64 = 8 << 10;
    const WINDOW_BYTES: u64 = 20 * CHUNK_BYTES;
    const MARGIN_BYTES: u64 = 4 << 20;
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let nodes = ["first", "second"].map(|name| make(&volume, ROOT, name, Kind::File));
    for offset in (0..WINDOW_BYTES).step_by(CHUNK_BYTES as usize) {
        volume.write(nodes[0], &[7; CHUNK_BYTES as usize], offset, false).expect("room");
    }
    volume.log().commit(volume.log().marks().tail).expect("a sound log");
    let space = world.files.space().expect("a sound disk");
    let capacity_bytes = space.total_bytes - space.free_bytes + MARGIN_BYTES + 2 * WINDOW_BYTES;
    world.files.set_capacity_bytes(Some(capacity_bytes));
    // The bytes are written and cannot be synced: the window is home and is not released.
    let (operation, effect) = (Operation::SyncData, Effect::Errno(EIO));
    world.files.fail(Fault { operation, skip: 0, effect });
    volume.clean_step().expect_err("the home cannot be synced");
    let left = world.files.space().expect("a sound disk").free_bytes;
    assert_eq!(left, MARGIN_BYTES + WINDOW_BYTES, "the window is not home");
    world.clock.advance_ns(1_000_000_000);
    let mut offset = 0;
    while volume.write(nodes[1], &[8; CHUNK_BYTES as usize], offset, false) == Ok(()) {
        world.clock.advance_ns(1_000_000_000);
        offset += CHUNK_BYTES;
    }
    // Heads, paddings and marks of the log count as if they took room, so not all of it is left.
    assert!(offset > WINDOW_BYTES / 2, "refused after {offset} bytes: the window counts twice");
    assert!(offset < WINDOW_BYTES, "{offset} bytes were admitted: more than there is room for");
    volume.detach().expect("all that was admitted fits");
}

#[test]
fn a_log_that_fails_refuses_changes_and_still_reads() {
    let operations = [Operation::Write, Operation::SyncData];
    for (operation, errno) in operations.into_iter().flat_map(|one| [(one, EIO), (one, ENOSPC)]) {
        let world = World::new(2);
        let (volume, _) = world.open().expect("a new volume");
        let mut life = Life::plain(2);
        for _ in 0..40 {
            life.step(&volume);
        }
        let node = make(&volume, ROOT, "file", Kind::File);
        volume.write(node, b"kept", 0, false).expect("room");
        let seen = image_through(&volume);
        world.files.fail(Fault { operation, skip: 0, effect: Effect::Errno(errno) });
        volume.drain_step().expect_err("the log's device failed");
        assert_eq!(volume.write(node, b"lost", 0, false), Err(Errno::IO));
        assert_eq!(volume.remove_file(ROOT, b"file"), Err(Errno::IO));
        assert_eq!(image_through(&volume), seen, "{operation:?}: a refused change was seen");
        drop(volume);
        // The region still has everything, and knows that its log failed.
        let (volume, _) = world.open().expect("a region that survived");
        assert_eq!(volume.write(node, b"lost", 0, false), Err(Errno::IO));
        assert_eq!(image_through(&volume), seen, "{operation:?}: lost by a death");
    }
}

/// The kernel asks no server of a FUSE file system for a sync of everything, and says that it is
/// done.
#[test]
fn a_home_that_cannot_sync_everything_has_each_file_synced() {
    for seed in 1..=8 {
        let world = World::new(seed);
        world.files.set_limits(FakeLimits { syncs_all: false, ..FakeLimits::default() });
        let (volume, _) = world.open().expect("a new volume");
        for number in 0..40 {
            let node = make(&volume, ROOT, &format!("file-{number}"), Kind::File);
            volume.write(node, &[number; 500], 0, false).expect("room");
            let how = SetXattr::default();
            Tree::set_xattr(&*volume, node, b"user.number", &[number], &how).expect("room");
        }
        let seen = crate::model::timeless(image_through(&volume));
        volume.log().commit(volume.log().marks().tail).expect("a sound log");
        while !volume.clean_step().expect("a sound home").is_idle() {}
        drop(volume);
        let world = world.after_power_cut(seed);
        assert_eq!(crate::model::timeless(image_of(&*world.home())), seen, "seed {seed}");
    }
}

/// A front end that takes over finishes the window first, and everybody waits for it.
#[test]
fn no_window_has_more_to_sync_than_a_home_that_syncs_each_file_is_soon_done_with() {
    /// What a window may have to sync, and what its log has.
    const SYNCS_MAX: u64 = 128 + 8;
    for seed in 1..=4_u8 {
        let world = World::new(seed.into());
        world.files.set_limits(FakeLimits { syncs_all: false, ..FakeLimits::default() });
        let (volume, _) = world.open().expect("a new volume");
        for number in 0..150 {
            let directory = make(&volume, ROOT, &format!("directory-{number}"), Kind::Directory);
            for file in 0..seed {
                let node = make(&volume, directory, &format!("file-{file}"), Kind::File);
                volume.write(node, &[file; 100], 0, false).expect("room");
            }
        }
        let syncs = || {
            let calls = [Operation::SyncData, Operation::SyncDir, Operation::SyncAll];
            calls.iter().map(|call| world.files.calls(*call)).sum::<u64>()
        };
        volume.log().commit(volume.log().marks().tail).expect("a sound log");
        let (mut before, mut most) = (syncs(), 0);
        while !volume.clean_step().expect("a sound home").is_idle() {
            most = most.max(syncs() - before);
            before = syncs();
        }
        assert!(most <= SYNCS_MAX, "{most} syncs in one window; seed {seed}");
    }
}

/// Many files of one window are synced together, and a sync that failed is not taken for done.
#[test]
fn many_files_that_are_synced_together_are_all_durable_or_the_window_is_repeated() {
    for (seed, fails) in [(1, false), (2, true)] {
        let world = World::new(seed);
        let (volume, _) = world.open().expect("a new volume");
        for number in 0..40 {
            let node = make(&volume, ROOT, &format!("file-{number}"), Kind::File);
            volume.write(node, &[number; 500], 0, false).expect("room");
        }
        let seen = crate::model::timeless(image_through(&volume));
        volume.log().commit(volume.log().marks().tail).expect("a sound log");
        let before = world.files.calls(Operation::SyncAll);
        if fails {
            let (operation, effect) = (Operation::SyncAll, Effect::Errno(EIO));
            world.files.fail(Fault { operation, skip: 0, effect });
            volume.clean_step().expect_err("the home cannot be synced");
        }
        volume.clean_step().expect("a sound home");
        assert!(world.files.calls(Operation::SyncAll) > before, "each was synced by itself");
        drop(volume);
        let world = world.after_power_cut(seed);
        assert_eq!(crate::model::timeless(image_of(&*world.home())), seen, "fails: {fails}");
    }
}
