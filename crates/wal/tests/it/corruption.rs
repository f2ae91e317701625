//! What the paper did to its logs (section V-A), done to ours.

use holdfast_io::fake::FakeFiles;
use holdfast_wal::format::{Json, MessagePack};
use holdfast_wal::{Log, OpenError, Record, ReplayError, json_lines};
use serde::{Deserialize, Serialize};

use crate::support::{SMALL, Work, new_log, open, place, work, works};

/// Position p of a log lies at this byte plus p of its first segment file.
const FRAMES_OFFSET: u64 = 4096;
/// Header of a frame; the record of a set of one follows.
const RECORD_OFFSET: u64 = 48;

/// The numbers of the records that can be read from these lines, and whether all can.
fn lines(text: &str) -> (Vec<Work>, bool) {
    let read: Vec<_> = json_lines::read(text.as_bytes()).collect();
    let whole = read.iter().all(Result::is_ok);
    (read.into_iter().flatten().collect(), whole)
}

fn three_lines() -> String {
    let mut text = Vec::new();
    works(1..4).iter().for_each(|item| json_lines::write(&mut text, item).unwrap());
    String::from_utf8(text).unwrap()
}

#[test]
fn json_lines_do_not_care_for_white_space() {
    let text = three_lines().replace(',', " ,\n  ").replace('{', "{\t");
    assert_eq!(lines(&text), (works(1..4), true));
}

#[test]
fn json_lines_end_at_a_loose_symbol() {
    for symbol in ["{", "}", "[", "]", ","] {
        let text = three_lines().replace("{\"id\":2", &format!("{symbol}{{\"id\":2"));
        assert_eq!(lines(&text), (works(1..2), false), "{symbol}");
    }
}

#[test]
fn json_lines_do_not_care_for_new_fields_and_end_where_one_is_gone_or_renamed() {
    let added = three_lines().replace("{\"id\":2", "{\"more\":7,\"id\":2");
    assert_eq!(lines(&added), (works(1..4), true));
    let removed = three_lines().replace("{\"id\":2,", "{");
    assert_eq!(lines(&removed), (works(1..2), false));
    let renamed = three_lines().replace("{\"id\":2", "{\"ie\":2");
    assert_eq!(lines(&renamed), (works(1..2), false));
}

#[test]
fn json_lines_do_not_care_for_the_order_of_fields() {
    let text = three_lines()
        .replace("{\"id\":2,\"comment\":\"the work item 2\"", "{\"comment\":\"the work item 2\"")
        .replace("item 2\",", "item 2\",\"id\":2,");
    assert!(text.contains("{\"comment\":\"the work item 2\",\"id\":2,"), "{text}");
    assert_eq!(lines(&text), (works(1..4), true));
}

#[test]
fn json_lines_end_at_an_empty_object() {
    let text = three_lines().replacen('\n', "\n{}\n", 1);
    assert_eq!(lines(&text), (works(1..2), false));
}

#[test]
fn json_lines_do_not_notice_a_changed_value_or_a_lost_line_only_a_changed_type() {
    let (changed, whole) = lines(&three_lines().replace("\"id\":2", "\"id\":9"));
    assert!(whole && changed[1].id == 9, "a record that nobody wrote");
    let shorter: String = three_lines().lines().filter(|line| !line.contains("item 2")).collect();
    assert_eq!(lines(&shorter), (vec![work(1), work(3)], true), "a record that nobody misses");
    let typed = three_lines().replace("\"id\":2", "\"id\":\"2\"");
    assert_eq!(lines(&typed), (works(1..2), false));
}

/// Reads a log of ten work items after one bit of the sixth was changed, `offset` bytes into its
/// frame: the open log ends before it and says where, and the next open refuses the whole.
fn is_noticed<F: holdfast_wal::format::Format<Work>>(offset: u64) {
    let files = FakeFiles::new(1);
    Log::<Work, F>::create_at(&place(&files), &SMALL).unwrap();
    let (log, _) = Log::<Work, F>::open_at(place(&files), &SMALL).unwrap();
    let begins: Vec<_> = works(0..10).iter().map(|item| log.append(item).unwrap().lsn()).collect();
    log.close().unwrap();
    let lsn = begins[5];
    let byte = FRAMES_OFFSET + lsn.get() + offset;
    files.flip_bit("segment-00000000".as_ref(), byte * 8).unwrap();
    let mut replay = log.iter();
    let before: Vec<_> = replay.by_ref().take(5).map(|entry| entry.unwrap().record).collect();
    assert_eq!(before, works(0..5));
    let sixth = replay.next();
    assert!(
        matches!(sixth, Some(Err(ReplayError::Damaged { lsn: at })) if at == lsn),
        "{offset}: {sixth:?}"
    );
    assert!(replay.next().is_none(), "it ends there");
    drop((log, replay));
    let opened = Log::<Work, F>::open_at(place(&files), &SMALL).map(drop);
    assert!(
        matches!(opened, Err(OpenError::Corrupt { from, .. }) if from == lsn),
        "{offset}: {opened:?}"
    );
}

#[test]
fn message_pack_a_changed_object_identifier_is_noticed() {
    is_noticed::<MessagePack>(RECORD_OFFSET); // "an array of three"
}

#[test]
fn message_pack_a_changed_field_identifier_is_noticed() {
    is_noticed::<MessagePack>(RECORD_OFFSET + 2); // "a string of 15 bytes"
}

#[test]
fn message_pack_a_changed_field_value_is_noticed() {
    is_noticed::<MessagePack>(RECORD_OFFSET + 1); // the 5 of `id`
    is_noticed::<MessagePack>(RECORD_OFFSET + 10); // a letter of `comment`
}

#[test]
fn message_pack_a_changed_checksum_identifier_is_noticed() {
    is_noticed::<MessagePack>(24); // the length that says which bytes the check is of
}

#[test]
fn message_pack_a_changed_checksum_value_is_noticed() {
    is_noticed::<MessagePack>(28); // of the record, which is its frame's
    is_noticed::<MessagePack>(4); // of its header
}

#[test]
fn json_with_checks_notices_what_json_lines_do_not() {
    is_noticed::<Json>(RECORD_OFFSET + 6); // the digit in {"id":5
}

/// A record with another shape under the name of the work items.
#[derive(Serialize, Deserialize)]
struct Impostor(u8);

impl Record for Impostor {
    const NAME: &'static str = Work::NAME;
}

#[test]
fn a_whole_record_of_another_shape_is_told_from_damage() {
    let (files, log) = new_log(2);
    log.append_durable(&work(1)).unwrap();
    drop(log);
    let (log, _) = Log::<Impostor, MessagePack>::open_at(place(&files), &SMALL).unwrap();
    let entry = log.iter().next().map(|entry| entry.map(|entry| entry.record.0));
    assert!(matches!(entry, Some(Err(ReplayError::Undecodable { index: 0, .. }))), "{entry:?}");
    drop(log);
    assert!(open(&files).is_ok(), "nothing is lost by trying");
}
