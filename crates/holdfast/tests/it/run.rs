//! `holdfast run`: a volume around one command.

use crate::fixture::{Ended, Fixture, NAME, kill, wait_until};
use crate::seeds::{Random, for_seeds};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

fn run(fixture: &Fixture, more: &[&str], script: &str) -> Ended {
    run_at(fixture, &fixture.mount(), more, script)
}

fn run_at(fixture: &Fixture, mount: &Path, more: &[&str], script: &str) -> Ended {
    let arguments = arguments(fixture, mount, more, script);
    fixture.holdfast(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

fn arguments(fixture: &Fixture, mount: &Path, more: &[&str], script: &str) -> Vec<String> {
    let (home, mount) = (fixture.home(), mount.display().to_string());
    let home = home.display().to_string();
    let first = ["run", "--home", &home, "--mount", &mount, "--memory", "8MiB"];
    let last = ["--", "sh", "-c", script];
    let all = first.iter().chain(more).chain(&last);
    all.map(|word| (*word).to_owned()).collect()
}

const IN_MEMORY: [&str; 2] = ["--must-survive", "process"];

/// The word of a badge that says when the home was last touched.
const NOTED_AT: usize = 7;

/// A home as others see it; of its badge all but when it was last touched.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    mode: u32,
    badge: Option<String>,
    names: Vec<PathBuf>,
}

fn seen(home: &Path) -> Seen {
    let mut badge = vec![0; 4096];
    let length = rustix::fs::getxattr(home, "trusted.holdfast.volume", &mut badge[..]).ok();
    let badge = length.map(|length| String::from_utf8(badge[..length].to_vec()).unwrap());
    let badge = badge.map(|badge| {
        let mut words: Vec<&str> = badge.split(' ').collect();
        words.remove(NOTED_AT);
        words.join(" ")
    });
    let mut names: Vec<_> = fs::read_dir(home).unwrap().map(|it| it.unwrap().path()).collect();
    names.sort();
    Seen { mode: home.metadata().unwrap().permissions().mode(), badge, names }
}

/// The memory of the runs on a home; it goes with this.
struct Memory(PathBuf);

impl Memory {
    fn of(home: &Path) -> Memory {
        let seen = home.metadata().unwrap();
        Memory(format!("/dev/shm/holdfast/run-{:x}-{:x}", seen.dev(), seen.ino()).into())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A run whose command writes "x" into `f` and goes on until it is killed.
fn running(fixture: &Fixture, more: &[&str]) -> (Child, Vec<i32>) {
    let said = fixture.path("said");
    let (mount, place) = (fixture.mount(), said.display());
    let script = format!(
        "echo x > {}/f && echo $$ $(pgrep holdfast-front -P $PPID) > {place}; exec sleep 1000",
        mount.display()
    );
    let mut command = fixture.command();
    command.args(arguments(fixture, &mount, more, &script)).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let told = || fs::read_to_string(&said).unwrap_or_default();
    wait_until(|| told().ends_with('\n'), || "the command never ran".into());
    let pids = told().split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    fs::remove_file(&said).unwrap();
    (child, pids)
}

/// [`running`] with its keeper, its front end and its command killed, and its mount gone.
fn killed(fixture: &Fixture, more: &[&str]) {
    let (mut child, pids) = running(fixture, more);
    assert_eq!(pids.len(), 2, "the command and the front end: {pids:?}");
    kill(child.id().cast_signed(), Signal::KILL);
    child.wait().unwrap();
    pids.iter().for_each(|pid| kill(*pid, Signal::KILL));
    let ended = |pid: &i32| !holdfast_io::process::lives(pid.cast_unsigned());
    wait_until(|| pids.iter().all(ended), || format!("{pids:?} go on"));
    unmount(fixture.mount(), UnmountFlags::DETACH).unwrap();
}

#[test]
fn the_command_sees_the_volume_and_its_code_is_ours() {
    let fixture = Fixture::new();
    let script = format!("echo made > {}/f; exit 42", fixture.mount().display());
    let ended = run(&fixture, &["--must-survive", "process"], &script);
    assert_eq!(ended.code, Some(42), "{ended:?}");
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"made\n");
    assert!(!fixture.is_mounted());
    assert!(!fixture.path("home.holdfast").exists(), "the log is gone with the run");
}

#[test]
fn what_it_survives_is_printed_and_writing_through_is_the_default() {
    let ended = run(&Fixture::new(), &[], "true");
    ended.expect(0, &["class disk", "writes through because of power"]);
}

#[test]
fn a_command_ended_by_a_signal_is_told_as_shells_do() {
    let ended = run(&Fixture::new(), &[], "kill -TERM $$");
    assert_eq!(ended.code, Some(128 + 15), "{ended:?}");
}

#[test]
fn a_command_that_cannot_be_started_has_a_code_of_its_own() {
    let fixture = Fixture::new();
    let (home, mount) = (fixture.home(), fixture.mount());
    let (home, mount) = (home.to_str().unwrap(), mount.to_str().unwrap());
    let ended = fixture.holdfast(&["run", "--home", home, "--mount", mount, "--", "/nowhere"]);
    ended.expect(125, &["/nowhere"]);
    assert!(!fixture.is_mounted());
    let ended = fixture.holdfast(&["run", "--home", "/nowhere", "--mount", mount, "--", "true"]);
    ended.expect(125, &["--home", "/nowhere"]);
}

#[test]
fn a_home_whose_log_has_what_it_lacks_is_given_to_no_run() {
    let mut fixture = Fixture::made();
    let mount = fixture.path("mount-2");
    fs::create_dir(&mount).unwrap();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    fixture.kill_all();
    let before = seen(&fixture.home());
    for more in [&IN_MEMORY[..], &["--log", fixture.path("log-2").to_str().unwrap()]] {
        let ended = run_at(&fixture, &mount, more, "true");
        ended.expect(125, &["is the home of another log", "nothing was changed", "umount"]);
        assert!(!ended.err.contains("--config"), "{ended:?}");
        assert_eq!(seen(&fixture.home()), before);
    }
    assert!(!fixture.path("home.holdfast").exists() && !fixture.path("log-2").exists());
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

#[test]
fn a_run_with_another_log_changes_nothing_after_one_that_was_killed() {
    let fixture = Fixture::new();
    let _memory = Memory::of(&fixture.home());
    killed(&fixture, &IN_MEMORY);
    let before = seen(&fixture.home());
    let other = fixture.path("other");
    let with_other = ["--log", other.to_str().unwrap()];
    run(&fixture, &with_other, "true").expect(125, &["is the home of another log"]);
    assert_eq!(seen(&fixture.home()), before);
    assert!(!other.exists());
    let script = format!("cat {}/f", fixture.mount().display());
    assert_eq!(run(&fixture, &IN_MEMORY, &script).succeeded().out, "x\n");
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x\n");
}

#[test]
fn memory_of_another_log_is_found_before_anything_is_changed() {
    let fixture = Fixture::new();
    let memory = Memory::of(&fixture.home());
    killed(&fixture, &IN_MEMORY);
    // Somebody took the barrier away, and the badge with it.
    let (home, other) = (fixture.home(), fixture.path("other"));
    rustix::fs::removexattr(&home, "trusted.holdfast.volume").unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).unwrap();
    let before = seen(&home);
    let place = memory.0.display().to_string();
    let with_other = ["--log", other.to_str().unwrap()];
    let ended = run(&fixture, &with_other, "true");
    ended.expect(125, &["is the memory of another log", "nothing was changed", &place]);
    assert_eq!(seen(&home), before);
    assert!(!other.exists());
}

#[test]
fn a_run_leaves_the_home_of_a_volume_that_was_given_back_to_that_volume() {
    let mut fixture = Fixture::made();
    let (home, mount) = (fixture.home(), fixture.mount());
    let _memory = Memory::of(&home);
    let writes = |name: &str| format!("echo {name} > {}/{name}", mount.display());
    fixture.serve();
    fs::write(mount.join("one"), "one").unwrap();
    assert_eq!(fixture.stop(), Some(0));
    let before = seen(&home).badge;
    assert!(before.is_some());
    let named = ["--log", &fixture.path("named").display().to_string()].map(str::to_owned);
    let named = named.each_ref().map(String::as_str);
    for (name, more) in [("two", &IN_MEMORY), ("three", &named)] {
        run(&fixture, more, &writes(name)).succeeded();
        assert_eq!(seen(&home).badge, before, "{name}");
        // A run that was killed gives it back to who had it before.
        killed(&fixture, more);
        assert_ne!(seen(&home).badge, before);
        run(&fixture, more, "true").succeeded();
        assert_eq!(seen(&home).badge, before, "{name}");
        assert!(!fixture.path("home.holdfast").exists() && !fixture.path("named").exists());
    }
    fixture.holdfast(&["volume", "check", NAME]).succeeded();
    fixture.serve();
    for name in ["one", "two", "three", "f"] {
        assert!(mount.join(name).exists(), "{name}");
    }
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn a_home_that_was_no_volumes_wears_nothing_after_a_run() {
    let fixture = Fixture::new();
    let before = seen(&fixture.home());
    run(&fixture, &[], "true").succeeded();
    assert_eq!(seen(&fixture.home()), before);
}

/// Steps at which a run may die, or each of its front ends; there are some more than these.
const STEPS: u64 = 30;
/// At these it makes its log, and none of them can be survived.
const STEPS_OF_MAKING: u64 = 12;

#[test]
fn wherever_a_run_dies_the_next_one_leaves_the_home_as_it_was() {
    for_seeds("run::wherever_a_run_dies", 5, |seed| {
        let mut fixture = Fixture::made();
        let home = fixture.home();
        let _memory = Memory::of(&home);
        fixture.serve();
        assert_eq!(fixture.stop(), Some(0));
        let before = seen(&home);
        let mut random = Random::new(seed);
        for step in [random.below(STEPS_OF_MAKING) + 1, random.below(STEPS) + 1] {
            println!("seed {seed}: dies at step {step}");
            let mut command = fixture.command();
            command.args(arguments(&fixture, &fixture.mount(), &[], "true"));
            let died = command.env("HOLDFAST_TEST_DIES_AT", step.to_string()).output().unwrap();
            assert!(step > STEPS_OF_MAKING || !died.status.success(), "it goes on");
            fixture.take_mounts_away();
            run(&fixture, &[], "true").succeeded();
            assert_eq!(seen(&home), before);
        }
    });
}

#[test]
fn a_run_that_is_refused_leaves_the_home_as_it_was() {
    let fixture = Fixture::new();
    let (home, point) = (fixture.home(), fixture.mount());
    let before = seen(&home);
    mount("none", &point, "tmpfs", MountFlags::empty(), None).unwrap();
    let ended = run(&fixture, &[], "true");
    unmount(&point, UnmountFlags::DETACH).unwrap();
    ended.expect(125, &["is in use by a file system"]);
    assert_eq!(seen(&home), before);
    assert!(!fixture.path("home.holdfast").exists());
}

#[test]
fn a_second_run_is_told_who_serves_the_home_and_leaves_it_alone() {
    let fixture = Fixture::new();
    let _memory = Memory::of(&fixture.home());
    let (mut first, pids) = running(&fixture, &IN_MEMORY);
    let other = fixture.path("mount-2");
    fs::create_dir(&other).unwrap();
    for mount in [fixture.mount(), other] {
        let ended = run_at(&fixture, &mount, &IN_MEMORY, "true");
        let who = first.id().to_string();
        ended.expect(125, &["`holdfast run`", &who, &format!("`kill -TERM {who}`")]);
        assert!(!ended.err.contains("umount"), "{ended:?}");
    }
    assert!(fixture.is_mounted());
    kill(first.id().cast_signed(), Signal::TERM);
    assert_eq!(first.wait().unwrap().code(), Some(128 + 15));
    assert!(pids.iter().all(|pid| !holdfast_io::process::lives(pid.cast_unsigned())));
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x\n");
}

/// Whoever can rename what is above the home decides what has the name of the log at the end.
#[test]
fn a_run_removes_the_log_that_it_made_and_nothing_else_that_has_its_name() {
    let fixture = Fixture::new();
    let (log, precious) = (fixture.path("home.holdfast"), fixture.path("precious"));
    fs::create_dir_all(precious.join("below")).unwrap();
    fs::write(precious.join("below/kept"), "kept").unwrap();
    let exchange = format!(
        "echo x > {}/f; mv {log:?} {log:?}.away; mv {precious:?} {log:?}",
        fixture.mount().display()
    );
    let ended = run(&fixture, &IN_MEMORY, &exchange);
    let words = ["removing the empty log", "not what was made there", "the home is complete"];
    ended.expect(1, &words);
    assert_eq!(fs::read(log.join("below/kept")).unwrap(), b"kept");
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x\n");
}

#[test]
fn a_run_gives_its_own_home_back_and_says_where_it_is_by_then() {
    let fixture = Fixture::new();
    let (home, moved) = (fixture.home(), fixture.path("moved"));
    fs::write(home.join("before"), "x").unwrap();
    let before = seen(&home);
    let exchange =
        format!("echo x > {}/f; mv {home:?} {moved:?}; mkdir {home:?}", fixture.mount().display());
    let ended = run(&fixture, &IN_MEMORY, &exchange);
    ended.expect(0, &["moved while its command ran", moved.to_str().unwrap()]);
    assert_eq!(fs::read(moved.join("f")).unwrap(), b"x\n");
    let after = seen(&moved);
    assert_eq!((after.mode, after.badge), (before.mode, before.badge));
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
}
