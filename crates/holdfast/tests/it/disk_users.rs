//! Users of disks while front ends are killed and replaced: clients that others wrote, and guests.

use crate::fixture::{Fixture, NAME, copy_program, kill, wait_until};
use crate::guest::{Guest, PATIENCE};
use crate::load::{Load, QUEUES};
use crate::nbd::Served;
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often a front end is killed, and how often it is replaced.
struct Counts {
    kills: usize,
    upgrades: usize,
}

/// Something whose front end comes and goes.
pub(crate) trait HasFrontEnd {
    /// What status says of the front end: at least `state`, `restarts`, `upgrades` and
    /// `longest_stall_ms`.
    fn front_end_status(&self) -> Value;
    fn front_end_pid(&self) -> i32;
    /// Replaces it by one of the same program.
    fn replace(&self);
    fn keeper_said(&self) -> String;
}

impl HasFrontEnd for Fixture {
    fn front_end_status(&self) -> Value {
        self.status()
    }

    fn front_end_pid(&self) -> i32 {
        self.front_end()
    }

    fn replace(&self) {
        let said = self.holdfast(&["upgrade", "volume", NAME]).succeeded().out;
        assert!(said.contains("the front end of v is replaced"), "{said}");
    }

    fn keeper_said(&self) -> String {
        self.keeper_log()
    }
}

/// With eight times as many seeds, as everywhere in the long tests, a thousand and a hundred.
fn counts() -> Counts {
    let factor = std::env::var("HOLDFAST_SEEDS_FACTOR").ok().and_then(|text| text.parse().ok());
    let times = |usual, at_eight| factor.map_or(usual, |factor: usize| at_eight * factor / 8);
    Counts { kills: times(10, 1000), upgrades: times(2, 100) }
}

pub(crate) const WATCH: Duration = Duration::from_secs(1800);

/// What the load is to last for, in the order in which it comes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// By a signal from outside.
    End(Signal),
    Upgrade,
}

pub(crate) const KILL: Event = Event::End(Signal::KILL);

/// Kills, with replacements among them.
pub(crate) fn events() -> Vec<Event> {
    let Counts { kills, upgrades } = counts();
    let between = kills / upgrades;
    let round = |_| std::iter::repeat_n(KILL, between).chain([Event::Upgrade]);
    (0..upgrades).flat_map(round).collect()
}

/// Replacements and ends in good order.
pub(crate) fn gentle_events() -> Vec<Event> {
    [Event::Upgrade, Event::End(Signal::TERM)].repeat(counts().upgrades)
}

pub(crate) fn bring_about(of: &impl HasFrontEnd, event: Event) {
    match event {
        Event::Upgrade => of.replace(),
        Event::End(signal) => {
            let before = of.front_end_status()["restarts"].as_u64();
            kill(of.front_end_pid(), signal);
            let is_next = |status: &Value| {
                status["restarts"].as_u64() > before && status["state"] == "serving"
            };
            wait_until(|| is_next(&of.front_end_status()), || of.keeper_said());
        }
    }
}

/// Fails unless just these things happened to the front ends.
#[track_caller]
pub(crate) fn check_counts(of: &impl HasFrontEnd, events: &[Event]) {
    let upgrades = events.iter().filter(|event| **event == Event::Upgrade).count();
    let status = of.front_end_status();
    assert_eq!(status["upgrades"], upgrades, "{status}");
    assert_eq!(status["restarts"], events.len() - upgrades, "{status}");
    println!(
        "{} deaths, {} replacements, longest stall {} ms",
        status["restarts"], status["upgrades"], status["longest_stall_ms"]
    );
}

/// Clients over libnbd that check what they read, and say at their end what they saw.
pub(crate) struct Writers(Vec<Child>);

/// What they saw.
pub(crate) struct Seen {
    pub(crate) answered: u64,
    pub(crate) lost: u64,
}

impl Writers {
    /// Some at the unix socket, some at the TCP port.
    fn start(served: &Served) -> Writers {
        let unix = format!("nbd+unix:///{NAME}?socket={}", served.socket().display());
        let tcp = format!("nbd://127.0.0.1:{}/{NAME}", served.port);
        Writers::at(&unix, &tcp)
    }

    pub(crate) fn at(one: &str, other: &str) -> Writers {
        Writers(vec![writer(one, "0"), writer(other, "2")])
    }

    /// Their own words added up, or the first complaint.
    pub(crate) fn finish(mut self) -> Result<Seen, String> {
        let inputs: Vec<_> = self.0.iter_mut().map(|child| child.stdin.take()).collect();
        drop(inputs);
        let mut seen = Seen { answered: 0, lost: 0 };
        for child in self.0 {
            let output = child.wait_with_output().unwrap();
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned());
            }
            let said: Value = serde_json::from_slice(&output.stdout).unwrap();
            seen.answered += said["answered"].as_u64().unwrap();
            seen.lost += said["lost"].as_u64().unwrap();
        }
        println!("NBD: {} requests answered, {} connections lost", seen.answered, seen.lost);
        Ok(seen)
    }
}

/// A process with two connections, which write from this mebibyte on.
fn writer(uri: &str, first: &str) -> Child {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/nbd_writer.py");
    // Debian's Python: the module is not in any other.
    let mut command = Command::new("/usr/bin/python3");
    command.args([script, uri, first, "2"]).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_client_that_connects_again_sees_no_error_when_front_ends_are_killed() {
    let mut served = Served::new();
    served.fixture.watch_for(WATCH);
    served.fixture.serve();
    let (writers, events) = (Writers::start(&served), events());
    events.iter().for_each(|event| bring_about(&served.fixture, *event));
    let seen = writers.finish().unwrap();
    assert!(seen.answered > events.len() as u64, "no load");
    assert!(seen.lost >= events.len() as u64 / 2, "not under load");
    check_counts(&served.fixture, &events);
    served.fixture.holdfast(&["umount", NAME, "--force"]).succeeded();
    served.fixture.assert_given_back();
}

#[test]
fn replacing_a_front_end_or_telling_it_to_end_loses_no_connection_and_no_request() {
    let mut served = Served::new();
    served.fixture.watch_for(WATCH);
    served.fixture.serve();
    let writers = Writers::start(&served);
    let events = gentle_events();
    for event in &events {
        std::thread::sleep(Duration::from_millis(50));
        bring_about(&served.fixture, *event);
    }
    assert_eq!(writers.finish().unwrap().lost, 0, "{}", served.fixture.keeper_log());
    check_counts(&served.fixture, &events);
}

#[test]
fn a_replacement_that_does_not_come_up_leaves_connections_to_the_old_binary() {
    let mut served = Served::new();
    served.fixture.serve();
    let writers = Writers::start(&served);
    let broken = served.fixture.path("broken");
    copy_program("/bin/false", &broken);
    let no_program = served.fixture.path("no-program");
    copy_program("/etc/hostname", &no_program);
    fs::set_permissions(&no_program, Permissions::from_mode(0o755)).unwrap();
    for binary in [broken.to_str().unwrap(), no_program.to_str().unwrap()] {
        let upgrade = ["upgrade", "volume", NAME, "--binary", binary];
        served.fixture.holdfast(&upgrade).expect(1, &["the old one is started again"]);
        served.fixture.wait_for_state("serving");
    }
    let missing = ["upgrade", "volume", NAME, "--binary", "/no/such/file"];
    served.fixture.holdfast(&missing).expect(2, &["--binary"]);
    assert_eq!(writers.finish().unwrap().lost, 0, "{}", served.fixture.keeper_log());
    served.fixture.holdfast(&["umount", NAME]).succeeded();
    let unmounted = ["upgrade", "volume", NAME];
    served.fixture.holdfast(&unmounted).expect(1, &["it is not mounted"]);
}

/// Canary for the writers: they have to notice a disk that changes by itself.
#[test]
fn the_writers_notice_what_they_have_not_written() {
    let mut served = Served::new();
    served.fixture.serve();
    let writers = Writers::start(&served);
    let mut other = served.unix();
    for _ in 0..20 {
        other.write(&[1; 64 << 10], 1 << 20).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    let complaint = writers.finish().err().expect("it was written over");
    assert!(complaint.contains("is another"), "{complaint}");
}

#[test]
fn qemu_waits_for_the_next_front_end_and_sees_no_error() {
    let mut served = Served::new();
    served.fixture.serve();
    let waits = "reconnect-delay=60,open-timeout=60";
    let image = format!(
        "driver=nbd,server.type=unix,server.path={},export={NAME},{waits}",
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

#[test]
fn fio_finds_what_it_wrote_while_front_ends_are_killed_or_replaced() {
    let mut served = Served::new();
    let mount = served.fixture.mount();
    let line = format!("mount = {mount:?}");
    served.fixture.reconfigure(&line, &format!("{line}\n{}", served.nbd()));
    served.fixture.serve();
    let file = format!("--filename={}", mount.join("disk").display());
    let uri = format!("--uri=nbd+unix:///{NAME}?socket={}", served.socket().display());
    // fio connects once, so only replacements are for its connections. What the volume has already
    // is not logged, so each of them writes something else.
    let ways =
        [("1", ["--ioengine=psync", &file], KILL), ("2", ["--ioengine=nbd", &uri], Event::Upgrade)];
    for (seed, way, event) in ways {
        let changes = || served.fixture.status()["changes"].as_u64();
        let before = changes();
        let mut fio = fio(seed, &way);
        wait_until(|| changes() > before, || "fio writes nothing".into());
        let mut events = 0;
        while fio.try_wait().unwrap().is_none() {
            bring_about(&served.fixture, event);
            events += 1;
        }
        assert!(fio.wait().unwrap().success(), "{}", served.fixture.keeper_log());
        assert!(events > 0, "it ended too early");
    }
}

/// Writes and checks 32 MiB.
fn fio(seed: &str, way: &[&str]) -> Child {
    let mut fio = Command::new("fio");
    fio.args(["--name=verify", "--rw=randwrite", "--size=4M", "--bsrange=4k-64k"]);
    fio.args(["--verify=crc32c", "--verify_fatal=1", "--verify_backlog=16", "--loops=8"]);
    fio.args(["--verify_state_save=0", "--fsync=8", "--iodepth=8"])
        .arg(format!("--randseed={seed}"))
        .args(way);
    fio.stdout(Stdio::null()).spawn().unwrap()
}

/// A hypervisor's connection to the volume, which is made anew when it has to be.
pub(crate) struct Machine {
    pub(crate) socket: PathBuf,
    pub(crate) guest: Guest,
}

impl Machine {
    /// One whose disk is a volume that has a mount and clients of NBD as well.
    pub(crate) fn beside(served: &mut Served) -> Machine {
        let mount = format!("mount = {:?}", served.fixture.mount());
        Machine::with(served, &format!("{}\n{mount}", served.nbd()))
    }

    /// One whose disk is a volume that nobody else uses.
    fn alone(served: &mut Served) -> Machine {
        Machine::with(served, "")
    }

    fn with(served: &mut Served, others: &str) -> Machine {
        let socket = served.fixture.path("vm.sock");
        let lines = format!("vhost-user = {:?}\n{others}", socket.display());
        let text = fs::read_to_string(served.fixture.config()).unwrap();
        served.fixture.configure(&text.replace(&served.nbd(), &lines));
        Machine::at(socket)
    }

    pub(crate) fn at(socket: PathBuf) -> Machine {
        Machine { socket, guest: Guest::new(QUEUES as u64) }
    }

    pub(crate) fn connect(&mut self) {
        self.guest.connect(UnixStream::connect(&self.socket).unwrap());
    }

    /// Has the guest ask all the time while these things happen to its disk's front end.
    pub(crate) fn work_through(
        &mut self,
        load: &mut Load,
        of: &(impl HasFrontEnd + Sync),
        events: &[Event],
    ) {
        self.connect();
        for event in events {
            let under_way = Duration::from_micros(load.random.below(15_000));
            load.run_for(&mut self.guest, under_way, 400);
            std::thread::scope(|scope| {
                let happens = scope.spawn(|| bring_about(of, *event));
                while !happens.is_finished() {
                    load.run_for(&mut self.guest, Duration::from_millis(1), 400);
                }
            });
            self.guest.disconnect();
            self.connect();
        }
        load.finish(&mut self.guest, PATIENCE);
        println!("vhost-user: {} requests, {} answered", load.asked, load.answered);
    }
}

#[test]
fn a_guest_sees_no_error_when_front_ends_are_killed_and_replaced() {
    let mut served = Served::new();
    let mut machine = Machine::alone(&mut served);
    let mut fixture = served.fixture;
    fixture.watch_for(WATCH);
    fixture.serve();
    let (mut load, events) = (Load::new(1), events());
    machine.work_through(&mut load, &fixture, &events);
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
