//! A keeper whose descriptors a service manager keeps. The test is the manager, and speaks to the
//! keeper as systemd does.

use crate::fixture::{Fixture, NAME, kill, wait_until, way};
use crate::nbd::Client;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What systemd does for a service: keeps descriptors by name, and hears how it is.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<String, OwnedFd>>>, Arc<Mutex<Vec<String>>>);

/// The manager of one test.
pub(crate) struct Manager {
    socket: PathBuf,
    kept: Kept,
}

impl Manager {
    pub(crate) fn of(fixture: &Fixture) -> Manager {
        let manager = Manager { socket: fixture.path("notify"), kept: Kept::default() };
        let (socket, kept) = (UnixDatagram::bind(&manager.socket).unwrap(), manager.kept.clone());
        std::thread::spawn(move || {
            loop {
                kept.hear(&socket);
            }
        });
        manager
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.kept.0.lock().unwrap().keys().cloned().collect()
    }

    /// Keeps this no longer.
    fn lose(&self, name: &str) {
        assert!(self.kept.0.lock().unwrap().remove(name).is_some(), "{:?}", self.names());
    }

    /// Starts a keeper with everything that is kept, and waits until the volume is served.
    pub(crate) fn start(&self, fixture: &mut Fixture) {
        self.begin(fixture);
        fixture.wait_for_state("serving");
        self.wait_for(&format!("kept-home-volume-{NAME}"));
    }

    /// Starts a keeper with everything that is kept, and waits for nothing. No other process must
    /// inherit any of it, so it goes through a socket.
    pub(crate) fn begin(&self, fixture: &mut Fixture) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let kept = self.kept.0.lock().unwrap();
        let descriptors: Vec<BorrowedFd<'_>> = kept.values().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); 256];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        sendmsg(&ours, &[IoSlice::new(b"x")], &mut control, SendFlags::empty()).unwrap();
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-c", include_str!("activate.py"), env!("CARGO_BIN_EXE_holdfast")]);
        command.stdin(OwnedFd::from(theirs)).env("HOLDFAST_CONFIG", fixture.config());
        command.env("NOTIFY_SOCKET", &self.socket).env("LISTEN_FDS", kept.len().to_string());
        command.env("LISTEN_FDNAMES", kept.keys().cloned().collect::<Vec<_>>().join(":"));
        drop(kept);
        fixture.begin_as(command);
    }

    /// Waits until the newest that the keeper says has this in it.
    fn wait_to_hear(&self, words: &str) {
        let heard = || self.kept.1.lock().unwrap().clone();
        let is_heard = || heard().last().is_some_and(|newest| newest.contains(words));
        wait_until(is_heard, || format!("no {words:?} at the end of {:?}", heard()));
    }

    /// Waits until this, the last that a keeper sends of a volume, has come.
    fn wait_for(&self, name: &str) {
        let has = || self.names().iter().any(|kept| kept == name);
        wait_until(has, || format!("no {name} in {:?}", self.names()));
    }
}

impl Kept {
    fn hear(&self, socket: &UnixDatagram) {
        let (mut text, mut space) = ([0; 4096], [MaybeUninit::uninit(); 256]);
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut text)];
        let heard = recvmsg(socket.as_fd(), &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC);
        let bytes = heard.unwrap().bytes;
        let text = String::from_utf8_lossy(&text[..bytes]).into_owned();
        let is = |line: &str| text.lines().any(|found| found == line);
        let name = text.lines().find_map(|line| line.strip_prefix("FDNAME=")).map(str::to_owned);
        let of_state = |line: &&str| *line == "READY=1" || line.starts_with("STATUS=");
        let heard = text.lines().filter(of_state).map(str::to_owned);
        self.1.lock().unwrap().extend(heard);
        let mut kept = self.0.lock().unwrap();
        for message in control.drain() {
            if let (RecvAncillaryMessage::ScmRights(descriptors), true) = (message, is("FDSTORE=1"))
            {
                descriptors.for_each(|fd| drop(kept.insert(name.clone().unwrap(), fd)));
            }
        }
        if is("FDSTOREREMOVE=1") {
            kept.remove(&name.unwrap());
        }
    }
}

#[test]
fn programs_see_a_pause_when_keeper_and_front_end_are_killed_and_started_by_a_service_manager() {
    let mut fixture = Fixture::made();
    let manager = Manager::of(&fixture);
    manager.start(&mut fixture);
    let name = format!("kept-fuse-volume-{NAME}");
    assert!(manager.names().contains(&name), "{:?}", manager.names());
    let mut file = File::create(fixture.mount().join("f")).unwrap();
    for round in 0..5_u8 {
        file.write_all(&[round; 10_000]).unwrap();
        let front_end = fixture.front_end();
        fixture.kill_keeper();
        kill(front_end, Signal::KILL);
        let writing = std::thread::spawn(move || {
            file.write_all(&[100 + round; 10_000]).unwrap();
            file
        });
        manager.start(&mut fixture);
        file = writing.join().unwrap();
    }
    drop(file);
    let found = fs::read(fixture.mount().join("f")).unwrap();
    let rounds = (0..5_u8).flat_map(|round| [[round; 10_000], [100 + round; 10_000]]);
    assert!(found == rounds.flatten().collect::<Vec<u8>>(), "what was written is not there");
    assert_eq!(fixture.stop(), Some(0));
    fixture.assert_given_back();
    wait_until(|| manager.names().is_empty(), || format!("kept: {:?}", manager.names()));
}

/// Nobody may be cut off from a volume because its keeper alone ended.
#[test]
fn a_front_end_that_lives_on_is_replaced_by_the_next_keeper_without_an_error() {
    let mut fixture = Fixture::made();
    let manager = Manager::of(&fixture);
    manager.start(&mut fixture);
    let before = fixture.front_end();
    fixture.kill_keeper();
    fs::write(fixture.mount().join("f"), "without a keeper").unwrap();
    manager.start(&mut fixture);
    assert_ne!(fixture.front_end(), before);
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"without a keeper");
}

#[test]
fn a_mount_that_is_gone_while_nobody_served_it_is_made_anew() {
    let mut fixture = Fixture::made();
    let manager = Manager::of(&fixture);
    manager.start(&mut fixture);
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let front_end = fixture.front_end();
    fixture.kill_keeper();
    kill(front_end, Signal::KILL);
    let unmounted = Command::new("umount").arg("-l").arg(fixture.mount()).status().unwrap();
    assert!(unmounted.success());
    manager.start(&mut fixture);
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"x");
}

#[test]
fn who_has_a_mounted_disk_open_sees_a_pause_when_the_keeper_is_killed() {
    let mut fixture = Fixture::made();
    let (manager, point) = (Manager::of(&fixture), fixture.path("ram"));
    fs::create_dir(&point).unwrap();
    let lines = format!(
        "[disk.ram]\nsize = \"4MiB\"\nmust_survive = [\"process\"]\nmount = {point:?}\n\
         memory = {{ medium = \"shm\", path = {:?} }}\nway = {:?}\n",
        fixture.block_cache(),
        way()
    );
    fixture.configure(&(fixture.config_text() + &lines));
    fixture.holdfast(&["disk", "make", "ram"]).succeeded();
    manager.start(&mut fixture);
    let opened = || File::options().read(true).write(true).open(point.join("ram"));
    wait_until(|| opened().is_ok(), || fixture.keeper_log());
    let mut file = opened().unwrap();
    for round in 0..3_u8 {
        file.write_all_at(&[round; 10_000], 100).unwrap();
        fixture.kill_keeper();
        let writing = std::thread::spawn(move || {
            file.write_all_at(&[round; 10_000], 20_000).unwrap();
            file
        });
        manager.start(&mut fixture);
        file = writing.join().unwrap();
        let mut found = [0; 10_000];
        for offset in [100, 20_000] {
            file.read_exact_at(&mut found, offset).unwrap();
            assert_eq!(found, [round; 10_000]);
        }
    }
    drop(file);
    assert_eq!(fixture.stop(), Some(0));
    wait_until(|| manager.names().is_empty(), || format!("kept: {:?}", manager.names()));
}

/// The next keeper could not take up a disk that a front end of the last one still has.
#[test]
fn who_is_connected_to_a_disk_of_its_front_end_alone_connects_again_when_the_keeper_is_killed() {
    let mut fixture = Fixture::made();
    let (manager, socket) = (Manager::of(&fixture), fixture.path("ram.sock"));
    let lines = format!(
        "[disk.ram]\nsize = \"32MiB\"\nmust_survive = [\"process\"]\nway = \"direct\"\n\
         memory = {{ medium = \"shm\", path = {:?} }}\nnbd = [\"unix:{}\"]\n",
        fixture.block_cache(),
        socket.display()
    );
    fixture.configure(&(fixture.config_text() + &lines));
    fixture.holdfast(&["disk", "make", "ram"]).succeeded();
    manager.start(&mut fixture);
    let connected = || Client::new(UnixStream::connect(&socket).unwrap());
    let mut client = connected().unwrap();
    for round in 0..3_u8 {
        client.write(&[round; 10_000], 100).unwrap();
        fixture.kill_keeper();
        // Its front end ends by itself, and the socket waits for the next one.
        while client.read(1, 0).is_ok() {}
        let connecting = std::thread::scope(|scope| {
            let connecting = scope.spawn(connected);
            manager.start(&mut fixture);
            connecting.join().unwrap()
        });
        client = connecting.unwrap();
        assert_eq!(client.read(10_000, 100).unwrap(), [round; 10_000]);
    }
    drop(client);
    assert_eq!(fixture.stop(), Some(0));
}

/// The keeper is ready when it can be asked for every volume; whether one is served, its unit says.
#[test]
fn a_volume_that_is_not_served_is_not_ready_and_the_service_manager_hears_which() {
    let mut fixture = Fixture::made();
    let (manager, home) = (Manager::of(&fixture), fixture.path("other-home"));
    let section = fixture.config_text();
    let section = section.split_once("[volume.v]").unwrap().1;
    let mount = fixture.path("other-mount");
    let places = [
        (fixture.home(), home.clone()),
        (fixture.mount(), mount.clone()),
        (fixture.log(), fixture.path("other-log")),
        (fixture.region.clone(), fixture.block_cache()),
    ];
    let other = |section: String, (of, is): &(PathBuf, PathBuf)| {
        section.replace(&format!("{of:?}"), &format!("{is:?}"))
    };
    let section = places.iter().fold(section.to_owned(), other);
    fixture.configure(&format!("{}\n[volume.w]{section}", fixture.config_text()));
    fs::create_dir(&home).unwrap();
    fs::create_dir(&mount).unwrap();
    fixture.holdfast(&["volume", "make", "w"]).succeeded();
    fs::rename(&home, fixture.path("away")).unwrap();
    manager.start(&mut fixture);
    manager.wait_to_hear("not well: volume w is ");
    assert!(manager.kept.1.lock().unwrap().contains(&"READY=1".to_owned()));
    let unit = fixture.holdfast(&["wait", "w"]);
    assert!(!matches!(unit.code, Some(0) | None), "{unit:?}");
    fixture.holdfast(&["wait", NAME]).succeeded();
    fs::rename(fixture.path("away"), &home).unwrap();
    fixture.holdfast(&["wait", "w"]).succeeded();
    manager.wait_to_hear("everything that is configured is served");
    assert_eq!(fixture.stop(), Some(0));
}

/// A volume with a file that a program has open, its keeper and its front end killed.
fn killed_under_a_program(way: &str) -> (Fixture, Manager, File) {
    let mut fixture = Fixture::made();
    let text = fixture.config_text();
    let (before, _) = text.split_once("way = ").unwrap();
    fixture.configure(&format!("{before}way = {way:?}\n"));
    let manager = Manager::of(&fixture);
    manager.start(&mut fixture);
    let mut file = File::create(fixture.mount().join("f")).unwrap();
    file.write_all(b"before").unwrap();
    kill_under_a_program(&mut fixture);
    (fixture, manager, file)
}

fn kill_under_a_program(fixture: &mut Fixture) {
    let front_end = fixture.front_end();
    kill(fixture.keeper_pid(), Signal::STOP);
    kill(front_end, Signal::KILL);
    fixture.kill_keeper();
}

const CATALOGUES: [&str; 2] = ["catalogue", "catalogue.copy"];

/// A program that waits for what it writes.
fn writing(mut file: File) -> JoinHandle<io::Result<()>> {
    std::thread::spawn(move || file.write_all(b" and after"))
}

/// The program that waited has gone on without an error, and nothing is lost.
fn assert_gone_on(fixture: &mut Fixture, manager: &Manager, writing: JoinHandle<io::Result<()>>) {
    writing.join().unwrap().unwrap();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"before and after");
    assert_eq!(fixture.stop(), Some(0));
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"before and after");
    wait_until(|| manager.names().is_empty(), || format!("kept: {:?}", manager.names()));
}

#[test]
fn a_program_waits_for_a_volume_that_cannot_be_taken_up_until_it_can() {
    let (mut fixture, manager, file) = killed_under_a_program("direct");
    let writing = writing(file);
    let catalogues = CATALOGUES.map(|name| fixture.log().join(name));
    let before = catalogues.clone().map(|path| fs::read(path).unwrap());
    catalogues.iter().for_each(|path| fs::write(path, "damaged").unwrap());
    manager.begin(&mut fixture);
    fixture.wait_for_state("given up");
    assert!(!writing.is_finished() && fixture.is_mounted());
    catalogues.iter().zip(before).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    fixture.holdfast(&["mount", NAME]).succeeded();
    assert_gone_on(&mut fixture, &manager, writing);
}

#[test]
fn a_log_that_was_removed_while_nobody_served_what_is_kept_is_made_again() {
    for removes_all in [true, false] {
        let (mut fixture, manager, file) = killed_under_a_program("direct");
        let writing = writing(file);
        match removes_all {
            true => fs::remove_dir_all(fixture.log()).unwrap(),
            false => CATALOGUES
                .iter()
                .for_each(|name| fs::remove_file(fixture.log().join(name)).unwrap()),
        }
        manager.start(&mut fixture);
        assert_gone_on(&mut fixture, &manager, writing);
    }
}

#[test]
fn a_program_on_a_mount_that_was_unmounted_under_it_goes_on_under_the_next_keeper() {
    let (mut fixture, manager, file) = killed_under_a_program(&way());
    let unmounted = Command::new("umount").arg("-l").arg(fixture.mount()).status().unwrap();
    assert!(unmounted.success());
    let writing = writing(file);
    manager.begin(&mut fixture);
    // Once it has gone on, nobody reaches the mount any more, and the volume is given back.
    writing.join().unwrap().unwrap();
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.holdfast(&["mount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"before and after");
}

/// As if an earlier version had kept it, or the manager had no room for more.
#[test]
fn a_part_that_was_not_kept_is_had_anew() {
    for part in ["settings", "log", "home"] {
        let (mut fixture, manager, file) = killed_under_a_program("direct");
        manager.lose(&format!("kept-{part}-volume-{NAME}"));
        let writing = writing(file);
        manager.start(&mut fixture);
        assert_gone_on(&mut fixture, &manager, writing);
    }
}

#[test]
fn a_volume_that_was_kept_without_its_settings_is_refused_at_another_home_and_its_mount_stays() {
    let (mut fixture, manager, file) = killed_under_a_program("direct");
    let text = fs::read_to_string(fixture.config()).unwrap();
    manager.lose(&format!("kept-settings-volume-{NAME}"));
    fs::create_dir(fixture.path("other")).unwrap();
    let other = format!("home = {:?}", fixture.path("other"));
    fixture.configure(&text.replace(&format!("home = {:?}", fixture.home()), &other));
    let writing = writing(file);
    manager.begin(&mut fixture);
    let is_refused = || fixture.keeper_log().contains("has another home for it");
    wait_until(is_refused, || fixture.keeper_log());
    fixture.holdfast(&["mount", NAME]).expect(2, &["another home", "stays kept", "put back"]);
    assert!(!writing.is_finished() && fixture.is_mounted());
    fixture.configure(&text);
    fixture.holdfast(&["mount", NAME]).succeeded();
    assert_gone_on(&mut fixture, &manager, writing);
}

/// A disk `ram` with a mount, served, and a file there that a program has open.
fn serving_a_mounted_disk(fixture: &mut Fixture, manager: &Manager) -> (String, File) {
    let point = fixture.path("ram");
    for name in ["ram", "elsewhere"] {
        fs::create_dir(fixture.path(name)).unwrap();
    }
    let lines = format!(
        "[disk.ram]\nsize = \"4MiB\"\nmust_survive = [\"process\"]\nmount = {point:?}\n\
         memory = {{ medium = \"shm\", path = {:?} }}\nway = {:?}\n",
        fixture.block_cache(),
        way()
    );
    let text = fixture.config_text() + &lines;
    fixture.configure(&text);
    fixture.holdfast(&["disk", "make", "ram"]).succeeded();
    manager.start(fixture);
    let opened = || File::options().read(true).write(true).open(point.join("ram"));
    wait_until(|| opened().is_ok(), || fixture.keeper_log());
    (text, opened().unwrap())
}

#[test]
fn who_has_a_disk_open_that_is_configured_otherwise_after_its_keeper_was_killed_sees_a_pause() {
    let mut fixture = Fixture::made();
    let manager = Manager::of(&fixture);
    let (text, mut file) = serving_a_mounted_disk(&mut fixture, &manager);
    let (place, other) = (fixture.path("ram"), fixture.path("elsewhere"));
    let (memory, path) = (fixture.block_cache(), fixture.path("no-memory"));
    let other_way = if way() == "queue" { "direct" } else { "queue" };
    let (before, disk) = text.split_once("[disk.ram]").unwrap();
    let changes = [
        text.replace(&format!("{place:?}"), &format!("{other:?}")),
        text.replace(&format!("{memory:?}"), &format!("{path:?}")),
        format!("{before}[disk.ram]{}", disk.replace(&way(), other_way)),
        format!("{before}[disk.other]{disk}"),
        before.to_owned(),
    ];
    for (round, changed) in (1_u8..).zip(changes) {
        file.write_all_at(&[round; 10_000], 100).unwrap();
        fixture.kill_keeper();
        fixture.configure(&changed);
        let writing = std::thread::spawn(move || {
            file.write_all_at(&[round; 10_000], 20_000).unwrap();
            file
        });
        manager.start(&mut fixture);
        file = writing.join().unwrap();
        let mut found = [0; 10_000];
        for offset in [100, 20_000] {
            file.read_exact_at(&mut found, offset).unwrap();
            assert_eq!(found, [round; 10_000], "{changed}");
        }
        assert_eq!(fs::metadata(place.join("ram")).unwrap().len(), 4 << 20);
    }
    drop(file);
    assert_eq!(fixture.stop(), Some(0));
    wait_until(|| manager.names().is_empty(), || format!("kept: {:?}", manager.names()));
}

#[test]
fn the_keeper_names_the_place_at_which_a_kept_mount_is() {
    let (mut fixture, manager, file) = killed_under_a_program(&way());
    fs::create_dir(fixture.path("elsewhere")).unwrap();
    let (is, other) = (fixture.mount(), fixture.path("elsewhere"));
    let text = fs::read_to_string(fixture.config()).unwrap();
    fixture.configure(&text.replace(&format!("{is:?}"), &format!("{other:?}")));
    let writing = writing(file);
    manager.start(&mut fixture);
    let names = || fixture.keeper_log().contains(&format!("v is mounted at {}", is.display()));
    wait_until(names, || fixture.keeper_log());
    assert!(!fixture.keeper_log().contains("elsewhere"), "{}", fixture.keeper_log());
    fixture.holdfast(&["wait", NAME]).expect(5, &["another mount for it by now", "put back"]);
    assert_gone_on(&mut fixture, &manager, writing);
}

/// It may be served otherwise, too: then the mount is one of several ways to it.
#[test]
fn a_disk_whose_mount_is_configured_no_more_after_its_keeper_was_killed_is_served_there_on() {
    let mut fixture = Fixture::made();
    let manager = Manager::of(&fixture);
    let (text, file) = serving_a_mounted_disk(&mut fixture, &manager);
    let socket = format!("nbd = [\"unix:{}\"]", fixture.path("ram.sock").display());
    fixture.kill_keeper();
    let mount = format!("mount = {:?}", fixture.path("ram"));
    assert!(text.contains(&mount));
    fixture.configure(&text.replace(&mount, &socket));
    let writing = std::thread::spawn(move || file.write_all_at(b"x", 100));
    manager.start(&mut fixture);
    writing.join().unwrap().unwrap();
    assert_eq!(fs::read(fixture.path("ram").join("ram")).unwrap()[100], b'x');
    assert_eq!(fixture.stop(), Some(0));
    wait_until(|| manager.names().is_empty(), || format!("kept: {:?}", manager.names()));
}
