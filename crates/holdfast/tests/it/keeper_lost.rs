//! Two keepers, no keeper, a new keeper.

use crate::fixture::{Fixture, NAME, kill, wait_until, way};
use rustix::process::Signal;
use std::fs;
use std::time::Duration;

#[test]
fn a_second_keeper_is_told_who_the_first_is() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let pid = fixture.keeper_pid().to_string();
    fixture.holdfast(&["serve"]).expect(5, &[&pid, "control.sock", "SIGTERM"]);
    assert_eq!(fixture.status()["state"], "serving");
}

#[test]
fn two_keepers_never_share_a_home() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let elsewhere = fixture.config_text().replace("control.sock", "other.sock");
    fixture.configure(&elsewhere.replace("[volume.v]", "[volume.w]"));
    fixture.holdfast(&["serve"]).expect(5, &["volume v is mounted at", "umount"]);
    let (mount, other) = (format!("{:?}", fixture.mount()), format!("{:?}", fixture.path("m2")));
    fs::create_dir(fixture.path("m2")).unwrap();
    fixture.configure(&elsewhere.replace("[volume.v]", "[volume.w]").replace(&mount, &other));
    fixture.holdfast(&["serve"]).expect(5, &["home", "another volume"]);
    fixture.configure(&fixture.config_text());
    assert_eq!(fixture.status()["state"], "serving");
}

#[test]
fn a_keeper_that_lives_behind_another_socket_keeps_its_volume_and_is_named() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let keeper = format!("another keeper, process {}", fixture.keeper_pid());
    let text = fixture.config_text();
    fixture.configure(&text.replace("control.sock", "other.sock").replace("server.", "other-"));
    for command in [&["serve"][..], &["umount", NAME]] {
        fixture.holdfast(command).expect(5, &[&keeper, "control.sock", "nothing was changed"]);
    }
    fixture.configure(&text);
    assert_eq!(fixture.status()["state"], "serving");
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"x");
    // What the message advises.
    assert_eq!(fixture.stop(), Some(0));
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

#[test]
fn a_keeper_that_is_killed_leaves_its_front_end_serving() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let front_end = fixture.front_end();
    fixture.kill_keeper();
    fs::write(fixture.mount().join("f"), "written without a keeper").unwrap();
    let status = fixture.status();
    assert_eq!(status["state"], "served without a keeper", "{status}");
    assert_eq!(status["front_end_pid"], front_end, "{status}");
    let pid = front_end.to_string();
    fixture.holdfast(&["serve"]).expect(5, &[&pid, "keeper is gone", "holdfast umount v"]);
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"written without a keeper");
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"written without a keeper");
}

#[test]
fn umount_gives_back_what_keeper_and_front_end_left_when_both_were_killed() {
    let fixture = Fixture::just_left_in_memory();
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

/// As after the death of a process that is not quite over: its memory is gone, its files are open.
#[test]
fn umount_waits_for_a_process_that_has_not_let_go_of_the_region_yet() {
    let fixture = Fixture::left_in_memory();
    let ending = fs::File::open(&fixture.region).unwrap();
    ending.lock().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(500));
            drop(ending);
        });
        fixture.holdfast(&["umount", NAME]).succeeded();
    });
    fixture.assert_given_back();
}

#[test]
fn a_new_keeper_takes_up_what_keeper_and_front_end_left_when_both_were_killed() {
    let mut fixture = Fixture::just_left_in_memory();
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"x");
    assert_eq!(fixture.stop(), Some(0));
    fixture.assert_given_back();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
}

#[test]
fn a_new_keeper_that_comes_at_once_does_not_take_the_dying_for_those_who_serve() {
    let mut fixture = Fixture::made();
    for round in ["first", "second", "third"] {
        fixture.serve();
        fs::write(fixture.mount().join(round), round).unwrap();
        let front_end = fixture.front_end();
        fixture.kill_keeper();
        kill(front_end, Signal::KILL);
    }
    fixture.serve();
    for round in ["first", "second", "third"] {
        assert_eq!(fs::read_to_string(fixture.mount().join(round)).unwrap(), round);
    }
}

#[test]
fn umount_of_what_is_not_mounted_leaves_the_home_complete() {
    let fixture = Fixture::made();
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.assert_given_back();
}

#[test]
fn a_front_end_without_keeper_and_name_of_its_memory_is_told_of_and_everything_comes_home() {
    for has_new_keeper in [false, true] {
        let mut fixture = Fixture::made();
        fixture.serve();
        fs::write(fixture.mount().join("f"), "with a name").unwrap();
        let front_end = fixture.front_end();
        fs::remove_file(&fixture.region).unwrap();
        fixture.kill_keeper();
        fs::write(fixture.mount().join("f"), "without one").unwrap();
        if has_new_keeper {
            fixture.begin_to_serve();
            let told = || fixture.keeper_log().contains("`holdfast umount v`");
            wait_until(told, || fixture.keeper_log());
        }
        let is_told = || {
            let status = fixture.status();
            let problem = status["problem"].as_str().unwrap_or_default().to_owned();
            status["state"] == "served without a keeper"
                && status["front_end_pid"] == front_end
                && problem.contains("`holdfast umount v` brings everything home")
        };
        wait_until(is_told, || format!("{}\n{}", fixture.status(), fixture.keeper_log()));
        fixture.holdfast(&["umount", NAME]).succeeded();
        assert!(!fixture.is_mounted());
        assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"without one");
        fixture.end_keepers_and_what_serves();
    }
}

/// By way of the queue one server has the logs of all volumes, until its last client ends. The disk
/// is what the next keeper runs for.
#[test]
fn what_the_server_of_a_dead_keeper_has_comes_home_as_the_message_of_the_next_one_says() {
    let mut fixture = Fixture::new();
    let text = fixture.config_text().replace(&format!("{:?}", way()), "\"queue\"");
    let section = text.split_once("[volume.v]").unwrap().1;
    let other = ["/home\"", "/mount\"", "/log\""]
        .into_iter()
        .fold(section.to_owned(), |it, end| it.replace(end, &end.replace('"', "-w\"")));
    let region = fixture.region.display().to_string();
    let other = other.replace(&region, &format!("{region}-w"));
    let disk = format!(
        "[disk.ram]\nsize = \"4MiB\"\nmust_survive = [\"process\"]\nway = \"direct\"\n\
         nbd = [\"unix:{}\"]\nmemory = {{ medium = \"shm\", path = \"{region}-ram\" }}\n",
        fixture.path("ram.sock").display()
    );
    fixture.configure(&format!("{text}[volume.w]{other}{disk}"));
    for folder in ["home-w", "mount-w"] {
        fs::create_dir(fixture.path(folder)).unwrap();
    }
    for (kind, name) in [("volume", NAME), ("volume", "w"), ("disk", "ram")] {
        fixture.holdfast(&[kind, "make", name]).succeeded();
    }
    fixture.serve();
    fixture.holdfast(&["wait", "w"]).succeeded();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    fs::write(fixture.path("mount-w").join("f"), "y").unwrap();
    fixture.kill_keeper();
    fixture.begin_to_serve();
    let serves = || fixture.keeper_log().contains("front end serves volume=\"ram\"");
    wait_until(serves, || fixture.keeper_log());
    let words =
        ["serves volume/w too", "`holdfast umount w` first, then `holdfast umount v` again"];
    fixture.holdfast(&["umount", NAME, "--force"]).expect(5, &words);
    fixture.holdfast(&["umount", "w", "--force"]).succeeded();
    fixture.holdfast(&["umount", NAME, "--force"]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
    assert_eq!(fs::read(fixture.path("home-w").join("f")).unwrap(), b"y");
    assert_eq!(fixture.stop(), Some(0), "{}", fixture.keeper_log());
    fs::remove_file(format!("{region}-ram")).unwrap();
}
