//! A full ring is always emptied: small changes that touch the same names over and over, in a ring
//! that they fill, with processes and machines that die.

use holdfast_io::Kind;
use holdfast_io::fake::Random;
use holdfast_volume::{DirectoryVolume, Errno, ROOT, RenameHow, Tree};

use crate::death::half_apply;
use crate::model::{image_of, image_through, timeless};
use crate::power::{Run, check_cuts, run_steps};
use crate::seeds::for_each_seed;
use crate::world::{Opened, World, new_node};

/// Small changes in one life.
const CHANGES: u64 = 20_000;
/// What a change may need at the most: its frame, and the pad in front of it.
const ROOM_BYTES: u64 = 1024;
/// Steps that empty a ring, at the most: each window has a frame, and each frame a header.
fn steps_max(volume: &Opened) -> u64 {
    let marks = volume.log().marks();
    marks.tail.since(marks.released) / 48 + 8
}

/// Names that everything happens to.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Somebody who changes a volume, and what is done after each of his changes.
struct Hand<'a> {
    volume: &'a DirectoryVolume,
    after: &'a mut dyn FnMut(),
}

impl Hand<'_> {
    fn make(&mut self, name: &str) -> Result<(), Errno> {
        let new = new_node(Kind::File, 0o600);
        let node = self.volume.make(ROOT, name.as_bytes(), &new)?.node;
        (self.after)();
        self.volume.write(node, name.as_bytes(), 0, false)?;
        (self.after)();
        self.volume.forget(node, 1);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        let (from, to) = ((ROOT, from.as_bytes()), (ROOT, to.as_bytes()));
        self.volume.rename(from, to, RenameHow::Replace)?;
        (self.after)();
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), Errno> {
        self.volume.remove_file(ROOT, name.as_bytes())?;
        (self.after)();
        Ok(())
    }

    fn write(&mut self, name: &str, number: u64) -> Result<(), Errno> {
        let node = self.volume.lookup(ROOT, name.as_bytes())?.node;
        let written = self.volume.write(node, &number.to_le_bytes(), number % 64, false);
        (self.after)();
        self.volume.forget(node, 1);
        written
    }

    /// One small change of a kind that programs repeat without end; it may be refused.
    fn change(&mut self, habit: u64, number: u64, random: &mut Random) {
        let name = NAMES[random.below(5) as usize];
        let other = NAMES[random.below(5) as usize];
        let _ = match habit {
            0 if number.is_multiple_of(2) => self.rename("a", "b"),
            0 => self.rename("b", "a"),
            // A new version is written aside and put in the place of the old one.
            1 => self.make("new").and_then(|()| self.rename("new", name)),
            // Logs are turned over.
            2 => {
                let older = self.rename("b", "c");
                older.and(self.rename("a", "b")).and_then(|()| self.make("a"))
            }
            3 => self.rename(name, other),
            4 => self.remove(name).and_then(|()| self.make(name)),
            5 => self.write(name, number),
            6 => self.make(name),
            _ => self.remove(name),
        };
    }
}

/// Two files, as every life begins.
fn begin(volume: &DirectoryVolume) {
    let mut hand = Hand { volume, after: &mut || {} };
    for name in ["a", "c"] {
        hand.make(name).expect("a new volume");
    }
}

/// Steps of the drain and the cleaner until there is room, while nobody changes anything.
fn make_room(volume: &Opened, told: &str) {
    let most = steps_max(volume);
    for _ in 0..most {
        volume.drain_step().unwrap_or_else(|error| panic!("{told}: {error}"));
        volume.clean_step().unwrap_or_else(|error| panic!("{told}: {error}"));
        if volume.log().has_room(ROOM_BYTES) {
            return;
        }
    }
    panic!("{told}: no room after {most} steps, {:?}", volume.log().marks());
}

/// With users stopped, everything comes home in a bounded number of steps.
fn empty(volume: &Opened, told: &str) {
    let most = steps_max(volume);
    for _ in 0..most {
        let drained = volume.drain_step().unwrap_or_else(|error| panic!("{told}: {error}"));
        let cleaned = volume.clean_step().unwrap_or_else(|error| panic!("{told}: {error}"));
        if drained == 0 && cleaned.is_idle() {
            return;
        }
    }
    panic!("{told}: not empty after {most} steps, {:?}", volume.log().marks());
}

/// A life of small changes. Somebody cleans now and then, or nobody until the ring is full.
fn live(seed: u64, changes: u64) {
    let mut random = Random::new(seed);
    let mut world = World::new(seed);
    let (mut volume, _) = world.open().expect("a new volume");
    begin(&volume);
    let mut habit = seed % 8;
    for number in 0..changes {
        let told = format!("seed {seed}, change {number}, habit {habit}");
        if !volume.log().has_room(ROOM_BYTES) {
            make_room(&volume, &told);
        }
        Hand { volume: &volume, after: &mut || {} }.change(habit, number, &mut random);
        match random.below(2000) {
            0 => habit = random.below(8),
            1 => drop(volume.drain_step()),
            2 => drop(volume.clean_step()),
            3 => {
                drop(volume);
                volume = world.open().unwrap_or_else(|error| panic!("{told}: {error}")).0;
            }
            4 => {
                volume.log().commit(volume.log().marks().tail).expect("a sound disk");
                let seen = timeless(image_through(&volume));
                drop(volume);
                world = world.after_power_cut(number);
                volume = world.open().unwrap_or_else(|error| panic!("{told}: {error}")).0;
                assert_eq!(timeless(image_through(&volume)), seen, "{told}: lost");
            }
            _ => {}
        }
    }
    let told = format!("seed {seed}, at the end");
    empty(&volume, &told);
    let seen = image_through(&volume);
    volume.detach().unwrap_or_else(|error| panic!("{told}: {error}"));
    assert_eq!(image_of(&*world.home()), seen, "{told}: the home is not what was seen");
}

#[test]
fn small_changes_without_end_always_go_on() {
    for_each_seed("progress::small_changes_without_end", &[], 0..24, |seed| {
        live(seed, CHANGES);
    });
}

/// A short life of small changes, until operation `cut_at` of the disk.
fn run(seed: u64, cut_at: u64) -> Run {
    let mut random = Random::new(seed);
    let (mut habit, mut number) = (seed % 8, 0);
    run_steps(seed, Some(cut_at), |world, volume, note| {
        let mut hand = Hand { volume, after: note };
        match number {
            // Refused only when the power has gone.
            0 => drop(hand.make("a").and_then(|()| hand.make("c"))),
            _ => hand.change(habit, number, &mut random),
        }
        number += 1;
        match random.below(12) {
            0 => volume.drain_step().is_err(),
            1 => volume.clean_step().is_err(),
            2 => {
                half_apply(world, volume, &mut random);
                false
            }
            3 => {
                habit = random.below(8);
                false
            }
            _ => false,
        }
    })
}

#[test]
fn a_power_cut_among_small_changes_leaves_a_prefix_of_them() {
    for_each_seed("progress::a_power_cut_among_small_changes", &[], 0..40, |seed| {
        let cuts = (1 + seed % 4..).step_by(4);
        check_cuts(&format!("seed {seed}"), cuts, |cut_at| run(seed, cut_at));
    });
}
