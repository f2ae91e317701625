//! Hosts that stand by for each other. A host here is a process with a folder of its own for its
//! mount and its sockets; what hosts share (home, log, memory, terms) is one and the same for all.
//! Two machines differ from that in one thing: no lock of the kernel's stands between them.

use crate::fixture::{Ended, Fixture, NAME, asking, kill, wait_until, way};
use holdfast_memory::{Medium, Region};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// How long an owner may be silent here.
const PATIENCE_MS: u64 = 500;

/// Superblock and control page of a region.
const HEAD_BYTES: usize = 8192;

/// What the hosts share.
struct Shared {
    fixture: Fixture,
}

/// One of them.
struct Host {
    folder: PathBuf,
    process: Option<Child>,
}

impl Shared {
    /// A volume, and a fence that notes whom it fenced off and ends with `code`.
    fn with_fence(code: i32) -> Shared {
        let fixture = Fixture::new();
        fixture.holdfast(&["volume", "make", NAME]).succeeded();
        fs::create_dir(fixture.path("terms")).unwrap();
        let fence = fixture.path("fence");
        let note = fixture.path("fenced").display().to_string();
        fs::write(&fence, format!("#!/bin/sh\necho \"$1\" >> {note}\nexit {code}\n")).unwrap();
        fs::set_permissions(&fence, fs::Permissions::from_mode(0o755)).unwrap();
        Shared { fixture }
    }

    fn host(&self, name: &str) -> Host {
        let folder = self.fixture.path(&format!("host-{name}"));
        fs::create_dir_all(folder.join("mount")).unwrap();
        let text = format!(
            "[keeper]\nsocket = {:?}\n\n[server]\nsocket = {:?}\n\n[volume.{NAME}]\n\
             home = {:?}\nmount = {:?}\nlog = {:?}\n\
             memory = {{ medium = \"shm\", size = \"8MiB\", path = {:?} }}\n\
             must_survive = [\"process\"]\nway = {:?}\n\n\
             [standby]\nhost = {name:?}\nfolder = {:?}\npatience_ms = {PATIENCE_MS}\n\
             fence = [{:?}]\n",
            folder.join("control.sock"),
            folder.join("server.sock"),
            self.fixture.home(),
            folder.join("mount"),
            self.fixture.log(),
            self.fixture.region,
            way(),
            self.fixture.path("terms"),
            self.fixture.path("fence"),
        );
        fs::write(folder.join("holdfast.toml"), text).unwrap();
        Host { folder, process: None }
    }

    /// Host a, which serves, and host b, which stands by.
    fn owner_and_stand_by(&self) -> (Host, Host) {
        let (mut a, mut b) = (self.host("a"), self.host("b"));
        a.stand_by();
        a.serve_at_last();
        b.stand_by();
        b.wait_until_it_says("standing by");
        (a, b)
    }

    /// Another host attaches the memory in this term: a copy is attached, as hosts attach, and its
    /// first pages are put back. No lock of this system's knows of it.
    fn memory_is_taken(&self, term: u64) {
        let (region, copy) = (&self.fixture.region, self.fixture.path("copy"));
        fs::copy(region, &copy).unwrap();
        drop(Region::attach_in_term(&Medium::Pmem { path: copy.clone() }, term).unwrap());
        let region = File::options().write(true).open(region).unwrap();
        region.write_all_at(&fs::read(copy).unwrap()[..HEAD_BYTES], 0).unwrap();
    }

    /// Whom the fence was asked to fence off.
    fn fenced(&self) -> String {
        fs::read_to_string(self.fixture.path("fenced")).unwrap_or_default()
    }

    fn has_term(&self, number: u64) -> bool {
        self.fixture.path("terms").join(format!("term-{number}")).exists()
    }
}

impl Host {
    /// Whether hosts can share it decides whether anybody looks who has it.
    fn with_persistent_memory(self) -> Host {
        let path = self.folder.join("holdfast.toml");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, text.replace("medium = \"shm\"", "medium = \"pmem\"")).unwrap();
        self
    }

    fn command(&self) -> Command {
        asking(env!("CARGO_BIN_EXE_holdfast"), &self.folder.join("holdfast.toml"))
    }

    fn holdfast(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.command().args(arguments).output().unwrap())
    }

    fn stand_by(&mut self) {
        let mut said = File::options();
        let said = said.create(true).append(true).open(self.folder.join("said")).unwrap();
        let process = self.command().arg("standby").stdin(Stdio::null()).stderr(said).spawn();
        self.process = Some(process.unwrap());
    }

    /// Stands by, again whenever it ended, as a service manager would have it, until it serves.
    fn serve_at_last(&mut self) {
        let tell = format!("never served: {}", self.folder.display());
        let started = std::time::Instant::now();
        while self.status()["state"] != "serving" {
            assert!(started.elapsed().as_secs() < 60, "{tell}\n{}", self.said());
            if self.code().is_some() {
                self.stand_by();
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// How the process ended, if it did.
    fn code(&mut self) -> Option<i32> {
        self.process.as_mut().unwrap().try_wait().unwrap().map(|status| status.code().unwrap_or(-1))
    }

    fn ends(&mut self) -> i32 {
        self.process.take().unwrap().wait().unwrap().code().unwrap_or(-1)
    }

    fn said(&self) -> String {
        fs::read_to_string(self.folder.join("said")).unwrap_or_default()
    }

    #[track_caller]
    fn wait_until_it_says(&self, words: &str) {
        wait_until(|| self.said().contains(words), || format!("no {words:?} in {}", self.said()));
    }

    fn status(&self) -> Value {
        let ended = self.holdfast(&["status", "--json"]);
        let report: Value = serde_json::from_str(&ended.out).unwrap_or_default();
        // Without a keeper it is another host that is seen at work in the shared memory.
        if report["keeper"].is_null() { Value::Null } else { report["volumes"][0].clone() }
    }

    fn pid(&self) -> i32 {
        self.process.as_ref().unwrap().id().cast_signed()
    }

    fn front_end(&self) -> i32 {
        self.status()["front_end_pid"].as_i64().expect("it serves") as i32
    }

    fn mount(&self) -> PathBuf {
        self.folder.join("mount")
    }

    /// Whether a file with this name was made, and what is in it acknowledged.
    fn put(&self, name: &str) -> bool {
        let made = File::create_new(self.mount().join(name));
        made.and_then(|mut file| file.write_all(b"x").and_then(|()| file.sync_all())).is_ok()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let front_end = self.status()["front_end_pid"].as_i64();
        if let Some(mut process) = self.process.take() {
            let _may_have_ended = process.kill();
            let _reaped = process.wait();
        }
        front_end.into_iter().for_each(|pid| kill(pid as i32, Signal::KILL));
        let _may_be_gone = unmount(self.mount(), UnmountFlags::DETACH);
    }
}

#[test]
fn a_silent_owner_is_fenced_off_and_taken_over_and_nothing_acknowledged_is_lost() {
    let shared = Shared::with_fence(0);
    let (mut a, mut b) = shared.owner_and_stand_by();
    assert!((0..50).all(|number| a.put(&format!("f{number}"))));
    let front_end = a.front_end();
    kill(a.pid(), Signal::KILL);
    a.ends();
    b.serve_at_last();
    assert_eq!(shared.fenced(), "a\n");
    assert!(!fs::exists(format!("/proc/{front_end}/exe")).unwrap(), "nobody serves for a");
    assert_eq!(fs::read_dir(b.mount()).unwrap().count(), 50);
    assert!(b.put("later"));
    kill(b.pid(), Signal::TERM);
    assert_eq!(b.ends(), 0);
    assert_eq!(fs::read_dir(shared.fixture.home()).unwrap().count(), 51);
}

#[test]
fn an_owner_that_ends_in_order_is_followed_at_once_without_a_fence() {
    let shared = Shared::with_fence(1);
    let (mut a, mut b) = shared.owner_and_stand_by();
    assert!(a.put("f"));
    kill(a.pid(), Signal::TERM);
    assert_eq!(a.ends(), 0);
    b.serve_at_last();
    assert_eq!(shared.fenced(), "");
    assert!(b.mount().join("f").exists());
}

/// A keeper that looks at what was left, on a busy machine, is no other than one that stands by.
#[test]
fn a_volume_that_is_asked_for_is_waited_for_while_the_keeper_does_not_listen_yet() {
    let shared = Shared::with_fence(1);
    let (mut a, mut b) = shared.owner_and_stand_by();
    let asking = b.command().args(["wait", NAME]).stderr(Stdio::piped()).spawn().unwrap();
    // Longer than a command waits for a keeper that lost its socket.
    std::thread::sleep(std::time::Duration::from_secs(3));
    kill(a.pid(), Signal::TERM);
    assert_eq!(a.ends(), 0);
    Ended::of(asking.wait_with_output().unwrap()).succeeded();
    assert_eq!(b.status()["state"], "serving");
    kill(b.pid(), Signal::TERM);
    assert_eq!(b.ends(), 0);
}

#[test]
fn a_host_that_is_told_to_stop_while_its_fence_waits_ends_and_takes_nothing_over() {
    let shared = Shared::with_fence(0);
    let (fence, note) = (shared.fixture.path("fence"), shared.fixture.path("fenced"));
    let script = format!("#!/bin/sh\necho \"$1\" >> {}\nexec sleep 600\n", note.display());
    fs::write(&fence, script).unwrap();
    let (mut a, mut b) = shared.owner_and_stand_by();
    assert!(a.put("f"));
    kill(a.pid(), Signal::KILL);
    a.ends();
    wait_until(|| shared.fenced() == "a\n", || b.said());
    kill(b.pid(), Signal::TERM);
    assert_eq!(b.ends(), 0);
    assert!(!shared.has_term(2));
}

/// The fence here does nothing, as one that failed without noticing.
#[test]
fn an_owner_that_wakes_up_in_an_old_term_ends_and_what_it_acknowledged_is_there() {
    let shared = Shared::with_fence(0);
    let (mut a, mut b) = shared.owner_and_stand_by();
    assert!(a.put("before"));
    let (keeper, front_end) = (a.pid(), a.front_end());
    kill(keeper, Signal::STOP);
    kill(front_end, Signal::STOP);
    wait_until(|| shared.has_term(2), || b.said());
    kill(front_end, Signal::CONT);
    kill(keeper, Signal::CONT);
    let mut acknowledged = vec!["before".to_owned()];
    for number in 0..10_000 {
        let name = format!("f{number}");
        match a.put(&name) {
            true => acknowledged.push(name),
            false => break,
        }
    }
    assert_eq!(a.ends(), 5, "{}", a.said());
    assert!(a.said().contains("stale term 1") && a.said().contains("host b"), "{}", a.said());
    b.serve_at_last();
    for name in &acknowledged {
        assert!(b.mount().join(name).exists(), "{name} of {}", acknowledged.len());
    }
}

#[test]
fn an_owner_whose_memory_another_host_has_ends_and_does_not_take_it_back() {
    let shared = Shared::with_fence(0);
    let mut a = shared.host("a").with_persistent_memory();
    a.stand_by();
    a.serve_at_last();
    assert!(a.put("before"));
    shared.memory_is_taken(2);
    a.wait_until_it_says("stale generation");
    a.wait_until_it_says("stale term: another host has the region, in term 2");
    fs::write(shared.fixture.path("terms/term-2"), r#"{"number":2,"host":"b"}"#).unwrap();
    assert_eq!(a.ends(), 5, "{}", a.said());
    assert!(!a.put("late"));
}

#[test]
fn of_several_that_stand_by_one_takes_over() {
    let shared = Shared::with_fence(0);
    let mut a = shared.host("a");
    a.stand_by();
    a.serve_at_last();
    let mut others = ["b", "c", "d"].map(|name| shared.host(name));
    for other in &mut others {
        other.stand_by();
        other.wait_until_it_says("standing by");
    }
    kill(a.pid(), Signal::KILL);
    a.ends();
    let serving = |host: &Host| host.status()["state"] == "serving";
    wait_until(|| others.iter().any(serving), || others.each_ref().map(Host::said).concat());
    assert_eq!(others.iter().filter(|host| serving(host)).count(), 1);
    for other in &mut others {
        if let Some(code) = other.code() {
            assert_eq!(code, 5, "{}", other.said());
            assert!(other.said().contains("has taken over, in term 2"), "{}", other.said());
        }
    }
}

#[test]
fn without_its_fence_a_stand_by_takes_nothing_over() {
    let shared = Shared::with_fence(3);
    let (mut a, mut b) = shared.owner_and_stand_by();
    kill(a.pid(), Signal::KILL);
    a.ends();
    assert_eq!(b.ends(), 1);
    assert!(b.said().contains("fencing host a off failed"), "{}", b.said());
    assert!(!shared.has_term(2));
}

#[test]
fn a_host_with_others_beside_it_is_not_served_without_asking_them() {
    let shared = Shared::with_fence(0);
    let a = shared.host("a");
    a.holdfast(&["serve"]).expect(2, &["[standby]", "holdfast standby"]);
    let plain = Ended::of(shared.fixture.command().arg("standby").output().unwrap());
    plain.expect(2, &["no [standby]", "holdfast serve"]);
}

#[test]
fn a_silent_owner_of_ones_own_name_on_another_machine_is_not_taken_for_oneself() {
    let shared = Shared::with_fence(0);
    let term = r#"{"number":1,"host":"a","machine":{"id":"another","boot":"elsewhere"}}"#;
    fs::write(shared.fixture.path("terms/term-1"), term).unwrap();
    let mut a = shared.host("a");
    a.stand_by();
    assert_eq!(a.ends(), 2, "{}", a.said());
    assert!(a.said().contains("another machine served as host a"), "{}", a.said());
    assert!(a.said().contains("a name of its own"), "{}", a.said());
    assert!(!shared.has_term(2));
}
