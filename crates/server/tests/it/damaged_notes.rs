//! Notes that are damaged while no server has the log: what they were about is lost, nothing else.

use crate::support::{NAME, Numbers, Place, payloads, seed};
use holdfast_client::LogClient;
use holdfast_log::{AppendError, CommitLog, Lsn, NoteError};
use std::fs;

/// Where a region's notes begin, and how many bytes its ring, behind them, has.
const NOTES_AT: usize = 8192;
const RING_BYTES: usize = 8 << 20;

/// Turns one bit over in what a region notes.
fn damage(place: &Place, numbers: &mut Numbers) {
    let path = place.region(NAME);
    let mut bytes = fs::read(&path).unwrap();
    let noted: Vec<usize> =
        (NOTES_AT..bytes.len() - RING_BYTES).filter(|at| bytes[*at] != 0).collect();
    let place = noted[numbers.below(noted.len() as u64) as usize];
    bytes[place] ^= 1 << numbers.below(8);
    fs::write(&path, bytes).unwrap();
}

/// Appends, and lets go of it, so that what the client may still ask is noted.
fn append_and_let_go(client: &LogClient, payload: &[u8]) -> Lsn {
    let appended = client.append(1, &[payload]).unwrap();
    client.commit(appended.end).unwrap();
    client.mark(appended.end).unwrap();
    client.release(appended.end);
    appended.end
}

fn notes_of(client: &LogClient) -> Vec<Vec<u8>> {
    client.notes().unwrap()
}

#[test]
fn a_damaged_note_costs_clients_of_before_what_it_may_have_carried_and_nobody_else_anything() {
    let mut numbers = Numbers(seed("a_damaged_note"));
    for _ in 0..20 {
        let place = Place::new();
        let before = {
            let _server = place.serve();
            let client = place.client();
            client.note(b"of the reader").unwrap();
            for _ in 0..=numbers.below(4) {
                append_and_let_go(&client, b"released");
            }
            client.append(1, &[b"in the ring"]).unwrap();
            client
        };
        damage(&place, &mut numbers);
        let reader = {
            let _server = place.serve();
            let refused = before.append(1, &[b"second"]);
            assert!(matches!(refused, Err(AppendError::Unreachable(_))), "{refused:?}");
            let reader = place.client();
            let marks = reader.marks();
            let wanted = [b"in the ring".to_vec()];
            assert_eq!(payloads(&reader, marks.released, marks.tail), wanted);
            let damaged = reader.notes();
            assert!(matches!(damaged, Err(NoteError::Damaged { .. })), "{damaged:?}");
            append_and_let_go(&reader, b"released");
            reader.replace_notes(&mut [b"anew".to_vec()].into_iter()).unwrap();
            reader
        };
        let _server = place.serve();
        assert_eq!(notes_of(&reader), [b"anew".to_vec()]);
        append_and_let_go(&reader, b"released");
        assert_eq!(notes_of(&reader), [b"anew".to_vec()]);
    }
}

#[test]
fn a_log_goes_on_when_its_notes_are_full_and_damaged() {
    let mut numbers = Numbers(seed("full_and_damaged"));
    let place = Place::new();
    {
        let _server = place.serve();
        let client = place.client();
        while client.note(&[7; 1 << 10]).is_ok() {}
        while client.note(&[7]).is_ok() {}
    }
    damage(&place, &mut numbers);
    let _server = place.serve();
    let client = place.client();
    for _ in 0..3 {
        let let_go = append_and_let_go(&client, b"released");
        assert_eq!(client.marks().released, let_go);
    }
    client.replace_notes(&mut [b"anew".to_vec()].into_iter()).unwrap();
    assert_eq!(notes_of(&client), [b"anew".to_vec()]);
}
