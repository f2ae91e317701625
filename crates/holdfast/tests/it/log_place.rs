//! A log whose directory, or files, are taken away while it is served.
//!
//! Whatever is removed, nothing that was acknowledged is lost as long as the memory is there: the
//! log is made again from it by itself, and what was only moved is told with its place.

use crate::fixture::{Fixture, NAME, kill, wait_until};
use crate::seeds::{Random, for_seeds};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

const SEEDS: u64 = 2;
const STEPS: u32 = 12;

/// What makes the directory a log.
const CATALOGUES: [&str; 2] = ["catalogue", "catalogue.copy"];

fn serving() -> Fixture {
    let mut fixture = Fixture::made();
    fixture.serve();
    wait_until(|| is_well(&fixture), || fixture.keeper_log());
    fixture
}

fn is_well(fixture: &Fixture) -> bool {
    fixture.holdfast(&["status"]).code == Some(0)
}

fn tell(fixture: &Fixture) -> String {
    format!("{}\n{}", fixture.holdfast(&["status"]).out, fixture.keeper_log())
}

/// Writes a file of the volume, and syncs it.
fn sync(fixture: &Fixture, name: &str, text: &str) {
    let mut file = File::create(fixture.mount().join(name)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.sync_all().unwrap();
}

fn segments(fixture: &Fixture) -> Vec<PathBuf> {
    let entries = fs::read_dir(fixture.log()).unwrap().map(|it| it.unwrap().path());
    let is_segment =
        |it: &PathBuf| it.file_name().unwrap().to_string_lossy().starts_with("segment-");
    entries.filter(is_segment).collect()
}

fn is_whole(fixture: &Fixture) -> bool {
    let is_there = |name: &str| fixture.log().join(name).exists();
    CATALOGUES.iter().all(|name| is_there(name)) && !segments(fixture).is_empty()
}

/// Everything is as it should be, with nobody's help.
fn wait_until_made_again(fixture: &Fixture) {
    wait_until(|| is_whole(fixture) && is_well(fixture), || tell(fixture));
}

#[test]
fn a_log_directory_that_is_removed_while_it_is_served_is_made_again_from_memory() {
    let mut fixture = serving();
    sync(&fixture, "before", "1");
    fs::remove_dir_all(fixture.log()).unwrap();
    sync(&fixture, "meanwhile", "2");
    wait_until_made_again(&fixture);
    assert!(fixture.keeper_log().contains("its log was made again from memory"));
    sync(&fixture, "after", "3");
    // The log that was made again is the one that memory is drained to.
    let is_drained = || fixture.status()["dirty_bytes"] == 0;
    wait_until(is_drained, || tell(&fixture));
    fixture.kill_all();
    fs::remove_file(&fixture.region).unwrap();
    fixture.take_mounts_away();
    fixture.holdfast(&["volume", "accept", NAME, "--memory-lost"]).succeeded();
    fixture.serve();
    for (name, text) in [("before", "1"), ("meanwhile", "2"), ("after", "3")] {
        assert_eq!(fs::read_to_string(fixture.mount().join(name)).unwrap(), text);
    }
    assert_eq!(fixture.stop(), Some(0), "{}", fixture.keeper_log());
    fixture.assert_given_back();
}

#[test]
fn whoever_serves_a_log_that_was_removed_may_die_before_it_is_noticed() {
    let mut fixture = serving();
    sync(&fixture, "before", "1");
    fs::remove_dir_all(fixture.log()).unwrap();
    sync(&fixture, "meanwhile", "2");
    kill(fixture.holder(), Signal::KILL);
    wait_until_made_again(&fixture);
    for (name, text) in [("before", "1"), ("meanwhile", "2")] {
        assert_eq!(fs::read_to_string(fixture.mount().join(name)).unwrap(), text);
    }
    assert_eq!(fixture.stop(), Some(0), "{}", fixture.keeper_log());
    fixture.assert_given_back();
}

#[test]
fn a_log_that_was_removed_with_everybody_dead_is_mended_from_memory_as_the_message_says() {
    let mut fixture = serving();
    sync(&fixture, "before", "1");
    fixture.kill_all();
    fixture.take_mounts_away();
    fs::remove_dir_all(fixture.log()).unwrap();
    let advised = format!("holdfast volume mend {NAME}");
    fixture.holdfast(&["volume", "check", NAME]).expect(6, &[&advised]);
    fixture.holdfast(&["umount", NAME]).expect(6, &[&advised]);
    fixture.holdfast(&["volume", "mend", NAME]).succeeded();
    fixture.serve();
    assert_eq!(fs::read_to_string(fixture.mount().join("before")).unwrap(), "1");
    assert_eq!(fixture.stop(), Some(0), "{}", fixture.keeper_log());
    fixture.assert_given_back();
}

#[test]
fn a_log_directory_that_is_moved_is_told_with_its_place_until_it_is_back() {
    let mut fixture = serving();
    sync(&fixture, "before", "1");
    let away = fixture.path("away");
    fs::rename(fixture.log(), &away).unwrap();
    let place = away.display().to_string();
    let is_told = || {
        let told = fixture.holdfast(&["status"]);
        told.code == Some(7) && told.out.contains(&place) && told.out.contains("move it back")
    };
    wait_until(is_told, || tell(&fixture));
    kill(fixture.holder(), Signal::KILL);
    sync(&fixture, "meanwhile", "2");
    wait_until(is_told, || tell(&fixture));
    assert!(!fixture.log().exists(), "no second log is made beside it");
    fs::rename(&away, fixture.log()).unwrap();
    wait_until(|| is_well(&fixture), || tell(&fixture));
    assert_eq!(fixture.stop(), Some(0), "{}", fixture.keeper_log());
    fixture.assert_given_back();
}

#[test]
fn what_is_in_the_place_of_a_log_that_was_removed_stays_and_is_named() {
    let mut fixture = serving();
    sync(&fixture, "before", "1");
    let front_end = fixture.holder();
    fs::remove_dir_all(fixture.log()).unwrap();
    fs::write(fixture.log(), "a file").unwrap();
    let is_told = || {
        let told = fixture.holdfast(&["status"]);
        told.code == Some(7) && told.out.contains("were removed from")
    };
    wait_until(is_told, || tell(&fixture));
    sync(&fixture, "meanwhile", "2");
    assert_eq!(fixture.holder(), front_end, "nothing would be better with another process");
    assert_eq!(fs::read_to_string(fixture.log()).unwrap(), "a file");
    fs::remove_file(fixture.log()).unwrap();
    wait_until_made_again(&fixture);
    assert_eq!(fs::read_to_string(fixture.mount().join("meanwhile")).unwrap(), "2");
    assert_eq!(fixture.stop(), Some(0), "{}", fixture.keeper_log());
    fixture.assert_given_back();
}

#[test]
fn a_segment_that_is_being_made_and_finds_no_room_is_none_that_was_taken_away() {
    let mut fixture = serving();
    sync(&fixture, "before", "1");
    let (half_made, before) = (fixture.log().join("segment-00000099"), fixture.holder());
    // As a log on a full disk does; each look of the keeper comes within a second.
    for _ in 0..2 {
        fs::write(&half_made, [0; 4096]).unwrap();
        sleep(Duration::from_millis(1500));
        fs::remove_file(&half_made).unwrap();
        sleep(Duration::from_millis(1500));
    }
    assert!(is_well(&fixture), "{}", tell(&fixture));
    assert_eq!(fixture.holder(), before, "{}", fixture.keeper_log());
    assert_eq!(fixture.stop(), Some(0), "{}", fixture.keeper_log());
}

#[test]
fn a_log_that_was_just_made_again_is_brought_together_with_its_home_whoever_dies() {
    let mut fixture = serving();
    sync(&fixture, "before", "1");
    fs::remove_dir_all(fixture.log()).unwrap();
    let is_there = || CATALOGUES.iter().any(|it| fixture.log().join(it).exists());
    wait_until(is_there, || tell(&fixture));
    fixture.kill_all();
    fixture.take_mounts_away();
    fixture.serve();
    assert_eq!(fs::read_to_string(fixture.mount().join("before")).unwrap(), "1");
    assert_eq!(fixture.stop(), Some(0), "{}", fixture.keeper_log());
    fixture.assert_given_back();
}

/// A volume in the hands of fate, and what has to be in it.
struct World {
    fixture: Fixture,
    expected: BTreeMap<String, String>,
    written: u32,
}

impl World {
    fn step(&mut self, random: &mut Random) -> String {
        let done = self.draw(random);
        if random.below(4) == 0 {
            kill(self.fixture.holder(), Signal::KILL);
            return format!("{done}, kill who has it");
        }
        if random.below(3) == 0 {
            wait_until_made_again(&self.fixture);
            return format!("{done}, wait");
        }
        done
    }

    fn draw(&mut self, random: &mut Random) -> String {
        let log = self.fixture.log();
        match random.below(12) {
            0..4 => {
                self.written += 1;
                let (name, text) = (format!("f{}", random.below(3)), self.written.to_string());
                sync(&self.fixture, &name, &text);
                let told = format!("sync {name}");
                self.expected.insert(name, text);
                told
            }
            4 => {
                let _ = fs::remove_dir_all(log);
                "remove the directory".into()
            }
            5 if log.exists() => {
                let names = fs::read_dir(&log).unwrap().map(|it| it.unwrap().path());
                names.for_each(|it| drop(fs::remove_file(it)));
                "empty the directory".into()
            }
            6 if log.exists() => {
                let all = segments(&self.fixture);
                let one = random.below(all.len().max(1) as u64) as usize;
                all.get(one).into_iter().for_each(|it| drop(fs::remove_file(it)));
                format!("remove segment {one} of {}", all.len())
            }
            8 => {
                let notes = ["home", "home.copy", "region", "region.copy"];
                notes.iter().for_each(|it| drop(fs::remove_file(log.join(it))));
                "remove the notes".into()
            }
            9 if log.exists() => {
                let Some(segment) = segments(&self.fixture).pop() else { return "nothing".into() };
                let _ = fs::remove_file(&segment);
                let _ = fs::create_dir(&segment);
                sleep(Duration::from_secs(2));
                let _ = fs::remove_dir(segment);
                "put a directory in the place of a segment for a while".into()
            }
            10 => {
                wait_until_made_again(&self.fixture);
                fs::remove_dir_all(&log).unwrap();
                fs::write(&log, "a file").unwrap();
                kill(self.fixture.holder(), Signal::KILL);
                sleep(Duration::from_secs(2));
                fs::remove_file(log).unwrap();
                "put a file in the place of the directory for a while, kill who has it".into()
            }
            7 => {
                CATALOGUES.iter().for_each(|it| drop(fs::remove_file(log.join(it))));
                "remove the catalogues".into()
            }
            _ => {
                wait_until_made_again(&self.fixture);
                "wait".into()
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        for (name, text) in &self.expected {
            let found = fs::read_to_string(self.fixture.mount().join(name));
            if found.as_ref().ok() != Some(text) {
                return Err(format!("{name} is {found:?} and not {text}"));
            }
        }
        Ok(())
    }
}

fn live(seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut world = World { fixture: serving(), expected: BTreeMap::new(), written: 0 };
    let mut done = Vec::new();
    for _ in 0..STEPS {
        done.push(world.step(&mut random));
        println!("{}", done.last().unwrap());
        let told = |error| format!("{error} after {done:?}: {}", world.fixture.keeper_log());
        world.check().map_err(told)?;
    }
    wait_until_made_again(&world.fixture);
    world.check().map_err(|error| format!("{error} after {done:?}"))?;
    let ended = world.fixture.stop();
    if ended != Some(0) {
        return Err(format!("{ended:?} after {done:?}: {}", world.fixture.keeper_log()));
    }
    world.fixture.assert_given_back();
    for (name, text) in &world.expected {
        let found = fs::read_to_string(world.fixture.home().join(name));
        if found.as_ref().ok() != Some(text) {
            return Err(format!("at home {name} is {found:?} and not {text} after {done:?}"));
        }
    }
    Ok(())
}

#[test]
fn whatever_of_a_log_is_removed_while_it_is_served_nothing_that_was_acknowledged_is_lost() {
    for_seeds("whatever_of_a_log_is_removed", SEEDS, |seed| {
        live(seed).unwrap_or_else(|error| panic!("{error}"));
    });
}
