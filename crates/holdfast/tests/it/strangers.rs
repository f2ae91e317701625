//! What another user of the machine can do beforehand, and cannot reach by it.

use crate::fixture::{Fixture, NAME, way};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The stranger.
const NOBODY: u32 = 65534;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o7777
}

/// Has the stranger lock a path until it is killed.
fn locked_by_nobody(path: &Path) -> Child {
    let mut shell = Command::new("flock");
    shell.args(["--exclusive", "--no-fork"]).arg(path).args(["sleep", "600"]);
    let child = shell.uid(NOBODY).gid(NOBODY).stdout(Stdio::null()).spawn().unwrap();
    let place = format!(":{} ", path.metadata().unwrap().ino());
    let has_it = || fs::read_to_string("/proc/locks").unwrap().contains(&place);
    crate::fixture::wait_until(has_it, || "the stranger never had the lock".into());
    child
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_strangers_file_at_the_place_of_the_region_is_not_used() {
    let fixture = Fixture::made();
    fs::write(&fixture.region, "").unwrap();
    set_mode(&fixture.region, 0o666);
    chown(&fixture.region, Some(NOBODY), Some(NOBODY)).unwrap();
    let ended = fixture.holdfast(&["serve"]);
    assert_ne!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.contains("belongs to user 65534"), "{ended:?}");
    assert_eq!(fixture.region.metadata().unwrap().len(), 0);
    assert!(!fixture.is_mounted());
}

#[test]
fn log_and_lock_that_others_could_take_are_closed_to_them_and_the_keeper_says_so() {
    let mut fixture = Fixture::made();
    assert_eq!(mode(&fixture.log()), 0o700, "the log was made for its owner alone");
    let lock = fixture.path("run/control.sock.lock");
    fs::create_dir(fixture.path("run")).unwrap();
    fs::write(&lock, "").unwrap();
    set_mode(&lock, 0o644);
    set_mode(&fixture.log(), 0o755);
    fixture.serve();
    assert_eq!((mode(&fixture.log()), mode(&lock)), (0o700, 0o600));
    let said = fixture.keeper_log();
    for path in [fixture.log(), lock] {
        let told = |line: &&str| line.contains("now it is yours alone");
        let line = said.lines().filter(told).find(|line| line.contains(path.to_str().unwrap()));
        assert!(line.is_some(), "{said}");
    }
}

#[test]
fn a_stranger_who_locked_a_home_or_the_keepers_lock_is_named() {
    let fixture = Fixture::made();
    set_mode(fixture.home().parent().unwrap(), 0o755);
    set_mode(&fixture.home(), 0o755);
    let stranger = locked_by_nobody(&fixture.home());
    let pid = format!("process {} (", stranger.id());
    let ended = fixture.holdfast(&["serve"]);
    assert!(ended.err.contains(&pid) && ended.err.contains("of user 65534"), "{ended:?}");
    end(stranger);
    let lock = fixture.path("run/control.sock.lock");
    fs::write(&lock, "").unwrap();
    set_mode(&lock, 0o644);
    let stranger = locked_by_nobody(&lock);
    let pid = format!("process {} (", stranger.id());
    let ended = fixture.holdfast(&["serve"]);
    ended.expect(5, &[&pid, "of user 65534", "end that process"]);
    end(stranger);
}

#[test]
fn a_log_that_is_another_users_is_refused() {
    let fixture = Fixture::made();
    chown(fixture.log(), Some(NOBODY), None).unwrap();
    fixture.holdfast(&["serve"]).expect(2, &["log", "belongs to user 65534"]);
}

#[test]
fn the_folder_of_a_machine_in_which_others_can_put_something_is_refused() {
    let fixture = Fixture::new();
    let (folder, victim) = (fixture.path("machine"), fixture.path("victim"));
    fs::create_dir(&folder).unwrap();
    fs::write(&victim, "precious").unwrap();
    for name in ["command.new", "command", "snapshot", "state"] {
        symlink(&victim, folder.join(name)).unwrap();
    }
    chown(&folder, Some(NOBODY), None).unwrap();
    let boot = ["vm", "boot", folder.to_str().unwrap(), "--", "/bin/true"];
    fixture.holdfast(&boot).expect(1, &["belongs to user 65534"]);
    chown(&folder, Some(0), None).unwrap();
    set_mode(&folder, 0o1777);
    fixture.holdfast(&boot).expect(1, &["others than you and root"]);
    set_mode(&folder, 0o755);
    let _ends_as_it_may = fixture.holdfast(&boot);
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(mode(&folder), 0o755, "a folder that is only named stays as it is");
}

#[test]
fn what_is_no_socket_stays_where_the_keeper_would_listen() {
    let fixture = Fixture::made();
    fs::create_dir(fixture.path("run")).unwrap();
    let names: &[&str] =
        if way() == "queue" { &["server.sock", "control.sock"] } else { &["control.sock"] };
    for name in names {
        let path = fixture.path("run").join(name);
        fs::write(&path, "somebody's file").unwrap();
        let ended = fixture.holdfast(&["serve"]);
        assert_ne!(ended.code, Some(0), "{ended:?}");
        assert_eq!(fs::read(&path).unwrap(), b"somebody's file");
        fs::remove_file(&path).unwrap();
    }
    assert!(!fixture.is_mounted());
}

#[test]
fn a_server_does_not_take_the_socket_of_another() {
    if way() != "queue" {
        return;
    }
    let fixture = Fixture::made();
    fs::create_dir(fixture.path("run")).unwrap();
    let path = fixture.path("run/server.sock");
    let other = UnixListener::bind(&path).unwrap();
    let named = format!("(pid {})", std::process::id());
    fixture.holdfast(&["serve"]).expect(5, &[&named, "end that process", NAME]);
    UnixStream::connect(&path).expect("the other server has its socket no longer");
    drop(other);
}

/// Whether a process has this file open.
fn has_open(pid: i32, file: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|to| to == file)
}

#[test]
fn what_the_keeper_was_given_by_accident_is_kept_open_by_nobody() {
    let mut fixture = Fixture::made();
    let stray = fixture.path("stray");
    let script = format!("exec 9>{}; exec \"$0\" \"$@\"", stray.display());
    fixture.serve_behind("sh", &["-c", &script]);
    assert!(stray.exists());
    assert!(!has_open(fixture.keeper_pid(), &stray), "the keeper has it");
    assert!(!has_open(fixture.front_end(), &stray), "the front end has it");
    // The canary: what the keeper means to have is seen so.
    assert!(has_open(fixture.keeper_pid(), &fixture.path("run/control.sock.lock")));
    // Nor has a front end more of the keeper's than it needs.
    assert!(!has_open(fixture.front_end(), &fixture.path("run/control.sock.lock")));
}

#[test]
fn a_log_or_region_inside_the_home_is_refused_however_the_path_is_written() {
    let fixture = Fixture::new();
    let (home, log, region) = (fixture.home(), fixture.log(), fixture.region.clone());
    symlink(&home, fixture.path("link")).unwrap();
    fs::create_dir_all(home.join("sub")).unwrap();
    fs::create_dir(fixture.path("bound")).unwrap();
    let bound = fixture.path("bound");
    rustix::mount::mount_bind(home.join("sub"), &bound).unwrap();
    let dotted = fixture.path("missing/../home/log");
    for inside in [dotted, fixture.path("link/log"), bound.join("log")] {
        let words = ["lies inside home", "outside home"];
        fixture.reconfigure(&format!("log = {log:?}"), &format!("log = {inside:?}"));
        fixture.holdfast(&["volume", "make", NAME]).expect(2, &[words[0], words[1], "log"]);
        fixture.reconfigure(&format!("path = {region:?}"), &format!("path = {inside:?}"));
        let ended = fixture.holdfast(&["volume", "make", NAME]);
        ended.expect(2, &[words[0], words[1], "memory.path"]);
    }
    rustix::mount::unmount(&bound, rustix::mount::UnmountFlags::DETACH).unwrap();
    assert_eq!(fs::read_dir(home.join("sub")).unwrap().count(), 0);
}

#[test]
fn a_socket_inside_the_home_or_the_mount_is_refused_whoever_would_listen_there() {
    let mut fixture = Fixture::made();
    let text = fixture.config_text();
    fs::create_dir(fixture.home().join("run")).unwrap();
    fs::create_dir(fixture.mount().join("run")).unwrap();
    for (around, folder) in [("home", fixture.home()), ("mount", fixture.mount())] {
        let inside = folder.join("run/socket");
        let disk = format!(
            "\n[disk.d]\nsize = \"1MiB\"\nnbd = [\"unix:{}\"]\n\
             memory = {{ medium = \"shm\", path = \"{}-d\" }}\nmust_survive = [\"process\"]\n",
            inside.display(),
            fixture.region.display()
        );
        let elsewhere =
            |from: &str| text.replace(&format!("{:?}", fixture.path(from)), &format!("{inside:?}"));
        let of_server = elsewhere("run/server.sock");
        for config in [elsewhere("run/control.sock"), of_server, text.clone() + &disk] {
            assert_ne!(config, text);
            fixture.configure(&config);
            let words = ["lies inside", around, "outside"];
            fixture.holdfast(&["volume", "check", NAME]).expect(2, &words);
            // A keeper that has a disk as well goes on with that.
            if !config.contains("[disk.") {
                fixture.try_to_serve().expect("it is refused").expect(2, &words);
            }
        }
    }
}
