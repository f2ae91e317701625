//! A queue page, used by one process.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use holdfast_memory::queue::{Damage, Owner, Queue, REBUILT, Request, Response, SLOTS, SlotIndex};
use holdfast_memory::{MapSessionError, OutOfBuffer, SessionMemory};

/// Long enough for any machine; reached only by a broken queue.
const PATIENCE: Duration = Duration::from_secs(60);

/// No wait at all.
const NONE: Duration = Duration::ZERO;

fn session() -> SessionMemory {
    SessionMemory::create_sealed(8192).unwrap().0
}

fn owner(number: u16) -> Owner {
    Owner::new(number).unwrap()
}

fn request(sequence: u64) -> Request {
    Request {
        sequence,
        handle: 1,
        check: 0xfeed,
        operation: 3,
        count: 4,
        buffer: 5,
        bytes: 6,
        argument: [7, sequence],
    }
}

fn answer(value: u64) -> Response {
    Response { status: 1, bytes: 2, value: [3, value] }
}

/// Acquires a slot and puts request number `sequence`.
fn ask(queue: Queue<'_>, sequence: u64) -> SlotIndex {
    let slot = queue.acquire(owner(1)).unwrap();
    queue.put(slot, &request(sequence));
    slot
}

fn ask_all(queue: Queue<'_>, sequences: RangeInclusive<u64>) {
    for sequence in sequences {
        ask(queue, sequence);
    }
}

fn take_sequence(queue: Queue<'_>) -> Option<u64> {
    queue.take().unwrap().map(|taken| taken.request.sequence)
}

#[test]
fn a_request_arrives_as_it_was_put_and_so_does_its_response() {
    let session = session();
    let queue = session.queue();
    let slot = ask(queue, 9);
    let taken = queue.take().unwrap().unwrap();
    assert_eq!((taken.slot, taken.owner, taken.request), (slot, owner(1), request(9)));
    assert_eq!(queue.wait(slot, 10, NONE), None, "it is not answered yet");
    queue.complete(slot, &answer(9)).unwrap();
    assert_eq!(queue.wait(slot, 0, NONE), Some(answer(9)));
    queue.free(slot);
    assert_eq!(queue.take(), Ok(None));
    assert_eq!(queue.damage_count(), 0);
}

#[test]
fn requests_are_taken_in_the_order_in_which_they_were_put() {
    let session = session();
    let queue = session.queue();
    // Takes between the puts leave turned lists below new requests.
    ask_all(queue, 1..=5);
    assert_eq!(take_sequence(queue), Some(1));
    ask_all(queue, 6..=8);
    assert_eq!(take_sequence(queue), Some(2));
    assert_eq!(take_sequence(queue), Some(3));
    ask_all(queue, 9..=9);
    let rest: Vec<_> = std::iter::from_fn(|| take_sequence(queue)).collect();
    assert_eq!(rest, [4, 5, 6, 7, 8, 9]);
}

#[test]
fn every_slot_can_be_under_way_and_the_next_caller_is_told_so() {
    let session = session();
    let queue = session.queue();
    let slots: HashSet<usize> =
        (0..SLOTS as u64).map(|sequence| ask(queue, sequence).number()).collect();
    assert_eq!(slots.len(), SLOTS);
    assert_eq!(queue.acquire(owner(2)), None);
    let taken: Vec<_> = std::iter::from_fn(|| take_sequence(queue)).collect();
    assert_eq!(taken, (0..SLOTS as u64).collect::<Vec<_>>());
}

#[test]
fn a_sleeping_server_and_a_sleeping_client_wake_each_other() {
    let session = session();
    let queue = session.queue();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..1000 {
                // The ring for the request before may come late: then there is nothing yet.
                let began = Instant::now();
                while !queue.wait_for_work(0, PATIENCE) {
                    assert!(began.elapsed() < PATIENCE, "nobody woke the server");
                }
                let taken = queue.take().unwrap().unwrap();
                queue.complete(taken.slot, &answer(taken.request.sequence)).unwrap();
            }
        });
        for sequence in 0..1000 {
            let slot = ask(queue, sequence);
            assert_eq!(queue.wait(slot, 0, PATIENCE), Some(answer(sequence)));
            queue.free(slot);
        }
    });
}

#[test]
fn a_wait_that_nobody_ends_ends_by_itself() {
    let session = session();
    let queue = session.queue();
    assert!(!queue.wait_for_work(3, Duration::from_millis(1)));
    let slot = ask(queue, 1);
    assert_eq!(queue.wait(slot, 3, Duration::from_millis(1)), None);
    assert!(queue.wait_for_work(0, NONE));
}

#[test]
fn many_threads_get_their_own_answers() {
    let session = session();
    let queue = session.queue();
    std::thread::scope(|scope| {
        let clients: Vec<_> =
            (1..=8_u16).map(|number| scope.spawn(move || client(queue, number))).collect();
        while !clients.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            if queue.wait_for_work(100, Duration::from_millis(1)) {
                serve_all(queue);
            }
        }
    });
    assert_eq!(queue.damage_count(), 0);
}

/// Puts requests in small heaps and checks that each is answered by its own number.
fn client(queue: Queue<'_>, number: u16) {
    for round in 0..500_u64 {
        let heap: Vec<_> = (0..3)
            .filter_map(|step| {
                let slot = queue.acquire(owner(number))?;
                let sequence = u64::from(number) << 32 | round << 2 | step;
                queue.put(slot, &request(sequence));
                Some((slot, sequence))
            })
            .collect();
        for (slot, sequence) in heap {
            assert_eq!(queue.wait(slot, 100, PATIENCE), Some(answer(sequence)));
            queue.free(slot);
        }
    }
}

/// Takes and answers all there is; in each owner's order.
fn serve_all(queue: Queue<'_>) {
    let mut last = [0; 16];
    while let Some(taken) = queue.take().unwrap() {
        let sequence = taken.request.sequence;
        let before = std::mem::replace(&mut last[usize::from(taken.owner.get())], sequence);
        assert!(sequence > before, "requests of one owner keep their order");
        queue.complete(taken.slot, &answer(sequence)).unwrap();
    }
}

#[test]
fn slots_of_the_dead_come_back_and_those_of_the_living_stay() {
    let session = session();
    let queue = session.queue();
    let [dead, alive] = [owner(1), owner(2)];
    let held = queue.acquire(dead).unwrap();
    let kept = queue.acquire(alive).unwrap();
    let linked = ask(queue, 1);
    assert_eq!(queue.reclaim(&|who| who == dead), Ok(1), "the one it held");
    assert_eq!(queue.acquire(alive), Some(held));
    let taken = queue.take().unwrap().unwrap();
    assert_eq!(taken.slot, linked);
    assert_eq!(queue.reclaim(&|who| who == dead), Ok(0), "the server still owes it an answer");
    queue.complete(taken.slot, &answer(1)).unwrap();
    assert_eq!(queue.reclaim(&|who| who == dead), Ok(1));
    queue.put(kept, &request(2));
    assert_eq!(take_sequence(queue), Some(2));
}

#[test]
fn a_slot_put_twice_is_damage_and_a_rebuilt_queue_is_usable_at_once() {
    let session = session();
    let queue = session.queue();
    let (first, second) = (ask(queue, 1), ask(queue, 2));
    queue.put(first, &request(1));
    let damage = (0..SLOTS).find_map(|_| queue.take().err());
    assert!(matches!(damage, Some(Damage::Cycle | Damage::State { .. })), "{damage:?}");
    assert_eq!(queue.damage_count(), 1);
    queue.rebuild();
    assert_eq!(queue.take(), Ok(None));
    for slot in [first, second] {
        if let Some(response) = queue.wait(slot, 0, NONE) {
            assert_eq!(response.status, REBUILT, "what was not taken is turned back");
            queue.free(slot);
        }
    }
    ask_all(queue, 3..=20);
    let rest: Vec<_> = std::iter::from_fn(|| take_sequence(queue)).collect();
    assert_eq!(rest, (3..=20).collect::<Vec<_>>());
}

#[test]
fn an_answer_to_a_slot_that_is_not_taken_is_damage() {
    let session = session();
    let queue = session.queue();
    let slot = queue.acquire(owner(1)).unwrap();
    assert!(matches!(queue.complete(slot, &answer(1)), Err(Damage::State { .. })));
    assert_eq!(queue.damage_count(), 1);
}

#[test]
fn data_is_copied_within_the_buffers_only() {
    let session = session();
    assert_eq!(session.buffer_bytes(), 8192);
    session.copy_in(8190, b"ab").unwrap();
    let mut copy = [0; 4];
    session.copy_out(8188, &mut copy).unwrap();
    assert_eq!(&copy, b"\0\0ab");
    for (offset, bytes) in [(8189, 4), (8192, 1), (8193, 0), (u32::MAX, 4)] {
        let refused = session.copy_out(offset, &mut vec![0; bytes]);
        assert_eq!(refused, Err(OutOfBuffer { offset, bytes }));
        assert_eq!(session.copy_in(offset, &vec![0; bytes]), Err(OutOfBuffer { offset, bytes }));
    }
    session.copy_in(8192, b"").unwrap();
}

#[test]
fn a_sealed_memory_keeps_its_size_whatever_its_holder_tries() {
    let (session, file) = SessionMemory::create_sealed(4096).unwrap();
    let file = std::fs::File::from(file);
    for bytes in [0, 4096, 1 << 20] {
        assert!(file.set_len(bytes).is_err());
    }
    let other = SessionMemory::map(file.as_fd()).unwrap();
    session.copy_in(0, b"seen").unwrap();
    let mut copy = [0; 4];
    other.copy_out(0, &mut copy).unwrap();
    assert_eq!(&copy, b"seen");
}

#[test]
fn memory_that_could_shrink_under_its_reader_is_refused() {
    let file = tempfile::tempfile_in("/dev/shm").unwrap();
    file.set_len(8192).unwrap();
    let refused = SessionMemory::map(file.as_fd());
    assert!(matches!(refused, Err(MapSessionError::NotSealed)), "{refused:?}");
}
