//! Many threads, one log.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use holdfast_io::fake::{EIO, Effect, FakeFiles, Fault, Mood, Operation};
use holdfast_log::{AppendError, Kind, Log, Lsn, words};

use crate::support::{contents, new_log, open_with, region};

const THREADS: u64 = 8;
const EACH: u64 = 200;

/// Ends the process if a test takes so long that it must hang: a thread cannot be stopped.
struct Watchdog {
    _over: Sender<()>,
}

impl Watchdog {
    const PATIENCE: Duration = Duration::from_secs(240);

    fn start() -> Watchdog {
        let (_over, over) = channel::<()>();
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        std::thread::spawn(move || {
            if over.recv_timeout(Watchdog::PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // Past the harness, which keeps what a test prints until the test ends.
                let _ = writeln!(std::io::stderr(), "{test} hangs: a thread waits for ever");
                std::process::abort();
            }
        });
        Watchdog { _over }
    }
}

#[test]
fn what_eight_threads_commit_survives_a_power_cut_and_costs_fewer_syncs() {
    let _watchdog = Watchdog::start();
    let (files, ring, log) = new_log(1);
    let committed = Mutex::new(Vec::new());
    let over = AtomicBool::new(false);
    let mut found = std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_until(&log, &over));
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let (log, committed) = (&log, &committed);
                    move || write(log, thread, committed)
                })
            })
            .collect();
        join_all(writers, &over);
        reader.join().expect("no panic")
    });
    let released = log.marks().released;
    let image = files.after_power_cut_in(Mood::LoseAll, 0);
    let (recovered, _) = open_with(&image, region()).expect("the disk is sound");
    let later = contents(&recovered).into_iter().filter(|put| put.lsn >= released);
    found.extend(later.map(|put| put.payload));
    found.sort();
    let mut committed = committed.into_inner().expect("no panic");
    committed.sort();
    assert_eq!(found, committed);
    let syncs = ring.word(words::SYNCS).load(Ordering::Relaxed);
    println!("{} commits, {syncs} syncs", THREADS * EACH);
}

/// Applies what is durable, releases it, and prepares, until it is over. Returns what it applied.
fn read_until(log: &Log, over: &AtomicBool) -> Vec<Vec<u8>> {
    let mut applied = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let marks = log.marks();
        let data = data_between(log, marks.released, marks.durable);
        if log.mark(marks.durable).is_ok() {
            log.release(marks.durable);
            applied.extend(data);
        } else {
            log.drain().expect("the disk is sound");
        }
        log.prepare().expect("the disk is sound");
        std::thread::yield_now();
    }
    applied
}

fn write(log: &Log, thread: u64, committed: &Mutex<Vec<Vec<u8>>>) {
    for turn in 0..EACH {
        let payload = [thread.to_le_bytes(), turn.to_le_bytes()].concat();
        let end = append(log, &payload);
        log.commit(end).expect("the disk is sound");
        committed.lock().expect("no panic").push(payload);
    }
}

/// Ends the reader before anything is said about the writers, so that a failure does not hang.
fn join_all(writers: Vec<ScopedJoinHandle<'_, ()>>, over: &AtomicBool) {
    let outcomes: Vec<_> = writers.into_iter().map(ScopedJoinHandle::join).collect();
    over.store(true, Ordering::Relaxed);
    outcomes.into_iter().for_each(|outcome| outcome.expect("no panic"));
}

fn append(log: &Log, payload: &[u8]) -> Lsn {
    loop {
        match log.append(1, &[payload]) {
            Ok(appended) => return appended.end,
            Err(AppendError::Full) => {
                log.wait_for_room(payload.len() as u64, Duration::MAX).expect("the disk is sound");
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

fn data_between(log: &Log, from: Lsn, to: Lsn) -> Vec<Vec<u8>> {
    let frames = log.frames(from, to);
    let data = frames.iter().filter(|frame| frame.header.kind == Kind::Data);
    data.map(|frame| frame.payload.to_vec()).collect()
}

fn fill(log: &Log, thread: u64) {
    for turn in 0..EACH {
        append(log, &vec![thread as u8; 1000 + 31 * turn as usize]);
    }
}

#[test]
fn writers_that_wait_for_room_all_finish() {
    let _watchdog = Watchdog::start();
    let (_files, _region, log) = new_log(2);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| read_until(&log, &over));
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let log = &log;
                scope.spawn(move || fill(log, thread))
            })
            .collect();
        join_all(writers, &over);
    });
}

/// Prepares and looks at the catalogue until it is over.
fn prepare_until(files: &FakeFiles, log: &Log, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        log.prepare().expect("the disk is sound");
        Log::identity_of(files).expect("the catalogue says what can be");
    }
}

#[test]
fn whoever_prepares_segments_leaves_a_catalogue_that_can_be_read() {
    let _watchdog = Watchdog::start();
    let (files, _region, log) = new_log(4);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| read_until(&log, &over));
        scope.spawn(|| prepare_until(&files, &log, &over));
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let log = &log;
                scope.spawn(move || {
                    for turn in 0..EACH {
                        let end = append(log, &vec![thread as u8; 3000 + 31 * turn as usize]);
                        log.commit(end).expect("the disk is sound");
                    }
                })
            })
            .collect();
        join_all(writers, &over);
    });
    Log::identity_of(&files).expect("the catalogue says what can be");
}

#[test]
fn a_writer_that_waits_for_the_reader_learns_of_a_poisoned_log() {
    let _watchdog = Watchdog::start();
    let (files, _region, log) = new_log(3);
    while log.append(1, &[&[1; 5000]]).is_ok() {
        log.commit(log.marks().tail).expect("the disk is sound");
    }
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| log.wait_for_room(5000, Duration::MAX));
        log.mark(log.marks().durable).expect("marks have room in a full ring");
        let effect = Effect::Errno(EIO);
        files.fail(Fault { operation: Operation::SyncData, skip: 0, effect });
        let _poisoned = log.drain();
        let told = waiter.join().expect("no panic");
        assert!(matches!(told, Err(AppendError::Poisoned(_))), "{told:?}");
    });
    assert_eq!(files.faults_fired(), 1);
}
