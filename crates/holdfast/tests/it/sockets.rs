//! Sockets whose names are taken away while somebody listens there.
//!
//! They come back by themselves, and whoever dies meanwhile is replaced; where somebody else has
//! the name that is told, with what to do.

use crate::fixture::{Fixture, NAME, kill, wait_until, way};
use crate::seeds::{Random, for_seeds};
use rustix::process::Signal;
use std::fs;

const SEEDS: u64 = 2;
const STEPS: u64 = 8;

fn is_well(fixture: &Fixture) -> bool {
    fixture.holdfast(&["status"]).code == Some(0)
}

#[test]
fn sockets_that_are_taken_away_are_there_again_and_nobody_is_given_up() {
    for_seeds("sockets_that_are_taken_away", SEEDS, |seed| {
        let random = &mut Random::new(seed);
        let mut fixture = Fixture::made();
        fixture.serve();
        for step in 0..STEPS {
            let what = random.below(4);
            println!("seed {seed}, step {step}: {what}");
            match what {
                0 => drop(fs::remove_file(fixture.path("run/control.sock"))),
                1 => drop(fs::remove_file(fixture.path("run/server.sock"))),
                2 => drop(fs::remove_dir_all(fixture.path("run"))),
                _ => kill(fixture.front_end(), Signal::KILL),
            }
            if random.below(2) == 0 {
                wait_until(|| is_well(&fixture), || fixture.keeper_log());
            }
            fs::write(fixture.mount().join("f"), step.to_string()).unwrap();
        }
        let names = ["run/control.sock", "run/server.sock"];
        let names = &names[..if way() == "queue" { 2 } else { 1 }];
        let are_there = || names.iter().all(|name| fixture.path(name).exists());
        wait_until(|| are_there() && is_well(&fixture), || fixture.keeper_log());
        assert_eq!(fixture.stop(), Some(0));
        fixture.assert_given_back();
        let last = (STEPS - 1).to_string();
        assert_eq!(fs::read_to_string(fixture.home().join("f")).unwrap(), last);
    });
}

#[test]
fn a_name_that_somebody_else_has_is_told_of_until_it_is_moved_away() {
    if way() == "direct" {
        return; // there is no server
    }
    let mut fixture = Fixture::made();
    fixture.serve();
    let socket = fixture.path("run/server.sock");
    fs::remove_file(&socket).unwrap();
    let other = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let is_told = || {
        let status = fixture.holdfast(&["status"]);
        status.code == Some(7) && status.out.contains("programs do not find it")
    };
    wait_until(is_told, || fixture.keeper_log());
    fs::remove_file(&socket).unwrap();
    drop(other);
    wait_until(|| socket.exists() && is_well(&fixture), || fixture.keeper_log());
    kill(fixture.front_end(), Signal::KILL);
    wait_until(|| is_well(&fixture), || fixture.keeper_log());
    fixture.holdfast(&["umount", NAME]).succeeded();
}

#[test]
fn a_keeper_that_lives_and_does_not_listen_is_told_of_by_every_command() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let socket = fixture.path("run/control.sock");
    fs::remove_file(&socket).unwrap();
    let other = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    let pid = format!("(process {})", fixture.keeper_pid());
    fs::remove_file(&socket).unwrap();
    fs::create_dir(&socket).unwrap();
    drop(other);
    let told = fixture.holdfast(&["status"]);
    assert!(told.code == Some(8) && told.out.contains(&pid), "{told:?}");
    for command in [&["shutdown"][..], &["mount", NAME]] {
        fixture.holdfast(command).expect(8, &[&pid, "kill -TERM"]);
    }
    fs::remove_dir(&socket).unwrap();
    wait_until(|| is_well(&fixture), || fixture.keeper_log());
    fixture.holdfast(&["shutdown"]).succeeded();
    fixture.assert_given_back();
}
