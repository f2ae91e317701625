//! What changes of names cost the home is counted against who made them: another, who writes
//! meanwhile, waits for few of the syncs that they are.

use holdfast_io::fake::{Operation, Random};
use holdfast_io::tree::RenameHow::{self, Exchange, Replace};
use holdfast_io::tree::{Asker, Errno, NewNode, NodeId, ROOT, Tree, Waits, on_behalf_of};
use holdfast_io::{Files, Kind};

use crate::seeds::for_each_seed;
use crate::world::{ONCE, Opened, World, new_node};

const HEAVY: u32 = 1001;
const LIGHT: u32 = 1002;
const DIRECTORY: NewNode<'static> = new_node(Kind::Directory, 0o700);
const FILE: NewNode<'static> = new_node(Kind::File, 0o600);
/// Rounds of a habit, if nothing makes its user wait.
const ROUNDS: u64 = 1_000;
/// Syncs of home and log that somebody waits for at the most who writes on and on: those of the
/// one or two windows of names that another may have waiting in a ring of 1 MiB, and of what brings
/// his own bytes home, which are some eighty beside somebody who wants nothing dear.
const SYNCS_MAX: u64 = 128;
/// Bytes that somebody writes who waits for the ring then, a part at a time.
const LIGHT_BYTES: u64 = 1 << 20;
const PART_BYTES: usize = 8 << 10;
/// Names that the home has, of files and of directories.
const OLD: [&str; 6] = ["a", "b", "c", "d/a", "e/b", "e/c"];
const DIRECTORIES: [&str; 4] = ["d", "e", "f", "g"];
/// Where something may come to be.
const NEW: [&str; 6] = ["t", "u", "d/t", "e/u", "f/t", "h"];

fn as_user<T>(user: u32, work: impl FnOnce() -> T) -> T {
    on_behalf_of(Asker { user: Some(user), waits: Waits::Never }, work)
}

/// Syncs of every kind that the machine has done.
fn syncs(world: &World) -> u64 {
    let kinds = [Operation::SyncData, Operation::SyncDir, Operation::SyncAll];
    kinds.iter().map(|kind| world.files.calls(*kind)).sum()
}

/// Somebody who changes names. What fails for another reason than that he is to wait fails.
struct Hand<'a> {
    volume: &'a Opened,
    /// The kernel forgets what it was told of.
    forgets: bool,
}

type Done = Result<(), Errno>;

impl Hand<'_> {
    fn at<T>(
        &self,
        path: &str,
        act: impl FnOnce(NodeId, &[u8]) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        if above.is_empty() {
            return act(ROOT, name.as_bytes());
        }
        let parent = self.node(above)?;
        let acted = act(parent, name.as_bytes());
        self.volume.forget(parent, 1);
        acted
    }

    fn node(&self, path: &str) -> Result<NodeId, Errno> {
        self.at(path, |parent, name| Ok(self.volume.lookup(parent, name)?.node))
    }

    fn told(&self, node: NodeId) {
        if self.forgets {
            self.volume.forget(node, 1);
        }
    }

    fn make(&self, path: &str, new: &NewNode<'_>) -> Done {
        let made = self.at(path, |parent, name| self.volume.make(parent, name, new));
        made.map(|made| self.told(made.node))
    }

    fn write(&self, path: &str, byte: u8) -> Done {
        let node = self.node(path)?;
        let written = self.volume.write(node, &[byte; 16], u64::from(byte), false);
        self.told(node);
        written
    }

    fn rename(&self, from: &str, to: &str) -> Done {
        self.move_to(from, to, Replace)
    }

    fn move_to(&self, from: &str, to: &str, how: RenameHow) -> Done {
        self.at(from, |parent, name| {
            self.at(to, |to_parent, to_name| {
                // As the kernel, which looks at what it is about to replace.
                if let Ok(there) = self.volume.lookup(to_parent, to_name) {
                    self.told(there.node);
                }
                self.volume.rename((parent, name), (to_parent, to_name), how)
            })
        })
    }

    fn link(&self, from: &str, to: &str) -> Done {
        let node = self.node(from)?;
        let linked = self.at(to, |parent, name| self.volume.link(node, parent, name));
        self.told(node);
        linked.map(|_| self.told(node))
    }

    fn remove(&self, path: &str) -> Done {
        self.at(path, |parent, name| self.volume.remove_file(parent, name))
    }

    fn remove_dir(&self, path: &str) -> Done {
        self.at(path, |parent, name| self.volume.remove_dir(parent, name))
    }
}

/// One round of what somebody does again and again.
type Habit = fn(&Hand<'_>, u64, &mut Random) -> Done;

/// What programs do, or somebody who wants to be dear. All names are the home's at first.
const HABITS: [(&str, Habit); 15] = [
    ("files are moved in a circle by a third name", |hand, _, _| {
        hand.rename("a", "t")?;
        hand.rename("b", "a")?;
        hand.rename("t", "b")
    }),
    ("a file is moved away, another made at its name, and it is moved back", |hand, _, _| {
        hand.rename("a", "t")?;
        hand.make("a", &FILE)?;
        hand.rename("t", "a")
    }),
    ("a file gets a second name, loses its first, and gets that back", |hand, _, _| {
        hand.link("a", "t")?;
        hand.remove("a")?;
        hand.rename("t", "a")
    }),
    ("a directory is put in the place of another", |hand, _, _| {
        hand.make("t", &DIRECTORY)?;
        hand.rename("t", "g")
    }),
    ("a directory is renamed, and a file below it written", |hand, round, _| {
        hand.write("d/a", round as u8)?;
        hand.rename("d", "t")?;
        hand.write("t/a", round as u8)?;
        hand.rename("t", "d")
    }),
    ("a directory is removed, and made, and renamed over another", |hand, _, _| {
        hand.remove_dir("g")?;
        hand.make("g", &DIRECTORY)?;
        hand.rename("g", "f")?;
        hand.rename("f", "g")?;
        hand.make("f", &DIRECTORY)
    }),
    ("old files are put in the place of other old ones", |hand, round, _| {
        hand.rename(&format!("old-{}", 2 * round), &format!("old-{}", 2 * round + 1))
    }),
    ("the next new file is there before the last is put in its place", |hand, round, _| {
        let names = ["t", "u"];
        hand.make(names[round as usize % 2], &FILE)?;
        match round {
            0 => Ok(()),
            round => hand.rename(names[(round as usize + 1) % 2], "a"),
        }
    }),
    ("old files move into new directories, which are renamed", |hand, round, _| {
        let (made, named) = (format!("m-{round}"), format!("n-{round}"));
        hand.make(&made, &DIRECTORY)?;
        hand.rename(&format!("old-{round}"), &format!("{made}/x"))?;
        hand.rename(&made, &named)
    }),
    ("neighbours change places", |hand, round, _| {
        let names = ["a", "b", "c"];
        let (one, other) = (names[round as usize % 3], names[(round as usize + 1) % 3]);
        hand.move_to(one, other, Exchange(ONCE))
    }),
    ("a symbolic link is put in the place of another, and back", |hand, _, _| {
        hand.rename("a", "t")?;
        hand.make("a", &NewNode { target: b"t", ..new_node(Kind::Symlink, 0o777) })?;
        hand.rename("a", "u")?;
        hand.rename("t", "a")?;
        hand.remove("u")
    }),
    ("a second name is moved to and fro over another", |hand, _, _| {
        hand.link("a", "t")?;
        hand.rename("t", "b")?;
        hand.link("c", "t")?;
        hand.rename("t", "b")
    }),
    ("a new file is put in the place of an old one", |hand, round, _| {
        hand.make("t", &FILE)?;
        hand.write("t", round as u8)?;
        hand.rename("t", "a")
    }),
    ("a file comes and goes in many directories", |hand, round, _| {
        hand.rename(&format!("far-{}/x", round % 300), &format!("far-{}/x", (round + 1) % 300))
    }),
    ("anything", |hand, _, random| anything(hand, random)),
];

fn anything(hand: &Hand<'_>, random: &mut Random) -> Done {
    let names: Vec<&str> = OLD.iter().chain(&NEW).chain(&DIRECTORIES).copied().collect();
    let mut name = || names[random.below(names.len() as u64) as usize];
    let (one, other) = (name(), name());
    let done = match random.below(16) {
        0..=4 => hand.rename(one, other),
        5 | 6 => hand.link(one, other),
        7 => hand.remove(one),
        8 => hand.remove_dir(one),
        9 | 10 => hand.make(one, &FILE),
        11 => hand.make(one, &DIRECTORY),
        12 => hand.move_to(one, other, Exchange(ONCE)),
        _ => hand.write(one, 7),
    };
    // Much of it cannot be done.
    done.or_else(|errno| if errno == Errno::LATER { Err(errno) } else { Ok(()) })
}

fn begin(volume: &Opened) {
    let hand = Hand { volume, forgets: true };
    let done = |done: Done| done.expect("an empty home");
    for directory in DIRECTORIES {
        done(hand.make(directory, &DIRECTORY));
    }
    OLD.iter().for_each(|path| done(hand.make(path, &FILE)));
    for round in 0..2 * ROUNDS {
        done(hand.make(&format!("old-{round}"), &FILE));
        if round % 500 == 0 {
            make_all_home(volume);
        }
    }
    for index in 0..300 {
        done(hand.make(&format!("far-{index}"), &DIRECTORY));
    }
    done(hand.make("far-0/x", &FILE));
    make_all_home(volume);
}

fn make_all_home(volume: &Opened) {
    while !step(volume) {}
}

/// True if there was nothing to do.
fn step(volume: &Opened) -> bool {
    volume.drain_step().expect("a drain");
    volume.clean_step().expect("a window").is_idle()
}

/// Somebody who follows habits, and what they have come to.
struct Heavy<'a> {
    hand: Hand<'a>,
    habits: &'a [usize],
    /// A file of his own.
    node: NodeId,
    round: u64,
}

impl Heavy<'_> {
    /// One round. True if he has to wait. What one habit has done, or a part of it before a wait,
    /// may be in the way of the next.
    fn has_to_wait(&mut self, random: &mut Random) -> bool {
        let (_, habit) = HABITS[self.habits[self.round as usize % self.habits.len()]];
        let round = self.round;
        self.round += 1;
        as_user(HEAVY, || {
            // Whoever has to wait asks again until he has not, and then for something else.
            let written = self.hand.volume.write(self.node, &[round as u8], 0, false);
            written.and_then(|()| habit(&self.hand, round, random)) == Err(Errno::LATER)
        })
    }

    /// Goes on until he has to wait. The home may take something now and then.
    fn go_on(&mut self, random: &mut Random) {
        let is_cleaned = random.chance(50);
        while self.round < ROUNDS && !self.has_to_wait(random) {
            if is_cleaned && random.chance(20) {
                self.hand.volume.drain_step().expect("a drain");
            }
            if is_cleaned && random.chance(3) {
                self.hand.volume.clean_step().expect("a window");
            }
        }
    }
}

/// Somebody writes a file, and waits where he has to, while another goes on. Returns the most
/// syncs that a part waited for.
fn write_meanwhile(world: &World, volume: &Opened, heavy: &mut Heavy<'_>) -> u64 {
    let mut random = Random::new(heavy.round);
    let node = as_user(LIGHT, || volume.make(ROOT, b"light", &FILE)).expect("a name").node;
    let mut waited = 0;
    for offset in (0..LIGHT_BYTES).step_by(PART_BYTES) {
        let before = syncs(world);
        let write = || volume.write(node, &[9; PART_BYTES], offset, false);
        while let Err(errno) = as_user(LIGHT, write) {
            assert_eq!(errno, Errno::LATER);
            step(volume);
            volume.wait_until_later(std::time::Duration::ZERO);
            heavy.has_to_wait(&mut random);
        }
        waited = waited.max(syncs(world) - before);
    }
    waited
}

fn live(seed: u64, habits: &[usize]) {
    let (world, mut random) = (World::new(seed), Random::new(seed));
    let (volume, _) = world.open().expect("a new volume");
    begin(&volume);
    let hand = Hand { volume: &volume, forgets: random.chance(50) };
    let node = as_user(HEAVY, || volume.make(ROOT, b"heavy", &FILE)).expect("a name").node;
    let mut heavy = Heavy { hand, habits, node, round: 0 };
    heavy.go_on(&mut random);
    let waited = write_meanwhile(&world, &volume, &mut heavy);
    let names: Vec<&str> = habits.iter().map(|habit| HABITS[*habit].0).collect();
    let names = names.join(", and ");
    assert!(waited <= SYNCS_MAX, "seed {seed}: {names}: another waits for {waited} syncs");
}

#[test]
fn nobody_waits_for_the_syncs_that_the_names_of_another_cost() {
    let habits = HABITS.len() as u64;
    for_each_seed("charged::nobody_waits_for_the_syncs", &[], 0..3 * habits, |seed| {
        let mut random = Random::new(seed);
        let mut any = || random.below(habits) as usize;
        match seed / habits {
            0..=1 => live(seed, &[(seed % habits) as usize]),
            _ => live(seed, &[any(), any(), any()][..2 + seed as usize % 2]),
        }
    });
}

/// A change of names may be what gives a full home its room.
#[test]
fn changes_of_names_wait_for_no_work_while_the_home_has_no_room_for_what_waits() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    begin(&volume);
    let hand = Hand { volume: &volume, forgets: false };
    let mut moves = [("a", "t"), ("b", "a"), ("t", "b")].into_iter().cycle().peekable();
    let used = world.home().space().expect("a sound disk");
    let goes = |(from, to): (&str, &str)| as_user(HEAVY, || hand.rename(from, to));
    let node = hand.node("c").expect("it was made");
    as_user(HEAVY, || volume.write(node, &[1; PART_BYTES], 0, false)).expect("room");
    let mut told = Ok(());
    while told.is_ok() {
        told = goes(*moves.peek().expect("they go on"));
        moves.next_if(|_| told.is_ok());
    }
    assert_eq!(told, Err(Errno::LATER), "the home has work of his");
    world.files.set_capacity_bytes(Some(used.total_bytes - used.free_bytes));
    volume.drain_step().expect("a drain");
    volume.clean_step().expect_err("the home is full");
    for _ in 0..3 {
        assert_eq!(goes(moves.next().expect("they go on")), Ok(()));
    }
}
