//! Ways into a bare home that lead by no descriptor of a process, and by no mount of its own: who
//! has one is named, and the volume is not attached.

use crate::block::Loop;
use crate::bound::alone_with_the_mounts;
use crate::fixture::{Fixture, NAME};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const NOBODY: u32 = 65534;

/// A process that has something of a home by a way of its own.
struct Holder(Child);

impl Holder {
    /// As nobody, unless the way takes a privilege.
    fn start(fixture: &Fixture, way: &str) -> Holder {
        Holder::of(fixture, way, &fixture.home().join("users"))
    }

    fn of(fixture: &Fixture, way: &str, directory: &Path) -> Holder {
        let elsewhere = fixture.path("elsewhere");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/ways_in.py");
        let user = if way == "mount" { 0 } else { NOBODY };
        let mut command = Command::new("python3");
        command.arg(script).args([&user.to_string(), way]).arg(directory).arg(elsewhere);
        let alone = alone_with_the_mounts();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        drop(alone);
        assert_eq!(line, "has it\n", "{way}");
        Holder(child)
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

/// A volume that is not served, with a directory of nobody's in its home.
fn with_a_users_directory() -> Fixture {
    let fixture = Fixture::made();
    let users = [fixture.home().join("users"), fixture.path("elsewhere")];
    users.iter().for_each(|path| fs::create_dir(path).unwrap());
    for path in [fixture.path(""), fixture.home()].iter().chain(&users) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    users.iter().for_each(|path| chown(path, Some(NOBODY), Some(NOBODY)).unwrap());
    fixture
}

#[track_caller]
fn is_refused(ways: &[&str], words: &[&str]) {
    for way in ways {
        println!("{way}");
        let mut fixture = with_a_users_directory();
        let holder = Holder::start(&fixture, way);
        let who = format!("(pid {})", holder.0.id());
        let ended = fixture.try_to_serve();
        holder.end();
        let words: Vec<&str> = words.iter().copied().chain(["is in use", &*who]).collect();
        ended.unwrap_or_else(|| panic!("{way} is not refused")).expect(5, &words);
        fixture.serve();
        assert_eq!(fixture.stop(), Some(0));
    }
}

#[test]
fn who_has_a_directory_of_the_home_by_a_mount_that_is_nowhere_is_refused_by_name() {
    is_refused(&["clone"], &[]);
}

#[test]
fn an_overlay_of_a_directory_of_the_home_is_refused_with_who_has_it() {
    is_refused(&["overlay", "lower"], &["overlay", "users"]);
}

#[test]
fn a_thread_that_has_something_of_the_home_for_itself_is_refused_by_name() {
    is_refused(&["descriptors", "directory", "leader", "mapped", "mount"], &[]);
}

#[test]
fn who_has_something_of_the_home_whose_path_cannot_be_told_is_refused_by_name() {
    is_refused(&["deep directory", "deep place"], &[]);
}

/// Which directory a deep file is in nobody can tell, so this home is alone on its file system.
#[test]
fn who_has_a_file_on_the_file_system_of_the_home_whose_path_cannot_be_told_is_refused_by_name() {
    for way in ["deep file", "deep map"] {
        let mut fixture = Fixture::new();
        let image = fixture.path("image");
        fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let made = Command::new("mkfs.ext4").arg("-qF").arg(&image).status();
        assert!(made.unwrap().success());
        let mut device = Loop::over(&image);
        device.mount(fixture.path("disk"));
        let users = fixture.path("disk/home/users");
        fs::create_dir_all(&users).unwrap();
        chown(&users, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::set_permissions(fixture.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        let home = fixture.path("disk/home");
        fixture.reconfigure(&format!("{:?}", fixture.home()), &format!("{home:?}"));
        fixture.holdfast(&["volume", "make", NAME]).succeeded();
        let holder = Holder::of(&fixture, way, &users);
        let who = format!("(pid {})", holder.0.id());
        let ended = fixture.try_to_serve();
        holder.end();
        ended.unwrap_or_else(|| panic!("{way} is not refused")).expect(5, &["is in use", &who]);
        fixture.serve();
        assert_eq!(fixture.stop(), Some(0));
    }
}

#[test]
fn who_has_something_beside_the_home_in_a_mount_that_is_nowhere_has_nothing_of_it() {
    let mut fixture = with_a_users_directory();
    let beside = fixture.path("elsewhere");
    let holder = Holder::of(&fixture, "clone", &beside);
    fixture.serve();
    holder.end();
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn threads_that_share_what_their_process_has_keep_no_home_from_being_attached() {
    let mut fixture = with_a_users_directory();
    let holder = Holder::start(&fixture, "none");
    fixture.serve();
    holder.end();
    assert_eq!(fixture.stop(), Some(0));
}
