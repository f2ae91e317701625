//! A server that is killed again and again, under load: nothing is lost, doubled or failed.

use crate::support::{NAME, Numbers, Place, log_spec, payloads, seed, seeds_factor};
use holdfast_client::LogClient;
use holdfast_log::{AppendError, CommitLog, Lsn};
use holdfast_server::{Server, ServerSpec, words};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CLIENTS: usize = 4;
const THREADS_PER_CLIENT: usize = 2;

/// Tells the child which log and region are its.
const PLACE: &str = "HOLDFAST_TEST_PLACE";

/// Not a test: what the test below starts and kills. The socket is its standard input.
#[test]
#[ignore = "a process of another test"]
fn a_server_process() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let (log, region) = place.split_once(':').unwrap();
    let listener: OwnedFd = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let spec = log_spec(NAME, log.as_ref(), region.as_ref());
    let (server, errors) =
        Server::open(ServerSpec { logs: vec![spec], services: vec![], clients_max: 32 });
    assert!(errors.is_empty(), "{errors:?}");
    let (_stop, told) = UnixStream::pair().unwrap();
    server.serve(&UnixListener::from(listener), &told, &told, &told).unwrap();
}

fn start(place: &Place) -> Child {
    let (log, region) = (place.log(NAME), place.region(NAME));
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "kills::a_server_process"])
        .env(PLACE, format!("{}:{}", log.display(), region.display()))
        .stdin(OwnedFd::from(place.listener.try_clone().unwrap()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// One thread's values: its number, then 0, 1, 2 and so on. Returns the longest wait.
fn append_values(
    client: &LogClient,
    thread: u64,
    stop: &AtomicBool,
    values: &AtomicU64,
) -> Duration {
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let value = values.load(Ordering::Relaxed);
        let began = Instant::now();
        match client.append(1, &[&thread.to_le_bytes(), &value.to_le_bytes()]) {
            Ok(_) => values.store(value + 1, Ordering::Relaxed),
            Err(AppendError::Full) => client.wait_for_room(16, Duration::MAX).unwrap(),
            Err(error) => panic!("thread {thread}, value {value}: {error}"),
        }
        longest = longest.max(began.elapsed());
    }
    longest
}

/// Reads what is durable and releases it, so that the ring never holds all of it.
fn read_on(client: &LogClient, at: &mut Lsn, found: &mut BTreeMap<u64, Vec<u64>>) {
    let to = client.marks().durable;
    for payload in payloads(client, *at, to) {
        let (thread, value) = payload.split_first_chunk().unwrap();
        let value = u64::from_le_bytes(value.try_into().unwrap());
        found.entry(u64::from_le_bytes(*thread)).or_default().push(value);
    }
    *at = to;
    match client.mark(to) {
        Ok(()) => client.release(to),
        Err(AppendError::Full) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn nothing_is_lost_doubled_or_failed_when_the_server_is_killed() {
    let mut numbers = Numbers(seed("nothing_is_lost_doubled"));
    let kills = if seeds_factor() == 1 { 20 } else { 125 * seeds_factor() };
    let place = Place::new();
    let mut server = start(&place);
    let clients: Vec<LogClient> = (0..CLIENTS).map(|_| place.client()).collect();
    let values: Vec<AtomicU64> =
        (0..CLIENTS * THREADS_PER_CLIENT).map(|_| AtomicU64::new(0)).collect();
    let reader = place.client();
    let (stop, mut at, mut found) =
        (AtomicBool::new(false), reader.marks().released, BTreeMap::new());
    let longest = std::thread::scope(|scope| {
        let threads: Vec<_> = values
            .iter()
            .enumerate()
            .map(|(thread, values)| {
                let (client, stop) = (&clients[thread % CLIENTS], &stop);
                scope.spawn(move || append_values(client, thread as u64, stop, values))
            })
            .collect();
        for _ in 0..kills {
            std::thread::sleep(Duration::from_millis(5 + numbers.below(40)));
            server.kill().unwrap();
            server.wait().unwrap();
            server = start(&place);
            read_on(&reader, &mut at, &mut found);
        }
        stop.store(true, Ordering::Relaxed);
        // Whoever waits for room has to get it before it sees that it may stop.
        while !threads.iter().all(|thread| thread.is_finished()) {
            read_on(&reader, &mut at, &mut found);
            std::thread::sleep(Duration::from_millis(1));
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
    });
    let tail = reader.marks().tail;
    reader.commit(tail).unwrap();
    read_on(&reader, &mut at, &mut found);
    for (thread, values) in values.iter().enumerate() {
        let acknowledged = values.load(Ordering::Relaxed);
        let found = found.remove(&(thread as u64)).unwrap_or_default();
        assert_eq!(fault_in(&found, acknowledged), None, "thread {thread}");
        assert!(acknowledged > 0, "thread {thread} got something done");
    }
    let replayed = place.word(NAME, words::REPLAYED);
    println!("{kills} kills, {replayed} appends repeated, longest wait {longest:?}");
    server.kill().unwrap();
    server.wait().unwrap();
}

/// What is wrong with one thread's values as the log has them.
fn fault_in(found: &[u64], acknowledged: u64) -> Option<String> {
    let out_of_turn = found.iter().zip(0..).find(|(value, wanted)| **value != *wanted);
    if let Some((value, wanted)) = out_of_turn {
        return Some(format!("{value} stands where {wanted} should"));
    }
    let count = found.len() as u64;
    (count != acknowledged).then(|| format!("{count} values, {acknowledged} acknowledged"))
}

#[test]
fn values_that_are_lost_doubled_or_out_of_turn_are_found() {
    assert_eq!(fault_in(&[0, 1, 2], 3), None);
    for found in [&[0, 1][..], &[0, 1, 1, 2], &[1, 2], &[0, 2, 1], &[0, 1, 2, 3]] {
        assert!(fault_in(found, 3).is_some(), "the canary {found:?}");
    }
}
