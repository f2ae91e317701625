//! Users of disks while front ends are killed and replaced: clients that others wrote, and guests.

use crate::fixture::{Fixture, NAME, kill, wait_until};
use crate::guest::{Guest, PATIENCE};
use crate::load::{Load, QUEUES};
use crate::nbd::Served;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often a front end is killed, and how often it is replaced.
struct Counts {
    kills: usize,
    upgrades: usize,
}

/// With eight times as many seeds, as everywhere in the long tests, a thousand and a hundred.
fn counts() -> Counts {
    let factor = std::env::var("HOLDFAST_SEEDS_FACTOR").ok().and_then(|text| text.parse().ok());
    let times = |usual, at_eight| factor.map_or(usual, |factor: usize| at_eight * factor / 8);
    Counts { kills: times(10, 1000), upgrades: times(2, 100) }
}

const WATCH: Duration = Duration::from_secs(1800);

/// What the load is to last for, in the order in which it comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    /// By a signal from outside.
    End(Signal),
    Upgrade,
}

const KILL: Event = Event::End(Signal::KILL);

/// Kills, with replacements among them.
fn events() -> Vec<Event> {
    let Counts { kills, upgrades } = counts();
    let between = kills / upgrades;
    let round = |_| std::iter::repeat_n(KILL, between).chain([Event::Upgrade]);
    (0..upgrades).flat_map(round).collect()
}

fn bring_about(fixture: &Fixture, event: Event) {
    match event {
        Event::Upgrade => drop(fixture.holdfast(&["upgrade", "volume", NAME]).succeeded()),
        Event::End(signal) => {
            let before = fixture.status()["restarts"].as_u64();
            kill(fixture.front_end(), signal);
            let is_next = |status: &Value| {
                status["restarts"].as_u64() > before && status["state"] == "serving"
            };
            wait_until(|| is_next(&fixture.status()), || fixture.keeper_log());
        }
    }
}

/// Fails unless just these things happened to the front ends.
#[track_caller]
fn check_counts(fixture: &Fixture, events: &[Event]) {
    let upgrades = events.iter().filter(|event| **event == Event::Upgrade).count();
    let status = fixture.status();
    assert_eq!(status["upgrades"], upgrades, "{status}");
    assert_eq!(status["restarts"], events.len() - upgrades, "{status}");
    println!(
        "{} deaths, {} replacements, longest stall {} ms",
        status["restarts"], status["upgrades"], status["longest_stall_ms"]
    );
}

/// A client over libnbd that checks what it reads, and says at its end what it saw.
struct Writer(Child);

impl Writer {
    fn start(socket: &Path) -> Writer {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/nbd_writer.py");
        let uri = format!("nbd+unix:///{NAME}?socket={}", socket.display());
        // Debian's Python: the module is not in any other.
        let mut command = Command::new("/usr/bin/python3");
        command.args([script, &uri, "4"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Writer(command.stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Its own words, or its complaint.
    fn finish(mut self) -> Result<Value, String> {
        drop(self.0.stdin.take());
        let output = self.0.wait_with_output().unwrap();
        match output.status.success() {
            true => Ok(serde_json::from_slice(&output.stdout).unwrap()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

#[test]
fn a_client_that_connects_again_sees_no_error_when_front_ends_are_killed() {
    let mut served = Served::new();
    served.fixture.watch_for(WATCH);
    served.fixture.serve();
    let (writer, events) = (Writer::start(&served.socket()), events());
    events.iter().for_each(|event| bring_about(&served.fixture, *event));
    let saw = writer.finish().unwrap();
    println!("NBD: {saw}");
    assert!(saw["answered"].as_u64() > Some(events.len() as u64), "no load: {saw}");
    assert!(saw["lost"].as_u64() >= Some(events.len() as u64 / 2), "not under load: {saw}");
    check_counts(&served.fixture, &events);
    served.fixture.holdfast(&["umount", NAME, "--force"]).succeeded();
    served.fixture.assert_given_back();
}

#[test]
fn replacing_a_front_end_or_telling_it_to_end_loses_no_connection_and_no_request() {
    let mut served = Served::new();
    served.fixture.watch_for(WATCH);
    served.fixture.serve();
    let writer = Writer::start(&served.socket());
    let events = [Event::Upgrade, Event::End(Signal::TERM)].repeat(counts().upgrades);
    for event in &events {
        std::thread::sleep(Duration::from_millis(50));
        bring_about(&served.fixture, *event);
    }
    let saw = writer.finish().unwrap();
    println!("NBD: {saw}");
    assert_eq!(saw["lost"], 0, "{saw}: {}", served.fixture.keeper_log());
    check_counts(&served.fixture, &events);
}

#[test]
fn a_replacement_that_does_not_come_up_leaves_connections_to_the_old_binary() {
    let mut served = Served::new();
    served.fixture.serve();
    let writer = Writer::start(&served.socket());
    let broken = served.fixture.path("broken");
    fs::copy("/bin/false", &broken).unwrap();
    for binary in [broken.to_str().unwrap(), "/etc/hostname"] {
        let upgrade = ["upgrade", "volume", NAME, "--binary", binary];
        served.fixture.holdfast(&upgrade).expect(1, &["the old one serves again"]);
        served.fixture.wait_for_state("serving");
    }
    let missing = ["upgrade", "volume", NAME, "--binary", "/no/such/file"];
    served.fixture.holdfast(&missing).expect(2, &["--binary"]);
    let saw = writer.finish().unwrap();
    assert_eq!(saw["lost"], 0, "{saw}: {}", served.fixture.keeper_log());
    served.fixture.holdfast(&["umount", NAME]).succeeded();
    let unmounted = ["upgrade", "volume", NAME];
    served.fixture.holdfast(&unmounted).expect(1, &["it is not mounted"]);
}

/// Canary for the writer: it has to notice a disk that changes by itself.
#[test]
fn the_writer_notices_what_it_has_not_written() {
    let mut served = Served::new();
    served.fixture.serve();
    let writer = Writer::start(&served.socket());
    let mut other = served.unix();
    for _ in 0..20 {
        other.write(&[1; 64 << 10], 1 << 20).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    let complaint = writer.finish().unwrap_err();
    assert!(complaint.contains("is another"), "{complaint}");
}

#[test]
fn qemu_waits_for_the_next_front_end_and_sees_no_error() {
    let mut served = Served::new();
    served.fixture.serve();
    let image = format!(
        "driver=nbd,server.type=unix,server.path={},export={NAME},reconnect-delay=60",
        served.socket().display()
    );
    let mut bench = Command::new("qemu-img");
    bench.args(["bench", "--image-opts", "-w", "-c", "20000", "-s", "4096", "-d", "8"]);
    bench.args(["-S", "4096", "--flush-interval=64", "--pattern=7", &image]);
    let mut bench = bench.stdout(Stdio::null()).spawn().unwrap();
    let mut kills = 0;
    while bench.try_wait().unwrap().is_none() {
        bring_about(&served.fixture, if kills % 3 == 2 { Event::Upgrade } else { KILL });
        kills += 1;
    }
    assert!(bench.wait().unwrap().success(), "{}", served.fixture.keeper_log());
    assert!(kills > 0, "it ended too early");
    let mut client = served.unix();
    assert_eq!(client.read(4096, 4096).unwrap(), [7; 4096]);
}

/// A hypervisor's connection to the volume, which is made anew when it has to be.
struct Machine {
    socket: PathBuf,
    guest: Guest,
}

impl Machine {
    fn connect(&mut self) {
        self.guest.connect(UnixStream::connect(&self.socket).unwrap());
    }
}

/// A volume that is a hypervisor's disk.
fn with_vhost_user() -> (Fixture, Machine) {
    let mut served = Served::new();
    let socket = served.fixture.path("vm.sock");
    let text = fs::read_to_string(served.fixture.config()).unwrap();
    let line = format!("vhost-user = {:?}", socket.display());
    served.fixture.configure(&text.replace(&served.nbd(), &line));
    served.fixture.watch_for(WATCH);
    served.fixture.serve();
    (served.fixture, Machine { socket, guest: Guest::new(QUEUES as u64) })
}

#[test]
fn a_guest_sees_no_error_when_front_ends_are_killed_and_replaced() {
    let (mut fixture, mut machine) = with_vhost_user();
    let (mut load, events) = (Load::new(1), events());
    machine.connect();
    for event in &events {
        let under_way = Duration::from_micros(load.random.below(15_000));
        load.run_for(&mut machine.guest, under_way, 400);
        std::thread::scope(|scope| {
            let happens = scope.spawn(|| bring_about(&fixture, *event));
            while !happens.is_finished() {
                load.run_for(&mut machine.guest, Duration::from_millis(1), 400);
            }
        });
        machine.guest.disconnect();
        machine.connect();
    }
    load.finish(&mut machine.guest, PATIENCE);
    println!("vhost-user: {} requests, {} answered", load.asked, load.answered);
    check_counts(&fixture, &events);
    let status = fixture.holdfast(&["status"]).succeeded().out;
    assert!(status.contains("vhost-user   unix:/"), "{status}");
    fixture.holdfast(&["umount", NAME]).expect(5, &["1 clients are connected at unix:"]);
    machine.guest.disconnect();
    let unmounted = || fixture.holdfast(&["umount", NAME]).code == Some(0);
    wait_until(unmounted, || fixture.status().to_string());
    fixture.assert_given_back();
    assert!(!machine.socket.exists(), "the socket is gone with the volume");
    load.compare(&fixture.home());
    assert_eq!(load.faults, Vec::<String>::new());
    assert_eq!(fixture.stop(), Some(0));
}
