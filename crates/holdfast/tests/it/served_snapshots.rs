//! Snapshots that the server keeps of a real machine: taken, taken up after everything was killed,
//! and refused. The guest has no system: its firmware finds nothing to boot and waits, so that
//! memory high up and the disk are the test's.

use crate::fixture::{Ended, kill, wait_until};
use crate::served::Served;
use holdfast_client::BlocksClient;
use holdfast_io::Blocks;
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The guest's memory, and where its firmware does not come.
const MEMORY: &str = "64M";
const HIGH_AT: u64 = 32 << 20;
const NOISE_BYTES: u64 = 12 << 20;

/// How the machine reaches its disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Nbd,
    VhostUser,
}

/// A served disk, room for snapshots, and a machine with that disk.
struct WithMachine {
    served: Served,
    way: Way,
    regions: Vec<PathBuf>,
    boot: Option<Child>,
}

impl WithMachine {
    fn made(size: &str) -> WithMachine {
        WithMachine::made_with(size, Way::Nbd)
    }

    fn made_with(size: &str, way: Way) -> WithMachine {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let region =
            |what| format!("/dev/shm/holdfast-test-{what}-{}-{number}", std::process::id());
        let [disk, kept, memory] = ["vmdisk", "vmkept", "vmram"].map(region);
        let socket = format!("/tmp/holdfast-test-vm-{}-{number}", std::process::id());
        let place = match way {
            Way::Nbd => format!("nbd = [\"unix:{socket}\"]"),
            Way::VhostUser => format!("vhost-user = {socket:?}"),
        };
        let lines = format!(
            "[disk.ram]\nmemory = {{ medium = \"shm\", path = {disk:?} }}\nsize = \"8MiB\"\n\
             {place}\nmust_survive = [\"process\"]\n[snapshot.fast]\n\
             memory = {{ medium = \"shm\", path = {kept:?} }}\nsize = \"{size}\"\n\
             disks = [\"ram\"]\nmust_survive = [\"process\"]\n"
        );
        let regions = [disk, kept, memory, socket].map(PathBuf::from).to_vec();
        let mut machine = WithMachine { served: Served::with(&lines), way, regions, boot: None };
        machine.holdfast(&["disk", "make", "ram"]).succeeded();
        machine.holdfast(&["snapshot", "make", "fast"]).succeeded();
        machine.serve();
        machine
    }

    fn holdfast(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.served.holdfast(arguments))
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.holdfast(&["status", "--json"]).out).unwrap()
    }

    /// Serves, and waits until the disk can be used.
    fn serve(&mut self) {
        self.served.serve();
        let is_there = || self.status()["disks"][0]["front_end"]["state"] == "serving";
        wait_until(is_there, || self.status().to_string());
    }

    fn folder(&self) -> String {
        self.served.path("vm").display().to_string()
    }

    /// Starts the machine, and waits until it runs.
    fn boot(&mut self, from: &[&str]) {
        self.start(from);
        wait_until(|| self.is_running(), || self.boot_log());
    }

    fn start(&mut self, from: &[&str]) {
        let memory = self.regions[2].display();
        let backend =
            format!("memory-backend-file,id=ram,size={MEMORY},mem-path={memory},share=on");
        let pid = self.served.path("qemu.pid").display().to_string();
        let mut boot = self.served.command();
        boot.args(["vm", "boot", &self.folder()]).args(from);
        boot.args(["--", "qemu-system-x86_64", "-nodefaults", "-display", "none", "-m", MEMORY]);
        boot.args(["-object", &backend, "-machine", "pc,memory-backend=ram", "-pidfile", &pid]);
        boot.args(self.disk());
        let log = File::create(self.served.path("boot.log")).unwrap();
        self.boot = Some(boot.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    }

    /// How QEMU is told of the disk.
    fn disk(&self) -> [String; 4] {
        let socket = self.regions[3].display();
        let by_nbd = "driver=nbd,node-name=disk,export=ram,server.type=unix";
        let again = "reconnect-delay=60,open-timeout=60";
        match self.way {
            Way::Nbd => [
                "-blockdev".into(),
                format!("{by_nbd},server.path={socket},{again}"),
                "-device".into(),
                "virtio-blk-pci,drive=disk".into(),
            ],
            Way::VhostUser => [
                "-chardev".into(),
                format!("socket,id=disk,path={socket},reconnect=1"),
                "-device".into(),
                "vhost-user-blk-pci,chardev=disk".into(),
            ],
        }
    }

    fn boot_log(&self) -> String {
        fs::read_to_string(self.served.path("boot.log")).unwrap_or_default()
    }

    /// Whether the machine says that it runs.
    fn is_running(&self) -> bool {
        let Ok(mut qmp) = UnixStream::connect(self.served.path("vm/qmp.sock")) else {
            return false;
        };
        qmp.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        for order in ["qmp_capabilities", "query-status"] {
            let _gone = qmp.write_all(format!("{{\"execute\":\"{order}\"}}\n").as_bytes());
        }
        let told = BufReader::new(qmp).lines().map_while(Result::ok);
        let mut told = told.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        told.any(|it| it["return"]["running"] == true)
    }

    fn kill_machine(&mut self) {
        kill(self.machine_pid().unwrap(), Signal::KILL);
        self.boot.take().unwrap().wait().unwrap();
    }

    fn machine_pid(&self) -> Option<i32> {
        let pid = fs::read_to_string(self.served.path("qemu.pid")).ok()?;
        pid.trim().parse().ok()
    }

    /// Kills keeper, server, front end and machine.
    fn kill_everything(&mut self) {
        let front_end = self.status()["disks"][0]["front_end"]["pid"].as_i64().unwrap() as i32;
        let server = self.served.server_pid();
        self.served.kill_keeper();
        kill(server, Signal::KILL);
        kill(front_end, Signal::KILL);
        self.kill_machine();
        let is_gone = |pid: i32| !PathBuf::from(format!("/proc/{pid}/exe")).exists();
        wait_until(|| is_gone(server) && is_gone(front_end), || "they are not gone".into());
    }

    fn memory(&self) -> File {
        File::options().read(true).write(true).open(&self.regions[2]).unwrap()
    }

    /// Leaves a mark in the guest's memory and on its disk.
    fn mark(&self, mark: u8) {
        self.memory().write_all_at(&[mark; 5000], HIGH_AT).unwrap();
        let disk = BlocksClient::connect(&self.served.socket(), "ram").unwrap();
        disk.write(&[mark; 5000], 1 << 20).unwrap();
    }

    /// The marks in memory and on the disk, if they are whole.
    fn marks(&self) -> [Option<u8>; 2] {
        let (mut memory, mut disk) = ([0; 5000], [0; 5000]);
        self.memory().read_exact_at(&mut memory, HIGH_AT).unwrap();
        let client = BlocksClient::connect(&self.served.socket(), "ram").unwrap();
        client.read(&mut disk, 1 << 20).unwrap();
        [memory, disk].map(|bytes| bytes.iter().all(|it| *it == bytes[0]).then_some(bytes[0]))
    }

    /// Fills memory with what is no zeros.
    fn fill(&self, bytes: u64) {
        let noise: Vec<u8> = (0..bytes / 8).flat_map(|it| (!it).to_le_bytes()).collect();
        self.memory().write_all_at(&noise, HIGH_AT + (1 << 20)).unwrap();
    }

    /// What comes of booting the machine once more, as it was booted, from a snapshot.
    fn boot_again(&self, from: &str) -> Ended {
        let command = fs::read(self.served.path("vm/command")).unwrap();
        let command: Vec<String> = serde_json::from_slice(&command).unwrap();
        let boot = ["vm", "boot", &self.folder(), "--from", from, "--"];
        let boot: Vec<&str> = boot.into_iter().chain(command.iter().map(String::as_str)).collect();
        self.holdfast(&boot)
    }

    fn taking(&self, to: &str) -> Command {
        let mut command = self.served.command();
        command.args(["vm", "snapshot", &self.folder(), "--to", to]);
        command
    }

    /// What a killed client has asked for is done until the server has heard of its death.
    fn wait_for_no_clients(&self) {
        let snapshots = || self.status()["snapshots"][0].clone();
        wait_until(|| snapshots()["clients"] == 0, || snapshots().to_string());
    }

    fn names(&self) -> Vec<String> {
        let list = self.holdfast(&["--json", "snapshot", "list", "fast"]).succeeded().out;
        let list: Vec<Value> = serde_json::from_str(&list).unwrap();
        list.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for WithMachine {
    fn drop(&mut self) {
        match (self.machine_pid(), &mut self.boot) {
            (Some(_), Some(_)) => self.kill_machine(),
            // One that never ran: whatever kept it from that is to be told, and not this.
            (None, Some(boot)) => drop(boot.kill()),
            (_, None) => {}
        }
        self.regions.iter().for_each(|path| drop(fs::remove_file(path)));
    }
}

#[test]
fn a_guest_goes_on_with_memory_and_disk_of_one_instant_after_everything_was_killed() {
    let mut machine = WithMachine::made("64MiB");
    machine.boot(&[]);
    machine.mark(1);
    let told = Ended::of(machine.taking("fast/one").output().unwrap()).succeeded().out;
    assert!(told.contains("the guest stood still for"), "{told}");
    assert!(machine.is_running(), "it goes on");
    machine.mark(2);
    machine.boot_again("fast/one").expect(5, &["in use by qemu"]);
    for round in 0..2 {
        machine.kill_everything();
        machine.serve();
        if round == 0 {
            assert_eq!(machine.marks(), [Some(2); 2], "the canary: they are what was there last");
        }
        machine.boot(&["--from", "fast/one"]);
        assert_eq!(machine.marks(), [Some(1); 2], "also a second time");
        assert!(machine.boot_log().contains("goes on where it was stopped"));
        machine.mark(3);
    }
    assert_eq!(machine.names(), ["one"]);
    machine.holdfast(&["snapshot", "remove", "fast/one"]).succeeded();
    assert_eq!(machine.names(), Vec::<String>::new());
    machine.served.stop();
}

#[test]
fn kills_while_a_snapshot_is_taken_leave_it_whole_or_not_there_and_no_space_lost() {
    // Room for one snapshot with its noise, and not for two halves more.
    let mut machine = WithMachine::made("24MiB");
    machine.boot(&[]);
    machine.mark(1);
    machine.fill(NOISE_BYTES);
    for round in 0..8 {
        let mut taking = machine.taking("fast/one").stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(20 * round));
        if round % 2 == 0 {
            kill(machine.served.server_pid(), Signal::KILL);
            assert!(taking.wait().unwrap().success(), "round {round}");
        } else {
            kill(taking.id() as i32, Signal::KILL);
            taking.wait().unwrap();
            machine.wait_for_no_clients();
        }
        let names = machine.names();
        assert!(names.len() == 1 || round % 2 == 1, "round {round}: {names:?}");
        if !names.is_empty() {
            machine.holdfast(&["snapshot", "remove", "fast/one"]).succeeded();
        }
    }
    Ended::of(machine.taking("fast/one").output().unwrap()).succeeded();
    machine.mark(2);
    machine.kill_machine();
    machine.boot(&["--from", "fast/one"]);
    assert_eq!(machine.marks(), [Some(1); 2]);
    machine.served.stop();
    machine.holdfast(&["snapshot", "list", "fast"]).expect(4, &["`holdfast serve`"]);
}

#[test]
fn a_guest_that_is_taken_up_notices_nothing_of_a_server_that_is_killed_meanwhile() {
    let mut machine = WithMachine::made("64MiB");
    machine.boot(&[]);
    machine.mark(1);
    machine.fill(NOISE_BYTES);
    Ended::of(machine.taking("fast/one").output().unwrap()).succeeded();
    for round in 0..5 {
        machine.kill_machine();
        machine.mark(2);
        let server = machine.served.server_pid();
        machine.start(&["--from", "fast/one"]);
        std::thread::sleep(Duration::from_millis(30 * round));
        kill(server, Signal::KILL);
        wait_until(|| machine.is_running(), || machine.boot_log());
        assert_eq!(machine.marks(), [Some(1); 2], "round {round}");
    }
    machine.served.stop();
}

#[test]
fn a_damaged_page_is_refused_before_the_disk_becomes_another() {
    let mut machine = WithMachine::made("64MiB");
    machine.boot(&[]);
    machine.fill(NOISE_BYTES);
    machine.mark(1);
    Ended::of(machine.taking("fast/one").output().unwrap()).succeeded();
    machine.mark(2);
    machine.kill_machine();
    let kept = fs::read(&machine.regions[1]).unwrap();
    let begins: Vec<u8> = (1000_u64..1002).flat_map(|it| (!it).to_le_bytes()).collect();
    let at = kept.windows(16).position(|window| window == begins).unwrap();
    let region = File::options().write(true).open(&machine.regions[1]).unwrap();
    region.write_all_at(&[0], at as u64).unwrap();
    machine.boot_again("fast/one").expect(1, &["damaged at byte"]);
    assert_eq!(machine.marks()[1], Some(2), "the disk is as it was");
    region.write_all_at(&kept[at..=at], at as u64).unwrap();
    machine.boot(&["--from", "fast/one"]);
    assert_eq!(machine.marks(), [Some(1); 2], "the canary: nothing else was wrong");
    machine.served.stop();
}

#[test]
fn what_does_not_fit_and_what_is_not_there_is_refused_and_the_guest_goes_on() {
    let mut machine = WithMachine::made("8MiB");
    machine.boot(&[]);
    machine.mark(1);
    machine.fill(NOISE_BYTES);
    let taken = Ended::of(machine.taking("fast/one").output().unwrap());
    taken.expect(1, &["it does not fit", "8388608 bytes", "there is no snapshot"]);
    assert!(machine.is_running());
    Ended::of(machine.taking("fast").output().unwrap()).expect(2, &["SERVICE/NAME"]);
    Ended::of(machine.taking("slow/one").output().unwrap()).expect(2, &["[snapshot.slow]"]);
    machine.holdfast(&["snapshot", "remove", "fast/one"]).expect(2, &["no snapshot one"]);
    machine.holdfast(&["snapshot", "remove", "fast"]).expect(5, &["serves it"]);
    machine.boot_again("fast/one").expect(5, &["in use by qemu"]);
    assert_eq!(machine.marks(), [Some(1); 2]);
    machine.kill_machine();
    machine.boot_again("fast/one").expect(1, &["there is no snapshot one"]);
    assert_eq!(machine.marks(), [Some(1); 2]);
    machine.served.stop();
}

#[test]
fn a_machine_with_a_disk_on_vhost_user_is_refused_with_what_to_do_and_its_guest_goes_on() {
    let mut machine = WithMachine::made_with("8MiB", Way::VhostUser);
    machine.boot(&[]);
    machine.mark(1);
    let words = ["vhost-user", "give it its disks by NBD", "there is no snapshot"];
    Ended::of(machine.taking("fast/one").output().unwrap()).expect(1, &words);
    machine.holdfast(&["vm", "snapshot", &machine.folder()]).expect(1, &words);
    assert!(machine.is_running());
    assert_eq!(machine.names(), Vec::<String>::new());
    assert_eq!(machine.marks(), [Some(1); 2]);
    machine.served.stop();
}

#[test]
fn snapshots_are_told_of_and_are_not_made_by_the_server() {
    let mut machine = WithMachine::made("8MiB");
    let status = machine.status()["snapshots"][0].clone();
    assert_eq!((&status["name"], &status["state"]), (&"fast".into(), &"served".into()), "{status}");
    assert_eq!(status["disks"], serde_json::json!(["ram"]));
    let text = machine.holdfast(&["status"]).succeeded().out;
    assert!(text.contains("snapshots fast: served, 0 of 64 clients"), "{text}");
    assert!(machine.holdfast(&["snapshot", "list", "fast"]).succeeded().out.contains("none"));
    machine.served.stop();
    machine.holdfast(&["snapshot", "remove", "fast"]).succeeded();
    machine.served.serve();
    let status = machine.status()["snapshots"][0].clone();
    assert_eq!(status["state"], "not made", "{status}");
    let told = status["last_error"].as_str().unwrap();
    assert!(told.contains("holdfast snapshot make fast"), "{told}");
    assert_eq!(machine.status()["disks"][0]["state"], "served");
    machine.served.stop();
}
