//! Requests to the keeper whose asker does not wait, and askers whose keeper ends.

use crate::fixture::{Ended, Fixture, NAME, kill, stop, wait_until, way};
use rustix::process::{Pid, Signal};
use std::fs;
use std::process::{Command, Stdio};

/// Accepts connections at a socket like a keeper, and dies with a request that it has read.
const DIES: &str = r#"
import os, socket, sys
path = sys.argv[1]
if os.path.exists(path): os.unlink(path)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
print("listens", flush=True)
while not listener.accept()[0].recv(4096): pass
os._exit(0)
"#;

#[test]
fn what_nobody_waits_for_any_more_is_not_begun() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let keeper = fixture.keeper_pid();
    stop(keeper);
    let commands = [&["umount", NAME][..], &["shutdown"], &["upgrade", "volume", NAME]];
    let ended: Vec<Ended> = std::thread::scope(|scope| {
        let fixture = &fixture;
        let run = |command| scope.spawn(move || fixture.holdfast(command));
        let mut interrupted = fixture.command();
        interrupted.args(["umount", NAME, "--force"]).stderr(Stdio::null());
        let mut interrupted = interrupted.spawn().unwrap();
        let threads: Vec<_> = commands.map(run).into_iter().collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        kill(Pid::from_child(&interrupted).as_raw_nonzero().get(), Signal::INT);
        let _ended = interrupted.wait().unwrap();
        ended
    });
    ended.iter().for_each(|ended| ended.expect(8, &["said nothing"]));
    kill(keeper, Signal::CONT);
    let refused = || fixture.keeper_log().matches("whoever asked has gone").count();
    wait_until(|| refused() == commands.len() + 1, || fixture.keeper_log());
    let status = fixture.status();
    assert_eq!((&status["state"], &status["upgrades"]), (&"serving".into(), &0.into()), "{status}");
    assert_eq!(fs::read_to_string(fixture.mount().join("f")).unwrap(), "x");
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read_to_string(fixture.home().join("f")).unwrap(), "x");
}

#[test]
fn a_keeper_that_ends_with_a_request_in_hand_is_none() {
    let fixture = Fixture::left_in_memory();
    fixture.take_mounts_away();
    let socket = fixture.path("run/control.sock");
    for command in [&["upgrade", "volume", NAME][..], &["umount", NAME]] {
        let mut dies = Command::new("python3");
        dies.args(["-c", DIES]).arg(&socket).stdout(Stdio::piped());
        let mut dies = dies.spawn().unwrap();
        let mut said = [0; 8];
        std::io::Read::read_exact(dies.stdout.as_mut().unwrap(), &mut said).unwrap();
        let ended = fixture.holdfast(command);
        dies.wait().unwrap();
        match command[0] {
            "umount" => drop(ended.succeeded()),
            _ => ended.expect(4, &["the keeper ended before it answered"]),
        }
    }
    assert_eq!(fs::read_to_string(fixture.home().join("f")).unwrap(), "x");
}

#[test]
fn a_volume_that_another_keeper_serves_is_said_to_be_mounted() {
    // There the first keeper's server keeps the log.
    if way() == "queue" {
        return;
    }
    let mut fixture = Fixture::made();
    fixture.serve();
    fixture.holdfast(&["umount", NAME]).succeeded();
    let other = fixture.path("other.toml");
    fs::write(&other, fixture.config_text().replace("run/", "other/")).unwrap();
    let mut keeper = fixture.command();
    let mut keeper = keeper.env("HOLDFAST_CONFIG", &other).arg("serve").spawn().unwrap();
    let told = || {
        let status = fixture.status();
        let problem = status["problem"].as_str().unwrap_or_default();
        problem.contains("it is mounted at") && problem.contains("another keeper, process")
    };
    wait_until(told, || fixture.status().to_string());
    assert_eq!(fixture.holdfast(&["status"]).code, Some(7));
    kill(Pid::from_child(&keeper).as_raw_nonzero().get(), Signal::TERM);
    assert!(keeper.wait().unwrap().success());
}
