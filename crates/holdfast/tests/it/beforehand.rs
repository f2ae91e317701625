//! What is told before anything is served: paths that lead to one place, what a mount would be
//! refused for, what a user may not look at.

use crate::bound::Bound;
use crate::fixture::{Fixture, NAME, asking, copy_program};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

/// The fixture's volume, and another one beside it, for which this is said instead.
fn with_another(fixture: &Fixture, what: &str, with: &str) -> String {
    let text = fixture.config_text();
    let section = text.split_once("[volume.v]").unwrap().1;
    let other = |of: &str, name: &str| of.replace(&format!("/{name}\""), &format!("/{name}-w\""));
    let section = ["home", "mount", "log"].iter().fold(section.to_owned(), |of, it| other(&of, it));
    let region = format!("{:?}", fixture.region);
    let section = section.replace(&region, &format!("{:?}", fixture.block_cache()));
    assert!(section.contains(what), "no {what} in {section}");
    format!("{text}\n[volume.w]{}", section.replace(what, with))
}

#[test]
fn no_two_paths_of_a_configuration_lead_to_one_place_however_they_are_written() {
    let fixture = Fixture::made();
    let link = fixture.path("link");
    symlink(fixture.path(""), &link).unwrap();
    let same = |name: &str| [link.join(name), fixture.path("run/../.").join(name)];
    fs::create_dir(fixture.path("run")).unwrap();
    let region = fixture.region.display().to_string();
    let region = region.replace("/dev/shm/", "/dev/shm/../shm/");
    let other = |name: &str| format!("{:?}", fixture.path(&format!("{name}-w")));
    let mut cases = vec![(format!("{:?}", fixture.block_cache()), region, "memory.path")];
    for (key, name) in [("home", "home"), ("mount", "mount"), ("log", "log")] {
        cases.extend(same(name).map(|path| (other(name), path.display().to_string(), key)));
    }
    // Of one kind or of two.
    cases.extend(same("home").map(|path| (other("log"), path.display().to_string(), "log")));
    cases.push((other("mount"), link.join("run/control.sock").display().to_string(), "mount"));
    for (what, with, key) in cases {
        fixture.configure(&with_another(&fixture, &what, &format!("{with:?}")));
        let refused = fixture.holdfast(&["volume", "make", "w"]);
        refused
            .expect(2, &[&format!("[volume.w] {key} ="), "leads where [", "nothing was changed"]);
        assert!(!refused.err.contains("remove"), "{refused:?}");
    }
    fixture.configure(&with_another(&fixture, "must_survive", "must_survive"));
    fixture.holdfast(&["volume", "list"]).succeeded();
}

#[test]
fn the_same_place_by_way_of_another_mount_is_one_place() {
    let fixture = Fixture::made();
    let place = fixture.path("bound");
    let bound = Bound::at(place.clone(), &fixture.path(""));
    let log = format!("{:?}", fixture.path("log-w"));
    fixture.configure(&with_another(&fixture, &log, &format!("{:?}", place.join("log"))));
    let refused = fixture.holdfast(&["volume", "make", "w"]);
    drop(bound);
    refused.expect(2, &["[volume.w] log =", "leads where [volume.v] log ="]);
}

#[test]
fn a_volume_may_be_mounted_over_its_home_by_another_way() {
    let fixture = Fixture::made();
    symlink(fixture.home(), fixture.path("link")).unwrap();
    fixture.reconfigure(
        &format!("mount = {:?}", fixture.mount()),
        &format!("mount = {:?}", fixture.path("link")),
    );
    fixture.holdfast(&["volume", "check", NAME]).succeeded();
}

#[test]
fn a_socket_by_a_relative_path_is_refused_when_the_configuration_is_read() {
    let fixture = Fixture::made();
    for (key, name) in [("[keeper]", "control"), ("[server]", "server")] {
        let socket = format!("{:?}", fixture.path(&format!("run/{name}.sock")));
        fixture.reconfigure(&socket, "\"run/x.sock\"");
        let words = [key, "socket = \"run/x.sock\" is not an absolute path"];
        fixture.holdfast(&["volume", "list"]).expect(2, &words);
    }
}

#[test]
fn what_a_mount_would_be_refused_for_is_found_by_a_check() {
    let fixture = Fixture::made();
    let both = |code: i32, words: &[&str]| {
        fixture.holdfast(&["volume", "check", NAME]).expect(code, words);
        fixture.holdfast(&["serve"]).expect(code, words);
    };
    fs::remove_dir(fixture.mount()).unwrap();
    both(2, &["is not a directory", "make it first"]);
    fs::create_dir(fixture.mount()).unwrap();
    let sockets = [("nbd", "[\"unix:/run/x.sock\"]"), ("vhost-user", "\"/run/x.sock\"")];
    for (key, value) in sockets.into_iter().chain([("ublk", "900")]) {
        fixture.reconfigure("must_survive", &format!("{key} = {value}\nmust_survive"));
        both(2, &[&format!("{key} is set, and home"), "is a directory"]);
    }
    let cache =
        format!("{{ medium = \"shm\", size = \"8MiB\", path = {:?} }}", fixture.block_cache());
    fixture.reconfigure("must_survive", &format!("block_cache = {cache}\nmust_survive"));
    fixture.holdfast(&["volume", "check", NAME]).expect(2, &["block cache", "is a directory"]);
}

#[test]
fn what_was_not_made_is_told_from_what_this_user_may_not_look_at() {
    let fixture = Fixture::new();
    assert_eq!(fixture.status()["state"], "not made");
    let said = fixture.holdfast(&["status"]).out;
    assert!(said.contains("`holdfast volume make v`"), "{said}");
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    assert_eq!(fixture.status()["state"], "detached");
    let open = |mode| fs::set_permissions(fixture.path(""), fs::Permissions::from_mode(mode));
    open(0o755).unwrap();
    fs::set_permissions(fixture.config(), fs::Permissions::from_mode(0o644)).unwrap();
    let said = as_nobody(&fixture, &["volume", "list"]);
    assert!(said.contains("cannot be looked at"), "{said}");
    fs::set_permissions(fixture.config(), fs::Permissions::from_mode(0o600)).unwrap();
    let said = as_nobody(&fixture, &["volume", "list"]);
    assert!(said.contains("run as a user who may read it"), "{said}");
}

/// What a command says to a user who is nobody.
fn as_nobody(fixture: &Fixture, words: &[&str]) -> String {
    // The program may be where nobody comes.
    let program = fixture.path("program");
    if !program.exists() {
        copy_program(env!("CARGO_BIN_EXE_holdfast"), &program);
    }
    let mut command = asking("setpriv", &fixture.config());
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    command.args(words).stdin(Stdio::null());
    let output = command.output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

#[test]
fn a_volume_that_was_given_back_has_nothing_left_to_apply() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    assert_eq!(fixture.stop(), Some(0));
    let said = fixture.holdfast(&["volume", "accept", NAME, "--home"]).succeeded().out;
    assert!(said.contains("nothing of the log is still to be applied"), "{said}");
}

#[test]
fn a_place_that_cannot_have_a_store_is_told_as_it_is() {
    let fixture = Fixture::new();
    let file = fixture.path("file");
    fs::write(&file, "").unwrap();
    let open = |path: &str| fixture.holdfast(&["store", "open", path]);
    open(file.to_str().unwrap()).expect(2, &["a store is a directory"]);
    let missing = fixture.path("no/store");
    open(missing.to_str().unwrap()).expect(2, &["make the folder that it is to be in"]);
}
