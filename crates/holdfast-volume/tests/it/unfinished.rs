//! A process dies in the middle of a window, and the home has no room for the next to finish it: it
//! serves all the same, with everything as it was acknowledged.

use holdfast_io::checksum::crc32c;
use holdfast_io::fake::{ENOSPC, Effect, Fault, Operation, Random};
use holdfast_io::{Files, Kind};
use holdfast_volume::{Errno, NodeId, ROOT, Tree};
use std::path::Path;

use crate::death::{check, half_apply, see};
use crate::model::{Doing, Life, any_doing, apply, image_of, image_through, walk};
use crate::seeds::for_each_seed;
use crate::world::{Opened, World};

/// What takes room, as far as the log does none of it.
const TAKING: [Operation; 5] = [
    Operation::Change,
    Operation::MakeNode,
    Operation::MakeDir,
    Operation::MakeSymlink,
    Operation::SetLen,
];
/// More calls than any opening makes.
const CALLS: u64 = 400;

/// From now on the home refuses some of that, behind so many calls.
fn fill_home(world: &World, random: &mut Random) {
    for operation in TAKING {
        if random.chance(70) {
            let skip = random.below(4);
            let fault = Fault { operation, skip, effect: Effect::Errno(ENOSPC) };
            (0..CALLS).for_each(|_| world.files.fail(fault));
        }
    }
}

/// A life in which nothing moves but what has just been made, and nothing has two names; or in
/// which everything does.
struct Small {
    random: Random,
    is_wide: bool,
    /// What the kernel remembers that has no name any more.
    nameless: Vec<NodeId>,
}

impl Small {
    fn step(&mut self, volume: &Opened) {
        let doing = any_doing(&mut self.random);
        match &doing {
            Doing::Rename { .. } | Doing::Link { .. } | Doing::RemoveDir { .. } if self.is_wide => {
                let _ = apply(volume, &doing);
            }
            Doing::Link { .. } | Doing::RemoveDir { .. } => {}
            Doing::Rename { from, .. } if from == "p" || from == "q" => {}
            Doing::Rename { to, .. } => self.put(volume, to),
            Doing::Remove { path } => {
                let leaving = walk(volume, path);
                let removed = apply(volume, &doing);
                self.left(volume, leaving.and_then(|node| removed.map(|()| node)));
            }
            _ => drop(apply(volume, &doing)),
        }
    }

    /// A new file comes to stand there.
    fn put(&mut self, volume: &Opened, to: &str) {
        let path = || "new".to_owned();
        let leaving = walk(volume, to);
        let write = Doing::Write { path: path(), offset: 0, byte: 9, bytes: 3000 };
        let moves = Doing::Rename { from: path(), to: to.to_owned() };
        apply(volume, &Doing::Make { path: path(), kind: Kind::File }).expect("it is free");
        apply(volume, &write).expect("room");
        match apply(volume, &moves) {
            Ok(()) => self.left(volume, leaving),
            Err(_) => apply(volume, &Doing::Remove { path: path() }).expect("it is there"),
        }
    }

    /// The kernel forgets what lost its name, now or never; a link at once.
    fn left(&mut self, volume: &Opened, node: Result<NodeId, Errno>) {
        let Ok(node) = node else { return };
        let is_file = volume.attributes(node).is_ok_and(|found| found.kind == Kind::File);
        // It may have been another of its names that it lost before.
        self.nameless.retain(|other| *other != node);
        if !is_file || self.random.chance(60) {
            volume.forget(node, u64::MAX);
        } else {
            self.nameless.push(node);
        }
    }

    /// What has no name, as it is read: how long it is, and its sum.
    fn read(&self, volume: &Opened) -> Vec<Result<(usize, u32), Errno>> {
        let read = |node: &NodeId| {
            let mut bytes = vec![0; 9000];
            let got = volume.read(*node, &mut bytes, 0)?;
            Ok((got, crc32c(0, &bytes[..got])))
        };
        self.nameless.iter().map(read).collect()
    }
}

/// A process dies, and the next finds a home that refuses what takes room.
fn die(world: &World, volume: Opened, life: &mut Small, told: &str) -> Opened {
    let none = Life::plain(0);
    let (seen, read) = (see(&volume, &none), life.read(&volume));
    drop(volume);
    fill_home(world, &mut life.random);
    let mut opened = world.open();
    world.files.forget_faults();
    if opened.is_err() && life.is_wide {
        opened = world.open();
    }
    let (volume, _) = opened.unwrap_or_else(|error| panic!("{told}: {error}"));
    check(&volume, &none, &seen, told);
    assert_eq!(life.read(&volume), read, "{told}: {:?} without a name", life.nameless);
    volume
}

fn live(seed: u64, is_wide: bool) {
    let world = World::new(seed);
    let mut life = Small { random: Random::new(seed), is_wide, nameless: Vec::new() };
    let (mut volume, _) = world.open().expect("a new volume");
    for step in 0..120 {
        let told = format!("seed {seed}, step {step}");
        world.clock.advance_ns(1_000_003);
        life.step(&volume);
        match life.random.below(12) {
            0 => drop(volume.drain_step().expect("a sound disk")),
            1 => drop(volume.clean_step().unwrap_or_else(|error| panic!("{told}: {error}"))),
            2 => {
                half_apply(&world, &volume, &mut life.random);
                (0..life.random.below(6)).for_each(|_| life.step(&volume));
                for _ in 0..1 + life.random.below(2) {
                    volume = die(&world, volume, &mut life, &told);
                    (0..life.random.below(4)).for_each(|_| life.step(&volume));
                }
            }
            _ => {}
        }
    }
    let through = image_through(&volume);
    let root_ns = volume.attributes(ROOT).expect("the root").modified_ns;
    volume.detach().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!(image_of(&*world.home()), through, "seed {seed}: the home is not what was seen");
    let root = world.home().metadata(Path::new("")).expect("the root");
    assert_eq!(root.modified_ns, root_ns, "seed {seed}: the root's time is not what was seen");
}

#[test]
fn a_window_that_the_home_has_no_room_for_keeps_nobody_from_serving() {
    let test = "unfinished::a_window_that_the_home_has_no_room_for_keeps_nobody_from_serving";
    for_each_seed(test, &[], 0..200, |seed| live(seed, false));
}

/// What is served in spite of such a window is right, whatever it does; some are not served.
#[test]
fn who_serves_in_spite_of_an_unfinished_window_has_all_that_was_acknowledged() {
    let test = "unfinished::who_serves_in_spite_of_an_unfinished_window";
    for_each_seed(test, &[181], 0..120, |seed| live(seed, true));
}
