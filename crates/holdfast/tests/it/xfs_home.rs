//! A home on XFS, which shows each access control list by a second name, and takes an exchange for
//! a change of the directories that change places.

use crate::block::Loop;
use crate::fixture::{Fixture, NAME, kill};
use rustix::fs::{AtFlags, CWD, RenameFlags, Timestamps, renameat_with, utimensat};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output().unwrap();
    assert!(done.status.success(), "{program} {arguments:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// A volume, not made yet, whose home is on XFS; and its home.
fn on_xfs() -> (Fixture, Loop, PathBuf) {
    let fixture = Fixture::new();
    let image = fixture.path("image");
    fs::File::create(&image).unwrap().set_len(400 << 20).unwrap();
    run("mkfs.xfs", &["-q", image.to_str().unwrap()]);
    let mut device = Loop::over(&image);
    device.mount_as("xfs", fixture.path("disk"));
    let home = fixture.path("disk").join("home");
    fs::create_dir(&home).unwrap();
    fixture.reconfigure(&format!("{:?}", fixture.home()), &format!("{home:?}"));
    (fixture, device, home)
}

fn lists(below: &Path) -> String {
    let names = ["f", "g", "d", "d/z"].map(|name| below.join(name));
    let texts = names.map(|name| run("getfacl", &["-pcn", name.to_str().unwrap()]));
    texts.concat()
}

#[test]
fn a_list_that_is_revoked_stays_revoked_in_the_home_whoever_dies() {
    for is_killed in [false, true] {
        let (mut fixture, device, home) = on_xfs();
        let path = |below: &Path, name: &str| below.join(name).to_str().unwrap().to_owned();
        fs::create_dir(home.join("d")).unwrap();
        for name in ["f", "g", "d/z"] {
            fs::write(home.join(name), "secret").unwrap();
            run("setfacl", &["-m", "u:1000:rw", &path(&home, name)]);
        }
        run("setfacl", &["-m", "u:1000:rwx,d:u:1000:rwx", &path(&home, "d")]);
        fixture.holdfast(&["volume", "make", NAME]).succeeded();
        fixture.serve();
        let mount = fixture.mount();
        let hidden = run("getfattr", &["-m-", &path(&mount, "f")]);
        assert!(!hidden.contains("SGI_ACL"), "{hidden}");
        run("setfacl", &["-m", "u:1000:---,u:1001:rw", &path(&mount, "f")]);
        run("setfacl", &["-b", &path(&mount, "g")]);
        if is_killed {
            kill(fixture.front_end(), Signal::KILL);
        }
        run("setfacl", &["-b", "-k", &path(&mount, "d")]);
        run("chmod", &["600", &path(&mount, "d/z")]);
        let shown = lists(&mount);
        assert_eq!(fixture.stop(), Some(0), "{}", fixture.keeper_log());
        assert_eq!(lists(&home), shown, "killed: {is_killed}");
        drop(device);
    }
}

#[test]
fn directories_that_changed_places_keep_the_times_that_the_volume_showed() {
    let (mut fixture, device, home) = on_xfs();
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    let mount = fixture.mount();
    for name in ["a/one", "b/two"] {
        fs::create_dir_all(mount.join(name)).unwrap();
        let then = rustix::fs::Timespec { tv_sec: 978_307_200, tv_nsec: 0 };
        let times = Timestamps { last_access: then, last_modification: then };
        utimensat(CWD, mount.join(name), &times, AtFlags::empty()).unwrap();
    }
    let (one, two) = (mount.join("a/one"), mount.join("b/two"));
    renameat_with(CWD, &one, CWD, &two, RenameFlags::EXCHANGE).unwrap();
    let times = |below: &Path| {
        ["a/one", "b/two"].map(|name| fs::metadata(below.join(name)).unwrap().mtime())
    };
    let shown = times(&mount);
    assert_eq!(fixture.stop(), Some(0));
    assert_eq!(times(&home), shown);
    drop(device);
}
