//! Processes and threads that the system does not have at the moment.
//!
//! The keeper is in a cgroup of its own, which from one moment on may have no process and no thread
//! more than it has: what a user does to the machine who starts as many as there may be.

use crate::fixture::{Ended, Fixture, kill, wait_until};
use crate::served_disks::WithDisk;
use rustix::process::Signal;
use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// What goes into the cgroup before it becomes another program.
const ENTER: &str = "echo 0 > \"$0/cgroup.procs\" && exec \"$@\"";

/// Where process numbers may be limited.
struct Room(PathBuf);

impl Room {
    fn new() -> Room {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("holdfast-test-{}-{number}", std::process::id());
        let roots = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new);
        let root = roots.into_iter().find(|root| root.join("cgroup.procs").exists()).unwrap();
        // Version 2 counts processes only where that is asked for.
        let _version_1 = fs::write(root.join("cgroup.subtree_control"), "+pids");
        let room = Room(root.join(name));
        fs::create_dir(&room.0).unwrap();
        room.free();
        room
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// From now on nothing here starts a process or a thread.
    fn fill(&self) {
        fs::write(self.0.join("pids.max"), "0").unwrap();
    }

    fn free(&self) {
        fs::write(self.0.join("pids.max"), "max").unwrap();
    }

    /// Runs what has no thread but its first.
    fn run(&self, command: &Command) -> Ended {
        let mut inside = Command::new("sh");
        inside.args(["-c", ENTER, self.path()]).arg(command.get_program());
        inside.args(command.get_args());
        command.get_envs().for_each(|(name, value)| _ = inside.env(name, value.unwrap()));
        Ended::of(inside.output().unwrap())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.free();
        let _may_have_processes = fs::remove_dir(&self.0);
    }
}

/// What `holdfast status --json` says of everything.
fn report(fixture: &Fixture) -> serde_json::Value {
    serde_json::from_str(&fixture.holdfast(&["status", "--json"]).out).unwrap_or_default()
}

const NOTHING_FREE: &str = "Resource temporarily unavailable";

#[test]
fn what_cannot_be_started_for_want_of_processes_is_started_when_there_are_some() {
    let (mut fixture, room) = (Fixture::new(), Room::new());
    fixture.configure(&fixture.config_text().replace("way = \"direct\"", "way = \"queue\""));
    fixture.holdfast(&["volume", "make", crate::fixture::NAME]).succeeded();
    fixture.serve_behind("sh", &["-c", ENTER, room.path()]);
    let file = fixture.mount().join("f");
    fs::write(&file, "x").unwrap();
    let processes = [fixture.front_end(), fixture.server().unwrap()];
    room.fill();
    processes.into_iter().for_each(|pid| kill(pid, Signal::KILL));
    let says = |of: &serde_json::Value| {
        let why = of["problem"].as_str().unwrap_or_default();
        of["state"] == "restarting" && why.contains(NOTHING_FREE)
    };
    let is_told = || {
        let status = report(&fixture);
        says(&status["server"]) && says(&status["volumes"][0])
    };
    wait_until(is_told, || report(&fixture).to_string());
    // Far more than five attempts would take that follow one another as deaths do.
    std::thread::sleep(Duration::from_secs(3));
    assert!(is_told(), "{}", report(&fixture));
    room.free();
    fixture.wait_for_state("serving");
    assert_eq!(fs::read_to_string(&file).unwrap(), "x");
    let is_served = || report(&fixture)["server"]["state"] == "serving";
    wait_until(is_served, || report(&fixture).to_string());
    let status = report(&fixture);
    for of in [&status["server"], &status["volumes"][0]] {
        assert_eq!((&of["restarts"], &of["problem"]), (&1.into(), &().into()), "{status}");
    }
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn a_disk_whose_users_get_no_thread_goes_on_with_the_front_end_that_it_has() {
    let (mut disk, room) = (WithDisk::new(), Room::new());
    let machine = disk.served.path("machine.sock");
    disk.configure(&format!("nbd = [\"unix:{}\"]", disk.socket().display()));
    disk.configure(&format!("vhost-user = {machine:?}"));
    disk = disk.make();
    disk.served.serve();
    disk.wait_for_front_end(0);
    let front_end = disk.status().0["front_end"]["pid"].clone();
    fs::write(room.0.join("cgroup.procs"), front_end.to_string()).unwrap();
    room.fill();
    for at in [&machine, &disk.socket()] {
        let mut stream = UnixStream::connect(at).unwrap();
        let mut heard = Vec::new();
        // It is let go without a word.
        assert_eq!(stream.read_to_end(&mut heard).unwrap(), 0, "{heard:?}");
    }
    room.free();
    disk.nbd();
    disk.wait_for_front_end(0);
    assert_eq!(disk.status().0["front_end"]["pid"], front_end);
    disk.served.stop();
    // One that ends in a panic takes its time for that.
    let said = fs::read_to_string(disk.served.path("keeper.log")).unwrap();
    assert!(!said.contains("panicked") && !said.contains("front end died"), "{said}");
}

#[test]
fn commands_that_get_no_thread_answer_all_the_same() {
    let (mut disk, room) = (WithDisk::new().make(), Room::new());
    disk.served.serve();
    room.fill();
    let commands: [&[&str]; 4] =
        [&["status"], &["status", "--json"], &["table", "list", "none"], &["disk", "list"]];
    for arguments in commands {
        let mut command = disk.served.command();
        command.args(arguments);
        let (with, without) = (disk.holdfast(arguments), room.run(&command));
        assert_eq!(without.code, with.code, "{arguments:?}: {without:?}");
        assert!(!without.err.contains("panicked"), "{arguments:?}: {without:?}");
    }
    disk.served.stop();
}
