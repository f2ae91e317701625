//! Two configurations that name one control socket: the keeper of one is not taken for that of the
//! other.

use crate::fixture::{Ended, Fixture, NAME};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A configuration with a volume of its own, and the sockets of the fixture's.
fn other_configuration(fixture: &Fixture) -> PathBuf {
    let other = fixture.path("other.toml");
    let [home, mount] = ["home-w", "mount-w"].map(|name| fixture.path(name));
    fs::create_dir(&home).unwrap();
    fs::create_dir(&mount).unwrap();
    let text = fixture.config_text().replace("[volume.v]", "[volume.w]");
    let text = text.replace(&format!("{:?}", fixture.home()), &format!("{home:?}"));
    let text = text.replace(&format!("{:?}", fixture.mount()), &format!("{mount:?}"));
    let text =
        text.replace(&format!("{:?}", fixture.log()), &format!("{:?}", fixture.path("log-w")));
    let region = format!("{:?}", fixture.region);
    fs::write(&other, text.replace(&region, &format!("{:?}", fixture.block_cache()))).unwrap();
    other
}

fn with(fixture: &Fixture, config: &Path, arguments: &[&str]) -> Ended {
    let mut command = fixture.command();
    command.env("HOLDFAST_CONFIG", config).args(arguments);
    Ended::of(command.output().unwrap())
}

#[test]
fn a_command_of_another_configuration_changes_nothing_of_this_keepers_and_names_its_file() {
    let mut fixture = Fixture::made();
    let other = other_configuration(&fixture);
    fixture.serve();
    let (keeper, front_end) = (fixture.keeper_pid(), fixture.front_end());
    let theirs = fixture.config().display().to_string();
    let mine = other.display().to_string();
    let named = [&*theirs, &*mine, "--config", "socket of its own in [keeper]"];
    let commands: [&[&str]; 7] = [
        &["shutdown"],
        &["upgrade", "server"],
        &["upgrade", "volume", NAME],
        &["mount", "w"],
        &["umount", NAME],
        &["umount", "w", "--force"],
        &["wait", "w"],
    ];
    for command in commands {
        with(&fixture, &other, command).expect(5, &named);
    }
    assert_eq!((fixture.keeper_pid(), fixture.front_end()), (keeper, front_end));
    assert!(fixture.is_mounted() && !fixture.has_ended());

    let told = with(&fixture, &other, &["status"]);
    assert_eq!(told.code, Some(7), "{told:?}");
    assert!(told.out.contains("not well: ") && told.out.contains(&theirs), "{told:?}");
    let told = with(&fixture, &other, &["status", "--json"]).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["keeper"]["configuration"], *theirs, "{told}");
    assert!(told["troubles"][0].to_string().contains(&mine), "{told}");

    // As the message says: the keeper's file, or a socket of its own.
    with(&fixture, &fixture.config(), &["wait", NAME]).succeeded();
    let text = fs::read_to_string(&other).unwrap();
    fs::write(&other, text.replace("run/", "run-w/")).unwrap();
    with(&fixture, &other, &["shutdown"]).expect(4, &["no keeper is running"]);
    fixture.holdfast(&["shutdown"]).succeeded();
}

#[test]
fn the_configuration_of_a_keeper_is_the_same_by_every_name_and_after_it_was_written_anew() {
    let mut fixture = Fixture::made();
    let (link, hard) = (fixture.path("link.toml"), fixture.path("hard.toml"));
    std::os::unix::fs::symlink("holdfast.toml", &link).unwrap();
    fs::hard_link(fixture.config(), &hard).unwrap();
    let mut command = fixture.command();
    // The keeper is told of it by a path that means nothing elsewhere.
    let folder = fixture.config().parent().unwrap().to_owned();
    command.current_dir(folder).env("HOLDFAST_CONFIG", "link.toml");
    fixture.serve_as(command);
    for config in [&link, &hard, &fixture.config()] {
        with(&fixture, config, &["wait", NAME]).succeeded();
        with(&fixture, config, &["status"]).succeeded();
        with(&fixture, config, &["umount", NAME]).succeeded();
        with(&fixture, config, &["mount", NAME]).succeeded();
    }
    // As editors do.
    fs::write(fixture.path("new"), fixture.config_text()).unwrap();
    fs::rename(fixture.path("new"), fixture.config()).unwrap();
    with(&fixture, &link, &["status"]).succeeded();
    with(&fixture, &hard, &["shutdown"]).expect(5, &["hard.toml"]);
    with(&fixture, &link, &["shutdown"]).succeeded();
}
