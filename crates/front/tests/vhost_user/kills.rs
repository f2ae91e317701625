//! A device dies at any instruction; the guest's requests are answered by the next, each once.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use holdfast_front::vhost_user::serve;
use vhost::vhost_user::VhostUserFrontend;
use vhost::vhost_user::message::VhostUserConfigFlags;

use crate::disks::FileBlocks;
use crate::guest::{Guest, PATIENCE};
use crate::load::{Load, QUEUES, SECTORS};
use crate::requests::config;
use crate::seeds::for_seeds;

const KILLS: usize = 60;
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
    load.finish(&mut guest, patience);
    load.compare(&host.store());
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
    // On a busy machine a device may be killed before it has taken any of what is open.
    assert!((1..=10).any(|seed| !run(seed, Middle::Disk, 20, true).is_empty()));
}
