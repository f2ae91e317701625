//! Directories that are moved and change places, with all that is below them, through deaths.
//!
//! A record names paths of its moment, and the home has some of what is meant elsewhere: whoever
//! takes the one for the other gives a file the name, the bytes or the number of another.

use holdfast_io::Kind;
use holdfast_io::fake::Random;
use holdfast_io::tree::{Errno, NodeId};
use holdfast_volume::DirectoryVolume;

use crate::death::{die_while_opening, half_apply_all};
use crate::model::{Doing, Image, apply, image_of, image_through, walk};
use crate::power::{Run, check_cuts, run_steps};
use crate::seeds::for_each_seed;
use crate::world::World;

/// Few names, so that each stands for many nodes in turn, at several depths.
const NAMES: [&str; 8] = ["a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a"];

/// A change drawn at random. What would make most of the names useless is drawn less often.
fn any_move(random: &mut Random) -> Doing {
    let name = |random: &mut Random| NAMES[random.below(8) as usize].to_string();
    let (path, to) = (name(random), name(random));
    let (kind, byte) = (Kind::Directory, random.below(8) as u8);
    match random.below(16) {
        0 | 1 => Doing::Make { path: "d".into(), kind },
        2 | 3 => Doing::Make { path: "d/e".into(), kind },
        4 => Doing::Make { path, kind },
        5 => Doing::Make { path, kind: Kind::Symlink },
        6 | 7 => Doing::Make { path, kind: Kind::File },
        8 => Doing::Write { path, offset: 0, byte, bytes: 1 + random.below(9) as usize },
        9 => Doing::SetMode { path, mode: 0o700 + u32::from(byte) },
        10 => Doing::Link { from: path, to },
        11 => Doing::Remove { path },
        12 => Doing::RemoveDir { path },
        13 => Doing::Rename { from: path, to },
        _ => Doing::Exchange { from: path, to },
    }
}

/// What must be the same before and after a death: what programs see, and by which numbers.
fn see(volume: &DirectoryVolume) -> (Image, Vec<Result<NodeId, Errno>>) {
    (image_through(volume), NAMES.iter().map(|name| walk(volume, name)).collect())
}

fn live(seed: u64) {
    let mut random = Random::new(seed);
    let world = World::new(seed);
    let (mut volume, _) = world.open().expect("a new volume");
    for step in 0..150 {
        world.clock.advance_ns(1_000_003);
        let doing = any_move(&mut random);
        let _ = apply(&volume, &doing);
        match random.below(20) {
            0 => drop(volume.drain_step().expect("a sound disk")),
            1 => drop(volume.clean_step().expect("a sound home")),
            2 | 3 => {
                let told = format!("seed {seed}, step {step}");
                let seen = see(&volume);
                half_apply_all(&world, &volume, &mut random);
                drop(volume);
                die_while_opening(&world, &mut random);
                (volume, _) = world.open().unwrap_or_else(|error| panic!("{told}: {error}"));
                assert_eq!(see(&volume), seen, "{told}: changed by a death");
            }
            _ => {}
        }
    }
    let seen = image_through(&volume);
    volume.detach().expect("a sound disk");
    assert_eq!(image_of(&*world.home()), seen, "seed {seed}: the home is not what was seen");
}

#[test]
fn what_is_below_a_directory_that_moves_stays_below_it_through_deaths() {
    for_each_seed("moved::what_is_below_a_directory", &[], 0..400, live);
}

/// The same until operation `cut_at` of the disk.
fn run(seed: u64, cut_at: u64) -> Run {
    let mut random = Random::new(seed);
    run_steps(seed, Some(cut_at), |world, volume, note| {
        world.clock.advance_ns(1_000_003);
        let doing = any_move(&mut random);
        let _ = apply(volume, &doing);
        note();
        match random.below(8) {
            0 => volume.drain_step().is_err(),
            1 => volume.clean_step().is_err(),
            2 => {
                half_apply_all(world, volume, &mut random);
                false
            }
            _ => false,
        }
    })
}

#[test]
fn a_power_cut_among_moves_of_directories_leaves_a_prefix_of_them() {
    for_each_seed("moved::a_power_cut_among_moves", &[], 0..40, |seed| {
        let cuts = (1 + seed % 4..).step_by(4);
        check_cuts(&format!("seed {seed}"), cuts, |cut_at| run(seed, cut_at));
    });
}
