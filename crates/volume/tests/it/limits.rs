//! A home with limits: whatever is acknowledged, it takes.
//!
//! The generator draws changes that run into every limit that a home can have, on a home that has
//! them all. Now and then everything is brought home, and nothing of it may be refused there. What
//! is refused for want of room is refused when everything is home, too.

use std::path::Path;
use std::sync::Arc;

use holdfast_io::fake::{FakeClock, FakeFiles, FakeLimits, Hindrance, Random};
use holdfast_io::tree::{
    Allocate, Asked, Errno, NewNode, NodeId, ROOT, RenameHow, SetAttributes, SetXattr, Tree,
};
use holdfast_io::{Files, Kind, Limits, OpenHow};
use holdfast_memory::Region;
use holdfast_volume::{DirectVolume, DirectoryVolume};

use crate::borders::new_log;
use crate::model::{image_of, image_through};
use crate::seeds::for_each_seed;
use crate::world::{Below, config, new_region};

const FILE_BYTES_MAX: u64 = 8 << 20;
const LINKS_MAX: u32 = 4;
const INODES_MAX: u64 = 24;
/// A name of the volume's own may have 29.
const NAME_BYTES_MAX: u32 = 32;
/// Less than what a few files can be.
const CAPACITY_BYTES: u64 = 6 << 20;
/// Some of the attributes together are more than an inode takes.
const XATTR_BYTES_MAX: u64 = 3000;
const STEPS: u64 = 1000;

/// A home with every limit, and a log that has none.
struct Limited {
    home: FakeFiles,
    log: FakeFiles,
    region: Arc<Region>,
    clock: FakeClock,
}

impl Limited {
    fn open(&self) -> DirectVolume {
        let (home, log) = (Arc::new(self.home.clone()), Below::new(&self.log, "log"));
        let clock = Arc::new(self.clock.clone());
        let opened = DirectVolume::open(home, log, self.region.clone(), clock, config());
        opened.expect("a log made here")
    }
}

/// A home with every limit, and files in it that nobody may change.
fn limited(seed: u64) -> Limited {
    let home = FakeFiles::new(seed);
    for name in ["fixed", "appended"] {
        let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
        let file = home.open(Path::new(name), how).expect("a new disk");
        file.write_all_at(&[7; 5000], 0).expect("a new disk");
        let path = Path::new(name);
        home.set_flags(path, name == "fixed", name == "appended").expect("just made");
    }
    home.set_limits(FakeLimits {
        limits: Limits {
            file_bytes_max: FILE_BYTES_MAX,
            links_max: LINKS_MAX,
            links_take_inodes: seed % 2 == 1,
            xattr_inode_bytes: [None, Some(1024), Some(u64::MAX)][(seed % 3) as usize],
        },
        inodes_max: INODES_MAX,
        name_bytes_max: NAME_BYTES_MAX,
        names_take_room: true,
        ..FakeLimits::default()
    });
    home.set_capacity_bytes(Some(CAPACITY_BYTES));
    let (log, region, clock) = (new_log(seed), new_region(), FakeClock::default());
    Limited { home, log, region, clock }
}

fn any_name(random: &mut Random) -> String {
    match random.below(12) {
        0 => "fixed".into(),
        1 => "appended".into(),
        2 => "x".repeat(28 + random.below(6) as usize),
        number if number < 8 => format!("n{}", random.below(4)),
        _ => format!("m{}", random.below(40)),
    }
}

/// One change, perhaps refused.
fn step(tree: &DirectoryVolume, random: &mut Random) -> Result<(), Errno> {
    let name = any_name(random);
    let name = name.as_bytes();
    let choice = random.below(20);
    if let 0..4 = choice {
        let kind = [Kind::File, Kind::Directory, Kind::Symlink][(choice % 3) as usize];
        let new = NewNode { kind, mode: 0o700, umask: 0, uid: 0, gid: 0, rdev: 0, target: b"t" };
        return tree.make(ROOT, name, &new).map(drop);
    }
    let node = tree.lookup(ROOT, name)?.node;
    change(tree, random, choice, node, name)
}

fn change(
    tree: &DirectoryVolume,
    random: &mut Random,
    choice: u64,
    node: NodeId,
    name: &[u8],
) -> Result<(), Errno> {
    let offset = random.below(FILE_BYTES_MAX + (1 << 18));
    let asked = Asked { request: 0, again: false };
    let label = format!("user.{}", random.below(6));
    match choice {
        4..7 => tree.write(node, &vec![3; 1 + random.below(60_000) as usize], offset, false),
        7 => {
            let set = SetAttributes { size_bytes: Some(offset), ..SetAttributes::default() };
            tree.set_attributes(node, &set).map(drop)
        }
        8 => {
            let set = SetAttributes { mode: Some(0o640), ..SetAttributes::default() };
            tree.set_attributes(node, &set).map(drop)
        }
        9 => {
            let how = Allocate::Reserve { keep_size: random.chance(50) };
            tree.allocate(node, how, offset, 1 + random.below(1 << 21))
        }
        10 => tree.allocate(node, Allocate::PunchHole, offset, 1 + random.below(1 << 21)),
        11 => {
            let how = Allocate::ZeroRange { keep_size: random.chance(50) };
            tree.allocate(node, how, offset, 1 + random.below(1 << 21))
        }
        12 | 13 => tree.link(node, ROOT, any_name(random).as_bytes()).map(drop),
        14 | 15 => {
            let to = any_name(random);
            let how = [RenameHow::Replace, RenameHow::Exchange(asked)][(choice % 2) as usize];
            tree.rename((ROOT, name), (ROOT, to.as_bytes()), how)
        }
        16 | 17 => {
            let value = vec![5; random.below(XATTR_BYTES_MAX) as usize];
            tree.set_xattr(node, label.as_bytes(), &value, &SetXattr::default())
        }
        18 => tree.remove_xattr(node, label.as_bytes(), asked),
        _ => tree.remove_file(ROOT, name).or_else(|_| tree.remove_dir(ROOT, name)),
    }
}

/// Everything comes home, or the test has found what should have been refused.
fn bring_home(direct: &DirectVolume, told: &str) {
    while direct.log.drain().expect("a sound log").bytes > 0 {}
    loop {
        let cleaned = direct.volume.clean_step();
        let cleaned = cleaned.unwrap_or_else(|error| panic!("{told}: acknowledged, but {error}"));
        if cleaned.is_idle() {
            return;
        }
    }
}

/// For as long as the home is read-only, nothing is acknowledged that would change it.
fn be_read_only(world: &Limited, direct: &DirectVolume, random: &mut Random, told: &str) {
    bring_home(direct, told);
    world.home.set_read_only(true);
    world.clock.advance_ns(1_000_000_000);
    let tail = direct.log.marks().tail;
    for _ in 0..5 {
        let _ = step(&direct.volume, random);
        assert_eq!(direct.log.marks().tail, tail, "{told}: changed on a read-only home");
    }
    world.home.set_read_only(false);
    world.clock.advance_ns(1_000_000_000);
}

/// Who has a file by another name than the home's runs it, or has a lease on it, or ends that. He
/// is refused while somebody writes it.
fn hinder(home: &FakeFiles, random: &mut Random) {
    let hindrance = match random.below(4) {
        0 => Some(Hindrance::Runs),
        1 => Some(Hindrance::Leases),
        _ => None,
    };
    let _ = home.hinder(any_name(random).as_ref(), hindrance);
}

fn leave_alone(home: &FakeFiles) {
    for entry in home.read_dir("".as_ref()).expect("a sound home") {
        let name = std::str::from_utf8(&entry.name).expect("made here");
        home.hinder(name.as_ref(), None).expect("it is there");
    }
}

fn live(seed: u64) {
    let world = limited(seed);
    let mut random = Random::new(seed);
    let mut direct = world.open();
    let mut changed = 0;
    for number in 0..STEPS {
        let told = format!("seed {seed}, step {number}");
        let mut again = random.clone();
        let done = step(&direct.volume, &mut random);
        if done == Err(Errno::NOSPC) {
            bring_home(&direct, &told);
            let repeated = step(&direct.volume, &mut again);
            assert_eq!(repeated, done, "{told}: there was room, once what waited was home");
        }
        changed += u64::from(done.is_ok());
        world.clock.advance_ns(random.below(40_000_000));
        hinder(&world.home, &mut random);
        let marks = direct.log.marks();
        match random.below(60) {
            0 => be_read_only(&world, &direct, &mut random, &told),
            1 => {
                drop(direct);
                direct = world.open();
            }
            2 => bring_home(&direct, &told),
            _ if marks.tail.since(marks.released) > 500 << 10 => bring_home(&direct, &told),
            _ => {}
        }
    }
    assert!(changed > STEPS / 50, "seed {seed}: nearly everything is refused");
    bring_home(&direct, &format!("seed {seed}, at the end"));
    leave_alone(&world.home);
    let seen = image_through(&direct.volume);
    direct.detach().expect("a sound home");
    assert_eq!(image_of(&world.home), seen, "seed {seed}");
}

#[test]
fn what_is_acknowledged_a_home_with_limits_takes() {
    for_each_seed("limits::what_is_acknowledged", &[50], 0..16, live);
}
