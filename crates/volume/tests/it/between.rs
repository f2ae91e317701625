//! The process dies between any two of its notes, while programs look for what is there.

use std::sync::atomic::Ordering;

use holdfast_io::fake::Random;
use holdfast_io::tree::{NodeId, Tree};
use holdfast_volume::DirectoryVolume;

use crate::model::{Image, Life, image_through, walk};
use crate::roster::open_on;
use crate::seeds::for_each_seed;
use crate::world::{Below, World};

/// Processes that die one after the other on one memory.
const DEATHS: u64 = 4;
/// Notes that one of them lives for at the most: a few names of a few nodes.
const NOTES_MAX: u64 = 40;

/// A home in which a random life has been, and nothing that waits for it.
fn lived_in(seed: u64, world: &World) -> (Life, Image) {
    let mut life = Life::full(seed);
    let (volume, _) = world.open().expect("a new volume");
    for _ in 0..60 {
        life.step(&volume);
        life.step_more(&volume);
        volume.drain_step().expect("a sound disk");
        volume.clean_step().expect("a sound home");
    }
    let image = image_through(&volume);
    volume.detach().expect("a sound disk");
    (life, image)
}

/// Looks for what is there, in any order, until the process is dead. Returns what was told.
fn look(volume: &DirectoryVolume, image: &Image, random: &mut Random) -> Vec<(String, NodeId)> {
    let paths: Vec<&String> = image.keys().collect();
    let any = |random: &mut Random| paths[random.below(paths.len() as u64) as usize].clone();
    let looked = (0..2 * paths.len()).map_while(|_| {
        let path = any(random);
        walk(volume, &path).ok().map(|node| (path, node))
    });
    looked.collect()
}

fn die_between(seed: u64) {
    let small = seed.is_multiple_of(2);
    let world = if small { World::with_small_roster(seed) } else { World::new(seed) };
    let (mut life, image) = lived_in(seed, &world);
    if image.is_empty() {
        return;
    }
    let home = |has_no_room: bool| match has_no_room {
        true => Below::without_room_for_rosters(&world.files, "home"),
        false => world.home(),
    };
    let mut told = Vec::new();
    for death in 0..DEATHS {
        let (log, volume) = open_on(&world, home(seed.is_multiple_of(4)));
        for (path, node) in &told {
            let known = Tree::attributes(&volume, *node);
            known.unwrap_or_else(|errno| panic!("seed {seed}, {death}: {path} is {errno:?}"));
        }
        log.notes_left.store(life.random().below(NOTES_MAX), Ordering::Relaxed);
        told.extend(look(&volume, &image, life.random()));
    }
    let (_, volume) = open_on(&world, world.home());
    for path in image.keys() {
        let found = walk(&volume, path).and_then(|node| Tree::attributes(&volume, node));
        found.unwrap_or_else(|errno| panic!("seed {seed}: {path} is {errno:?}"));
    }
    assert_eq!(image_through(&volume), image, "seed {seed}");
}

#[test]
fn a_death_between_two_notes_makes_no_name_stale() {
    for_each_seed("between::a_death_between_two_notes", &[], 0..200, die_between);
}
