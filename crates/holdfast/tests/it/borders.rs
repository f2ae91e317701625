//! The borders of a volume: its home, its memory and its past. What is not what the log knows is
//! refused by name, and each way on that a refusal names works.

use crate::fixture::{Ended, Fixture, NAME, kill, wait_until};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A volume that was killed with a synced file `f` that holds "kept", which the home may lack.
fn killed() -> Fixture {
    let mut fixture = Fixture::made();
    fixture.serve();
    fixture.kill_all_after(|mount| write_synced(&mount.join("f"), "kept"));
    fixture
}

fn write_synced(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::File::open(path).unwrap().sync_all().unwrap();
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs a shell command as a user who is nobody; true if it succeeded.
pub(crate) fn as_nobody(script: &str) -> bool {
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script];
    let status = Command::new("setpriv").args(nobody).stderr(Stdio::null()).status();
    status.unwrap().success()
}

#[track_caller]
fn assert_kept(fixture: &Fixture) {
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"kept");
}

#[test]
fn a_log_is_not_applied_to_an_empty_directory_in_the_place_of_its_home() {
    let fixture = killed();
    let away = fixture.path("away");
    fs::rename(fixture.home(), &away).unwrap();
    fs::create_dir(fixture.home()).unwrap();
    let words = ["is not the home that its log knows", "an empty directory", "accept v --home"];
    fixture.holdfast(&["serve"]).expect(6, &words);
    fixture.holdfast(&["umount", NAME]).expect(6, &words);
    fixture.holdfast(&["volume", "check", NAME]).expect(6, &words);
    assert_eq!(fs::read_dir(fixture.home()).unwrap().count(), 0);
    fs::remove_dir(fixture.home()).unwrap();
    fs::rename(&away, fixture.home()).unwrap();
    assert_kept(&fixture);
}

#[test]
fn another_home_is_taken_when_somebody_says_so() {
    let fixture = killed();
    fs::rename(fixture.home(), fixture.path("away")).unwrap();
    fs::create_dir(fixture.home()).unwrap();
    fixture.holdfast(&["volume", "accept", NAME, "--home"]).succeeded();
    assert_kept(&fixture);
}

#[test]
fn the_home_of_another_log_is_refused() {
    let mut fixture = Fixture::made();
    fixture.serve();
    assert_eq!(fixture.stop(), Some(0));
    fs::rename(fixture.log(), fixture.path("other")).unwrap();
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fs::rename(fixture.log(), fixture.path("newer")).unwrap();
    fs::rename(fixture.path("other"), fixture.log()).unwrap();
    fixture.holdfast(&["serve"]).expect(6, &["is the home of another log", "correct home or log"]);
    fs::rename(fixture.log(), fixture.path("other")).unwrap();
    fs::rename(fixture.path("newer"), fixture.log()).unwrap();
    fixture.serve();
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn one_of_two_files_about_a_home_or_a_memory_is_enough() {
    for lost in ["home", "home.copy", "region", "region.copy"] {
        println!("without {lost}");
        let fixture = killed();
        fs::remove_file(fixture.log().join(lost)).unwrap();
        assert_kept(&fixture);
    }
}

#[test]
fn without_both_files_about_its_home_a_log_goes_on_only_when_somebody_says_so() {
    let fixture = killed();
    for lost in ["home", "home.copy"] {
        fs::remove_file(fixture.log().join(lost)).unwrap();
    }
    let words = ["\"home\" beside the log is gone", "its copy too", "volume accept v --home"];
    fixture.holdfast(&["volume", "check", NAME]).expect(6, &words);
    fixture.holdfast(&["serve"]).expect(6, &words);
    fixture.holdfast(&["umount", NAME]).expect(6, &words);
    fixture.holdfast(&["volume", "accept", NAME, "--home"]).succeeded();
    assert_kept(&fixture);
}

#[test]
fn without_both_files_about_its_memory_a_log_whose_memory_is_gone_is_refused() {
    let fixture = killed();
    for lost in ["region", "region.copy"] {
        fs::remove_file(fixture.log().join(lost)).unwrap();
    }
    let away = fixture.path("region-away");
    fs::copy(&fixture.region, &away).unwrap();
    fs::remove_file(&fixture.region).unwrap();
    let words = ["\"region\" beside the log is gone", "volume accept v --memory-lost"];
    fixture.holdfast(&["volume", "check", NAME]).expect(6, &words);
    fixture.holdfast(&["serve"]).expect(6, &words);
    fs::copy(&away, &fixture.region).unwrap();
    assert_kept(&fixture);
}

#[test]
fn a_home_that_is_in_use_is_refused_with_the_names_of_its_users() {
    let fixture = Fixture::new();
    let mut user = Command::new("sleep").arg("100").current_dir(fixture.home()).spawn().unwrap();
    let name = format!("sleep (pid {})", user.id());
    fixture.holdfast(&["volume", "make", NAME]).expect(5, &["is in use by", &name, "stop them"]);
    user.kill().unwrap();
    user.wait().unwrap();
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    let open = fs::File::create(fixture.home().join("f")).unwrap();
    let me = format!("(pid {})", std::process::id());
    fixture.holdfast(&["serve"]).expect(5, &["is in use by", &me]);
    drop(open);
}

#[test]
fn a_unit_waits_for_its_volume_and_hears_why_it_is_refused() {
    let mut fixture = Fixture::made();
    fixture.holdfast(&["wait", NAME]).expect(4, &["no keeper is running"]);
    fixture.serve();
    fixture.holdfast(&["wait", NAME]).succeeded();
    fixture.holdfast(&["umount", NAME]).succeeded();
    fs::write(fixture.mount().join("seen"), "x").unwrap();
    fixture.holdfast(&["wait", NAME]).expect(2, &["is not empty"]);
    fs::remove_file(fixture.mount().join("seen")).unwrap();
    fixture.let_log_go();
    fixture.take_up();
    fixture.holdfast(&["wait", NAME]).succeeded();
}

#[test]
fn a_drop_in_binds_a_unit_to_its_volume() {
    let fixture = Fixture::new();
    fixture.holdfast(&["systemd", "dropin", NAME, "a b"]).expect(2, &["no name of a service"]);
    let unit = "postgresql@16-main.service";
    let said = fixture.holdfast(&["systemd", "dropin", NAME, unit]).succeeded().out;
    let mount = format!("ConditionPathIsMountPoint={}", fixture.mount().display());
    for line in ["BindsTo=holdfast-volume@v.service", "After=holdfast-volume@v.service", &mount] {
        assert!(said.lines().any(|said| said == line), "no {line:?} in {said}");
    }
    verify_units(&fixture, &said);
}

/// Has systemd itself read the units, where it is installed.
fn verify_units(fixture: &Fixture, dropin: &str) {
    let folder = fixture.path("units");
    fs::create_dir_all(folder.join("database.service.d")).unwrap();
    fs::write(folder.join("database.service.d/holdfast.conf"), dropin).unwrap();
    let binary = env!("CARGO_BIN_EXE_holdfast");
    let units = [
        ("holdfast.service", include_str!("../../../../packaging/holdfast.service")),
        (
            "holdfast-volume@v.service",
            include_str!("../../../../packaging/holdfast-volume@.service"),
        ),
        ("holdfast.target", include_str!("../../../../packaging/holdfast.target")),
        ("database.service", "[Service]\nExecStart=/bin/true\n"),
    ];
    for (name, text) in units {
        let text = text.replace("/usr/bin/holdfast", binary);
        fs::write(folder.join(name), text).unwrap();
    }
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "holdfast.target"])
        .args(["database.service", "holdfast-volume@v.service"])
        .env("SYSTEMD_UNIT_PATH", format!("{}:", folder.display()))
        .output();
    let Ok(verified) = verified else { return println!("systemd is not installed") };
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert!(verified.status.success(), "{said}");
}

#[test]
fn a_mount_hides_nothing_without_a_word() {
    let fixture = Fixture::made();
    fs::write(fixture.mount().join("seen"), "x").unwrap();
    fixture.holdfast(&["serve"]).expect(2, &["is not empty", "seen", "would be hidden"]);
}

#[test]
fn nobody_enters_a_home_from_the_attachment_to_the_complete_unmount() {
    let mut fixture = Fixture::made();
    set_mode(fixture.home().as_path(), 0o777);
    set_mode(fixture.path("").as_path(), 0o755);
    let write = format!("echo x > {}/by-nobody", fixture.home().display());
    fixture.serve();
    assert!(!as_nobody(&write), "the home of a mounted volume is barred");
    assert_eq!(mode_of(&fixture.mount()), 0o777, "users of the volume see what it was");
    set_mode(&fixture.mount(), 0o1777);
    write_synced(&fixture.mount().join("f"), "kept");
    fixture.kill_all();
    assert!(!as_nobody(&write), "and so is what a crash leaves");
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(mode_of(&fixture.home()), 0o1777, "changes of its permissions come home with it");
    assert!(as_nobody(&write));
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"kept");
}

#[test]
fn a_barrier_that_somebody_took_away_leaves_the_choice_to_people() {
    let mut fixture = killed();
    set_mode(&fixture.home(), 0o755);
    let words = ["permissions 755", "--keep log", "--keep home"];
    fixture.holdfast(&["serve"]).expect(6, &words);
    fixture.holdfast(&["serve"]).expect(6, &words);
    fs::write(fixture.home().join("f"), "by hand").unwrap();
    fixture.holdfast(&["volume", "accept", NAME, "--keep", "log"]).succeeded();
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"kept");
    assert_eq!(fixture.stop(), Some(0));
    assert_kept_after_stop(&fixture);
}

#[track_caller]
fn assert_kept_after_stop(fixture: &Fixture) {
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"kept");
    assert_eq!(mode_of(&fixture.home()), 0o755);
}

#[test]
fn a_home_that_is_kept_puts_the_log_aside_whole() {
    let mut fixture = killed();
    set_mode(&fixture.home(), 0o755);
    fs::write(fixture.home().join("f"), "by hand").unwrap();
    let said = fixture.holdfast(&["volume", "accept", NAME, "--keep", "home"]).succeeded().out;
    let aside = said.trim_end().rsplit(' ').next().unwrap().to_owned();
    assert!(Path::new(&aside).join("catalogue").exists(), "{said}");
    fixture.holdfast(&["log", "verify", &aside]).succeeded();
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"by hand");
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn a_home_that_is_kept_without_a_log_is_not_told_of_an_older_one_as_the_one_put_aside() {
    let fixture = killed();
    let keep_home = ["volume", "accept", NAME, "--keep", "home"];
    let said = fixture.holdfast(&keep_home).succeeded().out;
    let older = said.trim_end().rsplit(' ').next().unwrap().to_owned();
    fs::remove_dir_all(fixture.log()).unwrap();
    let _ = fs::remove_file(&fixture.region);
    let said = fixture.holdfast(&keep_home).succeeded().out;
    let words = format!("no log of before was there; what was put aside before is in {older}\n");
    assert!(said.ends_with(&words), "{said}");
    let said = fixture.holdfast(&keep_home).succeeded().out;
    let (now, before) = said.split_once("; what was put aside before is in ").unwrap();
    assert!(now.contains("what was put aside is whole in ") && !now.contains(&older), "{said}");
    assert_eq!(before.trim_end(), older);
}

#[test]
fn whatever_is_missing_of_a_log_a_home_that_is_kept_goes_on_and_its_memory_is_named() {
    type Loss = fn(&Path);
    let catalogues: Loss = |log| {
        ["catalogue", "catalogue.copy"].iter().for_each(|it| fs::remove_file(log.join(it)).unwrap())
    };
    let contents: Loss = |log| {
        fs::remove_dir_all(log).unwrap();
        fs::create_dir(log).unwrap();
    };
    let whole: Loss = |log| fs::remove_dir_all(log).unwrap();
    for (missing, lose) in [("catalogues", catalogues), ("contents", contents), ("log", whole)] {
        let mut fixture = killed();
        lose(&fixture.log());
        let checked = fixture.holdfast(&["volume", "check", NAME]);
        assert_ne!(checked.code, Some(0), "{missing}: {checked:?}");
        let said = fixture.holdfast(&["volume", "accept", NAME, "--keep", "home"]).succeeded().out;
        let memory = said.split("memory, ").nth(1).and_then(|said| said.split(" in ").nth(1));
        let memory = memory.unwrap_or_else(|| panic!("{missing}: {said}"));
        let memory = memory.split([';', ':']).next().unwrap();
        assert!(Path::new(memory).exists(), "{missing}: {said}");
        fs::remove_file(memory).unwrap();
        fixture.serve();
        write_synced(&fixture.mount().join("g"), "goes on");
        assert_eq!(fixture.stop(), Some(0), "{missing}");
        assert_eq!(fs::read(fixture.home().join("g")).unwrap(), b"goes on", "{missing}");
    }
}

#[test]
fn memory_that_a_failed_attachment_has_made_is_not_told_as_what_the_log_lacks() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "kept").unwrap();
    assert_eq!(fixture.stop(), Some(0));
    assert!(!fixture.region.exists());
    let segments = fs::read_dir(fixture.log()).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let first = segments.filter(|path| name(path).starts_with("segment-")).min().unwrap();
    fs::remove_file(&first).unwrap();
    fixture.holdfast(&["umount", NAME]).expect(6, &["segment", "accept v --keep home"]);
    let said = fixture.holdfast(&["volume", "accept", NAME, "--keep", "home"]).succeeded().out;
    assert!(!said.contains("its memory"), "{said}");
    assert!(said.contains("what was put aside is whole in"), "{said}");
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"kept");
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn a_home_that_is_kept_is_kept_however_often_the_command_is_killed_on_the_way() {
    let fixture = killed();
    set_mode(&fixture.home(), 0o755);
    fs::write(fixture.home().join("f"), "by hand").unwrap();
    let arguments = ["volume", "accept", NAME, "--keep", "home"];
    let mut kills = 0;
    // Each time it gets further.
    for patience in (1..).map(|round| Duration::from_millis(5).mul_f64(1.4_f64.powi(round))) {
        let mut command = fixture.command();
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(patience);
        let _ = child.kill();
        if child.wait().unwrap().success() {
            break;
        }
        kills += 1;
    }
    println!("killed {kills} times");
    let said = fixture.holdfast(&arguments).succeeded().out;
    let asides = said.trim_end().rsplit(" in ").next().unwrap().split(", ").map(Path::new);
    let asides: Vec<_> = asides.collect();
    assert!(asides.iter().all(|aside| aside.is_dir()), "{said}");
    let verified = |aside: &&&Path| {
        fixture.holdfast(&["log", "verify", aside.to_str().unwrap()]).code == Some(0)
    };
    assert!(asides.iter().filter(verified).count() >= 1, "{said}");
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"by hand");
    assert_eq!(mode_of(&fixture.home()), 0o755);
    fixture.holdfast(&["volume", "check", NAME]).succeeded();
}

#[test]
fn a_home_that_is_kept_is_kept_at_whatever_step_the_command_died() {
    const KEEP_HOME: [&str; 5] = ["volume", "accept", NAME, "--keep", "home"];
    for has_log in [true, false] {
        for step in 1.. {
            let mut fixture = killed();
            if !has_log {
                fs::remove_dir_all(fixture.log()).unwrap();
            }
            let mut command = fixture.command();
            command.args(KEEP_HOME).env("HOLDFAST_TEST_REPLACES_UNTIL", step.to_string());
            let died = Ended::of(command.output().unwrap());
            assert!(matches!(died.code, None | Some(0)), "step {step}: {died:?}");
            let is_over = died.code.is_some();
            let told = format!("has a log: {has_log}, dead at {step}");
            if !is_over {
                fixture.holdfast(&KEEP_HOME).succeeded();
            }
            let beside = fs::read_dir(fixture.path("")).unwrap().map(|it| it.unwrap().file_name());
            let beside: Vec<_> = beside.map(|name| name.into_string().unwrap()).collect();
            let asides: Vec<_> = beside.iter().filter(|it| it.starts_with("log.aside-")).collect();
            let is_whole = |name: &&&String| {
                let log = fixture.path(name);
                fixture.holdfast(&["log", "verify", log.to_str().unwrap()]).code == Some(0)
            };
            let whole = asides.iter().filter(is_whole).count();
            assert!(whole >= usize::from(has_log), "{told}: {beside:?}");
            assert!(!beside.contains(&"log.coming".to_owned()), "{told}: {beside:?}");
            fixture.serve();
            write_synced(&fixture.mount().join("g"), "goes on");
            assert_eq!(fixture.stop(), Some(0), "{told}");
            assert_eq!(fs::read(fixture.home().join("g")).unwrap(), b"goes on", "{told}");
            remove_memory_aside(&fixture);
            if is_over {
                assert!(step > if has_log { 4 } else { 1 }, "no step is missed: {step}");
                break;
            }
        }
    }
}

fn remove_memory_aside(fixture: &Fixture) {
    let start = format!("{}.aside-", fixture.region.display());
    let beside = fs::read_dir(fixture.region.parent().unwrap()).unwrap();
    let beside = beside.map(|entry| entry.unwrap().path());
    let asides = beside.filter(|path| path.to_str().is_some_and(|it| it.starts_with(&start)));
    asides.for_each(|path| fs::remove_file(path).unwrap());
}

#[test]
fn no_log_is_made_for_a_home_that_another_log_may_have_changes_of() {
    let fixture = killed();
    let away = fixture.path("away");
    fs::rename(fixture.log(), &away).unwrap();
    let words = ["is the home of another log", "mount the file system", "accept v --keep home"];
    fixture.holdfast(&["volume", "make", NAME]).expect(6, &words);
    assert!(!fixture.log().exists(), "nothing was made");
    fs::rename(&away, fixture.log()).unwrap();
    assert_kept(&fixture);
}

#[test]
fn a_home_whose_log_is_gone_for_good_is_kept_when_somebody_says_so() {
    let fixture = killed();
    fs::remove_dir_all(fixture.log()).unwrap();
    fs::remove_file(&fixture.region).unwrap();
    fixture.holdfast(&["volume", "make", NAME]).expect(6, &["accept v --keep home"]);
    let said = fixture.holdfast(&["volume", "accept", NAME, "--keep", "home"]).succeeded().out;
    assert!(said.contains("which may have had what the home lacks, nor its memory"), "{said}");
    fixture.holdfast(&["volume", "check", NAME]).succeeded();
    assert_eq!(mode_of(&fixture.home()), 0o755);
}

#[test]
fn a_check_without_the_memory_refuses_as_an_unmount_does() {
    let fixture = killed();
    fs::remove_file(&fixture.region).unwrap();
    let words = ["is gone", "accept v --memory-lost"];
    fixture.holdfast(&["volume", "check", NAME]).expect(6, &words);
    fixture.holdfast(&["umount", NAME]).expect(6, &words);
    fixture.holdfast(&["volume", "accept", NAME, "--memory-lost"]).succeeded();
    fixture.holdfast(&["volume", "check", NAME]).succeeded();
}

#[test]
fn a_home_that_lost_its_attributes_gets_permissions_and_this_is_said() {
    let fixture = killed();
    rustix::fs::removexattr(fixture.home(), "trusted.holdfast.volume").unwrap();
    let accept = ["volume", "accept", NAME, "--home"];
    let said = fixture.holdfast(&accept).succeeded().out;
    assert!(said.contains("permissions were lost") && said.contains("700"), "{said}");
    assert_kept(&fixture);
    assert_eq!(mode_of(&fixture.home()), 0o700);
}

#[test]
fn what_is_no_file_in_the_place_of_a_file_of_the_log_is_named() {
    let fixture = killed();
    for name in ["segment-00000000", "home"] {
        let (path, away) = (fixture.log().join(name), fixture.path("away"));
        fs::rename(&path, &away).unwrap();
        fs::create_dir(&path).unwrap();
        let ended = fixture.holdfast(&["volume", "check", NAME]);
        assert!(ended.code != Some(0) && ended.err.contains(name), "{}", ended.err);
        fs::remove_dir(&path).unwrap();
        fs::rename(&away, &path).unwrap();
    }
    assert_kept(&fixture);
}

#[test]
fn what_somebody_changed_after_a_restart_is_named_and_not_written_over() {
    let mut fixture = Fixture::made();
    fixture.reconfigure("must_survive = [\"process\"]", "must_survive = [\"power\"]");
    fixture.serve();
    let front_end = fixture.front_end();
    write_synced(&fixture.mount().join("f"), "kept");
    // The cleaner has brought it home; the next change of it is in the log alone.
    let is_home = || fs::read(fixture.home().join("f")).is_ok_and(|found| found == b"kept");
    wait_until(is_home, || fixture.keeper_log());
    write_synced(&fixture.mount().join("f"), "newest");
    kill(front_end, Signal::STOP);
    let at_home = fs::read(fixture.home().join("f")).unwrap();
    fixture.kill_all();
    fixture.restart();
    // Times of files count ticks of the kernel.
    std::thread::sleep(Duration::from_millis(50));
    fs::write(fixture.home().join("f"), "by the superuser").unwrap();
    if at_home == b"newest" {
        println!("the cleaner was faster, and nothing was in the log alone");
        return;
    }
    for _ in 0..2 {
        let ended = fixture.try_to_serve().expect("it is refused, again and again");
        ended.expect(6, &["somebody changed", "\"f\"", "--keep log"]);
        let checked = fixture.holdfast(&["volume", "check", NAME]);
        checked.expect(6, &["somebody changed", "\"f\"", "--keep log"]);
    }
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"by the superuser");
    fixture.holdfast(&["volume", "accept", NAME, "--keep", "log"]).succeeded();
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"newest");
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn memory_that_is_elsewhere_is_named() {
    let fixture = killed();
    let elsewhere = format!("{}-elsewhere", fixture.region.display());
    fixture.reconfigure(&format!("{:?}", fixture.region), &format!("{elsewhere:?}"));
    let was = fixture.region.display().to_string();
    let words = ["the log's memory is", &was, "set memory.path", "--memory-lost"];
    fixture.holdfast(&["serve"]).expect(6, &words);
    fixture.holdfast(&["umount", NAME]).expect(6, &words);
    assert!(!Path::new(&elsewhere).exists());
    fixture.configure(&fixture.config_text());
    assert_kept(&fixture);
}

#[test]
fn memory_that_is_gone_in_the_same_run_of_the_system_is_given_up_by_people_only() {
    let fixture = killed();
    fs::File::options().write(true).open(&fixture.region).unwrap().set_len(0).unwrap();
    let emptied = ["has no region any more", "the system has not restarted", "--memory-lost"];
    fixture.holdfast(&["umount", NAME]).expect(6, &emptied);
    fixture.holdfast(&["volume", "check", NAME]).expect(6, &emptied);
    fs::remove_file(&fixture.region).unwrap();
    let words = ["is gone, although the system has not restarted", "at most", "--memory-lost"];
    fixture.holdfast(&["serve"]).expect(6, &words);
    fixture.holdfast(&["umount", NAME]).expect(6, &words);
    fixture.holdfast(&["volume", "check", NAME]).expect(6, &words);
    let said = fixture.holdfast(&["volume", "accept", NAME, "--memory-lost"]).succeeded().out;
    assert!(said.contains("may be lost"), "{said}");
    fixture.holdfast(&["umount", NAME]).succeeded();
    let said = fixture.holdfast(&["volume", "check", NAME]).succeeded().out;
    assert!(said.contains("may be lost"), "what it may have cost is kept: {said}");
}

#[test]
fn a_served_log_does_not_go_on_without_its_memory_either() {
    let mut fixture = Fixture::made();
    let memory = format!("{}-l", fixture.region.display());
    let log = format!(
        "\n[log.l]\nlog = {:?}\nmust_survive = [\"process\"]\n\
         memory = {{ medium = \"shm\", size = \"8MiB\", path = {memory:?} }}\n",
        fixture.path("log-l")
    );
    fixture.configure(&(fixture.config_text() + &log));
    fixture.holdfast(&["log", "make", "l"]).succeeded();
    fixture.serve();
    let has_log = || fixture.keeper_log().contains("server serves");
    wait_until(has_log, || fixture.keeper_log());
    fixture.kill_all();
    fs::remove_file(&memory).unwrap();
    fixture.serve();
    let refused = |fixture: &Fixture| fixture.keeper_log().contains("log accept l --memory-lost");
    assert!(refused(&fixture) || is_unserved(&fixture), "{}", fixture.keeper_log());
    let accept = ["log", "accept", "l", "--memory-lost"];
    fixture.holdfast(&accept).expect(5, &["the keeper's server has its log", "holdfast shutdown"]);
    fixture.stop();
    let said = fixture.holdfast(&accept).succeeded().out;
    assert!(said.contains("may be lost"), "{said}");
    fixture.serve();
    assert!(!refused(&fixture) && !is_unserved(&fixture), "{}", fixture.keeper_log());
    assert_eq!(fixture.stop(), Some(0));
    let _ = fs::remove_file(memory);
}

/// Whether the status has a reason why something is not served.
fn is_unserved(fixture: &Fixture) -> bool {
    fixture.holdfast(&["status", "--json"]).out.contains("--memory-lost")
}

#[test]
fn a_restart_that_took_the_memory_says_what_that_may_have_cost() {
    let mut fixture = killed();
    fixture.restart();
    let words = "a restart of the system took the memory: at most 8.0 MiB";
    let checked = fixture.holdfast(&["volume", "check", NAME]).succeeded().out;
    assert!(checked.contains(words), "{checked}");
    fixture.serve();
    assert!(fixture.keeper_log().contains(words), "{}", fixture.keeper_log());
    assert_eq!(fixture.stop(), Some(0));
    fixture.serve();
    assert!(!fixture.keeper_log().contains(words), "the log says it once");
    let status = || fixture.holdfast(&["status"]).out;
    assert!(status().contains(words), "and status for the rest of the run: {}", status());
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn a_volume_that_was_given_back_may_move_and_change_its_memory() {
    let mut fixture = Fixture::made();
    fixture.serve();
    write_synced(&fixture.mount().join("f"), "kept");
    assert_eq!(fixture.stop(), Some(0));
    let elsewhere = format!("{}-elsewhere", fixture.region.display());
    let moved = fixture.path("moved");
    fs::rename(fixture.home(), &moved).unwrap();
    symlink(&moved, fixture.home()).unwrap();
    fixture.reconfigure(&format!("{:?}", fixture.region), &format!("{elsewhere:?}"));
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"kept");
    assert_eq!(fixture.stop(), Some(0));
    let _ = fs::remove_file(elsewhere);
}

#[test]
fn memory_from_earlier_is_refused_put_aside_on_request_and_nothing_that_the_disk_has_is_lost() {
    let mut fixture = Fixture::made();
    fixture.reconfigure("[\"process\"]", "[\"process\", \"os\", \"power\"]");
    fixture.serve();
    write_synced(&fixture.mount().join("before"), "before");
    let copy = fixture.path("copy");
    fs::copy(&fixture.region, &copy).unwrap();
    write_synced(&fixture.mount().join("f"), "kept");
    fixture.kill_all();
    fs::copy(&copy, &fixture.region).unwrap();
    let words = ["copy of an earlier moment", "holdfast volume accept v --memory-lost"];
    fixture.holdfast(&["umount", NAME]).expect(6, &words);
    fixture.holdfast(&["volume", "check", NAME]).expect(6, &words);
    fixture.holdfast(&["serve"]).expect(6, &words);
    let said = fixture.holdfast(&["volume", "accept", NAME, "--memory-lost"]).succeeded().out;
    let aside = said.split(" is whole in ").nth(1).unwrap().split(';').next().unwrap();
    // Each attempt to attach it was counted in it.
    let ring = |path: &Path| fs::read(path).unwrap().split_off(1 << 20);
    assert!(ring(Path::new(aside)) == ring(&copy), "{said}");
    fs::remove_file(aside).unwrap();
    assert_kept(&fixture);
}

#[test]
fn memory_that_has_all_is_not_given_up() {
    let fixture = killed();
    let given_up = fixture.holdfast(&["volume", "accept", NAME, "--memory-lost"]);
    given_up.expect(2, &["has all of it", "serve it"]);
    assert_kept(&fixture);
}

/// Turns a bit over in the middle of what a region notes of names, which lies between its head and
/// its ring.
fn damage_notes(region: &Path) {
    let mut bytes = fs::read(region).unwrap();
    let notes = 8192..bytes.len() - (8 << 20);
    let noted: Vec<usize> = notes.filter(|at| bytes[*at] != 0).collect();
    bytes[noted[noted.len() / 2]] ^= 4;
    fs::write(region, bytes).unwrap();
}

#[test]
fn a_damaged_note_of_a_name_costs_nothing_once_no_kernel_knows_the_volume() {
    let mut fixture = killed();
    damage_notes(&fixture.region);
    assert_kept(&fixture);
    fixture.serve();
    fs::write(fixture.mount().join("g"), "new").unwrap();
    fixture.kill_all();
    damage_notes(&fixture.region);
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("g")).unwrap(), b"new");
    assert_kept(&fixture);
}

#[test]
fn what_was_changed_behind_a_barrier_that_somebody_took_away_is_named_by_a_check() {
    let fixture = killed();
    // Times of files count ticks of the kernel, and what the volume did may have a later one.
    std::thread::sleep(Duration::from_millis(200));
    set_mode(&fixture.home(), 0o755);
    fs::write(fixture.home().join("f"), "by hand").unwrap();
    let checked = fixture.holdfast(&["volume", "check", NAME]);
    checked.expect(6, &["permissions 755", "--keep home"]);
    let attached = fixture.holdfast(&["umount", NAME]);
    attached.expect(6, &["permissions 755", "--keep home"]);
}

/// The times of all that was touched before lie behind such a restart.
#[test]
fn a_clock_that_is_behind_after_a_power_cut_accuses_nobody() {
    for behind_s in [600, 30, 3] {
        let mut fixture = Fixture::made();
        fixture.serve();
        for round in ["first", "second", "third"] {
            for file in ["a", "b", "c"] {
                fs::write(fixture.mount().join(file), format!("{round} of {file}")).unwrap();
                fs::File::open(fixture.mount().join(file)).unwrap().sync_all().unwrap();
            }
            // What is at home by then is touched at home.
            std::thread::sleep(Duration::from_millis(600));
        }
        fixture.kill_all();
        fixture.restart_behind(Duration::from_secs(behind_s));
        let refused = fixture.try_to_serve();
        assert!(refused.is_none(), "{behind_s} s: {refused:?}");
        let text = fs::read_to_string(fixture.mount().join("a")).unwrap();
        assert_eq!(text, "third of a", "{behind_s} s");
        assert_eq!(fixture.stop(), Some(0));
    }
}

#[test]
fn who_may_not_see_the_homes_badge_is_told_so_and_the_home_stays_as_it_is() {
    let fixture = killed();
    assert_eq!(mode_of(&fixture.home()), 0);
    let commands = [
        &["volume", "check", NAME][..],
        &["umount", NAME],
        &["volume", "accept", NAME, "--home"],
        &["volume", "accept", NAME, "--keep", "log"],
        &["volume", "accept", NAME, "--keep", "home"],
        &["volume", "mend", NAME],
        &["serve"],
    ];
    let words = ["may not see the attribute", "it lacks CAP_SYS_ADMIN", "nothing was changed"];
    // No other log is made for it.
    let (log, region) = (fixture.path("log.away"), fixture.block_cache());
    fs::rename(fixture.log(), &log).unwrap();
    fs::rename(&fixture.region, &region).unwrap();
    behind(&fixture, "setpriv", &LACKING, &["volume", "make", NAME]).expect(2, &words);
    assert!(!fixture.log().exists());
    fs::rename(&log, fixture.log()).unwrap();
    fs::rename(&region, &fixture.region).unwrap();
    for command in commands {
        let told = behind(&fixture, "setpriv", &LACKING, command);
        told.expect(2, &words);
        assert!(!told.err.contains("another one"), "{command:?}: {told:?}");
        assert_eq!(mode_of(&fixture.home()), 0, "{command:?}");
    }
    assert_kept(&fixture);
    assert_eq!(mode_of(&fixture.home()), 0o755);
}

/// What takes the right from root that a container's root lacks.
const LACKING: [&str; 4] = ["--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"];

/// Runs a command behind another program.
fn behind(fixture: &Fixture, program: &str, arguments: &[&str], words: &[&str]) -> Ended {
    let command = fixture.command();
    let mut other = Command::new(program);
    other.args(arguments).arg(command.get_program()).args(words).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        other.env(name, value.unwrap_or_default());
    }
    Ended::of(other.output().unwrap())
}
