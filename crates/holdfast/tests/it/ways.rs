//! Two ways to a volume's log, and what only a volume through the queue can meet.
//!
//! Everything that both ways must do alike is in the other files: with `HOLDFAST_WAY=queue` all of
//! them are run by way of the queue.

use crate::fixture::{Fixture, NAME, kill, limit_stack, wait_until, way};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The configuration with the volume's way set.
fn take_way(fixture: &Fixture, way: &str) {
    let text = fixture.config_text();
    let (before, _) = text.split_once("way = ").unwrap();
    fixture.configure(&format!("{before}way = {way:?}\n"));
}

fn server_status(fixture: &Fixture) -> Value {
    let ended = fixture.holdfast(&["status", "--json"]);
    let report: Value = serde_json::from_str(&ended.out).unwrap_or_default();
    report["server"].clone()
}

fn server(fixture: &Fixture) -> i32 {
    server_status(fixture)["pid"].as_i64().unwrap() as i32
}

/// Kills keeper, front end and, if there is one, server, and takes the dead mount away.
fn kill_all(fixture: &mut Fixture, has_server: bool) {
    let server = has_server.then(|| server(fixture));
    let front_end = fixture.front_end();
    fixture.kill_keeper();
    server.into_iter().chain([front_end]).for_each(|pid| kill(pid, Signal::KILL));
    fixture.wait_for_state("left in memory");
}

#[test]
fn each_way_goes_on_from_what_the_other_left_in_memory() {
    let mut fixture = Fixture::made();
    for (round, way) in ["queue", "direct", "queue", "direct"].into_iter().enumerate() {
        take_way(&fixture, way);
        fixture.serve();
        for earlier in 0..round {
            let found = fs::read(fixture.mount().join(format!("d{earlier}/moved"))).unwrap();
            assert_eq!(found, vec![earlier as u8; 300_000], "written in round {earlier}");
        }
        let directory = fixture.mount().join(format!("d{round}"));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("new"), vec![round as u8; 300_000]).unwrap();
        fs::rename(directory.join("new"), directory.join("moved")).unwrap();
        kill_all(&mut fixture, way == "queue");
    }
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.assert_given_back();
    for round in 0..4_u8 {
        let found = fs::read(fixture.home().join(format!("d{round}/moved"))).unwrap();
        assert_eq!(found, vec![round; 300_000]);
    }
}

#[test]
fn a_server_that_is_killed_or_replaced_under_writes_fails_none_of_them() {
    let mut fixture = Fixture::made();
    take_way(&fixture, "queue");
    fixture.serve();
    let file = fs::File::create(fixture.mount().join("f")).unwrap();
    for round in 0..20_u64 {
        match round % 3 {
            0 => kill(server(&fixture), Signal::KILL),
            1 => drop(fixture.holdfast(&["upgrade", "server"]).succeeded()),
            _ => kill(fixture.front_end(), Signal::KILL),
        }
        file.write_all_at(&round.to_le_bytes(), round * 8).unwrap();
        file.sync_data().unwrap();
    }
    drop(file);
    assert_eq!(fixture.stop(), Some(0));
    fixture.assert_given_back();
    let expected: Vec<u8> = (0..20_u64).flat_map(u64::to_le_bytes).collect();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), expected);
}

#[test]
fn a_volume_that_comes_to_the_queue_later_is_told_to_start_the_keeper_again() {
    let mut fixture = Fixture::made();
    take_way(&fixture, "direct");
    fixture.serve();
    fixture.holdfast(&["umount", NAME]).succeeded();
    take_way(&fixture, "queue");
    fixture.holdfast(&["mount", NAME]).expect(2, &["the server does not have its log", "start"]);
    assert_eq!(fixture.stop(), Some(0));
    fixture.serve();
}

#[test]
fn a_volume_that_leaves_the_queue_is_told_to_start_the_keeper_again() {
    const AGAIN: &str = "`holdfast shutdown`, then start the keeper again";
    let mut fixture = Fixture::made();
    take_way(&fixture, "queue");
    fixture.serve();
    fs::write(fixture.mount().join("f"), "kept").unwrap();
    take_way(&fixture, "direct");
    let told = fixture.status()["problem"].as_str().unwrap_or_default().to_owned();
    assert!(told.contains(AGAIN) && !told.contains("`holdfast mount"), "{told}");
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.holdfast(&["mount", NAME]).expect(2, &["the server has its log", AGAIN]);
    let told = fixture.status()["problem"].as_str().unwrap_or_default().to_owned();
    assert!(told.contains(AGAIN), "{told}");
    assert_eq!(fixture.stop(), Some(0));
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"kept");
}

/// Makes a second volume, `w`, whose log the server has, too. Returns its region.
fn make_another(fixture: &Fixture) -> String {
    let text = fs::read_to_string(fixture.config()).unwrap();
    let region = format!("{}-w", fixture.region.display());
    let other = format!(
        "\n[volume.w]\nhome = {:?}\nmount = {:?}\nlog = {:?}\nway = \"queue\"\n\
         memory = {{ medium = \"shm\", size = \"8MiB\", path = {region:?} }}\n\
         must_survive = [\"process\"]\n",
        fixture.path("home-w"),
        fixture.path("mount-w"),
        fixture.path("log-w"),
    );
    for name in ["home-w", "mount-w"] {
        fs::create_dir(fixture.path(name)).unwrap();
    }
    fixture.configure(&(text + &other));
    fixture.holdfast(&["volume", "make", "w"]).succeeded();
    region
}

#[test]
fn a_volume_that_is_asked_for_while_its_keeper_starts_is_served() {
    for way in ["direct", "queue"] {
        let mut fixture = Fixture::made();
        take_way(&fixture, way);
        for _ in 0..3 {
            fixture.begin_to_serve();
            let ask = || Some(fixture.holdfast(&["wait", NAME])).filter(|it| it.code != Some(4));
            let ended = std::iter::repeat_with(ask).take(2000).flatten().next();
            ended.expect("the keeper listens").succeeded();
            assert_eq!(fixture.status()["state"], "serving", "{}", fixture.keeper_log());
            assert_eq!(fixture.stop(), Some(0), "{}", fixture.keeper_log());
        }
    }
}

#[test]
fn umount_names_the_volume_for_which_a_server_without_a_keeper_goes_on() {
    let mut fixture = Fixture::made();
    take_way(&fixture, "queue");
    let region = make_another(&fixture);
    fixture.serve();
    fixture.holdfast(&["wait", "w"]).succeeded();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    fs::write(fixture.path("mount-w/f"), "w").unwrap();
    let pid = server(&fixture).to_string();
    fixture.kill_keeper();
    fixture.holdfast(&["umount", NAME]).expect(5, &[&pid, "volume/w", "`holdfast umount w` first"]);
    fixture.holdfast(&["umount", "w"]).succeeded();
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
    assert_eq!(fs::read(fixture.path("home-w/f")).unwrap(), b"w");
    let _ = fs::remove_file(region);
}

#[test]
fn a_volume_whose_log_is_damaged_does_not_keep_another_from_being_served() {
    let mut fixture = Fixture::made();
    take_way(&fixture, "queue");
    let region = make_another(&fixture);
    for name in ["log-w/catalogue", "log-w/catalogue.copy"] {
        fs::write(fixture.path(name), "damaged").unwrap();
    }
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let refused = fixture.holdfast(&["mount", "w"]);
    refused.expect(6, &["catalogue", "restore what is named"]);
    assert_eq!(fixture.stop(), Some(0));
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
    let _ = fs::remove_file(region);
}

#[test]
fn a_volume_whose_server_was_given_up_is_let_go_with_its_memory_kept() {
    let mut fixture = Fixture::made();
    take_way(&fixture, "queue");
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let pid = server(&fixture);
    limit_stack(fixture.keeper_pid(), "4096:unlimited");
    kill(pid, Signal::KILL);
    let is_given_up = || server_status(&fixture)["state"] == "given up";
    wait_until(is_given_up, || fixture.keeper_log());
    fixture.holdfast(&["umount", NAME]).expect(1, &["server was given up", "memory and log are"]);
    fixture.stop();
    assert!(fixture.region.exists() && !fixture.is_mounted());
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

#[test]
fn a_log_that_the_server_keeps_after_an_unmount_is_checked_once_the_keeper_has_ended() {
    let mut fixture = Fixture::made();
    take_way(&fixture, "queue");
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    fixture.holdfast(&["umount", NAME]).succeeded();
    let words = ["a keeper's server has it", "holdfast-server", "`holdfast shutdown`"];
    fixture.holdfast(&["volume", "check", NAME]).expect(5, &words);
    fixture.holdfast(&["shutdown"]).succeeded();
    fixture.holdfast(&["volume", "check", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

/// Adds a served log, and a disk that has no server.
fn with_a_log_and_a_disk(fixture: &Fixture, log: &Path) {
    let (region, memory) = (format!("{}.log", fixture.region.display()), fixture.block_cache());
    let (text, socket, must) = (fixture.config_text(), fixture.path("ram"), "[\"process\"]");
    fixture.configure(&format!(
        "{text}\n[log.l]\nlog = {log:?}\nmust_survive = {must}\n\
         memory = {{ medium = \"shm\", size = \"8MiB\", path = {region:?} }}\n\
         [disk.ram]\nsize = \"4MiB\"\nmust_survive = {must}\nway = \"direct\"\n\
         nbd = [\"unix:{}\"]\nmemory = {{ medium = \"shm\", path = {memory:?} }}\n",
        socket.display()
    ));
    fixture.holdfast(&["log", "make", "l"]).succeeded();
    fixture.holdfast(&["disk", "make", "ram"]).succeeded();
}

#[test]
fn what_the_server_lacks_is_told_as_the_servers_and_only_as_long_as_it_does() {
    if way() != "queue" {
        return; // the volume has no server
    }
    let mut fixture = Fixture::made();
    let log = fixture.path("another-log");
    with_a_log_and_a_disk(&fixture, &log);
    fixture.serve_volume(NAME);
    let (old, front_end) = (server(&fixture), fixture.front_end());
    fixture.kill_keeper();
    kill(old, Signal::STOP);
    kill(front_end, Signal::KILL);
    fixture.wait_for_state("left in memory");
    fixture.begin_to_serve();
    let problem = || fixture.status()["problem"].as_str().unwrap_or_default().to_owned();
    wait_until(|| problem().contains("the server serves nothing yet"), problem);
    // Nobody wants it, and nothing stands in its way any more.
    fixture.holdfast(&["umount", NAME]).expect(1, &["it is not mounted"]);
    kill(old, Signal::KILL);
    wait_until(|| server_status(&fixture)["state"] == "serving", || fixture.keeper_log());
    assert_eq!(problem(), "", "{}", fixture.status());
    fixture.holdfast(&["mount", NAME]).succeeded();
    assert_eq!(fixture.stop(), Some(0));
    let _ = fs::remove_file(format!("{}.log", fixture.region.display()));
}
