//! Disks that are served: made, shared by clients that notice nothing of upgrades and kills, and
//! removed.

use crate::fixture::{Ended, kill, wait_until, way};
use crate::nbd::Client;
use crate::served::Served;
use holdfast_client::BlocksClient;
use holdfast_io::Blocks;
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

static NUMBER: AtomicU32 = AtomicU32::new(0);

const THREADS: u64 = 6;
const BLOCK_BYTES: u64 = 4096;
/// What one thread writes over and over, from end to end.
const BLOCKS_EACH: u64 = 600;

/// A served log and a disk, whose region goes with the test.
pub(crate) struct WithDisk {
    pub(crate) served: Served,
    region: PathBuf,
}

impl WithDisk {
    pub(crate) fn new() -> WithDisk {
        WithDisk::with("must_survive = [\"process\"]")
    }

    /// With this line about the disk.
    pub(crate) fn with(line: &str) -> WithDisk {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let region = format!("/dev/shm/holdfast-test-disk-{}-{number}", std::process::id());
        let lines = format!(
            "[disk.ram]\nmemory = {{ medium = \"shm\", path = {region:?} }}\n\
             size = \"32MiB\"\n{line}\n"
        );
        WithDisk { served: Served::with(&lines), region: region.into() }
    }

    fn made() -> WithDisk {
        WithDisk::new().make()
    }

    /// [`Self::made`] as a network block device at [`Self::socket`], by this way.
    pub(crate) fn made_with_socket(way: &str) -> WithDisk {
        let disk = WithDisk::new();
        disk.configure(&format!("way = {way:?}"));
        disk.configure(&format!("nbd = [\"unix:{}\"]", disk.socket().display()));
        disk.make()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.served.path("disk.sock")
    }

    /// Writes one line more about the disk.
    pub(crate) fn configure(&self, line: &str) {
        let config = File::options().append(true).open(self.served.path("holdfast.toml"));
        writeln!(config.unwrap(), "{line}").unwrap();
    }

    /// Has everything of the configuration that is `what` be `with`.
    #[track_caller]
    pub(crate) fn reconfigure(&self, what: &str, with: &str) {
        let path = self.served.path("holdfast.toml");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(what), "{what}");
        fs::write(&path, text.replace(what, with)).unwrap();
    }

    pub(crate) fn make(self) -> WithDisk {
        self.holdfast(&["disk", "make", "ram"]).succeeded();
        self
    }

    pub(crate) fn nbd(&self) -> Client<UnixStream> {
        Client::new(UnixStream::connect(self.socket()).unwrap()).unwrap()
    }

    #[track_caller]
    pub(crate) fn wait_for_front_end(&self, restarts: u64) {
        let is_there = || {
            let front = &self.status().0["front_end"];
            front["state"] == "serving" && front["restarts"] == restarts
        };
        wait_until(is_there, || self.status().0.to_string());
    }

    pub(crate) fn holdfast(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.served.holdfast(arguments))
    }

    pub(crate) fn client(&self) -> BlocksClient {
        BlocksClient::connect(&self.served.socket(), "ram").unwrap()
    }

    /// What `holdfast status --json` says of the disk, and of the server.
    pub(crate) fn status(&self) -> (Value, Value) {
        let report: Value =
            serde_json::from_str(&self.holdfast(&["status", "--json"]).out).unwrap();
        (report["disks"][0].clone(), report["server"].clone())
    }
}

impl Drop for WithDisk {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.region);
    }
}

/// What a block holds after so many rounds of a thread.
fn block(thread: u64, index: u64, round: u64) -> Vec<u8> {
    [thread, index, round].map(u64::to_le_bytes).concat().into_iter().cycle().take(4096).collect()
}

/// Writes all of its blocks, several at a time, again and again; each round first finds what the
/// last one left. Returns how many rounds, and the longest wait.
fn write_rounds(disk: &BlocksClient, thread: u64, stop: &AtomicBool) -> (u64, Duration) {
    let (mut round, mut longest) = (0, Duration::ZERO);
    while !stop.load(Ordering::Relaxed) {
        for first in (0..BLOCKS_EACH).step_by(8) {
            let began = Instant::now();
            check_blocks(disk, thread, first..first + 8, round);
            let bytes = (first..first + 8).map(|index| block(thread, index, round + 1));
            let at = (thread * BLOCKS_EACH + first) * BLOCK_BYTES;
            disk.write(&bytes.collect::<Vec<_>>().concat(), at).unwrap();
            longest = longest.max(began.elapsed());
        }
        round += 1;
    }
    (round, longest)
}

fn check_blocks(disk: &dyn Blocks, thread: u64, indexes: std::ops::Range<u64>, round: u64) {
    let mut found = vec![0xee; BLOCK_BYTES as usize];
    for index in indexes {
        disk.read(&mut found, (thread * BLOCKS_EACH + index) * BLOCK_BYTES).unwrap();
        let wanted = if round == 0 { vec![0; 4096] } else { block(thread, index, round) };
        assert!(found == wanted, "thread {thread}, block {index}, round {round}");
    }
}

/// What an ordinary user can make who wants to be in the way.
fn make_names_like(region: &Path) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    for number in now..now + 100 {
        let path = PathBuf::from(format!("{}.held-{number}", region.display()));
        fs::write(&path, "").unwrap();
        std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
    }
}

fn names_like(region: &Path) -> Vec<PathBuf> {
    let begin = format!("{}.held-", region.display());
    let all = fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.display().to_string().starts_with(&begin)).collect()
}

#[test]
fn a_region_that_others_may_read_is_closed_to_them() {
    let mut disk = WithDisk::made();
    fs::set_permissions(&disk.region, Permissions::from_mode(0o644)).unwrap();
    disk.served.serve();
    assert_eq!(fs::metadata(&disk.region).unwrap().permissions().mode() & 0o777, 0o600);
    disk.served.stop();
}

#[test]
fn a_disk_whose_memory_has_lost_its_name_outlives_its_keeper() {
    for name_leads_elsewhere in [false, true] {
        let mut disk = WithDisk::made();
        disk.served.serve();
        disk.client().write(&block(1, 2, 3), 0).unwrap();
        fs::remove_file(&disk.region).unwrap();
        if name_leads_elsewhere {
            fs::write(&disk.region, "something else").unwrap();
            make_names_like(&disk.region);
        }
        assert_eq!(disk.status().0["state"], "served");
        let ended = disk.holdfast(&["shutdown"]);
        disk.served.reap();
        if name_leads_elsewhere {
            let region = disk.region.display().to_string();
            ended.expect(1, &["move what is at", ".held-"]);
            let after = ended.err.split(".held-").nth(1).unwrap();
            assert!(names_like(&disk.region).len() == 101, "{ended:?}");
            let number: String = after.chars().take_while(char::is_ascii_digit).collect();
            fs::rename(format!("{region}.held-{number}"), &region).unwrap();
            names_like(&disk.region).iter().for_each(|path| fs::remove_file(path).unwrap());
        } else {
            ended.succeeded();
        }
        disk.served.serve();
        let mut found = vec![0; BLOCK_BYTES as usize];
        disk.client().read(&mut found, 0).unwrap();
        assert!(found == block(1, 2, 3));
    }
}

#[test]
fn clients_that_share_a_disk_notice_nothing_of_upgrades_and_kills() {
    let factor = std::env::var("HOLDFAST_SEEDS_FACTOR").ok().and_then(|text| text.parse().ok());
    let upgrades = factor.map_or(5, |factor: u64| 100 * factor / 8);
    let mut disk = WithDisk::made();
    disk.served.serve();
    let (clients, stop) = ([disk.client(), disk.client(), disk.client()], AtomicBool::new(false));
    let done: Vec<(u64, Duration)> = std::thread::scope(|scope| {
        let work = |thread: u64| {
            let (client, stop) = (&clients[thread as usize % clients.len()], &stop);
            scope.spawn(move || write_rounds(client, thread, stop))
        };
        let threads: Vec<_> = (0..THREADS).map(work).collect();
        for round in 0..upgrades {
            disk.holdfast(&["upgrade", "server"]).succeeded();
            if round % 2 == 1 {
                kill(disk.served.server_pid(), Signal::KILL);
            }
        }
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let reader = disk.client();
    for (thread, (rounds, _)) in (0..).zip(&done) {
        check_blocks(&reader, thread, 0..BLOCKS_EACH, *rounds);
    }
    let (status, server) = disk.status();
    assert_eq!(server["upgrades"], upgrades);
    assert_eq!(status["refused"], 0, "{status}");
    let (rounds, longest): (Vec<_>, Vec<_>) = done.into_iter().unzip();
    println!("{upgrades} upgrades, rounds {rounds:?}, longest wait {:?}", longest.iter().max());
    disk.served.stop();
}

#[test]
fn the_status_tells_of_a_disk_from_its_making_to_its_end() {
    let mut disk = WithDisk::new();
    disk.served.serve();
    let (status, _) = disk.status();
    assert_eq!(status["state"], "not made");
    let told = status["last_error"].as_str().unwrap();
    assert!(told.contains("holdfast disk make ram"), "{told}");
    assert!(BlocksClient::connect(&disk.served.socket(), "ram").is_err());
    disk.holdfast(&["disk", "make", "ram"]).succeeded();
    disk.holdfast(&["upgrade", "server"]).succeeded();
    let client = disk.client();
    client.write(&[7; 8192], 4096).unwrap();
    let (status, _) = disk.status();
    assert_eq!((&status["state"], &status["clients"]), (&"served".into(), &1.into()), "{status}");
    assert_eq!((&status["held_bytes"], &status["requests"]), (&8192.into(), &1.into()), "{status}");
    assert_eq!(status["verdict"]["survives"], serde_json::json!(["process"]));
    let text = disk.holdfast(&["status"]).succeeded().out;
    for words in ["disk ram: served, 1 of 64 clients", "32.0 MiB, of which 8.0 KiB"] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    disk.holdfast(&["disk", "make", "ram"]).expect(2, &["disk remove ram"]);
    disk.holdfast(&["disk", "remove", "ram"]).expect(5, &["serves it", "holdfast shutdown"]);
    disk.served.stop();
    assert_eq!(disk.status().0["state"], "not served");
    disk.served.serve();
    let mut found = [0; 2];
    disk.client().read(&mut found, 12287).unwrap();
    assert_eq!(found, [7, 0], "it outlives the keeper and its server");
    disk.served.stop();
    disk.holdfast(&["disk", "remove", "ram"]).succeeded();
    assert!(!disk.region.exists());
    disk.holdfast(&["disk", "remove", "ram"]).expect(2, &["holdfast disk make ram"]);
}

#[test]
fn a_front_end_of_a_disk_goes_on_across_servers_and_its_successors_find_what_it_wrote() {
    let factor = std::env::var("HOLDFAST_SEEDS_FACTOR").ok().and_then(|text| text.parse().ok());
    let rounds = factor.map_or(3, |factor: u8| 10 * factor);
    let mut disk = WithDisk::made_with_socket("queue");
    disk.served.serve();
    disk.wait_for_front_end(0);
    let (mut client, native) = (disk.nbd(), disk.client());
    for round in 0..rounds {
        let (at, value) = (u64::from(round) * 100_003, round + 1);
        client.write(&[value; 50_000], at).unwrap();
        let mut found = [0; 50_000];
        native.read(&mut found, at).unwrap();
        assert!(found == [value; 50_000], "a front end and another client see one disk");
        native.write(&[value; 10], at + 50_000).unwrap();
        disk.holdfast(&["upgrade", "disk", "ram"]).succeeded();
        disk.holdfast(&["upgrade", "server"]).succeeded();
        kill(disk.served.server_pid(), Signal::KILL);
        assert_eq!(client.read(50_010, at).unwrap(), [value; 50_010], "the connection goes on");
        let front_end = disk.status().0["front_end"]["pid"].as_u64().unwrap();
        kill(front_end as i32, Signal::KILL);
        client.read(1, 0).expect_err("its front end is dead");
        client = disk.nbd();
        assert_eq!(client.read(50_010, at).unwrap(), [value; 50_010], "round {round}");
        disk.wait_for_front_end(u64::from(round) + 1);
    }
    native.flush().unwrap(); // it connects again when it asks for something
    // A server learns of a client's death from its socket, some time after the death.
    wait_until(|| disk.status().0["clients"] == 2, || disk.status().0.to_string());
    let (status, server) = disk.status();
    assert_eq!(status["front_end"]["upgrades"], rounds, "{status}");
    assert_eq!(status["refused"], 0, "{status}");
    assert_eq!(server["upgrades"], rounds, "{server}");
    let text = disk.holdfast(&["status"]).succeeded().out;
    assert!(text.contains("front end    serving, "), "{text}");
    drop(client);
    disk.served.stop();
    assert!(!disk.socket().exists(), "the socket is gone with the keeper");
}

#[test]
fn without_a_keeper_users_of_a_disk_go_on_and_the_last_one_to_go_makes_room_for_the_next() {
    let mut disk = WithDisk::made_with_socket(&way());
    disk.served.serve();
    disk.wait_for_front_end(0);
    let mut client = disk.nbd();
    let (status, server) = disk.status();
    let front_end = status["front_end"]["pid"].as_u64().unwrap();
    let server = server["pid"].as_u64().unwrap();
    disk.served.kill_keeper();
    client.write(&[5; 5000], 100).unwrap();
    assert_eq!(client.read(5000, 100).unwrap(), [5; 5000]);
    drop(client);
    let is_over = |pid: u64| !fs::exists(format!("/proc/{pid}")).unwrap();
    wait_until(|| is_over(front_end) && is_over(server), || disk.status().0.to_string());
    disk.served.serve();
    disk.wait_for_front_end(0);
    assert_eq!(disk.nbd().read(5000, 100).unwrap(), [5; 5000]);
    disk.served.stop();
}

#[test]
fn a_disk_that_cannot_keep_its_claims_is_neither_made_nor_served() {
    let disk = WithDisk::with("");
    let words = ["os (the kernel takes", "power", "must_survive"];
    disk.holdfast(&["disk", "make", "ram"]).expect(3, &words);
    assert!(!disk.region.exists());
    disk.holdfast(&["disk", "make", "other"]).expect(2, &["[disk.other]"]);
}

#[test]
fn a_block_of_another_round_is_found() {
    assert_ne!(block(1, 2, 3), block(1, 2, 4), "the canary of the comparison");
    assert_ne!(block(1, 2, 3), block(2, 2, 3));
}
