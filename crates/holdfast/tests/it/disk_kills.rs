//! Kills of whatever serves a disk whose home is a file, in any order.
//!
//! Nobody touches the home, so whoever serves it next takes it: a mere kill is never told as a
//! change that somebody made.

use crate::block::{disk, with_disk};
use crate::fixture::{Fixture, NAME, kill, way};
use crate::seeds::{Random, for_seeds};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

/// More steps than an unmount takes.
const STEPS_MAX: u64 = 60;

/// Lives of a keeper in one run.
const LIVES: u64 = 10;
/// The part of the disk that is written.
const WRITTEN_BLOCKS: u64 = 2000;

/// Acknowledged, and in the log alone: the cleaner lets changes gather.
fn write(fixture: &Fixture, number: u8) {
    let file = fs::File::options().write(true).open(disk(fixture)).unwrap();
    file.write_all_at(&[number; 4096], 4096).unwrap();
}

#[test]
fn an_unmount_that_died_at_any_step_has_nobody_accused_of_changing_the_file() {
    let mut fixture = with_disk();
    for step in 1..STEPS_MAX {
        let number = step as u8;
        fixture.serve();
        write(&fixture, number);
        fixture.kill_all();
        let mut command = fixture.command();
        command.args(["umount", NAME]).env("HOLDFAST_TEST_DIES_AT", step.to_string());
        let died = command.output().unwrap().status.code().is_none();
        let checked = fixture.holdfast(&["volume", "check", NAME]);
        assert_eq!(checked.code, Some(0), "dead at step {step}: {checked:?}");
        let given_back = fixture.holdfast(&["umount", NAME]);
        assert_eq!(given_back.code, Some(0), "dead at step {step}: {given_back:?}");
        let mut found = [0; 4096];
        fs::File::open(fixture.home()).unwrap().read_exact_at(&mut found, 4096).unwrap();
        assert!(found == [number; 4096], "dead at step {step}: not at home");
        if !died {
            assert!(step > 6, "no step is missed: {step}");
            return;
        }
    }
    panic!("an unmount never ends");
}

/// Writes all over the disk until it cannot.
fn load(path: PathBuf, seed: u64) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let Ok(file) = fs::File::options().write(true).open(path) else { return };
        let mut random = Random::new(seed);
        let mut goes_on = true;
        while goes_on {
            let bytes = vec![random.next() as u8; [4096, 16384, 262_144][random.below(3) as usize]];
            goes_on = file.write_all_at(&bytes, random.below(WRITTEN_BLOCKS) * 4096).is_ok();
        }
    })
}

/// The processes that the threads of one have started, and those that these have.
fn started_by(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let children = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children"));
    let texts: Vec<String> = threads.flatten().filter_map(|it| children(it).ok()).collect();
    let words = texts.iter().flat_map(|text| text.split_whitespace());
    let own: Vec<i32> = words.filter_map(|word| word.parse().ok()).collect();
    own.iter().flat_map(|pid| [vec![*pid], started_by(*pid)].concat()).collect()
}

/// Some of them die, as drawn, and are started anew. What is killed next may be just begun.
fn kill_some(fixture: &Fixture, random: &mut Random) {
    for pid in started_by(fixture.keeper_pid()) {
        if random.below(4) > 0 {
            kill(pid, Signal::KILL);
        }
    }
    let most = 1 + random.below(250);
    std::thread::sleep(Duration::from_millis(random.below(most)));
}

/// All of them die, the last keeper among them, in an order that is drawn.
fn kill_all(fixture: &mut Fixture, random: &mut Random) {
    let keeper = fixture.keeper_pid();
    kill(keeper, Signal::STOP);
    let mut others = started_by(keeper);
    while !others.is_empty() {
        let drawn = random.below(others.len() as u64) as usize;
        kill(others.swap_remove(drawn), Signal::KILL);
    }
    fixture.kill_keeper();
    fixture.wait_until_let_go();
    fixture.take_mounts_away();
}

#[test]
fn a_disk_is_served_again_whoever_of_its_processes_was_killed_in_whatever_order() {
    for_seeds("a_disk_is_served_again_whoever", 2, |seed| {
        let mut random = Random::new(seed);
        let mut fixture = with_disk();
        if seed % 2 == 1 {
            fixture.reconfigure(&format!("way = {:?}", way()), "way = \"queue\"");
        }
        for life in 0..LIVES {
            let refused = fixture.try_to_serve();
            assert!(refused.is_none(), "seed {seed}, life {life}: {refused:?}");
            fixture.holdfast(&["wait", NAME]).succeeded();
            let writer = load(disk(&fixture), random.next());
            std::thread::sleep(Duration::from_millis(random.below(400)));
            (0..1 + random.below(2)).for_each(|_| kill_some(&fixture, &mut random));
            kill_all(&mut fixture, &mut random);
            writer.join().unwrap();
        }
        fixture.holdfast(&["volume", "check", NAME]).succeeded();
        fixture.holdfast(&["umount", NAME]).succeeded();
    });
}
