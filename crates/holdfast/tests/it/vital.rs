//! What does not answer: status says so, within its bound, and why.

use crate::disks::SlowDisk;
use crate::fixture::{Ended, Fixture, NAME, kill, wait_until, way};
use rustix::process::Signal;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

impl Fixture {
    fn told(&self) -> Ended {
        self.holdfast(&["status"])
    }

    /// Waits until status ends with this code and says all of these words.
    #[track_caller]
    fn wait_for_word(&self, code: i32, words: &[&str]) {
        let says = |ended: &Ended| {
            ended.code == Some(code) && words.iter().all(|word| ended.out.contains(word))
        };
        wait_until(|| says(&self.told()), || format!("no {words:?} and {code}: {:?}", self.told()));
    }
}

/// Whoever started the keeper counted on a few files of its own.
#[test]
fn files_are_there_however_few_descriptors_the_keeper_was_started_with() {
    let mut fixture = Fixture::made();
    let mut few = Command::new("prlimit");
    few.arg("--nofile=64:").arg(env!("CARGO_BIN_EXE_holdfast"));
    few.env("HOLDFAST_CONFIG", fixture.config());
    fixture.serve_as(few);
    for number in 0..300 {
        fs::write(fixture.mount().join(number.to_string()), number.to_string()).unwrap();
    }
    for number in 0..300 {
        let found = fs::read_to_string(fixture.mount().join(number.to_string())).unwrap();
        assert_eq!(found, number.to_string());
    }
    fixture.wait_for_word(0, &[]);
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn status_ends_with_0_only_while_everything_that_is_configured_is_served() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fixture.wait_for_word(0, &["serving"]);
    fixture.holdfast(&["umount", NAME]).succeeded();
    let ended = fixture.told();
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert!(ended.out.contains("not well: volume v is detached"), "{ended:?}");
    let json = fixture.holdfast(&["status", "--json"]);
    assert!(json.out.contains("\"health\":\"degraded\""), "{json:?}");
    assert_eq!(json.code, Some(7));
    fixture.stop();
    assert_eq!(fixture.told().code, Some(4));
}

#[test]
fn a_stopped_front_end_or_server_is_named_and_writers_go_on_with_it() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let mut processes = vec![fixture.front_end()];
    processes.extend(fixture.server());
    for pid in processes {
        kill(pid, Signal::STOP);
        let file = fixture.mount().join(format!("f{pid}"));
        let writer = std::thread::spawn(move || fs::write(file, "in the end").unwrap());
        fixture.wait_for_word(7, &["no sign of life", &format!("kill -CONT {pid}")]);
        let stands = fixture.status()["standstills"].to_string();
        assert!(stands.contains(&format!("kill -CONT {pid}")), "{stands}");
        let is_logged = || fixture.keeper_log().contains(&format!("kill -CONT {pid}"));
        wait_until(is_logged, || fixture.keeper_log());
        kill(pid, Signal::CONT);
        fixture.wait_for_word(0, &["serving"]);
        writer.join().unwrap();
    }
}

#[test]
fn an_unmount_that_waits_for_a_stopped_process_says_so_and_ends_when_that_goes_on() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let mut processes = vec![fixture.front_end()];
    processes.extend(fixture.server());
    for (round, pid) in processes.into_iter().enumerate() {
        if round > 0 {
            fixture.holdfast(&["mount", NAME]).succeeded();
        }
        fs::write(fixture.mount().join("f"), round.to_string()).unwrap();
        kill(pid, Signal::STOP);
        let said = fixture.path("said");
        let mut umount = fixture.command();
        umount.args(["umount", NAME]).stderr(fs::File::create(&said).unwrap());
        let mut umount = umount.spawn().unwrap();
        let said = || fs::read_to_string(&said).unwrap();
        wait_until(|| said().contains(&format!("kill -CONT {pid}")), said);
        assert!(umount.try_wait().unwrap().is_none(), "it waits: {}", said());
        kill(pid, Signal::CONT);
        assert!(umount.wait().unwrap().success(), "{}", said());
        assert_eq!(fs::read(fixture.home().join("f")).unwrap(), round.to_string().as_bytes());
    }
}

#[test]
fn a_stopped_keeper_is_named_within_the_bound_of_every_command() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let keeper = fixture.keeper_pid();
    kill(keeper, Signal::STOP);
    let word = format!("kill -CONT {keeper}");
    let status = fixture.told();
    assert_eq!(status.code, Some(8), "{status:?}");
    assert!(status.out.contains(&word), "{status:?}");
    let json = fixture.holdfast(&["status", "--json"]);
    assert!(json.out.contains("\"health\":\"no_answer\""), "{json:?}");
    fixture.holdfast(&["umount", NAME]).expect(8, &[&word]);
    // The volume is served meanwhile.
    fs::write(fixture.mount().join("f"), "x").unwrap();
    kill(keeper, Signal::CONT);
    // What nobody waits for any more is not done.
    fixture.wait_for_word(0, &["serving"]);
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

#[test]
fn a_writer_hears_an_error_when_keeper_and_server_are_gone_for_good() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "acknowledged").unwrap();
    let killed = fixture.server().unwrap_or_else(|| fixture.front_end());
    fixture.kill_keeper();
    kill(killed, Signal::KILL);
    let (file, begun) = (fixture.mount().join("g"), Instant::now());
    fs::write(file, "nobody takes it").unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(120), "the watchdog ended it");
    let given_back = || fixture.holdfast(&["umount", NAME]).code == Some(0);
    wait_until(given_back, || format!("{:?}", fixture.holdfast(&["umount", NAME])));
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"acknowledged");
}

#[test]
fn status_says_what_a_log_keeps_for_its_home_when_the_region_is_gone() {
    let mut fixture = Fixture::made();
    // The cleaner is as fast as the drain now and then; then it is tried again.
    for attempt in 0..20 {
        fixture.serve();
        fs::write(fixture.mount().join("f"), vec![attempt; 3 << 20]).unwrap();
        wait_until(|| fixture.status()["dirty_bytes"] == 0, || fixture.status().to_string());
        let (front_end, server) = (fixture.front_end(), fixture.server());
        fixture.kill_keeper();
        kill(front_end, Signal::KILL);
        server.into_iter().for_each(|pid| kill(pid, Signal::KILL));
        fixture.wait_for_state("left in memory");
        let left = fixture.status()["unapplied_bytes"].as_u64().unwrap();
        rustix::mount::unmount(fixture.mount(), rustix::mount::UnmountFlags::DETACH).unwrap();
        if left < 1 << 20 {
            fixture.holdfast(&["umount", NAME]).succeeded();
            assert_eq!(fixture.status()["unapplied_bytes"], 0, "{}", fixture.status());
            continue;
        }
        let kept = fixture.path("kept");
        fs::copy(&fixture.region, &kept).unwrap();
        fs::remove_file(&fixture.region).unwrap();
        let status = fixture.status();
        assert_eq!(status["state"], "left in its log", "{status}");
        let told = status["unapplied_bytes"].as_u64().unwrap();
        assert!(told > left / 2 && told <= left, "{told} of {left}");
        return;
    }
    panic!("the home never lacked anything");
}

#[test]
fn a_volume_that_was_given_back_has_nothing_left_in_its_log() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), vec![7; 300_000]).unwrap();
    assert_eq!(fixture.stop(), Some(0));
    let status = fixture.status();
    assert_eq!((&status["state"], &status["unapplied_bytes"]), (&"detached".into(), &0.into()));
    assert!(way() == "queue" || !fixture.region.exists());
}

/// Programs wait, and so does the process that serves them, in a call of the home's file system.
#[test]
fn a_home_that_never_answers_is_told_with_what_waits_for_it_until_it_does() {
    let mut fixture = Fixture::new();
    let below = SlowDisk::start(fixture.path("backing"), fixture.path("slow"));
    let home = fixture.path("slow/home");
    fs::create_dir(&home).unwrap();
    // The kernel knows nothing of what was made behind the slow disk.
    for name in ["known", "unknown"] {
        fs::write(fixture.path("backing/home").join(name), name).unwrap();
    }
    fixture.reconfigure(&format!("{:?}", fixture.home()), &format!("{home:?}"));
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    fixture.wait_for_word(0, &["serving"]);
    fs::metadata(fixture.mount().join("known")).unwrap();
    let who = format!("its front end (process {}) has not answered", fixture.front_end());
    for name in ["known", "unknown"] {
        below.stop();
        // A process of its own: others inherit what a thread has open, and wait to close it.
        let mut reader = Command::new("cat");
        let reader = reader.arg(fixture.mount().join(name)).stdout(Stdio::piped()).spawn().unwrap();
        fixture.wait_for_word(7, &[&who, "the disks below it answer"]);
        let told = fixture.status()["standstills"].to_string();
        assert!(told.contains(&who), "{told}");
        let is_logged = || fixture.keeper_log().contains(&who);
        wait_until(is_logged, || fixture.keeper_log());
        below.go_on();
        assert_eq!(reader.wait_with_output().unwrap().stdout, name.as_bytes());
        fixture.wait_for_word(0, &["serving"]);
    }
    assert_eq!(fixture.stop(), Some(0));
}
