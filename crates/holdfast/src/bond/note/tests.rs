//! What is noted is noted, on a full disk and over power cuts.

use super::super::Note;
use super::{encode, get, put};
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
    assert_eq!(names.len(), 1, "{names:?}");
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
