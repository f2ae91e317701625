//! A full ring is always emptied: small changes that touch the same names over and over, in a ring
//! that they fill, with processes and machines that die.

use holdfast_io::Kind;
use holdfast_io::fake::{Effect, Fault, Operation, Random};
use holdfast_io::tree::{Errno, NewNode, NodeId, ROOT, RenameHow, SetAttributes, SetXattr, Tree};
use holdfast_volume::DirectoryVolume;

use crate::death::{die_while_opening, half_apply};
use crate::model::{image_of, image_through, timeless};
use crate::power::{Run, check_cuts, run_steps};
use crate::seeds::for_each_seed;
use crate::world::{ONCE, Opened, World, new_node};

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

/// Kinds of change that a life draws from.
const HABITS: u64 = 14;
/// Directories that come and go, and what comes and goes beside and below them.
const DIRECTORIES: [&str; 3] = ["d", "d/s", "e"];
const BELOW: [&str; 5] = ["a", "d/x", "d/s/x", "d/s", "e"];

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

    fn link(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        let node = self.at(from, |volume, parent, name| Ok(volume.lookup(parent, name)?.node))?;
        let linked = self.at(to, |volume, parent, name| volume.link(node, parent, name));
        self.volume.forget(node, 1 + u64::from(linked.is_ok()));
        linked.map(drop)
    }

    fn exchange(&mut self, one: &str, other: &str) -> Result<(), Errno> {
        self.rename_how(one, other, RenameHow::Exchange(ONCE))
    }

    fn remove(&mut self, name: &str) -> Result<(), Errno> {
        self.volume.remove_file(ROOT, name.as_bytes())?;
        (self.after)();
        Ok(())
    }

    fn write(&mut self, path: &str, number: u64) -> Result<(), Errno> {
        let node = self.at(path, |volume, parent, name| Ok(volume.lookup(parent, name)?.node))?;
        let written = self.volume.write(node, &number.to_le_bytes(), number % 64, false);
        (self.after)();
        self.volume.forget(node, 1);
        written
    }

    /// Does something to a name in a directory, which may be below the root.
    fn at<T>(
        &mut self,
        path: &str,
        act: impl FnOnce(&DirectoryVolume, NodeId, &[u8]) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut names: Vec<_> = path.split('/').collect();
        let name = names.pop().expect("a path has a name");
        let mut met = vec![ROOT];
        let mut found = Ok(());
        for name in names {
            match self.volume.lookup(met[met.len() - 1], name.as_bytes()) {
                Ok(known) => met.push(known.node),
                Err(error) => found = Err(error),
            }
        }
        let done = found.and_then(|()| act(self.volume, met[met.len() - 1], name.as_bytes()));
        (self.after)();
        met[1..].iter().for_each(|node| self.volume.forget(*node, 1));
        done
    }

    fn make_at(&mut self, path: &str, new: &NewNode<'_>) -> Result<(), Errno> {
        let node =
            self.at(path, |volume, parent, name| Ok(volume.make(parent, name, new)?.node))?;
        self.volume.forget(node, 1);
        Ok(())
    }

    fn remove_at(&mut self, path: &str) -> Result<(), Errno> {
        let removed = self.at(path, |volume, parent, name| volume.remove_dir(parent, name));
        removed.or_else(|_| self.at(path, |volume, parent, name| volume.remove_file(parent, name)))
    }

    fn rename_at(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        self.rename_how(from, to, RenameHow::Replace)
    }

    fn rename_how(&mut self, from: &str, to: &str, how: RenameHow) -> Result<(), Errno> {
        let after = &mut || {};
        self.at(to, |volume, parent, name| {
            let rename = |volume: &DirectoryVolume, old_parent, old: &[u8]| {
                volume.rename((old_parent, old), (parent, name), how)
            };
            Hand { volume, after }.at(from, rename)
        })
    }

    /// Gives a node another owner and an extended attribute.
    fn dress(&mut self, path: &str, number: u64) -> Result<(), Errno> {
        let owner = SetAttributes { uid: Some((number % 3) as u32), ..SetAttributes::default() };
        let node = self.at(path, |volume, parent, name| Ok(volume.lookup(parent, name)?.node))?;
        let dressed = self.volume.set_attributes(node, &owner).map(drop);
        (self.after)();
        let name = format!("user.{}", number % 2);
        let labelled = self.volume.set_xattr(
            node,
            name.as_bytes(),
            &number.to_le_bytes(),
            &SetXattr::default(),
        );
        (self.after)();
        self.volume.forget(node, 1);
        dressed.and(labelled)
    }

    /// Directories and what is in them come and go.
    fn change_below(&mut self, number: u64, random: &mut Random) -> Result<(), Errno> {
        let directory = DIRECTORIES[random.below(3) as usize];
        let [one, other] = [(); 2].map(|()| BELOW[random.below(5) as usize]);
        let link = NewNode { target: b"there", ..new_node(Kind::Symlink, 0o777) };
        match random.below(16) {
            0..4 => self.make_at(directory, &new_node(Kind::Directory, 0o700)),
            4..8 => self.remove_at(directory),
            8 | 9 => self.make_at(one, &new_node(Kind::File, 0o600)),
            10 => self.make_at(one, &link),
            11 | 12 => self.remove_at(one),
            13 => self.rename_at(one, other),
            _ => self.dress(directory, number),
        }
    }

    /// Files have several names, which come, go and change places.
    fn change_linked(&mut self, number: u64, random: &mut Random) -> Result<(), Errno> {
        let [one, other] = [(); 2].map(|()| BELOW[random.below(5) as usize]);
        match random.below(16) {
            0 => self.make_at("d", &new_node(Kind::Directory, 0o700)),
            1..4 => self.make_at(one, &new_node(Kind::File, 0o600)),
            4..8 => self.link(one, other),
            8..12 => self.remove_at(one),
            12 => self.rename_at(one, other),
            13 => self.write(one, number),
            14 => self.dress(one, number),
            _ => self.exchange(one, other),
        }
    }

    /// Directories are made, filled, renamed and removed.
    fn change_moved(&mut self, number: u64, random: &mut Random) -> Result<(), Errno> {
        let [one, other] = [(); 2].map(|()| DIRECTORIES[random.below(3) as usize]);
        match random.below(8) {
            0..4 => self.change_below(number, random),
            4 => self.exchange(one, other),
            5 => self.change_linked(number, random),
            _ => self.rename_at(one, other),
        }
    }

    /// Two files change places again and again, or two directories; one may be written to, or a
    /// further name come, move and go.
    fn change_back(&mut self, number: u64, random: &mut Random) -> Result<(), Errno> {
        const PAIRS: [(&str, &str); 4] = [("a", "c"), ("c", "a"), ("d", "e"), ("a", "d")];
        let (one, other) = PAIRS[random.below(4) as usize];
        match random.below(32) {
            0 => self.make_at(one, &new_node(Kind::Directory, 0o700)),
            1 => self.make(other),
            2 => self.write(one, number),
            3 => self.dress(one, number),
            4 => self.make_at("d/x", &new_node(Kind::File, 0o600)),
            5 => self.remove_at("d/x"),
            6..10 => self.link(one, "l"),
            10..14 => self.rename("l", ["m", "b"][random.below(2) as usize]),
            14 => self.rename("m", "l"),
            15..18 => self.remove("m"),
            18 => self.remove("l"),
            _ => self.exchange(one, other),
        }
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
            8 if number.is_multiple_of(2) => self.make_at("d", &new_node(Kind::Directory, 0o700)),
            8 => self.remove_at("d"),
            9 => self.change_below(number, random),
            10 => self.change_linked(number, random),
            11 => self.change_moved(number, random),
            12 => self.exchange(name, other),
            13 => self.change_back(number, random),
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
    let mut habit = seed % HABITS;
    for number in 0..changes {
        let told = format!("seed {seed}, change {number}, habit {habit}");
        if !volume.log().has_room(ROOM_BYTES) {
            make_room(&volume, &told);
        }
        Hand { volume: &volume, after: &mut || {} }.change(habit, number, &mut random);
        match random.below(2000) {
            0 => habit = random.below(HABITS),
            1 => drop(volume.drain_step()),
            2 => drop(volume.clean_step()),
            3 => {
                drop(volume);
                die_while_opening(&world, &mut random);
                volume = world.open().unwrap_or_else(|error| panic!("{told}: {error}")).0;
            }
            4 => {
                volume.log().commit(volume.log().marks().tail).expect("a sound disk");
                let seen = timeless(image_through(&volume));
                drop(volume);
                world = world.after_power_cut(number);
                die_while_opening(&world, &mut random);
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
    let (mut habit, mut number) = (seed % HABITS, 0);
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
                habit = random.below(HABITS);
                false
            }
            _ => false,
        }
    })
}

#[test]
fn a_power_cut_among_small_changes_leaves_a_prefix_of_them() {
    let once_failed = [47, 91, 160];
    for_each_seed("progress::a_power_cut_among_small_changes", &once_failed, 0..40, |seed| {
        let cuts = (1 + seed % 4..).step_by(4);
        check_cuts(&format!("seed {seed}"), cuts, |cut_at| run(seed, cut_at));
    });
}

/// A window is broken off somewhere, more exchanges follow, and then all that is remembered may be
/// lost: what is repeated has another number of them than what was begun.
fn change_places(seed: u64) {
    let (mut world, mut random) = (World::new(seed), Random::new(seed));
    let (mut volume, _) = world.open().expect("a new volume");
    begin(&volume);
    let told = format!("seed {seed}");
    empty(&volume, &told);
    for number in 0..12 {
        exchange_some(&volume, 1 + random.below(4), &told);
        let operation = HALFWAY[random.below(4) as usize];
        let effect = Effect::Errno(EIO);
        world.files.fail(Fault { operation, skip: random.below(8), effect });
        let _ = volume.clean_step();
        world.files.forget_faults();
        exchange_some(&volume, random.below(4), &told);
        let seen = timeless(image_through(&volume));
        match random.below(4) {
            0 => continue,
            1 => drop(volume),
            _ => {
                drop(volume);
                world = world.after_power_cut(number);
                die_while_opening(&world, &mut random);
            }
        }
        volume = world.open().unwrap_or_else(|error| panic!("{told}: {error}")).0;
        assert_eq!(timeless(image_through(&volume)), seen, "{told}, {number}");
    }
    empty(&volume, &told);
    let seen = image_through(&volume);
    volume.detach().unwrap_or_else(|error| panic!("{told}: {error}"));
    assert_eq!(image_of(&*world.home()), seen, "{told}: the home is not what was seen");
}

/// What a window that lets names change places does, and may not be able to do.
const HALFWAY: [Operation; 4] =
    [Operation::Exchange, Operation::SyncDir, Operation::Change, Operation::Metadata];
const EIO: i32 = 5;

fn exchange_some(volume: &Opened, times: u64, told: &str) {
    for _ in 0..times {
        let done = Hand { volume, after: &mut || {} }.exchange("a", "c");
        done.unwrap_or_else(|errno| panic!("{told}: {errno:?}"));
    }
    while volume.drain_step().unwrap_or_else(|error| panic!("{told}: {error}")) > 0 {}
}

#[test]
fn names_that_change_places_are_where_they_were_seen_whatever_was_begun_before() {
    for_each_seed("progress::names_that_change_places", &[], 0..200, change_places);
}

/// Things to do again and again to the same names, in pairs or more.
type Round = fn(&mut Hand<'_>) -> Result<(), Errno>;

const DIRECTORY: NewNode<'_> = new_node(Kind::Directory, 0o700);

const ROUNDS: [(&str, Round); 17] = [
    ("a directory is made and removed", |hand| {
        hand.make_at("d", &DIRECTORY)?;
        hand.remove_at("d")
    }),
    ("a directory is made, filled, emptied and removed", |hand| {
        hand.make_at("d", &DIRECTORY)?;
        hand.make_at("d/s", &DIRECTORY)?;
        hand.make_at("d/s/x", &new_node(Kind::File, 0o600))?;
        hand.remove_at("d/s/x")?;
        hand.remove_at("d/s")?;
        hand.remove_at("d")
    }),
    ("a link is made and removed", |hand| {
        hand.make_at("l", &NewNode { target: b"there", ..new_node(Kind::Symlink, 0o777) })?;
        hand.remove_at("l")
    }),
    ("a pipe is made and removed", |hand| {
        hand.make_at("p", &new_node(Kind::Fifo, 0o600))?;
        hand.remove_at("p")
    }),
    ("a file is put in the place of another", |hand| {
        hand.make("t")?;
        hand.rename("t", "a")
    }),
    ("a file and a directory are made and removed beside that", |hand| {
        hand.make("t")?;
        hand.make_at("d", &DIRECTORY)?;
        hand.rename("t", "a")?;
        hand.make("f")?;
        hand.remove("f")?;
        hand.remove_at("d")
    }),
    ("a file gets a second name and loses it", |hand| {
        hand.link("a", "l")?;
        hand.remove("l")
    }),
    ("a lock is a second name of a new file", |hand| {
        hand.make("t")?;
        hand.link("t", "l")?;
        hand.remove("t")?;
        hand.remove("l")
    }),
    ("a lock is a second name of a new file that keeps the first", |hand| {
        hand.make("t")?;
        hand.link("t", "l")?;
        hand.remove("l")?;
        hand.remove("t")
    }),
    ("a letter is delivered by a second name, read and removed", |hand| {
        hand.make("t")?;
        hand.link("t", "l")?;
        hand.remove("t")?;
        hand.rename("l", "m")?;
        hand.remove("m")
    }),
    ("a new directory is renamed and removed", |hand| {
        hand.make_at("d", &DIRECTORY)?;
        hand.rename("d", "e")?;
        hand.remove_at("e")
    }),
    ("a new directory is filled, renamed, emptied and removed", |hand| {
        hand.make_at("d", &DIRECTORY)?;
        hand.make_at("d/x", &new_node(Kind::File, 0o600))?;
        hand.rename("d", "e")?;
        hand.remove_at("e/x")?;
        hand.remove_at("e")
    }),
    ("an old directory is renamed to and fro", |hand| {
        let _ = hand.make_at("f", &DIRECTORY);
        hand.rename("f", "g")?;
        hand.rename("g", "f")
    }),
    ("two files change places", |hand| hand.exchange("a", "c")),
    ("two directories change places, and a file is written beside them", |hand| {
        let _ = hand.make_at("d", &DIRECTORY).and_then(|()| hand.make_at("e", &DIRECTORY));
        hand.exchange("e", "d")?;
        hand.write("a", 7)
    }),
    ("files change places in directories of theirs, said from either side", |hand| {
        let _ = hand.make_at("d", &DIRECTORY).and_then(|()| hand.make_at("d/x", &DIRECTORY));
        hand.exchange("a", "d/x")?;
        hand.write("c", 7)?;
        hand.exchange("d/x", "a")
    }),
    ("a further name of an old file is renamed and removed", |hand| {
        hand.link("a", "l")?;
        hand.rename("l", "m")?;
        hand.remove("m")
    }),
];

/// Syncs of every kind that the machine has done.
fn syncs(world: &World) -> u64 {
    let kinds = [Operation::SyncData, Operation::SyncDir, Operation::SyncAll];
    kinds.iter().map(|kind| world.files.calls(*kind)).sum()
}

/// A window is bounded by its bytes, and not by how often names are used.
#[test]
fn the_same_names_used_again_and_again_cost_few_syncs() {
    for (told, round) in ROUNDS {
        let world = World::new(1);
        let (volume, _) = world.open().expect("a new volume");
        begin(&volume);
        let before = syncs(&world);
        for _ in 0..10_000 {
            if !volume.log().has_room(8 * ROOM_BYTES) {
                make_room(&volume, told);
            }
            round(&mut Hand { volume: &volume, after: &mut || {} }).expect("there is room");
        }
        empty(&volume, told);
        let syncs = syncs(&world) - before;
        assert!(syncs < 1000, "{told}: {syncs} syncs");
    }
}
