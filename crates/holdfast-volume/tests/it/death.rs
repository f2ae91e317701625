//! The process dies, the region stays: nothing acknowledged is lost, and node numbers live on.

use holdfast_io::fake::{Effect, Fault, Operation, Random};
use holdfast_volume::{DirectoryVolume, NodeId, Tree};

use crate::model::{any_doing, apply, image_of, image_through, walk};
use crate::world::World;

/// Applies a part of a window, as a process does that dies while it cleans.
fn half_apply(world: &World, volume: &DirectoryVolume, random: &mut Random) {
    const STEPS: [Operation; 7] = [
        Operation::Rename,
        Operation::RemoveFile,
        Operation::MakeNode,
        Operation::MakeDir,
        Operation::Link,
        Operation::SetLen,
        Operation::Change,
    ];
    if random.chance(60) {
        volume.log().commit(volume.log().marks().tail).expect("a sound disk");
        let operation = STEPS[random.below(7) as usize];
        let fault = Fault { operation, skip: random.below(3), effect: Effect::Errno(5) };
        world.files.fail(fault);
        while volume.clean_step().is_ok_and(|cleaned| !cleaned.is_idle()) {}
        world.files.forget_faults();
    }
}

/// Lives a random life with deaths in it. Returns how often it died with work in memory only.
fn live(seed: u64) -> u64 {
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let world = World::new(seed);
    let (mut volume, _) = world.open().expect("a new volume");
    let mut deaths = 0;
    for step in 0..120 {
        let doing = any_doing(&mut random);
        let _ = apply(&volume, &doing);
        match random.below(12) {
            0 => drop(volume.drain_step().expect("a sound disk")),
            1 => drop(volume.clean_step().expect("a sound home")),
            2 => {
                half_apply(&world, &volume, &mut random);
                let before = image_through(&volume);
                let known: Vec<(String, NodeId)> = before
                    .keys()
                    .map(|path| (path.clone(), walk(&volume, path).expect("a path just listed")))
                    .collect();
                let dirty = volume.log().marks().tail > volume.log().marks().durable;
                deaths += u64::from(dirty);
                drop(volume);
                (volume, _) = world
                    .open()
                    .unwrap_or_else(|error| panic!("seed {seed}, step {step}: {error}"));
                for (path, node) in known {
                    volume.attributes(node).unwrap_or_else(|errno| {
                        panic!("seed {seed}, step {step}: {path} is {errno:?} by number")
                    });
                }
                let after = image_through(&volume);
                assert_eq!(before, after, "seed {seed}, step {step}: changed by a death");
            }
            _ => {}
        }
    }
    let through = image_through(&volume);
    volume.detach().expect("a sound disk");
    assert_eq!(image_of(&*world.home()), through, "seed {seed}: the home is not what was seen");
    deaths
}

#[test]
fn a_death_changes_nothing_that_was_acknowledged() {
    let deaths: u64 = (0..400).map(live).sum();
    assert!(deaths > 100, "only {deaths} deaths had anything to lose");
}
