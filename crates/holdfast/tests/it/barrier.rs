//! Deaths at each step of bringing a log and its home together, and of giving the home back.
//!
//! Wherever a process dies: as long as the home can be entered it has everything, and one complete
//! unmount gives it the permissions that it had to users of the volume.

use crate::fixture::{Ended, Fixture, NAME, wait_until};
use crate::seeds::{Random, for_seeds};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

/// What users of the volume last gave to its root.
const SHOWN: u32 = 0o1777;

/// More steps than a command takes.
const STEPS_MAX: u64 = 60;

/// A volume that was killed with changes that its home lacks, and a copy of all of it.
struct Killed(Fixture);

impl Killed {
    /// The permissions may be among the changes.
    fn new(changes_mode: bool) -> Killed {
        let mut fixture = Fixture::made();
        let root = if changes_mode { fixture.mount() } else { fixture.home() };
        let shown = || fs::set_permissions(&root, fs::Permissions::from_mode(SHOWN)).unwrap();
        (!changes_mode).then(shown);
        fixture.serve();
        fs::write(fixture.mount().join("f"), "kept").unwrap();
        fs::File::open(fixture.mount().join("f")).unwrap().sync_all().unwrap();
        changes_mode.then(shown);
        fixture.kill_all();
        let killed = Killed(fixture);
        fs::create_dir(killed.0.path("kept")).unwrap();
        killed.parts().iter().for_each(|(part, kept)| copy(part, kept));
        killed
    }

    /// What the volume is made of, and where the copies are.
    fn parts(&self) -> [(std::path::PathBuf, std::path::PathBuf); 3] {
        let kept = |name: &str| self.0.path("kept").join(name);
        [
            (self.0.home(), kept("home")),
            (self.0.log(), kept("log")),
            (self.0.region.clone(), kept("region")),
        ]
    }

    /// The home stays the directory that it was: a log knows a copy from it.
    fn put_back(&self) {
        for (part, kept) in self.parts() {
            if part == self.0.home() {
                empty(&part);
                copy(&kept.join("."), &part);
                fs::set_permissions(&part, fs::metadata(&kept).unwrap().permissions()).unwrap();
                continue;
            }
            let _ = fs::remove_dir_all(&part).or_else(|_| fs::remove_file(&part));
            copy(&kept, &part);
        }
    }

    /// Runs a command that dies at that step, and looks what it left.
    fn dies_at(&self, step: u64, arguments: &[&str]) -> Ended {
        let mut command = self.0.command();
        command.args(arguments).env("HOLDFAST_TEST_DIES_AT", step.to_string());
        let ended = Ended::of(command.output().unwrap());
        assert!(matches!(ended.code, None | Some(0)), "step {step} of {arguments:?}: {ended:?}");
        let is_home = fs::read(self.0.home().join("f")).is_ok_and(|found| found == b"kept");
        let mode = self.mode();
        assert!(mode == 0 || is_home, "step {step} of {arguments:?} left mode {mode:o}");
        ended
    }

    fn mode(&self) -> u32 {
        fs::metadata(self.0.home()).unwrap().permissions().mode() & 0o7777
    }

    fn assert_given_back(&self, told: &str) {
        let ended = self.0.holdfast(&["umount", NAME]);
        assert_eq!(ended.code, Some(0), "{told}: {ended:?}");
        assert_eq!(fs::read(self.0.home().join("f")).unwrap(), b"kept", "{told}");
        assert_eq!(format!("{:o}", self.mode()), format!("{SHOWN:o}"), "{told}");
    }
}

fn empty(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        fs::remove_dir_all(&entry).or_else(|_| fs::remove_file(&entry)).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

const UMOUNT: [&str; 2] = ["umount", NAME];
const KEEP_LOG: [&str; 5] = ["volume", "accept", NAME, "--keep", "log"];
const THIS_HOME: [&str; 4] = ["volume", "accept", NAME, "--home"];

#[test]
fn a_home_is_given_back_whole_and_as_it_was_whatever_step_a_process_died_at() {
    for_seeds("a_home_is_given_back_whole", 2, |seed| {
        let (mut random, killed) = (Random::new(seed), Killed::new(seed % 2 == 0));
        let mut step = 1;
        loop {
            killed.put_back();
            let died = killed.dies_at(step, &UMOUNT).code.is_none();
            let command = match random.below(4) {
                0 => &KEEP_LOG[..],
                1 => &THIS_HOME[..],
                _ => &UMOUNT[..],
            };
            let again = 1 + random.below(step + 3);
            killed.dies_at(again, command);
            let told = format!("seed {seed}: dead at step {step}, and at {again} of {command:?}");
            killed.assert_given_back(&told);
            if !died {
                break;
            }
            step += 1;
            assert!(step < STEPS_MAX, "an unmount never ends");
        }
        assert!(step > 12, "no step is missed: {step}");
    });
}

#[test]
fn who_takes_the_log_of_a_barred_home_takes_its_permissions_too() {
    let killed = Killed::new(false);
    for command in [&KEEP_LOG[..], &THIS_HOME[..]] {
        killed.put_back();
        killed.0.holdfast(command).succeeded();
        killed.assert_given_back(&format!("{command:?}"));
    }
}

#[test]
fn a_barrier_that_is_taken_away_while_the_volume_is_served_is_put_back_and_told() {
    let mut fixture = Fixture::made();
    let home = fixture.home();
    fs::set_permissions(&home, fs::Permissions::from_mode(SHOWN)).unwrap();
    chown(&home, Some(65534), Some(65534)).unwrap();
    fixture.serve();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    for given in [0o755, 0o500] {
        fs::set_permissions(&home, fs::Permissions::from_mode(given)).unwrap();
        wait_until(|| mode(&home) == 0, || "the home can be entered".into());
        let words = ["the owner of", "user 65534", &format!("{given:o}"), "`holdfast umount v`"];
        let is_told = || {
            let told = fixture.holdfast(&["status"]);
            told.code == Some(7) && words.iter().all(|word| told.out.contains(word))
        };
        wait_until(is_told, || fixture.holdfast(&["status"]).out);
    }
    assert_eq!(fixture.keeper_log().matches("gave it the permissions").count(), 1);
    // What users of the volume see was never another.
    assert_eq!(mode(&fixture.mount()), SHOWN);
    fs::set_permissions(fixture.mount(), fs::Permissions::from_mode(0o711)).unwrap();
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(mode(&home), 0o711);
    fixture.holdfast(&["mount", NAME]).succeeded();
    fixture.holdfast(&["status"]).succeeded();
    assert_eq!(fixture.stop(), Some(0));
    assert_eq!(mode(&home), 0o711);
}
