//! Sections of the configuration that operators rename, remove, put back and exchange while a
//! keeper has their volumes, drawn from a seed.
//!
//! Whatever is drawn, a volume is shown with its own front end and under the name by which it is
//! unmounted; each command that a problem or a refusal names works, in the order in which they are
//! named; and what was given back and is configured no more is forgotten.

use crate::fixture::{Ended, Fixture, NAME, way};
use crate::seeds::{Random, for_seeds};
use serde_json::Value;
use std::fs;

const SEEDS: u64 = 3;
const STEPS: u32 = 14;

/// So much advice one after the other ends in a volume that is as it should be.
const ADVICE_MAX: u32 = 8;

/// What makes the server have what is configured.
const WAY_OUT: &str = "`holdfast shutdown`, then start the keeper again";

const NAMES: [&str; 3] = [NAME, "w", "x"];

/// Two volumes in the hands of somebody who edits their configuration.
struct World {
    fixture: Fixture,
    /// The name of each volume in the configuration, if it has one there.
    configured: [Option<&'static str>; 2],
    /// The name by which the keeper has each, if it does.
    attached: [Option<&'static str>; 2],
    /// The name by which the server has the log of each, by the way of the queue.
    begun: [Option<&'static str>; 2],
}

impl World {
    fn new() -> World {
        let fixture = Fixture::new();
        for folder in ["home-1", "mount-1"] {
            fs::create_dir(fixture.path(folder)).unwrap();
        }
        let both = [Some(NAME), Some("w")];
        let mut world = World { fixture, configured: both, attached: both, begun: both };
        world.configure();
        for name in [NAME, "w"] {
            world.fixture.holdfast(&["volume", "make", name]).succeeded();
        }
        world.fixture.serve();
        world.fixture.holdfast(&["wait", "w"]).succeeded();
        world
    }

    fn configure(&self) {
        let text = self.fixture.config_text();
        let (mut whole, section) = {
            let at = text.find("[volume.").unwrap();
            (text[..at].to_owned(), text[at..].to_owned())
        };
        let own = format!("[volume.{NAME}]");
        for (number, name) in self.configured.iter().enumerate() {
            let Some(name) = name else { continue };
            let mut section = section.replace(&own, &format!("[volume.{name}]"));
            if number == 1 {
                for folder in ["home", "mount", "log"] {
                    let at = |name: &str| format!("{:?}", self.fixture.path(name));
                    section = section.replace(&at(folder), &at(&format!("{folder}-1")));
                }
                let region = |path| format!("{path:?}");
                let cache = self.fixture.block_cache();
                section = section.replace(&region(&self.fixture.region), &region(&cache));
            }
            whole += &section;
        }
        self.fixture.configure(&whole);
    }

    fn step(&mut self, random: &mut Random) -> String {
        let (number, name) = (random.below(2) as usize, NAMES[random.below(3) as usize]);
        match random.below(8) {
            0 | 1 => self.umount(name),
            2 => self.mount(name),
            3 => self.swap(),
            4 => self.configured[number] = None,
            5 | 6 if !self.configured.contains(&Some(name)) => {
                self.configured[number] = Some(name);
            }
            _ => return self.follow(),
        }
        self.configure();
        self.check_status();
        format!("{:?} configured, {:?} attached", self.configured, self.attached)
    }

    fn swap(&mut self) {
        self.configured.swap(0, 1);
    }

    fn attached_as(&self, name: &str) -> Option<usize> {
        self.attached.iter().position(|it| *it == Some(name))
    }

    fn configured_as(&self, name: &str) -> Option<usize> {
        self.configured.iter().position(|it| *it == Some(name))
    }

    /// Whether the server lacks its log as it is configured.
    fn lacks_log(&self, number: usize) -> bool {
        way() == "queue" && self.begun[number] != self.configured[number]
    }

    /// What somebody has under another name is refused with that name.
    fn refused(&self, name: &str, ended: &Ended) {
        let number = self.configured_as(name);
        match number.and_then(|number| self.attached[number]).filter(|other| *other != name) {
            Some(_) if number.is_some_and(|it| self.lacks_log(it)) => ended.expect(5, &[WAY_OUT]),
            Some(other) => ended.expect(5, &[&format!("`holdfast umount {other}`")]),
            None if number.is_none() => ended.expect(2, &["has no [volume"]),
            None => {}
        }
    }

    fn umount(&mut self, name: &'static str) {
        let ended = self.fixture.holdfast(&["umount", name]);
        match self.attached_as(name) {
            Some(number) => {
                assert!(ended.out.contains("is given back"), "{ended:?}");
                self.attached[number] = None;
            }
            None if ended.code == Some(0) => {
                assert!(ended.out.contains("was given back already"), "{ended:?}");
            }
            None => self.refused(name, &ended),
        }
    }

    fn mount(&mut self, name: &'static str) {
        let ended = self.fixture.holdfast(&["mount", name]);
        match (ended.code, self.configured_as(name)) {
            (Some(0), Some(number)) => {
                assert_eq!(self.attached[number], None, "attached twice: {ended:?}");
                assert!(!self.lacks_log(number), "another's log: {ended:?}");
                self.attached[number] = Some(name);
            }
            _ if self.attached_as(name).is_some() => {
                assert!([2, 5].map(Some).contains(&ended.code))
            }
            (_, Some(number)) if self.attached[number].is_none() && self.lacks_log(number) => {
                ended.expect(2, &[WAY_OUT]);
            }
            _ => self.refused(name, &ended),
        }
    }

    /// Ends the keeper, as is advised, and starts another.
    fn start_again(&mut self) {
        self.fixture.holdfast(&["shutdown"]).succeeded();
        self.fixture.reap();
        self.fixture.serve();
        for name in self.configured.iter().flatten() {
            self.fixture.holdfast(&["wait", name]).succeeded();
        }
        (self.begun, self.attached) = (self.configured, self.configured);
    }

    fn volumes(&self) -> Vec<Value> {
        let ended = self.fixture.holdfast(&["status", "--json"]);
        let report: Value =
            serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{ended:?}"));
        report["volumes"].as_array().unwrap().clone()
    }

    fn check_status(&self) {
        let seen = self.volumes();
        for volume in &seen {
            let name = volume["name"].as_str().unwrap();
            let has_front_end = volume["front_end_pid"].is_number();
            let is_attached = self.attached_as(name);
            assert_eq!(has_front_end, is_attached.is_some(), "{volume}");
            let is_known = is_attached.is_some() || self.configured_as(name).is_some();
            assert!(is_known, "not forgotten: {volume}");
            let is_as_configured = is_attached == self.configured_as(name);
            let other = self.configured_as(name).and_then(|number| self.attached[number]);
            let is_told = volume["problem"].is_string();
            let is_wrong = is_attached.is_some() && !is_as_configured
                || is_attached.is_none() && other.is_some()
                || is_attached.is_none()
                    && self.configured_as(name).is_some_and(|it| self.lacks_log(it));
            assert_eq!(is_told, is_wrong, "{volume}");
        }
        let is_seen = |name: &&str| seen.iter().any(|it| it["name"] == **name);
        assert!(self.attached.iter().flatten().all(is_seen), "{seen:?}");
    }

    /// Does what the status says until it says nothing more.
    fn follow(&mut self) -> String {
        for _ in 0..ADVICE_MAX {
            let volumes = self.volumes();
            let Some(problem) = volumes.iter().find_map(|it| it["problem"].as_str()) else {
                return "the status has no advice left".into();
            };
            let commands = problem.split('`').skip(1).step_by(2);
            let commands: Vec<String> = commands.map(str::to_owned).collect();
            assert!(!commands.is_empty(), "no way out of: {problem}");
            for command in commands {
                let words: Vec<&str> = command.split(' ').skip(1).collect();
                println!("  advice: {command}");
                if words == ["shutdown"] {
                    self.start_again();
                    continue;
                }
                let name = NAMES.into_iter().find(|name| *name == words[1]).unwrap();
                match words[0] {
                    "umount" => {
                        assert!(self.attached_as(name).is_some(), "{command} of: {problem}");
                        self.umount(name);
                    }
                    "mount" => {
                        let number = self.configured_as(name).unwrap();
                        self.mount(name);
                        assert_eq!(self.attached[number], Some(name), "{command} of: {problem}");
                    }
                    _ => panic!("{command} of: {problem}"),
                }
            }
            self.check_status();
        }
        panic!("advice without end: {:?}", self.volumes());
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(
            self.fixture.path("mount-1"),
            rustix::mount::UnmountFlags::DETACH,
        );
        let _ = fs::remove_file(self.fixture.block_cache());
    }
}

#[test]
fn whatever_becomes_of_their_sections_volumes_are_told_truly_and_each_advice_works() {
    for_seeds("whatever_becomes_of_their_sections", SEEDS, |seed| {
        let mut random = Random::new(seed);
        let mut world = World::new();
        for step in 1..=STEPS {
            let said = world.step(&mut random);
            println!("seed {seed}, step {step}: {said}");
        }
        world.follow();
        assert_eq!(world.fixture.stop(), Some(0), "{}", world.fixture.keeper_log());
    });
}
