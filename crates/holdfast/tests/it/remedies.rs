//! Remedies: what a message tells people to do is done here, and works.
//!
//! Every command between backquotes in a text of the program is in one list, with the test that
//! runs it in the situation that it is for, or with the reason why no test can. A command that is
//! in no row, a row without a command, and a row whose test is gone are failures.

use crate::fixture::{Fixture, NAME, kill, wait_until, way};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How a remedy is known to work.
enum Known {
    /// This test does it.
    By(&'static str),
    /// No test can do it.
    Not(&'static str),
}
use Known::{By, Not};

/// What every text is about, and no remedy.
const SEES: Known = By("status_ends_with_0_only_while_everything_that_is_configured_is_served");

const REMEDIES: &[(&str, Known)] = &[
    ("cargo build --release --features ublk", Not("it builds another program")),
    ("holdfast", Not("a word of a text, no command")),
    ("holdfast --help", By("help_that_a_message_names_is_there")),
    (
        "holdfast advise DIR",
        By("each_disk_that_is_named_is_measured_and_ram_is_no_place_for_a_log"),
    ),
    ("holdfast disk remove {}", By("the_status_tells_of_a_disk_from_its_making_to_its_end")),
    ("holdfast drill", By("the_class_of_a_volume_follows_the_power_and_status_says_why")),
    ("holdfast log dump", By("the_end_of_a_log_is_cut_off_for_good_and_it_goes_on")),
    (
        "holdfast log dump {}",
        By("the_sets_of_a_served_log_are_printed_in_order_and_none_but_its_server_appends"),
    ),
    ("holdfast log make", By("a_log_that_was_never_made_is_made_as_the_message_says")),
    (
        "holdfast table scan {} TABLE",
        By("rows_of_a_store_that_was_removed_can_be_copied_as_long_as_the_server_runs"),
    ),
    (
        "holdfast {} mend {}",
        By("a_tables_log_that_is_gone_with_everybody_dead_is_made_again_as_the_message_says"),
    ),
    ("holdfast log make NAME", By("a_log_that_was_never_made_is_made_as_the_message_says")),
    ("holdfast log repair", By("what_is_left_of_a_damaged_log_is_saved_into_a_new_one")),
    ("holdfast log verify {}", By("what_is_left_of_a_damaged_log_is_saved_into_a_new_one")),
    (
        "holdfast mount",
        By("a_log_disk_that_fails_under_load_loses_nothing_and_the_volume_can_be_mended"),
    ),
    (
        "holdfast mount {}",
        By("what_outlived_its_keeper_is_unmounted_and_mounted_as_the_message_says"),
    ),
    ("holdfast plan curve --help", By("help_that_a_message_names_is_there")),
    ("holdfast region probe --path DIR", Not("the machine has to be restarted in between")),
    ("holdfast region probe --path {}", Not("the machine has to be restarted in between")),
    ("holdfast run", By("a_run_leaves_the_home_of_a_volume_that_was_given_back_to_that_volume")),
    ("holdfast serve", By("what_outlived_its_keeper_is_unmounted_and_served_as_the_message_says")),
    ("holdfast shutdown", By("shutdown_gives_every_volume_back")),
    ("holdfast snapshot list SERVICE", By("snapshots_are_told_of_and_are_not_made_by_the_server")),
    (
        "holdfast snapshot remove {}",
        By("kills_while_a_snapshot_is_taken_leave_it_whole_or_not_there_and_no_space_lost"),
    ),
    ("holdfast standby", By("a_host_with_others_beside_it_is_not_served_without_asking_them")),
    ("holdfast status", SEES),
    ("holdfast store open {}", By("a_store_is_made_again_as_it_was")),
    (
        "holdfast table list {}",
        By("people_read_tables_that_the_server_has_and_tables_that_nobody_has"),
    ),
    ("holdfast table make {}", By("a_keeper_of_nothing_but_tables_has_a_server")),
    ("holdfast umount", By("what_outlived_its_keeper_is_unmounted_and_served_as_the_message_says")),
    (
        "holdfast umount {}",
        By("what_outlived_its_keeper_is_unmounted_and_served_as_the_message_says"),
    ),
    (
        "holdfast umount {} --force",
        By("who_keeps_it_elsewhere_is_cut_off_by_force_as_the_message_says"),
    ),
    ("holdfast volume accept {} --home", By("another_home_is_taken_when_somebody_says_so")),
    (
        "holdfast volume accept {} --keep home",
        By("a_home_whose_log_is_gone_for_good_is_kept_when_somebody_says_so"),
    ),
    (
        "holdfast volume accept {} --keep log",
        By("a_barrier_that_somebody_took_away_leaves_the_choice_to_people"),
    ),
    (
        "holdfast volume accept {} --memory-lost",
        By("memory_from_earlier_is_refused_put_aside_on_request_\
             and_nothing_that_the_disk_has_is_lost"),
    ),
    ("holdfast volume check {}", By("a_volume_is_made_once_listed_and_checked")),
    (
        "holdfast upgrade disk {}",
        By("replacing_a_disks_front_end_or_telling_it_to_end_loses_no_connection_and_no_request"),
    ),
    ("holdfast upgrade server", By("clients_notice_nothing_of_upgrades_and_kills_but_the_time")),
    ("holdfast vm boot --help", By("help_that_a_message_names_is_there")),
    (
        "holdfast volume aside {}",
        By("what_the_home_can_never_take_is_put_aside_by_the_command_that_status_names"),
    ),
    ("holdfast volume make", By("a_log_that_was_never_made_is_made_as_the_message_says")),
    ("holdfast volume make {}", By("a_log_that_was_never_made_is_made_as_the_message_says")),
    (
        "holdfast volume mend",
        By("a_log_disk_that_fails_under_load_loses_nothing_and_the_volume_can_be_mended"),
    ),
    (
        "holdfast volume mend {}",
        By("a_front_end_that_dies_with_its_log_disk_gone_leaves_memory_that_can_be_mended"),
    ),
    (
        "holdfast volume skip {}",
        By("what_the_home_can_never_take_is_put_aside_by_the_command_that_status_names"),
    ),
    (
        "holdfast {} accept {} --memory-lost",
        By("memory_that_is_gone_in_the_same_run_of_the_system_is_given_up_by_people_only"),
    ),
    ("holdfast {} make {}", By("a_log_that_was_never_made_is_made_as_the_message_says")),
    ("holdfast {} {} {}", By("the_status_tells_of_a_disk_from_its_making_to_its_end")),
    ("kill -CONT {}", By("a_stopped_front_end_or_server_is_named_and_writers_go_on_with_it")),
    (
        "kill -TERM {}",
        By("a_keeper_that_lives_behind_another_socket_keeps_its_volume_and_is_named"),
    ),
    ("modprobe fuse", Not("the kernel of the tests has FUSE")),
    ("modprobe ublk_drv", Not("not every kernel of the tests has ublk")),
    (
        "nsenter -t {} -m",
        By("a_volume_that_is_mounted_in_the_keepers_namespace_alone_is_served_to_nobody_here"),
    ),
    ("systemctl daemon-reload", Not("the tests have a service manager of their own")),
    ("systemctl list-units --type=service", Not("the tests have a service manager of their own")),
    (
        "truncate -s {} {}",
        By("a_segment_that_is_too_long_is_the_log_again_once_it_is_cut_as_the_message_says"),
    ),
    ("truncate -s SIZE", By("a_home_that_is_neither_directory_nor_disk_is_refused_by_its_key")),
    ("umount {}", By("what_outlived_its_run_is_unmounted_and_run_again_as_the_message_says")),
];

/// What begins a command.
const PROGRAMS: [&str; 9] = [
    "holdfast",
    "modprobe",
    "umount",
    "mount",
    "kill",
    "cargo",
    "truncate",
    "systemctl",
    "nsenter",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// All sources below a folder of a crate.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
            false => {}
        }
    }
}

/// The commands that the texts of a source name, with what is filled in left out.
fn commands(source: &str) -> impl Iterator<Item = String> + use<> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    // A text that goes on in the next line.
    let joined: String = lines
        .map(|line| match line.strip_suffix('\\') {
            Some(begun) => begun.trim_start().to_owned(),
            None => format!("{}\n", line.trim_start()),
        })
        .collect();
    let quoted: Vec<String> = joined
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2).map(without_names).collect::<Vec<_>>())
        .collect();
    let is_command = |text: &String| {
        let first = text.split(' ').next().unwrap_or_default();
        PROGRAMS.contains(&first) && !text.contains('"')
    };
    quoted.into_iter().filter(is_command)
}

/// `holdfast mount {name}` -> `holdfast mount {}`.
fn without_names(text: &str) -> String {
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        format!("{text}{{}}{}", part.split_once('}').map_or("", |(_, rest)| rest))
    })
}

fn named_in_texts() -> BTreeSet<String> {
    let is_text = |path: &PathBuf| {
        let path = path.strip_prefix(root()).unwrap().to_str().unwrap();
        !path.contains("/tests")
    };
    let mut found = Vec::new();
    for of in fs::read_dir(root()).unwrap() {
        sources(&of.unwrap().path().join("src"), &mut found);
    }
    found.retain(is_text);
    assert!(found.len() > 100, "the sources are elsewhere");
    found.iter().flat_map(|path| commands(&fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn every_command_that_a_message_names_is_run_by_a_test_or_has_a_reason_why_not() {
    let named = named_in_texts();
    let known: BTreeSet<String> = REMEDIES.iter().map(|(text, _)| (*text).to_owned()).collect();
    let unknown: Vec<_> = named.difference(&known).collect();
    assert!(unknown.is_empty(), "no test is said to run {unknown:?}");
    let gone: Vec<_> = known.difference(&named).collect();
    assert!(gone.is_empty(), "no message names {gone:?}");
    let mut tests = Vec::new();
    sources(&root().join("holdfast/tests"), &mut tests);
    let tests: String = tests.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    for (command, known) in REMEDIES {
        match known {
            By(test) => assert!(tests.contains(&format!("fn {test}()")), "{command}: no {test}"),
            Not(reason) => assert!(!reason.is_empty(), "{command}"),
        }
    }
}

#[test]
fn the_reader_of_messages_finds_commands_across_lines_and_leaves_comments_out() {
    let source = concat!(
        "// `holdfast comment`\n",
        "let a = \"do `holdfast one {name}`, \\\n   then `kill \\\n   -CONT {pid}`\";\n",
    );
    let found: Vec<String> = commands(source).collect();
    assert_eq!(found, ["holdfast one {}", "kill -CONT {}"]);
}

#[test]
fn help_that_a_message_names_is_there() {
    let fixture = Fixture::new();
    for words in ["--help", "plan curve --help", "vm boot --help"] {
        fixture.holdfast(&words.split(' ').collect::<Vec<_>>()).succeeded();
    }
}

#[test]
fn a_log_that_was_never_made_is_made_as_the_message_says() {
    let mut fixture = Fixture::new();
    fs::create_dir(fixture.log()).unwrap();
    fixture.holdfast(&["serve"]).expect(2, &["holdfast volume make v"]);
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn what_outlived_its_keeper_is_unmounted_and_served_as_the_message_says() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fixture.kill_keeper();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    fixture.holdfast(&["serve"]).expect(5, &["`holdfast umount v`", "`holdfast serve` where no"]);
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
    fixture.serve();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"x");
}

/// The next keeper runs for the sake of another volume, and has this one not. By way of the queue
/// the earlier server has the logs of both until its last client ends.
#[test]
fn what_outlived_its_keeper_is_unmounted_and_mounted_as_the_message_says() {
    if way() == "queue" {
        return;
    }
    let mut fixture = Fixture::made();
    let other = "w";
    let text = fixture.config_text();
    let section = text.split_once("[volume.v]").unwrap().1;
    let section = section.replace("/home\"", "/home-w\"").replace("/mount\"", "/mount-w\"");
    let section = section.replace("/log\"", "/log-w\"");
    let region = format!("{:?}", fixture.region);
    let section = section.replace(&region, &format!("{:?}", fixture.block_cache()));
    fixture.configure(&format!("{text}\n[volume.{other}]{section}"));
    for folder in ["home-w", "mount-w"] {
        fs::create_dir(fixture.path(folder)).unwrap();
    }
    fixture.holdfast(&["volume", "make", other]).succeeded();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let front_end = fixture.front_end();
    fixture.kill_keeper();
    // Nobody serves the other volume; the first one is served without a keeper.
    kill_front_ends_but(&fixture, front_end);
    wait_until(
        || fixture.holdfast(&["umount", other]).code == Some(0),
        || format!("{:?}", fixture.holdfast(&["umount", other])),
    );
    fixture.serve_volume(other);
    // The keeper tries it again and again, and says so.
    fixture.wait_for_state("served without a keeper");
    fixture.holdfast(&["mount", NAME]).expect(5, &["`holdfast umount v`", "`holdfast mount v`"]);
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
    fixture.holdfast(&["mount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"x");
    assert_eq!(fixture.stop(), Some(0));
}

fn kill_front_ends_but(fixture: &Fixture, kept: i32) {
    let report = fixture.holdfast(&["status", "--json"]).out;
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let volumes = report["volumes"].as_array().unwrap();
    let pids = volumes.iter().filter_map(|volume| volume["front_end_pid"].as_i64());
    pids.filter(|pid| *pid != i64::from(kept)).for_each(|pid| kill(pid as i32, Signal::KILL));
}

#[test]
fn a_mount_over_its_home_does_not_name_holdfast_as_its_user() {
    let mut fixture = Fixture::made();
    let (mount, home) = (format!("{:?}", fixture.mount()), format!("{:?}", fixture.home()));
    fixture.configure(&fixture.config_text().replace(&mount, &home));
    fixture.serve();
    let open = fs::File::create(fixture.home().join("f")).unwrap();
    let ended = fixture.holdfast(&["umount", NAME]);
    ended.expect(5, &["in use by", &format!("(pid {})", std::process::id())]);
    assert!(!ended.err.contains("holdfast (pid"), "{ended:?}");
    assert!(!ended.err.contains("holdfast-front"), "{ended:?}");
    drop(open);
    fixture.holdfast(&["umount", NAME]).succeeded();
}
