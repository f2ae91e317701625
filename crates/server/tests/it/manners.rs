//! Who may come in, and what a client hears that may not.

use crate::support::{NAME, Place};
use holdfast_client::protocol::{ClientId, Hello, Reply, Status, VERSION};
use holdfast_client::{ConnectError, LogClient};
use holdfast_log::CommitLog;
use holdfast_server::words;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

#[track_caller]
fn refused(place: &Place, name: &str, wanted: Status) {
    match LogClient::connect(&place.socket(), name) {
        Err(ConnectError::Refused(status)) => assert_eq!(status, wanted),
        other => panic!("{other:?}"),
    }
}

/// The reply to a hello in these bytes.
fn reply_to(place: &Place, bytes: &[u8]) -> Reply {
    let mut stream = UnixStream::connect(place.socket()).unwrap();
    stream.write_all(bytes).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    Reply::parse(&reply).unwrap()
}

#[test]
fn a_name_that_no_service_has_is_refused() {
    let place = Place::new();
    let _server = place.serve();
    refused(&place, "nobody", Status::NoService);
}

#[test]
fn a_user_that_is_not_on_the_list_is_refused_and_counted() {
    let place = Place::with_logs(&[NAME, "theirs"]);
    let _server = place.serve_with(|spec| {
        if spec.service == "log/theirs" {
            spec.allow_uids = vec![4_000_000];
        }
    });
    refused(&place, "theirs", Status::NotAllowed);
    assert_eq!(place.word("theirs", words::REFUSED), 1);
    assert_eq!(place.word(NAME, words::REFUSED), 0);
    place.client().append(1, &[b"ours"]).unwrap();
}

#[test]
fn a_log_has_as_many_clients_as_it_was_told_and_a_place_comes_back() {
    let place = Place::new();
    let _server = place.serve_with(|spec| spec.clients_max = 2);
    let (first, _second) = (place.client(), place.client());
    refused(&place, NAME, Status::TooManyClients);
    assert_eq!(place.word(NAME, words::CLIENTS), 2);
    drop(first);
    let mut connected = LogClient::connect(&place.socket(), NAME);
    for _ in 0..500 {
        if connected.is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        connected = LogClient::connect(&place.socket(), NAME);
    }
    connected.unwrap();
}

#[test]
fn another_version_of_the_protocol_is_told_so_and_harms_nobody() {
    let place = Place::new();
    let _server = place.serve();
    let client = place.client();
    let service = format!("log/{NAME}");
    let hello = Hello { version: VERSION + 1, client: ClientId([1; 16]), oldest: 0, service };
    assert_eq!(reply_to(&place, &hello.encode()).status, Status::OtherVersion);
    assert_eq!(reply_to(&place, &[0xff; 104]).status, Status::BadHello);
    assert_eq!(place.word(NAME, words::REFUSED), 0, "what is no hello is for no service");
    client.append(1, &[b"undisturbed"]).unwrap();
}

#[test]
fn one_client_has_one_session_at_a_time() {
    let place = Place::new();
    let _server = place.serve();
    let service = format!("log/{NAME}");
    let hello = Hello { version: VERSION, client: ClientId([1; 16]), oldest: 0, service };
    let mut first = UnixStream::connect(place.socket()).unwrap();
    first.write_all(&hello.encode()).unwrap();
    let mut reply = [0; holdfast_client::protocol::REPLY_BYTES];
    first.read_exact(&mut reply).unwrap();
    assert_eq!(Reply::parse(&reply).unwrap().status, Status::Done);
    assert_eq!(reply_to(&place, &hello.encode()).status, Status::InUse);
}

#[test]
fn a_peer_that_says_nothing_keeps_nobody_waiting() {
    let place = Place::new();
    let _server = place.serve();
    let _silent: Vec<_> = (0..8).map(|_| UnixStream::connect(place.socket()).unwrap()).collect();
    place.client().append(1, &[b"served"]).unwrap();
}
