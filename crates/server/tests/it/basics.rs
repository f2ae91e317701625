//! One server, one client: each call does what it does on a log in this process.

use std::time::Duration;

use crate::support::{Place, payloads};
use holdfast_log::{AppendError, CommitLog, Lsn, ReadError};

#[test]
fn what_is_appended_is_read_back_as_it_was() {
    let place = Place::new();
    let _server = place.serve();
    let client = place.client();
    let from = client.marks().tail;
    let first = client.append(2, &[b"hello ", b"world"]).unwrap();
    let second = client.append(1, &[b"again"]).unwrap();
    assert!(first.end <= second.lsn, "positions rise");
    let wanted = [b"hello world".to_vec(), b"again".to_vec()];
    assert_eq!(payloads(&client, from, second.end), wanted);
    let mut bytes = [0; 5];
    client.copy_bytes(first.payload.advance(6), &mut bytes).unwrap();
    assert_eq!(&bytes, b"world");
}

#[test]
fn a_read_tells_records_and_places_as_the_append_did() {
    let place = Place::new();
    let _server = place.serve();
    let client = place.client();
    let appended = client.append(7, &[b"seven"]).unwrap();
    let mut seen = Vec::new();
    let each = &mut |frame: &holdfast_log::Frame<'_>| {
        seen.push((frame.header.lsn, frame.payload_lsn, frame.end(), frame.header.records));
        true
    };
    client.read(appended.lsn, appended.end, each).unwrap();
    assert_eq!(seen, [(appended.lsn, appended.payload, appended.end, 7)]);
}

#[test]
fn commit_returns_when_the_device_has_it() {
    let place = Place::new();
    let _server = place.serve();
    let client = place.client();
    let appended = client.append(1, &[&[7; 5000]]).unwrap();
    client.commit(appended.end).unwrap();
    assert!(client.marks().durable >= appended.end);
}

#[test]
fn a_log_that_is_written_through_acknowledges_from_the_device() {
    let place = Place::new();
    let _server = place.serve_with(|spec| spec.is_written_through = true);
    let client = place.client();
    let appended = client.append(1, &[b"on the disk"]).unwrap();
    assert!(client.marks().durable >= appended.end);
}

#[test]
fn a_full_ring_is_said_and_waits_for_the_reader() {
    let place = Place::new();
    let _server = place.serve();
    let client = place.client();
    let (block, mut last) = (vec![1; 256 << 10], Lsn(0));
    loop {
        match client.append(1, &[&block]) {
            Ok(appended) => last = appended.end,
            Err(AppendError::Full) => break,
            Err(error) => panic!("{error}"),
        }
    }
    client.commit(last).unwrap();
    let told = client.wait_for_room(block.len() as u64, Duration::from_millis(1));
    assert!(matches!(told, Err(AppendError::Full)), "patience has an end: {told:?}");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.wait_for_room(block.len() as u64, Duration::MAX));
        client.mark(last).unwrap();
        client.release(last);
        waiting.join().unwrap().unwrap();
    });
    client.append(1, &[&block]).unwrap();
}

#[test]
fn what_is_not_there_or_no_boundary_is_refused() {
    let place = Place::new();
    let _server = place.serve();
    let client = place.client();
    let appended = client.append(1, &[b"one"]).unwrap();
    let mut none = |_: &holdfast_log::Frame<'_>| true;
    let far = Lsn(appended.end.0 + 4096);
    let outside = client.read(appended.lsn, far, &mut none);
    assert!(matches!(outside, Err(ReadError::Outside { .. })), "{outside:?}");
    let inside = client.read(appended.payload, appended.end, &mut none);
    assert!(matches!(inside, Err(ReadError::Boundary(_))), "{inside:?}");
    let mut bytes = [0; 64];
    assert!(client.copy_bytes(far, &mut bytes).is_err());
    let large = vec![0; client.payload_bytes_max() as usize + 1];
    assert!(matches!(client.append(1, &[&large]), Err(AppendError::TooLarge { .. })));
}

#[test]
fn words_and_notes_are_there_for_the_next_server() {
    let place = Place::new();
    let client = {
        let _server = place.serve();
        let client = place.client();
        client.set_word(20, 5).unwrap();
        client.add_to_word(20, 2);
        client.raise_word(21, 9);
        client.note(b"first").unwrap();
        client.note(b"second").unwrap();
        let notes = vec![b"third".to_vec(), vec![4; 3 << 10], Vec::new()];
        client.replace_notes(&mut notes.into_iter()).unwrap();
        client.note(b"fourth").unwrap();
        client
    };
    let _server = place.serve();
    assert_eq!((client.word(20).unwrap(), client.word(21).unwrap()), (7, 9));
    let wanted = [b"third".to_vec(), vec![4; 3 << 10], Vec::new(), b"fourth".to_vec()];
    assert_eq!(client.notes().unwrap(), wanted);
}

#[test]
fn a_client_goes_on_with_the_next_server_as_if_nothing_had_been() {
    let place = Place::new();
    let server = place.serve();
    let client = place.client();
    let first = client.append(1, &[b"before"]).unwrap();
    drop(server);
    let _server = place.serve();
    let second = client.append(1, &[b"after"]).unwrap();
    let wanted = [b"before".to_vec(), b"after".to_vec()];
    assert_eq!(payloads(&client, first.lsn, second.end), wanted);
}
