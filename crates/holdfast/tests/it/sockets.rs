//! Sockets whose names are taken away while somebody listens there.
//!
//! They come back by themselves, and whoever dies meanwhile is replaced; where somebody else has
//! the name that is told, with what to do.

use crate::fixture::{Fixture, NAME, kill, wait_until, way};
use crate::seeds::{Random, for_seeds};
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command};

const SEEDS: u64 = 2;
const STEPS: u64 = 8;

fn is_well(fixture: &Fixture) -> bool {
    fixture.holdfast(&["status"]).code == Some(0)
}

#[test]
fn sockets_that_are_taken_away_are_there_again_and_nobody_is_given_up() {
    for_seeds("sockets_that_are_taken_away", SEEDS, |seed| {
        let random = &mut Random::new(seed);
        let mut fixture = Fixture::made();
        fixture.serve();
        for step in 0..STEPS {
            let what = random.below(4);
            println!("seed {seed}, step {step}: {what}");
            match what {
                0 => drop(fs::remove_file(fixture.path("run/control.sock"))),
                1 => drop(fs::remove_file(fixture.path("run/server.sock"))),
                2 => drop(fs::remove_dir_all(fixture.path("run"))),
                _ => kill(fixture.front_end(), Signal::KILL),
            }
            if random.below(2) == 0 {
                wait_until(|| is_well(&fixture), || fixture.keeper_log());
            }
            fs::write(fixture.mount().join("f"), step.to_string()).unwrap();
        }
        let names = ["run/control.sock", "run/server.sock"];
        let names = &names[..if way() == "queue" { 2 } else { 1 }];
        let are_there = || names.iter().all(|name| fixture.path(name).exists());
        wait_until(|| are_there() && is_well(&fixture), || fixture.keeper_log());
        assert_eq!(fixture.stop(), Some(0));
        fixture.assert_given_back();
        let last = (STEPS - 1).to_string();
        assert_eq!(fs::read_to_string(fixture.home().join("f")).unwrap(), last);
    });
}

#[test]
fn a_name_that_somebody_else_has_is_told_of_until_it_is_moved_away() {
    if way() == "direct" {
        return; // there is no server
    }
    let mut fixture = Fixture::made();
    fixture.serve();
    let socket = fixture.path("run/server.sock");
    fs::remove_file(&socket).unwrap();
    let other = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let is_told = || {
        let status = fixture.holdfast(&["status"]);
        status.code == Some(7) && status.out.contains("programs do not find it")
    };
    wait_until(is_told, || fixture.keeper_log());
    fs::remove_file(&socket).unwrap();
    drop(other);
    wait_until(|| socket.exists() && is_well(&fixture), || fixture.keeper_log());
    kill(fixture.front_end(), Signal::KILL);
    wait_until(|| is_well(&fixture), || fixture.keeper_log());
    fixture.holdfast(&["umount", NAME]).succeeded();
}

#[test]
fn a_keeper_that_lives_and_does_not_listen_is_told_of_by_every_command() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let socket = fixture.path("run/control.sock");
    fs::remove_file(&socket).unwrap();
    let other = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    let pid = format!("(process {})", fixture.keeper_pid());
    fs::remove_file(&socket).unwrap();
    fs::create_dir(&socket).unwrap();
    drop(other);
    let told = fixture.holdfast(&["status"]);
    assert!(told.code == Some(8) && told.out.contains(&pid), "{told:?}");
    for command in [&["shutdown"][..], &["mount", NAME]] {
        fixture.holdfast(command).expect(8, &[&pid, "kill -TERM"]);
    }
    fs::remove_dir(&socket).unwrap();
    wait_until(|| is_well(&fixture), || fixture.keeper_log());
    fixture.holdfast(&["shutdown"]).succeeded();
    fixture.assert_given_back();
}

/// A keeper whose program is not called as it is delivered, and a file on its volume.
fn kept_under_another_name() -> Fixture {
    let mut fixture = Fixture::made();
    let program = fixture.path("anyhow");
    fs::copy(env!("CARGO_BIN_EXE_holdfast"), &program).unwrap();
    let mut command = Command::new(program);
    command.env("HOLDFAST_CONFIG", fixture.config());
    fixture.serve_as(command);
    fs::write(fixture.mount().join("f"), "x").unwrap();
    fixture
}

#[test]
fn nothing_acts_behind_a_keeper_whose_socket_is_gone_or_whose_name_something_else_has() {
    let fixture = kept_under_another_name();
    let (socket, pid) = (fixture.path("run/control.sock"), fixture.keeper_pid().to_string());
    let remedy = format!("move {} away", socket.display());
    let make_file = |at: &Path| fs::write(at, "");
    for make in [make_file, |at: &Path| fs::create_dir(at)] {
        fs::remove_file(&socket).unwrap();
        make(&socket).unwrap();
        let told = fixture.holdfast(&["status"]);
        assert!(told.code == Some(8) && told.out.contains(&remedy), "{told:?}");
        let commands = ["shutdown", "wait v", "mount v", "umount v", "upgrade server"];
        for command in commands.map(|it| it.split(' ').collect::<Vec<_>>()) {
            fixture.holdfast(&command).expect(8, &[&pid, "is in the place of its socket", &remedy]);
        }
        fixture.holdfast(&["serve"]).expect(5, &[&pid, &remedy]);
        assert_eq!(fs::read_to_string(fixture.mount().join("f")).unwrap(), "x");
        fs::rename(&socket, fixture.path("moved-away")).unwrap();
        let _ = fs::remove_file(fixture.path("moved-away"));
        wait_until(|| is_well(&fixture), || fixture.keeper_log());
    }
    let _ = fs::remove_dir(fixture.path("moved-away"));
    fs::remove_file(&socket).unwrap();
    let done = fixture.holdfast(&["umount", NAME]).succeeded();
    assert!(!done.out.contains("no keeper was running"), "{done:?}");
    fs::remove_file(&socket).unwrap();
    fixture.holdfast(&["shutdown"]).succeeded();
    fixture.assert_given_back();
}

/// What a stranger runs: it has an answer for everybody, whatever is asked.
const ANSWERS: &str = r#"
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o666)
listener.listen(64)
kept = []
while True:
    connection = listener.accept()[0]
    kept.append(connection)
    try:
        connection.sendall(b'{"done":{"text":"v is given back"}}\n' * 9)
    except OSError:
        pass
"#;

/// A program of an ordinary user's that answers whoever connects, until it is dropped.
struct Stranger(Child);

impl Stranger {
    fn listens_at(path: &Path) -> Stranger {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.args(["/usr/bin/python3", "-c", ANSWERS]);
        let stranger = Stranger(command.arg(path).spawn().unwrap());
        wait_until(|| path.exists(), || "nobody listens".to_owned());
        stranger
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// Where everybody may make names, as in /tmp.
fn open_to_everybody(fixture: &Fixture) {
    fs::set_permissions(fixture.path(""), Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(fixture.path("run")).unwrap();
    fs::set_permissions(fixture.path("run"), Permissions::from_mode(0o1777)).unwrap();
}

#[test]
fn who_listens_in_the_keepers_place_is_asked_nothing_and_believed_nothing() {
    let fixture = Fixture::made();
    open_to_everybody(&fixture);
    let _stranger = Stranger::listens_at(&fixture.path("run/control.sock"));
    let done = fixture.holdfast(&["umount", NAME]).succeeded();
    assert!(done.out.contains("(no keeper was running)"), "{done:?}");
    for command in [&["upgrade", "server"][..], &["shutdown"]] {
        let ended = fixture.holdfast(command);
        assert_ne!(ended.code, Some(0), "{command:?}: {ended:?}");
        assert!(ended.err.contains("user 65534 listens there"), "{command:?}: {ended:?}");
    }
}

#[test]
fn who_listens_in_the_servers_place_gets_no_client_and_keeps_no_volume() {
    if way() == "direct" {
        return; // there is no server
    }
    let mut fixture = Fixture::made();
    fixture.serve();
    open_to_everybody(&fixture);
    let socket = fixture.path("run/server.sock");
    fs::remove_file(&socket).unwrap();
    let stranger = Stranger::listens_at(&socket);
    kill(fixture.front_end(), Signal::KILL);
    let tells = || fixture.holdfast(&["status"]).out.contains("move away what is there");
    wait_until(tells, || fixture.keeper_log());
    drop(stranger);
    let _ = fs::remove_file(&socket);
    wait_until(|| is_well(&fixture), || fixture.keeper_log());
    fs::write(fixture.mount().join("f"), "x").unwrap();
    assert_eq!(fixture.stop(), Some(0));
    assert_eq!(fs::read_to_string(fixture.home().join("f")).unwrap(), "x");
}

#[test]
fn a_machine_whose_control_socket_somebody_has_is_not_started_and_who_has_it_is_named() {
    let fixture = Fixture::new();
    let folder = fixture.path("machine");
    fs::create_dir(&folder).unwrap();
    let started = fixture.path("started");
    let socket = folder.join("qmp.sock");
    let boot = || {
        let words = ["vm", "boot", folder.to_str().unwrap(), "--", "touch"];
        fixture.holdfast(&[&words[..], &[started.to_str().unwrap()]].concat())
    };
    let listener = UnixListener::bind(&socket).unwrap();
    let own = std::process::id().to_string();
    boot().expect(5, &["is in use by", &own, "name another folder"]);
    drop(listener);
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "precious").unwrap();
    boot().expect(5, &["is no socket", "move away"]);
    assert_eq!(fs::read(&socket).unwrap(), b"precious");
    assert!(!started.exists(), "nothing was started");
}
