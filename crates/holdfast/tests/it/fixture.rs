//! A machine's worth of directories for one test, and the command run in it.

use crate::watchdog::{Watchdog, processes_of};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The name of the volume in every test.
pub(crate) const NAME: &str = "v";

/// How soon is looked again for what is waited for, at first and at last.
const ASK_EVERY_MIN: Duration = Duration::from_millis(10);
const ASK_EVERY_MAX: Duration = Duration::from_millis(250);

/// Far longer than anything takes; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest that any test may take. Some wait for a disk, most take a second.
const WATCH: Duration = Duration::from_secs(300);

/// Says where the regions are that have no path: what others on this machine left is not seen.
const REGIONS: &str = "HOLDFAST_TEST_REGIONS";

/// Where none are.
const NO_REGIONS: &str = "/dev/shm/holdfast-test-no-regions";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The way in of every volume: the same tests are run by each.
pub(crate) fn way() -> String {
    std::env::var("HOLDFAST_WAY").unwrap_or_else(|_| "direct".into())
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    pub(crate) fn of(output: Output) -> Ended {
        Ended {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Fails unless the code is this one and every word is in what was said on standard error.
    #[track_caller]
    pub(crate) fn expect(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "no {word:?} in {self:?}");
        }
    }

    /// Fails unless it succeeded.
    #[track_caller]
    pub(crate) fn succeeded(self) -> Ended {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

/// Directories, a configuration, and what is to be cleaned up.
pub(crate) struct Fixture {
    root: tempfile::TempDir,
    pub(crate) region: PathBuf,
    /// What every command is told of the run of the system, if not the truth.
    run: Option<String>,
    keepers: Vec<Child>,
    watchdog: Watchdog,
}

impl Fixture {
    /// An empty home, a mount point, and a configuration of one class Memory volume.
    pub(crate) fn new() -> Fixture {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let region = format!("/dev/shm/holdfast-test-{}-{number}", std::process::id());
        let root = tempfile::tempdir().unwrap();
        let watchdog = Watchdog::start(root.path().join("holdfast.toml"), WATCH);
        let fixture =
            Fixture { root, region: region.into(), run: None, keepers: Vec::new(), watchdog };
        fs::create_dir(fixture.home()).unwrap();
        fs::create_dir(fixture.mount()).unwrap();
        fixture.configure(&fixture.config_text());
        fixture
    }

    /// [`Self::new`] with the volume's log made.
    pub(crate) fn made() -> Fixture {
        let fixture = Fixture::new();
        fixture.holdfast(&["volume", "make", NAME]).succeeded();
        fixture
    }

    /// A volume with a file `f` that holds "x", its keeper and its front end killed: the file is in
    /// the region, which nobody has any more.
    pub(crate) fn left_in_memory() -> Fixture {
        let fixture = Fixture::just_left_in_memory();
        fixture.wait_until_let_go();
        fixture
    }

    /// [`Self::left_in_memory`], and whoever had the region may not have let go of it yet: a server
    /// drains it before it ends.
    pub(crate) fn just_left_in_memory() -> Fixture {
        let mut fixture = Fixture::made();
        fixture.serve();
        fs::write(fixture.mount().join("f"), "x").unwrap();
        let front_end = fixture.front_end();
        fixture.kill_keeper();
        kill(front_end, Signal::KILL);
        fixture.wait_for_state("left in memory");
        fixture
    }

    /// From now on a test that takes longer than this is ended.
    pub(crate) fn watch_for(&mut self, patience: Duration) {
        self.watchdog = Watchdog::start(self.config(), patience);
    }

    /// What the watchdog saw, if it had to end something. The test goes on.
    pub(crate) fn take_watchdog_report(&self) -> Option<String> {
        self.watchdog.take_report()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn mount(&self) -> PathBuf {
        self.path("mount")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path("log")
    }

    /// Where a block cache may be; it goes with the fixture.
    pub(crate) fn block_cache(&self) -> PathBuf {
        let mut path = self.region.clone().into_os_string();
        path.push("-cache");
        path.into()
    }

    /// Where the regions would be that the configuration gives no path.
    pub(crate) fn regions(&self) -> PathBuf {
        let mut path = self.region.clone().into_os_string();
        path.push("-regions");
        path.into()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path("holdfast.toml")
    }

    pub(crate) fn config_text(&self) -> String {
        format!(
            "[keeper]\nsocket = {:?}\n\n[server]\nsocket = {:?}\n\n[volume.{NAME}]\n\
             home = {:?}\nmount = {:?}\nlog = {:?}\n\
             memory = {{ medium = \"shm\", size = \"8MiB\", path = {:?} }}\n\
             must_survive = [\"process\"]\nway = {:?}\n",
            self.path("run/control.sock"),
            self.path("run/server.sock"),
            self.home(),
            self.mount(),
            self.log(),
            self.region,
            way(),
        )
    }

    /// Writes the configuration.
    pub(crate) fn configure(&self, text: &str) {
        fs::write(self.config(), text).unwrap();
    }

    /// Writes the configuration with one thing replaced.
    #[track_caller]
    pub(crate) fn reconfigure(&self, what: &str, with: &str) {
        let text = self.config_text();
        assert!(text.contains(what), "{what}");
        self.configure(&text.replace(what, with));
    }

    /// Runs a subcommand to its end.
    pub(crate) fn holdfast(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.command().args(arguments).output().unwrap())
    }

    /// [`Self::holdfast`] with this on standard input.
    pub(crate) fn holdfast_with_input(&self, arguments: &[&str], input: &str) -> Ended {
        let mut command = self.command();
        command.args(arguments).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Ended::of(child.wait_with_output().unwrap())
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = asking(env!("CARGO_BIN_EXE_holdfast"), &self.config());
        command.env(REGIONS, self.regions());
        if let Some(run) = &self.run {
            command.env("HOLDFAST_TEST_BOOT", run);
        }
        command
    }

    /// Keeper, front end and server die, and what they mounted is taken away. The keeper is stopped
    /// until the others are dead: it is to start none of them anew, and a server that outlives it
    /// without a client would bring its logs to their devices first.
    pub(crate) fn kill_all(&mut self) {
        self.kill_all_after(|_| {});
    }

    /// [`Self::kill_all`] right after something was done at the mount, which the home lacks then.
    pub(crate) fn kill_all_after(&mut self, done: impl FnOnce(&Path)) {
        // Stopped first: a keeper that is replacing a process would have one that was not looked
        // for yet.
        stop(self.keeper_pid());
        let pids = self.processes_of_keepers();
        done(&self.mount());
        pids.into_iter().for_each(|pid| kill(pid, Signal::KILL));
        self.kill_keeper();
        self.wait_for_state("left in memory");
        self.wait_until_let_go();
        self.take_mounts_away();
    }

    /// Front ends and servers that keepers of this configuration started.
    pub(crate) fn processes_of_keepers(&self) -> Vec<i32> {
        let is_theirs = |pid: &i32| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let role = arguments.split(|byte| *byte == 0).nth(1);
            role.is_some_and(|it| it == b"front" || it == b"server")
        };
        processes_of(&self.config()).into_iter().filter(is_theirs).collect()
    }

    pub(crate) fn take_mounts_away(&self) {
        for point in [self.mount(), self.home()] {
            while unmount(&point, UnmountFlags::DETACH).is_ok() {}
        }
    }

    /// After [`Self::kill_all`]: the system restarts, and memory is gone.
    pub(crate) fn restart(&mut self) {
        self.restart_behind(Duration::ZERO);
    }

    /// [`Self::restart`], and the clock is behind by so much from then on.
    pub(crate) fn restart_behind(&mut self, behind: Duration) {
        // No system takes less.
        std::thread::sleep(Duration::from_secs(1));
        let began = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let began = began - behind;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.run = Some(format!("run-{number} {}", began.as_nanos()));
        let _ = fs::remove_file(&self.region);
    }

    /// Tries to start a keeper: how it ended, or nothing if it serves.
    pub(crate) fn try_to_serve(&mut self) -> Option<Ended> {
        let log = fs::File::create(self.path("keeper.log")).unwrap();
        let mut keeper = self.command().arg("serve").stderr(log).spawn().unwrap();
        let mut ended = None;
        let is_decided = || self.status()["state"] == "serving";
        let begun = Instant::now();
        while ended.is_none() && !is_decided() {
            ended = keeper.try_wait().unwrap();
            assert!(begun.elapsed() < PATIENCE, "{}", self.keeper_log());
            std::thread::sleep(Duration::from_millis(20));
        }
        match ended {
            None => {
                self.keepers.push(keeper);
                None
            }
            Some(status) => {
                let err = self.keeper_log();
                Some(Ended { code: status.code(), out: String::new(), err })
            }
        }
    }

    /// Starts a keeper, and waits for nothing.
    pub(crate) fn begin_to_serve(&mut self) {
        let command = self.command();
        self.begin_as(command);
    }

    /// [`Self::begin_to_serve`] behind another program.
    pub(crate) fn begin_as(&mut self, command: Command) {
        let log = fs::File::create(self.path("keeper.log")).unwrap();
        self.start(command, log.into());
    }

    /// Whether the newest keeper has ended by itself; it is still to be reaped.
    pub(crate) fn has_ended(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.keeper_pid()));
        stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|it| it.starts_with(" Z")))
    }

    /// Starts a keeper in place of one that has ended by itself, if it has.
    pub(crate) fn serve_again_if_ended(&mut self) {
        if self.keepers.last_mut().is_none_or(|keeper| keeper.try_wait().unwrap().is_some()) {
            self.keepers.pop();
            self.begin_to_serve();
        }
    }

    /// Starts a keeper and waits until the volume is served.
    pub(crate) fn serve(&mut self) {
        let command = self.command();
        self.serve_as(command);
    }

    /// [`Self::serve`] behind another program, such as one that takes rights away.
    pub(crate) fn serve_behind(&mut self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(program);
        command.args(arguments).arg(env!("CARGO_BIN_EXE_holdfast"));
        command.env("HOLDFAST_CONFIG", self.config());
        self.serve_as(command);
    }

    pub(crate) fn serve_as(&mut self, command: Command) {
        let log = fs::File::create(self.path("keeper.log")).unwrap();
        self.serve_with_log(command, log.into());
    }

    /// [`Self::serve_as`] with what the keeper says going there.
    pub(crate) fn serve_with_log(&mut self, command: Command, log: Stdio) {
        self.start(command, log);
        self.wait_for_state("serving");
    }

    /// Starts a keeper, whoever wrote its command.
    fn start(&mut self, mut command: Command, log: Stdio) {
        command.env(REGIONS, self.regions()).arg("serve").stderr(log);
        self.keepers.push(command.spawn().unwrap());
    }

    /// Starts a keeper and waits until this volume is served, whatever becomes of the others.
    pub(crate) fn serve_volume(&mut self, name: &str) {
        self.begin_to_serve();
        let is_served = || {
            let report = self.holdfast(&["status", "--json"]).out;
            let report: Value = serde_json::from_str(&report).unwrap_or_default();
            let volumes = report["volumes"].as_array().cloned().unwrap_or_default();
            volumes.iter().any(|it| it["name"] == name && it["state"] == "serving")
        };
        wait_until(is_served, || self.keeper_log());
    }

    /// What the newest keeper has said so far.
    pub(crate) fn keeper_log(&self) -> String {
        fs::read_to_string(self.path("keeper.log")).unwrap_or_default()
    }

    pub(crate) fn keeper_pid(&self) -> i32 {
        self.keepers.last().unwrap().id().cast_signed()
    }

    /// Sends the newest keeper SIGTERM and waits for its end.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        kill(self.keeper_pid(), Signal::TERM);
        let ended = self.keepers.pop().unwrap().wait().unwrap();
        if !ended.success() {
            println!("the keeper ended with {ended}:\n{}", self.keeper_log());
        }
        ended.code()
    }

    /// Waits for the end of the newest keeper, which was asked to end.
    pub(crate) fn reap(&mut self) -> Option<i32> {
        self.keepers.pop().unwrap().wait().unwrap().code()
    }

    /// Ends the server and the front ends of disks, too, which may outlive their keeper.
    pub(crate) fn end_keepers_and_what_serves(&mut self) {
        let told = self.holdfast(&["status", "--json"]).out;
        let report: Value = serde_json::from_str(&told).unwrap_or_default();
        let fronts = report["disks"].as_array().into_iter().flatten();
        let fronts = fronts.filter_map(|it| it["front_end"]["pid"].as_i64());
        let pids: Vec<i64> = fronts.chain(report["server"]["pid"].as_i64()).collect();
        self.end_keepers();
        pids.iter().for_each(|pid| kill(*pid as i32, Signal::KILL));
    }

    /// Kills every keeper.
    pub(crate) fn end_keepers(&mut self) {
        for mut keeper in self.keepers.drain(..) {
            let _ = keeper.kill();
            let _ = keeper.wait();
        }
    }

    /// Has nobody hold the log of a volume that was unmounted: the server would keep it.
    pub(crate) fn let_log_go(&mut self) {
        if way() == "queue" {
            self.stop();
        }
    }

    /// Mounts the volume, after [`Self::let_log_go`].
    pub(crate) fn take_up(&mut self) {
        match way().as_str() {
            "queue" => self.serve(),
            _ => drop(self.holdfast(&["mount", NAME]).succeeded()),
        }
    }

    /// Kills the newest keeper as nothing can be prepared for.
    pub(crate) fn kill_keeper(&mut self) {
        kill(self.keeper_pid(), Signal::KILL);
        self.keepers.pop().unwrap().wait().unwrap();
    }

    /// The status of the volume, with or without a keeper.
    pub(crate) fn status(&self) -> Value {
        let ended = self.holdfast(&["status", "--json"]);
        let report: Value = serde_json::from_str(&ended.out).unwrap_or_default();
        report["volumes"][0].clone()
    }

    /// The status of one of several volumes.
    pub(crate) fn status_of(&self, name: &str) -> Value {
        let report = self.holdfast(&["status", "--json"]).out;
        let report: Value = serde_json::from_str(&report).unwrap_or_default();
        let volumes = report["volumes"].as_array().cloned().unwrap_or_default();
        volumes.into_iter().find(|it| it["name"] == name).unwrap_or_default()
    }

    pub(crate) fn front_end(&self) -> i32 {
        pid_that_comes(|| self.status()["front_end_pid"].as_i64(), || self.keeper_log())
    }

    /// The server, if there is one.
    /// Kills the front end and waits for the next one.
    pub(crate) fn replace_front_end(&self) {
        let killed = self.front_end();
        kill(killed, Signal::KILL);
        let is_replaced = || self.front_end() != killed && self.status()["state"] == "serving";
        wait_until(is_replaced, || self.status().to_string());
    }

    /// Whoever has the memory and the log of the volume, as soon as anybody has.
    pub(crate) fn holder(&self) -> i32 {
        if way() == "queue" {
            wait_until(|| self.server().is_some(), || self.keeper_log());
        }
        self.server().unwrap_or_else(|| self.front_end())
    }

    pub(crate) fn server(&self) -> Option<i32> {
        let report = self.holdfast(&["status", "--json"]).out;
        let report: Value = serde_json::from_str(&report).unwrap_or_default();
        report["server"]["pid"].as_i64().map(|pid| pid as i32)
    }

    /// Until nobody has the region: before that somebody may write to it.
    #[track_caller]
    pub(crate) fn wait_until_let_go(&self) {
        // It may be elsewhere.
        let Ok(region) = fs::File::open(&self.region) else { return };
        wait_until(|| region.try_lock().is_ok(), || format!("kept: {}", self.status()));
    }

    #[track_caller]
    pub(crate) fn wait_for_state(&self, state: &str) {
        let reached = || self.status()["state"] == state;
        let tell = || format!("never {state}: {}\n{}", self.status(), self.keeper_log());
        wait_until(reached, tell);
    }

    /// Fails unless nothing of the volume is left but its home and its log.
    #[track_caller]
    pub(crate) fn assert_given_back(&self) {
        assert!(!self.is_mounted());
        // The server keeps the memory for the next mount, as long as there is a keeper.
        let is_kept = way() == "queue" && !self.keepers.is_empty();
        assert!(is_kept || !self.region.exists(), "the region is gone with the volume");
    }

    pub(crate) fn is_mounted(&self) -> bool {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let (home, mount) = (self.home(), self.mount());
        table.lines().any(|line| {
            let point = Path::new(line.split(' ').nth(4).unwrap());
            point == home || point == mount
        })
    }
}

impl Fixture {
    /// The region, and what a test or the program itself has put aside of it.
    fn remove_regions(&self) {
        let (Some(folder), Some(name)) = (self.region.parent(), self.region.file_name()) else {
            return;
        };
        let start = format!("{}.", name.display());
        let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.file_name());
        let aside = names.filter(|it| it.as_encoded_bytes().starts_with(start.as_bytes()));
        aside.for_each(|it| drop(fs::remove_file(folder.join(it))));
        let _ = fs::remove_file(&self.region);
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let front_end = self.status()["front_end_pid"].as_i64();
        self.end_keepers();
        front_end.into_iter().for_each(|pid| kill(pid as i32, Signal::KILL));
        let _ = unmount(self.mount(), UnmountFlags::DETACH);
        let _ = unmount(self.home(), UnmountFlags::DETACH);
        self.remove_regions();
        let _ = fs::remove_file(self.block_cache());
        let _ = fs::remove_dir_all(self.regions());
        if let Some(report) = self.watchdog.take_report()
            && !std::thread::panicking()
        {
            panic!("it hung, and was ended:\n{report}");
        }
    }
}

/// Copies a program that is to be run. Another process does it: what this one has open for writing,
/// a program that another test is just starting has, too, and nobody may run it meanwhile.
pub(crate) fn copy_program(from: impl AsRef<OsStr>, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success(), "{to:?}");
}

/// Sends a signal; the process may be gone.
pub(crate) fn kill(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// Stops a process. Until the last of its threads has stopped it goes on answering.
#[track_caller]
pub(crate) fn stop(pid: i32) {
    kill(pid, Signal::STOP);
    wait_until(|| is_stopped(pid), || format!("process {pid} goes on"));
}

fn is_stopped(pid: i32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut states = tasks.map(|task| fs::read_to_string(task.path().join("status")));
    states.all(|status| status.unwrap_or_default().contains("\nState:\tT"))
}

/// A command with this configuration, which sees nothing that others on this machine left.
pub(crate) fn asking(program: impl AsRef<OsStr>, config: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("HOLDFAST_CONFIG", config).env(REGIONS, NO_REGIONS);
    command
}

/// The number of a process; between the death of one and the start of the next there is none.
#[track_caller]
pub(crate) fn pid_that_comes(pid: impl Fn() -> Option<i64>, tell: impl Fn() -> String) -> i32 {
    let found = Cell::new(None);
    let is_there = || {
        found.set(pid());
        found.get().is_some()
    };
    wait_until(is_there, tell);
    found.get().unwrap() as i32
}

/// With a stack this small a new process of the keeper dies before it begins.
pub(crate) fn limit_stack(pid: i32, limit: &str) {
    let prlimit = ["--pid", &pid.to_string(), &format!("--stack={limit}")];
    let status = std::process::Command::new("prlimit").args(prlimit).status().unwrap();
    assert!(status.success());
}

#[track_caller]
pub(crate) fn wait_until(reached: impl Fn() -> bool, tell: impl Fn() -> String) {
    let started = Instant::now();
    while !reached() {
        let waited = started.elapsed();
        assert!(waited < PATIENCE, "{}", tell());
        // To ask is to run a program, mostly: who has waited for long asks less often.
        std::thread::sleep((waited / 8).clamp(ASK_EVERY_MIN, ASK_EVERY_MAX));
    }
}
