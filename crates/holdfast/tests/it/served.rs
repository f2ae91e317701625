//! Logs that are served: the keeper, its server, upgrades, and clients that notice nothing.

use crate::disks::SlowDisk;
use crate::fixture::{asking, copy_program, kill, pid_that_comes, stop, wait_until};
use holdfast_client::LogClient;
use holdfast_log::{AppendError, CommitLog};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

static NUMBER: AtomicU32 = AtomicU32::new(0);

const THREADS: usize = 8;

/// One served log and a keeper.
pub(crate) struct Served {
    root: tempfile::TempDir,
    region: PathBuf,
    keeper: Option<Child>,
    /// The run of the system, if it is not this one.
    run: Option<String>,
}

impl Served {
    fn new() -> Served {
        Served::with("")
    }

    /// With more lines about the log.
    pub(crate) fn with(lines: &str) -> Served {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let region = format!("/dev/shm/holdfast-served-{}-{number}", std::process::id()).into();
        let served = Served { root: tempfile::tempdir().unwrap(), region, keeper: None, run: None };
        let text = format!(
            "[keeper]\nsocket = {:?}\n[server]\nsocket = {:?}\n[log.ledger]\nlog = {:?}\n\
             memory = {{ medium = \"shm\", size = \"8MiB\", path = {:?} }}\n\
             must_survive = [\"process\"]\n{lines}",
            served.path("control.sock"),
            served.socket(),
            served.path("log"),
            served.region,
        );
        fs::write(served.path("holdfast.toml"), text).unwrap();
        served.make_log();
        served
    }

    fn make_log(&self) {
        let made = self.holdfast(&["log", "make", "ledger"]);
        assert!(made.status.success(), "{made:?}");
    }

    /// Takes the log away, with its memory, and makes one of the same name. Nobody serves it.
    pub(crate) fn remake_log(&self) {
        fs::remove_dir_all(self.path("log")).unwrap();
        let _ = fs::remove_file(&self.region);
        self.make_log();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("server.sock")
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = asking(env!("CARGO_BIN_EXE_holdfast"), &self.path("holdfast.toml"));
        if let Some(run) = &self.run {
            command.env("HOLDFAST_TEST_BOOT", run);
        }
        command
    }

    /// From now on it is a later run of the system.
    pub(crate) fn restart(&mut self) {
        let began = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        self.run = Some(format!("a-later-run {}", began.as_nanos()));
    }

    pub(crate) fn holdfast(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    pub(crate) fn serve(&mut self) {
        self.begin_to_serve();
        self.wait_for_state("serving");
    }

    /// [`Self::serve`], without waiting for a server.
    pub(crate) fn begin_to_serve(&mut self) {
        let log = fs::File::create(self.path("keeper.log")).unwrap();
        self.keeper = Some(self.command().arg("serve").stderr(log).spawn().unwrap());
    }

    /// From now on the configuration has everything but the log.
    pub(crate) fn leave_out_log(&self) {
        let path = self.path("holdfast.toml");
        let text = fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once("[log.ledger]").unwrap();
        let (_, behind) = rest.split_once("\n[").unwrap();
        fs::write(&path, format!("{before}[{behind}")).unwrap();
    }

    fn status(&self) -> Value {
        let output = self.holdfast(&["status", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    #[track_caller]
    fn wait_for_state(&self, state: &str) {
        let tell = || fs::read_to_string(self.path("keeper.log")).unwrap_or_default();
        wait_until(|| self.status()["server"]["state"] == state, tell);
    }

    pub(crate) fn server_pid(&self) -> i32 {
        pid_that_comes(|| self.status()["server"]["pid"].as_i64(), || self.status().to_string())
    }

    pub(crate) fn client(&self) -> LogClient {
        LogClient::connect(&self.socket(), "ledger").unwrap()
    }

    /// The keeper stands still until it is killed.
    pub(crate) fn stop_keeper(&self) {
        stop(self.keeper.as_ref().unwrap().id().cast_signed());
    }

    /// Kills the keeper as nothing can be prepared for.
    pub(crate) fn kill_keeper(&mut self) {
        let mut keeper = self.keeper.take().unwrap();
        keeper.kill().unwrap();
        keeper.wait().unwrap();
    }

    pub(crate) fn stop(&mut self) {
        kill(self.keeper.as_ref().unwrap().id().cast_signed(), Signal::TERM);
        self.stop_ended();
    }

    /// Waits for the end of a keeper.
    pub(crate) fn reap(&mut self) -> ExitStatus {
        self.keeper.take().unwrap().wait().unwrap()
    }

    /// Waits for a keeper that was told to end.
    pub(crate) fn stop_ended(&mut self) {
        let ended = self.reap();
        let told = fs::read_to_string(self.path("keeper.log")).unwrap_or_default();
        assert!(ended.success(), "{ended}: {told}");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let server = self.status()["server"]["pid"].as_u64();
        if let Some(mut keeper) = self.keeper.take() {
            let _ = keeper.kill();
            let _ = keeper.wait();
        }
        server.into_iter().for_each(|pid| kill(pid as i32, Signal::KILL));
        let _ = fs::remove_file(&self.region);
    }
}

/// Appends 0, 1, 2 and so on until told to stop. Returns the longest wait.
fn append_values(
    client: &LogClient,
    thread: usize,
    stop: &AtomicBool,
    values: &AtomicU64,
) -> Duration {
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let (value, began) = (values.load(Ordering::Relaxed), Instant::now());
        match client.append(1, &[&[thread as u8], &value.to_le_bytes()]) {
            Ok(_) => values.store(value + 1, Ordering::Relaxed),
            Err(AppendError::Full) => client.wait_for_room(16, Duration::MAX).unwrap(),
            Err(error) => panic!("thread {thread}, value {value}: {error}"),
        }
        longest = longest.max(began.elapsed());
    }
    longest
}

/// Reads what is durable, checks that each thread's values follow one another, and releases it.
fn check_and_release(client: &LogClient, next: &mut [u64]) {
    let marks = client.marks();
    let read = client.read(marks.released, marks.durable, &mut |frame| {
        let (thread, value) = frame.payload.split_first().unwrap();
        let value = u64::from_le_bytes(value.try_into().unwrap());
        assert_eq!(value, next[usize::from(*thread)], "thread {thread}: lost or doubled");
        next[usize::from(*thread)] += 1;
        true
    });
    read.unwrap();
    client.mark(marks.durable).unwrap();
    client.release(marks.durable);
}

#[test]
fn clients_notice_nothing_of_upgrades_and_kills_but_the_time() {
    let factor = std::env::var("HOLDFAST_SEEDS_FACTOR").ok().and_then(|text| text.parse().ok());
    let upgrades = factor.map_or(5, |factor: u64| 100 * factor / 8);
    let mut served = Served::new();
    served.serve();
    let clients = [served.client(), served.client()];
    let values: Vec<AtomicU64> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    let (stop, mut next) = (AtomicBool::new(false), [0; THREADS]);
    let longest = std::thread::scope(|scope| {
        let work = |(thread, values)| {
            let (client, stop) = (&clients[thread % 2], &stop);
            scope.spawn(move || append_values(client, thread, stop, values))
        };
        let threads: Vec<_> = values.iter().enumerate().map(work).collect();
        for round in 0..upgrades {
            let upgraded = served.holdfast(&["upgrade", "server"]);
            assert!(upgraded.status.success(), "{upgraded:?}");
            check_and_release(&clients[0], &mut next);
            if round % 2 == 1 {
                kill(served.server_pid(), Signal::KILL);
            }
        }
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
    });
    clients[0].commit(clients[0].marks().tail).unwrap();
    check_and_release(&clients[0], &mut next);
    let acknowledged: Vec<u64> = values.iter().map(|v| v.load(Ordering::Relaxed)).collect();
    assert_eq!(next.to_vec(), acknowledged);
    let status = served.status();
    assert_eq!(status["server"]["upgrades"], upgrades);
    let said = fs::read_to_string(served.path("keeper.log")).unwrap();
    assert!(!said.contains("server died status=exit"), "only kills are deaths: {said}");
    println!("{upgrades} upgrades, longest wait {longest:?}, {}", status["server"]);
    served.stop();
}

#[test]
fn an_upgrade_that_does_not_come_up_hands_back_to_the_old_server() {
    let mut served = Served::new();
    served.serve();
    let client = served.client();
    client.append(1, &[b"before"]).unwrap();
    let broken = served.path("broken");
    copy_program("/bin/false", &broken);
    let upgraded = served.holdfast(&["upgrade", "server", "--binary", broken.to_str().unwrap()]);
    assert_eq!(upgraded.status.code(), Some(1), "{upgraded:?}");
    let told = String::from_utf8_lossy(&upgraded.stderr).into_owned();
    assert!(told.contains("the old one is started again"), "{told}");
    client.append(1, &[b"after"]).unwrap();
    served.wait_for_state("serving");
    let missing = served.holdfast(&["upgrade", "server", "--binary", "/no/such/file"]);
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
    client.append(1, &[b"after that"]).unwrap();
    served.stop();
}

#[test]
fn the_status_tells_of_the_server_and_its_logs() {
    let mut served = Served::new();
    served.serve();
    let client = served.client();
    for _ in 0..3 {
        client.append(1, &[b"counted"]).unwrap();
    }
    let status = served.status();
    let log = &status["logs"][0];
    assert_eq!(log["name"], "ledger");
    assert_eq!((&log["clients"], &log["appended"]), (&1.into(), &3.into()), "{log}");
    assert_eq!(log["verdict"]["class"], "memory");
    let text = String::from_utf8(served.holdfast(&["status"]).stdout).unwrap();
    for word in ["server: serving", "log ledger: served, 1 of 64 clients", "appended     3"] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    served.stop();
}

#[test]
fn the_status_tells_of_no_more_clients_than_the_server_lets_in() {
    let mut served = Served::with(
        "[log.few]\nlog = \"/nowhere/few\"\nclients_max = 8\n\
         memory = { medium = \"private\", size = \"8MiB\" }\n\
         [disk.ram]\nmemory = { medium = \"shm\" }\nsize = \"8MiB\"\n\
         must_survive = [\"process\"]\n[snapshot.fast]\n\
         memory = { medium = \"shm\" }\nsize = \"8MiB\"\ndisks = [\"ram\"]\n\
         must_survive = [\"process\"]\n",
    );
    let path = served.path("holdfast.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("[server]\n", "[server]\nclients_max = 32\n")).unwrap();
    let expect_shown = |served: &Served| {
        let text = String::from_utf8(served.holdfast(&["status"]).stdout).unwrap();
        let told = text.lines().filter(|line| line.ends_with(" clients"));
        let most: Vec<_> = told.map(|line| line.split(' ').rev().nth(1).unwrap()).collect();
        assert_eq!(most, ["8", "32", "32", "32"], "{text}");
    };
    expect_shown(&served);
    served.serve();
    expect_shown(&served);
    served.stop();
}

#[test]
fn the_server_gives_its_rights_up() {
    let mut served = Served::new();
    served.serve();
    let status = fs::read_to_string(format!("/proc/{}/status", served.server_pid())).unwrap();
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.contains(line), "no {line:?} in {status}");
    }
    let kept = served.status()["server"]["rights_kept"].clone();
    println!("rights that this machine would not take: {kept}");
    served.stop();
}

#[test]
fn status_says_of_every_process_what_is_refused_to_each_of_its_threads() {
    let mut served = Served::new();
    served.serve();
    let _client = served.client();
    let status = served.status();
    let processes = status["processes"].as_array().unwrap();
    let names: Vec<_> = processes.iter().map(|it| it["process"].as_str().unwrap()).collect();
    assert_eq!(names, ["keeper", "server"]);
    for process in processes {
        let threads = &process["threads"];
        assert_eq!(&process["filtered"], threads, "{process}");
        assert_eq!(&process["no_new_privileges"], threads, "{process}");
    }
    let text = String::from_utf8(served.holdfast(&["status"]).stdout).unwrap();
    assert!(text.contains("system calls refused to every thread"), "{text}");
    served.stop();
}

#[test]
fn what_was_acknowledged_is_there_after_keeper_and_server_ended() {
    let mut served = Served::new();
    served.serve();
    let appended = served.client().append(1, &[b"kept"]).unwrap();
    served.stop();
    served.serve();
    let client = served.client();
    let mut bytes = [0; 4];
    client.copy_bytes(appended.payload, &mut bytes).unwrap();
    assert_eq!(&bytes, b"kept");
    assert!(client.marks().durable >= appended.end, "a keeper that ends leaves nothing undrained");
    served.stop();
}

#[test]
fn a_log_that_was_never_made_is_said_and_nothing_is_started() {
    let served = Served::new();
    fs::remove_dir_all(served.path("log")).unwrap();
    fs::create_dir(served.path("log")).unwrap();
    let ended = served.holdfast(&["serve"]);
    assert_ne!(ended.status.code(), Some(0), "{ended:?}");
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(told.contains("holdfast log make ledger"), "{told}");
}

#[test]
fn a_log_whose_catalogue_is_lost_is_to_be_restored_by_whoever_serves_it_and_no_new_one_is_advised()
{
    let mut served = Served::new();
    served.serve();
    served.client().append(1, &[b"kept"]).unwrap();
    served.stop();
    // The keeper takes the directory; whether it is a log is found out by the server.
    for name in ["log/catalogue", "log/catalogue.copy"] {
        fs::remove_file(served.path(name)).unwrap();
    }
    let ended = served.holdfast(&["serve"]);
    assert_eq!(ended.status.code(), Some(6), "{ended:?}");
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(
        told.contains("catalogue is missing") && told.contains("restore `catalogue`"),
        "{told}"
    );
    assert!(!told.contains("holdfast log make"), "{told}");
}

#[test]
fn a_served_log_that_is_removed_is_made_again_from_memory_and_its_clients_go_on() {
    let mut served = Served::new();
    served.serve();
    let client = served.client();
    let before = client.append(1, &[b"before"]).unwrap();
    client.commit(before.end).unwrap();
    fs::remove_dir_all(served.path("log")).unwrap();
    let meanwhile = client.append(1, &[b"meanwhile"]).unwrap();
    let is_there = || served.path("log/catalogue").exists();
    wait_until(is_there, || format!("{:?}", served.holdfast(&["status"])));
    let after = client.append(1, &[b"after"]).unwrap();
    client.commit(after.end).unwrap();
    drop(client);
    served.stop();
    served.serve();
    let client = served.client();
    for (appended, text) in [(before, "before"), (meanwhile, "meanwhile"), (after, "after")] {
        let mut bytes = vec![0; text.len()];
        client.copy_bytes(appended.payload, &mut bytes).unwrap();
        assert_eq!(bytes, text.as_bytes());
    }
    served.stop();
}

#[test]
fn a_served_log_that_is_gone_with_everybody_dead_is_made_again_as_every_message_says() {
    let mut served = Served::new();
    served.serve();
    let client = served.client();
    let kept = client.append(1, &[b"kept"]).unwrap();
    let server = served.server_pid();
    served.kill_keeper();
    kill(server, Signal::KILL);
    drop(client);
    fs::remove_dir_all(served.path("log")).unwrap();
    for command in [&["serve"][..], &["log", "make", "ledger"]] {
        let ended = served.holdfast(command);
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(6), "{told}");
        assert!(told.contains("holdfast log mend ledger"), "{told}");
    }
    assert!(served.holdfast(&["log", "mend", "ledger"]).status.success());
    served.serve();
    let mut bytes = [0; 4];
    served.client().copy_bytes(kept.payload, &mut bytes).unwrap();
    assert_eq!(&bytes, b"kept");
    let mended = served.holdfast(&["log", "mend", "ledger"]);
    assert_eq!(mended.status.code(), Some(5), "{mended:?}");
    served.stop();
    let mended = served.holdfast(&["log", "mend", "ledger"]);
    assert_eq!(mended.status.code(), Some(2), "{mended:?}");
}

#[test]
fn a_log_whose_disk_never_answers_is_told_while_its_clients_wait() {
    let mut served = Served::with("");
    let below = SlowDisk::start(served.path("backing"), served.path("slow"));
    let path = served.path("holdfast.toml");
    let text = fs::read_to_string(&path).unwrap();
    let (log, slow) = (format!("{:?}", served.path("log")), served.path("slow/log"));
    fs::write(&path, text.replace(&log, &format!("{slow:?}"))).unwrap();
    let _ = fs::remove_file(&served.region);
    served.make_log();
    served.serve();
    let client = served.client();
    client.append(1, &[b"before"]).unwrap();
    client.commit(client.marks().tail).unwrap();
    let told = || {
        let ended = served.holdfast(&["status"]);
        (ended.status.code(), String::from_utf8_lossy(&ended.stdout).into_owned())
    };
    wait_until(|| told().0 == Some(0), || told().1);
    below.stop();
    let appended = client.append(2, &[b"waits"]).unwrap();
    let waiter = std::thread::spawn(move || client.commit(appended.end).unwrap());
    let stands = "not well: log ledger: nothing reaches the log's disk";
    let is_told = || matches!(told(), (Some(7), text) if text.contains(stands));
    wait_until(is_told, || told().1);
    below.go_on();
    waiter.join().unwrap();
    wait_until(|| told().0 == Some(0), || told().1);
    served.stop();
}
