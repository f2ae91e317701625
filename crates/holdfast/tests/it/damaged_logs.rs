//! A volume that was killed, of whose log or memory a file is damaged then, and every command in
//! turn on each of these, drawn from a seed.
//!
//! Beside it stands what was acknowledged. What `check` says is what an attachment does; whatever
//! is accepted is served; and nothing is gone of what one of them still had.

use crate::fixture::{Ended, Fixture, NAME, way};
use crate::seeds::{Random, for_seeds};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Every damage once; every command with it takes five times as many.
const SEEDS: u64 = Damage::ALL.len() as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Nothing,
    Flips,
    Zeros,
    Older,
    Short,
    Long,
    Missing,
    UnusedMissing,
    Region,
}

impl Damage {
    const ALL: [Damage; 9] = [
        Damage::Nothing,
        Damage::Flips,
        Damage::Zeros,
        Damage::Older,
        Damage::Short,
        Damage::Long,
        Damage::Missing,
        Damage::UnusedMissing,
        Damage::Region,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Serve,
    Umount,
    KeepHome,
    KeepLog,
    MemoryLost,
}

impl Act {
    const ALL: [Act; 5] = [Act::Serve, Act::Umount, Act::KeepHome, Act::KeepLog, Act::MemoryLost];
}

struct World {
    fixture: Fixture,
    damage: Damage,
    acknowledged: BTreeMap<String, Vec<u8>>,
    /// The region as it was before it was damaged.
    region: Vec<u8>,
}

impl World {
    /// One whose home lacks something.
    fn killed(damage: Damage, random: &mut Random) -> World {
        loop {
            let (world, older) = World::just_killed(damage, random);
            if world.fixture.status()["unapplied_bytes"].as_u64() > Some(10_000) {
                world.hit(&older, random);
                return world;
            }
        }
    }

    /// In class Disk everything that is acknowledged is in the segments as well.
    fn just_killed(damage: Damage, random: &mut Random) -> (World, Vec<u8>) {
        let mut fixture = Fixture::new();
        fixture.reconfigure("[\"process\"]", "[\"process\", \"os\", \"power\"]");
        fixture.holdfast(&["volume", "make", NAME]).succeeded();
        fixture.serve();
        let older = fs::read(fixture.log().join("segment-00000000")).unwrap();
        let mut acknowledged = BTreeMap::new();
        for number in 0..8 + random.below(32) {
            let text = format!("acknowledged {number} ").into_bytes();
            let text = text.repeat(1 + random.below(300) as usize);
            let mut file = fs::File::create(fixture.mount().join(number.to_string())).unwrap();
            file.write_all(&text).unwrap();
            file.sync_all().unwrap();
            acknowledged.insert(number.to_string(), text);
        }
        fixture.kill_all();
        let region = fs::read(&fixture.region).unwrap();
        (World { fixture, damage, acknowledged, region }, older)
    }

    fn hit(&self, older: &[u8], random: &mut Random) {
        let entries = fs::read_dir(self.fixture.log()).unwrap().map(|it| it.unwrap().path());
        let mut segments: Vec<_> =
            entries.filter(|it| it.to_str().unwrap().contains("segment-")).collect();
        segments.sort();
        let [first, .., last] = &segments[..] else { panic!("{segments:?}") };
        let mut bytes = fs::read(first).unwrap();
        match self.damage {
            Damage::Nothing => return,
            // The newest of it: the home may have the rest.
            Damage::Flips => {
                let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
                bytes[end - 6000..end].iter_mut().for_each(|byte| *byte ^= 0x5a);
            }
            Damage::Zeros => bytes.fill(0),
            Damage::Older => bytes = older.to_vec(),
            Damage::Short => bytes.truncate(random.below(100_000) as usize),
            Damage::Long => {
                let more = [1, 4096, 1 + random.below(100_000)][random.below(3) as usize];
                bytes.resize(bytes.len() + more as usize, 0x5a);
            }
            Damage::Missing => return fs::remove_file(first).unwrap(),
            Damage::UnusedMissing => return fs::remove_file(last).unwrap(),
            Damage::Region => {
                let mut region = self.region.clone();
                region[..64].fill(0xff);
                return fs::write(&self.fixture.region, region).unwrap();
            }
        }
        fs::write(first, bytes).unwrap();
    }

    fn missing_in(&self, place: &Path) -> Vec<&String> {
        let is_missing = |(name, text): &(&String, &Vec<u8>)| {
            fs::read(place.join(name)).ok().as_ref() != Some(*text)
        };
        self.acknowledged.iter().filter(is_missing).map(|(name, _)| name).collect()
    }

    #[track_caller]
    fn has_all(&self, place: &Path) {
        assert_eq!(self.missing_in(place), Vec::<&String>::new(), "{:?}", self.damage);
    }

    fn check(&self) -> Ended {
        let checked = self.fixture.holdfast(&["volume", "check", NAME]);
        match self.damage {
            // A file that was never used is made again when it is wanted.
            Damage::Nothing | Damage::UnusedMissing => {
                assert!(checked.out.contains("are sound"), "{checked:?}")
            }
            Damage::Region => checked.expect(6, &["volume accept v --memory-lost"]),
            _ => checked.expect(6, &["memory has all that the home lacks", "holdfast umount v"]),
        }
        assert!(!checked.err.contains("newer than this log"), "{checked:?}");
        checked
    }

    fn act(&mut self, act: Act) {
        let accept =
            |way: &[&str]| self.fixture.holdfast(&[&["volume", "accept", NAME], way].concat());
        match (act, self.damage) {
            (Act::Serve | Act::Umount, Damage::Region) => {
                let refused = self.fixture.holdfast(&["umount", NAME]);
                refused.expect(6, &["volume accept v --memory-lost"]);
            }
            (Act::Serve, _) => self.serve_and_lose_memory(),
            (Act::Umount, _) => {
                self.fixture.holdfast(&["umount", NAME]).succeeded();
                self.has_all(&self.fixture.home());
                self.fixture.holdfast(&["volume", "check", NAME]).succeeded();
                self.serve();
            }
            (Act::KeepHome, _) => {
                accept(&["--keep", "home"]).succeeded();
                self.bring_back();
            }
            (Act::KeepLog, Damage::Region) => {
                accept(&["--keep", "log"]).expect(6, &["--memory-lost"]);
            }
            (Act::KeepLog, _) => {
                accept(&["--keep", "log"]).succeeded();
                self.serve();
            }
            (Act::MemoryLost, Damage::Region) => {
                let accepted = accept(&["--memory-lost"]).succeeded();
                assert!(accepted.out.contains("is whole in"), "{accepted:?}");
                self.serve();
            }
            (Act::MemoryLost, _) => accept(&["--memory-lost"]).expect(2, &["has all of it"]),
        }
    }

    fn serve(&mut self) {
        let refused = self.fixture.try_to_serve();
        assert!(refused.is_none(), "{:?}: {refused:?}", self.damage);
        self.has_all(&self.fixture.mount());
    }

    /// What the log's disk had lost it has again, so that memory is not needed any more.
    fn serve_and_lose_memory(&mut self) {
        self.serve();
        let status = self.fixture.status()["recovery"].to_string();
        let words = match self.damage {
            Damage::Long => "has been cut to its length",
            _ => "written again from memory",
        };
        let is_told = status.contains(words);
        let lost = ![Damage::Nothing, Damage::UnusedMissing].contains(&self.damage);
        assert_eq!(is_told, lost, "{:?}: {status}", self.damage);
        self.fixture.kill_all();
        self.fixture.holdfast(&["volume", "check", NAME]).succeeded();
        fs::remove_file(&self.fixture.region).unwrap();
        self.fixture.holdfast(&["volume", "accept", NAME, "--memory-lost"]).succeeded();
        self.serve();
    }

    /// What was put aside is whole: in its place again, it is served, with everything.
    fn bring_back(&mut self) {
        // The home has what came home before, and the new log has nothing.
        self.fixture.serve();
        assert_eq!(self.fixture.stop(), Some(0));
        fs::remove_dir_all(self.fixture.log()).unwrap();
        fs::rename(aside(&self.fixture.log()), self.fixture.log()).unwrap();
        if let Some(region) = find_aside(&self.fixture.region) {
            assert_ne!(self.damage, Damage::Nothing, "all of it was brought to the log");
            fs::rename(region, &self.fixture.region).unwrap();
        }
        if self.damage == Damage::Region {
            fs::write(&self.fixture.region, &self.region).unwrap();
        }
        self.fixture.holdfast(&["volume", "accept", NAME, "--home"]).succeeded();
        self.serve();
    }
}

fn find_aside(of: &Path) -> Option<PathBuf> {
    let start = format!("{}.aside-", of.file_name()?.to_str()?);
    let entries = fs::read_dir(of.parent()?).unwrap().map(|entry| entry.unwrap().path());
    let is_aside = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&start);
    entries.into_iter().find(is_aside)
}

fn aside(of: &Path) -> PathBuf {
    find_aside(of).unwrap_or_else(|| panic!("{} is not aside", of.display()))
}

#[test]
fn whatever_is_damaged_nothing_is_gone_and_the_check_says_what_an_attachment_does() {
    if way() == "queue" {
        return;
    }
    for_seeds("whatever_is_damaged", SEEDS, |seed| {
        let count = Damage::ALL.len() as u64;
        let damage = Damage::ALL[(seed % count) as usize];
        let act = Act::ALL[(seed / count + seed) as usize % Act::ALL.len()];
        println!("seed {seed}: {damage:?}, {act:?}");
        let mut random = Random::new(seed);
        let mut world = World::killed(damage, &mut random);
        world.check();
        // A home that is barred is entered by none, and left as it is by all of these.
        let mode = || fs::metadata(world.fixture.home()).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(), 0, "{damage:?}");
        world.act(act);
    });
}

#[test]
fn a_segment_that_is_too_long_is_the_log_again_once_it_is_cut_as_the_message_says() {
    if way() == "queue" {
        return;
    }
    let mut world = World::killed(Damage::Long, &mut Random::new(1));
    let segment = world.fixture.log().join("segment-00000000");
    let long = fs::read(&segment).unwrap();
    fs::remove_file(&world.fixture.region).unwrap();
    let length = fs::metadata(world.fixture.log().join("segment-00000001")).unwrap().len();
    let remedy = format!("`truncate -s {length} segment-00000000`");
    let accept = ["volume", "accept", NAME, "--memory-lost"];
    world.fixture.holdfast(&accept).expect(6, &["more than its length", &remedy]);
    assert!(fs::read(&segment).unwrap() == long, "what is refused is as it was");
    fs::OpenOptions::new().write(true).open(&segment).unwrap().set_len(length).unwrap();
    world.fixture.holdfast(&accept).succeeded();
    world.fixture.holdfast(&["volume", "check", NAME]).succeeded();
    world.serve();
}

#[test]
fn a_log_of_which_both_catalogues_are_damaged_is_made_again_from_memory_as_the_message_says() {
    if way() == "queue" {
        return; // the server has the log, and says the same
    }
    for damaged in [&b""[..], b"no file of a log begins like this"] {
        let mut fixture = Fixture::made();
        fixture.serve();
        fixture.kill_all_after(|mount| fs::write(mount.join("f"), "acknowledged").unwrap());
        for name in ["catalogue", "catalogue.copy"] {
            fs::write(fixture.log().join(name), damaged).unwrap();
        }
        let words = ["the file catalogue is damaged", "holdfast volume mend v"];
        for command in [&["volume", "check", NAME][..], &["umount", NAME]] {
            fixture.holdfast(command).expect(6, &words);
        }
        fixture.holdfast(&["volume", "mend", NAME]).succeeded();
        fixture.holdfast(&["umount", NAME]).succeeded();
        assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"acknowledged");
    }
}
