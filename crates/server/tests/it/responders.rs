//! A service of bytes in, bytes out: each request is done once, whoever repeats it.

use crate::hostile::{Attack, at_least};
use crate::raw::connect;
use crate::support::{NAME, Numbers, Place, Serving, disk_spec, seed};
use holdfast_client::protocol::{PAYLOAD_BYTES_MAX, Status};
use holdfast_client::{ConnectError, RequestError, ResponderClient};
use holdfast_memory::queue::Request;
use holdfast_peers::in_hand::{Doing, Looks};
use holdfast_server::{Departure, RespondError, Responder, ServiceKind, ServiceSpec, words};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SERVICE: &str = "sum/total";
const HOSTILE: &str = "sum/hostile";

/// A sum that requests of eight bytes add to; its state outlives a server: the test keeps it.
#[derive(Default)]
struct Sum(Mutex<State>);

#[derive(Default)]
struct State {
    total: u64,
    answers: BTreeMap<(u64, u64), u64>,
    oldest: BTreeMap<u64, u64>,
    departures: Vec<(u64, Departure)>,
}

impl Responder for Sum {
    fn respond(
        &self,
        client: u64,
        sequence: u64,
        oldest: u64,
        request: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), RespondError> {
        assert!(answer.is_empty());
        let Ok(more) = request.try_into().map(u64::from_le_bytes) else {
            return Err(RespondError::Malformed);
        };
        let mut state = self.0.lock().unwrap();
        let known = state.oldest.entry(client).or_default();
        *known = oldest.max(*known);
        if sequence < *known {
            return Err(RespondError::Forgotten);
        }
        if more == u64::MAX {
            return Err(RespondError::Failed(std::io::Error::from_raw_os_error(5)));
        }
        let total = state.total;
        let total = *state.answers.entry((client, sequence)).or_insert(total + more);
        state.total = state.total.max(total);
        answer.extend_from_slice(&total.to_le_bytes());
        answer.resize(if more == 7 { PAYLOAD_BYTES_MAX as usize + 1 } else { 8 }, 0);
        Ok(())
    }

    fn departed(&self, client: u64, departure: Departure) {
        let mut state = self.0.lock().unwrap();
        state.departures.push((client, departure));
        if departure == Departure::InOrder {
            state.oldest.remove(&client);
            state.answers.retain(|(other, _), _| *other != client);
        }
    }
}

/// A sum as a service; its counters are in the region of a disk.
fn spec(place: &Place, service: &str, counters: &str, sum: &Arc<Sum>) -> ServiceSpec {
    let disk = disk_spec(counters, &place.region(counters), 1 << 20);
    let kind = ServiceKind::Responder(sum.clone());
    ServiceSpec { service: service.into(), kind, ..disk }
}

/// A server of the sum.
fn serve(place: &Place, sum: &Arc<Sum>) -> Serving {
    place.serve_all(|_| {}, vec![spec(place, SERVICE, "counters", sum)])
}

fn client(place: &Place) -> ResponderClient {
    ResponderClient::connect(&place.socket(), SERVICE).unwrap()
}

fn add(client: &ResponderClient, more: u64) -> u64 {
    let answer = client.request(&more.to_le_bytes()).unwrap();
    u64::from_le_bytes(answer.try_into().unwrap())
}

/// Far longer than anything takes.
fn wait_until(reached: impl Fn() -> bool) {
    let begun = Instant::now();
    while !reached() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_request_is_answered_and_what_is_wrong_with_it_is_told() {
    let (place, sum) = (Place::new(), Arc::new(Sum::default()));
    let _server = serve(&place, &sum);
    let client = client(&place);
    assert_eq!((add(&client, 5), add(&client, 3)), (5, 8));
    assert!(matches!(client.request(b"three"), Err(RequestError::Malformed)));
    let failed = client.request(&u64::MAX.to_le_bytes());
    assert!(matches!(&failed, Err(RequestError::Failed(e)) if e.raw_os_error() == Some(5)));
    let large = client.request(&vec![0; PAYLOAD_BYTES_MAX as usize + 1]);
    assert!(matches!(large, Err(RequestError::TooLarge { .. })), "{large:?}");
    assert!(client.request(&7u64.to_le_bytes()).is_err(), "an answer that fits no buffer");
    assert_eq!(add(&client, 1), 16, "the session goes on");
    assert_eq!(place.word("counters", words::REFUSED), 1, "the one that was malformed");
    let refused = ResponderClient::connect(&place.socket(), "sum/other");
    assert!(matches!(refused, Err(ConnectError::Refused(Status::NoService))));
}

#[test]
fn a_number_that_comes_again_is_done_once_and_one_outside_the_window_never() {
    let (place, sum) = (Place::new(), Arc::new(Sum::default()));
    let _server = serve(&place, &sum);
    let raw = connect(&place, [9; 16], SERVICE).unwrap();
    raw.memory.copy_in(0, &5u64.to_le_bytes()).unwrap();
    let good = Request { bytes: 8, ..raw.request(22) };
    for _ in 0..3 {
        assert_eq!(raw.ask(&good), Status::Done as u32);
        raw.memory.copy_in(0, &5u64.to_le_bytes()).unwrap();
    }
    assert_eq!(sum.0.lock().unwrap().total, 5);
    for (sequence, oldest) in [(0, 0), (0, 1), (1, 0), (1025, 1), (3, 4), (u64::MAX, 1)] {
        let request = Request { sequence, argument: [oldest, 0], ..good };
        assert_eq!(raw.ask(&request), Status::BadSequence as u32, "{sequence} and {oldest}");
    }
    assert_eq!(raw.ask(&raw.request(1)), Status::BadOperation as u32);
    assert_eq!(raw.ask(&raw.request(17)), Status::BadOperation as u32);
    let later = Request { sequence: 1024, argument: [2, 0], ..good };
    assert_eq!(raw.ask(&later), Status::Done as u32);
    assert_eq!(raw.ask(&good), Status::BadSequence as u32, "its client has that answer");
    assert_eq!(sum.0.lock().unwrap().total, 10);
    assert_eq!(place.word(NAME, words::REFUSED), 0);
}

#[test]
fn a_responder_is_told_how_its_clients_ended_and_nothing_when_a_server_ends() {
    let (place, sum) = (Place::new(), Arc::new(Sum::default()));
    let server = serve(&place, &sum);
    let departures = || sum.0.lock().unwrap().departures.clone();
    let stays = client(&place);
    add(&stays, 1);
    let leaves = client(&place);
    add(&leaves, 2);
    drop(leaves);
    wait_until(|| departures().len() == 1);
    assert_eq!(departures()[0].1, Departure::InOrder);
    assert_eq!(sum.0.lock().unwrap().answers.len(), 1, "those of who is there");
    drop(connect(&place, [9; 16], SERVICE).unwrap());
    wait_until(|| departures().len() == 2);
    assert_eq!(departures()[1], (u64::from_le_bytes([9; 8]), Departure::Vanished));
    drop(server);
    let _server = serve(&place, &sum);
    assert_eq!(add(&stays, 4), 7, "it goes on");
    assert_eq!(departures().len(), 2);
}

#[test]
fn every_request_is_done_once_across_servers_that_come_and_go() {
    let (place, sum) = (Place::new(), Arc::new(Sum::default()));
    let mut server = serve(&place, &sum);
    let (clients, stop) = ([client(&place), client(&place)], AtomicBool::new(false));
    let acknowledged: u64 = std::thread::scope(|scope| {
        let work = |thread: usize| {
            let (client, stop) = (&clients[thread % 2], &stop);
            scope.spawn(move || {
                let mut requests = 0;
                while !stop.load(Ordering::Relaxed) {
                    add(client, 1);
                    requests += 1;
                }
                requests
            })
        };
        let threads: Vec<_> = (0..6).map(work).collect();
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(10));
            drop(server);
            server = serve(&place, &sum);
        }
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let total = sum.0.lock().unwrap().total;
    println!("{acknowledged} requests across 20 servers");
    assert_eq!(total, acknowledged);
}

#[test]
fn an_honest_client_of_a_responder_is_served_right_whatever_hostile_ones_do() {
    let mut numbers = Numbers(seed("an_honest_client_of_a_responder"));
    let (place, sum, hostile) = (Place::new(), Arc::new(Sum::default()), Arc::new(Sum::default()));
    let honest = spec(&place, SERVICE, "counters", &sum);
    let attacked = spec(&place, HOSTILE, "hostile-counters", &hostile);
    let _server = place.serve_all(|_| {}, vec![honest, attacked]);
    let client = client(&place);
    let attack =
        Attack { place: &place, service: HOSTILE, name: "hostile-counters", at_least: at_least(3) };
    attack.beside(&mut numbers, |round| assert_eq!(add(&client, 1), round + 1));
    assert_eq!(place.word("counters", words::REFUSED) + place.word("counters", words::DAMAGE), 0);
}

#[test]
fn a_request_that_its_service_does_not_answer_is_in_hand_until_it_does() {
    let (place, sum) = (Place::new(), Arc::new(Sum::default()));
    let _server = serve(&place, &sum);
    let client = client(&place);
    let held = sum.0.lock().unwrap();
    let asker = std::thread::spawn(move || add(&client, 5));
    let (looks, count) = (Mutex::new(Looks::new()), AtomicU64::new(0));
    // Requests of tests beside this one come and go.
    wait_until(|| {
        let now = count.fetch_add(1, Ordering::Relaxed);
        let oldest = looks.lock().unwrap().look(now);
        oldest.is_some_and(|it| it.doing == Doing::Service && it.since_ns + 100 < now)
    });
    drop(held);
    assert_eq!(asker.join().unwrap(), 5);
}
