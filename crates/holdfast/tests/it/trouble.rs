//! What goes wrong: each gets a clear error and a code, and nothing is lost.

use crate::fixture::{Fixture, NAME, kill, limit_stack, wait_until, way};
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Turns the bits of one byte of a file over.
fn turn_over(path: &Path, offset: u64) {
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[!byte[0]], offset).unwrap();
}

/// Turns bits over in both of the files that say which segments are a log.
fn damage_catalogues(log: &Path) {
    ["catalogue", "catalogue.copy"].iter().for_each(|name| turn_over(&log.join(name), 40));
}

#[test]
fn a_volume_that_was_never_made_is_not_served() {
    let fixture = Fixture::new();
    fixture.holdfast(&["serve"]).expect(2, &["log", "does not exist"]);
    fs::create_dir(fixture.log()).unwrap();
    fixture.holdfast(&["serve"]).expect(2, &["catalogue", "holdfast volume make v"]);
    assert!(!fixture.is_mounted());
}

#[test]
fn a_region_of_another_version_is_left_alone() {
    let fixture = Fixture::left_in_memory();
    // The version follows the eight bytes of the magic.
    turn_over(&fixture.region, 8);
    let before = fs::read(&fixture.region).unwrap();
    fixture.holdfast(&["serve"]).expect(6, &["version", "nothing was changed"]);
    fixture.holdfast(&["umount", NAME]).expect(6, &["version", "nothing was changed"]);
    assert!(fs::read(&fixture.region).unwrap() == before);
    turn_over(&fixture.region, 8);
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

#[test]
fn a_damaged_region_header_is_named_by_field_and_left_alone() {
    let fixture = Fixture::left_in_memory();
    turn_over(&fixture.region, 24);
    let before = fs::read(&fixture.region).unwrap();
    fixture.holdfast(&["serve"]).expect(6, &["damaged", "at byte", "nothing was changed"]);
    fixture.holdfast(&["volume", "check", NAME]).code.filter(|code| *code == 6).unwrap();
    assert!(fs::read(&fixture.region).unwrap() == before);
    turn_over(&fixture.region, 24);
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

#[test]
fn a_damaged_log_is_named_by_file() {
    let fixture = Fixture::made();
    damage_catalogues(&fixture.log());
    fixture.holdfast(&["serve"]).expect(6, &["catalogue", "restore"]);
    fixture.holdfast(&["volume", "check", NAME]).expect(6, &["catalogue"]);
}

#[test]
fn a_catalogue_that_is_lost_is_to_be_restored_and_no_new_one_is_advised() {
    let fixture = Fixture::left_in_memory();
    let [catalogue, copy] = ["catalogue", "catalogue.copy"].map(|name| fixture.log().join(name));
    let (away, copy_away) = (fixture.path("away"), fixture.path("copy-away"));
    fs::rename(&catalogue, &away).unwrap();
    fs::rename(&copy, &copy_away).unwrap();
    let lost = ["catalogue is missing", "restore `catalogue`", "memory still has", "--keep home"];
    let commands = [&["umount", NAME][..], &["volume", "check", NAME]];
    for command in commands {
        let ended = fixture.holdfast(command);
        ended.expect(6, &lost);
        assert!(!ended.err.contains("volume make"), "{ended:?}");
    }
    fs::create_dir(&catalogue).unwrap();
    for command in commands {
        let of_directory = ["catalogue is none: it is a directory", "restore `catalogue`"];
        fixture.holdfast(command).expect(6, &of_directory);
    }
    fs::remove_dir(&catalogue).unwrap();
    fs::rename(&copy_away, &copy).unwrap();
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

#[test]
fn a_medium_that_is_not_there_is_named() {
    let fixture = Fixture::made();
    let region = format!("{:?}", fixture.region);
    fixture.configure(&fixture.config_text().replace(&region, "\"/nowhere/region\""));
    let ended = fixture.holdfast(&["serve"]);
    ended.expect(1, &["memory.path", "No such file"]);
    assert!(!fixture.is_mounted());
}

#[test]
fn a_mount_point_in_use_is_left_alone() {
    let fixture = Fixture::made();
    let (tmpfs, flags) = ("tmpfs", rustix::mount::MountFlags::empty());
    rustix::mount::mount(tmpfs, fixture.mount(), tmpfs, flags, None).unwrap();
    fixture.holdfast(&["serve"]).expect(5, &["mount point", "tmpfs", "unmount it"]);
}

#[test]
fn a_mount_point_that_is_not_there_is_named() {
    let fixture = Fixture::made();
    fs::remove_dir(fixture.mount()).unwrap();
    fixture.holdfast(&["serve"]).expect(2, &["mount", "not a directory"]);
}

#[test]
fn a_front_end_that_crashes_at_every_start_is_given_up_and_the_memory_kept() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let front_end = fixture.front_end();
    limit_stack(fixture.keeper_pid(), "4096:unlimited");
    kill(front_end, Signal::KILL);
    fixture.wait_for_state("given up");
    assert!(fixture.is_mounted() && fixture.region.exists());
    let status = fixture.status();
    let problem = status["problem"].to_string();
    assert!(problem.contains("front end died") && problem.contains("holdfast mount"), "{problem}");
    assert!(status["longest_stall_ms"].as_u64() > Some(0), "programs wait: {status}");
    limit_stack(fixture.keeper_pid(), "8388608:unlimited");
    fixture.holdfast(&["mount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"x");
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

#[test]
fn who_waits_for_a_volume_that_was_given_up_is_freed_by_what_status_says() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let front_end = fixture.front_end();
    limit_stack(fixture.keeper_pid(), "4096:unlimited");
    kill(front_end, Signal::KILL);
    fixture.wait_for_state("given up");
    let (freed, again) = ("holdfast umount v --force", "holdfast mount v");
    let status = fixture.holdfast(&["status"]).out;
    assert!(["wait until", freed, again].iter().all(|word| status.contains(word)), "{status}");
    let file = fixture.mount().join("g");
    let mut waiting = Command::new("touch").arg(file).stderr(Stdio::null()).spawn().unwrap();
    fixture.holdfast(&["mount", NAME]).expect(1, &["front end died", freed, again]);
    assert!(waiting.try_wait().unwrap().is_none(), "nobody has answered it");
    fixture.holdfast(&["umount", NAME, "--force"]).expect(1, &["front end died", again]);
    assert!(!waiting.wait().unwrap().success(), "it heard an error");
    limit_stack(fixture.keeper_pid(), "8388608:unlimited");
    fixture.holdfast(&["mount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"x");
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

/// Flips a byte in each block of a log behind its labels.
fn flip_blocks(log: &Path) {
    let segments = fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path());
    let is_one =
        |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("segment");
    for path in segments.filter(is_one) {
        let mut bytes = fs::read(&path).unwrap();
        let blocks = bytes.chunks_mut(4096).skip(1);
        let is_used = |block: &&mut [u8]| block.iter().any(|byte| *byte != 0);
        blocks.filter(is_used).for_each(|block| block[100] ^= 1);
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn what_is_advised_of_a_volume_that_was_given_up_leads_out_of_it() {
    if way() == "queue" {
        return; // the server has the log, and does not die with the front end
    }
    let mut fixture = Fixture::new();
    let shm = format!("medium = \"shm\", size = \"8MiB\", path = {:?}", fixture.region);
    fixture.reconfigure(&shm, "medium = \"private\", size = \"8MiB\"");
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    fs::write(fixture.mount().join("f"), vec![3; 300_000]).unwrap();
    let front_end = fixture.front_end();
    kill(fixture.keeper_pid(), Signal::STOP);
    kill(front_end, Signal::KILL);
    flip_blocks(&fixture.log());
    kill(fixture.keeper_pid(), Signal::CONT);
    fixture.wait_for_state("given up");
    let told = fixture.status()["problem"].to_string();
    assert!(told.contains("`holdfast volume check v`"), "{told}");
    let check = ["volume", "check", NAME];
    fixture.holdfast(&check).expect(5, &["is mounted", "`holdfast umount v --force`"]);
    fixture.holdfast(&["mount", NAME]).expect(6, &["`holdfast umount v --force`"]);
    fixture.holdfast(&["umount", NAME, "--force"]).expect(6, &["`holdfast volume check v`"]);
    fixture.holdfast(&check).expect(6, &["`holdfast volume accept v --keep home`"]);
    fixture.holdfast(&["volume", "accept", NAME, "--keep", "home"]).succeeded();
    fixture.holdfast(&["mount", NAME]).succeeded();
    assert_eq!(fixture.stop(), Some(0));
}

/// The status of a volume beside that of the fixture.
fn status_of(fixture: &Fixture, name: &str) -> serde_json::Value {
    let report = fixture.holdfast(&["status", "--json"]).out;
    let report: serde_json::Value = serde_json::from_str(&report).unwrap_or_default();
    let volumes = report["volumes"].as_array().cloned().unwrap_or_default();
    volumes.into_iter().find(|it| it["name"] == name).unwrap_or_default()
}

#[test]
fn why_a_volume_is_not_attached_is_in_its_status_until_it_is() {
    let mut fixture = Fixture::made();
    let (home, log, mount) = (fixture.path("home2"), fixture.path("log2"), fixture.path("mount2"));
    [&home, &mount].iter().for_each(|path| fs::create_dir(path).unwrap());
    let text = fixture.config_text();
    let second = text.split_once("[volume.v]").unwrap().1;
    let second = second
        .replace(&format!("{:?}", fixture.home()), &format!("{home:?}"))
        .replace(&format!("{:?}", fixture.log()), &format!("{log:?}"))
        .replace(&format!("{:?}", fixture.mount()), &format!("{mount:?}"))
        .replace(&format!("{:?}", fixture.region), &format!("\"{}-2\"", fixture.region.display()));
    fixture.configure(&format!("{text}\n[volume.w]{second}"));
    fixture.holdfast(&["volume", "make", "w"]).succeeded();
    damage_catalogues(&log);
    fixture.serve_volume(NAME);
    let told = || status_of(&fixture, "w").to_string();
    wait_until(|| told().contains("catalogue"), told);
    assert!(fixture.holdfast(&["status"]).out.contains("catalogue"));
    // What is mended is told no more.
    damage_catalogues(&log);
    fixture.stop();
    fixture.serve_volume("w");
    let status = status_of(&fixture, "w");
    assert!(status["problem"].is_null(), "{status}");
    // Neither is what the home lacked, once it is there.
    fixture.holdfast(&["umount", "w"]).succeeded();
    let away = fixture.path("away");
    fs::rename(&home, &away).unwrap();
    fixture.holdfast(&["mount", "w"]).expect(2, &["home2", "does not exist"]);
    let status = status_of(&fixture, "w");
    assert!(status["problem"].to_string().contains("does not exist"), "{status}");
    assert_ne!(status["state"], "detached", "{status}");
    fs::rename(&away, &home).unwrap();
    fixture.holdfast(&["mount", "w"]).succeeded();
    let status = status_of(&fixture, "w");
    assert!(status["problem"].is_null() && status["state"] == "serving", "{status}");
    fixture.stop();
}

#[test]
fn what_a_front_end_left_that_never_comes_up_is_drained_to_the_disk() {
    let mut fixture = Fixture::made();
    // Without the right to lock memory, front ends die as soon as the limit is low.
    let arguments = ["--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock"];
    fixture.serve_behind("setpriv", &arguments);
    fs::write(fixture.mount().join("f"), vec![3; 500_000]).unwrap();
    let front_end = fixture.front_end();
    let keeper = fixture.keeper_pid().to_string();
    let low = ["--pid", &keeper, "--memlock=0:0"];
    assert!(Command::new("prlimit").args(low).status().unwrap().success());
    kill(front_end, Signal::KILL);
    fixture.wait_for_state("given up");
    // The drainer may have been done with it before.
    wait_until(|| fixture.status()["dirty_bytes"] == 0, || fixture.status().to_string());
    assert!(fixture.status()["problem"].to_string().contains("memory and log are kept"));
    fixture.kill_keeper();
    // A server whose keeper is gone ends by itself, but not at once.
    let unmounted = || fixture.holdfast(&["umount", NAME, "--force"]).code == Some(0);
    wait_until(unmounted, || fixture.status().to_string());
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), vec![3; 500_000]);
}

#[test]
fn a_check_reads_every_frame_and_names_damage_by_position_file_and_byte() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), vec![3; 500_000]).unwrap();
    assert_eq!(fixture.stop(), Some(0));
    let said = fixture.holdfast(&["volume", "check", NAME]).succeeded().out;
    assert!(said.contains("frames are whole") && said.contains("there is no region"), "{said}");
    let said = fixture.holdfast(&["volume", "check", NAME, "--json"]).succeeded().out;
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(said["log"]["frames"].as_u64().unwrap() > 1, "{said}");
    assert!(said["log"]["end_lsn"].as_u64().unwrap() > 500_000, "{said}");
    // What lies below is in the home, and nobody needs it any more.
    let first_lsn = said["log"]["first_lsn"].as_u64().unwrap();
    let segment = fixture.log().join("segment-00000000");
    let frame = 4096 + first_lsn;
    turn_over(&segment, frame + 50);
    let before = fs::read(&segment).unwrap();
    let lost = format!("acknowledged bytes from LSN {first_lsn} to");
    let place = format!("segment-00000000 at byte {frame}");
    let words = [&*lost, &*place, "restore that file", "volume accept v --keep home"];
    fixture.holdfast(&["volume", "check", NAME]).expect(6, &words);
    assert!(fs::read(&segment).unwrap() == before);
    turn_over(&segment, frame + 50);
    fixture.holdfast(&["volume", "check", NAME]).succeeded();
}

#[test]
fn a_check_reads_what_waits_in_memory_and_leaves_it_there() {
    let fixture = Fixture::left_in_memory();
    fixture.holdfast(&["volume", "check", NAME]).expect(5, &["is mounted"]);
    rustix::mount::unmount(fixture.mount(), rustix::mount::UnmountFlags::DETACH).unwrap();
    let said = fixture.holdfast(&["volume", "check", NAME]).succeeded().out;
    assert!(said.contains("not in the home"), "{said}");
    let before = fs::read(&fixture.region).unwrap();
    fixture.holdfast(&["volume", "check", NAME]).succeeded();
    assert!(fs::read(&fixture.region).unwrap() == before);
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

/// Somebody moves a directory away in the home, under a volume that has a change for a file in it.
#[test]
fn what_the_home_can_never_take_is_put_aside_by_the_command_that_status_names() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let mount = fixture.mount();
    fs::create_dir(mount.join("d")).unwrap();
    fs::write(mount.join("d/f"), "old").unwrap();
    let home = fixture.home();
    let told = || fixture.status().to_string();
    wait_until(|| fs::read(home.join("d/f")).is_ok_and(|bytes| bytes == b"old"), told);
    wait_until(|| fixture.status()["unapplied_bytes"].as_u64() < Some(65536), told);
    fixture.holdfast(&["volume", "skip", NAME]).expect(2, &["stuck at nothing"]);
    fs::rename(home.join("d"), home.join("away")).unwrap();
    fs::set_permissions(mount.join("d/f"), Permissions::from_mode(0o600)).unwrap();
    fs::write(mount.join("other"), "later").unwrap();
    wait_until(|| fixture.status()["stuck"].is_string(), told);
    let text = fixture.holdfast(&["status"]).out;
    assert!(text.contains("stuck at") && text.contains("holdfast volume skip v"), "{text}");
    let goes_on = || {
        if fixture.status()["stuck"].is_string() {
            fixture.holdfast(&["volume", "skip", NAME]).succeeded();
        }
        fs::read(home.join("other")).is_ok_and(|bytes| bytes == b"later")
    };
    wait_until(goes_on, told);
    assert!(fixture.status()["put_aside"].as_u64() > Some(0), "{}", fixture.status());
    let aside = fixture.holdfast(&["volume", "aside", NAME]).succeeded().out;
    assert!(aside.contains("d/f") && aside.contains("No such file"), "{aside}");
    fixture.stop();
    assert_eq!(fs::read(home.join("away/f")).unwrap(), b"old");
}
