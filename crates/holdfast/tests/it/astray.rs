//! Memory that loses its name while it is served: the file of a region is removed or moved, or
//! another file has its place.
//!
//! Whatever happens to the name, nothing that was acknowledged is lost as long as either the
//! process that serves or its keeper lives, and `status` tells of it with what to do.

use crate::fixture::{Fixture, NAME, kill, wait_until, way};
use crate::nbd::Client;
use crate::seeds::{Random, for_seeds};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SEEDS: u64 = 2;
const STEPS: u32 = 14;

fn serving() -> Fixture {
    let mut fixture = Fixture::made();
    fixture.serve();
    fixture
}

fn write(fixture: &Fixture, name: &str, text: &str) {
    fs::write(fixture.mount().join(name), text).unwrap();
}

fn moved(fixture: &Fixture) -> PathBuf {
    let mut moved = fixture.region.clone().into_os_string();
    moved.push(".moved");
    moved.into()
}

fn says_that_it_is_astray(fixture: &Fixture) -> bool {
    let status = fixture.status();
    let survives = status["verdict"]["survives"].as_array().map_or(0, Vec::len);
    let problem = status["problem"].as_str().unwrap_or_default();
    problem.contains("the name of its memory")
        && problem.contains("`holdfast umount v` brings everything home")
        && survives == 0
        && fixture.holdfast(&["status"]).code == Some(7)
}

#[test]
fn status_tells_that_memory_lost_its_name_and_its_remedy_loses_nothing() {
    let fixture = serving();
    write(&fixture, "before", "1");
    fs::remove_file(&fixture.region).unwrap();
    assert!(says_that_it_is_astray(&fixture), "{}", fixture.status());
    write(&fixture, "after", "2");
    let told = || fixture.keeper_log().contains("the name of its memory is gone");
    wait_until(told, || fixture.keeper_log());
    fixture.holdfast(&["umount", NAME]).succeeded();
    for (name, text) in [("before", "1"), ("after", "2")] {
        assert_eq!(fs::read_to_string(fixture.home().join(name)).unwrap(), text);
    }
}

#[test]
fn an_upgrade_is_refused_while_a_successor_would_not_find_the_memory() {
    let mut fixture = serving();
    write(&fixture, "f", "1");
    fs::rename(&fixture.region, moved(&fixture)).unwrap();
    fs::write(&fixture.region, "something else").unwrap();
    let has_server = fixture.server().is_some();
    let upgrade = if has_server { vec!["server"] } else { vec!["volume", NAME] };
    let upgrade: Vec<&str> = ["upgrade"].into_iter().chain(upgrade).collect();
    let before = fixture.holder();
    fixture.holdfast(&upgrade).expect(1, &["another file has the name", "nothing is lost"]);
    assert_eq!(fixture.holder(), before);
    fs::rename(moved(&fixture), &fixture.region).unwrap();
    fixture.holdfast(&upgrade).succeeded();
    assert_eq!(fixture.holdfast(&["status"]).code, Some(0), "{}", fixture.status());
    assert_eq!(fixture.stop(), Some(0));
    assert_eq!(fs::read_to_string(fixture.home().join("f")).unwrap(), "1");
}

#[test]
fn memory_whose_name_is_gone_gets_it_back_when_the_process_that_served_it_dies() {
    let mut fixture = serving();
    write(&fixture, "f", "1");
    fs::remove_file(&fixture.region).unwrap();
    write(&fixture, "g", "2");
    kill(fixture.holder(), Signal::KILL);
    wait_until(|| fixture.holdfast(&["status"]).code == Some(0), || fixture.keeper_log());
    for (name, text) in [("f", "1"), ("g", "2")] {
        assert_eq!(fs::read_to_string(fixture.mount().join(name)).unwrap(), text);
    }
    assert!(fixture.region.exists());
    assert_eq!(fixture.stop(), Some(0));
    fixture.assert_given_back();
}

/// Puts an older copy of the region in its place, writes, and kills whoever serves.
fn die_over_an_older_copy(fixture: &Fixture, (name, text): (&str, &str)) {
    let _ = fs::remove_file(moved(fixture));
    fs::copy(&fixture.region, moved(fixture)).unwrap();
    write(fixture, name, text);
    fs::rename(moved(fixture), &fixture.region).unwrap();
    kill(fixture.holder(), Signal::KILL);
    let tells = || {
        let told = fixture.holdfast(&["status"]);
        told.code == Some(7) && told.out.contains("another file has the name of its memory")
    };
    wait_until(tells, || format!("{:?}", fixture.holdfast(&["status"])));
}

#[test]
fn no_other_memory_is_served_in_the_place_of_what_the_keeper_holds() {
    let mut fixture = serving();
    write(&fixture, "f", "old");
    die_over_an_older_copy(&fixture, ("f", "new"));
    fs::rename(&fixture.region, moved(&fixture)).unwrap();
    // Nobody has to do more.
    wait_until(|| fixture.holdfast(&["status"]).code == Some(0), || fixture.keeper_log());
    assert_eq!(fs::read_to_string(fixture.mount().join("f")).unwrap(), "new");
    assert_eq!(fixture.stop(), Some(0));
    assert_eq!(fs::read_to_string(fixture.home().join("f")).unwrap(), "new");
    fs::remove_file(moved(&fixture)).unwrap();
}

#[test]
fn a_volume_that_is_unmounted_by_force_keeps_the_memory_that_nobody_finds() {
    if way() == "queue" {
        return; // its server has the memory, and is waited for
    }
    let mut fixture = serving();
    write(&fixture, "f", "old");
    die_over_an_older_copy(&fixture, ("f", "new"));
    let name_it = ["another file has the name", "move the file there away"];
    fixture.holdfast(&["umount", NAME, "--force"]).expect(5, &name_it);
    fixture.holdfast(&["mount", NAME]).expect(5, &name_it);
    fs::rename(&fixture.region, moved(&fixture)).unwrap();
    fixture.holdfast(&["mount", NAME]).succeeded();
    assert_eq!(fs::read_to_string(fixture.mount().join("f")).unwrap(), "new");
    assert_eq!(fixture.stop(), Some(0));
    fs::remove_file(moved(&fixture)).unwrap();
}

#[test]
fn a_keeper_that_ends_leaves_memory_that_cannot_have_its_name_where_the_next_one_finds_it() {
    let mut fixture = serving();
    write(&fixture, "f", "old");
    die_over_an_older_copy(&fixture, ("f", "new"));
    assert_eq!(fixture.stop(), Some(1));
    let log = fixture.keeper_log();
    let is_left = |it: &PathBuf| it.display().to_string().contains(".held-");
    let beside = fs::read_dir("/dev/shm").unwrap().map(|it| it.unwrap().path());
    let its_own = fixture.region.display().to_string();
    let left: Vec<PathBuf> = beside
        .filter(|it| it.display().to_string().starts_with(&its_own))
        .filter(is_left)
        .collect();
    assert_eq!(left.len(), 1, "{log}");
    let told = left[0].display().to_string();
    // The older copy is not taken for it.
    fixture.holdfast(&["serve"]).expect(5, &["an earlier keeper left its memory at", &told]);
    fs::rename(&left[0], &fixture.region).unwrap();
    fixture.serve();
    assert_eq!(fs::read_to_string(fixture.mount().join("f")).unwrap(), "new");
    assert_eq!(fixture.stop(), Some(0));
}

/// Two disks of the size that [`Client`] expects, whose memory is in a folder of its own, which the
/// test can take away.
fn with_disks_in_a_folder() -> (Fixture, PathBuf) {
    let fixture = Fixture::new();
    let folder = moved(&fixture).with_extension("folder");
    fs::create_dir(&folder).unwrap();
    let (control, server) = (fixture.path("run/control.sock"), fixture.path("run/server.sock"));
    let disk = |name: &str| {
        let (region, socket, way) = (folder.join(name), fixture.path(name), way());
        format!(
            "[disk.{name}]\nsize = \"32MiB\"\nmust_survive = [\"process\"]\nway = {way:?}\n\
             nbd = [\"unix:{}\"]\nmemory = {{ medium = \"shm\", path = {region:?} }}\n",
            socket.display()
        )
    };
    let (ram, other) = (disk("ram"), disk("other"));
    fixture.configure(&format!(
        "[keeper]\nsocket = {control:?}\n[server]\nsocket = {server:?}\n{ram}{other}"
    ));
    for name in ["ram", "other"] {
        fixture.holdfast(&["disk", "make", name]).succeeded();
    }
    (fixture, folder)
}

fn is_well(fixture: &Fixture) -> bool {
    fixture.holdfast(&["status"]).code == Some(0)
}

#[test]
fn memory_with_a_second_name_at_the_start_is_taken_up_once_it_has_one() {
    let (mut fixture, folder) = with_disks_in_a_folder();
    let (region, second) = (folder.join("ram"), folder.join("second"));
    fs::hard_link(&region, &second).unwrap();
    fixture.begin_to_serve();
    let is_told = || {
        let status = fixture.holdfast(&["status"]);
        status.code == Some(7) && status.out.contains("it has another name")
    };
    wait_until(is_told, || fixture.keeper_log());
    fs::remove_file(second).unwrap();
    wait_until(|| is_well(&fixture), || fixture.keeper_log());
    assert_eq!(fixture.stop(), Some(0));
    fs::remove_dir_all(folder).unwrap();
}

/// What is done to a file.
type Change = fn(&Path);

/// What may be done to the file of memory that is served, what status advises then, and that.
const BARS: [(&str, Change, &str, Change); 3] = [
    ("a second name", second_name, "take its other names away", |region| {
        fs::remove_file(region.with_extension("two")).unwrap();
    }),
    (
        "a mode",
        |region| mode(region, 0o666),
        "let nobody else write it (`chmod go-w`)",
        |region| {
            mode(region, 0o644);
        },
    ),
    ("an owner", |region| owner(region, 65534), "as owner (`chown`)", |region| owner(region, 0)),
];

fn second_name(region: &Path) {
    fs::hard_link(region, region.with_extension("two")).unwrap();
}

fn mode(region: &Path, mode: u32) {
    fs::set_permissions(region, fs::Permissions::from_mode(mode)).unwrap();
}

fn owner(region: &Path, uid: u32) {
    std::os::unix::fs::chown(region, Some(uid), Some(uid)).unwrap();
}

/// Whoever serves the first disk.
fn process_of_disk(fixture: &Fixture) -> i32 {
    let status: serde_json::Value =
        serde_json::from_str(&fixture.holdfast(&["status", "--json"]).out).unwrap();
    let of_server = status["server"]["pid"].as_i64();
    let first = status["disks"].as_array().unwrap().iter().find(|it| it["name"] == "ram");
    let pid = of_server.or_else(|| first.unwrap()["front_end"]["pid"].as_i64());
    i32::try_from(pid.unwrap()).unwrap()
}

#[test]
fn a_file_of_served_memory_that_is_refused_is_mended_as_status_says_and_all_is_well_at_once() {
    let (mut fixture, folder) = with_disks_in_a_folder();
    fixture.begin_to_serve();
    wait_until(|| is_well(&fixture), || fixture.keeper_log());
    let region = folder.join("ram");
    for (what, bar, advice, mend) in BARS {
        for dies in [false, true] {
            println!("{what}, and who serves it dies: {dies}");
            bar(&region);
            if dies {
                // Each attempt from now on fails, and is none of its deaths.
                kill(process_of_disk(&fixture), Signal::KILL);
                std::thread::sleep(Duration::from_secs(2));
            }
            let is_told = || {
                let out = fixture.holdfast(&["status"]).out;
                assert!(!out.contains("not made") && !out.contains("gives it its name"), "{out}");
                out.contains(advice)
            };
            wait_until(is_told, || fixture.holdfast(&["status"]).out);
            mend(&region);
            wait_until(|| is_well(&fixture), || fixture.holdfast(&["status"]).out);
        }
    }
    assert_eq!(fixture.stop(), Some(0));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn whoever_has_a_keeper_end_hears_that_it_could_not_leave_the_memory_of_a_disk() {
    let (mut fixture, folder) = with_disks_in_a_folder();
    fixture.begin_to_serve();
    wait_until(|| is_well(&fixture), || fixture.keeper_log());
    fs::remove_dir_all(&folder).unwrap();
    let told = ["leaving the memory of disk", "is gone with this keeper"];
    fixture.holdfast(&["shutdown"]).expect(1, &told);
    fixture.reap();
}

/// Whoever has a disk of the keeper before.
fn process_that_lost(fixture: &Fixture) -> Option<String> {
    let status = fixture.holdfast(&["status"]).out;
    let told = status.split_once("although process ")?.1;
    told.contains("which no keeper looks after").then(|| told.split(' ').next().unwrap().into())
}

#[test]
fn a_disk_whose_memory_has_neither_name_nor_keeper_is_told_of_as_long_as_somebody_serves_it() {
    let (mut fixture, folder) = with_disks_in_a_folder();
    fixture.begin_to_serve();
    wait_until(|| is_well(&fixture), || fixture.keeper_log());
    let user = UnixStream::connect(fixture.path("ram")).unwrap();
    let mut client = Client::new(user).unwrap();
    client.write(&[5; 5000], 100).unwrap();
    fixture.kill_keeper();
    fs::remove_file(folder.join("ram")).unwrap();
    let pid = process_that_lost(&fixture).expect("status tells who has it");
    let words = ["the name of its memory is gone", "nothing else has what is in it", &pid];
    fixture.holdfast(&["disk", "make", "ram"]).expect(5, &words);
    fixture.begin_to_serve();
    let tries = || fixture.keeper_log().contains("serves");
    wait_until(tries, || fixture.keeper_log());
    assert_eq!(process_that_lost(&fixture), Some(pid), "{}", fixture.keeper_log());
    assert_eq!(client.read(5000, 100).unwrap(), [5; 5000], "as the message says");
    drop(client);
    let is_gone = || process_that_lost(&fixture).is_none();
    wait_until(is_gone, || fixture.holdfast(&["status"]).out);
    fixture.end_keepers_and_what_serves();
    fixture.holdfast(&["disk", "make", "ram"]).succeeded();
    fixture.begin_to_serve();
    wait_until(|| is_well(&fixture), || fixture.keeper_log());
    fixture.end_keepers_and_what_serves();
    fs::remove_dir_all(folder).unwrap();
}

/// Gives the name of memory to a copy of what is there now.
fn replace_by_a_copy(region: &Path) {
    let copy = region.with_extension("copy");
    fs::copy(region, &copy).unwrap();
    fs::rename(copy, region).unwrap();
}

#[test]
fn whoever_has_a_keeper_end_hears_of_every_memory_that_was_left_beside_its_name() {
    let (mut fixture, folder) = with_disks_in_a_folder();
    fixture.begin_to_serve();
    wait_until(|| is_well(&fixture), || fixture.keeper_log());
    let regions = ["ram", "other"].map(|name| folder.join(name));
    regions.iter().for_each(|region| replace_by_a_copy(region));
    let ended = fixture.holdfast(&["shutdown"]);
    assert_eq!(fixture.reap(), Some(1));
    let held = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path());
    let held: Vec<PathBuf> =
        held.filter(|it| it.display().to_string().contains(".held-")).collect();
    assert_eq!(held.len(), regions.len(), "{held:?}");
    let told: Vec<String> = held.iter().map(|it| format!("and {} there", it.display())).collect();
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    ended.expect(1, &told);
    let log = fixture.keeper_log();
    assert!(told.iter().all(|told| log.contains(told)), "{log}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_volume_that_is_home_is_not_called_left_for_a_copy_that_has_the_name_of_its_memory() {
    let mut fixture = serving();
    write(&fixture, "f", "1");
    replace_by_a_copy(&fixture.region);
    write(&fixture, "g", "2");
    fixture.holdfast(&["shutdown"]).succeeded();
    assert_eq!(fixture.reap(), Some(0), "{}", fixture.keeper_log());
    for (name, text) in [("f", "1"), ("g", "2")] {
        assert_eq!(fs::read_to_string(fixture.home().join(name)).unwrap(), text);
    }
    let _ = fs::remove_file(&fixture.region);
}

#[test]
fn whatever_has_the_name_of_memory_that_is_not_its_stays_when_the_volume_is_given_back() {
    let of_another: Change = |region| {
        fs::remove_file(region).unwrap();
        fs::write(region, "of another").unwrap();
    };
    for replace in [replace_by_a_copy, of_another] {
        let mut fixture = serving();
        write(&fixture, "f", "1");
        replace(&fixture.region);
        let inode = |fixture: &Fixture| fs::metadata(&fixture.region).map(|it| it.ino()).ok();
        let there = inode(&fixture);
        fixture.holdfast(&["umount", NAME]).succeeded();
        assert_eq!(inode(&fixture), there, "{}", fixture.keeper_log());
        assert_eq!(fixture.stop(), Some(0), "{}", fixture.keeper_log());
        assert_eq!(inode(&fixture), there, "{}", fixture.keeper_log());
        assert_eq!(fs::read_to_string(fixture.home().join("f")).unwrap(), "1");
        fs::remove_file(&fixture.region).unwrap();
    }
}

/// Takes the name away again as soon as the keeper has given it: before the next process looks.
fn remove_once_there(fixture: &Fixture) {
    let begun = Instant::now();
    while fs::remove_file(&fixture.region).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", fixture.keeper_log());
        std::hint::spin_loop();
    }
}

/// A volume in the hands of fate, and what has to be in it.
struct World {
    fixture: Fixture,
    expected: BTreeMap<String, String>,
    written: u32,
}

impl World {
    fn step(&mut self, random: &mut Random) -> String {
        let (fixture, region) = (&self.fixture, self.fixture.region.clone());
        match random.below(10) {
            0..3 => {
                self.written += 1;
                let (name, text) = (format!("f{}", random.below(3)), self.written.to_string());
                write(fixture, &name, &text);
                let told = format!("write {name}");
                self.expected.insert(name, text);
                told
            }
            3 => {
                let _ = fs::remove_file(region);
                "remove the region".into()
            }
            4 => {
                let _ = fs::rename(region, moved(fixture));
                "move the region".into()
            }
            5 => {
                // The next ones die before anybody knows that they serve it.
                let times = 1 + random.below(3);
                for _ in 0..times {
                    let before = fixture.holder();
                    let _ = fs::remove_file(&region);
                    kill(before, Signal::KILL);
                    wait_until(|| region.exists(), || fixture.keeper_log());
                    wait_until(|| fixture.holder() != before, || fixture.keeper_log());
                }
                wait_until(|| fixture.status()["state"] == "serving", || fixture.keeper_log());
                format!("{times} times: remove the region, kill who has it")
            }
            9 => {
                let has_it = fixture.holder();
                let _ = fs::remove_file(&region);
                kill(has_it, Signal::KILL);
                remove_once_there(fixture);
                "kill who has it, and remove the region again as soon as it is there".into()
            }
            6 if region.exists() => {
                self.written += 1;
                let (name, text) = (format!("f{}", random.below(3)), self.written.to_string());
                die_over_an_older_copy(fixture, (&name, &text));
                self.expected.insert(name, text);
                fs::rename(&region, moved(fixture)).unwrap();
                wait_until(|| fixture.status()["state"] == "serving", || fixture.keeper_log());
                wait_until(|| region.exists(), || fixture.keeper_log());
                "an older copy gets the name, and who has the memory dies".into()
            }
            6 | 7 => {
                let upgrade = match fixture.server() {
                    Some(_) => ["upgrade", "server"].to_vec(),
                    None => ["upgrade", "volume", NAME].to_vec(),
                };
                format!("upgrade: {:?}", fixture.holdfast(&upgrade).code)
            }
            _ => {
                fixture.holdfast(&["umount", NAME]).succeeded();
                self.fixture.let_log_go();
                let _ = fs::remove_file(moved(&self.fixture));
                self.compare(&self.fixture.home());
                self.fixture.take_up();
                "unmount and mount".into()
            }
        }
    }

    fn compare(&self, place: &std::path::Path) {
        for (name, text) in &self.expected {
            assert_eq!(&fs::read_to_string(place.join(name)).unwrap(), text, "{name}");
        }
    }
}

#[test]
fn whatever_happens_to_its_name_served_memory_loses_nothing_that_was_acknowledged() {
    for_seeds("whatever_happens_to_its_name", SEEDS, |seed| {
        let mut random = Random::new(seed);
        let mut world = World { fixture: serving(), expected: BTreeMap::new(), written: 0 };
        for step in 1..=STEPS {
            let told = world.step(&mut random);
            println!("seed {seed}, step {step}: {told}");
            // Of memory that no process has taken up yet since a death nothing is told: it gets its
            // name back.
            let fixture = &world.fixture;
            let is_right = || fixture.region.exists() || says_that_it_is_astray(fixture);
            wait_until(is_right, || format!("{}\n{}", fixture.status(), fixture.keeper_log()));
            world.compare(&world.fixture.mount());
        }
        assert_eq!(world.fixture.stop(), Some(0), "{}", world.fixture.keeper_log());
        world.compare(&world.fixture.home());
        let _ = fs::remove_file(moved(&world.fixture));
    });
}

#[test]
fn a_link_in_the_place_of_memory_that_is_served_is_told_and_the_memory_gets_its_name_back() {
    let fixture = serving();
    write(&fixture, "f", "1");
    fs::rename(&fixture.region, moved(&fixture)).unwrap();
    std::os::unix::fs::symlink(moved(&fixture), &fixture.region).unwrap();
    let told = fixture.holdfast(&["status"]);
    assert_eq!(told.code, Some(7), "{told:?}");
    let words = ["the file of its memory", "it is a symbolic link", "which is no file"];
    assert!(words.iter().all(|word| told.out.contains(word)), "{told:?}");
    fs::rename(moved(&fixture), &fixture.region).unwrap();
    wait_until(|| fixture.holdfast(&["status"]).code == Some(0), || fixture.keeper_log());
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read_to_string(fixture.home().join("f")).unwrap(), "1");
}
