//! What operators do in another order than a text expects, and what they are told then.

use crate::fixture::{Ended, Fixture, NAME, kill, wait_until};
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn report(fixture: &Fixture) -> (Ended, Value) {
    let ended = fixture.holdfast(&["status", "--json"]);
    let report = serde_json::from_str(&ended.out).unwrap();
    (ended, report)
}

#[test]
fn a_volume_that_was_given_back_is_given_back_once_more_without_a_complaint() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    fixture.holdfast(&["umount", NAME]).succeeded();
    let again = fixture.holdfast(&["umount", NAME]).succeeded();
    assert!(again.out.contains("is complete"), "{again:?}");
    fixture.holdfast(&["umount", "nosuch"]).expect(2, &["nosuch"]);
}

#[test]
fn a_volume_that_the_configuration_lost_is_told_of_and_unmounted_as_the_message_says() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let text = fixture.config_text();
    let (before, _section) = text.split_once("[volume.").unwrap();
    fixture.configure(before);
    let (ended, said) = report(&fixture);
    assert_eq!(ended.code, Some(7), "{said}");
    assert!(said["troubles"].to_string().contains("`holdfast umount v`"), "{said}");
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
    // It is forgotten when that was told.
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.holdfast(&["umount", NAME]).expect(2, &["v"]);
    fixture.configure(&text);
}

#[test]
fn a_log_that_is_made_while_its_keeper_runs_is_served_with_nobodys_help() {
    let mut fixture = Fixture::made();
    let log = fixture.path("ledger");
    let section = format!(
        "[log.ledger]\nlog = {log:?}\nmust_survive = [\"process\"]\n\
         memory = {{ medium = \"shm\", size = \"8MiB\", path = {:?} }}\n",
        fixture.block_cache()
    );
    let second = section.replace("ledger", "second");
    let region = format!("{:?}", fixture.block_cache());
    let second = second.replace(&region, &format!("{:?}", fixture.path("second-region")));
    let second = second.replace("\"shm\"", "\"file\"");
    fixture.configure(&format!("{}{section}{second}", fixture.config_text()));
    fixture.holdfast(&["log", "make", "second"]).succeeded();
    fixture.serve();
    let (ended, said) = report(&fixture);
    let why = said["logs"][0]["last_error"].to_string();
    assert!(ended.code == Some(7) && why.contains("does not exist"), "{said}");
    fixture.holdfast(&["log", "make", "ledger"]).succeeded();
    let is_well = || fixture.holdfast(&["status"]).code == Some(0);
    wait_until(is_well, || fixture.keeper_log());
    let (_, said) = report(&fixture);
    assert_eq!(said["logs"][0]["last_error"], Value::Null, "{said}");
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn whatever_is_said_in_json_is_json_on_both_ends() {
    let fixture = Fixture::left_in_memory();
    let ended = fixture.holdfast(&["--json", "umount", NAME]).succeeded();
    let refused = fixture.holdfast(&["--json", "mount", NAME]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.out.is_empty() && refused.err.contains("failed"), "{refused:?}");
    for line in [ended.out, ended.err, refused.err].iter().flat_map(|said| said.lines()) {
        let said: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert!(said.is_object(), "{line}");
    }
}

#[test]
fn a_disk_that_is_in_no_configuration_is_not_said_to_lack_a_front_end() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fixture.holdfast(&["upgrade", "disk", "nosuch"]).expect(2, &["nosuch", "configuration"]);
}

#[test]
fn a_percent_sign_in_the_path_of_a_mount_stays_one_in_a_unit() {
    let fixture = Fixture::new();
    let mount = fixture.path("100%nice");
    fs::create_dir(&mount).unwrap();
    fixture.reconfigure(&format!("{:?}", fixture.mount()), &format!("{mount:?}"));
    let said = fixture.holdfast(&["systemd", "dropin", NAME, "db.service"]).succeeded().out;
    assert!(said.contains("/100%%nice\n"), "{said}");
}

/// Kills a run of which the command, the front end and the mount are left; returns the front end.
fn outlived_run(fixture: &Fixture) -> i32 {
    let pid = fixture.path("pid");
    let script =
        format!("cd {}; echo x > f; echo $$ > {}; exec sleep 600", at(fixture), pid.display());
    let mut command = run(fixture, &script);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let is_said = || fs::read_to_string(&pid).unwrap_or_default().ends_with('\n');
    wait_until(is_said, || "the command never ran".into());
    kill(child.id().cast_signed(), Signal::KILL);
    child.wait().unwrap();
    kill(fs::read_to_string(&pid).unwrap().trim().parse().unwrap(), Signal::KILL);
    fs::remove_file(pid).unwrap();
    front_end_of(&fixture.home()).unwrap()
}

fn at(fixture: &Fixture) -> String {
    fixture.mount().display().to_string()
}

fn run(fixture: &Fixture, script: &str) -> Command {
    let mut command = fixture.command();
    command.arg("run").arg("--home").arg(fixture.home()).arg("--mount").arg(fixture.mount());
    command.args(["--memory", "8MiB", "--must-survive", "process", "--", "sh", "-c", script]);
    command
}

fn ended(mut command: Command) -> Ended {
    Ended::of(command.output().unwrap())
}

/// The front end of the volume of a run.
fn front_end_of(home: &Path) -> Option<i32> {
    let is_ours = |pid: &u32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut open = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        String::from_utf8_lossy(&command).contains("\0front\0") && open.any(|it| it == home)
    };
    holdfast_io::process::all().into_iter().find(is_ours).map(u32::cast_signed)
}

fn wait_for_end(fixture: &Fixture) {
    let has_ended = || front_end_of(&fixture.home()).is_none();
    wait_until(has_ended, || "the front end never ended".into());
}

#[test]
fn what_outlived_its_run_is_unmounted_and_run_again_as_the_message_says() {
    let fixture = Fixture::new();
    outlived_run(&fixture);
    let refused = ended(run(&fixture, "true"));
    refused.expect(125, &[&format!("`umount {}`", at(&fixture)), "run it again"]);
    assert!(!refused.err.contains("holdfast umount"), "{refused:?}");
    let unmounted = || Command::new("umount").arg(fixture.mount()).status().unwrap().success();
    wait_until(unmounted, || "its users never ended".into());
    wait_for_end(&fixture);
    ended(run(&fixture, "true")).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x\n");
}

#[test]
fn a_command_that_the_message_of_a_run_names_works_with_the_line_that_it_gives() {
    let fixture = Fixture::new();
    kill(outlived_run(&fixture), Signal::KILL);
    wait_for_end(&fixture);
    unmount(fixture.mount(), UnmountFlags::DETACH).unwrap();
    fs::remove_file(region_of_run(&fixture)).unwrap();
    let refused = ended(run(&fixture, "true"));
    refused.expect(125, &["`holdfast volume accept run --memory-lost`", "`--config`"]);
    let (_, line) = refused.err.split_once("this line: ").unwrap();
    let config = fixture.path("run.toml");
    fs::write(&config, line).unwrap();
    let accept = ["--config", config.to_str().unwrap(), "volume", "accept", "run", "--memory-lost"];
    fixture.holdfast(&accept).succeeded();
    ended(run(&fixture, "true")).succeeded();
}

fn region_of_run(fixture: &Fixture) -> PathBuf {
    let seen = fixture.home().metadata().unwrap();
    format!("/dev/shm/holdfast/run-{:x}-{:x}", seen.dev(), seen.ino()).into()
}
