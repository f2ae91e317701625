//! What is refused, case by case, and what a damaged file beside a log is worth.

use super::badge::{Badge, Barrier};
use super::common::{FORMAT, Note};
use super::home::{self, Fault, Found, HomeNote, Place};
use super::lent;
use super::note::{get, put};
use super::region::{self, Gone, RegionNote};
use holdfast_config::MemoryConfig;
use holdfast_config::claims::{Class, MediumKind};
use holdfast_config::sizes::Size;
use holdfast_format_docs::Tables;
use holdfast_io::real::{RealClock, RealFiles};
use holdfast_log::{Log, LogConfig};
use holdfast_memory::{Region, RegionSpec};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

const LOG: [u8; 16] = [7; 16];

fn place() -> Place {
    Place { is_device: false, number: 1, serial: String::new() }
}

fn home_note() -> HomeNote {
    HomeNote {
        format: FORMAT,
        identity: super::hex(LOG),
        generation: 5,
        is_begun: false,
        has_badge: true,
        is_complete: false,
        path: "/home".into(),
        place: place(),
        boot: "a".into(),
        is_unknown: false,
        branch: None,
        branch_before: None,
    }
}

fn found(badge: Option<Badge>) -> Found {
    Found { badge, place: place(), mode: 0o700, is_copy: false }
}

fn judge_home(note: &Note<HomeNote>, found: &Found) -> Result<(), Fault> {
    home::judge(&super::hex(LOG), note, found, "a")
}

#[test]
fn only_the_home_that_a_log_knows_is_taken() {
    let note = Note::Found(home_note());
    let of = |generation| found(Some(Badge::new(LOG, generation)));
    assert_eq!(judge_home(&note, &of(5)), Ok(()));
    assert_eq!(judge_home(&note, &found(None)), Err(Fault::NoBadge));
    assert_eq!(judge_home(&note, &of(4)), Err(Fault::OlderCopy(4)));
    let others = Badge::new([8; 16], 5);
    let other = super::hex([8; 16]);
    assert_eq!(judge_home(&note, &found(Some(others))), Err(Fault::OtherLog(other)));
    // A log without a file about its home is from an earlier version, and is taken as it is.
    assert_eq!(judge_home(&Note::Missing, &found(None)), Ok(()));
    assert_eq!(judge_home(&Note::Unreadable, &found(None)), Err(Fault::Unknown));
    // Which of the two is older cannot be told.
    for unknown in [Note::Unreadable, Note::Missing] {
        assert_eq!(judge_home(&unknown, &of(5)), Err(Fault::Unknown));
    }
}

#[test]
fn a_log_of_an_earlier_attachment_is_older_than_its_home() {
    for is_complete in [false, true] {
        let note = Note::Found(HomeNote { is_complete, ..home_note() });
        let newer = found(Some(Badge::new(LOG, 6)));
        assert_eq!(judge_home(&note, &newer), Err(Fault::OlderLog(6)));
    }
}

#[test]
fn a_death_while_the_two_are_brought_together_refuses_nothing() {
    let begun = Note::Found(HomeNote { is_begun: true, ..home_note() });
    let of = |generation| found(Some(Badge::new(LOG, generation)));
    assert_eq!(judge_home(&begun, &of(4)), Ok(()));
    assert_eq!(judge_home(&begun, &of(5)), Ok(()));
    assert_eq!(judge_home(&begun, &of(3)), Err(Fault::OlderCopy(3)));
    // The first badge of all may not be there yet.
    let first = HomeNote { is_begun: true, has_badge: false, generation: 1, ..home_note() };
    assert_eq!(judge_home(&Note::Found(first), &found(None)), Ok(()));
}

#[test]
fn a_home_that_a_copy_of_the_log_was_brought_together_with_is_refused() {
    let word = |branch: &str| Some(branch.to_owned());
    let of = |generation, branch: &str| {
        found(Some(Badge { branch: word(branch), ..Badge::new(LOG, generation) }))
    };
    let own = HomeNote { branch: word("own"), branch_before: word("before"), ..home_note() };
    assert_eq!(judge_home(&Note::Found(own.clone()), &of(5, "own")), Ok(()));
    assert_eq!(judge_home(&Note::Found(own.clone()), &of(5, "other")), Err(Fault::OtherBranch(5)));
    let begun = Note::Found(HomeNote { is_begun: true, ..own.clone() });
    assert_eq!(judge_home(&begun, &of(4, "before")), Ok(()));
    assert_eq!(judge_home(&begun, &of(4, "other")), Err(Fault::OtherBranch(4)));
    assert_eq!(judge_home(&begun, &of(5, "own")), Ok(()));
    // What has come home as a whole may go on with any home that was the log's.
    let complete = Note::Found(HomeNote { is_complete: true, ..own });
    assert_eq!(judge_home(&complete, &of(5, "other")), Ok(()));
}

#[test]
fn an_older_copy_of_a_complete_home_may_be_used() {
    let note = Note::Found(HomeNote { is_complete: true, ..home_note() });
    assert_eq!(judge_home(&note, &found(Some(Badge::new(LOG, 3)))), Ok(()));
    assert_eq!(judge_home(&note, &found(None)), Err(Fault::NoBadge));
}

#[test]
fn a_copy_of_a_home_that_lacks_something_is_refused_and_one_of_a_complete_home_is_not() {
    let copied = Found { is_copy: true, ..found(Some(Badge::new(LOG, 5))) };
    assert_eq!(judge_home(&Note::Found(home_note()), &copied), Err(Fault::Copied));
    let complete = HomeNote { is_complete: true, ..home_note() };
    assert_eq!(judge_home(&Note::Found(complete), &copied), Ok(()));
    // Also if it is an older one: no home that knows its files by other numbers can be accepted.
    let older = Found { is_copy: true, ..found(Some(Badge::new(LOG, 3))) };
    assert_eq!(judge_home(&Note::Found(home_note()), &older), Err(Fault::Copied));
}

#[test]
fn a_barrier_that_was_taken_away_is_noticed_and_one_that_was_moving_is_not() {
    let note = Note::Found(home_note());
    let with = |barrier, mode| {
        let badge = Badge { barrier, ..Badge::new(LOG, 5) };
        judge_home(&note, &Found { mode, ..found(Some(badge)) })
    };
    assert_eq!(with(Barrier::Closed(0o700), 0), Ok(()));
    assert_eq!(with(Barrier::Closed(0o700), 0o755), Err(Fault::Entered(0o755)));
    for mode in [0, 0o700] {
        assert_eq!(with(Barrier::Moving(0o700), mode), Ok(()));
        assert_eq!(with(Barrier::Open, mode), Ok(()));
    }
}

#[test]
fn without_a_badge_only_what_lasts_is_compared() {
    let note = |is_complete| Note::Found(HomeNote { has_badge: false, is_complete, ..home_note() });
    let elsewhere = Found { place: Place { number: 2, ..place() }, ..found(None) };
    assert_eq!(judge_home(&note(false), &found(None)), Ok(()));
    assert_eq!(judge_home(&note(false), &elsewhere), Err(Fault::OtherPlace));
    assert_eq!(judge_home(&note(true), &elsewhere), Ok(()));
}

fn region_note() -> RegionNote {
    RegionNote {
        format: FORMAT,
        identity: super::hex(LOG),
        boot: "a".into(),
        medium: MediumKind::Shm,
        path: Some("/dev/shm/x".into()),
        class: Class::Memory,
        outlives_os: false,
        bytes_max: 8 << 20,
        drained: false,
        loss: None,
    }
}

#[test]
fn memory_that_is_gone_is_given_up_only_where_a_restart_took_it() {
    let judge = |note: RegionNote, boot, is_there| {
        region::judge(&Note::Found(note), boot, is_there).map(|loss| loss.is_some())
    };
    let path = || "/dev/shm/x".into();
    assert_eq!(judge(region_note(), "a", false), Err(Gone::SameRun));
    assert_eq!(judge(region_note(), "a", true), Err(Gone::Elsewhere(path())));
    assert_eq!(judge(region_note(), "b", false), Ok(true));
    assert_eq!(judge(region_note(), "b", true), Err(Gone::Elsewhere(path())));
    let disk = RegionNote { class: Class::Disk, ..region_note() };
    assert_eq!(judge(disk.clone(), "a", false), Err(Gone::SameRun));
    assert_eq!(judge(disk, "b", false), Ok(false));
    let outlives = RegionNote { outlives_os: true, ..region_note() };
    assert_eq!(judge(outlives, "b", false), Err(Gone::Outlasted));
    let drained = RegionNote { drained: true, ..region_note() };
    assert_eq!(judge(drained, "a", false), Ok(false));
    let private = RegionNote { medium: MediumKind::Private, path: None, ..region_note() };
    assert_eq!(judge(private, "a", false), Ok(false));
    assert_eq!(region::judge(&Note::Missing, "a", false), Ok(None));
    assert_eq!(region::judge(&Note::Unreadable, "a", false), Err(Gone::Unknown));
}

#[test]
fn the_fields_are_those_that_the_format_names() {
    let tables = Tables::of(include_str!("../../FORMAT.md"));
    let named = |section: &str| -> BTreeSet<String> {
        tables.rows(section).iter().map(|row| row[0].trim_matches('`').to_owned()).collect()
    };
    let keys = |value: serde_json::Value| -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(named("Home"), keys(serde_json::to_value(home_note()).unwrap()));
    assert_eq!(named("Region"), keys(serde_json::to_value(region_note()).unwrap()));
    let lent = lent::LentNote { format: FORMAT, badge: None };
    assert_eq!(named("Lent"), keys(serde_json::to_value(lent).unwrap()));
}

#[test]
fn a_file_beside_a_log_is_whole_or_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let files = RealFiles::open(folder.path()).unwrap();
    assert_eq!(get::<RegionNote>(&files, "region").unwrap(), Note::Missing);
    put(&files, "region", &region_note()).unwrap();
    assert_eq!(get(&files, "region").unwrap(), Note::Found(region_note()));
    fs::remove_file(folder.path().join("region.copy")).unwrap();
    let path = folder.path().join("region");
    let whole = fs::read(&path).unwrap();
    let said = whole.iter().position(|byte| *byte == 0).unwrap();
    for at in 0..=said {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        let read = get::<RegionNote>(&files, "region").unwrap();
        assert_eq!(read, Note::Unreadable, "byte {at}");
    }
}

/// A log whose disk has been given everything, and the memory that has it too.
fn drained_log(folder: &Path, payload: &[u8]) -> MemoryConfig {
    let log = folder.join("log");
    fs::create_dir(&log).unwrap();
    let files = Arc::new(RealFiles::open(&log).unwrap());
    let config = LogConfig::in_ring(8 << 20, 4 << 20, 4);
    Log::create(&*files, LOG, &config).unwrap();
    let path = Some(folder.join("region"));
    let memory = MemoryConfig { medium: MediumKind::File, size: Size(8 << 20), path };
    let spec = RegionSpec { ring_bytes: 8 << 20, roster_bytes: 4 << 20, identity: LOG };
    let region = Arc::new(Region::create(&memory.medium(), &spec).unwrap());
    let (log, _) = Log::open(files.clone(), region, Arc::new(RealClock), config).unwrap();
    log.append(1, &[payload]).unwrap();
    log.close().unwrap();
    let path = memory.path.clone();
    let note = RegionNote { medium: MediumKind::File, path, drained: true, ..region_note() };
    put(&*files, "region", &note).unwrap();
    memory
}

#[test]
fn memory_is_needless_where_the_disk_has_what_the_home_lacks_and_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let payload = [0x5a; 1000];
    let memory = drained_log(folder.path(), &payload);
    let files = RealFiles::open(&folder.path().join("log")).unwrap();
    let is_needless =
        || RegionNote::has_needless(&files, &memory, &LogConfig::in_ring(8 << 20, 4 << 20, 4));
    assert!(is_needless());
    let segment = |entry: io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let at = bytes.windows(payload.len()).position(|it| it == payload)?;
        Some((path, bytes, at))
    };
    let mut entries = fs::read_dir(folder.path().join("log")).unwrap();
    let (path, mut bytes, at) = entries.find_map(segment).expect("the disk has it");
    bytes[at + 500] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(!is_needless(), "memory alone has it whole");
    bytes[at + 500] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(is_needless());
    fs::write(&path, vec![0; bytes.len()]).unwrap();
    assert!(!is_needless(), "memory alone has it");
}
