//! `holdfast log`: from an empty directory to a damaged log, in every word of it.

use crate::fixture::{Ended, Fixture};
use holdfast_wal::format::{Json, MessagePack, Raw};
use holdfast_wal::{Log, Options, Record};
use serde_json::Value;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;

/// A record of a program.
#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Transfer {
    from: u32,
    to: u32,
    why: String,
}

impl Record for Transfer {
    const NAME: &'static str = "bank.transfer";
}

/// A directory for a log, and the command.
pub(crate) struct Place {
    pub(crate) fixture: Fixture,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { fixture: Fixture::new() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.fixture.path("a-log")
    }

    /// `holdfast log COMMAND DIRECTORY ARGUMENTS...`
    pub(crate) fn log(&self, command: &str, arguments: &[&str]) -> Ended {
        let path = self.path();
        let words = ["log", command, path.to_str().unwrap()];
        self.fixture.holdfast(&[&words, arguments].concat())
    }

    fn json(&self, command: &str, arguments: &[&str]) -> Vec<Value> {
        let ended = self.log(command, &[arguments, &["--json"]].concat()).succeeded();
        ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A log of JSON with these records.
    pub(crate) fn with(records: &[&str]) -> Place {
        let place = Place::new();
        place.log("create", &["--format", "json", "--record", "notes"]).succeeded();
        place.log("append", records).succeeded();
        place
    }
}

/// The records of lines of JSON.
fn records(lines: &[Value]) -> Vec<&Value> {
    lines.iter().map(|line| &line["record"]).collect()
}

#[test]
fn what_is_appended_is_printed_in_order() {
    let place = Place::with(&["1", r#"{"a":"b"}"#]);
    place.log("append", &["[3]"]).succeeded();
    let all = place.json("dump", &[]);
    assert_eq!(
        records(&all),
        [&serde_json::json!(1), &serde_json::json!({"a": "b"}), &serde_json::json!([3])]
    );
    assert!(all.windows(2).all(|two| two[0]["end"].as_u64() <= two[1]["lsn"].as_u64()), "{all:?}");

    let second = all[1]["lsn"].to_string();
    assert_eq!(
        records(&place.json("dump", &["--from", &second, "--limit", "1"])),
        [&all[1]["record"]]
    );
    assert_eq!(records(&place.json("tail", &["-n", "2"])), [&all[1]["record"], &all[2]["record"]]);
    let text = place.log("tail", &["-n", "1"]).succeeded().out;
    assert_eq!(text, format!("{}.0 [3]\n", all[2]["lsn"]));
}

#[test]
fn lines_of_standard_input_are_records() {
    let place = Place::new();
    place.log("create", &[]).succeeded();
    let path = place.path();
    let said =
        place.fixture.holdfast_with_input(&["log", "append", path.to_str().unwrap()], "one\ntwo\n");
    assert!(said.succeeded().out.starts_with("2 records appended and on the disk"));
    let printed = place.log("dump", &[]).succeeded().out;
    let records: Vec<&str> = printed.lines().filter_map(|line| line.split(" ").nth(1)).collect();
    assert_eq!(records, ["one", "two"], "{printed}");
}

#[test]
fn a_program_reads_what_the_command_wrote_and_the_other_way_round() {
    let place = Place::new();
    place.log("create", &["--record", "bank.transfer", "--format", "message-pack"]).succeeded();
    place.log("append", &[r#"[1,2,"rent"]"#]).succeeded();
    let open = || Log::<Transfer, MessagePack>::open(place.path(), &Options::default());
    let (log, _) = open().unwrap();
    let found = log.iter().next().unwrap().unwrap().record;
    assert_eq!(found, Transfer { from: 1, to: 2, why: "rent".into() });
    log.append_durable(&Transfer { from: 2, to: 3, why: "tea".into() }).unwrap();
    drop((log, found));
    assert_eq!(records(&place.json("tail", &["-n", "1"])), [&serde_json::json!([2, 3, "tea"])]);
    // Another type and another format are told apart as ever.
    assert!(Log::<Transfer, Json>::open(place.path(), &Options::default()).is_err());
    assert!(Log::<Vec<u8>, Raw>::open(place.path(), &Options::default()).is_err());
    open().unwrap();
}

#[test]
fn a_record_that_is_none_is_refused_and_those_before_it_stay() {
    let place = Place::with(&[]);
    place.log("append", &["1", "{", "2"]).expect(2, &["`{` is not JSON", "the 1 before it"]);
    assert_eq!(place.json("dump", &[]).len(), 1);
}

#[test]
fn a_log_that_is_open_is_left_alone_and_its_type_is_shown() {
    let place = Place::with(&["1"]);
    let (open, _, _) = Log::open_any(place.path(), &Options::default()).unwrap();
    for (command, arguments) in
        [("append", &["2"][..]), ("dump", &[]), ("tail", &[]), ("truncate", &["--before", "0"])]
    {
        place.log(command, arguments).expect(5, &["open already", "end the program"]);
    }
    let stat = &place.json("stat", &[])[0];
    assert_eq!((&stat["record"], &stat["open_elsewhere"]), (&"notes".into(), &true.into()));
    assert_eq!(stat["end_lsn"], Value::Null);
    assert!(stat["durable_lsn"].as_u64() > Some(0), "{stat}");
    let text = place.log("stat", &[]).succeeded().out;
    assert!(text.contains("durable to") && text.contains("open in another program"), "{text}");
    drop(open);
    let stat = &place.json("stat", &[])[0];
    assert!(stat["end_lsn"].as_u64() > Some(0), "{stat}");
}

#[test]
fn what_a_checkpoint_took_away_is_not_printed_and_a_wrong_position_is_refused() {
    let place = Place::with(&["1", "2", "3"]);
    let all = place.json("dump", &[]);
    place.log("truncate", &["--before", "7"]).expect(2, &["nothing was changed", "dump"]);
    place.log("truncate", &["--before", &all[2]["lsn"].to_string()]).succeeded();
    assert_eq!(records(&place.json("dump", &[])), [&all[2]["record"]]);
    place.log("dump", &["--from", "0"]).expect(2, &["--from"]);
}

#[test]
fn positions_are_taken_as_they_are_printed() {
    let place = Place::with(&["1", "2", "3", "4"]);
    let printed = place.log("dump", &[]).succeeded().out;
    let at: Vec<&str> = printed.lines().map(|line| line.split(' ').next().unwrap()).collect();
    let from = place.log("dump", &["--from", at[1]]).succeeded().out;
    assert_eq!(from.lines().next(), printed.lines().nth(1));
    place.log("truncate", &["--before", at[1]]).succeeded();
    place.log("truncate", &["--after", at[3]]).succeeded();
    let left: Vec<String> = printed.lines().map(str::to_owned).collect();
    assert_eq!(place.log("dump", &[]).succeeded().out, format!("{}\n{}\n", left[1], left[2]));
    let amid = at[2].replace(".0", ".1");
    place.log("truncate", &["--before", &amid]).expect(2, &["as a whole", "it begins at"]);
    place.log("truncate", &["--before", "first"]).expect(2, &["no position such as"]);
}

#[test]
fn a_repair_of_a_log_that_lost_its_catalogues_says_that_an_end_may_be_missing() {
    let place = Place::with(&["1", "2"]);
    let new = place.fixture.path("mended");
    let whole = &place.json("repair", &["--dry-run"])[0];
    assert_eq!(whole["rebuilt"], false, "{whole}");
    for name in ["catalogue", "catalogue.copy"] {
        std::fs::remove_file(place.path().join(name)).unwrap();
    }
    assert_eq!(place.json("repair", &["--dry-run"])[0]["rebuilt"], true);
    let said = place.log("repair", &[new.to_str().unwrap()]).succeeded().out;
    assert!(said.contains("nothing is known of what may have been behind LSN"), "{said}");
}

#[test]
fn a_log_that_may_not_be_written_is_told_why_and_not_to_make_space() {
    let place = Place::with(&["1"]);
    let catalogues = ["catalogue", "catalogue.copy"].map(|name| place.path().join(name));
    let attribute = |flag: &str| {
        let changed = std::process::Command::new("chattr").arg(flag).args(&catalogues).status();
        changed.is_ok_and(|status| status.success())
    };
    if !attribute("+i") {
        println!("no immutable files here: skipped");
        return;
    }
    let ended = place.log("truncate", &["--before", "0"]);
    let opened = place.log("append", &["2"]);
    assert!(attribute("-i"));
    for ended in [ended, opened] {
        if ended.code != Some(0) {
            ended.expect(1, &["not permitted", "chattr -i"]);
            assert!(!ended.err.contains("space"), "{ended:?}");
        }
    }
    place.log("append", &["3"]).succeeded();
}

#[test]
fn damage_is_named_by_position_with_its_own_exit_code() {
    let place = Place::with(&["1", "2", "3"]);
    let named = format!("damaged from LSN {}", place.json("dump", &[])[0]["lsn"]);
    damage_first(&place);
    for command in ["dump", "tail"] {
        place.log(command, &[]).expect(6, &[&named, "nothing was changed"]);
    }
}

#[test]
fn a_directory_without_a_log_and_one_with_a_log_are_refused_where_they_do_not_fit() {
    let place = Place::new();
    place.log("stat", &[]).expect(2, &["no log here", "holdfast log create"]);
    std::fs::create_dir(place.path()).unwrap();
    for command in ["stat", "dump", "tail", "append"] {
        place.log(command, &[]).expect(2, &["no log here", "holdfast log create"]);
    }
    place.log("create", &["--segment", "100KiB"]).expect(2, &["--segment"]);
    place.log("create", &["--record", ""]).expect(2, &["--record"]);
    place.log("create", &[]).succeeded();
    place.log("create", &[]).expect(2, &["there is a log here already", "empty directory"]);
}

#[test]
fn a_short_measurement_leaves_nothing_behind() {
    let place = Place::new();
    std::fs::create_dir(place.path()).unwrap();
    let rates = &place.json("bench", &["--seconds", "0.02"])[0];
    let names: Vec<&str> =
        rates.as_array().unwrap().iter().map(|rate| rate["name"].as_str().unwrap()).collect();
    assert_eq!(names.first().zip(names.last()), Some((&"1 threads", &"pipelined")));
    assert!(
        rates.as_array().unwrap().iter().all(|rate| rate["records_per_s"].as_f64() > Some(0.0))
    );
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    place.log("bench", &["--seconds", "0"]).expect(2, &["--seconds"]);
}

#[test]
fn of_a_log_whose_segments_are_gone_a_repair_names_those_and_no_other() {
    let place = Place::new();
    place.log("create", &["--segment", "64KiB", "--format", "json", "--record", "n"]).succeeded();
    let long = format!("{:?}", "y".repeat(2500));
    let append = || place.log("append", &vec![&*long; 30]).succeeded();
    append();
    // The first segment is done with, and lies there for later.
    let dumped = place.json("dump", &[]);
    let late = dumped.iter().find(|record| record["lsn"].as_u64() > Some(66_000)).unwrap();
    place.log("truncate", &["--before", &late["lsn"].to_string()]).succeeded();
    for name in ["segment-00000001", "segment-00000002"] {
        let _ = std::fs::remove_file(place.path().join(name));
    }
    assert!(place.path().join("segment-00000000").exists());
    place.log("verify", &[]).expect(6, &["segment-00000001", "is not there"]);
    for arguments in [&["--dry-run"][..], &[place.fixture.path("new").to_str().unwrap()]] {
        let refused = place.log("repair", arguments);
        refused.expect(6, &["segment-00000001", "is not there", "from a copy"]);
        let said = refused.err.replace("repairing", "");
        assert!(!said.contains("segment-00000000") && !said.contains("repair"), "{said}");
    }
}

#[test]
fn what_is_left_of_a_damaged_log_is_saved_into_a_new_one() {
    let place = Place::with(&["1", "2", "3"]);
    let all = place.json("dump", &[]);
    assert_eq!(place.json("verify", &[])[0]["verdict"], "clean");
    damage_first(&place);
    place.log("verify", &[]).expect(6, &["segment-00000000", "holdfast log repair"]);

    let said = &place.json("repair", &["--dry-run"])[0];
    assert_eq!((&said["dry_run"], said["lost"].as_array().unwrap().len()), (&true.into(), 1));
    let new = place.fixture.path("mended");
    assert!(!new.exists());
    place.log("repair", &[new.to_str().unwrap()]).succeeded();
    let dumped = place.fixture.holdfast(&["log", "dump", new.to_str().unwrap(), "--json"]);
    let dumped: Vec<Value> =
        dumped.succeeded().out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(dumped, all[1..]);
    // The old one is as it was, and a directory with a log is no place for a new one.
    place.log("verify", &[]).expect(6, &["segment-00000000"]);
    place.log("repair", &[new.to_str().unwrap()]).expect(1, &["as it was", "empty directory"]);
    place.log("repair", &[]).expect(2, &["<TO>"]);
}

/// Writes over the middle of the first record's set.
fn damage_first(place: &Place) {
    let lsn = place.json("dump", &["--limit", "1"])[0]["lsn"].as_u64().unwrap();
    let segment = std::fs::File::options().write(true).open(place.path().join("segment-00000000"));
    segment.unwrap().write_all_at(b"damaged", 4096 + lsn + 44).unwrap();
}

#[test]
fn the_end_of_a_log_is_cut_off_for_good_and_it_goes_on() {
    let place = Place::with(&["1", "2", "3"]);
    let all = place.json("dump", &[]);
    let third = all[2]["lsn"].to_string();
    place.log("truncate", &["--after", "7"]).expect(2, &["nothing was changed", "dump"]);
    place.log("truncate", &[]).expect(2, &["--before", "--after"]);
    place.log("truncate", &["--after", &third, "--before", &third]).expect(2, &["--before"]);
    place.log("truncate", &["--after", &third]).succeeded();
    assert_eq!(place.json("dump", &[]), all[..2]);
    place.log("append", &["4"]).succeeded();
    assert_eq!(place.json("dump", &[])[2]["record"], 4);
    place.log("truncate", &["--before", &all[1]["lsn"].to_string()]).succeeded();
    let first = all[0]["lsn"].to_string();
    place.log("truncate", &["--after", &first]).expect(2, &["begins at LSN", "nothing was"]);
}

#[test]
fn the_end_of_a_log_with_parity_is_cut_off_and_its_parity_is_sound() {
    let place = Place::new();
    place.log("create", &["--parity"]).succeeded();
    place.log("append", &["one", "two"]).succeeded();
    let all = place.json("dump", &[]);
    place.log("truncate", &["--after", &all[1]["lsn"].to_string()]).succeeded();
    assert_eq!(place.json("dump", &[]), all[..1]);
    let parity = &place.json("verify", &[])[0]["parity"];
    assert!(parity["stripes"].as_u64() > Some(0) && parity["sound"] == parity["stripes"]);
}

#[test]
fn records_are_printed_from_the_newest_on() {
    let place = Place::with(&["1", "2", "3"]);
    let mut all = place.json("dump", &[]);
    let third = all[2]["lsn"].to_string();
    all.reverse();
    assert_eq!(place.json("dump", &["--reverse"]), all);
    assert_eq!(place.json("dump", &["--reverse", "--limit", "1"]), all[..1]);
    assert_eq!(place.json("dump", &["--reverse", "--from", &third]), all[1..]);
}

/// A file with keys, which so many may open.
pub(crate) fn key_file(place: &Place, name: &str, mode: u32, text: &str) -> String {
    let path = place.fixture.path(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_sealed_log_opens_with_its_keys_and_is_verified_without() {
    let place = Place::new();
    let (old, new) = ("a1".repeat(32), "B2".repeat(32));
    let first = key_file(&place, "first", 0o600, &format!("1 {old}\n"));
    let both = key_file(&place, "both", 0o400, &format!("2 {new}\n\n1 {old}\n"));
    let other = key_file(&place, "other", 0o600, &format!("1 {new}\n"));
    place.log("create", &["--key-file", &first]).succeeded();
    place.log("append", &["--key-file", &first, "a secret"]).succeeded();
    place.log("append", &["--key-file", &both, "another"]).succeeded();
    let with = |command: &str, more: &[&str]| -> Vec<Value> {
        let lines = place.json(command, &[&["--key-file", &both], more].concat());
        lines.iter().map(|line| line["text"].clone()).collect()
    };
    assert_eq!(with("dump", &[]), ["a secret", "another"]);
    assert_eq!(with("tail", &["-n", "1"]), ["another"]);
    let stat = &place.json("stat", &["--key-file", &first])[0];
    assert!(stat["end_lsn"].as_u64() > Some(0), "{stat}");
    assert_eq!(place.json("verify", &[])[0]["verdict"], "clean");
    place.log("dump", &["--key-file", &first]).expect(2, &["key", "2", "add that key"]);
    for command in ["dump", "tail", "append"] {
        place.log(command, &[]).expect(2, &["sealed", "--key-file"]);
        place.log(command, &["--key-file", &other]).expect(2, &["another key 1"]);
    }
    let segment = std::fs::read(place.path().join("segment-00000000")).unwrap();
    assert!(!segment.windows(8).any(|part| part == b"a secret"));
}

#[test]
fn a_sealed_log_shows_without_its_keys_what_needs_none() {
    let place = Place::new();
    let keys = key_file(&place, "keys", 0o600, &format!("1 {}\n", "a1".repeat(32)));
    let other = key_file(&place, "other", 0o600, &format!("1 {}\n", "b2".repeat(32)));
    place.log("create", &["--key-file", &keys]).succeeded();
    place.log("append", &["--key-file", &keys, "a secret"]).succeeded();
    let stat = |arguments| place.json("stat", arguments).remove(0);
    let (with, without) = (stat(&["--key-file", &keys]), stat(&[]));
    for key in ["record", "format", "first_lsn", "segments", "file_bytes"] {
        assert_eq!(with[key], without[key]);
    }
    assert_eq!((&with["sealed"], &without["sealed"]), (&true.into(), &true.into()));
    assert_eq!((&without["open_elsewhere"], &without["end_lsn"]), (&false.into(), &Value::Null));
    let durable = without["durable_lsn"].as_u64();
    assert!(Some(0) < durable && durable <= with["end_lsn"].as_u64(), "{with} {without}");
    let text = place.log("stat", &[]).succeeded().out;
    assert!(text.contains("sealed") && text.contains("--key-file"), "{text}");
    place.log("stat", &["--key-file", &other]).expect(2, &["another key 1"]);
}

#[test]
fn a_file_that_holds_no_keys_or_is_open_to_others_is_refused() {
    let place = Place::with(&["1"]);
    let key = "a1".repeat(32);
    let said = |mode, text: &str| {
        let file = key_file(&place, "keys", mode, text);
        place.log("dump", &["--key-file", &file])
    };
    said(0o640, &format!("1 {key}")).expect(2, &["others than its owner", "chmod 600"]);
    for (text, why) in [
        ("", "it is empty"),
        (&*format!("1 {key}\n2 {}", &key[1..]), "line 2 is no key"),
        (&*format!("one {key}"), "line 1 is no key"),
        (&*format!("1 {key}\n1 {key}"), "two keys have the id 1"),
    ] {
        let ended = said(0o600, text);
        ended.expect(2, &[why, "64 hexadecimal digits"]);
    }
    said(0o600, &format!("1 {key}")).expect(2, &["not sealed", "leave out --key-file"]);
    std::fs::remove_file(place.fixture.path("keys")).unwrap();
    let missing = place.fixture.path("keys");
    place.log("dump", &["--key-file", missing.to_str().unwrap()]).expect(1, &["No such file"]);
}

/// A log whose catalogue is another's that was written more often.
fn with_a_foreign_catalogue() -> Place {
    let (place, other) = (Place::with(&["1", "2"]), Place::with(&["3"]));
    (0..4).for_each(|_| drop(other.log("append", &["4"]).succeeded()));
    std::fs::copy(other.path().join("catalogue"), place.path().join("catalogue")).unwrap();
    place
}

#[test]
fn a_catalogue_of_another_log_is_named_and_made_again() {
    let place = with_a_foreign_catalogue();
    place.log("verify", &[]).expect(6, &["the file catalogue", "another log", "from its copy"]);
    let to = place.fixture.path("repaired");
    let repaired = place.log("repair", &[to.to_str().unwrap()]).succeeded();
    assert!(!repaired.out.contains("lost"), "{repaired:?}");
    let dumped = place.log("dump", &["--json"]).succeeded();
    assert_eq!(dumped.out.lines().count(), 2, "{dumped:?}");
    assert!(dumped.err.contains("catalogue has been made again"), "{dumped:?}");
    place.log("verify", &[]).succeeded();
    let dumped = place.log("dump", &["--json"]).succeeded();
    assert!(!dumped.err.contains("made again"), "it is said once: {dumped:?}");
}

#[test]
fn a_symbolic_link_in_the_place_of_a_log_is_named_with_what_to_do() {
    let place = Place::with(&["1", "2"]);
    let real = place.fixture.path("real");
    std::fs::rename(place.path(), &real).unwrap();
    std::os::unix::fs::symlink("real", place.path()).unwrap();
    let leads = format!("name what it leads to: {}", real.display());
    for command in ["dump", "stat", "verify"] {
        place.log(command, &[]).expect(2, &["is a symbolic link", &leads]);
    }
    std::fs::remove_file(place.path()).unwrap();
    std::fs::rename(&real, place.path()).unwrap();
    let segment = place.path().join("segment-00000000");
    std::fs::rename(&segment, &real).unwrap();
    std::os::unix::fs::symlink(&real, &segment).unwrap();
    let words = ["segment-00000000 is a symbolic link", "put what it leads to in its place"];
    place.log("verify", &[]).expect(2, &words);
}

#[test]
fn what_has_a_catalogues_name_and_is_no_file_is_named_and_left_alone() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    for name in ["catalogue", "catalogue.copy"] {
        let directory = |path: &PathBuf| std::fs::create_dir(path).unwrap();
        let link = |path: &PathBuf| std::os::unix::fs::symlink("kept", path).unwrap();
        let pipe = |path: &PathBuf| {
            mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        };
        for put in [&directory as &dyn Fn(&PathBuf), &link, &pipe] {
            let place = Place::with(&["1", "2"]);
            let path = place.path().join(name);
            std::fs::rename(&path, place.path().join("kept")).unwrap();
            put(&path);
            place.log("verify", &[]).expect(6, &[name, "no ordinary file", "move"]);
            for command in ["dump", "append"] {
                place.log(command, &[]).expect(6, &[name, "no ordinary file", "move"]);
            }
            if std::fs::remove_file(&path).is_err() {
                std::fs::remove_dir(&path).unwrap();
            }
            let dumped = place.log("dump", &["--json"]).succeeded();
            assert_eq!(dumped.out.lines().count(), 2, "{dumped:?}");
        }
    }
}
