//! Command line, configuration and claims: what is refused, in which words, with which code.

use crate::fixture::{Fixture, NAME, wait_until};
use rustix::fs::{FileType, Mode};
use std::fs;
use std::path::PathBuf;

#[test]
fn a_wrong_key_is_refused_with_file_and_key() {
    let fixture = Fixture::new();
    fixture.reconfigure("must_survive", "must_survve");
    for command in [&["status"][..], &["serve"], &["volume", "list"], &["mount", NAME]] {
        fixture.holdfast(command).expect(2, &["holdfast.toml", "must_survve", "correct the file"]);
    }
}

#[test]
fn a_missing_configuration_is_named() {
    let fixture = Fixture::new();
    let ended = fixture.holdfast(&["--config", "/nowhere.toml", "status"]);
    ended.expect(2, &["/nowhere.toml", "--config"]);
}

#[test]
fn what_is_no_regular_file_is_no_configuration_and_is_not_waited_for() {
    let fixture = Fixture::new();
    let pipe = fixture.path("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    for path in [pipe.to_str().unwrap(), "/dev/zero", "/tmp"] {
        let ended = fixture.holdfast(&["--config", path, "status"]);
        ended.expect(2, &[path, "--config"]);
    }
}

#[test]
fn a_volume_that_is_not_configured_is_refused_with_those_that_are() {
    Fixture::new().holdfast(&["mount", "w"]).expect(2, &["[volume.w]", "name one of: v"]);
}

#[test]
fn an_unknown_flag_is_a_wrong_command_line() {
    Fixture::new().holdfast(&["status", "--verbose"]).expect(2, &["--verbose"]);
}

#[test]
fn the_help_tells_the_exit_codes_and_the_first_steps() {
    let help = Fixture::new().holdfast(&["--help"]).succeeded().out;
    assert!(help.contains("Exit codes:") && help.contains("holdfast volume make NAME"), "{help}");
}

#[test]
fn settings_that_were_changed_under_what_is_served_are_told_until_it_has_them() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let text = fixture.config_text();
    let same_places = "other settings for it by now";
    for (with, words) in [
        (text.replace("must_survive = [\"process\"]\n", ""), same_places),
        (format!("{text}cache = \"direct\"\n"), same_places),
        (text.replace("[server]\n", "[server]\nclients_max = 7\n"), "other settings in [server]"),
    ] {
        fixture.configure(&with);
        let told = fixture.holdfast(&["status"]);
        assert!(told.code == Some(7) && told.out.contains(words), "{with}: {told:?}");
        fixture.configure(&text);
        fixture.holdfast(&["status"]).succeeded();
    }
    fixture.configure(&format!("{text}cache = \"direct\"\n"));
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.holdfast(&["mount", NAME]).succeeded();
    fixture.holdfast(&["status"]).succeeded();
}

#[test]
fn a_log_or_a_home_in_ram_is_refused_by_the_claims_or_claimed_for_what_it_survives() {
    let ram = tempfile::tempdir_in("/dev/shm").unwrap();
    for (key, is) in [("home", Fixture::home as fn(&Fixture) -> PathBuf), ("log", Fixture::log)] {
        let mut fixture = Fixture::new();
        let at = ram.path().join(key);
        if key == "home" {
            fs::create_dir(&at).unwrap();
        }
        let text = fixture
            .config_text()
            .replace(&format!("\n{key} = {:?}", is(&fixture)), &format!("\n{key} = {at:?}"));
        fixture.configure(&text.replace("must_survive = [\"process\"]\n", ""));
        let words = [key, "is on a tmpfs, which is RAM", "move it to a disk", "must_survive"];
        fixture.holdfast(&["volume", "make", NAME]).expect(3, &words);
        fixture.configure(&text);
        let made = fixture.holdfast(&["volume", "make", NAME]).succeeded().out;
        assert!(made.contains("os, power, machine"), "{made}");
        fixture.serve();
        let lost = |fixture: &Fixture| fixture.status()["verdict"]["lost_in"].clone();
        assert_eq!(lost(&fixture), serde_json::json!(["os", "power", "machine"]));
        // What is in force where it was served before is still given back.
        fixture.configure(&text.replace("must_survive = [\"process\"]\n", ""));
        assert_eq!(fixture.stop(), Some(0));
    }
}

#[test]
fn what_no_class_keeps_is_refused_by_the_claims() {
    let fixture = Fixture::new();
    fixture.reconfigure("[\"process\"]", "[\"machine\"]");
    fixture.holdfast(&["volume", "make", NAME]).expect(3, &["machine", "must_survive"]);
    fixture.holdfast(&["serve"]).expect(3, &["machine", "must_survive"]);
}

#[test]
fn without_a_keeper_mount_says_so_and_status_answers_from_what_is_there() {
    let fixture = Fixture::made();
    fixture.holdfast(&["mount", NAME]).expect(4, &["no keeper is running", "holdfast serve"]);
    let status = fixture.holdfast(&["status", "--json"]);
    assert_eq!(status.code, Some(4), "{status:?}");
    let report: serde_json::Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!(report["schema"], 1);
    assert_eq!(report["volumes"][0]["state"], "detached");
    assert_eq!(report["volumes"][0]["verdict"]["class"], "memory");
}

#[test]
fn a_problem_as_json_has_the_same_parts() {
    let ended = Fixture::new().holdfast(&["--json", "mount", NAME]);
    let failed: serde_json::Value = serde_json::from_str(&ended.err).unwrap();
    assert_eq!(failed["failed"]["exit"], "not_running", "{failed}");
    assert!(failed["failed"]["remedy"].as_str().unwrap().contains("holdfast serve"), "{failed}");
}

#[test]
fn a_command_line_that_is_not_understood_is_told_in_json_to_whoever_asked_for_it() {
    let fixture = Fixture::new();
    for words in [&["--json", "mount"][..], &["nonsense", "--json"], &["status", "--json", "-x"]] {
        let ended = fixture.holdfast(words);
        let failed: serde_json::Value = serde_json::from_str(&ended.err).unwrap();
        assert_eq!(failed["failed"]["exit"], "usage", "{failed}");
        ended.expect(2, &["command line", "`holdfast --help`"]);
    }
    fixture.holdfast(&["nonsense"]).expect(2, &["Usage: "]);
    // What follows the two dashes is the word of another program.
    fixture.holdfast(&["run", "--nonsense", "--", "true", "--json"]).expect(2, &["Usage: "]);
}

#[test]
fn a_name_that_is_not_configured_is_refused_with_those_that_are() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let words = ["has no [volume.typo]", "name one of: v"];
    for command in [&["mount", "typo"][..], &["umount", "typo"], &["upgrade", "volume", "typo"]] {
        fixture.holdfast(command).expect(2, &words);
    }
    fixture.holdfast(&["upgrade", "disk", "typo"]).expect(2, &["has no [disk.typo]"]);
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn a_volume_that_is_served_and_not_mounted_is_not_listed_as_unused() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let file = fs::File::create(fixture.mount().join("f")).unwrap();
    rustix::mount::unmount(fixture.mount(), rustix::mount::UnmountFlags::DETACH).unwrap();
    let listed = fixture.holdfast(&["volume", "list"]).succeeded().out;
    assert!(listed.contains("out of place") && !listed.contains("not mounted"), "{listed}");
    drop(file);
    let list = || fixture.holdfast(&["volume", "list"]).succeeded().out;
    wait_until(|| list().contains("not mounted"), list);
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn a_volume_is_made_once_listed_and_checked() {
    let fixture = Fixture::new();
    let listed = fixture.holdfast(&["volume", "list"]).succeeded().out;
    assert!(listed.contains("not made"), "{listed}");
    fixture.holdfast(&["volume", "check", NAME]).expect(2, &["log", "volume make"]);
    let made = fixture.holdfast(&["volume", "make", NAME]).succeeded().out;
    assert!(made.contains("survives     process"), "{made}");
    fixture.holdfast(&["volume", "make", NAME]).expect(2, &["there is a log in it already"]);
    fixture.holdfast(&["volume", "check", NAME]).succeeded();
    assert!(fixture.holdfast(&["volume", "list"]).succeeded().out.contains("not mounted"));
}

#[test]
fn a_home_that_is_neither_directory_nor_disk_is_refused_by_its_key() {
    let fixture = Fixture::made();
    std::fs::remove_dir(fixture.home()).unwrap();
    std::fs::write(fixture.home(), "").unwrap();
    for command in [&["volume", "check", NAME][..], &["serve"]] {
        fixture.holdfast(command).expect(2, &["home", "the file is empty", "truncate"]);
    }
    std::fs::remove_file(fixture.home()).unwrap();
    std::os::unix::net::UnixListener::bind(fixture.home()).unwrap();
    for command in [&["volume", "check", NAME][..], &["serve"]] {
        fixture.holdfast(command).expect(2, &["home", "neither a directory nor a file"]);
    }
    assert!(!fixture.is_mounted());
}

#[test]
fn the_matrix_for_the_documents_is_printed_from_the_code() {
    let matrix = Fixture::new().holdfast(&["matrix"]).succeeded().out;
    assert!(matrix.starts_with("| acknowledged by | process | os | power | machine |"), "{matrix}");
}
