//! A real `upsd` with NUT's own dummy driver, followed through stories: what a UPS and its software
//! do on good days and on bad ones.
//!
//! After each chapter of a story the power has to stand where it belongs, and in every moment of
//! every chapter that is no good one the lease must not be held once that is known. Needs Debian's
//! `nut-server`.

#![allow(clippy::unwrap_used)]

use holdfast_power::lease::now_ms;
use holdfast_power::monitor::{Concerned, Monitor, Report, Shown};
use holdfast_power::source::{Kind, Source};
use holdfast_power::state::{State, Terms};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const DRIVER: &str = "/lib/nut/dummy-ups";
const SERVER: &str = "/lib/nut/upsd";
const EVERY: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(60);
const DRILL_MS: u64 = 1_000_000;
const STORIES_AT_A_TIME: usize = 8;

const TERMS: Terms = Terms {
    hold_up_ms: None,
    reserve_ms: 10_000,
    drain_ms_min: 1000,
    fresh_ms: 1000,
    settle_ms: 200,
    drill_ms: DRILL_MS,
};

/// What may be told of a UPS.
const GOOD: &str = "ups.status: OL CHRG\nbattery.runtime: 600\n";

/// One chapter: what happens, and where the power stands then.
enum Then {
    /// The UPS says this.
    Says(&'static str, State),
    /// The driver ends; it is not started again before it says something.
    DriverDies(State),
    /// `upsd` ends.
    ServerDies(State),
    /// `upsd` stands still, and goes on.
    ServerStops(State),
    /// `upsd` is there again.
    ServerComes(State),
    /// A drill fails, or is passed.
    Drilled(bool, State),
    /// All that was in memory alone is on the disks, or is not any more.
    Drained(bool, State),
}

use State::{Armed, Charging, Draining, OnBattery, Safe, Stale, Testing, Unproven};
use Then::{Drained, Drilled, DriverDies, Says, ServerComes, ServerDies, ServerStops};

const OB: &str = "ups.status: OB DISCHRG\nbattery.runtime: 600\n";
const LOW: &str = "ups.status: OB DISCHRG LB\nbattery.runtime: 60\n";

/// Each begins with a UPS that is well.
const STORIES: &[(&str, &[Then])] = &[
    ("an outage that is short", &[Says(OB, OnBattery), Says(GOOD, Armed)]),
    ("an outage that is long", &[Says(OB, OnBattery), Says(LOW, Draining), Drained(true, Safe)]),
    (
        "mains that come back in the last moment",
        &[Says(OB, OnBattery), Says(LOW, Draining), Drained(true, Safe), Says(GOOD, Armed)],
    ),
    ("mains that come back while it drains", &[Says(LOW, Draining), Says(GOOD, Armed)]),
    (
        "mains that flap",
        &[
            Says(OB, OnBattery),
            Says(GOOD, Armed),
            Says(OB, OnBattery),
            Says(GOOD, Armed),
            Says(OB, OnBattery),
            Says(GOOD, Armed),
        ],
    ),
    (
        "a battery that says it is not low after all",
        &[Says(LOW, Draining), Says(OB, Draining), Says(GOOD, Armed)],
    ),
    (
        "what is drained and is not any more",
        &[Says(LOW, Draining), Drained(true, Safe), Drained(false, Draining)],
    ),
    (
        "a self-test",
        &[Says("ups.status: OL TEST\nbattery.runtime: 600\n", Testing), Says(GOOD, Armed)],
    ),
    (
        "a calibration on battery",
        &[Says("ups.status: OB CAL\nbattery.runtime: 600\n", Testing), Says(GOOD, Armed)],
    ),
    (
        "mains that fail in a calibration",
        &[Says("ups.status: OB CAL\nbattery.runtime: 600\n", Testing), Says(LOW, Draining)],
    ),
    (
        "a test that looks as if it was off",
        &[Says("ups.status: OL OFF\n", Charging), Says(GOOD, Armed)],
    ),
    (
        "low while it is charged",
        &[
            Says("ups.status: OL CHRG LB\nbattery.runtime: 30\n", Charging),
            Says("ups.status: OL CHRG\nbattery.runtime: 11\n", Charging),
            Says(GOOD, Armed),
        ],
    ),
    ("a battery that is old", &[Says("ups.status: OL RB\nbattery.runtime: 600\n", Charging)]),
    (
        "a battery that is replaced",
        &[
            Says("ups.status: OL RB\nbattery.runtime: 600\n", Charging),
            Says("ups.status: OL OFF\n", Charging),
            Says(GOOD, Armed),
        ],
    ),
    ("a UPS that is bypassed", &[Says("ups.status: OL BYPASS\nbattery.runtime: 600\n", Charging)]),
    (
        "a UPS with too much to bear",
        &[Says("ups.status: OL OVER\nbattery.runtime: 600\n", Charging)],
    ),
    ("an alarm", &[Says("ups.status: ALARM OL\nups.alarm: hot\nbattery.runtime: 600\n", Charging)]),
    ("a UPS that does not know how long it lasts", &[Says("ups.status: OL\n", Charging)]),
    ("a UPS that lasts for no time", &[Says("ups.status: OL\nbattery.runtime: 0\n", Charging)]),
    (
        "a UPS that lasts for less than nothing",
        &[Says("ups.status: OL\nbattery.runtime: -5\n", Stale)],
    ),
    ("a UPS that says nonsense", &[Says("ups.status: OL\nbattery.runtime: soon\n", Stale)]),
    ("a UPS that contradicts itself", &[Says("ups.status: OL OB\nbattery.runtime: 600\n", Stale)]),
    (
        "a UPS of which its driver hears nothing",
        &[Says("ups.status: OL NOCOMM\nbattery.runtime: 600\n", Stale), Says(GOOD, Armed)],
    ),
    ("a UPS that waits for its driver", &[Says("ups.status: WAIT\n", Stale), Says(GOOD, Armed)]),
    (
        "a machine that is told to go down",
        &[Says("ups.status: FSD OB\nbattery.runtime: 60\n", Draining)],
    ),
    ("a driver that dies", &[DriverDies(Stale), Says(GOOD, Armed)]),
    ("a driver that dies in an outage", &[Says(OB, OnBattery), DriverDies(OnBattery)]),
    (
        "a driver that dies when it is low",
        &[Says(LOW, Draining), DriverDies(Draining), Drained(true, Safe)],
    ),
    ("upsd that is gone", &[ServerDies(Stale), ServerComes(Armed)]),
    (
        "upsd that is gone in an outage",
        &[Says(OB, OnBattery), ServerDies(OnBattery), ServerComes(OnBattery)],
    ),
    ("upsd that stands still", &[ServerStops(Stale), ServerComes(Armed)]),
    ("a drill that fails", &[Drilled(false, Unproven), Drilled(true, Armed)]),
    (
        "a drill that failed before an outage",
        &[Drilled(false, Unproven), Says(OB, OnBattery), Says(GOOD, Unproven)],
    ),
];

/// What the monitor asks about.
#[derive(Debug, Default)]
struct Machine {
    has_passed: AtomicBool,
    is_drained: AtomicBool,
    transitions: AtomicU64,
}

impl Concerned for Machine {
    fn drilled(&self) -> Option<Shown> {
        let has_passed = self.has_passed.load(Ordering::Relaxed);
        has_passed.then_some(Shown { ago_ms: 0, drain_ms: 100_000, bytes_per_s: 1 << 20 })
    }

    fn is_drained(&self, _: u64) -> bool {
        self.is_drained.load(Ordering::Relaxed)
    }

    fn sharers(&self) -> u64 {
        1
    }

    fn changed(&self, _: &Report) {
        self.transitions.fetch_add(1, Ordering::Relaxed);
    }
}

/// NUT in a folder of its own.
struct Nut {
    folder: tempfile::TempDir,
    address: SocketAddr,
    driver: Option<Child>,
    server: Option<Child>,
}

impl Nut {
    fn start() -> Nut {
        let folder = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("ups.conf", "[cellar]\ndriver = dummy-ups\nport = cellar.dev\nmode = dummy-once\n");
        write("nut.conf", "MODE=netserver\n");
        let port = address.port();
        write(
            "upsd.conf",
            &format!("LISTEN 127.0.0.1 {port}\nMAXAGE 2\nSTATEPATH {}\n", folder.path().display()),
        );
        write("upsd.users", "");
        let mut nut = Nut { folder, address, driver: None, server: None };
        nut.says(GOOD);
        nut.start_server();
        nut
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for variable in ["NUT_CONFPATH", "NUT_STATEPATH", "NUT_ALTPIDPATH", "NUT_PIDPATH"] {
            command.env(variable, self.path());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// The UPS says this from now on, by a driver that is there.
    fn says(&mut self, text: &str) {
        let next = self.path().join("next");
        fs::write(&next, text).unwrap();
        fs::rename(&next, self.path().join("cellar.dev")).unwrap();
        // A driver that reads the file again keeps what is not in it any more.
        self.end_driver();
        let driver = self.command(DRIVER).args(["-a", "cellar", "-u", "root", "-D"]).spawn();
        self.driver = Some(driver.unwrap());
    }

    fn end_driver(&mut self) {
        self.driver.take().into_iter().for_each(end);
    }

    fn start_server(&mut self) {
        if let Some(server) = &self.server {
            signal(server, Signal::CONT);
            return;
        }
        let server = self.command(SERVER).args(["-u", "root", "-F"]).spawn().unwrap();
        self.server = Some(server);
        let begun = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            assert!(begun.elapsed() < PATIENCE, "upsd never came up");
            thread::sleep(EVERY);
        }
    }

    fn end_server(&mut self) {
        self.server.take().into_iter().for_each(end);
    }
}

impl Drop for Nut {
    fn drop(&mut self) {
        self.end_driver();
        self.end_server();
    }
}

fn end(mut process: Child) {
    let _ = process.kill();
    let _ = process.wait();
}

fn signal(process: &Child, signal: Signal) {
    kill_process(Pid::from_raw(process.id().cast_signed()).unwrap(), signal).unwrap();
}

/// Waits until the power stands there. From the first moment in which it does not stand where the
/// lease may be, that must not be held.
fn wait_for(monitor: &Monitor, state: State, story: &str) {
    let begun = Instant::now();
    loop {
        let (lease, report) = (monitor.page().read(), monitor.report());
        let is_taken_back = lease.taken_back == report.taken_back;
        if report.state != Armed && is_taken_back {
            assert!(!lease.is_held(now_ms()), "{story}: {report:?}");
        }
        if report.state == state {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{story}: {report:?} instead of {state}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The power has to stay there: whatever was said before has been heard by then.
fn stays(monitor: &Monitor, state: State, story: &str) {
    thread::sleep(10 * EVERY);
    wait_for(monitor, state, story);
    let report = monitor.report();
    assert_eq!(report.state, state, "{story}: {report:?}");
    assert_eq!(monitor.page().is_held(), state == Armed, "{story}: {report:?}");
}

fn play(story: &str, chapters: &[Then]) -> u64 {
    let mut nut = Nut::start();
    let machine = Arc::new(Machine::default());
    machine.has_passed.store(true, Ordering::Relaxed);
    let kind = Kind::Nut { address: nut.address, ups: "cellar".into() };
    let source = Source::new(kind, Duration::from_millis(500));
    let monitor = Monitor::start(source, TERMS, EVERY, machine.clone()).unwrap();
    wait_for(&monitor, Armed, story);
    for chapter in chapters {
        let state = match chapter {
            Says(text, state) => {
                nut.says(text);
                state
            }
            DriverDies(state) => {
                nut.end_driver();
                state
            }
            ServerDies(state) => {
                nut.end_server();
                state
            }
            ServerStops(state) => {
                signal(nut.server.as_ref().unwrap(), Signal::STOP);
                state
            }
            ServerComes(state) => {
                nut.start_server();
                state
            }
            Drilled(is_passed, state) => {
                machine.has_passed.store(*is_passed, Ordering::Relaxed);
                state
            }
            Drained(is_drained, state) => {
                machine.is_drained.store(*is_drained, Ordering::Relaxed);
                state
            }
        };
        wait_for(&monitor, *state, story);
        stays(&monitor, *state, story);
    }
    machine.transitions.load(Ordering::Relaxed)
}

#[test]
fn no_story_of_a_ups_has_memory_acknowledge_what_it_should_not() {
    // They wait for most of their time.
    let played = STORIES.chunks(STORIES_AT_A_TIME).map(|stories| {
        thread::scope(|scope| {
            let playing = |(story, chapters)| scope.spawn(move || play(story, chapters));
            let playing: Vec<_> = stories.iter().copied().map(playing).collect();
            playing.into_iter().map(|it| it.join().unwrap()).sum::<u64>()
        })
    });
    let transitions: u64 = played.sum();
    println!("{} stories, {transitions} transitions", STORIES.len());
}

#[test]
fn a_ups_of_another_name_is_named() {
    let nut = Nut::start();
    let kind = Kind::Nut { address: nut.address, ups: "attic".into() };
    let mut source = Source::new(kind, Duration::from_secs(10));
    let refusal = source.ask().unwrap_err();
    assert!(refusal.contains("has no UPS called attic"), "{refusal}");
}
