//! Whatever order numbers come in, each is appended once.

use super::*;

fn placed(lsn: u64) -> Placed {
    Placed { lsn: Lsn(lsn), end: Lsn(lsn + 64) }
}

fn client(number: u8) -> ClientId {
    ClientId([number; 16])
}

/// An append that the log took.
fn appended(windows: &Windows, of: u8, sequence: u64, oldest: u64, lsn: u64) {
    let number = Number { client: client(of), sequence, oldest };
    assert_eq!(Number::decode(&number.encode()), number);
    windows.replay(number, placed(lsn));
}

#[test]
fn a_number_is_new_once_and_then_answered_as_it_was() {
    let mut window = Window::default();
    assert_eq!(window.look(3, 1), Seen::New);
    window.put(3, placed(640));
    assert_eq!(window.look(3, 1), Seen::Placed(placed(640)));
    assert_eq!(window.look(2, 1), Seen::New, "another thread was slower");
}

#[test]
fn what_the_client_has_answers_to_is_forgotten_and_cannot_come_again() {
    let mut window = Window::default();
    window.put(1, placed(0));
    assert_eq!(window.look(5, 4), Seen::New);
    assert_eq!(window.look(1, 1), Seen::Outside);
    assert_eq!(window.look(3, 4), Seen::Outside, "below what it says itself");
    assert_eq!(window.look(4, 0), Seen::Outside, "there is no number 0");
}

#[test]
fn a_window_never_holds_more_than_its_size() {
    let mut window = Window::default();
    assert_eq!(window.look(1, 1), Seen::New);
    assert_eq!(window.look(WINDOW, 1), Seen::New);
    assert_eq!(window.look(WINDOW + 1, 1), Seen::Outside);
    assert_eq!(window.look(u64::MAX, 1), Seen::Outside);
}

#[test]
fn what_is_released_is_carried_once_and_found_again() {
    let windows = Windows::default();
    appended(&windows, 1, 7, 6, 100);
    appended(&windows, 1, 8, 6, 200);
    appended(&windows, 2, 1, 1, 300);
    let records = windows.carry(Lsn(250));
    assert_eq!(records.len(), 2, "the third frame stays in the ring");
    windows.carried(Lsn(250));
    assert!(windows.carry(Lsn(250)).is_empty(), "nothing is carried twice");
    let next = Windows::default();
    records.iter().for_each(|record| next.replay_carried(record));
    let (window, last) = next.enter(client(1), 6).unwrap();
    assert_eq!(last, 8);
    assert_eq!(lock(&window).look(7, 6), Seen::Placed(placed(100)));
    assert_eq!(lock(&window).look(8, 6), Seen::Placed(placed(200)));
}

#[test]
fn an_answer_that_the_client_has_is_not_carried() {
    let windows = Windows::default();
    appended(&windows, 1, 7, 7, 100);
    appended(&windows, 1, 8, 8, 200);
    assert_eq!(windows.carry(Lsn(1000)).len(), 1);
}

#[test]
fn a_client_that_may_have_been_forgotten_is_told_so() {
    let windows = Windows::default();
    for number in 0..=DEPARTED_MAX {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&(number as u64).to_le_bytes());
        windows.enter(ClientId(id), 0).unwrap();
        windows.leave(ClientId(id), Peer::User(1));
    }
    for oldest in [1, 5] {
        let refusal = windows.enter(ClientId([0; 16]), oldest).map(drop);
        assert_eq!(refusal, Err(WindowRefusal::Forgotten), "{oldest}");
    }
    windows.enter(ClientId([0; 16]), 0).unwrap();
}

#[test]
fn whoever_had_a_session_before_all_were_forgotten_is_refused() {
    let windows = Windows::default();
    appended(&windows, 1, 7, 6, 100);
    windows.forget_all();
    for oldest in [1, 7, 8] {
        let refusal = windows.enter(client(1), oldest).map(drop);
        assert_eq!(refusal, Err(WindowRefusal::Forgotten), "{oldest}");
    }
    windows.enter(client(2), 0).unwrap();
    windows.leave(client(2), Peer::User(1));
    windows.enter(client(2), 1).unwrap();
}

#[test]
fn one_client_has_one_window_at_a_time() {
    let windows = Windows::default();
    windows.enter(client(1), 0).unwrap();
    assert_eq!(windows.enter(client(1), 0).map(drop), Err(WindowRefusal::InUse));
    windows.leave(client(1), Peer::User(1));
    windows.enter(client(1), 1).unwrap();
}

#[test]
fn a_record_that_is_too_short_carries_nothing() {
    let windows = Windows::default();
    for length in 0..CARRIED_BYTES {
        windows.replay_carried(&vec![0xff; length]);
    }
    assert!(windows.carry(Lsn(u64::MAX)).is_empty());
}

#[test]
fn the_bytes_are_those_of_the_format_page() {
    let number = Number { client: ClientId([7; 16]), sequence: 0x0102, oldest: 0x03 };
    let record = carried_record(&number, Placed { lsn: Lsn(0x04), end: Lsn(0x05) });
    let numbers = [0x0102u64, 0x03, 0x04, 0x05].map(u64::to_le_bytes).concat();
    assert_eq!(record, [&[7; 16][..], &numbers].concat());
    let page = include_str!("../../FORMAT.md");
    use crate::words;
    let words = [
        (words::ROOT, "root of the service"),
        (words::CLIENTS, "clients that have a session"),
        (words::APPENDED, "appends acknowledged"),
        (words::REPLAYED, "appends that were repeated"),
        (words::REFUSED, "requests and hellos that were refused"),
        (words::DAMAGE, "times a client's queue was found damaged"),
    ];
    for (word, meaning) in words {
        assert!(page.contains(&format!("| {word} | {meaning}")), "word {word}: {meaning}");
    }
}
