//! A copy of a home that lacks what the log gave back, and a home that its log does not know, are
//! refused: what was acknowledged is there, or somebody is told what is not.

use crate::block::Loop;
use crate::fixture::{Fixture, NAME, wait_until};
use crate::seeds::{Random, for_seeds};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

const SEEDS: u64 = 3;
const STEPS: u32 = 10;

fn write_synced(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::File::open(path).unwrap().sync_all().unwrap();
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

fn wait_until_home(fixture: &Fixture, home: &Path, (name, text): (&str, &str)) {
    let has = || fs::read_to_string(home.join(name)).is_ok_and(|it| it == text);
    wait_until(has, || fixture.status().to_string());
}

/// Changes of a volume, and copies of its home from between them.
struct World {
    fixture: Fixture,
    expected: BTreeMap<String, String>,
    copies: u32,
}

impl World {
    fn step(&mut self, random: &mut Random) -> String {
        match random.below(8) {
            0..4 => {
                let (name, text) = (random.below(6).to_string(), random.below(1 << 30).to_string());
                write_synced(&self.fixture.mount().join(&name), &text);
                let told = format!("write {name}");
                self.expected.insert(name, text);
                told
            }
            4 => {
                for (name, text) in &self.expected {
                    wait_until_home(&self.fixture, &self.fixture.home(), (name, text));
                }
                "wait until it is home".into()
            }
            5 => {
                sleep(Duration::from_millis(random.below(400)));
                "wait".into()
            }
            6 => {
                copy(&self.fixture.home(), &self.fixture.path(&format!("copy-{}", self.copies)));
                self.copies += 1;
                "copy the home".into()
            }
            _ => {
                self.fixture.kill_all();
                self.fixture.serve();
                self.check();
                "kill all, serve".into()
            }
        }
    }

    fn check(&self) {
        for (name, text) in &self.expected {
            let found = fs::read_to_string(self.fixture.mount().join(name));
            assert_eq!(found.unwrap(), *text, "{name}");
        }
    }

    /// Puts a copy in the place of the home: it is refused, or nothing is missing.
    fn try_copy(&mut self, number: u64) -> &'static str {
        self.fixture.kill_all();
        let (home, right) = (self.fixture.home(), self.fixture.path("right"));
        fs::rename(&home, &right).unwrap();
        fs::rename(self.fixture.path(&format!("copy-{number}")), &home).unwrap();
        match self.fixture.try_to_serve() {
            None => {
                self.check();
                "taken"
            }
            Some(refused) => {
                refused.expect(6, &["copy of the home", "back"]);
                self.fixture.holdfast(&["umount", NAME]).expect(6, &["copy of the home"]);
                self.fixture.holdfast(&["volume", "check", NAME]).expect(6, &["copy of the home"]);
                fs::remove_dir_all(&home).unwrap();
                fs::rename(&right, &home).unwrap();
                self.fixture.serve();
                self.check();
                "refused"
            }
        }
    }
}

#[test]
fn a_copy_of_a_home_that_lacks_what_the_log_gave_back_is_refused_and_the_newest_is_whole() {
    for_seeds("a_copy_of_a_home_that_lacks", SEEDS, |seed| {
        let mut random = Random::new(seed);
        let (fixture, expected, copies) = (Fixture::made(), BTreeMap::new(), 0);
        let mut world = World { fixture, expected, copies };
        world.fixture.serve();
        let mut done: Vec<String> = (0..STEPS).map(|_| world.step(&mut random)).collect();
        if world.copies > 0 {
            let tried = world.try_copy(random.below(world.copies.into()));
            done.push(tried.into());
        }
        println!("seed {seed}: {done:?}");
        assert_eq!(world.fixture.stop(), Some(0), "{}", world.fixture.keeper_log());
        for (name, text) in &world.expected {
            let found = fs::read_to_string(world.fixture.home().join(name));
            assert_eq!(found.unwrap(), *text, "{name} at home");
        }
    });
}

/// A home in a file system of its own, of which copies are made as a whole.
fn on_a_disk(fixture: &mut Fixture, image: &Path) -> (Loop, PathBuf) {
    let device = mounted(image, &fixture.path("disk"));
    let home = fixture.path("disk").join("home");
    fs::create_dir(&home).unwrap();
    fixture.reconfigure(&format!("{:?}", fixture.home()), &format!("{home:?}"));
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    (device, home)
}

fn mounted(image: &Path, point: &Path) -> Loop {
    let mut device = Loop::over(image);
    device.mount(point.to_owned());
    device
}

fn run(program: &str, arguments: &[&Path]) {
    assert!(Command::new(program).args(arguments).status().unwrap().success(), "{program}");
}

#[test]
fn a_file_system_from_before_changes_came_home_is_refused_in_the_same_attachment() {
    for has_come_home_before in [false, true] {
        let mut fixture = Fixture::new();
        let (image, old) = (fixture.path("image"), fixture.path("image.old"));
        fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        run("mkfs.ext4", &[Path::new("-qF"), &image]);
        let (device, home) = on_a_disk(&mut fixture, &image);
        fixture.serve();
        if has_come_home_before {
            write_synced(&fixture.mount().join("f"), "older");
            wait_until_home(&fixture, &home, ("f", "older"));
        }
        run("sync", &[Path::new("-f"), &home]);
        run("cp", &[&image, &old]);
        write_synced(&fixture.mount().join("f"), "kept");
        wait_until_home(&fixture, &home, ("f", "kept"));
        // What comes home next does so once the log has given back what came before it.
        write_synced(&fixture.mount().join("next"), "next");
        wait_until_home(&fixture, &home, ("next", "next"));
        fixture.kill_all();
        drop(device);
        let copy = mounted(&old, &fixture.path("disk"));
        let refused = fixture.try_to_serve().expect("it is refused");
        refused.expect(6, &["older copy of the home", "put the newest one back"]);
        fixture.holdfast(&["volume", "check", NAME]).expect(6, &["older copy of the home"]);
        // Somebody may say all the same that this is the home.
        fixture.holdfast(&["volume", "accept", NAME, "--home"]).succeeded();
        fixture.serve();
        write_synced(&fixture.mount().join("g"), "newer");
        assert_eq!(fixture.stop(), Some(0));
        assert_eq!(fs::read(home.join("g")).unwrap(), b"newer");
        drop(copy);
    }
}

#[test]
fn a_copy_of_a_home_is_kept_when_somebody_says_so() {
    let mut fixture = Fixture::made();
    fixture.serve();
    write_synced(&fixture.mount().join("f"), "1");
    wait_until_home(&fixture, &fixture.home(), ("f", "1"));
    copy(&fixture.home(), &fixture.path("copy"));
    fixture.kill_all();
    fs::rename(fixture.home(), fixture.path("right")).unwrap();
    fs::rename(fixture.path("copy"), fixture.home()).unwrap();
    let words = ["made file by file", "accept v --keep home"];
    fixture.try_to_serve().expect("it is refused").expect(6, &words);
    fixture.holdfast(&["volume", "accept", NAME, "--keep", "home"]).succeeded();
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"1");
    assert_eq!(fixture.stop(), Some(0));
}

/// A volume with something in its home, and with something that is in memory alone; everybody is
/// dead, and its log is gone.
fn without_log() -> Fixture {
    let mut fixture = Fixture::made();
    fixture.serve();
    write_synced(&fixture.mount().join("older"), "1");
    assert_eq!(fixture.stop(), Some(0));
    fixture.serve();
    fixture.kill_all_after(|mount| write_synced(&mount.join("newer"), "2"));
    fs::rename(fixture.log(), fixture.path("log.away")).unwrap();
    fixture
}

#[test]
fn a_log_that_is_made_again_knows_its_home_and_is_applied_to_no_other() {
    for stranger in [None, Some("theirs")] {
        let mut fixture = without_log();
        fs::rename(fixture.home(), fixture.path("right")).unwrap();
        fs::create_dir(fixture.home()).unwrap();
        stranger.into_iter().for_each(|it| fs::write(fixture.home().join(it), "theirs").unwrap());
        let words = ["is not the home that its log knows", "put it back"];
        fixture.holdfast(&["volume", "mend", NAME]).expect(6, &words);
        fixture.holdfast(&["umount", NAME]).expect(6, &words);
        fixture.try_to_serve().expect("it is refused").expect(6, &words);
        assert!(!fixture.home().join("newer").exists(), "nothing was applied");
        fs::remove_dir_all(fixture.home()).unwrap();
        fs::rename(fixture.path("right"), fixture.home()).unwrap();
        fixture.serve();
        for (name, text) in [("older", "1"), ("newer", "2")] {
            assert_eq!(fs::read_to_string(fixture.mount().join(name)).unwrap(), text);
        }
        assert_eq!(fixture.stop(), Some(0), "{}", fixture.keeper_log());
    }
}

#[test]
fn a_log_is_not_made_again_beside_whoever_has_its_memory() {
    let mut fixture = Fixture::made();
    fixture.serve();
    write_synced(&fixture.mount().join("f"), "1");
    let config = fixture.config_text();
    let other = config
        .replace(&*fixture.log().to_string_lossy(), &fixture.path("other-log").to_string_lossy())
        .replace(&*fixture.home().to_string_lossy(), &fixture.path("other").to_string_lossy())
        .replace(&*fixture.mount().to_string_lossy(), &fixture.path("there").to_string_lossy());
    fixture.configure(&other);
    ["other", "there"].iter().for_each(|it| fs::create_dir(fixture.path(it)).unwrap());
    let refused = fixture.holdfast(&["volume", "mend", NAME]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(!fixture.path("other-log").join("catalogue").exists(), "no second log was made");
    fixture.configure(&config);
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn an_earlier_copy_of_a_home_is_served_once_its_log_has_come_home_as_a_whole() {
    let mut fixture = Fixture::made();
    fixture.serve();
    write_synced(&fixture.mount().join("f"), "1");
    wait_until_home(&fixture, &fixture.home(), ("f", "1"));
    copy(&fixture.home(), &fixture.path("backup"));
    write_synced(&fixture.mount().join("f"), "2");
    wait_until_home(&fixture, &fixture.home(), ("f", "2"));
    assert_eq!(fixture.stop(), Some(0));
    // Over what is there, as a restore does it.
    copy(&fixture.path("backup/."), &fixture.home());
    fixture.holdfast(&["volume", "check", NAME]).succeeded();
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"1");
    write_synced(&fixture.mount().join("g"), "3");
    fixture.kill_all();
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("g")).unwrap(), b"3");
    assert_eq!(fixture.stop(), Some(0));
}

/// Home and log are copied when a part of the log is at home, and used with new memory.
#[test]
fn a_copied_home_that_is_accepted_once_is_whole_at_the_next_attachment() {
    let mut fixture = Fixture::made();
    fixture.reconfigure("[\"process\"]", "[\"process\", \"os\", \"power\"]");
    fixture.serve();
    for number in 0..40 {
        write_synced(&fixture.mount().join(number.to_string()), "before");
    }
    wait_until_home(&fixture, &fixture.home(), ("39", "before"));
    fixture.kill_all_after(|mount| write_synced(&mount.join("after"), "2"));
    for (from, to) in [(fixture.home(), "home-copy"), (fixture.log(), "log-copy")] {
        copy(&from, &fixture.path(to));
        fs::remove_dir_all(&from).unwrap();
        fs::rename(fixture.path(to), &from).unwrap();
    }
    fs::remove_file(&fixture.region).unwrap();
    fixture.holdfast(&["volume", "accept", NAME, "--memory-lost"]).succeeded();
    fixture.holdfast(&["volume", "accept", NAME, "--home"]).succeeded();
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("39")).unwrap(), b"before");
    assert_eq!(fs::read(fixture.home().join("after")).unwrap(), b"2");
}

/// A copy of the whole file system, and one of the log, are as good as the volume that they were
/// made of: each goes on by itself.
#[test]
fn a_home_that_a_copy_of_the_log_has_served_is_refused_by_the_log() {
    let mut fixture = Fixture::new();
    fixture.reconfigure("[\"process\"]", "[\"process\", \"os\", \"power\"]");
    let (image, backup) = (fixture.path("image"), fixture.path("image.old"));
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    run("mkfs.ext4", &[Path::new("-qF"), &image]);
    let (device, home) = on_a_disk(&mut fixture, &image);
    let changed = |fixture: &Fixture, day: &str| {
        for number in 0..10 {
            write_synced(&fixture.mount().join(format!("{day}-{number}")), day);
        }
    };
    fixture.serve();
    changed(&fixture, "before");
    assert_eq!(fixture.stop(), Some(0));
    drop(device);
    run("cp", &[&image, &backup]);
    let old_log = fixture.path("log.old");
    copy(&fixture.log(), &old_log);
    let device = mounted(&image, &fixture.path("disk"));
    fixture.serve();
    changed(&fixture, "one");
    wait_until_home(&fixture, &home, ("one-9", "one"));
    fixture.kill_all();
    drop(device);
    // Both are restored, and go on; then the home of before the restore comes back.
    fs::remove_file(&fixture.region).unwrap();
    fs::remove_dir_all(fixture.log()).unwrap();
    fs::rename(&old_log, fixture.log()).unwrap();
    let device = mounted(&backup, &fixture.path("disk"));
    fixture.serve();
    changed(&fixture, "other");
    fixture.kill_all();
    drop(device);
    let device = mounted(&image, &fixture.path("disk"));
    let words = ["as a copy of this log left it", "accept v --keep home"];
    fixture.try_to_serve().expect("it is refused").expect(6, &words);
    fixture.holdfast(&["volume", "check", NAME]).expect(6, &words);
    drop(device);
    let _device = mounted(&backup, &fixture.path("disk"));
    fixture.serve();
    assert_eq!(fixture.stop(), Some(0), "{}", fixture.keeper_log());
    for name in ["before-9", "other-0", "other-9"] {
        assert!(home.join(name).exists(), "{name}");
    }
    assert!(!home.join("one-0").exists());
}

#[test]
fn an_older_copy_that_was_made_file_by_file_is_told_what_can_be_done_with_it() {
    let mut fixture = Fixture::made();
    fixture.serve();
    write_synced(&fixture.mount().join("f"), "1");
    wait_until_home(&fixture, &fixture.home(), ("f", "1"));
    fixture.kill_all();
    copy(&fixture.home(), &fixture.path("copy"));
    fixture.serve();
    fixture.kill_all_after(|mount| write_synced(&mount.join("f"), "2"));
    fs::rename(fixture.home(), fixture.path("right")).unwrap();
    fs::rename(fixture.path("copy"), fixture.home()).unwrap();
    let words = ["made file by file", "accept v --keep home"];
    fixture.holdfast(&["volume", "check", NAME]).expect(6, &words);
    fixture.holdfast(&["volume", "accept", NAME, "--keep", "home"]).succeeded();
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"1");
}
