//! The words of `holdfast log` that only look, at sound logs of everybody who makes some.
//!
//! Whoever made a log, and whatever it calls its records, looking at it works, speaks of no damage
//! and no repair, and leaves a log that is another's as it is.

use crate::fixture::{Ended, Fixture, NAME};
use crate::log_commands::Place;
use crate::seeds::{Random, for_seeds};
use crate::served::Served;
use holdfast_log::CommitLog;
use holdfast_wal::format::MessagePack;
use holdfast_wal::{Log, Options, Record};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SEEDS: u64 = 2;

/// What looks at a log and ends.
const LOOKS: [&[&str]; 7] = [
    &["stat"],
    &["dump"],
    &["dump", "--reverse"],
    &["dump", "--limit", "1"],
    &["tail"],
    &["verify"],
    &["repair", "--dry-run"],
];

/// Whoever makes a log.
#[derive(Clone, Copy, Debug)]
enum Maker {
    Create,
    Library,
    Made,
    Served,
    Volume,
    VolumeUsed,
    VolumeKilled,
    Tables,
}

const MAKERS: [Maker; 8] = [
    Maker::Create,
    Maker::Library,
    Maker::Made,
    Maker::Served,
    Maker::Volume,
    Maker::VolumeUsed,
    Maker::VolumeKilled,
    Maker::Tables,
];

/// A record of a program.
#[derive(serde::Serialize, serde::Deserialize)]
struct Moved(u32, String);

impl Record for Moved {
    const NAME: &'static str = "chess.moved";
}

/// A log and whatever has to be there as long as it is.
struct Made {
    directory: PathBuf,
    /// Whether a program that embeds a log would open it.
    is_labelled: bool,
    _keeps: Box<dyn std::any::Any>,
}

impl Maker {
    fn make(self, random: &mut Random) -> Made {
        match self {
            Maker::Create => created(random),
            Maker::Library => by_a_program(random),
            Maker::Made => of_served(Served::with("")),
            Maker::Served => of_served(served(random)),
            Maker::Tables => tables(),
            Maker::Volume => of_volume(Fixture::made()),
            Maker::VolumeUsed => of_volume(used_volume(random)),
            Maker::VolumeKilled => of_volume(Fixture::left_in_memory()),
        }
    }
}

fn created(random: &mut Random) -> Made {
    let place = Place::new();
    let format = ["raw", "json", "message-pack"][random.below(3) as usize];
    let parity: &[&str] = if random.below(2) == 0 { &[] } else { &["--parity"] };
    let options = ["--format", format, "--record", "notes", "--segment", "64KiB"];
    place.log("create", &[&options[..], parity].concat()).succeeded();
    let records = vec!["[1,2]"; 1 + random.below(20) as usize];
    place.log("append", &records).succeeded();
    Made { directory: place.path(), is_labelled: true, _keeps: Box::new(place) }
}

fn by_a_program(random: &mut Random) -> Made {
    let place = Place::new();
    let opened = Log::<Moved, MessagePack>::open_or_create(place.path(), &Options::default());
    let (log, _) = opened.unwrap();
    for number in 0..random.below(20) as u32 {
        log.append(&Moved(number, "e4".into())).unwrap();
    }
    log.close().unwrap();
    drop(log);
    Made { directory: place.path(), is_labelled: true, _keeps: Box::new(place) }
}

fn of_served(served: Served) -> Made {
    Made { directory: served.path("log"), is_labelled: false, _keeps: Box::new(served) }
}

fn served(random: &mut Random) -> Served {
    let mut served = Served::with("");
    served.serve();
    let client = served.client();
    for _ in 0..1 + random.below(20) {
        let (records, bytes) = (random.below(4) as u16, random.below(500) as usize);
        client.append(records, &[&vec![b'x'; bytes]]).unwrap();
    }
    client.commit(client.marks().tail).unwrap();
    drop(client);
    served.stop();
    served
}

fn tables() -> Made {
    let store = tempfile::tempdir().unwrap();
    let at = store.path().join("bank");
    let lines = format!(
        "[table.bank]\nstore = {at:?}\nmemory = {{ medium = \"private\", size = \"8MiB\" }}\n"
    );
    let served = Served::with(&lines);
    Ended::of(served.holdfast(&["table", "make", "bank"])).succeeded();
    Made { directory: at.join("log"), is_labelled: false, _keeps: Box::new((store, served)) }
}

fn of_volume(fixture: Fixture) -> Made {
    Made { directory: fixture.log(), is_labelled: false, _keeps: Box::new(fixture) }
}

fn used_volume(random: &mut Random) -> Fixture {
    let mut fixture = Fixture::made();
    fixture.serve();
    for number in 0..1 + random.below(5) {
        fs::write(fixture.mount().join(format!("f{number}")), vec![7; 5000]).unwrap();
    }
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fixture.stop(), Some(0));
    fixture
}

/// The files of a log, byte for byte.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.is_file());
    paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn look(directory: &Path, words: &[&str], options: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    let at = directory.to_str().unwrap();
    let (word, rest) = words.split_first().unwrap();
    Ended::of(command.args(["log", word, at]).args(rest).args(options).output().unwrap())
}

#[test]
fn whoever_made_a_sound_log_looking_at_it_works_and_speaks_of_no_repair() {
    let test = "whoever_made_a_sound_log_looking_at_it_works_and_speaks_of_no_repair";
    for_seeds(test, SEEDS, |seed| {
        let mut random = Random::new(seed);
        for maker in MAKERS {
            let made = maker.make(&mut random);
            let before = files(&made.directory);
            for _ in 0..LOOKS.len() {
                let words = LOOKS[random.below(LOOKS.len() as u64) as usize];
                let options: &[&str] = if random.below(2) == 0 { &[] } else { &["--json"] };
                looks_well(&format!("seed {seed}: {maker:?}"), &made, words, options);
            }
            // Each once at least, whatever was drawn.
            LOOKS.iter().for_each(|words| looks_well(&format!("{maker:?}"), &made, words, &[]));
            let is_changed = files(&made.directory) != before;
            assert!(made.is_labelled || !is_changed, "{maker:?}: it is another's");
        }
    });
}

#[track_caller]
fn looks_well(of: &str, made: &Made, words: &[&str], options: &[&str]) {
    let ended = look(&made.directory, words, options);
    assert_eq!(ended.code, Some(0), "{of}, {words:?}: {ended:?}");
    for word in ["restore", "repair", "damaged from"] {
        assert!(!ended.err.contains(word), "{of}, {words:?}: {ended:?}");
    }
}

#[test]
fn the_sets_of_a_served_log_are_printed_in_order_and_none_but_its_server_appends() {
    let made = of_served({
        let mut served = Served::with("");
        served.serve();
        let client = served.client();
        for text in ["one", "two"] {
            client.append(3, &[text.as_bytes()]).unwrap();
        }
        client.commit(client.marks().tail).unwrap();
        drop(client);
        served.stop();
        served
    });
    let printed = |words: &[&str]| {
        let out = look(&made.directory, words, &[]).succeeded().out;
        out.lines().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(printed(&["dump"]), ["one", "two"]);
    assert_eq!(printed(&["dump", "--reverse"]), ["two", "one"]);
    assert_eq!(printed(&["tail", "-n", "1"]), ["two"]);
    for words in [&["append", "x"][..], &["truncate", "--before", "0"]] {
        look(&made.directory, words, &[]).expect(2, &["the server, a volume or a store uses it"]);
    }
    let stat: serde_json::Value =
        serde_json::from_str(&look(&made.directory, &["stat"], &["--json"]).succeeded().out)
            .unwrap();
    assert!(stat["record"].is_null() && stat["durable_lsn"].is_u64(), "{stat}");
}

#[test]
fn a_log_on_a_disk_that_cannot_be_written_is_looked_at() {
    let place = Place::with(&["1", "2"]);
    let at = place.path();
    let mount = |words: &[&str]| {
        assert!(Command::new("mount").args(words).arg(&at).status().unwrap().success());
    };
    mount(&["--bind", at.to_str().unwrap()]);
    mount(&["-o", "remount,bind,ro"]);
    let looked: Vec<_> = LOOKS.iter().map(|words| (words, look(&at, words, &[]))).collect();
    assert!(Command::new("umount").arg(&at).status().unwrap().success());
    for (words, ended) in looked {
        assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
    }
}
