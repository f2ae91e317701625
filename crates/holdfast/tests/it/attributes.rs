//! Extended attributes, access control lists, exchanges and files without names, by programs.

use crate::fixture::{Ended, Fixture, NAME, kill};
use crate::seeds::{Random, for_seeds};
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const STEPS: &str = "400";

/// Runs the program of changes in a directory, or with no seed only has it tell what is there.
fn told(directory: &Path, seed: Option<u64>) -> String {
    let python = program(directory, seed.map(|seed| (seed, STEPS))).output();
    Ended::of(python.unwrap()).succeeded().out
}

/// The program of changes: a seed and a number of steps.
fn program(directory: &Path, changes: Option<(u64, &str)>) -> Command {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/attributes.py");
    let mut python = Command::new("/usr/bin/python3");
    python.arg(program).arg(directory);
    if let Some((seed, steps)) = changes {
        python.args([&seed.to_string(), steps]);
    }
    python
}

/// A directory of the same file system as the home. All may enter it and the mount.
fn bare(fixture: &Fixture) -> PathBuf {
    let bare = fixture.path("bare");
    fs::create_dir(&bare).unwrap();
    let directories = [fixture.path(""), bare.clone(), fixture.home()];
    for directory in directories {
        fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
    }
    bare
}

#[test]
fn programs_are_told_of_attributes_and_lists_what_the_home_would_tell_them() {
    for seed in 0..6 {
        let mut fixture = Fixture::made();
        let bare = bare(&fixture);
        fixture.serve();
        let replay = format!("seed {seed}: attributes.py MOUNT {seed} {STEPS}");
        assert_eq!(told(&fixture.mount(), Some(seed)), told(&bare, Some(seed)), "{replay}");
        for life in 1..=2 {
            let replay = format!("life {life}, {replay}");
            assert_eq!(told(&fixture.mount(), None), told(&bare, None), "{replay}");
            kill(fixture.front_end(), Signal::KILL);
            assert_eq!(told(&fixture.mount(), None), told(&bare, None), "after a kill, {replay}");
            fixture.holdfast(&["umount", NAME]).succeeded();
            assert_eq!(told(&fixture.home(), None), told(&bare, None), "given back, {replay}");
            fixture.holdfast(&["mount", NAME]).succeeded();
        }
    }
}

#[test]
fn programs_that_copy_everything_copy_attributes_and_lists() {
    let mut fixture = Fixture::made();
    let bare = bare(&fixture);
    let from = bare.join("from");
    fs::create_dir(&from).unwrap();
    told(&from, Some(3));
    fixture.serve();
    let copy = "set -e\n\
        cp -a \"$1/from\" \"$2/cp\"\n\
        mkdir \"$2/rsync\"; rsync -aXA \"$1/from/\" \"$2/rsync/\"\n\
        mkdir \"$2/tar\"\n\
        tar -C \"$1/from\" --xattrs --xattrs-include='*' --acls -cf - . |\n\
          tar -C \"$2/tar\" --xattrs --xattrs-include='*' --acls -xf -\n\
        cp /bin/true \"$2/can\"; setcap cap_net_raw+ep \"$2/can\"\n\
        getcap \"$2/can\" | grep -q cap_net_raw\n\
        setfacl -m u:1000:rw \"$2/can\"; getfacl -cn \"$2/can\" | grep -q user:1000:rw-\n\
        getcap \"$2/can\" | grep -q cap_net_raw\n\
        echo more >>\"$2/can\"; test -z \"$(getcap \"$2/can\")\"\n";
    let mut shell = Command::new("bash");
    shell.args(["-c", copy, "copy"]).arg(&bare).arg(fixture.mount());
    Ended::of(shell.output().unwrap()).succeeded();
    kill(fixture.front_end(), Signal::KILL);
    for root in [fixture.mount(), fixture.home()] {
        if root == fixture.home() {
            fixture.holdfast(&["umount", NAME]).succeeded();
        }
        for copied in ["cp", "rsync", "tar"] {
            assert_eq!(told(&root.join(copied), None), told(&from, None), "{copied} in {root:?}");
        }
    }
}

#[test]
fn whatever_is_done_to_a_file_leaves_the_set_id_bits_that_the_home_would_leave() {
    let mut fixture = Fixture::made();
    let bare = bare(&fixture);
    fixture.serve();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/privileges.py");
    let left_in = |directory: &Path| {
        let python = Command::new("/usr/bin/python3").arg(&program).arg(directory).output();
        Ended::of(python.unwrap()).succeeded().out
    };
    assert_eq!(left_in(&fixture.mount()), left_in(&bare));
}

/// Sets the times of a file to seconds before and behind those that 64 bits of nanoseconds count.
const YEARS: &str = "import os, sys\n\
    for seconds in (-2147483647, -1, 0, 9223372036, 9223372037, 15032385534):\n\
    \x20   name = f'{sys.argv[1]}/{seconds}'\n\
    \x20   open(name, 'x').close()\n\
    \x20   os.utime(name, ns=(seconds * 10**9 + 7, seconds * 10**9 + 8))\n";
const TELL_YEARS: &str = "import os, sys\n\
    for name in sorted(os.listdir(sys.argv[1])):\n\
    \x20   found = os.stat(f'{sys.argv[1]}/{name}')\n\
    \x20   print(name, found.st_atime_ns, found.st_mtime_ns)\n";

#[test]
fn a_time_of_any_year_that_the_home_keeps_is_kept() {
    let mut fixture = Fixture::made();
    let bare = bare(&fixture);
    fixture.serve();
    let python = |program: &str, directory: &Path| {
        let said = Command::new("/usr/bin/python3").args(["-c", program]).arg(directory).output();
        Ended::of(said.unwrap()).succeeded().out
    };
    python(YEARS, &bare);
    python(YEARS, &fixture.mount());
    let expected = python(TELL_YEARS, &bare);
    assert_eq!(python(TELL_YEARS, &fixture.mount()), expected);
    kill(fixture.front_end(), Signal::KILL);
    assert_eq!(python(TELL_YEARS, &fixture.mount()), expected, "after a kill");
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(python(TELL_YEARS, &fixture.home()), expected, "given back");
}

/// Runs the program of changes while front ends are killed. Returns what it said, and the kills.
fn told_under_kills(fixture: &Fixture, seed: u64, steps: &str) -> (String, u32) {
    let (mut random, mut kills) = (Random::new(seed), 0);
    let said = fixture.path("said");
    let mut python = program(&fixture.mount(), Some((seed, steps)));
    let mut python = python.stdout(fs::File::create(&said).unwrap()).spawn().unwrap();
    while python.try_wait().unwrap().is_none() {
        // One that dies before it serves is not replaced for ever.
        fixture.wait_for_state("serving");
        std::thread::sleep(Duration::from_millis(random.below(100)));
        kill(fixture.front_end(), Signal::KILL);
        kills += 1;
        // Now and then the next one dies, too, while it takes over.
        if random.below(3) == 0 {
            std::thread::sleep(Duration::from_millis(random.below(30)));
            let next = fixture.status()["front_end_pid"].as_i64();
            next.into_iter().for_each(|pid| kill(pid as i32, Signal::KILL));
        }
    }
    assert!(python.wait().unwrap().success());
    (fs::read_to_string(said).unwrap(), kills)
}

/// `HOLDFAST_SMALL_CHANGES` says how many; `make test-long` has it done with a million.
#[test]
fn programs_that_make_small_changes_do_not_notice_that_front_ends_are_killed() {
    let asked = std::env::var("HOLDFAST_SMALL_CHANGES").ok();
    let steps = asked.as_deref().unwrap_or("1500");
    for_seeds("programs_that_make_small_changes", 2, |seed| {
        let mut fixture = Fixture::made();
        fixture.watch_for(Duration::from_secs(600 + steps.parse::<u64>().unwrap() / 50));
        let bare = bare(&fixture);
        fixture.serve();
        let (said, kills) = told_under_kills(&fixture, seed, steps);
        let beside = program(&bare, Some((seed, steps))).output().unwrap();
        let expected = Ended::of(beside).succeeded().out;
        let first = said.lines().zip(expected.lines()).find(|(said, expected)| said != expected);
        assert!(said == expected, "seed {seed}, {kills} kills: {first:?}");
        println!("seed {seed}: {steps} changes, {kills} kills");
        fixture.holdfast(&["umount", NAME]).succeeded();
        assert_eq!(told(&fixture.home(), None), told(&bare, None), "seed {seed}, given back");
    });
}
