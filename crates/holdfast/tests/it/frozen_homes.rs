//! A home whose file system is frozen for a while, as for a backup or a snapshot below it: a small
//! ext4 of its own.

use crate::block::{Loop, run};
use crate::fixture::{Fixture, NAME, wait_until};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const FILES: u32 = 200;
const LOOKS: u32 = 100;

/// A mount point that is frozen until this goes.
struct Frozen<'p>(&'p Path);

impl<'p> Frozen<'p> {
    fn new(point: &'p Path) -> Frozen<'p> {
        run("fsfreeze", &["-f", point.to_str().unwrap()]);
        Frozen(point)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        run("fsfreeze", &["-u", self.0.to_str().unwrap()]);
    }
}

/// Looks for names that are not there, each once, and says so after each. Pauses give the cleaner
/// the time to get where it stands still.
fn look_for_nothing(directory: PathBuf) -> Receiver<u32> {
    let (says, answers) = channel();
    std::thread::spawn(move || {
        for look in 0..LOOKS {
            let found = fs::metadata(directory.join(format!("absent {look}")));
            assert_eq!(found.unwrap_err().kind(), ErrorKind::NotFound);
            if says.send(look).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    answers
}

#[test]
fn names_are_looked_up_while_the_home_is_frozen_and_has_names_to_come() {
    let mut fixture = Fixture::new();
    let (image, point) = (fixture.path("image"), fixture.path("small"));
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    run("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()]);
    let mut device = Loop::over(&image);
    device.mount(point.clone());
    let home = point.join("home");
    fs::create_dir(&home).unwrap();
    fixture.reconfigure(&format!("{:?}", fixture.home()), &format!("{home:?}"));
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    let directory = fixture.mount().join("d");
    fs::create_dir(&directory).unwrap();
    let told = || fixture.status().to_string();
    wait_until(|| home.join("d").exists(), told);
    let names = || (0..FILES).map(|number| format!("made {number}"));
    {
        let _frozen = Frozen::new(&point);
        names().for_each(|name| drop(File::create(directory.join(name)).unwrap()));
        let answers = look_for_nothing(directory.clone());
        for look in 0..LOOKS {
            let answer = answers.recv_timeout(Duration::from_secs(30));
            assert_eq!(answer, Ok(look), "it waits for the home: {}", told());
        }
        assert_eq!(fs::read_dir(home.join("d")).unwrap().count(), 0, "the home is not frozen");
    }
    wait_until(|| names().all(|name| home.join("d").join(name).exists()), told);
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.let_log_go();
}
