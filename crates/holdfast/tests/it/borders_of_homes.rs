//! What is in a home that is not its volume's, who else may change it, and which of a home and a
//! log is the newer one.

use crate::bound::{Bound, alone_with_the_mounts};
use crate::fixture::{Fixture, NAME, wait_until};
use holdfast_io::real::RealFiles;
use holdfast_log::Log;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

fn write_synced(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::File::open(path).unwrap().sync_all().unwrap();
}

/// All that is below a path, and what it is.
fn seen(path: &Path) -> Vec<String> {
    let found = Command::new("find").arg(path).args(["-printf", "%p %y %m %U %s %l\n"]).output();
    let text = String::from_utf8(found.unwrap().stdout).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn closed_directory(path: &Path) {
    fs::DirBuilder::new().mode(0o700).create(path).unwrap();
}

/// Puts something in the place of a volume's own directory.
type Puts = fn(&Path);

/// What a volume never made there.
const STRANGE: [(&str, Puts); 8] = [
    ("a file in it", |own| {
        closed_directory(own);
        fs::write(own.join("f"), "precious").unwrap();
    }),
    ("a link", |own| symlink("/etc", own).unwrap()),
    ("a file", |own| fs::write(own, "precious").unwrap()),
    ("a directory in it", |own| {
        closed_directory(own);
        fs::create_dir(own.join("d")).unwrap();
    }),
    ("a directory by the name of an orphan", |own| {
        closed_directory(own);
        fs::create_dir_all(own.join("17-4096/d")).unwrap();
    }),
    ("an open directory", |own| {
        closed_directory(own);
        fs::set_permissions(own, fs::Permissions::from_mode(0o750)).unwrap();
    }),
    ("another user's directory", |own| {
        closed_directory(own);
        fs::write(own.join("17-4096"), "precious").unwrap();
        chown(own, Some(65534), None).unwrap();
    }),
    ("a roster that is a link", |own| {
        closed_directory(own);
        symlink("/etc/passwd", own.join("roster-1")).unwrap();
    }),
];

#[test]
fn what_no_volume_made_at_the_name_that_volumes_use_is_refused_and_left_alone() {
    for (what, put) in STRANGE {
        println!("{what}");
        let mut fixture = Fixture::new();
        let own = fixture.home().join(".holdfast");
        put(&own);
        let before = seen(&own);
        let words = [".holdfast", "move it away"];
        fixture.holdfast(&["volume", "make", NAME]).expect(2, &words);
        let away = fixture.path("away");
        fs::rename(&own, &away).unwrap();
        fixture.holdfast(&["volume", "make", NAME]).succeeded();
        fs::rename(&away, &own).unwrap();
        fixture.holdfast(&["volume", "check", NAME]).expect(2, &words);
        fixture.try_to_serve().expect("it is refused").expect(2, &words);
        fixture.holdfast(&["umount", NAME]).expect(2, &words);
        assert_eq!(seen(&own), before, "{what}");
        fs::rename(&own, &away).unwrap();
        fixture.serve();
        write_synced(&fixture.mount().join("f"), "kept");
        assert_eq!(fixture.stop(), Some(0));
        assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"kept");
    }
}

#[test]
fn what_an_earlier_volume_made_there_goes_without_a_question() {
    let mut fixture = Fixture::new();
    let own = fixture.home().join(".holdfast");
    closed_directory(&own);
    fs::write(own.join("17-4096"), "an orphan").unwrap();
    fs::write(own.join("roster-2"), "numbers").unwrap();
    symlink("77", own.join("exchange-4096")).unwrap();
    closed_directory(&own.join("scratch"));
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    wait_until(|| !own.exists(), || format!("{:?}", seen(&own)));
    assert_eq!(fixture.stop(), Some(0));
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

/// A home that is complete with "newer" in `f`, and beside it the log as it was before that. The
/// log was copied in an earlier attachment of the two, or in the same one; it has "older" for a
/// home that lacks it: what a cleaner was faster with is written once more.
fn newer_home(in_same_attachment: bool) -> Fixture {
    let mut fixture = Fixture::made();
    fixture.reconfigure("[\"process\"]", "[\"process\", \"os\", \"power\"]");
    fixture.serve();
    let old = fixture.path("log.old");
    loop {
        write_synced(&fixture.mount().join("f"), "older");
        if !in_same_attachment {
            fixture.kill_all();
        }
        copy(&fixture.log(), &old);
        if !in_same_attachment {
            fixture.serve();
        }
        if Log::left(&RealFiles::open(&old).unwrap()).unwrap() > 0 {
            break;
        }
        println!("the cleaner was faster");
        fs::remove_dir_all(&old).unwrap();
    }
    write_synced(&fixture.mount().join("f"), "newer");
    assert_eq!(fixture.stop(), Some(0));
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"newer");
    fs::remove_dir_all(fixture.log()).unwrap();
    fs::rename(&old, fixture.log()).unwrap();
    fixture
}

#[test]
fn an_older_log_is_not_applied_to_a_newer_home() {
    for in_same_attachment in [false, true] {
        println!("copied in the same attachment: {in_same_attachment}");
        let mut fixture = newer_home(in_same_attachment);
        let words = ["is newer than this log", "accept v --keep log", "--keep home"];
        fixture.holdfast(&["volume", "check", NAME]).expect(6, &words);
        fixture.holdfast(&["umount", NAME]).expect(6, &words);
        fixture.try_to_serve().expect("it is refused").expect(6, &words);
        let _ = fixture.holdfast(&["volume", "accept", NAME, "--memory-lost"]);
        fixture.holdfast(&["umount", NAME]).expect(6, &words);
        fixture.holdfast(&["volume", "check", NAME]).expect(6, &words);
        assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"newer");
    }
}

/// What a home says of its log.
fn badge(home: &Path) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let length = rustix::fs::getxattr(home, "trusted.holdfast.volume", &mut bytes[..]).unwrap();
    bytes.truncate(length);
    bytes
}

#[test]
fn an_older_log_is_not_taken_for_the_newest_after_kills_in_one_attachment() {
    let mut fixture = Fixture::made();
    fixture.reconfigure("[\"process\"]", "[\"process\", \"os\", \"power\"]");
    fixture.serve();
    write_synced(&fixture.mount().join("f"), "older");
    let old = fixture.path("log.old");
    copy(&fixture.log(), &old);
    // The first may still be told of what was copied.
    for _ in 0..3 {
        write_synced(&fixture.mount().join("f"), "newer");
        let was = badge(&fixture.home());
        write_synced(&fixture.mount().join("f"), "newer still");
        wait_until(|| badge(&fixture.home()) != was, || "the home was told nothing".into());
    }
    fixture.kill_all();
    fs::remove_file(&fixture.region).unwrap();
    fs::remove_dir_all(fixture.log()).unwrap();
    fs::rename(&old, fixture.log()).unwrap();
    let _ = fixture.holdfast(&["volume", "accept", NAME, "--memory-lost"]);
    fixture.try_to_serve().expect("it is refused").expect(6, &["is newer than this log"]);
}

#[test]
fn of_an_older_log_and_a_newer_home_either_can_be_kept() {
    for in_same_attachment in [false, true] {
        for (side, is_in_it) in [("log", "older"), ("home", "newer")] {
            println!("{side} is kept, copied in the same attachment: {in_same_attachment}");
            let mut fixture = newer_home(in_same_attachment);
            // Its memory was given up with the log that had it.
            let _ = fixture.holdfast(&["volume", "accept", NAME, "--memory-lost"]);
            fixture.holdfast(&["volume", "accept", NAME, "--keep", side]).succeeded();
            fixture.holdfast(&["volume", "check", NAME]).succeeded();
            fixture.serve();
            assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), is_in_it.as_bytes());
            write_synced(&fixture.mount().join("f"), "newest");
            assert_eq!(fixture.stop(), Some(0));
            fixture.holdfast(&["volume", "check", NAME]).succeeded();
            assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"newest");
        }
    }
}

#[test]
fn a_home_and_its_log_may_go_back_together() {
    let mut fixture = Fixture::made();
    fixture.serve();
    write_synced(&fixture.mount().join("f"), "older");
    assert_eq!(fixture.stop(), Some(0));
    for name in ["log", "home"] {
        copy(&fixture.path(name), &fixture.path(&format!("{name}.old")));
    }
    fixture.serve();
    write_synced(&fixture.mount().join("f"), "newer");
    assert_eq!(fixture.stop(), Some(0));
    for name in ["log", "home"] {
        fs::remove_dir_all(fixture.path(name)).unwrap();
        fs::rename(fixture.path(&format!("{name}.old")), fixture.path(name)).unwrap();
    }
    fixture.holdfast(&["volume", "check", NAME]).succeeded();
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"older");
    assert_eq!(fixture.stop(), Some(0));
}

/// A second volume `w` with its home there.
fn second(fixture: &Fixture, home: &Path) {
    let text = fixture.config_text()
        + &format!(
            "\n[volume.w]\nhome = {home:?}\nmount = {:?}\nlog = {:?}\n\
             memory = {{ medium = \"shm\", size = \"8MiB\", path = {:?} }}\n\
             must_survive = [\"process\"]\n",
            fixture.path("mount-w"),
            fixture.path("log-w"),
            format!("{}-w", fixture.region.display()),
        );
    fixture.configure(&text);
    fs::create_dir_all(fixture.path("mount-w")).unwrap();
}

#[test]
fn a_home_inside_the_home_of_another_volume_is_refused_by_both() {
    let mut fixture = Fixture::new();
    let inner = fixture.home().join("sub");
    fs::create_dir(&inner).unwrap();
    symlink(&inner, fixture.path("way")).unwrap();
    for home in [inner, fixture.path("way")] {
        second(&fixture, &home);
        let words = ["home of volume", "lies inside"];
        fixture.holdfast(&["volume", "make", NAME]).expect(2, &words);
        fixture.holdfast(&["volume", "make", "w"]).expect(2, &words);
    }
    // Each was made while the other was not configured.
    fixture.configure(&fixture.config_text());
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    second(&fixture, &fixture.home().join("sub"));
    let ended = fixture.try_to_serve().expect("it is refused");
    ended.expect(2, &["home of volume", "lies inside"]);
}

#[test]
fn a_home_inside_one_that_another_keeper_serves_is_refused() {
    let mut fixture = Fixture::made();
    fs::create_dir(fixture.home().join("sub")).unwrap();
    fixture.serve();
    let other = Fixture::new();
    let home = format!("{:?}", other.home());
    other.reconfigure(&home, &format!("{:?}", fixture.home().join("sub")));
    other
        .holdfast(&["volume", "make", NAME])
        .expect(5, &["lies inside", "is the home of a volume"]);
    assert_eq!(fixture.stop(), Some(0));
}

/// Two configurations: of the first one the home, or the log, lies in the home of the second one.
fn nested(key: &str) -> (Fixture, Fixture) {
    let (inner, outer) = (Fixture::new(), Fixture::new());
    let around = inner.path("around");
    let within = around.join("in").join("it");
    fs::create_dir_all(&within).unwrap();
    let of_inner = inner.path(key);
    inner.reconfigure(&format!("{key} = {of_inner:?}"), &format!("{key} = {within:?}"));
    outer.reconfigure(&format!("home = {:?}", outer.home()), &format!("home = {around:?}"));
    (inner, outer)
}

#[test]
fn a_home_around_what_another_keeper_has_is_refused_however_it_is_attached() {
    for key in ["home", "log"] {
        println!("{key}");
        let (mut inner, mut outer) = nested(key);
        let around = inner.path("around");
        outer.holdfast(&["volume", "make", NAME]).succeeded();
        inner.holdfast(&["volume", "make", NAME]).succeeded();
        inner.serve();
        write_synced(&inner.mount().join("f"), "inner");
        let pid = inner.front_end().to_string();
        let words = ["lies inside", around.to_str().unwrap(), "give that volume back"];
        let refused = |outer: &mut Fixture| {
            outer.try_to_serve().expect("it is refused").expect(5, &words);
            outer.holdfast(&["volume", "accept", NAME, "--keep", "home"]).expect(5, &words);
            let (home, mount) = (around.to_str().unwrap(), outer.mount());
            let mount = mount.to_str().unwrap();
            let run = ["run", "--home", home, "--mount", mount, "--", "true"];
            outer.holdfast(&run).expect(125, &words);
        };
        refused(&mut outer);
        // By another path, too.
        let elsewhere = outer.path("elsewhere");
        let bound = Bound::at(elsewhere.clone(), &around);
        let before = fs::read_to_string(outer.config()).unwrap();
        outer.configure(&before.replace(around.to_str().unwrap(), elsewhere.to_str().unwrap()));
        let ended = outer.try_to_serve().expect("it is refused");
        ended.expect(5, &["lies inside", "give that volume back"]);
        drop(bound);
        outer.configure(&before);
        // A front end whose keeper is gone has what it serves.
        inner.kill_keeper();
        refused(&mut outer);
        assert_eq!(inner.front_end().to_string(), pid);
        inner.holdfast(&["umount", NAME]).succeeded();
        outer.serve();
        assert_eq!(outer.stop(), Some(0));
    }
}

#[test]
fn what_lies_in_a_home_that_another_keeper_has_is_refused() {
    for key in ["home", "log"] {
        println!("{key}");
        let (mut inner, mut outer) = nested(key);
        inner.holdfast(&["volume", "make", NAME]).succeeded();
        outer.holdfast(&["volume", "make", NAME]).succeeded();
        outer.serve();
        inner.try_to_serve().expect("it is refused").expect(5, &["lies inside"]);
        assert_eq!(outer.stop(), Some(0));
        inner.serve();
        assert_eq!(inner.stop(), Some(0));
    }
}

#[test]
fn a_directory_of_the_home_that_is_mounted_elsewhere_is_refused() {
    let mut fixture = Fixture::made();
    let (data, elsewhere) = (fixture.home().join("data"), fixture.path("elsewhere"));
    fs::create_dir(&data).unwrap();
    let bound = Bound::at(elsewhere.clone(), &data);
    let place = elsewhere.display().to_string();
    fixture.try_to_serve().expect("refused").expect(5, &["is in use", "\"data\"", &place]);
    drop(bound);
    fixture.serve();
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn a_directory_of_the_home_that_is_mounted_in_another_namespace_is_refused_with_who_has_it() {
    let mut fixture = Fixture::made();
    let (data, elsewhere) = (fixture.home().join("data"), fixture.path("elsewhere"));
    fs::create_dir(&data).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    let script = format!(
        "mount --bind {} {} && cd / && echo bound && exec sleep 1000",
        data.display(),
        elsewhere.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
    let alone = alone_with_the_mounts();
    let mut user = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 6];
    std::io::Read::read_exact(user.stdout.as_mut().unwrap(), &mut said).unwrap();
    drop(alone);
    let who = format!("(pid {})", user.id());
    let ended = fixture.try_to_serve();
    user.kill().unwrap();
    user.wait().unwrap();
    ended.expect("refused").expect(5, &["is in use", "\"data\"", "sleep", &who]);
    fixture.serve();
    assert_eq!(fixture.stop(), Some(0));
}
