//! A client that writes whatever it likes wherever it can, beside one that keeps to the protocol.
//!
//! The hostile clients use a log of their own: none of their buffers may ever show a byte of the
//! honest client's, whose payloads are full of a mark.

use crate::raw::{Raw, connect};
use crate::support::{NAME, Numbers, Place, seed};
use holdfast_client::protocol::Status;
use holdfast_client::{ConnectError, LogClient};
use holdfast_log::{AppendError, CommitLog};
use holdfast_memory::queue::Request;
use holdfast_server::words;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const HOSTILE: &str = "hostile";
pub(crate) const MARK: &[u8] = b"HONEST-BYTES-OF-THE-OTHER-CLIENT";

#[test]
fn a_wrong_handle_check_operation_buffer_position_or_number_is_refused_to_its_client_alone() {
    let place = Place::new();
    let _server = place.serve();
    let raw = connect(&place, [9; 16], &format!("log/{NAME}")).unwrap();
    let good = raw.request(1);
    let wrong = [
        (Request { handle: good.handle + 1, ..good }, Status::BadHandle),
        (Request { check: good.check ^ 1, ..good }, Status::BadHandle),
        (Request { operation: 0, ..good }, Status::BadOperation),
        (Request { operation: 999, ..good }, Status::BadOperation),
        (Request { buffer: 8, ..good }, Status::BadBuffer),
        (Request { buffer: u32::MAX, ..good }, Status::BadBuffer),
        (Request { buffer: raw.reply.buffer_bytes * raw.reply.buffers, ..good }, Status::BadBuffer),
        (Request { bytes: raw.reply.buffer_bytes + 1, ..good }, Status::BadBuffer),
        (Request { bytes: u32::MAX, ..good }, Status::BadBuffer),
        (Request { bytes: raw.reply.buffer_bytes, ..good }, Status::TooLarge),
        (Request { sequence: 0, ..good }, Status::BadSequence),
        (Request { sequence: 5000, ..good }, Status::BadSequence),
        (Request { argument: [0, 0], ..good }, Status::BadSequence),
        (Request { argument: [u64::MAX, 0], ..raw.request(2) }, Status::BadPosition),
        (Request { argument: [u64::MAX, 0], ..raw.request(3) }, Status::TooLarge),
        (Request { argument: [u64::MAX, 0], ..raw.request(7) }, Status::BadPosition),
        (Request { argument: [u64::MAX, 0], ..raw.request(8) }, Status::BadPosition),
        (Request { argument: [0, 0], ..raw.request(9) }, Status::BadWord),
        (Request { argument: [u64::MAX, 0], ..raw.request(10) }, Status::BadWord),
        (Request { argument: [60, 0], ..raw.request(10) }, Status::BadWord),
        (Request { argument: [7, 0], ..raw.request(15) }, Status::BadSequence),
    ];
    for (request, status) in wrong {
        assert_eq!(raw.ask(&request), status as u32, "{request:?}");
    }
    assert_eq!(raw.ask(&good), Status::Done as u32);
    let misused = wrong.iter().filter(|(_, status)| status.is_misuse()).count();
    assert_eq!(place.word(NAME, words::REFUSED), misused as u64);
    place.client().append(1, &[b"undisturbed"]).unwrap();
}

#[test]
fn a_number_that_comes_again_is_answered_as_the_first_time() {
    let place = Place::new();
    let service = format!("log/{NAME}");
    let tail = |place: &Place| place.client().marks().tail;
    let after = {
        let _server = place.serve();
        let raw = connect(&place, [9; 16], &service).unwrap();
        assert_eq!(raw.ask(&raw.request(1)), Status::Done as u32);
        let after = tail(&place);
        assert_eq!(raw.ask(&raw.request(1)), Status::Done as u32);
        after
    };
    let _server = place.serve();
    let client = place.client();
    client.commit(after).unwrap();
    // What the reader releases is remembered all the same, and whatever it notes.
    client.mark(after).unwrap();
    client.release(after);
    client.replace_notes(&mut [b"a note".to_vec()].into_iter()).unwrap();
    drop(_server);
    let _server = place.serve();
    let raw = connect(&place, [9; 16], &service).unwrap();
    assert_eq!(raw.reply.last_sequence, 1);
    assert_eq!(raw.ask(&raw.request(1)), Status::Done as u32);
    assert_eq!(place.word(NAME, words::APPENDED), 1);
    assert_eq!(place.word(NAME, words::REPLAYED), 2);
}

#[test]
fn a_session_cannot_be_shrunk_or_grown() {
    let place = Place::new();
    let _server = place.serve();
    let raw = connect(&place, [9; 16], &format!("log/{NAME}")).unwrap();
    for bytes in [0, 4096, 1 << 30] {
        assert!(raw.file.set_len(bytes).is_err(), "{bytes} bytes");
    }
    assert_eq!(raw.ask(&raw.request(4)), Status::Done as u32);
}

/// One hostile session: garbage everywhere, requests of all kinds, then a sudden end.
fn attack(raw: &Raw, numbers: &mut Numbers) {
    let bytes = 4096 + u64::from(raw.memory.buffer_bytes());
    for _ in 0..numbers.below(400) {
        match numbers.below(8) {
            // A word of the page, any value or one that means something.
            0..=2 => {
                let value =
                    [numbers.next() as u32, 0, 128, 4096, u32::MAX][numbers.below(5) as usize];
                let at = numbers.below(1024) * 4;
                raw.file.write_all_at(&value.to_le_bytes(), at).unwrap();
            }
            // A stretch of garbage anywhere.
            3 => {
                let garbage: Vec<u8> = (0..512).map(|_| numbers.next() as u8).collect();
                let at = if numbers.below(2) == 0 {
                    numbers.below(4096 - 512)
                } else {
                    numbers.below(bytes - 512)
                };
                raw.file.write_all_at(&garbage, at).unwrap();
            }
            // A flood.
            4 => (0..200).for_each(|_| raw.put(&raw.request(1))),
            // Requests that look right but for some fields.
            _ => raw.put(&Request {
                sequence: numbers.below(2000),
                operation: numbers.below(24) as u16,
                count: numbers.next() as u16,
                buffer: numbers.below(10) as u32 * raw.reply.buffer_bytes,
                bytes: numbers.below(1 + u64::from(raw.reply.buffer_bytes)) as u32,
                argument: [numbers.below(1 << 20), numbers.next() >> numbers.below(64)],
                ..raw.request(1)
            }),
        }
    }
    // A stall: whatever it left is left to the server.
    std::thread::sleep(Duration::from_millis(numbers.below(20)));
}

/// Hostile sessions with a service, beside an honest client of another.
pub(crate) struct Attack<'a> {
    pub place: &'a Place,
    pub service: &'a str,
    /// Under which the service's words are counted.
    pub name: &'a str,
    pub at_least: Duration,
}

/// However long an attack needs on a busy machine to do what it is there for.
const AT_MOST: Duration = Duration::from_secs(120);

/// Stops the attackers, whatever becomes of the honest client.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Attack<'_> {
    /// Has three hostile clients at work while an honest one does `round` after round, each of
    /// which is told its number.
    pub(crate) fn beside(&self, numbers: &mut Numbers, mut round: impl FnMut(u64)) {
        let (stop, sessions, mut rounds) = (AtomicBool::new(false), AtomicU64::new(0), 0);
        std::thread::scope(|scope| {
            let _stops = Stops(&stop);
            for _ in 0..3 {
                let numbers = Numbers(numbers.next());
                scope.spawn(|| self.attack_until(&stop, numbers, &sessions));
            }
            let knocks = Numbers(numbers.next());
            scope.spawn(|| knock_until(self.place, &stop, knocks));
            let begun = Instant::now();
            while self.goes_on(begun.elapsed()) {
                round(rounds);
                rounds += 1;
            }
        });
        let sessions = sessions.into_inner();
        let [refused, damaged] = self.done();
        println!(
            "{rounds} honest rounds beside {sessions} hostile sessions, {refused} requests \
             refused, {damaged} queues rebuilt"
        );
        assert!(rounds > 0 && sessions > 0);
        assert!(damaged > 0, "the attack damages something");
        assert!(refused > 0, "the attack asks for something");
    }

    fn goes_on(&self, lasted: Duration) -> bool {
        lasted < self.at_least || (self.done().contains(&0) && lasted < AT_MOST)
    }

    fn done(&self) -> [u64; 2] {
        [words::REFUSED, words::DAMAGE].map(|word| self.place.word(self.name, word))
    }

    fn attack_until(&self, stop: &AtomicBool, mut numbers: Numbers, sessions: &AtomicU64) {
        while !stop.load(Ordering::Relaxed) {
            let mut client = [0; 16];
            client[..8].copy_from_slice(&numbers.next().to_le_bytes());
            let Some(raw) = connect(self.place, client, self.service) else { continue };
            attack(&raw, &mut numbers);
            assert!(!raw.sees(MARK), "a hostile client sees what another wrote");
            sessions.fetch_add(1, Ordering::Relaxed);
            let _ = (&raw.stream).write_all(b"unasked");
        }
    }
}

/// For how long, unless HOLDFAST_HOSTILE_SECONDS says otherwise.
pub(crate) fn at_least(seconds: u64) -> Duration {
    let wanted = std::env::var("HOLDFAST_HOSTILE_SECONDS").ok();
    Duration::from_secs(wanted.and_then(|text| text.parse().ok()).unwrap_or(seconds))
}

/// Connections that never say hello, or say nonsense.
fn knock_until(place: &Place, stop: &AtomicBool, mut numbers: Numbers) {
    while !stop.load(Ordering::Relaxed) {
        let mut stream = UnixStream::connect(place.socket()).unwrap();
        let garbage: Vec<u8> = (0..numbers.below(200)).map(|_| numbers.next() as u8).collect();
        let _ = stream.write_all(&garbage);
        std::thread::sleep(Duration::from_millis(numbers.below(30)));
    }
}

/// Appends, reads back, and finds exactly that.
fn append_honestly(client: &LogClient, round: u64) {
    let payload = [MARK, &u64::to_le_bytes(round)].concat();
    let appended = match client.append(1, &[&payload]) {
        Ok(appended) => appended,
        Err(AppendError::Full) => {
            let durable = client.marks().durable;
            client.mark(durable).unwrap();
            return client.release(durable);
        }
        Err(error) => panic!("{error}"),
    };
    let mut found = vec![0; payload.len()];
    client.copy_bytes(appended.payload, &mut found).unwrap();
    assert_eq!(found, payload, "round {round}");
}

#[test]
fn an_honest_client_is_served_right_whatever_hostile_ones_do() {
    let mut numbers = Numbers(seed("an_honest_client_is_served"));
    let place = Place::with_logs(&[NAME, HOSTILE]);
    let _server = place.serve();
    let client = place.client();
    let service = format!("log/{HOSTILE}");
    let attack = Attack { place: &place, service: &service, name: HOSTILE, at_least: at_least(8) };
    attack.beside(&mut numbers, |round| append_honestly(&client, round));
    assert_eq!(place.word(NAME, words::DAMAGE), 0, "the honest client's queue is whole");
}

#[test]
fn the_search_for_foreign_bytes_finds_some_that_are_there() {
    let place = Place::new();
    let _server = place.serve();
    let raw = connect(&place, [9; 16], &format!("log/{NAME}")).unwrap();
    assert!(!raw.sees(MARK));
    raw.file.write_all_at(MARK, 4096 + 1234).unwrap();
    assert!(raw.sees(MARK), "the canary of the search");
}

#[test]
fn a_hello_of_a_service_that_is_none_gets_no_memory() {
    let place = Place::new();
    let _server = place.serve();
    assert!(connect(&place, [9; 16], "volume/pgwal").is_none());
    assert!(matches!(
        LogClient::connect(&place.socket(), ""),
        Err(ConnectError::Refused(Status::NoService))
    ));
}
