//! Everything that can have the name of a volume's memory while nobody serves it, and every command
//! that looks there.
//!
//! None takes it for memory in use, or for none: each says what is there and what to do; and with
//! the memory in its place again, nothing is lost.

use crate::fixture::{Ended, Fixture, NAME, wait_until};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thing {
    Link,
    DanglingLink,
    LinkToDirectory,
    Directory,
    Pipe,
    Socket,
    Strangers,
    Everybodys,
    Empty,
    Short,
}

impl Thing {
    const ALL: [Thing; 10] = [
        Thing::Link,
        Thing::DanglingLink,
        Thing::LinkToDirectory,
        Thing::Directory,
        Thing::Pipe,
        Thing::Socket,
        Thing::Strangers,
        Thing::Everybodys,
        Thing::Empty,
        Thing::Short,
    ];

    /// Puts it in the place of the memory, which is kept.
    fn put(self, place: &Path, kept: &Path) {
        match self {
            Thing::Strangers => return chown(place, Some(65534), None).unwrap(),
            Thing::Everybodys => return set_mode(place, 0o666),
            _ => fs::rename(place, kept).unwrap(),
        }
        match self {
            Thing::Link => symlink(kept, place).unwrap(),
            Thing::DanglingLink => symlink(with_more(place, ".nowhere"), place).unwrap(),
            Thing::LinkToDirectory => symlink("/dev/shm", place).unwrap(),
            Thing::Directory => fs::create_dir(place).unwrap(),
            Thing::Pipe => {
                let made = std::process::Command::new("mkfifo").arg(place).status().unwrap();
                assert!(made.success());
            }
            Thing::Socket => drop(UnixListener::bind(place).unwrap()),
            Thing::Empty => fs::write(place, "").unwrap(),
            Thing::Short => fs::write(place, &fs::read(kept).unwrap()[..100]).unwrap(),
            Thing::Strangers | Thing::Everybodys => unreachable!("it is the memory itself"),
        }
    }

    fn undo(self, place: &Path, kept: &Path) {
        match self {
            Thing::Strangers => return chown(place, Some(0), None).unwrap(),
            Thing::Everybodys => return set_mode(place, 0o600),
            Thing::Directory => fs::remove_dir(place).unwrap(),
            _ => fs::remove_file(place).unwrap(),
        }
        fs::rename(kept, place).unwrap();
    }

    /// What is said of it.
    fn words(self, place: &Path, kept: &Path) -> [String; 2] {
        let (place, kept) = (place.display(), kept.display());
        let away = format!("`mv {place} {place}.other`");
        let [why, remedy] = match self {
            Thing::Link => ["a symbolic link has the name", &format!("`mv {kept} {place}`")],
            Thing::DanglingLink | Thing::LinkToDirectory => ["a symbolic link has the name", &away],
            Thing::Directory => ["a directory has the name", &away],
            Thing::Pipe => ["a pipe has the name", &away],
            Thing::Socket => ["a socket has the name", &away],
            Thing::Strangers => ["it belongs to user 65534", "`chown root "],
            Thing::Everybodys => ["everybody may write it", "`chmod 600 "],
            Thing::Empty => ["has no region any more", "put it back"],
            Thing::Short => ["the region is damaged", "--memory-lost"],
        };
        [why.to_owned(), remedy.to_owned()]
    }

    /// Whether somebody may say that the memory is lost. It may be whole in all other cases.
    fn may_be_given_up(self) -> bool {
        matches!(self, Thing::Empty | Thing::Short)
    }
}

fn set_mode(place: &Path, mode: u32) {
    fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
}

fn with_more(path: &Path, more: &str) -> PathBuf {
    let mut path = path.to_owned().into_os_string();
    path.push(more);
    path.into()
}

#[track_caller]
fn refuses(thing: Thing, told: &Ended, words: &[String]) {
    assert_ne!(told.code, Some(0), "{thing:?}: {told:?}");
    let text = format!("{}{}", told.out, told.err);
    assert!(!text.contains("are sound") && !text.contains("try again"), "{thing:?}: {told:?}");
    assert!(words.iter().all(|word| text.contains(word)), "{thing:?}, {words:?}: {told:?}");
}

/// What a keeper says of it, while it tries or when it has ended; it looks at the name by itself.
fn served(fixture: &mut Fixture, why: &str) -> Ended {
    fixture.begin_to_serve();
    let says = |fixture: &Fixture| {
        let log = fixture.keeper_log();
        log.contains(why) || log.contains("is refused")
    };
    wait_until(|| says(fixture), || format!("{why}: {}", fixture.keeper_log()));
    let err = fixture.keeper_log();
    fixture.end_keepers();
    Ended { code: None, out: String::new(), err }
}

#[test]
fn whatever_has_the_name_of_the_memory_is_named_and_the_memory_put_back_comes_home() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fixture.kill_all_after(|mount| fs::write(mount.join("f"), "x").unwrap());
    let (place, kept) = (fixture.region.clone(), with_more(&fixture.region, ".kept"));
    for thing in Thing::ALL {
        let before = fs::read(&place).unwrap();
        thing.put(&place, &kept);
        let words = thing.words(&place, &kept);
        for command in [&["volume", "check", NAME][..], &["umount", NAME]] {
            refuses(thing, &fixture.holdfast(command), &words);
        }
        let told = served(&mut fixture, &words[0]);
        refuses(thing, &told, &[place.display().to_string()]);
        if !thing.may_be_given_up() {
            for way in [&["--memory-lost"][..], &["--keep", "home"]] {
                let accept = [&["volume", "accept", NAME], way].concat();
                refuses(thing, &fixture.holdfast(&accept), &words);
            }
            refuses(thing, &fixture.holdfast(&["status"]), &words[..1]);
        }
        thing.undo(&place, &kept);
        assert!(fs::read(&place).unwrap() == before, "{thing:?}: the memory is as it was");
        fixture.holdfast(&["volume", "check", NAME]).succeeded();
    }
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}
