//! The process dies, the region stays: nothing acknowledged is lost, and node numbers live on.

use holdfast_io::Files;
use holdfast_io::fake::{Effect, Fault, Operation, Random};
use holdfast_io::tree::{NodeId, ROOT, Tree};
use holdfast_volume::DirectoryVolume;
use std::path::Path;

use crate::model::{Image, Life, image_of, image_through, timeless, walk};
use crate::seeds::for_each_seed;
use crate::world::{Opened, World};

/// Seeds of the plain life that found something once.
const ONCE_FAILED: [u64; 9] = [10, 36, 136, 239, 355, 462, 464, 2188, 4428];
/// The same of the full life.
const FULL_ONCE_FAILED: [u64; 5] = [27, 251, 278, 1299, 1441];

/// The same of the rich life.
const RICH_ONCE_FAILED: [u64; 5] = [0, 24, 433, 736, 1107];

/// What may fail in the middle of a window.
const STEPS: [Operation; 7] = [
    Operation::Rename,
    Operation::RemoveFile,
    Operation::MakeNode,
    Operation::MakeDir,
    Operation::Link,
    Operation::SetLen,
    Operation::Change,
];
/// The same of a rich life.
const RICH_STEPS: [Operation; 3] =
    [Operation::SetXattr, Operation::RemoveXattr, Operation::Exchange];

/// Applies a part of a window, as a process does that dies while it cleans.
pub(crate) fn half_apply(world: &World, volume: &Opened, random: &mut Random) {
    half_apply_among(&STEPS, world, volume, random);
}

/// The same with what only a rich life has, if it is one.
pub(crate) fn half_apply_for(life: &mut Life, world: &World, volume: &Opened) {
    match life.is_rich() {
        true => half_apply_all(world, volume, life.random()),
        false => half_apply(world, volume, life.random()),
    }
}

/// The same with whatever of the two may be met.
pub(crate) fn half_apply_all(world: &World, volume: &Opened, random: &mut Random) {
    half_apply_among(&[&STEPS[..], &RICH_STEPS].concat(), world, volume, random);
}

fn half_apply_among(steps: &[Operation], world: &World, volume: &Opened, random: &mut Random) {
    if random.chance(60) {
        if volume.log().commit(volume.log().marks().tail).is_err() {
            return; // the power is gone
        }
        let operation = steps[random.below(steps.len() as u64) as usize];
        let fault = Fault { operation, skip: random.below(3), effect: Effect::Errno(5) };
        world.files.fail(fault);
        while volume.clean_step().is_ok_and(|cleaned| !cleaned.is_idle()) {}
        world.files.forget_faults();
    }
}

/// What an opening may be at when its process dies.
const OPENING_STEPS: [Operation; 4] =
    [Operation::Metadata, Operation::ReadDir, Operation::ReadLink, Operation::SyncDir];

/// Opens as processes do that die in the middle of it, or right behind it: what one of them has
/// done to the home, the next has to know again.
pub(crate) fn die_while_opening(world: &World, random: &mut Random) {
    let steps = [&STEPS[..], &RICH_STEPS, &OPENING_STEPS].concat();
    for _ in 0..random.below(3) {
        let operation = steps[random.below(steps.len() as u64) as usize];
        let fault = Fault { operation, skip: random.below(8), effect: Effect::Errno(5) };
        world.files.fail(fault);
        drop(world.open());
        world.files.forget_faults();
    }
}

/// Some changes more, which know of the home what a window that failed has made of it.
fn live_on(life: &mut Life, volume: &DirectoryVolume) {
    for _ in 0..life.random().below(6) {
        life.step(volume);
        life.step_more(volume);
        life.step_rich(volume);
    }
}

/// What must be the same before and after a death.
struct Seen {
    image: Image,
    nodes: Vec<(String, NodeId)>,
    opened: Vec<Vec<u8>>,
}

fn see(volume: &DirectoryVolume, life: &Life) -> Seen {
    let image = image_through(volume);
    let number = |path: &String| walk(volume, path).expect("a path just listed");
    let nodes = image.keys().map(|path| (path.clone(), number(path))).collect();
    Seen { image, nodes, opened: life.contents(volume) }
}

fn check(volume: &DirectoryVolume, life: &Life, seen: &Seen, told: &str) {
    for (path, node) in &seen.nodes {
        let known = volume.attributes(*node);
        known.unwrap_or_else(|errno| panic!("{told}: {path} is {errno:?} by number"));
    }
    assert_eq!(seen.image, image_through(volume), "{told}: changed by a death");
    assert_eq!(seen.opened, life.contents(volume), "{told}: an open file changed");
}

/// Lives a random life with deaths in it. Returns how often it died with work in memory only.
fn live(seed: u64, mut life: Life) -> u64 {
    // What the roster has no room for is found again all the same.
    let small = seed.is_multiple_of(2);
    let world = if small { World::with_small_roster(seed) } else { World::new(seed) };
    let (mut volume, _) = world.open().expect("a new volume");
    let mut deaths = 0;
    for step in 0..120 {
        world.clock.advance_ns(1_000_003);
        life.step(&volume);
        life.step_more(&volume);
        life.step_rich(&volume);
        match life.random().below(12) {
            0 => drop(volume.drain_step().expect("a sound disk")),
            1 => drop(volume.clean_step().expect("a sound home")),
            2 => {
                half_apply_for(&mut life, &world, &volume);
                live_on(&mut life, &volume);
                let told = format!("seed {seed}, step {step}");
                let seen = see(&volume, &life);
                let dirty = volume.log().marks().tail > volume.log().marks().durable;
                deaths += u64::from(dirty);
                drop(volume);
                die_while_opening(&world, life.random());
                (volume, _) = world.open().unwrap_or_else(|error| panic!("{told}: {error}"));
                check(&volume, &life, &seen, &told);
            }
            _ => {}
        }
    }
    let through = image_through(&volume);
    let root_ns = volume.attributes(ROOT).expect("the root").modified_ns;
    volume.detach().expect("a sound disk");
    assert_eq!(image_of(&*world.home()), through, "seed {seed}: the home is not what was seen");
    let root = world.home().metadata(Path::new("")).expect("the root");
    assert_eq!(root.modified_ns, root_ns, "seed {seed}: the root's time is not what was seen");
    deaths
}

#[test]
fn a_death_changes_nothing_that_was_acknowledged() {
    let deaths = std::cell::Cell::new(0);
    for_each_seed("death::a_death_changes_nothing", &ONCE_FAILED, 0..400, |seed| {
        deaths.set(deaths.get() + live(seed, Life::plain(seed)));
    });
    println!("{} deaths had something to lose", deaths.get());
}

#[test]
fn a_death_with_open_and_forgotten_files_changes_nothing_either() {
    for_each_seed("death::a_death_with_open", &FULL_ONCE_FAILED, 0..400, |seed| {
        live(seed, Life::full(seed));
    });
}

#[test]
fn nor_does_a_death_with_extended_attributes() {
    for_each_seed("death::nor_does_a_death_with_extended", &RICH_ONCE_FAILED, 0..120, |seed| {
        live(seed, Life::rich(seed));
    });
}

/// Lives a random life in which the memory goes with the process, in the middle of a window or
/// behind it: the mark that says that it is applied was in that memory.
fn live_without_memory(seed: u64, mut life: Life) {
    let mut world = World::new(seed);
    let (mut volume, _) = world.open().expect("a new volume");
    for step in 0..120 {
        world.clock.advance_ns(1_000_003);
        life.step(&volume);
        life.step_more(&volume);
        if life.random().below(8) > 0 {
            continue;
        }
        let told = format!("seed {seed}, step {step}");
        volume.log().commit(volume.log().marks().tail).expect("a sound disk");
        match life.random().below(3) {
            0 => {
                half_apply(&world, &volume, life.random());
                live_on(&mut life, &volume);
                volume.log().commit(volume.log().marks().tail).expect("a sound disk");
            }
            1 => drop(volume.clean_step().expect("a sound home")),
            _ => while volume.clean_step().is_ok_and(|cleaned| !cleaned.is_idle()) {},
        }
        let image = timeless(image_through(&volume));
        drop(volume);
        world = world.without_memory();
        die_while_opening(&world, life.random());
        (volume, _) = world.open().unwrap_or_else(|error| panic!("{told}: {error}"));
        assert_eq!(image, timeless(image_through(&volume)), "{told}: changed by a death");
    }
    let through = timeless(image_through(&volume));
    volume.detach().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let home = timeless(image_of(&*world.home()));
    assert_eq!(home, through, "seed {seed}: the home is not what was seen");
}

#[test]
fn a_death_that_takes_the_memory_along_finds_its_own_files_in_the_home() {
    for_each_seed("death::a_death_that_takes", &[878, 1519], 0..400, |seed| {
        live_without_memory(seed, Life::plain(seed));
    });
}

/// The checker must notice a region that has lost a change.
#[test]
#[should_panic(expected = "changed by a death")]
fn canary_a_change_that_the_region_lost_is_noticed() {
    let world = World::new(1);
    let mut life = Life::plain(1);
    let (volume, _) = world.open().expect("a new volume");
    let made = (0..20).filter(|_| life.step(&volume)).count();
    assert!(made > 2, "a life with too few changes");
    let seen = see(&volume, &life);
    drop(volume);
    let other = World::new(1);
    let (volume, _) = other.open().expect("a new volume");
    let life = Life::plain(1);
    let seen = Seen { nodes: Vec::new(), ..seen };
    check(&volume, &life, &seen, "canary");
}
