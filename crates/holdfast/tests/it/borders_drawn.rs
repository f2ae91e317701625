//! Sequences of what happens at the borders of a volume, drawn from a seed: deaths, restarts,
//! homes that are swapped, programs on the bare home, memory that moves or goes.
//!
//! Whatever is drawn, an attachment either has everything that was acknowledged and had to survive
//! what happened since, or is refused; and nothing of the log is applied to another home.

use crate::borders::as_nobody;
use crate::fixture::{Ended, Fixture, NAME};
use crate::seeds::{Random, for_seeds};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

const SEEDS: u64 = 2;
const STEPS: u32 = 16;
const FILES: u64 = 3;

/// A volume in the hands of fate, and what has to be in it.
struct World {
    fixture: Fixture,
    is_served: bool,
    is_swapped: bool,
    /// The memory is where the first configuration has it, or elsewhere.
    is_elsewhere: bool,
    /// The memory, or the log, has what the home lacks.
    is_dirty: bool,
    memory_is_gone: bool,
    restarted: bool,
    expected: BTreeMap<String, String>,
    /// What the home has for sure.
    at_home: BTreeMap<String, String>,
    /// What the superuser wrote into the bare home since the last attachment.
    by_hand: BTreeMap<String, String>,
    written: u64,
}

impl World {
    fn new() -> World {
        let fixture = Fixture::made();
        fs::set_permissions(fixture.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(fixture.home(), fs::Permissions::from_mode(0o777)).unwrap();
        World {
            fixture,
            is_served: false,
            is_swapped: false,
            is_elsewhere: false,
            is_dirty: false,
            memory_is_gone: false,
            restarted: false,
            expected: BTreeMap::new(),
            at_home: BTreeMap::new(),
            by_hand: BTreeMap::new(),
            written: 0,
        }
    }

    fn step(&mut self, random: &mut Random) -> String {
        let file = format!("f{}", random.below(FILES));
        match (self.is_served, random.below(10)) {
            (true, 0..4) => self.write(&file),
            (true, 4) => self.umount(),
            (true, _) => self.kill(),
            (false, 0 | 1) => self.attach(),
            (false, 2) => self.swap_home(),
            (false, 3 | 4) => self.write_bare(&file),
            (false, 5) => self.move_memory(),
            (false, 6) => self.remove_memory(),
            (false, 7 | 8) => self.write_by_hand(&file),
            (false, _) => self.restart(),
        }
    }

    fn write(&mut self, file: &str) -> String {
        self.written += 1;
        let text = format!("{} through the volume", self.written);
        fs::write(self.fixture.mount().join(file), &text).unwrap();
        fs::File::open(self.fixture.mount().join(file)).unwrap().sync_all().unwrap();
        fs::set_permissions(self.fixture.mount().join(file), fs::Permissions::from_mode(0o666))
            .unwrap();
        self.expected.insert(file.to_owned(), text);
        self.is_dirty = true;
        format!("write {file} through the volume")
    }

    fn umount(&mut self) -> String {
        assert_eq!(self.fixture.stop(), Some(0), "{}", self.fixture.keeper_log());
        self.is_served = false;
        self.is_dirty = false;
        self.at_home = self.expected.clone();
        "unmount".into()
    }

    fn kill(&mut self) -> String {
        self.fixture.kill_all();
        self.is_served = false;
        "kill everything".into()
    }

    fn swap_home(&mut self) -> String {
        let (home, away) = (self.fixture.home(), self.fixture.path("away"));
        if self.is_swapped {
            fs::remove_dir_all(&home).unwrap();
            fs::rename(&away, &home).unwrap();
        } else {
            fs::rename(&home, &away).unwrap();
            fs::create_dir(&home).unwrap();
        }
        self.is_swapped = !self.is_swapped;
        format!("the home is {}", if self.is_swapped { "away" } else { "back" })
    }

    /// An ordinary program on the bare home.
    fn write_bare(&mut self, file: &str) -> String {
        if self.is_swapped {
            return "nobody finds the home".into();
        }
        self.written += 1;
        let text = format!("{} to the bare home", self.written);
        let path = self.fixture.home().join(file);
        // As most programs do: a new file, and then its name.
        let script = format!("printf '{text}' > {0}.new && mv -f {0}.new {0}", path.display());
        let done = as_nobody(&script);
        if done {
            self.expected.insert(file.to_owned(), text.clone());
            self.at_home.insert(file.to_owned(), text);
        }
        format!("somebody writes {file} to the bare home: {done}")
    }

    /// The superuser, whom no barrier stops.
    fn write_by_hand(&mut self, file: &str) -> String {
        if self.is_swapped {
            return "nobody finds the home".into();
        }
        // Times of files count ticks of the kernel, and what the volume did may have a later one.
        std::thread::sleep(Duration::from_millis(150));
        self.written += 1;
        let text = format!("{} by hand", self.written);
        fs::write(self.fixture.home().join(file), &text).unwrap();
        self.by_hand.insert(file.to_owned(), text.clone());
        if !self.is_dirty {
            self.expected.insert(file.to_owned(), text.clone());
            self.at_home.insert(file.to_owned(), text);
        }
        format!("the superuser writes {file}")
    }

    fn elsewhere(&self) -> PathBuf {
        format!("{}-elsewhere", self.fixture.region.display()).into()
    }

    fn configure(&self) {
        let text = self.fixture.config_text();
        let (was, other) =
            (format!("{:?}", self.fixture.region), format!("{:?}", self.elsewhere()));
        self.fixture.configure(&if self.is_elsewhere { text.replace(&was, &other) } else { text });
    }

    fn move_memory(&mut self) -> String {
        self.is_elsewhere = !self.is_elsewhere;
        self.configure();
        "memory.path changes".into()
    }

    fn remove_memory(&mut self) -> String {
        let files = [self.fixture.region.clone(), self.elsewhere()];
        let removed = files.iter().filter(|file| fs::remove_file(file).is_ok()).count();
        self.memory_is_gone |= removed > 0;
        format!("the memory is removed: {removed}")
    }

    fn restart(&mut self) -> String {
        self.fixture.restart();
        let _ = fs::remove_file(self.elsewhere());
        self.restarted |= self.is_dirty;
        "the system restarts".into()
    }

    /// A check says what an attachment would.
    fn attach(&mut self) -> String {
        let checked = self.fixture.holdfast(&["volume", "check", NAME]);
        let ended = self.fixture.try_to_serve();
        let code = ended.as_ref().map_or(Some(0), |ended| ended.code);
        assert_eq!(checked.code, code, "checked: {checked:?}\nattached: {ended:?}");
        match ended {
            None => {
                self.check();
                "attach".into()
            }
            Some(ended) => {
                let why = self.refused(&ended);
                format!("attach, refused: {why}")
            }
        }
    }

    /// What was acknowledged is there. A restart takes what was in memory alone, in this class.
    fn check(&mut self) {
        self.is_served = true;
        assert!(!self.is_swapped, "a log was applied to another home");
        let found =
            |file: &String| fs::read_to_string(self.fixture.mount().join(file)).unwrap_or_default();
        for (file, text) in &self.expected {
            let (seen, old) = (found(file), self.at_home.get(file).cloned().unwrap_or_default());
            let is_old = self.restarted && self.may_be_older(&seen, &old);
            let is_by_hand = self.by_hand.get(file) == Some(&seen);
            assert!(
                seen == *text || is_old || is_by_hand,
                "{file} has {seen:?}, and {text:?} was acknowledged"
            );
        }
        self.expected = self.expected.keys().map(|file| (file.clone(), found(file))).collect();
        (self.restarted, self.memory_is_gone) = (false, false);
        self.by_hand.clear();
        self.is_dirty = true;
    }

    /// Whether something older may be there: nothing of before the last complete unmount.
    fn may_be_older(&self, seen: &str, at_home: &str) -> bool {
        let number = |text: &str| text.split(' ').next().and_then(|it| it.parse::<u64>().ok());
        number(seen).unwrap_or(0) >= number(at_home).unwrap_or(0)
    }

    /// A refusal names what is wrong, and doing what it says ends it.
    fn refused(&mut self, ended: &Ended) -> String {
        assert_eq!(ended.code, Some(6), "{ended:?}");
        let text = &ended.err;
        if text.contains("is not the home that its log knows") {
            assert!(self.is_swapped, "{text}");
            self.swap_home();
            return "the home is put back".into();
        }
        if text.contains("the log's memory is") {
            self.is_elsewhere = !self.is_elsewhere;
            self.configure();
            return "memory.path is put right".into();
        }
        if text.contains("somebody changed") {
            assert!(!self.by_hand.is_empty(), "nobody changed anything: {text}");
            self.fixture.holdfast(&["volume", "accept", NAME, "--keep", "log"]).succeeded();
            return "the log is kept".into();
        }
        assert!(text.contains("although the system has not restarted"), "{text}");
        assert!(self.memory_is_gone, "nobody took the memory: {text}");
        self.fixture.holdfast(&["volume", "accept", NAME, "--memory-lost"]).succeeded();
        self.restarted = true;
        "the memory is given up".into()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.elsewhere());
    }
}

#[test]
fn whatever_happens_at_its_borders_a_volume_has_what_was_acknowledged_or_is_refused() {
    let test = "whatever_happens_at_its_borders";
    for_seeds(test, SEEDS, |seed| {
        let mut random = Random::new(seed);
        let mut world = World::new();
        for step in 1..=STEPS {
            let said = world.step(&mut random);
            println!("seed {seed}, step {step}: {said}");
        }
        if !world.is_served {
            while world.fixture.try_to_serve().map(|ended| world.refused(&ended)).is_some() {}
            world.check();
        }
        world.umount();
    });
}
