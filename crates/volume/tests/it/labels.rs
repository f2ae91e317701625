//! Extended attributes near what an inode takes: what fits depends on the order in which they came.
//! And many of them: what one more costs the home does not depend on how many there are.

use holdfast_io::fake::{Effect, Fault, Operation, Random};
use holdfast_io::tree::{Errno, NodeId, ROOT, SetXattr, Tree};
use holdfast_io::{Files, Kind};
use std::path::Path;

use crate::death::{die_while_opening, half_apply_all};
use crate::model::{image_of, image_through};
use crate::seeds::for_each_seed;
use crate::world::{Below, ONCE, Opened, World, new_node};

const STEPS: u64 = 120;
const NAMES: [&str; 4] = ["user.a", "user.b", "user.c", "user.d"];
/// What somebody did once, each brought home before the next: the length of a value, and of what.
const ONCE_REFUSED: [(usize, usize); 10] = [
    (3, 23),
    (0, 21),
    (2, 2245),
    (1, 28),
    (1, 3),
    (3, 3604),
    (1, 43),
    (2, 3906),
    (0, 2400),
    (0, 57),
];

fn set(volume: &Opened, node: NodeId, name: &str, bytes: usize) -> Result<(), Errno> {
    volume.set_xattr(node, name.as_bytes(), &vec![7; bytes], &SetXattr::default())
}

fn bring_home(volume: &Opened, told: &str) {
    volume.log().commit(volume.log().marks().tail).expect("a sound disk");
    loop {
        let cleaned = volume.clean_step();
        let cleaned = cleaned.unwrap_or_else(|error| panic!("{told}: acknowledged, but {error}"));
        if cleaned.is_idle() {
            return;
        }
    }
}

fn any_bytes(random: &mut Random) -> usize {
    let bytes = match random.below(4) {
        0 | 1 => random.below(60),
        2 => 1500 + random.below(1000),
        _ => 3500 + random.below(560),
    };
    bytes as usize
}

fn file(volume: &Opened) -> NodeId {
    volume.make(ROOT, b"file", &new_node(Kind::File, 0o600)).expect("a free name").node
}

/// Lives with attributes that an inode just takes, or just not, and with deaths.
fn live(seed: u64) {
    let world = World::new(seed);
    let mut random = Random::new(seed);
    let mut volume = world.open().expect("a new log").0;
    file(&volume);
    for step in 0..STEPS {
        let told = format!("seed {seed}, step {step}");
        let node = volume.lookup(ROOT, b"file").expect("it is never removed").node;
        let name = NAMES[random.below(4) as usize];
        let _ = match random.below(6) {
            0 => volume.remove_xattr(node, name.as_bytes(), ONCE),
            _ => set(&volume, node, name, any_bytes(&mut random)),
        };
        match random.below(6) {
            0..3 => bring_home(&volume, &told),
            3 => {
                half_apply_all(&world, &volume, &mut random);
                drop(volume);
                die_while_opening(&world, &mut random);
                volume = world.open().unwrap_or_else(|error| panic!("{told}: {error}")).0;
            }
            _ => {}
        }
    }
    bring_home(&volume, &format!("seed {seed}, at the end"));
    let seen = image_through(&volume);
    volume.detach().expect("a sound home");
    assert_eq!(image_of(&*world.home()), seen, "seed {seed}");
}

#[test]
fn attributes_come_home_in_whatever_order_they_were_set() {
    for_each_seed("labels::attributes_come_home", &[], 0..16, live);
}

#[test]
fn attributes_that_were_once_refused_come_home() {
    let world = World::new(1);
    let volume = world.open().expect("a new log").0;
    let node = file(&volume);
    for (number, (name, bytes)) in ONCE_REFUSED.into_iter().enumerate() {
        let _ = set(&volume, node, NAMES[name], bytes);
        bring_home(&volume, &format!("step {number}"));
    }
}

/// How long the value at home is.
fn at_home(world: &World, name: &str) -> Option<usize> {
    let value = world.home().xattr(Path::new("file"), name.as_bytes());
    value.expect("a sound home").map(|value| value.len())
}

/// A volume with a file whose attributes are at home, and one of them is to be longer.
fn longer_than_at_home(world: &World) -> (Opened, NodeId) {
    let volume = world.open().expect("a new log").0;
    let node = file(&volume);
    set(&volume, node, "user.a", 10).expect("room");
    set(&volume, node, "user.c", 3000).expect("room");
    bring_home(&volume, "before");
    set(&volume, node, "user.a", 200).expect("room");
    volume.log().commit(volume.log().marks().tail).expect("a sound disk");
    (volume, node)
}

/// Whoever dies then goes on serving, and nothing that was at home is lost.
#[test]
fn a_home_that_refuses_an_attribute_keeps_the_old_one_and_the_next_process_serves() {
    let world = World::new(2);
    let (mut volume, node) = longer_than_at_home(&world);
    world.files.set_xattr_bytes_max(500);
    for _ in 0..3 {
        volume.clean_step().expect_err("the home refuses it");
        assert_eq!((at_home(&world, "user.a"), at_home(&world, "user.c")), (Some(10), Some(3000)));
        drop(volume);
        volume = world.open().expect("it serves all the same").0;
        assert_eq!(volume.xattr(node, b"user.a").map(|value| value.len()), Ok(200));
    }
    let stuck = holdfast_volume::stuck_at(&*Below::new(&world.files, "log")).expect("a sound disk");
    assert!(stuck.is_some(), "people are told");
    world.files.set_xattr_bytes_max(4000);
    bring_home(&volume, "once the home takes it");
    assert_eq!(at_home(&world, "user.a"), Some(200));
}

#[test]
fn a_home_that_fails_while_all_attributes_are_set_anew_has_the_old_ones() {
    let world = World::new(3);
    let (volume, _) = longer_than_at_home(&world);
    let fail = |skip, errno| {
        let effect = Effect::Errno(errno);
        world.files.fail(Fault { operation: Operation::SetXattr, skip, effect });
    };
    // Both fit on an inode of the volume's own, and then the disk fails.
    fail(0, Errno::NOSPC.0);
    fail(2, Errno::IO.0);
    volume.clean_step().expect_err("the home fails");
    assert_eq!((at_home(&world, "user.a"), at_home(&world, "user.c")), (Some(10), Some(3000)));
    bring_home(&volume, "once it is sound");
    assert_eq!((at_home(&world, "user.a"), at_home(&world, "user.c")), (Some(200), Some(3000)));
}

/// How often the home was asked anything that has to do with attributes.
fn asked(world: &World) -> u64 {
    let kinds = [Operation::MakeDir, Operation::RemoveDir, Operation::Xattr];
    let changes = [Operation::SetXattr, Operation::RemoveXattr];
    kinds.into_iter().chain(changes).map(|kind| world.files.calls(kind)).sum()
}

/// Sets attributes of a file, `names` in turn, and now and then brings them home. Returns how often
/// the home was asked for that, bringing home not counted.
fn set_in_turn(world: &World, volume: &Opened, node: NodeId, names: u64, sets: u64) -> u64 {
    let mut sum = 0;
    for number in 0..sets {
        let before = asked(world);
        let name = format!("user.key{}", number % names);
        set(volume, node, &name, 8).expect("there is room");
        sum += asked(world) - before;
        if number % 100 == 99 {
            bring_home(volume, &format!("set {number}"));
        }
    }
    sum
}

#[test]
fn to_set_one_attribute_of_a_hundred_asks_the_home_a_few_times_at_most() {
    let world = World::new(4);
    let volume = world.open().expect("a new log").0;
    let node = file(&volume);
    let filled = set_in_turn(&world, &volume, node, 100, 100);
    assert!(filled < 4 * 100, "{filled} for a hundred new ones");
    let asked = set_in_turn(&world, &volume, node, 100, 1000);
    assert!(asked < 4 * 1000, "{asked} for a thousand others");
}

#[test]
fn files_with_attributes_of_the_same_names_ask_the_home_once() {
    let world = World::new(5);
    let volume = world.open().expect("a new log").0;
    let mut sums = Vec::new();
    for number in 0..20 {
        let name = format!("file{number}");
        let made = volume.make(ROOT, name.as_bytes(), &new_node(Kind::File, 0o600));
        let node = made.expect("a free name").node;
        sums.push(set_in_turn(&world, &volume, node, 60, 60));
        bring_home(&volume, &name);
    }
    assert!(sums[0] < 4 * 60, "the first of them: {}", sums[0]);
    assert!(sums[1..].iter().all(|asked| *asked < 10), "{sums:?}");
}
