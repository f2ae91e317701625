//! `holdfast store`: from an empty directory to a damaged store, in every word of it.

use crate::fixture::{Ended, Fixture};
use holdfast_store::{Config, Durability, Service, Store};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A directory for a store, and the command.
struct Place {
    fixture: Fixture,
}

impl Place {
    fn new() -> Place {
        Place { fixture: Fixture::new() }
    }

    fn path(&self) -> PathBuf {
        self.fixture.path("a-store")
    }

    /// `holdfast store COMMAND DIRECTORY ARGUMENTS...`
    fn store(&self, command: &str, arguments: &[&str]) -> Ended {
        let path = self.path();
        let words = ["store", command, path.to_str().unwrap()];
        self.fixture.holdfast(&[&words, arguments].concat())
    }

    fn json(&self, command: &str, arguments: &[&str]) -> Vec<Value> {
        let ended = self.store(command, &[arguments, &["--json"]].concat()).succeeded();
        ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// `holdfast store load` with these lines on standard input.
    fn load(&self, lines: &str) -> Ended {
        let path = self.path();
        self.fixture.holdfast_with_input(&["store", "load", path.to_str().unwrap()], lines)
    }

    /// A store with these lines in it.
    fn with(lines: &str) -> Place {
        let place = Place::new();
        place.store("open", &[]).succeeded();
        place.load(lines).succeeded();
        place
    }
}

#[test]
fn what_is_put_is_got_again_and_an_empty_value_is_one() {
    let place = Place::new();
    let said = place.store("open", &[]).succeeded().out;
    assert!(said.contains("a new store"), "{said}");
    place.store("put", &["apple", "red"]).succeeded();
    place.store("put", &["apple", "green"]).succeeded();
    place.store("put", &["nothing", ""]).succeeded();
    assert_eq!(place.store("get", &["apple"]).succeeded().out, "green\n");
    assert_eq!(place.store("get", &["nothing"]).succeeded().out, "\n");
    let found = &place.json("get", &["apple"])[0];
    assert_eq!((&found["key"], &found["value"]), (&"apple".into(), &"green".into()));
    let done = &place.json("put", &["pear", "yellow"])[0];
    assert_eq!(done["class"], "disk");
    assert!(done["committed_rsn"].as_u64() > Some(0), "{done}");
    place.store("get", &["plum"]).expect(2, &["no key `plum`", "scan"]);
}

/// Everything in a directory and below it.
fn all_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| {
        let within = if path.is_dir() { all_in(&path) } else { Vec::new() };
        [vec![path], within].concat()
    };
    entries.flat_map(below).collect()
}

/// Puts a link in the place of each that is in a directory, one after the other.
fn with_links_in(directory: &Path, kept: &Path, look: impl Fn(&Path)) {
    for path in all_in(directory) {
        fs::rename(&path, kept).unwrap();
        symlink(kept, &path).unwrap();
        look(&path);
        fs::remove_file(&path).unwrap();
        fs::rename(kept, &path).unwrap();
    }
}

#[track_caller]
fn tells_of_link(told: &Ended, path: &Path) -> bool {
    let text = format!("{told:?}");
    let is_told = text.contains(&format!("{} is a symbolic link", path.display()));
    let is_raw = text.contains("Too many levels") || text.contains("Not a directory");
    assert!(!is_raw, "{}: {text}", path.display());
    if is_told {
        told.expect(2, &["put what it leads to in its place"]);
    }
    is_told
}

#[test]
fn a_symbolic_link_in_the_place_of_a_store_is_named_with_what_to_do() {
    let place = Place::with("a\t1\n");
    let real = place.fixture.path("real");
    fs::rename(place.path(), &real).unwrap();
    symlink("real", place.path()).unwrap();
    let leads = format!("name what it leads to: {}", real.display());
    let words = ["a-store is a symbolic link", &leads];
    for command in ["open", "stat", "verify"] {
        place.store(command, &[]).expect(2, &words);
    }
    let to = place.fixture.path("new");
    place.store("restore", &[to.to_str().unwrap()]).expect(2, &words);
    fs::remove_file(place.path()).unwrap();
    symlink("a-store", place.path()).unwrap();
    let words = ["a-store is a symbolic link that leads to itself", "correct it"];
    place.store("open", &[]).expect(2, &words);
    place.store("stat", &[]).expect(2, &words);
}

#[test]
fn a_symbolic_link_in_a_store_or_a_backup_is_named_with_what_to_do() {
    let place = Place::with("a\t1\n");
    let (kept, to, new) =
        (place.fixture.path("kept"), place.fixture.path("backup"), place.fixture.path("new"));
    let mut told = 0;
    let told = std::cell::Cell::from_mut(&mut told);
    let count = |is_told| told.set(told.get() + u32::from(is_told));
    with_links_in(&place.path(), &kept, |path| {
        count(tells_of_link(&place.store("stat", &[]), path));
    });
    assert!(told.get() > 8, "{}", told.get());
    place.store("backup", &[to.to_str().unwrap()]).succeeded();
    told.set(0);
    with_links_in(&to, &kept, |path| {
        let arguments = ["store", "restore", to.to_str().unwrap(), new.to_str().unwrap()];
        count(tells_of_link(&place.fixture.holdfast(&arguments), path));
        let _ = fs::remove_dir_all(&new);
    });
    assert!(told.get() >= 3, "{}", told.get());
}

#[test]
fn trees_are_apart_and_one_that_is_not_there_is_made_by_writers_only() {
    let place = Place::with("a\t1\n");
    place.store("get", &["a", "--tree", "other"]).expect(2, &["no tree `other`", "stat"]);
    place.store("scan", &["--tree", "other"]).expect(2, &["no tree `other`"]);
    assert_eq!(place.json("stat", &[])[0]["trees"], serde_json::json!(["main"]));
    place.store("put", &["a", "2", "--tree", "other"]).succeeded();
    assert_eq!(place.store("get", &["a"]).succeeded().out, "1\n");
    assert_eq!(place.store("get", &["a", "--tree", "other"]).succeeded().out, "2\n");
    assert_eq!(place.json("stat", &[])[0]["trees"], serde_json::json!(["main", "other"]));
}

#[test]
fn what_a_scan_prints_is_what_a_load_takes() {
    let lines = "0x00ff\tbytes\n0x3078\t0x096e\na\t1\nab\t\nb\ta value\n";
    let place = Place::with(lines);
    assert_eq!(place.store("scan", &[]).succeeded().out, lines);
    let again = Place::with(&place.store("scan", &["--reverse"]).succeeded().out);
    assert_eq!(again.store("scan", &[]).succeeded().out, lines);
    let part = |arguments: &[&str]| -> Vec<Value> {
        place.json("scan", arguments).iter().map(|line| line["key"].clone()).collect()
    };
    assert_eq!(part(&["--from", "a", "--to", "b"]), ["a", "ab"]);
    assert_eq!(part(&["--from", "0x61", "--limit", "1"]), ["a"]);
    assert_eq!(part(&["--to", "b", "--reverse", "--limit", "2"]), ["ab", "a"]);
    assert_eq!(part(&["--from", "c"]), [""; 0]);
    assert_eq!(part(&["--limit", "0"]), [""; 0]);
}

#[test]
fn more_keys_than_a_transaction_takes_are_loaded_from_a_file_and_scanned_both_ways() {
    let place = Place::new();
    place.store("open", &[]).succeeded();
    let mut lines: Vec<String> = (0..2500).map(|key| format!("{key:05}\tvalue {key}\n")).collect();
    let file = place.fixture.path("lines");
    std::fs::write(&file, lines.concat()).unwrap();
    let said = &place.json("load", &[file.to_str().unwrap()])[0];
    assert_eq!((&said["loaded"], &said["class"]), (&2500.into(), &"disk".into()));
    assert_eq!(place.store("scan", &[]).succeeded().out, lines.concat());
    let part = place.store("scan", &["--from", "00100", "--to", "02300"]).succeeded().out;
    assert_eq!(part, lines[100..2300].concat());
    lines.reverse();
    assert_eq!(place.store("scan", &["--reverse"]).succeeded().out, lines.concat());
}

#[test]
fn a_line_that_is_none_is_refused_and_those_before_it_stay() {
    let place = Place::new();
    place.store("open", &[]).succeeded();
    place.load("a\t1\nb\n c\t3\n").expect(2, &["line 2", "no tab", "the 1 before it"]);
    place.load("b\t2\n0x1\t\n").expect(2, &["line 2", "hexadecimal", "the 1 before it"]);
    let long = format!("c\t3\n{}\t\n", "k".repeat(5000));
    place.load(&long).expect(2, &["line 2", "a key has at most", "the 1 before it"]);
    assert_eq!(place.store("scan", &[]).succeeded().out, "a\t1\nb\t2\nc\t3\n");
    place.store("load", &["/no/such/file"]).expect(1, &["No such file", "nothing was changed"]);
    place.store("put", &[&"k".repeat(5000), ""]).expect(2, &["a key has at most", "shorter"]);
    place.store("put", &["0x0", ""]).expect(2, &["hexadecimal digits"]);
}

#[test]
fn what_a_program_committed_is_read_and_what_it_had_not_is_undone() {
    let place = Place::with("a\t1\n");
    let (store, found) = Store::open(&place.path(), &Config::default()).unwrap();
    assert!(!found.is_new);
    let tree = store.tree("main").unwrap();
    let mut unended = store.begin();
    unended.put(&tree, b"a", b"2").unwrap();
    let mut ended = store.begin();
    ended.put(&tree, b"b", b"3").unwrap();
    ended.commit(Durability::Disk).unwrap();
    // As if the program were killed: the transaction never ends.
    std::mem::forget(unended);
    drop(store);
    let said = &place.json("open", &[])[0];
    assert_eq!((&said["is_new"], &said["losers"]), (&false.into(), &1.into()), "{said}");
    assert_eq!(place.json("open", &[])[0]["losers"], 0);
    assert_eq!(place.store("scan", &[]).succeeded().out, "a\t1\nb\t3\n");
}

#[test]
fn a_store_that_is_open_is_left_alone() {
    let place = Place::with("a\t1\n");
    let open = Store::open(&place.path(), &Config::default()).unwrap();
    for (command, arguments) in
        [("open", &[][..]), ("get", &["a"]), ("put", &["a", "2"]), ("scan", &[]), ("stat", &[])]
    {
        place.store(command, arguments).expect(5, &["somebody has the store open", "end the"]);
    }
    drop(open);
    assert_eq!(place.store("get", &["a"]).succeeded().out, "1\n");
}

#[test]
fn a_directory_without_a_store_is_refused_and_nothing_is_made_in_it() {
    let place = Place::new();
    let told = ["no store here", "holdfast store open"];
    place.store("get", &["a"]).expect(2, &told);
    assert!(!place.path().exists());
    std::fs::create_dir(place.path()).unwrap();
    std::fs::write(place.path().join("letter"), "dear").unwrap();
    for (command, arguments) in
        [("get", &["a"][..]), ("put", &["a", "b"]), ("load", &[]), ("scan", &[]), ("stat", &[])]
    {
        place.store(command, arguments).expect(2, &told);
    }
    place.store("open", &[]).expect(2, &["something else", "empty one"]);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn what_a_store_is_is_shown() {
    let place = Place::with("a\t1\n");
    let stat = &place.json("stat", &[])[0];
    for number in ["end_rsn", "archived_rsn", "pages", "log_file_bytes", "archive_file_bytes"] {
        assert!(stat[number].as_u64() > Some(0), "{number}: {stat}");
    }
    assert!(stat["cleaned_rsn"].as_u64() <= stat["archived_rsn"].as_u64(), "{stat}");
    assert_eq!(stat["losers"], 0);
    let text = place.store("stat", &[]).succeeded().out;
    assert!(text.contains("trees     main\n") && text.contains("archive   "), "{text}");
}

#[test]
fn pages_that_are_damaged_on_the_disk_are_named_and_made_again() {
    let lines: Vec<String> = (0..2000).map(|key| format!("{key:05}\tvalue {key}\n")).collect();
    let place = Place::with(&lines.concat());
    place.store("put", &["a", "1", "--tree", "other"]).succeeded();
    let found = &place.json("verify", &[])[0];
    assert_eq!((&found["verdict"], &found["faults"]), (&"clean".into(), &serde_json::json!([])));
    // That of the names has a key for each of the others.
    assert_eq!((&found["trees"]["trees"], &found["trees"]["keys"]), (&3.into(), &2003.into()));
    assert_eq!(found["freed_pages"], serde_json::Value::Null);
    let text = place.store("verify", &["--reclaim"]).succeeded().out;
    assert!(text.contains("3 trees with 2003 keys") && text.contains("0 pages are free"), "{text}");

    let often = Config { clean_every_bytes: 1, ..Config::default() };
    let (store, _) = Store::open(&place.path(), &often).unwrap();
    while store.step(Service::Clean).unwrap() {}
    store.close().unwrap();
    let pages = place.path().join("pages");
    let mut bytes = std::fs::read(&pages).unwrap();
    assert!(bytes.len() > 4 * 8192, "{}", bytes.len());
    bytes[3 * 8192 + 4000] ^= 1;
    std::fs::write(&pages, bytes).unwrap();
    let damaged = ["page 3: on the disk it is damaged", "nothing is lost"];
    let refused = place.store("verify", &["--reclaim"]);
    assert!(!refused.out.contains("are free"), "{}", refused.out);
    refused.expect(6, &damaged);
    assert_eq!(place.store("scan", &[]).succeeded().out, lines.concat());
}

#[test]
fn a_store_is_made_again_as_it_was() {
    let place = Place::with("a\t1\n");
    let at = place.json("put", &["a", "2"])[0]["committed_rsn"].to_string();
    place.store("put", &["a", "3"]).succeeded();
    let (backup, to) = (place.fixture.path("backup"), place.fixture.path("restored"));
    let (backup, to) = (backup.to_str().unwrap(), to.to_str().unwrap());
    let value = |directory| {
        let found = place.fixture.holdfast(&["store", "get", directory, "a"]).succeeded().out;
        std::fs::remove_dir_all(directory).unwrap();
        found
    };
    let restore = |from: &str, more: &[&str]| {
        place.fixture.holdfast(&[&["store", "restore", from, to], more].concat())
    };

    place.store("restore", &[to, "--at", &format!("rsn:{at}")]).succeeded();
    assert_eq!(value(to), "2\n");
    place.store("restore", &[to, "--at", "rsn:999999999"]).expect(2, &["between"]);
    place.store("restore", &[to, "--at", "yesterday"]).expect(2, &["is no moment such as"]);
    let made = &place.json("restore", &[to])[0];
    let time = made["time"].as_str().unwrap().to_owned();
    assert_eq!(value(to), "3\n");
    place.store("restore", &[to, "--at", &time]).succeeded();
    assert_eq!(value(to), "3\n");

    place.store("backup", &[backup]).succeeded();
    place.store("backup", &[backup]).expect(2, &["--forward"]);
    place.store("put", &["a", "4"]).succeeded();
    restore(backup, &[]).succeeded();
    restore(backup, &[]).expect(2, &["name an empty directory"]);
    assert_eq!(value(to), "3\n");
    place.store("backup", &[backup, "--forward"]).succeeded();
    restore(backup, &[]).succeeded();
    assert_eq!(value(to), "4\n");
    restore("/no/such/directory", &[]).expect(2, &["No such file"]);
}

#[test]
fn what_the_user_can_put_right_is_a_wrong_command_and_no_damage() {
    let place = Place::with("a\t1\n");
    let paths = ["backup", "restored", "again"].map(|name| place.fixture.path(name));
    let [backup, restored, again] = paths.each_ref().map(|path| path.to_str().unwrap());
    let holdfast = |arguments: &[&str]| place.fixture.holdfast(arguments);
    place.store("backup", &[backup]).succeeded();
    holdfast(&["store", "restore", backup, restored]).succeeded();
    // It goes on from the same records by itself.
    holdfast(&["store", "backup", restored, backup, "--forward"])
        .expect(2, &["make a new one", "leave out --forward"]);
    place.store("backup", &[backup, "--forward"]).succeeded();
    place.store("backup", &[restored]).expect(2, &["something else", "an empty directory"]);

    let (store, _) = Store::open(&place.path(), &Config::default()).unwrap();
    place.store("restore", &[again]).expect(5, &["somebody has the store open", "end the"]);
    drop(store);
    place.store("restore", &[again]).expect(2, &["was not closed", "store open", "--at"]);
    place.store("open", &[]).succeeded();
    place.store("restore", &[again]).succeeded();
    let running = Store::open(&paths[2], &Config::default()).unwrap();
    place.store("restore", &[again]).expect(5, &["somebody has", "end the"]);
    drop(running);
}

#[test]
fn a_backup_that_is_damaged_or_cannot_be_had_has_the_exit_code_for_that() {
    let place = Place::with("a\t1\n");
    let (backup, to) = (place.fixture.path("backup"), place.fixture.path("restored"));
    let backup_to = backup.to_str().unwrap();
    let restore = ["store", "restore", backup_to, to.to_str().unwrap()];
    place.store("backup", &[backup_to]).succeeded();
    for names in [&["backup", "backup.copy"][..], &["manifest"]] {
        let flip = || names.iter().for_each(|name| flip_bit(&backup.join(name)));
        flip();
        place.store("backup", &[backup_to, "--forward"]).expect(6, &["damaged"]);
        place.fixture.holdfast(&restore).expect(6, &["damaged"]);
        flip();
    }
    place.fixture.holdfast(&restore).succeeded();
    place.store("backup", &["/no/such/directory/backup"]).expect(2, &["No such file"]);
}

fn flip_bit(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[20] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn damage_is_told_and_has_its_exit_code() {
    let place = Place::with("a\t1\n");
    let headers = ["store", "store.copy"].map(|name| place.path().join(name));
    headers.iter().for_each(|header| flip_bit(header));
    place.store("get", &["a"]).expect(6, &["the file store is damaged", "nothing was changed"]);
    flip_bit(&headers[1]);
    assert_eq!(place.store("get", &["a"]).succeeded().out, "1\n", "the second one is enough");
    assert_eq!(place.store("get", &["a"]).succeeded().out, "1\n");
}

#[test]
fn a_short_measurement_adds_up_and_leaves_nothing_behind() {
    let place = Place::new();
    std::fs::create_dir(place.path()).unwrap();
    let rates = &place.json("bench", &["--seconds", "0.02"])[0];
    let rates = rates.as_array().unwrap();
    let classes: Vec<&Value> = rates.iter().map(|rate| &rate["class"]).collect();
    assert_eq!(classes, ["disk", "disk", "disk", "disk", "memory", "memory", "memory", "memory"]);
    assert!(rates.iter().all(|rate| rate["transfers_per_s"].as_f64() > Some(0.0)), "{rates:?}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    place.store("bench", &["--seconds", "0"]).expect(2, &["--seconds"]);
}

#[test]
fn trim_leaves_out_what_is_past_and_stat_says_from_where_on_moments_are() {
    let place = Place::with("pear\tyellow\n");
    for at in 0..4 {
        place.store("put", &["apple", &at.to_string()]).succeeded();
    }
    let kept_from = || place.json("stat", &[])[0]["kept_from_rsn"].as_u64().expect("a number");
    let before = kept_from();
    place.store("trim", &["--keep", "7d"]).succeeded();
    assert_eq!(kept_from(), before);
    let told = &place.json("trim", &["--keep", "repair"])[0];
    assert!(told["kept_from_rsn"].as_u64() > Some(before), "{told}");
    assert!(kept_from() > before);
    assert_eq!(place.store("get", &["apple"]).succeeded().out, "3\n");
    place.store("trim", &["--keep", "some"]).expect(2, &["--keep"]);
}

#[test]
fn a_key_that_is_deleted_is_gone_and_one_that_was_not_there_is_told() {
    let place = Place::new();
    place.store("open", &[]).succeeded();
    place.store("put", &["apple", "red"]).succeeded();
    let done = &place.json("delete", &["apple"])[0];
    assert!(done["committed_rsn"].as_u64().unwrap() > 0);
    place.store("delete", &["apple"]).expect(2, &["there is no key `apple`", "scan"]);
    place.store("delete", &["apple", "--tree", "none"]).expect(2, &["there is no tree"]);
}

#[test]
fn a_catalogue_that_was_made_again_is_told_once() {
    let place = Place::with("a\tb\n");
    for name in ["catalogue", "catalogue.copy"] {
        std::fs::remove_file(place.path().join("log").join(name)).unwrap();
        let said = place.store("open", &[]).succeeded().out;
        let told = format!("the log's file {name} has been made again from its copy");
        assert!(said.contains(&told), "{said}");
        let said = place.store("open", &[]).succeeded().out;
        assert!(!said.contains("made again"), "{said}");
        assert_eq!(place.store("get", &["a"]).succeeded().out, "b\n");
    }
}
