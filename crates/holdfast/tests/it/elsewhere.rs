//! Mounts that somebody else keeps, or serves: who it is is said, and nothing of theirs is taken.

use crate::bound::{Bound, alone_with_the_mounts};
use crate::fixture::{Ended, Fixture, NAME, kill, wait_until, way};
use crate::slow_disk;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Signal;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that runs a script until it is let go; the script says "up" when it is ready.
struct Other(Child);

impl Other {
    fn begin(program: &str, arguments: &[&str], script: &str) -> Other {
        let mut command = Command::new(program);
        command.args(arguments).args(["sh", "-c", script]);
        let _alone = alone_with_the_mounts();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // The pipe stays: Python writes the end of the line after the word.
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 2]).unwrap();
        Other(child)
    }

    /// One whose mount namespace has what this fixture has mounted now, for good, and nothing of
    /// the tests beside this one.
    fn keeping(fixture: &Fixture, script: &str) -> Other {
        let mine = fixture.path("").display().to_string();
        let drop_others = "while read -r _ point kind _; do \
            case $kind$point in fuse*$0*) ;; fuse*) umount -l $point ;; esac; \
            done </proc/mounts";
        let whole = format!("{}; {script}", drop_others.replace("$0", &mine));
        Other::begin("unshare", &["--mount", "--propagation", "private"], &whole)
    }

    fn pid(&self) -> String {
        format!("(pid {})", self.0.id())
    }

    fn let_go(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Of somebody who has a copy of the table of mounts, and nothing open.
const STAYS: &str = "echo up; read word";

/// Of somebody who stands in the volume.
fn stays_in(fixture: &Fixture) -> String {
    format!("cd {}; {STAYS}", fixture.mount().display())
}

const COPY: &str = "1 process had a copy of the mount and nothing open: it sees an error there";

#[test]
fn what_another_mount_namespace_keeps_is_named_and_comes_home_when_it_is_let_go() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let mut other = Other::keeping(&fixture, &stays_in(&fixture));
    let point = fixture.mount();
    let words = ["unmounted here", &other.pid(), point.to_str().unwrap(), "umount v --force"];
    // Whoever asks a second time hears the same.
    fixture.holdfast(&["umount", NAME]).expect(5, &words);
    fixture.holdfast(&["umount", NAME]).expect(5, &words);
    assert_eq!(fixture.status()["state"], "detaching", "{}", fixture.status());
    other.let_go();
    fixture.wait_for_state("detached");
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

#[test]
fn who_only_passes_by_is_waited_for() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let _other = Other::keeping(&fixture, "echo up; exec sleep 1");
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

#[test]
fn who_keeps_it_elsewhere_is_cut_off_by_force_as_the_message_says() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let script = format!("cd {}; echo x > f; echo up; read word", fixture.mount().display());
    let _other = Other::keeping(&fixture, &script);
    fixture.holdfast(&["umount", NAME]).expect(5, &["`holdfast umount v --force`"]);
    fixture.holdfast(&["umount", NAME, "--force"]).succeeded();
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x\n");
    // At once, too.
    fixture.let_log_go();
    fixture.take_up();
    let _second = Other::keeping(&fixture, &script);
    fixture.holdfast(&["umount", NAME, "--force"]).succeeded();
    fixture.assert_given_back();
}

#[test]
fn without_a_keeper_who_keeps_it_elsewhere_is_named_and_cut_off_too() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let other = Other::keeping(&fixture, &stays_in(&fixture));
    fixture.kill_keeper();
    let words = ["unmounted here", &other.pid(), "`holdfast umount v --force`"];
    fixture.holdfast(&["umount", NAME]).expect(5, &words);
    fixture.holdfast(&["umount", NAME]).expect(5, &words);
    fixture.holdfast(&["umount", NAME, "--force"]).succeeded();
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

/// As a machine that is off: whoever has the disk still, and wherever, has nothing.
#[test]
fn a_power_cut_of_a_slow_disk_waits_for_nobody() {
    let fixture = Fixture::new();
    let mortal = ["--power-cut-seed", "1"];
    let mut disk = slow_disk::command(&fixture.home(), &fixture.mount(), &mortal).spawn().unwrap();
    wait_until(|| fixture.is_mounted(), || "never mounted".to_owned());
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let _others = [STAYS.to_owned(), stays_in(&fixture)].map(|it| Other::keeping(&fixture, &it));
    kill(disk.id().cast_signed(), Signal::USR1);
    assert_eq!(disk.wait().unwrap().code(), Some(0));
    assert!(!fixture.is_mounted());
}

#[test]
fn a_second_place_and_an_open_file_are_named_too() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let second = fixture.path("second");
    let bound = Bound::at(second.clone(), &fixture.mount());
    let ended = fixture.holdfast(&["umount", NAME]);
    let open = fs::File::create(second.join("f")).unwrap();
    drop(bound);
    ended.expect(5, &["also mounted at", second.to_str().unwrap()]);
    let me = format!("(pid {})", std::process::id());
    fixture.holdfast(&["umount", NAME]).expect(5, &[&me, "open"]);
    drop(open);
    fixture.wait_for_state("detached");
    assert!(fixture.home().join("f").exists());
}

#[test]
fn a_keeper_that_ends_names_who_keeps_a_mount_elsewhere_and_a_second_signal_cuts_them_off() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let other = Other::keeping(&fixture, &stays_in(&fixture));
    kill(fixture.keeper_pid(), Signal::TERM);
    let is_named = || fixture.keeper_log().contains(&other.pid());
    wait_until(is_named, || fixture.keeper_log());
    assert_eq!(fixture.stop(), Some(0), "{}", fixture.keeper_log());
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

/// What a stranger can do who may not even enter the volume. He copies nothing of the tests beside
/// this one: he could not unmount it again.
fn stranger_with_a_copy(fixture: &Fixture) -> Other {
    let stranger = "exec setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Urm sh -c";
    Other::keeping(fixture, &format!("{stranger} '{STAYS}'"))
}

#[test]
fn a_strangers_copy_of_the_mount_keeps_no_volume_from_being_given_back_and_mounted_again() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let _stranger = stranger_with_a_copy(&fixture);
    let given_back = fixture.holdfast(&["umount", NAME]).succeeded();
    assert!(given_back.out.contains("a copy of the mount and nothing open"), "{given_back:?}");
    fixture.assert_given_back();
    fixture.holdfast(&["mount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"x");
    // Unmounted behind the keeper's back.
    let _second = stranger_with_a_copy(&fixture);
    unmount(fixture.mount(), UnmountFlags::empty()).unwrap();
    fixture.holdfast(&["mount", NAME]).expect(5, &["`holdfast umount v`, then `holdfast mount v`"]);
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.holdfast(&["mount", NAME]).succeeded();
    let _third = stranger_with_a_copy(&fixture);
    assert_eq!(fixture.stop(), Some(0), "{}", fixture.keeper_log());
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

#[test]
fn without_a_keeper_a_copy_of_the_mount_keeps_nothing_either() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let _other = Other::keeping(&fixture, STAYS);
    fixture.kill_keeper();
    let given_back = fixture.holdfast(&["umount", NAME]).succeeded();
    assert!(given_back.out.contains(COPY), "{given_back:?}");
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

#[test]
fn who_uses_it_elsewhere_is_named_with_remedies_that_work_in_their_order() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let point = fixture.mount().display().to_string();
    let mapped = format!(
        "python3 -c 'import mmap,os,sys; f = os.open(\"{point}/m\", 66); os.truncate(f, 4096); \
         m = mmap.mmap(f, 4096); os.close(f); print(\"up\", flush=True); sys.stdin.read()'"
    );
    let ways = [
        stays_in(&fixture),
        format!("exec 3> {point}/f; {STAYS}"),
        format!("mount --bind {point} /mnt; {STAYS}"),
        mapped,
    ];
    for way in ways {
        let mut other = Other::keeping(&fixture, &way);
        fixture.holdfast(&["umount", NAME]).expect(5, &["(pid ", "`holdfast umount v --force`"]);
        let advice =
            ["stop them, and then `holdfast umount v`, then `holdfast mount v`", "--force"];
        fixture.holdfast(&["mount", NAME]).expect(5, &advice);
        other.let_go();
        fixture.wait_for_state("detached");
        fixture.holdfast(&["mount", NAME]).succeeded();
    }
    // Cut off instead, as is said, too.
    let _other = Other::keeping(&fixture, &stays_in(&fixture));
    fixture.holdfast(&["umount", NAME]).expect(5, &[]);
    fixture.holdfast(&["umount", NAME, "--force"]).succeeded();
    fixture.holdfast(&["mount", NAME]).succeeded();
    // Who lets go of all but the copy gives it back, although nobody asks again.
    let script = format!("cd {point}; echo up; sleep 5; cd /; read word");
    let _third = Other::keeping(&fixture, &script);
    fixture.holdfast(&["umount", NAME]).expect(5, &["unmounted here"]);
    fixture.wait_for_state("detached");
    fixture.assert_given_back();
}

/// A configuration with everything of its own but the name and the mount point.
fn stranger() -> Fixture {
    let fixture = Fixture::new();
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture
}

fn at_the_point_of(fixture: &Fixture, other: &Fixture) {
    let (own, taken) = (format!("{:?}", fixture.mount()), format!("{:?}", other.mount()));
    fixture.reconfigure(&own, &taken);
}

#[test]
fn a_mount_that_another_keeper_serves_is_neither_taken_over_nor_unmounted() {
    let mut first = Fixture::made();
    first.serve();
    fs::write(first.mount().join("f"), "x").unwrap();
    let second = stranger();
    at_the_point_of(&second, &first);
    let pid = format!("(pid {})", first.front_end());
    let point = first.mount();
    let refused = |ended: Ended| ended.expect(5, &[&pid, point.to_str().unwrap()]);
    refused(second.holdfast(&["serve"]));
    refused(second.holdfast(&["umount", NAME]));
    refused(second.holdfast(&["umount", NAME, "--force"]));
    assert_eq!(first.status()["state"], "serving");
    assert_eq!(fs::read(first.mount().join("f")).unwrap(), b"x");
    // Without its keeper it is served all the same.
    first.kill_keeper();
    refused(second.holdfast(&["serve"]));
    refused(second.holdfast(&["umount", NAME]));
    assert_eq!(fs::read(first.mount().join("f")).unwrap(), b"x");
    first.holdfast(&["umount", NAME]).succeeded();
    // As the message says: by the configuration that mounted it. Then the place is free.
    let mut second = second;
    second.serve();
    assert_eq!(second.stop(), Some(0));
}

#[test]
fn a_mount_whose_front_end_and_keeper_are_dead_is_taken_over_although_a_namespace_keeps_it() {
    if way() == "queue" {
        return;
    }
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let _other = Other::keeping(&fixture, STAYS);
    let front_end = fixture.front_end();
    fixture.kill_keeper();
    kill(front_end, Signal::KILL);
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"x");
    assert_eq!(fixture.stop(), Some(0));
    fixture.assert_given_back();
}

#[test]
fn names_of_processes_are_shown_and_not_obeyed_by_a_terminal() {
    let mut fixture = Fixture::made();
    fixture.serve();
    const SHOWN: &str = r"\u001b]0;x\u0007\x9b\u000az";
    let name = r"printf '\033]0;x\007\233\nz' > /proc/$$/comm";
    let script = |folder: &Path| format!("cd {}; {name}; {STAYS}", folder.display());
    let mut other = Other::begin("env", &[], &script(&fixture.mount()));
    let ended = fixture.holdfast(&["umount", NAME]);
    ended.expect(5, &[&format!("{SHOWN} {}", other.pid())]);
    assert!(!ended.err.contains(['\x1b', '\x07']), "{ended:?}");
    other.let_go();
    let mut other = Other::keeping(&fixture, &script(&fixture.mount()));
    let ended = fixture.holdfast(&["umount", NAME]);
    ended.expect(5, &[SHOWN]);
    assert!(!ended.err.contains(['\x1b', '\x07']), "{ended:?}");
    other.let_go();
    fixture.wait_for_state("detached");
    // Whoever uses the home itself.
    let _other = Other::begin("env", &[], &script(&fixture.home()));
    let ended = fixture.holdfast(&["mount", NAME]);
    ended.expect(5, &["is in use by", SHOWN]);
    assert!(!ended.err.contains(['\x1b', '\x07']), "{ended:?}");
}
