//! A volume beside which something wrong was put: an older copy, something of another volume, or
//! nothing; and every command on it, drawn from a seed.
//!
//! Whatever a command refuses is byte for byte as it was, log, home and memory, so that putting the
//! cause right leads to where one was before: everything is served, and nothing is said to be lost.

use crate::fixture::{Ended, Fixture, NAME, way};
use crate::seeds::{Random, for_seeds};
use holdfast_io::real::SHADOWED;
use rustix::fs::lgetxattr;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const SEEDS: u64 = 8;
/// Wrong things that are put beside one volume, one after the other.
const ROUNDS: u64 = 12;

/// The files beside a log that say which home and which memory it has.
const NOTES: [&str; 4] = ["home", "home.copy", "region", "region.copy"];

/// The command that never changes anything.
const CHECK: &[&str] = &["volume", "check", NAME];

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Home,
    Log,
    Region,
    Notes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Stale,
    Foreign,
    Missing,
}

/// Everything that there is: permissions, the badge, and the bytes.
type Seen = BTreeMap<PathBuf, (u32, Vec<u8>, Vec<u8>)>;

struct World {
    fixture: Fixture,
    foreign: Fixture,
    acknowledged: Vec<String>,
}

impl World {
    fn new(random: &mut Random) -> World {
        let mut foreign = Fixture::made();
        foreign.serve();
        fs::write(foreign.mount().join("foreign"), "x").unwrap();
        foreign.kill_all();
        let mut world = World { fixture: Fixture::made(), foreign, acknowledged: Vec::new() };
        world.serve_and_write();
        if random.below(3) == 0 {
            assert_eq!(world.fixture.stop(), Some(0));
        } else {
            world.fixture.kill_all();
        }
        for part in [Part::Home, Part::Log, Part::Region] {
            copy(&world.place(part), &stale(&world.place(part)));
        }
        for _ in 0..random.below(3) {
            world.serve_and_write();
            assert_eq!(world.fixture.stop(), Some(0));
        }
        world.serve_and_write();
        let is_given_back = random.below(2) == 0;
        println!("it is {}", if is_given_back { "given back" } else { "killed" });
        match is_given_back {
            true => assert_eq!(world.fixture.stop(), Some(0)),
            false => world.fixture.kill_all(),
        }
        world
    }

    fn serve_and_write(&mut self) {
        self.fixture.serve();
        let name = format!("f{}", self.acknowledged.len());
        fs::write(self.fixture.mount().join(&name), &name).unwrap();
        fs::File::open(self.fixture.mount().join(&name)).unwrap().sync_all().unwrap();
        self.acknowledged.push(name);
    }

    fn place(&self, part: Part) -> PathBuf {
        place(&self.fixture, part)
    }

    /// All that makes the volume, and what lies beside it.
    fn seen(&self) -> Seen {
        let mut seen = Seen::new();
        let region = self.place(Part::Region);
        for root in [self.fixture.home(), self.fixture.log(), region] {
            look(&root, &mut seen);
        }
        seen
    }

    fn put(&self, part: Part, wrong: Wrong) {
        if part == Part::Notes {
            NOTES.iter().for_each(|note| self.put_note(note, wrong));
            return;
        }
        let place = self.place(part);
        if place.exists() {
            fs::rename(&place, right(&place)).unwrap();
        }
        match wrong {
            Wrong::Stale => copy(&stale(&place), &place),
            Wrong::Foreign => copy(&crate::refused::place(&self.foreign, part), &place),
            Wrong::Missing => {}
        }
    }

    /// Beside whatever log is there.
    fn put_note(&self, note: &str, wrong: Wrong) {
        let place = self.fixture.log().join(note);
        let _there_may_be_none =
            fs::rename(&place, self.fixture.path(&format!("note-{note}.right")));
        match wrong {
            Wrong::Stale => copy(&stale(&self.fixture.log()).join(note), &place),
            Wrong::Foreign => copy(&self.foreign.log().join(note), &place),
            Wrong::Missing => {}
        }
    }

    /// The notes first: they are those of the log that is there.
    fn put_right(&self, wrong: &BTreeMap<Part, Wrong>) {
        if wrong.contains_key(&Part::Notes) {
            for note in NOTES {
                let (place, right) = (
                    self.fixture.log().join(note),
                    self.fixture.path(&format!("note-{note}.right")),
                );
                let _there_may_be_none = fs::remove_file(&place);
                let _there_may_be_none = fs::rename(right, place);
            }
        }
        for part in wrong.keys().filter(|part| **part != Part::Notes) {
            let place = self.place(*part);
            remove(&place);
            let _there_may_be_none = fs::rename(right(&place), place);
        }
    }

    /// How the command ended: well, if it serves.
    fn done(&mut self, command: &[&str]) -> Ended {
        let serves = || Ended { code: Some(0), out: "serving".into(), err: String::new() };
        match command {
            ["serve"] => self.fixture.try_to_serve().unwrap_or_else(serves),
            command => self.fixture.holdfast(command),
        }
    }

    fn is_served_with_everything(&mut self) {
        self.fixture.holdfast(&["volume", "check", NAME]).succeeded();
        let refused = self.fixture.try_to_serve();
        assert!(refused.is_none(), "put right, and refused: {refused:?}");
        for name in &self.acknowledged {
            let found = fs::read_to_string(self.fixture.mount().join(name)).unwrap_or_default();
            assert_eq!(found, *name, "what was acknowledged is not there");
        }
        let said = self.fixture.keeper_log();
        assert!(!said.contains("lost") && !said.contains("gone"), "nothing is: {said}");
        assert_eq!(self.fixture.stop(), Some(0));
    }
}

fn place(of: &Fixture, part: Part) -> PathBuf {
    match part {
        Part::Home => of.home(),
        Part::Log | Part::Notes => of.log(),
        Part::Region => of.region.clone(),
    }
}

fn beside(place: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}.{ending}", place.display()))
}

fn stale(place: &Path) -> PathBuf {
    beside(place, "stale")
}

fn right(place: &Path) -> PathBuf {
    beside(place, "right")
}

/// With attributes. Nothing, if there is nothing.
fn copy(from: &Path, to: &Path) {
    remove(to);
    if from.exists() {
        let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
        assert!(copied.success(), "{} to {}", from.display(), to.display());
    }
}

fn remove(place: &Path) {
    let _there_may_be_none = match place.is_dir() {
        true => fs::remove_dir_all(place),
        false => fs::remove_file(place),
    };
}

fn look(at: &Path, seen: &mut Seen) {
    let Ok(found) = at.symlink_metadata() else { return };
    let mut badge = vec![0; 256];
    let length = lgetxattr(at, SHADOWED, &mut badge[..]).unwrap_or(0);
    badge.truncate(length);
    let bytes = if found.is_file() { fs::read(at).unwrap() } else { Vec::new() };
    seen.insert(at.to_owned(), (found.permissions().mode(), badge, bytes));
    if found.is_dir() {
        let entries = fs::read_dir(at).unwrap();
        entries.for_each(|entry| look(&entry.unwrap().path(), seen));
    }
}

/// What differs, for people: bytes are not for them.
fn differing(before: &Seen, after: &Seen) -> Vec<String> {
    let paths: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let text = |seen: Option<&(u32, Vec<u8>, Vec<u8>)>| match seen {
        Some((mode, badge, _)) => format!("{mode:o} {}", String::from_utf8_lossy(badge)),
        None => "nothing".to_owned(),
    };
    let differs = paths.into_iter().filter(|path| before.get(*path) != after.get(*path));
    let tell = |path: &PathBuf| {
        let (was, is) = (text(before.get(path)), text(after.get(path)));
        format!("{}: was {was}, is {is}", path.display())
    };
    differs.map(tell).collect()
}

fn draw_wrong(random: &mut Random) -> BTreeMap<Part, Wrong> {
    let one = |random: &mut Random| {
        let part = [Part::Home, Part::Log, Part::Region, Part::Region, Part::Notes];
        let wrong = [Wrong::Stale, Wrong::Stale, Wrong::Foreign, Wrong::Missing];
        let (part, wrong) = (part[random.below(5) as usize], wrong[random.below(4) as usize]);
        (part, wrong)
    };
    let mut drawn: BTreeMap<_, _> = (0..1 + random.below(2)).map(|_| one(random)).collect();
    // The notes lie beside the right log, or there would be two things wrong with it.
    if drawn.contains_key(&Part::Log) {
        drawn.remove(&Part::Notes);
    }
    drawn
}

fn draw_command(random: &mut Random) -> &'static [&'static str] {
    const COMMANDS: [&[&str]; 8] = [
        &["serve"],
        &["serve"],
        &["umount", NAME],
        &["umount", NAME],
        CHECK,
        &["volume", "mend", NAME],
        &["volume", "accept", NAME, "--keep", "log"],
        &["volume", "accept", NAME, "--memory-lost"],
    ];
    COMMANDS[random.below(8) as usize]
}

#[test]
fn what_is_refused_is_as_it_was() {
    // A server takes the memory of its volumes' logs, and notes it, before anybody has a home.
    if way() == "queue" {
        return;
    }
    for_seeds("what_is_refused_is_as_it_was", SEEDS, |seed| {
        let mut random = Random::new(seed);
        let mut world = World::new(&mut random);
        for round in 1..=ROUNDS {
            let (wrong, command) = (draw_wrong(&mut random), draw_command(&mut random));
            let put = || wrong.iter().for_each(|(part, wrong)| world.put(*part, *wrong));
            let right = world.seen();
            put();
            let before = world.seen();
            let ended = world.done(command);
            println!("seed {seed}, round {round}: {wrong:?}, {command:?}: {ended:?}");
            if ended.code == Some(0) && command != CHECK {
                return;
            }
            let after = differing(&before, &world.seen());
            assert!(after.is_empty(), "{wrong:?}, {command:?}: {ended:?}\nchanged {after:#?}");
            world.put_right(&wrong);
            let now = differing(&right, &world.seen());
            assert!(now.is_empty(), "the test does not put right {wrong:?}: {now:#?}");
        }
        world.is_served_with_everything();
    });
}
