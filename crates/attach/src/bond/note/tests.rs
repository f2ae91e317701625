//! What is noted is noted, on a full disk and over power cuts.

use super::{encode, get, put};
use crate::bond::common::Note;
use holdfast_io::fake::{FakeFiles, Random};
use holdfast_io::{Files, OpenHow};
use serde_json::{Value, json};

const NAME: &str = "home";

fn note(number: u64) -> Value {
    let path = "x".repeat((number as usize * 37) % 900);
    json!({ "format": 1, "number": number, "path": path })
}

fn found(files: &FakeFiles) -> Option<u64> {
    match get::<Value>(files, NAME).unwrap() {
        Note::Found(found) => found["number"].as_u64(),
        _ => None,
    }
}

/// Writes a file as an earlier version did.
fn put_old(files: &FakeFiles, note: &Value) {
    let body = note.to_string();
    let text = format!("{body}\n{}\n", super::check_of(&body));
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    let file = files.open(NAME.as_ref(), how).unwrap();
    file.write_all_at(text.as_bytes(), 0).unwrap();
    file.sync_data().unwrap();
    files.sync_dir("".as_ref()).unwrap();
}

#[test]
fn a_full_disk_keeps_nobody_from_noting() {
    let files = FakeFiles::new(1);
    put(&files, NAME, &note(0)).unwrap();
    files.set_capacity_bytes(Some(0));
    for number in 1..50 {
        put(&files, NAME, &note(number)).unwrap();
        assert_eq!(found(&files), Some(number));
    }
    let names = files.read_dir("".as_ref()).unwrap();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn a_power_cut_leaves_the_old_note_or_the_new_one() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let files = FakeFiles::new(seed);
        match seed % 2 {
            0 => put_old(&files, &note(0)),
            _ => put(&files, NAME, &note(0)).unwrap(),
        }
        files.cut_power_at(files.operations() + 1 + random.below(60));
        let last = (1..).find(|number| put(&files, NAME, &note(*number)).is_err()).unwrap();
        for mood in 0..8 {
            let image = files.after_power_cut(mood);
            let found = found(&image);
            assert!(
                found == Some(last) || found == Some(last - 1),
                "seed {seed}, mood {mood}: {found:?} of {last}"
            );
            put(&image, NAME, &note(last + 1)).unwrap();
            assert_eq!(self::found(&image), Some(last + 1), "seed {seed}, mood {mood}");
        }
    }
}

#[test]
fn a_note_of_an_earlier_version_is_read_and_written_on() {
    let files = FakeFiles::new(1);
    put_old(&files, &note(7));
    assert_eq!(found(&files), Some(7));
    put(&files, NAME, &note(8)).unwrap();
    assert_eq!(found(&files), Some(8));
}

/// What may become of one file of a note.
fn damage(files: &FakeFiles, name: &str, older: &[u8], kind: u64) {
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    if kind == 0 {
        return files.remove_file(name.as_ref()).unwrap();
    }
    let file = files.open(name.as_ref(), how).unwrap();
    let size = file.metadata().unwrap().size_bytes as usize;
    let bytes = match kind {
        1 => vec![0; size],
        2 => vec![0xa5; size],
        _ => older.to_vec(),
    };
    file.set_len(if kind == 4 { 100 } else { bytes.len() as u64 }).unwrap();
    file.write_all_at(&bytes[..if kind == 4 { 100 } else { bytes.len() }], 0).unwrap();
}

fn bytes_of(files: &FakeFiles, name: &str) -> Vec<u8> {
    super::contents(&*files.open(name.as_ref(), OpenHow::default()).unwrap()).unwrap()
}

#[test]
fn whatever_becomes_of_one_file_the_newest_note_is_found_and_written_on() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let files = FakeFiles::new(seed);
        let put = |number| put(&files, NAME, &note(number)).unwrap();
        (0..=random.below(4)).for_each(put);
        let name = if random.below(2) == 0 { NAME.to_owned() } else { super::copy_of(NAME) };
        let older = bytes_of(&files, &name);
        (5..=5 + random.below(4)).for_each(put);
        let last = found(&files).unwrap();
        damage(&files, &name, &older, random.below(5));
        assert_eq!(found(&files), Some(last), "seed {seed}, {name}");
        put(last + 1);
        assert_eq!(found(&files), Some(last + 1), "seed {seed}, {name}");
        let both = super::read_both(&files, NAME).unwrap();
        assert_eq!(both.first.unwrap().newest, both.copy.unwrap().newest, "seed {seed}");
    }
}

#[test]
fn without_room_for_a_copy_a_note_of_before_is_written_on() {
    let files = FakeFiles::new(1);
    put(&files, NAME, &note(0)).unwrap();
    files.remove_file(super::copy_of(NAME).as_ref()).unwrap();
    files.set_capacity_bytes(Some(0));
    put(&files, NAME, &note(1)).unwrap();
    assert_eq!(found(&files), Some(1));
}

#[test]
fn a_note_that_grows_beyond_its_slot_gets_another_file() {
    let files = FakeFiles::new(1);
    put(&files, NAME, &note(1)).unwrap();
    let long = json!({ "format": 1, "number": 2, "path": "y".repeat(30_000) });
    put(&files, NAME, &long).unwrap();
    assert_eq!(found(&files), Some(2));
    put(&files, NAME, &note(3)).unwrap();
    assert_eq!(found(&files), Some(3));
}

#[test]
fn a_slot_with_a_byte_turned_over_is_not_believed() {
    let text = encode(5, &note(5).to_string());
    assert!(super::decode(text.as_bytes()).is_some());
    for at in 0..text.len() {
        let mut damaged = text.clone().into_bytes();
        damaged[at] ^= 1;
        assert!(super::decode(&damaged).is_none(), "byte {at}");
    }
}
