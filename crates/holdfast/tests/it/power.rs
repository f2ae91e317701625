//! The power of the machine: memory acknowledges while it is armed, and what was acknowledged is
//! there after it has failed with a notice.
//!
//! The source is a file that a thread writes again and again, as an operator's own hardware would.
//! The disk is modelled: a cut takes what was not synced, each sector by a seed; the processes are
//! killed, and the memory region is removed. No plug was pulled.

use crate::disks::SlowDisk;
use crate::fixture::{Fixture, NAME, kill, stop, wait_until};
use crate::seeds::{Random, for_seeds};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const MAINS: &str = "ups.status: OL CHRG\nbattery.runtime: 300\n";
const BATTERY: &str = "ups.status: OB DISCHRG\nbattery.runtime: 300\n";
const LOW: &str = "ups.status: OB DISCHRG LB\nbattery.runtime: 100\n";

/// A source that says the same again and again, until it is told to say something else.
struct Ups {
    says: Arc<Mutex<Option<&'static str>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ups {
    fn start(path: PathBuf) -> Ups {
        let (says, stop) = (Arc::new(Mutex::new(Some(MAINS))), Arc::new(AtomicBool::new(false)));
        let (told, ended) = (says.clone(), stop.clone());
        let write = move || {
            for number in 0_u64.. {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                if let Some(text) = *told.lock().unwrap() {
                    let next = path.with_extension("next");
                    fs::write(&next, format!("{text}written: {number}\n")).unwrap();
                    fs::rename(&next, &path).unwrap();
                }
                thread::sleep(Duration::from_millis(5));
            }
        };
        Ups { says, stop, thread: Some(thread::spawn(write)) }
    }

    fn says(&self, text: &'static str) {
        *self.says.lock().unwrap() = Some(text);
    }

    fn falls_silent(&self) {
        *self.says.lock().unwrap() = None;
    }
}

impl Drop for Ups {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A volume on a disk that can lose its power, a source, and who writes.
struct World {
    fixture: Fixture,
    disk: SlowDisk,
    ups: Ups,
}

impl World {
    fn new(must_survive: &str) -> World {
        let fixture = Fixture::new();
        let disk = SlowDisk::start_mortal(fixture.path("backing"), fixture.path("slow"));
        fs::create_dir(fixture.path("slow/home")).unwrap();
        let ups = Ups::start(fixture.path("ups"));
        let on_disk =
            |path: PathBuf, to: &str| (format!("{path:?}"), format!("{:?}", fixture.path(to)));
        let (home, slow_home) = on_disk(fixture.home(), "slow/home");
        let (log, slow_log) = on_disk(fixture.log(), "slow/log");
        let mut text = fixture.config_text().replace(&home, &slow_home).replace(&log, &slow_log);
        text = text.replace("[\"process\"]", must_survive);
        text = text.replace("way = \"queue\"", "way = \"direct\"");
        text += &format!(
            "\n[power]\nfile = {:?}\nreserve_ms = 1000\nsettle_ms = 0\nasked_every_ms = 50\n\
             drills = {:?}\n",
            fixture.path("ups"),
            fixture.path("drills.jsonl"),
        );
        fixture.configure(&text);
        fixture.holdfast(&["volume", "make", NAME]).succeeded();
        World { fixture, disk, ups }
    }

    fn serving() -> World {
        let mut world = World::new("[\"process\", \"power\"]");
        world.fixture.serve();
        world
    }

    fn armed() -> World {
        let world = World::serving();
        world.fixture.holdfast(&["drill"]).succeeded();
        world.wait_for("armed", "memory");
        world
    }

    fn report(&self) -> Value {
        let told = self.fixture.holdfast(&["status", "--json"]).out;
        serde_json::from_str(&told).unwrap_or_default()
    }

    /// Until the power stands there, and acknowledgements mean that.
    fn wait_for(&self, state: &str, class: &str) {
        let is_so = || {
            let report = self.report();
            let found = &report["volumes"][0]["verdict"]["class"];
            report["power"]["state"] == state && found == class
        };
        wait_until(is_so, || format!("{:#}\n{}", self.report(), self.fixture.keeper_log()));
    }

    /// The power is gone, and comes back: memory is empty, and of what the disk had not synced
    /// nobody knows what is left.
    fn cut(&mut self, front_end: i32, seed: u64) {
        stop(self.fixture.keeper_pid());
        kill(front_end, Signal::KILL);
        // At once: what is being synced is not there yet.
        self.disk.lose_power(seed);
        self.fixture.kill_all();
        self.fixture.restart();
    }
}

impl World {
    /// [`Self::cut`] of whatever there is.
    fn cut_all(&mut self, seed: u64) {
        let pids = self.fixture.processes_of_keepers();
        self.fixture.end_keepers();
        pids.into_iter().for_each(|pid| kill(pid, Signal::KILL));
        self.disk.lose_power(seed);
        self.fixture.wait_until_let_go();
        self.fixture.take_mounts_away();
        self.fixture.restart();
    }

    /// Does one of the things that happen to keepers, front ends and sources.
    fn upset(&mut self, random: &mut Random) -> &'static str {
        let front_ends = self.fixture.processes_of_keepers();
        match random.below(6) {
            0 => {
                self.fixture.end_keepers();
                "the keeper dies"
            }
            1 => {
                front_ends.into_iter().for_each(|pid| kill(pid, Signal::KILL));
                "the front end dies"
            }
            2 => {
                self.fixture.end_keepers();
                front_ends.into_iter().for_each(|pid| kill(pid, Signal::KILL));
                "both die"
            }
            3 => {
                self.ups.says(if random.below(2) == 0 { BATTERY } else { LOW });
                "the mains fail"
            }
            4 => {
                self.ups.falls_silent();
                "the source falls silent"
            }
            _ => {
                self.fixture.end_keepers();
                self.fixture.begin_to_serve();
                "another keeper comes"
            }
        }
    }
}

impl World {
    /// Writes one line that memory alone has: the disk stands still from before until after it is
    /// acknowledged. A front end that was told of the lease a moment ago still waits for its disk.
    fn acknowledge_beside_a_disk_that_stands_still(&self, at: &Path) {
        for _ in 0..50 {
            self.disk.stop();
            let writer = Writer::start(at.to_owned(), 0);
            let begun = Instant::now();
            while writer.acknowledged() == 0 && begun.elapsed() < Duration::from_secs(1) {
                thread::sleep(Duration::from_millis(5));
            }
            if writer.acknowledged() > 0 {
                // It stops when its volume is gone.
                return;
            }
            self.disk.go_on();
            let _ = writer.end();
            fs::remove_file(at).unwrap();
        }
        panic!("memory acknowledges nothing: {:#}", self.report());
    }
}

impl World {
    /// One that a keeper can begin with when it cannot with the first.
    fn adds_a_volume(&self) {
        let path = |name: &str| self.fixture.path(name);
        let text = fs::read_to_string(self.fixture.config()).unwrap();
        let section = format!(
            "\n[volume.w]\nhome = {:?}\nmount = {:?}\nlog = {:?}\n\
             memory = {{ medium = \"private\", size = \"8MiB\" }}\n\
             must_survive = [\"process\"]\n",
            path("w-home"),
            path("w-mount"),
            path("w-log"),
        );
        ["w-home", "w-mount"].iter().for_each(|it| fs::create_dir(path(it)).unwrap());
        self.fixture.configure(&(text + &section));
        self.fixture.holdfast(&["volume", "make", "w"]).succeeded();
    }
}

/// Appends numbered lines to a file, each synced.
struct Writer {
    acknowledged: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    failed: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    fn start(path: PathBuf, from: u64) -> Writer {
        let (acknowledged, stop) = (Arc::new(AtomicU64::new(from)), Arc::default());
        let failed = Arc::<AtomicU64>::default();
        let (told, ended, errors) = (acknowledged.clone(), Arc::clone(&stop), failed.clone());
        let write = move || {
            let ended: Arc<AtomicBool> = ended;
            let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
            for number in from + 1.. {
                let written = file.write_all(&line(number)).and_then(|()| file.sync_data());
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                match written {
                    Ok(()) => told.store(number, Ordering::Relaxed),
                    Err(_) => {
                        errors.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                }
            }
        };
        Writer { acknowledged, stop, failed, thread: Some(thread::spawn(write)) }
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    fn end(mut self) -> (u64, u64) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
        (self.acknowledged(), self.failed.load(Ordering::Relaxed))
    }
}

/// So many bytes that a disk of a few megabytes a second is behind soon.
const LINE_BYTES: usize = 32 << 10;

fn line(number: u64) -> Vec<u8> {
    let mut line = format!("{number:08}").into_bytes();
    line.resize(LINE_BYTES - 1, b'.');
    line.push(b'\n');
    line
}

/// How many whole lines there are, each in its place.
fn lines_of(path: &Path) -> u64 {
    let bytes = fs::read(path).unwrap_or_default();
    let in_place = |(number, found): &(usize, &[u8])| **found == line(*number as u64 + 1);
    bytes.chunks(LINE_BYTES).enumerate().take_while(in_place).count() as u64
}

#[test]
fn the_class_of_a_volume_follows_the_power_and_status_says_why() {
    let world = World::serving();
    world.wait_for("unproven", "disk");
    let report = world.report();
    assert_eq!(report["health"], "degraded");
    assert!(report["power"]["why"].as_str().unwrap().contains("`holdfast drill`"), "{report:#}");
    let told = world.fixture.holdfast(&["status"]).out;
    assert!(told.contains("power unproven for"), "{told}");
    assert!(told.contains("writes through because of power"), "{told}");
    let passed = world.fixture.holdfast(&["drill"]).succeeded();
    assert!(passed.out.contains("the drill is passed"), "{passed:?}");
    world.wait_for("armed", "memory");
    assert_eq!(world.report()["volumes"][0]["power"], "armed");
    assert_eq!(world.report()["health"], "serving");
    world.ups.says(BATTERY);
    world.wait_for("on battery", "disk");
    world
        .fixture
        .holdfast(&["drill"])
        .expect(1, &["the power is on battery", "wait for the mains"]);
    world.ups.says(LOW);
    world.wait_for("safe", "disk");
    world.ups.says(MAINS);
    world.wait_for("armed", "memory");
    world.ups.falls_silent();
    world.wait_for("stale", "disk");
    world.ups.says(MAINS);
    world.wait_for("armed", "memory");
    assert!(world.report()["power"]["taken_back"].as_u64().unwrap() > 0);
}

#[test]
fn a_drill_without_volumes_or_without_power_says_what_is_missing() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fixture.holdfast(&["drill"]).expect(2, &["no power source is configured", "[power]"]);
    drop(fixture);
    let mut world = World::new("[\"process\"]");
    world.fixture.serve();
    world.fixture.holdfast(&["drill"]).expect(2, &["no volume is mounted", "must_survive"]);
    assert_eq!(world.report()["volumes"][0]["verdict"]["class"], "memory");
    assert_eq!(world.report()["volumes"][0]["power"], "none");
}

#[test]
fn memory_that_lacks_more_than_the_power_is_not_relied_on_for_it() {
    let mut world = World::new("[\"process\", \"os\", \"power\"]");
    world.fixture.serve();
    world.wait_for("unproven", "disk");
    world.fixture.holdfast(&["drill"]).expect(2, &["no volume is mounted"]);
}

#[test]
fn a_keeper_that_stands_still_takes_the_lease_with_it() {
    let mut world = World::armed();
    let at = world.fixture.mount().join("f");
    let file = File::create(&at).unwrap();
    let front_end = world.fixture.front_end();
    stop(world.fixture.keeper_pid());
    // What was heard last counts for a quarter of a second.
    thread::sleep(Duration::from_millis(500));
    let text: Vec<u8> = (1..=64).flat_map(line).collect();
    file.write_all_at(&text, 0).unwrap();
    file.sync_data().unwrap();
    world.cut(front_end, 1);
    world.ups.says(MAINS);
    world.fixture.serve();
    assert_eq!(lines_of(&at), 64);
}

#[test]
fn a_signal_of_a_failing_power_supply_takes_memory_back_until_the_mains_are_told_of() {
    let mut world = World::armed();
    let at = world.fixture.mount().join("f");
    kill(world.fixture.keeper_pid(), Signal::POWER);
    let is_told = || world.fixture.keeper_log().contains("a signal said that the power");
    wait_until(is_told, || world.fixture.keeper_log());
    // Who said until now that the mains are there may say so once more.
    world.ups.says(LOW);
    world.wait_for("safe", "disk");
    let writer = Writer::start(at.clone(), 0);
    wait_until(|| writer.acknowledged() > 10, || world.fixture.keeper_log());
    let front_end = world.fixture.front_end();
    world.cut(front_end, 1);
    let (acknowledged, _) = writer.end();
    world.ups.says(MAINS);
    world.fixture.serve();
    let there = lines_of(&at);
    assert!(there >= acknowledged, "{there} of {acknowledged} lines");
    world.wait_for("armed", "memory");
    let taken_back = || world.report()["power"]["taken_back"].as_u64().unwrap();
    let before = taken_back();
    kill(world.fixture.keeper_pid(), Signal::POWER);
    wait_until(|| taken_back() > before, || world.fixture.keeper_log());
    world.wait_for("armed", "memory");
}

#[test]
fn a_keeper_without_a_power_source_is_not_disturbed_by_a_signal_of_one() {
    let mut fixture = Fixture::made();
    fixture.serve();
    kill(fixture.keeper_pid(), Signal::POWER);
    let told = || fixture.keeper_log().contains("a signal says that the power fails");
    wait_until(told, || fixture.keeper_log());
    assert_eq!(fixture.status_of(NAME)["state"], "serving");
}

#[test]
fn nothing_that_was_acknowledged_is_lost_in_a_cut_after_a_notice() {
    for_seeds("nothing_that_was_acknowledged_is_lost_in_a_cut", 1, |seed| {
        let mut rng = Random::new(seed);
        let mut world = World::armed();
        let mut lines = 0;
        for round in 0..4 {
            let writer = Writer::start(world.fixture.mount().join("f"), lines);
            thread::sleep(Duration::from_millis(rng.below(300)));
            world.ups.says(if rng.below(2) == 0 { BATTERY } else { LOW });
            let is_told = || world.report()["volumes"][0]["verdict"]["class"] == "disk";
            wait_until(is_told, || world.fixture.keeper_log());
            let front_end = world.fixture.front_end();
            let acknowledged = writer.acknowledged();
            world.cut(front_end, rng.below(u64::MAX));
            let _ = writer.end();
            world.ups.says(MAINS);
            world.fixture.serve();
            let there = lines_of(&world.fixture.mount().join("f"));
            assert!(there >= acknowledged, "round {round}: {there} of {acknowledged} lines");
            lines = there;
            world.wait_for("armed", "memory");
        }
        assert!(lines > 10, "{lines}");
    });
}

#[test]
fn whatever_happens_no_status_says_more_than_a_cut_then_leaves() {
    for_seeds("no_status_says_more", 4, |seed| {
        let mut random = Random::new(seed);
        let mut world = World::armed();
        let writer = Writer::start(world.fixture.mount().join("f"), 0);
        thread::sleep(Duration::from_millis(100 + random.below(300)));
        for _ in 0..=random.below(2) {
            println!("  {}", world.upset(&mut random));
            thread::sleep(Duration::from_millis(random.below(100)));
        }
        let mut said_of = None;
        for _ in 0..=random.below(40) {
            let acknowledged = writer.acknowledged();
            let report = world.report();
            let is_of_disk = report["volumes"][0]["verdict"]["class"] == "disk";
            if is_of_disk || report["power"]["state"] == "safe" {
                said_of = Some(acknowledged);
                break;
            }
        }
        world.cut_all(random.below(u64::MAX));
        let _ = writer.end();
        world.ups.says(MAINS);
        world.fixture.serve();
        let there = lines_of(&world.fixture.mount().join("f"));
        println!("  class disk was said of {said_of:?} lines, and {there} are there");
        assert!(there >= said_of.unwrap_or(0));
    });
}

#[test]
fn the_canary_loses_what_memory_acknowledged_when_there_is_no_notice() {
    let mut world = World::armed();
    let mut lost = 0;
    for round in 0..20 {
        let writer = Writer::start(world.fixture.mount().join(format!("f{round}")), 0);
        thread::sleep(Duration::from_millis(200));
        let front_end = world.fixture.front_end();
        let acknowledged = writer.acknowledged();
        world.cut(front_end, round);
        let _ = writer.end();
        world.fixture.serve();
        let there = lines_of(&world.fixture.mount().join(format!("f{round}")));
        lost += acknowledged.saturating_sub(there);
        if lost > 0 {
            return;
        }
        world.wait_for("armed", "memory");
    }
    panic!("twenty cuts without a notice have lost nothing, so the test above shows nothing");
}

type Hinder = fn(&World);

/// What keeps a volume from being attached, whose memory has what it acknowledged.
const HINDRANCES: [(&str, Hinder); 4] = [
    ("its log is not there", |world| world.has_no_log()),
    ("all of its log is damaged", |world| {
        world.has_no_log();
        let (log, away) = world.log_and_away();
        fs::create_dir(&log).unwrap();
        let files = fs::read_dir(away).unwrap().map(Result::unwrap);
        for file in files.filter(|it| it.file_type().unwrap().is_file()) {
            let mut bytes = fs::read(file.path()).unwrap();
            let damaged = bytes.len().min(4096);
            bytes[..damaged].fill(0x5a);
            fs::write(log.join(file.file_name()), bytes).unwrap();
        }
    }),
    ("it is another way's now", |world| {
        world.has_no_log();
        world.reconfigure("way = \"direct\"", "way = \"queue\"");
    }),
    ("its memory is looked for elsewhere", |world| {
        let region = world.fixture.region.display().to_string();
        world.reconfigure(&region, &format!("{region}-elsewhere"));
    }),
];

impl World {
    fn log_and_away(&self) -> (PathBuf, PathBuf) {
        (self.fixture.path("slow/log"), self.fixture.path("slow/away"))
    }

    fn has_no_log(&self) {
        let (log, away) = self.log_and_away();
        fs::rename(log, away).unwrap();
    }

    fn has_its_log(&self) {
        let (log, away) = self.log_and_away();
        if away.exists() {
            let _ = fs::remove_dir_all(&log);
            fs::rename(away, log).unwrap();
        }
    }

    fn reconfigure(&self, what: &str, with: &str) {
        let text = fs::read_to_string(self.fixture.config()).unwrap();
        assert!(text.contains(what), "{what}: {text}");
        self.fixture.configure(&text.replace(what, with));
    }

    /// Keepers and all that they have started are killed, and the mounts are gone.
    fn dies(&mut self) {
        let pids = self.fixture.processes_of_keepers();
        self.fixture.end_keepers();
        pids.into_iter().for_each(|pid| kill(pid, Signal::KILL));
        self.fixture.wait_until_let_go();
        self.fixture.take_mounts_away();
    }
}

#[test]
fn safe_is_not_said_while_memory_that_nobody_serves_has_what_it_acknowledged() {
    for (why, hinder) in HINDRANCES {
        println!("{why}");
        let mut world = World::armed();
        let at = world.fixture.mount().join("f");
        world.acknowledge_beside_a_disk_that_stands_still(&at);
        let pids = world.fixture.processes_of_keepers();
        world.fixture.end_keepers();
        pids.into_iter().for_each(|pid| kill(pid, Signal::KILL));
        world.disk.go_on();
        world.dies();
        world.adds_a_volume();
        let text = fs::read_to_string(world.fixture.config()).unwrap();
        hinder(&world);
        world.ups.says(LOW);
        world.fixture.begin_to_serve();
        world.is_not_safe_for_a_while();
        world.dies();
        world.has_its_log();
        world.fixture.configure(&text);
        world.fixture.begin_to_serve();
        world.wait_for("safe", "disk");
        assert!(lines_of(&at) >= 1);
        assert_eq!(world.fixture.holdfast(&["shutdown"]).code, Some(0));
    }
}

impl World {
    fn is_not_safe_for_a_while(&self) {
        let state = || self.report()["power"]["state"].clone();
        wait_until(|| state() == "draining", || self.fixture.keeper_log());
        let (log, _) = self.log_and_away();
        let nobodys = format!("{}, which nobody serves", log.display());
        for _ in 0..20 {
            let report = self.report();
            assert_eq!(report["power"]["state"], "draining", "{report:#}");
            let mut alone = report["power"]["alone"].as_array().unwrap().iter();
            assert!(alone.any(|it| *it == *nobodys), "{report:#}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn what_the_power_needs_is_not_looked_for_in_a_volume() {
    let fixture = Fixture::new();
    let text = fixture.config_text();
    for (key, inside) in [("file", fixture.mount()), ("drills", fixture.home())] {
        let path = |name: &str| match name == key {
            true => inside.join("in/it"),
            false => fixture.path(name),
        };
        let (file, drills) = (path("file"), path("drills"));
        let power = format!("\n[power]\nfile = {file:?}\ndrills = {drills:?}\n");
        fixture.configure(&(text.clone() + &power));
        fixture.holdfast(&["volume", "make", NAME]).expect(2, &["lies inside", key]);
    }
    let (log, file) = (fixture.log(), fixture.path("file"));
    for drills in [&log.join("drills"), &file] {
        let power = format!("\n[power]\nfile = {file:?}\ndrills = {drills:?}\n");
        fixture.configure(&(text.clone() + &power));
        fixture.holdfast(&["volume", "check", NAME]).expect(2, &["[power]"]);
    }
}

#[test]
fn a_class_that_changes_again_and_again_fails_no_request() {
    let world = World::armed();
    let writer = Writer::start(world.fixture.mount().join("f"), 0);
    let changes = std::env::var("HOLDFAST_CLASS_CHANGES").map_or(20, |it| it.parse().unwrap());
    for _ in 0..changes / 2 {
        world.ups.says(BATTERY);
        world.wait_for("on battery", "disk");
        world.ups.says(MAINS);
        world.wait_for("armed", "memory");
    }
    let (acknowledged, failed) = writer.end();
    assert_eq!(failed, 0);
    assert!(lines_of(&world.fixture.mount().join("f")) >= acknowledged);
    println!("{changes} changes of class, {acknowledged} lines synced meanwhile");
}

#[test]
fn a_front_end_that_dies_while_the_power_is_armed_gives_back_what_it_acknowledged() {
    let world = World::armed();
    let writer = Writer::start(world.fixture.mount().join("f"), 0);
    for _ in 0..5 {
        thread::sleep(Duration::from_millis(50));
        let pid = world.fixture.front_end();
        kill(pid, Signal::KILL);
        wait_until(|| world.fixture.front_end() != pid, || world.fixture.keeper_log());
    }
    world.ups.says(BATTERY);
    world.wait_for("on battery", "disk");
    let (acknowledged, failed) = writer.end();
    assert_eq!(failed, 0);
    assert!(lines_of(&world.fixture.mount().join("f")) >= acknowledged);
}
