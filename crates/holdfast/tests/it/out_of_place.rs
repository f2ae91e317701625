//! A mount that is not where programs look for it, although its volume is served.

use crate::bound::alone_with_the_mounts;
use crate::fixture::{Ended, Fixture, NAME, wait_until};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, mount_move, unmount,
};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A volume that is served, and a program that has its file `f` open.
fn used() -> (Fixture, Child) {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let file = fs::File::open(fixture.mount().join("f")).unwrap();
    let mut command = Command::new("sleep");
    let user = command.arg("1000").stdin(Stdio::from(file)).spawn().unwrap();
    (fixture, user)
}

/// Everybody who asks hears these words, and has an exit code that says so.
#[track_caller]
fn tells(fixture: &Fixture, words: &[&str]) {
    assert_eq!(fixture.status()["state"], "out of place");
    let status = fixture.holdfast(&["status"]);
    assert_ne!(status.code, Some(0));
    for word in words {
        assert!(status.out.contains(word), "no {word:?} in {status:?}");
    }
    fixture.holdfast(&["wait", NAME]).expect(5, words);
    fixture.holdfast(&["mount", NAME]).expect(5, words);
}

#[track_caller]
fn is_well(fixture: &Fixture, point: &Path) {
    fixture.holdfast(&["status"]).succeeded();
    fixture.holdfast(&["wait", NAME]).succeeded();
    assert_eq!(fs::read(point.join("f")).unwrap(), b"x");
}

#[test]
fn a_mount_that_somebody_unmounted_while_it_was_used_is_told_and_comes_back() {
    let (mut fixture, mut user) = used();
    unmount(fixture.mount(), UnmountFlags::DETACH).unwrap();
    let who = format!("sleep (pid {})", user.id());
    let again = format!("`holdfast umount {NAME}`, then `holdfast mount {NAME}`");
    tells(&fixture, &["is unmounted at", &who, &again]);
    fixture.holdfast(&["umount", NAME]).expect(5, &[&who, "stop them", "--force"]);
    user.kill().unwrap();
    user.wait().unwrap();
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.holdfast(&["mount", NAME]).succeeded();
    is_well(&fixture, &fixture.mount());
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn a_mount_that_was_moved_is_told_with_its_place_and_comes_back() {
    let mut fixture = Fixture::made();
    // What is mounted in something shared cannot be moved.
    let place = fixture.path("private");
    let (point, moved) = (place.join("mount"), place.join("moved"));
    fs::create_dir(&place).unwrap();
    mount("none", &place, "tmpfs", MountFlags::empty(), None).unwrap();
    mount_change(&place, MountPropagationFlags::PRIVATE).unwrap();
    fs::create_dir(&point).unwrap();
    fs::create_dir(&moved).unwrap();
    fixture.reconfigure(&format!("mount = {:?}", fixture.mount()), &format!("mount = {point:?}"));
    fixture.serve();
    fs::write(point.join("f"), "x").unwrap();
    mount_move(&point, &moved).unwrap();
    tells(&fixture, &[moved.to_str().unwrap(), point.to_str().unwrap(), "holdfast umount"]);
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.holdfast(&["mount", NAME]).succeeded();
    is_well(&fixture, &point);
    assert_eq!(fixture.stop(), Some(0));
    unmount(&place, UnmountFlags::DETACH).unwrap();
}

#[test]
fn what_is_mounted_over_a_mount_is_named_by_everybody() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let point = fixture.mount();
    fs::write(point.join("f"), "x").unwrap();
    mount("none", &point, "tmpfs", MountFlags::empty(), None).unwrap();
    let remedy = format!("`umount {}`", point.display());
    let words = ["type tmpfs is mounted over it", &remedy];
    tells(&fixture, &words);
    for arguments in [&["umount", NAME][..], &["umount", NAME, "--force"]] {
        fixture.holdfast(arguments).expect(5, &words);
    }
    unmount(&point, UnmountFlags::empty()).unwrap();
    wait_until(|| fixture.status()["state"] == "serving", || fixture.status().to_string());
    is_well(&fixture, &point);
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn nobody_is_told_to_go_on_who_waits_for_a_volume_at_another_place_than_it_is_served() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let text = fixture.config_text();
    for (key, place) in [("home", fixture.home()), ("mount", fixture.mount())] {
        let other = fixture.path("elsewhere");
        fixture.configure(&text.replace(&format!("{place:?}"), &format!("{other:?}")));
        let other = format!("another {key} for it by now");
        fixture.holdfast(&["wait", NAME]).expect(5, &[&other, "put back", "`holdfast umount v`"]);
    }
    fixture.configure(&text);
    fixture.holdfast(&["wait", NAME]).succeeded();
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn a_home_that_is_moved_while_it_is_served_is_told_with_its_place_until_it_is_back() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "1").unwrap();
    let (home, away) = (fixture.home(), fixture.path("away"));
    for is_back in [true, false] {
        fs::rename(&home, &away).unwrap();
        fs::create_dir(&home).unwrap();
        let words = ["its home is not at", &away.display().to_string(), "move it back"];
        let is_told = || {
            let told = fixture.holdfast(&["status"]);
            told.code == Some(7) && words.iter().all(|word| told.out.contains(word))
        };
        wait_until(is_told, || fixture.holdfast(&["status"]).out);
        if is_back {
            fs::remove_dir(&home).unwrap();
            fs::rename(&away, &home).unwrap();
            let is_well = || fixture.holdfast(&["status"]).code == Some(0);
            wait_until(is_well, || fixture.holdfast(&["status"]).out);
        }
    }
    let ended = fixture.holdfast(&["umount", NAME]).succeeded();
    let told = [&away.display().to_string(), "was moved while it was served"];
    assert!(told.iter().all(|words| ended.out.contains(words)), "{ended:?}");
    assert_eq!(fs::read_to_string(away.join("f")).unwrap(), "1");
    assert!(!home.join("f").exists());
    fs::remove_dir(&home).unwrap();
    fs::rename(&away, &home).unwrap();
    assert_eq!(fixture.stop(), Some(0));
}

/// Starts a keeper in a mount namespace of its own, which has nothing of the tests beside this one.
fn serve_apart(fixture: &mut Fixture) {
    let _alone = alone_with_the_mounts();
    let script = format!(
        "while read -r _ point kind _; do case $kind in fuse*) umount -l $point ;; esac; done \
         </proc/mounts; exec {} \"$@\"",
        env!("CARGO_BIN_EXE_holdfast")
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script, "holdfast"]);
    for (key, value) in fixture.command().get_envs() {
        command.env(key, value.unwrap_or_default());
    }
    fixture.begin_as(command);
    fixture.wait_for_state("out of place");
}

#[test]
fn a_volume_that_is_mounted_in_the_keepers_namespace_alone_is_served_to_nobody_here() {
    let mut fixture = Fixture::made();
    serve_apart(&mut fixture);
    let (keeper, point) = (fixture.keeper_pid(), fixture.mount().display().to_string());
    let enter = format!("`nsenter -t {keeper} -m`");
    let words = ["in another mount namespace", &format!("(process {keeper})"), &point, &enter];
    tells(&fixture, &words);
    // As the remedy says.
    let inside = |arguments: &[&str]| {
        let command = fixture.command();
        let mut entered = Command::new("nsenter");
        entered.args(["-t", &keeper.to_string(), "-m", env!("CARGO_BIN_EXE_holdfast")]);
        for (key, value) in command.get_envs() {
            entered.env(key, value.unwrap_or_default());
        }
        Ended::of(entered.args(arguments).output().unwrap())
    };
    inside(&["wait", NAME]).succeeded();
    inside(&["status"]).succeeded();
    fs::write(fixture.mount().join("beside"), "x").unwrap();
    let ended = fixture.holdfast(&["umount", NAME]).succeeded();
    for word in ["in another mount namespace", "in that directory, not in the home", &point] {
        assert!(ended.out.contains(word), "no {word:?} in {ended:?}");
    }
    fs::remove_file(fixture.mount().join("beside")).unwrap();
    fixture.holdfast(&["mount", NAME]).expect(5, &words);
    assert_eq!(fixture.stop(), Some(0));
    fixture.serve();
    fixture.holdfast(&["wait", NAME]).succeeded();
    assert_eq!(fixture.stop(), Some(0));
}
