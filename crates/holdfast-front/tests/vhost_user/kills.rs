//! A device dies at any instruction; the guest's requests are answered by the next, each once.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use holdfast_front::vhost_user::serve;
use vhost::vhost_user::VhostUserFrontend;
use vhost::vhost_user::message::VhostUserConfigFlags;

use crate::disks::FileBlocks;
use crate::guest::{Data, FLUSH, Guest, OK, PATIENCE, READ, SLOTS, WRITE};
use crate::requests::config;
use crate::seeds::{Random, for_seeds};

const KILLS: usize = 60;
const QUEUES: usize = 2;
/// Sectors of each queue.
const SECTORS: u64 = 64;
const DISK_BYTES: u64 = QUEUES as u64 * SECTORS * 512;
/// Names the disk that outlives the devices, for a process that is one.
const STORE: &str = "HOLDFAST_TEST_STORE";
/// How long each change and each flush takes, in microseconds, for a process that is a device.
const CHANGE_US: &str = "HOLDFAST_TEST_CHANGE_US";

/// What a kill is to fall into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Middle {
    /// Something slow: a write, or flushes behind which others were answered.
    Disk,
    /// Many writes that were done and wait for a flush, because the guest has no write cache.
    Flush,
    /// The rings and the area: the disk takes next to no time.
    Rings,
}

/// Not a test of its own: the process that the tests below start and kill. Its standard input is
/// the listening socket.
#[test]
fn a_device_in_a_process_of_its_own() {
    let Ok(store) = std::env::var(STORE) else {
        return;
    };
    let file = File::options().read(true).write(true).open(store).unwrap();
    let mut disk = FileBlocks::new(file, DISK_BYTES);
    let change_us = std::env::var(CHANGE_US).unwrap().parse().unwrap();
    disk.change = Duration::from_micros(change_us);
    let listener = UnixListener::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    serve(listener, &disk, &config(), &AtomicBool::new(false)).unwrap();
}

/// What outlives the devices on the host's side.
struct Host {
    listener: UnixListener,
    folder: tempfile::TempDir,
    device: Option<Child>,
    middle: Middle,
}

impl Host {
    fn new(middle: Middle) -> Host {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        File::create(folder.path().join("store")).unwrap().set_len(DISK_BYTES).unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        Host { listener, folder, device: None, middle }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Starts a device and connects the guest to it.
    fn start(&mut self, guest: &mut Guest) {
        let mut device = Command::new(std::env::current_exe().unwrap());
        device.args(["--exact", "kills::a_device_in_a_process_of_its_own"]);
        let listener = OwnedFd::from(self.listener.try_clone().unwrap());
        device.env(CHANGE_US, if self.middle == Middle::Rings { "0" } else { "300" });
        device.env(STORE, self.store()).stdin(Stdio::from(listener)).stdout(Stdio::null());
        self.device = Some(device.spawn().unwrap());
        guest.connect(UnixStream::connect(self.folder.path().join("socket")).unwrap());
        if self.middle == Middle::Flush && guest.config(32, 1) == [1] {
            let flags = VhostUserConfigFlags::WRITABLE;
            guest.frontend().set_config(32, flags, &[0]).unwrap();
        }
    }

    fn kill(&mut self, guest: &mut Guest) {
        if let Some(mut device) = self.device.take() {
            device.kill().unwrap();
            device.wait().unwrap();
        }
        guest.disconnect();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(mut device) = self.device.take() {
            let _ = device.kill();
            let _ = device.wait();
        }
    }
}

/// What a guest asked for and what it must find.
struct Load {
    random: Random,
    /// What was written last, of each sector.
    written: Vec<u64>,
    /// Of each queue and slot, what a read there is to find.
    expected: [[Option<u64>; SLOTS]; QUEUES],
    asked: u64,
    answered: u64,
    faults: Vec<String>,
}

impl Load {
    fn new(seed: u64) -> Load {
        let written = vec![0; QUEUES * SECTORS as usize];
        let expected = [[None; SLOTS]; QUEUES];
        let random = Random::new(seed);
        Load { random, written, expected, asked: 0, answered: 0, faults: Vec::new() }
    }

    /// Asks for something in some queue that has room.
    fn ask(&mut self, guest: &mut Guest) {
        let queue = self.random.below(QUEUES as u64) as usize;
        if guest.queues[queue].is_waiting.iter().all(|is_waiting| *is_waiting) {
            return;
        }
        self.asked += 1;
        let sector = queue as u64 * SECTORS + self.random.below(SECTORS);
        match self.random.below(10) {
            0 => {
                guest.ask(queue, FLUSH, 0, Data::Room(0));
            }
            1..=3 => {
                let slot = guest.ask(queue, READ, sector, Data::Room(512));
                // Requests of a queue are done in their order.
                self.expected[queue][slot] = Some(self.written[sector as usize]);
            }
            _ => {
                let data = self.asked.to_le_bytes().repeat(64);
                guest.ask(queue, WRITE, sector, Data::Given(&data));
                self.written[sector as usize] = self.asked;
            }
        }
    }

    /// Takes the answers of which the guest was told.
    fn take(&mut self, guest: &mut Guest) {
        for queue in 0..QUEUES {
            if !guest.is_told(queue) {
                continue;
            }
            while let Some(answer) = guest.answer(queue) {
                let slot = answer.slot;
                if answer.status != OK {
                    self.faults.push(format!("status {}", answer.status));
                }
                let found = guest.given(queue, slot, 512);
                match self.expected[queue][slot].take() {
                    Some(value) if found != value.to_le_bytes().repeat(64) => {
                        self.faults.push(format!("a read does not find write {value}"));
                    }
                    _ => self.answered += 1,
                }
            }
            self.faults.append(&mut guest.queues[queue].faults);
        }
    }

    fn run_for(&mut self, guest: &mut Guest, time: Duration, pause_us: u64) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            for _ in 0..self.random.below(8) {
                self.ask(guest);
            }
            if pause_us > 0 {
                std::thread::sleep(Duration::from_micros(self.random.below(pause_us)));
            }
            self.take(guest);
        }
    }

    /// Waits for all that was asked, and looks at the disk.
    fn finish(&mut self, guest: &mut Guest, store: PathBuf, patience: Duration) {
        let end = Instant::now() + patience;
        while self.answered < self.asked && Instant::now() < end {
            self.take(guest);
            std::thread::sleep(Duration::from_millis(1));
        }
        if self.answered != self.asked {
            self.faults.push(format!("{} of {} requests answered", self.answered, self.asked));
        }
        let file = File::open(store).unwrap();
        for (sector, value) in self.written.iter().enumerate() {
            let mut found = [0; 8];
            file.read_exact_at(&mut found, sector as u64 * 512).unwrap();
            if u64::from_le_bytes(found) != *value {
                self.faults.push(format!("sector {sector} has lost write {value}"));
            }
        }
    }
}

/// Runs a load over many kills; returns what was wrong. With `forgetful` the hypervisor loses the
/// inflight area each time.
fn run(seed: u64, middle: Middle, kills: usize, forgetful: bool) -> Vec<String> {
    let (mut host, mut guest) = (Host::new(middle), Guest::new(QUEUES as u64));
    let mut load = Load::new(seed);
    let pause_us = if middle == Middle::Rings { 0 } else { 400 };
    let mut redone = 0;
    for _ in 0..kills {
        host.start(&mut guest);
        let time = Duration::from_micros(1000 + load.random.below(15_000));
        load.run_for(&mut guest, time, pause_us);
        host.kill(&mut guest);
        redone += usize::from(load.answered < load.asked);
        if forgetful {
            guest.forget();
        }
    }
    host.start(&mut guest);
    let patience = if forgetful { Duration::from_millis(300) } else { PATIENCE };
    load.finish(&mut guest, host.store(), patience);
    host.kill(&mut guest);
    println!("seed {seed}: {} requests; {redone} of {kills} kills left some open", load.asked);
    if redone == 0 {
        load.faults.push("no kill was in the middle of anything".into());
    }
    load.faults
}

#[test]
fn every_request_is_answered_once_when_devices_are_killed() {
    for_seeds("kills::every_request_is_answered_once_when_devices_are_killed", 1, |seed| {
        for middle in [Middle::Disk, Middle::Flush, Middle::Rings] {
            assert_eq!(run(seed, middle, KILLS, false), Vec::<String>::new());
        }
    });
}

/// Canary for the one above: without the inflight area it does not hold.
#[test]
fn without_the_inflight_area_requests_are_lost_or_answered_twice() {
    assert_ne!(run(1, Middle::Disk, 20, true), Vec::<String>::new());
}
