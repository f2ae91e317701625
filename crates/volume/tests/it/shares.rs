//! One user fills what all share, and the others go on.

use holdfast_io::fake::Random;
use holdfast_io::tree::RenameHow::{Exchange, Replace};
use holdfast_io::tree::{Asker, Errno, NodeId, ROOT, SetAttributes, Tree, Waits, on_behalf_of};
use holdfast_io::{Files, Kind};
use holdfast_volume::DirectoryVolume;

use crate::seeds::for_each_seed;
use crate::world::{ONCE, Opened, RING_BYTES, World, new_node};

const HEAVY: u32 = 1001;
const LIGHT: u32 = 1002;
/// More than may be open for writing.
const FILES: usize = 600;

fn as_user<T>(user: u32, work: impl FnOnce() -> T) -> T {
    on_behalf_of(Asker { user: Some(user), waits: Waits::Never }, work)
}

fn make(volume: &DirectoryVolume, name: &str) -> Result<NodeId, Errno> {
    volume.make(ROOT, name.as_bytes(), &new_node(Kind::File, 0o600)).map(|made| made.node)
}

/// Writes until it has to wait.
fn fill(volume: &DirectoryVolume, node: NodeId) {
    as_user(HEAVY, || {
        let written = (0..u64::MAX).map(|at| volume.write(node, &[7; 4096], at * 4096, false));
        let stopped = written.take(1000).find_map(Result::err);
        assert_eq!(stopped, Some(Errno::LATER));
    });
}

/// What somebody does who asks for little.
fn goes_about_his_work(volume: &DirectoryVolume, round: u64) {
    as_user(LIGHT, || {
        let name = format!("light-{round}");
        let node = make(volume, &name).expect("a name");
        volume.write(node, &[9; 512], 0, false).expect("a write");
        volume.sync(node).expect("a sync");
        let mut bytes = [0; 512];
        assert_eq!(volume.read(node, &mut bytes, 0), Ok(512));
        assert_eq!(bytes, [9; 512]);
        assert_eq!(volume.lookup(ROOT, b"none"), Err(Errno::NOENT));
        volume.attributes(node).expect("attributes");
        volume.remove_file(ROOT, name.as_bytes()).expect("a removal");
    });
}

#[test]
fn while_one_user_fills_the_ring_and_the_home_takes_nothing_another_goes_on() {
    let (volume, _) = World::new(1).open().expect("a new volume");
    let node = as_user(HEAVY, || make(&volume, "heavy")).expect("a file");
    // Nobody drains or cleans.
    fill(&volume, node);
    for round in 0..30 {
        goes_about_his_work(&volume, round);
        as_user(HEAVY, || {
            assert_eq!(volume.write(node, &[8; 512], 0, false), Err(Errno::LATER));
            volume.attributes(node).expect("who waits can look");
        });
    }
}

#[test]
fn who_was_told_to_wait_goes_on_once_the_home_has_what_he_wrote() {
    let (volume, _) = World::new(2).open().expect("a new volume");
    let node = as_user(HEAVY, || make(&volume, "heavy")).expect("a file");
    for _ in 0..3 {
        fill(&volume, node);
        volume.drain_step().expect("a drain");
        volume.clean_step().expect("a window");
        volume.wait_until_later(std::time::Duration::ZERO);
    }
    as_user(HEAVY, || volume.write(node, b"and more", 0, false)).expect("his turn");
}

#[test]
fn while_one_user_has_all_the_files_open_that_he_may_another_writes_to_one() {
    let (volume, _) = World::new(3).open().expect("a new volume");
    let make_all = || (0..FILES).map(|index| make(&volume, &format!("f{index}"))).collect();
    let nodes: Result<Vec<NodeId>, Errno> = as_user(HEAVY, make_all);
    let nodes = nodes.expect("files");
    while !bring_home(&volume) {}
    as_user(HEAVY, || {
        let stopped = nodes.iter().find_map(|node| volume.write(*node, b"x", 0, false).err());
        assert_eq!(stopped, Some(Errno::LATER));
    });
    let others = *nodes.last().expect("files");
    as_user(LIGHT, || volume.write(others, b"y", 0, false)).expect("a file of the rest");
    while !bring_home(&volume) {}
    as_user(HEAVY, || volume.write(nodes[FILES - 2], b"x", 0, false)).expect("his turn");
}

fn bring_home(volume: &Opened) -> bool {
    volume.drain_step().expect("a drain");
    volume.clean_step().expect("a window").is_idle()
}

#[test]
fn whose_earlier_changes_wait_does_not_overtake_them_and_who_waits_for_the_home_asks_it() {
    let (volume, _) = World::new(4).open().expect("a new volume");
    let behind = Asker { user: Some(HEAVY), waits: Waits::Behind };
    assert_eq!(on_behalf_of(behind, || make(&volume, "late")), Err(Errno::LATER));
    assert_eq!(volume.lookup(ROOT, b"late"), Err(Errno::NOENT));
    as_user(HEAVY, || make(&volume, "late")).expect("a file");
}

/// What a rename between two directories has waiting behind it in the kernel is every such rename
/// of the mount, whoever asks for it.
#[test]
fn a_rename_between_directories_waits_for_no_turn_and_is_paid_for() {
    for seed in 0..16 {
        let world = World::new(seed);
        let (volume, _) = world.open().expect("a new volume");
        let make_dir = |name: &[u8]| {
            volume.make(ROOT, name, &new_node(Kind::Directory, 0o700)).expect("a directory").node
        };
        let (node, one, other) = as_user(HEAVY, || {
            let node = make(&volume, "heavy").expect("a file");
            (node, make_dir(b"one"), make_dir(b"other"))
        });
        as_user(HEAVY, || volume.make(one, b"moved", &new_node(Kind::Directory, 0o700)))
            .expect("a directory");
        fill(&volume, node);
        // To the last byte of his share.
        while as_user(HEAVY, || volume.write(node, b"x", 0, false)).is_ok() {}
        let (mut at, mut to, mut moved) = (one, other, 0);
        for _ in 0..200 {
            let within = as_user(HEAVY, || volume.rename((at, b"moved"), (at, b"m"), Replace));
            assert_eq!(within, Err(Errno::LATER), "seed {seed}: within one directory");
            let renamed = as_user(HEAVY, || volume.rename((at, b"moved"), (to, b"moved"), Replace));
            match renamed {
                Ok(()) => (at, to, moved) = (to, at, moved + 1),
                // One after the other, and no faster, so that they fill no ring.
                Err(errno) => assert_eq!(errno, Errno::LATER, "seed {seed}"),
            }
            world.clock.advance_ns(1_000_000 * (1 + (seed + moved) % 3));
        }
        assert!((15..=50).contains(&moved), "seed {seed}: {moved} renames");
        goes_about_his_work(&volume, seed);
        while !bring_home(&volume) {}
        as_user(HEAVY, || volume.write(node, b"and more", 0, false)).expect("his turn");
    }
}

/// What the home does for an exchange is no matter of the bytes that the log has of it.
#[test]
fn exchanges_that_wait_for_the_home_are_bounded_by_the_work_that_they_are() {
    for_each_seed("shares::exchanges_that_wait_for_the_home", &[], 0..32, |seed| {
        let (world, mut random) = (World::new(seed), Random::new(seed));
        let (volume, _) = world.open().expect("a new volume");
        for name in ["a", "b", "c", "d"] {
            as_user(HEAVY, || make(&volume, name)).expect("a file");
        }
        let elsewhere = volume.make(ROOT, b"e", &new_node(Kind::Directory, 0o700));
        let elsewhere = elsewhere.expect("a directory").node;
        make_all_home(&volume);
        let pairs = [(b"a", b"b"), (b"b", b"c"), (b"c", b"a"), (b"c", b"d")];
        let as_many = 1 + RING_BYTES / (1 << 20);
        let mut waiting = 0;
        for _ in 0..200 {
            let (one, other) = pairs[random.below(4) as usize];
            let exchange = || volume.rename((ROOT, one), (ROOT, other), Exchange(ONCE));
            match as_user(HEAVY, exchange) {
                Ok(()) => waiting += 1,
                Err(errno) => assert_eq!(errno, Errno::LATER, "seed {seed}"),
            }
            assert!(waiting <= as_many, "seed {seed}: {waiting} exchanges wait");
            if random.chance(4) {
                make_all_home(&volume);
                waiting = 0;
            }
        }
        as_user(LIGHT, || volume.make(elsewhere, b"x", &new_node(Kind::File, 0o600)))
            .expect("a name");
        goes_about_his_work(&volume, seed);
    });
}

fn make_all_home(volume: &Opened) {
    while !bring_home(volume) {}
}

/// As whoever hands over what is parked does.
fn as_parked<T>(user: u32, work: impl FnOnce() -> T) -> T {
    on_behalf_of(Asker { user: Some(user), waits: Waits::ForTheHome }, work)
}

fn change_mode(volume: &DirectoryVolume, node: NodeId) -> Result<(), Errno> {
    let set = SetAttributes { mode: Some(0o640), ..SetAttributes::default() };
    volume.set_attributes(node, &set).map(drop)
}

/// The one thread that hands over what is parked has others to hand over.
#[test]
fn who_waits_for_what_the_home_has_room_for_leaves_the_cleaning_to_the_cleaner() {
    for_each_seed("shares::who_waits_for_what_the_home_has_room_for", &[], 0..64, |seed| {
        let (world, mut random) = (World::new(seed), Random::new(seed));
        let (volume, _) = world.open().expect("a new volume");
        let nodes = [HEAVY, LIGHT]
            .map(|user| as_user(user, || make(&volume, &format!("of-{user}"))).expect("a file"));
        let had = as_user(HEAVY, || make(&volume, "had")).expect("a file");
        for at in 0..8 {
            as_user(HEAVY, || volume.write(had, &[1; 4096], at * 4096, false)).expect("room");
            make_all_home(&volume);
        }
        volume.forget(had, 1);
        make_all_home(&volume);
        let space = world.home().space().expect("a sound disk");
        let used = space.total_bytes - space.free_bytes;
        world.files.set_capacity_bytes(Some(used + (4 << 20) + (8 << 10)));
        world.clock.advance_ns(1_000_000_000);
        // What waits may give room back, or not.
        let gives_back = random.chance(50);
        let waits = match gives_back {
            true => as_user(HEAVY, || volume.remove_file(ROOT, b"had")),
            false => as_user(LIGHT, || volume.write(nodes[1], b"x", 0, false)),
        };
        waits.expect("it fits");
        let wants = || volume.write(nodes[0], &[2; 12 << 10], 0, false);
        assert_eq!(as_user(HEAVY, wants), Err(Errno::LATER), "seed {seed}");
        for round in 0..random.below(8) {
            let home_has = volume.marks().released;
            assert_eq!(as_parked(HEAVY, wants), Err(Errno::LATER), "seed {seed}, {round}");
            assert_eq!(volume.marks().released, home_has, "seed {seed}: he cleans");
            as_parked(LIGHT, || change_mode(&volume, nodes[1])).expect("another goes on");
        }
        assert_eq!(as_parked(HEAVY, wants), Err(Errno::LATER), "seed {seed}");
        make_all_home(&volume);
        // Others go on, and what they leave is not what he waits for.
        as_user(LIGHT, || change_mode(&volume, nodes[1])).expect("it takes no room");
        let told = as_parked(HEAVY, wants);
        let expected = if gives_back { Ok(()) } else { Err(Errno::NOSPC) };
        assert_eq!(told, expected, "seed {seed}");
    });
}
