//! The end of a keeper that was asked for: it is waited for, and says what it waits for itself.

use crate::fixture::{Ended, Fixture, NAME, kill, wait_until, way};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::process::Stdio;

#[test]
fn shutdown_gives_every_volume_back() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let said = fixture.holdfast(&["shutdown"]).succeeded().out;
    assert!(said.contains("the keeper has ended"), "{said}");
    assert_eq!(fixture.holdfast(&["status"]).code, Some(4));
    assert!(!fixture.region.exists() && !fixture.is_mounted());
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
    fixture.holdfast(&["shutdown"]).expect(4, &["no keeper is running"]);
}

#[test]
fn who_is_waited_for_is_named_and_a_second_shutdown_cuts_them_off() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let open = fs::File::create(fixture.mount().join("f")).unwrap();
    let mut first = fixture.command();
    first.arg("shutdown").stdout(Stdio::piped()).stderr(Stdio::piped());
    let first = first.spawn().unwrap();
    let report = || {
        let report = fixture.holdfast(&["status", "--json"]).out;
        serde_json::from_str::<Value>(&report).unwrap_or_default()
    };
    let me = format!("(pid {})", std::process::id());
    let is_named = || {
        let keeper = report()["keeper"].clone();
        keeper["is_ending"] == true && keeper["waits_for"].to_string().contains(&me)
    };
    wait_until(is_named, || report().to_string());
    let text = fixture.holdfast(&["status"]).out;
    assert!(text.contains(", ending") && text.contains("waits for"), "{text}");
    let waited = fixture.holdfast(&["wait", NAME]);
    assert!(waited.code != Some(0) && waited.err.contains("the keeper ends"), "{waited:?}");
    fixture.holdfast(&["shutdown"]).succeeded();
    Ended::of(first.wait_with_output().unwrap()).succeeded();
    assert!(!fixture.is_mounted());
    drop(open);
}

#[test]
fn what_a_keeper_could_not_give_back_is_told() {
    if way() == "queue" {
        return; // the server has the log, and is not told by its front end
    }
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let (keeper, front_end) = (fixture.keeper_pid(), fixture.front_end());
    kill(front_end, Signal::STOP);
    let mut shutdown = fixture.command();
    shutdown.arg("shutdown").stdout(Stdio::piped()).stderr(Stdio::piped());
    let shutdown = shutdown.spawn().unwrap();
    wait_until(|| fixture.keeper_log().contains("giving every volume back"), || "no end".into());
    // At once: a front end that stands still is replaced by and by, and the next one succeeds.
    kill(keeper, Signal::KILL);
    kill(front_end, Signal::KILL);
    let ended = Ended::of(shutdown.wait_with_output().unwrap());
    ended.expect(1, &["the keeper has ended, and volume v is", "`holdfast umount v`"]);
}

#[test]
fn a_keeper_ends_with_what_shutdown_says_also_of_a_volume_that_it_could_not_take_up() {
    if way() == "queue" {
        return; // the volume's front end has the server of the keeper that is gone
    }
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    fixture.kill_keeper();
    // Something that the next keeper can serve.
    let (text, memory, socket) =
        (fixture.config_text(), fixture.block_cache(), fixture.path("ram"));
    fixture.configure(&format!(
        "{text}\n[disk.ram]\nsize = \"4MiB\"\nmust_survive = [\"process\"]\nway = \"direct\"\n\
         nbd = [\"unix:{}\"]\nmemory = {{ medium = \"shm\", path = {memory:?} }}\n",
        socket.display()
    ));
    fixture.holdfast(&["disk", "make", "ram"]).succeeded();
    fixture.begin_to_serve();
    fixture.wait_for_state("served without a keeper");
    wait_until(|| socket.exists(), || fixture.keeper_log());
    let left = ["volume v is served without a keeper", "`holdfast umount v`"];
    fixture.holdfast(&["shutdown"]).expect(1, &left);
    assert_eq!(fixture.reap(), Some(1), "{}", fixture.keeper_log());
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}
