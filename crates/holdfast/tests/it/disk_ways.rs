//! Two ways to a disk: what users of its front end must see by either, and what only a disk that is
//! its front end's own can meet.
//!
//! As for volumes, the tests of front ends are run by each way: see `HOLDFAST_WAY`.

use crate::disk_users::{
    HasFrontEnd, Machine, WATCH, Writers, bring_about, check_counts, events, gentle_events,
};
use crate::fixture::{copy_program, kill, pid_that_comes, wait_until, way};
use crate::load::Load;
use crate::nbd::Client;
use crate::served_disks::WithDisk;
use crate::watchdog::Watchdog;
use holdfast_client::BlocksClient;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const DISK_BYTES: usize = 32 << 20;

impl HasFrontEnd for WithDisk {
    fn front_end_status(&self) -> Value {
        self.status().0["front_end"].clone()
    }

    fn front_end_pid(&self) -> i32 {
        pid_that_comes(|| self.front_end_status()["pid"].as_i64(), || self.keeper_said())
    }

    fn replace(&self) {
        let said = self.holdfast(&["upgrade", "disk", "ram"]).succeeded().out;
        assert!(said.contains("the front end of ram is replaced"), "{said}");
    }

    fn keeper_said(&self) -> String {
        fs::read_to_string(self.served.path("keeper.log")).unwrap_or_default()
    }
}

fn served(mut disk: WithDisk) -> (WithDisk, Watchdog) {
    disk.served.serve();
    disk.wait_for_front_end(0);
    let watchdog = Watchdog::start(disk.served.path("holdfast.toml"), WATCH);
    (disk, watchdog)
}

fn writers(disk: &WithDisk) -> Writers {
    let uri = format!("nbd+unix:///ram?socket={}", disk.socket().display());
    Writers::at(&uri, &uri)
}

/// Waits until a front end has taken a client.
fn wait_for_client(disk: &WithDisk) {
    let (socket, taken) = (disk.socket().display().to_string(), "03");
    let is_client =
        |line: &str| line.ends_with(&socket) && line.split_ascii_whitespace().nth(5) == Some(taken);
    let sockets = || fs::read_to_string("/proc/net/unix").unwrap();
    wait_until(|| sockets().lines().any(is_client), || disk.keeper_said());
}

#[test]
fn clients_of_a_disk_that_connect_again_see_no_error_when_front_ends_are_killed() {
    let (mut disk, _watchdog) = served(WithDisk::made_with_socket(&way()));
    let (writers, events) = (writers(&disk), events());
    for event in &events {
        wait_for_client(&disk);
        bring_about(&disk, *event);
    }
    let seen = writers.finish().unwrap();
    assert!(seen.answered > events.len() as u64, "no load");
    assert!(seen.lost >= events.len() as u64 / 2, "not under load");
    check_counts(&disk, &events);
    disk.served.stop();
}

#[test]
fn replacing_a_disks_front_end_or_telling_it_to_end_loses_no_connection_and_no_request() {
    let (mut disk, _watchdog) = served(WithDisk::made_with_socket(&way()));
    let (writers, events) = (writers(&disk), gentle_events());
    for event in &events {
        wait_for_client(&disk);
        std::thread::sleep(Duration::from_millis(50));
        bring_about(&disk, *event);
    }
    assert_eq!(writers.finish().unwrap().lost, 0, "{}", disk.keeper_said());
    check_counts(&disk, &events);
    disk.served.stop();
}

#[test]
fn a_replacement_of_a_disks_front_end_that_does_not_come_up_leaves_the_disk_to_the_old_one() {
    let (mut disk, _watchdog) = served(WithDisk::made_with_socket(&way()));
    let writers = writers(&disk);
    wait_for_client(&disk);
    let broken = disk.served.path("broken");
    copy_program("/bin/false", &broken);
    let upgrade = ["upgrade", "disk", "ram", "--binary", broken.to_str().unwrap()];
    disk.holdfast(&upgrade).expect(1, &["the old one is started again"]);
    disk.wait_for_front_end(0);
    assert_eq!(writers.finish().unwrap().lost, 0, "{}", disk.keeper_said());
    disk.served.stop();
}

#[test]
fn a_guest_on_a_disk_sees_no_error_when_front_ends_are_killed_and_replaced() {
    let disk = WithDisk::made_with_socket(&way());
    let mut machine = Machine::at(disk.served.path("vm.sock"));
    disk.configure(&format!("vhost-user = {:?}", machine.socket));
    let (mut disk, _watchdog) = served(disk);
    let (mut load, events) = (Load::new(2), events());
    machine.work_through(&mut load, &disk, &events);
    check_counts(&disk, &events);
    machine.guest.disconnect();
    let copy = disk.served.path("copy");
    fs::write(&copy, disk.nbd().read(DISK_BYTES, 0).unwrap()).unwrap();
    load.compare(&copy);
    assert_eq!(load.faults, Vec::<String>::new());
    disk.served.stop();
}

#[test]
fn each_way_to_a_disk_goes_on_from_what_the_other_left() {
    let mut disk = WithDisk::made_with_socket("queue");
    for (round, way) in ["queue", "direct", "queue", "direct"].into_iter().enumerate() {
        disk.served.serve();
        disk.wait_for_front_end(0);
        assert_eq!(disk.status().0["way"], way);
        let mut client = disk.nbd();
        for earlier in 0..round {
            let found = client.read(50_000, earlier as u64 * 50_001).unwrap();
            assert_eq!(found, vec![earlier as u8 + 1; 50_000], "written in round {earlier}");
        }
        client.write(&[round as u8 + 1; 50_000], round as u64 * 50_001).unwrap();
        // The keeper and then, at once, whoever has the region.
        let (front_end, server) = (disk.front_end_pid(), disk.served.server_pid());
        disk.served.kill_keeper();
        [front_end, server].into_iter().for_each(|pid| kill(pid, Signal::KILL));
        let is_over = |pid: i32| !fs::exists(format!("/proc/{pid}")).unwrap();
        wait_until(|| is_over(front_end) && is_over(server), || "they do not end".into());
        let next = if way == "queue" { "direct" } else { "queue" };
        disk.reconfigure(&format!("way = {way:?}"), &format!("way = {next:?}"));
    }
}

#[test]
fn a_disk_of_its_front_end_alone_is_no_service_and_is_told_of_as_what_it_is() {
    let (mut disk, _watchdog) = served(WithDisk::made_with_socket("direct"));
    let refused = BlocksClient::connect(&disk.served.socket(), "ram").unwrap_err();
    let unknown = BlocksClient::connect(&disk.served.socket(), "other").unwrap_err();
    assert_eq!(refused.to_string(), unknown.to_string());
    disk.nbd().write(&[7; 8192], 4096).unwrap();
    let (status, _) = disk.status();
    assert_eq!((&status["state"], &status["clients"]), (&"served".into(), &0.into()), "{status}");
    assert_eq!(status["held_bytes"], 8192, "{status}");
    assert_eq!(status["verdict"]["survives"], serde_json::json!(["process"]), "{status}");
    let text = disk.holdfast(&["status"]).succeeded().out;
    for words in ["disk ram: served, way direct\n", "of which 8.0 KiB", "serving, 0 restarts"] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    disk.holdfast(&["disk", "remove", "ram"]).expect(5, &["serves it", "holdfast shutdown"]);
    kill(disk.served.server_pid(), Signal::KILL);
    assert_eq!(disk.nbd().read(2, 12287).unwrap(), [7, 0], "no server is asked");
    disk.served.stop();
    assert_eq!(disk.status().0["state"], "not served");
    disk.holdfast(&["disk", "remove", "ram"]).succeeded();
}

/// Nobody may be cut off from a disk because another keeper is started.
#[test]
fn a_keeper_leaves_a_disk_to_the_front_end_that_outlived_the_one_before_it() {
    let mut disk = WithDisk::made_with_socket("direct");
    disk.served.serve();
    disk.wait_for_front_end(0);
    let (mut client, front_end) = (disk.nbd(), disk.front_end_pid());
    disk.served.kill_keeper();
    // With another socket it is the region alone that is in the way.
    disk.reconfigure("disk.sock", "other.sock");
    disk.served.serve();
    let told = |disk: &WithDisk| disk.status().0["last_error"].to_string();
    let why = format!("process {front_end} serves the region");
    wait_until(|| told(&disk).contains(&why), || told(&disk));
    assert!(told(&disk).contains("as soon as nobody has it"), "{}", told(&disk));
    client.write(&[5; 5000], 100).unwrap();
    drop(client);
    wait_until(|| !fs::exists(format!("/proc/{front_end}")).unwrap(), || "it does not end".into());
    disk.wait_for_front_end(0);
    let other = UnixStream::connect(disk.served.path("other.sock")).unwrap();
    assert_eq!(Client::new(other).unwrap().read(5000, 100).unwrap(), [5; 5000]);
    disk.served.stop();
}

#[test]
fn a_keeper_of_nothing_but_a_disk_of_its_front_ends_has_no_server_and_ends_if_it_cannot_serve_it() {
    let disk = WithDisk::new();
    disk.configure(&format!("way = \"direct\"\nnbd = [\"unix:{}\"]", disk.socket().display()));
    disk.served.leave_out_log();
    let ended = disk.holdfast(&["serve"]);
    ended.expect(2, &["holdfast disk make ram", "then start the keeper again"]);
    let mut disk = disk.make();
    disk.served.begin_to_serve();
    disk.wait_for_front_end(0);
    assert_eq!(disk.status().1, Value::Null, "nobody has asked for a server");
    disk.nbd().write(&[1; 100], 0).unwrap();
    disk.served.stop();
    disk.reconfigure("must_survive = [\"process\"]", "must_survive = [\"os\"]");
    disk.holdfast(&["serve"]).expect(3, &["os (the kernel takes", "must_survive"]);
}
