//! A volume from mount to umount, and front ends that die in between.

use crate::fixture::{Fixture, NAME, kill, wait_until};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::FileExt;

#[test]
fn what_is_written_to_the_mount_is_in_the_home_after_umount() {
    let mut fixture = Fixture::made();
    fs::write(fixture.home().join("before"), "adopted").unwrap();
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("before")).unwrap(), b"adopted");
    fs::create_dir(fixture.mount().join("d")).unwrap();
    fs::write(fixture.mount().join("d/new"), vec![7; 3_000_000]).unwrap();
    let said = fixture.holdfast(&["umount", NAME]).succeeded().out;
    assert!(said.contains("is complete"), "{said}");
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("d/new")).unwrap(), vec![7; 3_000_000]);
    assert_eq!(fs::read(fixture.home().join("before")).unwrap(), b"adopted");
    fixture.holdfast(&["mount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.mount().join("d/new")).unwrap().len(), 3_000_000);
    assert_eq!(fixture.stop(), Some(0));
    fixture.assert_given_back();
}

#[test]
fn a_volume_can_be_mounted_over_its_own_home() {
    let mut fixture = Fixture::made();
    let (mount, home) = (format!("{:?}", fixture.mount()), format!("{:?}", fixture.home()));
    fixture.configure(&fixture.config_text().replace(&mount, &home));
    fs::write(fixture.home().join("old"), "old").unwrap();
    fixture.serve();
    assert!(fixture.is_mounted());
    fs::write(fixture.home().join("new"), "new").unwrap();
    kill(fixture.front_end(), Signal::KILL);
    assert_eq!(fs::read(fixture.home().join("old")).unwrap(), b"old");
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("new")).unwrap(), b"new");
}

#[test]
fn a_killed_front_end_is_replaced_and_no_program_sees_an_error() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let file = fs::File::create(fixture.mount().join("f")).unwrap();
    for round in 0..20_u64 {
        kill(fixture.front_end(), Signal::KILL);
        file.write_all_at(&round.to_le_bytes(), round * 8).unwrap();
        file.sync_data().unwrap();
    }
    drop(file);
    let status = fixture.status();
    assert_eq!(status["restarts"], 20, "{status}");
    assert_eq!(status["state"], "serving", "{status}");
    let text = fixture.holdfast(&["status"]).succeeded().out;
    assert!(text.contains("20 restarts, longest stall"), "{text}");
    fixture.holdfast(&["umount", NAME]).succeeded();
    let expected: Vec<u8> = (0..20_u64).flat_map(u64::to_le_bytes).collect();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), expected);
}

#[test]
fn status_says_what_the_configuration_survives_and_what_not() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let text = fixture.holdfast(&["status"]).succeeded().out;
    for word in ["v: serving", "survives     process", "NOT          os, power", "power source"] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    assert!(fixture.keeper_log().contains("does not survive power"), "{}", fixture.keeper_log());
}

#[test]
fn a_volume_that_must_survive_power_writes_through_and_says_why() {
    let mut fixture = Fixture::made();
    fixture.reconfigure("[\"process\"]", "[\"process\", \"os\", \"power\"]");
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    fs::File::open(fixture.mount().join("f")).unwrap().sync_all().unwrap();
    let status = fixture.status();
    assert_eq!(status["verdict"]["class"], "disk", "{status}");
    // The cleaner has marks of its own.
    wait_until(|| fixture.status()["dirty_bytes"] == 0, || fixture.status().to_string());
    let text = fixture.holdfast(&["status"]).succeeded().out;
    assert!(text.contains("writes through because of power"), "{text}");
}

#[test]
fn a_plain_file_that_is_called_persistent_memory_is_not_believed() {
    let mut fixture = Fixture::made();
    let region = fixture.path("region");
    let asked = fixture.config_text().replace("\"shm\"", "\"pmem\"");
    let asked = asked.replace(&format!("{:?}", fixture.region), &format!("{region:?}"));
    fixture.configure(&asked.replace("[\"process\"]", "[\"process\", \"os\"]"));
    fixture.serve();
    assert_eq!(fixture.status()["verdict"]["class"], "disk", "{}", fixture.status());
}

#[test]
fn a_mount_in_use_is_not_unmounted_unless_forced() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let file = fs::File::create(fixture.mount().join("f")).unwrap();
    file.write_all_at(b"kept", 0).unwrap();
    let me = format!("(pid {})", std::process::id());
    fixture.holdfast(&["umount", NAME]).expect(5, &["in use by", &me, "--force"]);
    assert_eq!(fixture.status()["state"], "serving");
    fixture.holdfast(&["umount", NAME, "--force"]).succeeded();
    file.write_all_at(b"late", 0).unwrap_err();
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"kept");
}

#[test]
fn a_plain_umount_gives_the_home_back_too() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    rustix::mount::unmount(fixture.mount(), rustix::mount::UnmountFlags::empty()).unwrap();
    fixture.wait_for_state("detached");
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

#[test]
fn a_front_end_that_dies_while_giving_back_is_replaced_until_it_is_done() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), vec![1; 1_000_000]).unwrap();
    let front_end = fixture.front_end();
    kill(front_end, Signal::STOP);
    rustix::mount::unmount(fixture.mount(), rustix::mount::UnmountFlags::empty()).unwrap();
    kill(front_end, Signal::KILL);
    fixture.wait_for_state("detached");
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), vec![1; 1_000_000]);
}

#[test]
fn keeper_and_front_end_are_the_last_to_go_when_memory_runs_out_if_they_may() {
    // Where even root may not ask for it, the score stays what it was.
    let ask = "echo -900 2>/dev/null >/proc/self/oom_score_adj; cat /proc/self/oom_score_adj";
    let possible = std::process::Command::new("sh").args(["-c", ask]).output().unwrap().stdout;
    let mut fixture = Fixture::made();
    fixture.serve();
    for pid in [fixture.keeper_pid(), fixture.front_end()] {
        let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        assert_eq!(score.as_bytes(), possible);
    }
}
