//! Front ends that are replaced while programs use what they serve.

use crate::disk_users::{HasFrontEnd, Machine};
use crate::fixture::{Fixture, NAME, copy_program, wait_until};
use crate::load::Load;
use crate::nbd::Served;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const UPGRADES: usize = 5;
/// Behind what guests and clients of sockets use.
const MOUNTED_AT: u64 = 16 << 20;

/// Writes numbers through a mount and reads each of them, until told to stop; returns the last.
fn count(path: &Path, at: u64, stop: &AtomicBool) -> u64 {
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let mut number = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        file.write_all_at(&number.to_le_bytes(), at).unwrap();
        file.sync_all().unwrap();
        let mut found = [0; 8];
        file.read_exact_at(&mut found, at).unwrap();
        assert_eq!(u64::from_le_bytes(found), number);
    }
    number
}

fn number_at(path: &Path, at: u64) -> u64 {
    let mut found = [0; 8];
    fs::File::open(path).unwrap().read_exact_at(&mut found, at).unwrap();
    u64::from_le_bytes(found)
}

/// Runs `replacements` while a program counts through a mount; the volume is given back then.
fn count_through(
    fixture: &Fixture,
    path: &Path,
    at: u64,
    replacements: impl FnOnce(&Fixture),
) -> u64 {
    let stop = AtomicBool::new(false);
    let number = std::thread::scope(|scope| {
        let counted = scope.spawn(|| count(path, at, &stop));
        replacements(fixture);
        stop.store(true, Ordering::Relaxed);
        counted.join().unwrap()
    });
    let status = fixture.status();
    assert_eq!(status["restarts"], 0, "{status}");
    assert!(status["upgrades"].as_u64() >= Some(UPGRADES as u64), "{status}");
    assert!(number > UPGRADES as u64, "no load");
    number
}

#[test]
fn programs_on_a_mount_see_no_error_when_its_front_end_is_replaced() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let path = fixture.mount().join("counter");
    fs::write(&path, [0; 8]).unwrap();
    let number = count_through(&fixture, &path, 0, |fixture| {
        for _ in 0..UPGRADES {
            std::thread::sleep(Duration::from_millis(20));
            fixture.replace();
        }
    });
    assert_eq!(fixture.stop(), Some(0));
    fixture.assert_given_back();
    assert_eq!(number_at(&fixture.home().join("counter"), 0), number);
}

#[test]
fn a_successor_that_is_no_front_end_leaves_the_old_one_serving_however_it_ends() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let path = fixture.mount().join("counter");
    fs::write(&path, [0; 8]).unwrap();
    let stop = AtomicBool::new(false);
    let number = std::thread::scope(|scope| {
        let counted = scope.spawn(|| count(&path, 0, &stop));
        for program in ["/bin/true", "/bin/false", "/bin/echo"] {
            let upgrade = ["upgrade", "volume", NAME, "--binary", program];
            assert_ne!(fixture.holdfast(&upgrade).code, Some(0), "{program}");
            wait_until(|| fixture.status()["state"] == "serving", || fixture.keeper_log());
        }
        fixture.replace();
        stop.store(true, Ordering::Relaxed);
        counted.join().unwrap()
    });
    assert_eq!(fixture.stop(), Some(0));
    assert_eq!(number_at(&fixture.home().join("counter"), 0), number);
}

#[test]
fn every_way_to_a_disk_goes_on_when_its_front_end_is_replaced() {
    let mut served = Served::new();
    let mut machine = Machine::beside(&mut served);
    served.fixture.serve();
    machine.connect();
    let (mut load, mut client) = (Load::new(1), served.unix());
    let path = served.fixture.mount().join("disk");
    let number = count_through(&served.fixture, &path, MOUNTED_AT, |fixture| {
        for round in 0..UPGRADES as u8 {
            client.write(&[round; 5000], 1 << 20).unwrap();
            load.run_for(&mut machine.guest, Duration::from_millis(20), 400);
            fixture.replace();
            assert_eq!(client.read(5000, 1 << 20).unwrap(), [round; 5000]);
            machine.guest.disconnect();
            machine.connect();
        }
    });
    load.finish(&mut machine.guest, crate::guest::PATIENCE);
    machine.guest.disconnect();
    drop(client);
    assert_eq!(served.fixture.stop(), Some(0));
    served.fixture.assert_given_back();
    load.compare(&served.fixture.home());
    assert_eq!(load.faults, Vec::<String>::new());
    assert_eq!(number_at(&served.fixture.home(), MOUNTED_AT), number);
}

#[test]
fn an_upgrade_runs_the_program_that_stands_where_the_keepers_came_from() {
    let mut fixture = Fixture::made();
    let (program, old) = (fixture.path("hf"), fixture.path("hf.old"));
    copy_program(env!("CARGO_BIN_EXE_holdfast"), &program);
    let mut keeper = std::process::Command::new(&program);
    keeper.env("HOLDFAST_CONFIG", fixture.config());
    fixture.serve_as(keeper);
    fs::rename(&program, &old).unwrap();
    copy_program(&old, &program);
    let said = fixture.holdfast(&["upgrade", "volume", NAME]).succeeded();
    assert!(said.err.contains("has 60 s to serve"), "{said:?}");
    let runs = fs::read_link(format!("/proc/{}/exe", fixture.front_end())).unwrap();
    assert_eq!(runs, program);
}

#[test]
fn a_binary_that_cannot_be_run_is_refused_before_anything_is_ended_for_it() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.path("text"), "no program").unwrap();
    let (front_end, server) = (fixture.front_end(), fixture.server());
    let mut targets = vec![vec!["upgrade", "volume", NAME]];
    targets.extend(server.map(|_| vec!["upgrade", "server"]));
    for (name, why) in [("home", "not a file"), ("text", "Permission"), ("none", "No such file")] {
        let path = fixture.path(name);
        for target in &targets {
            let upgrade = [&target[..], &["--binary", path.to_str().unwrap()]].concat();
            fixture.holdfast(&upgrade).expect(2, &[why, "with --binary PATH"]);
        }
    }
    assert_eq!((fixture.front_end(), fixture.server()), (front_end, server));
    assert_eq!(fixture.status()["restarts"], 0);
    assert_eq!(fixture.stop(), Some(0));
}
