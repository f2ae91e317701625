//! Many threads, one log.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_io::fake::Mood;
use holdfast_log::{AppendError, Kind, Log, Lsn, words};

use crate::support::{contents, new_log, open_with, region};

const THREADS: u64 = 8;
const EACH: u64 = 200;

#[test]
fn what_eight_threads_commit_survives_a_power_cut_and_costs_fewer_syncs() {
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
        for writer in writers {
            writer.join().expect("no panic");
        }
        over.store(true, Ordering::Relaxed);
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
        applied.extend(data_between(log, marks.released, marks.durable));
        while log.mark(marks.durable).is_err() {
            log.drain().expect("the disk is sound");
        }
        log.release(marks.durable);
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

fn append(log: &Log, payload: &[u8]) -> Lsn {
    loop {
        match log.append(1, &[payload]) {
            Ok(appended) => return appended.end,
            Err(AppendError::Full) => {
                log.wait_for_room(payload.len() as u64).expect("the disk is sound");
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
