//! Many threads at one stream.

use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_io::fake::Random;
use holdfast_log::Lsn;
use holdfast_pages::{Feed, Records, Rsn, Stream};

use crate::support::{frames, groups, new_world, put, replay, seeds};

const WRITERS: u64 = 4;
const GROUPS: u64 = 30;

/// Puts groups that are numbered by writer, so few that the ring holds them all, and flushes or
/// syncs after each. Returns where they stood.
fn write(stream: &Stream, writer: u64, seed: u64) -> Vec<(u64, Rsn)> {
    let mut random = Random::new(seed * WRITERS + writer);
    let mut put_there = Vec::new();
    for at in 0..GROUPS {
        let number = writer * GROUPS + at;
        let (records, bytes) = (1 + random.below(3) as u8, random.below(200) as usize);
        let (first, end) = put(stream, number, records, bytes).expect("it fits");
        put_there.push((number, first));
        if random.chance(10) {
            stream.sync(end).expect("the disk is sound");
            assert!(stream.durable() >= end);
        } else {
            assert!(stream.flush().expect("there is room") >= end);
        }
    }
    put_there
}

/// Takes the feed until everything is done, and checks that it is whole up to the stable mark.
fn follow(stream: &Stream, done: &AtomicBool) -> Vec<u8> {
    let (mut all, mut feed) = (Vec::new(), Feed::default());
    loop {
        let (last, stable) = (done.load(Ordering::SeqCst), stream.stable());
        stream.take_feed(&mut feed);
        all.append(&mut feed.bytes);
        let upto = Rsn::FIRST.advance(all.len() as u64);
        assert!(upto >= stable, "the feed ends at {upto}, and {stable} was stable before");
        if last {
            return all;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_reader_sees_a_prefix_without_holes() {
    for seed in seeds(5) {
        let (world, done) = (new_world(seed), AtomicBool::new(false));
        let stream = &*world.stream;
        let (put_there, fed) = std::thread::scope(|scope| {
            let follower = scope.spawn(|| follow(stream, &done));
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| scope.spawn(move || write(stream, writer, seed)))
                .collect();
            let put_there = writers.into_iter().flat_map(|writer| writer.join().expect("it ends"));
            let mut put_there: Vec<_> = put_there.collect();
            put_there.sort_by_key(|(_, first)| *first);
            done.store(true, Ordering::SeqCst);
            (put_there, follower.join().expect("it ends"))
        });
        let found = frames(&*world.log);
        assert_eq!(groups(&found), Ok(put_there), "{}", replay("a_reader_sees", seed));
        assert!(Records::new(Rsn::FIRST, &fed).all(|record| record.is_ok()));
        let bytes: Vec<u8> = found.into_iter().flat_map(|frame| frame.bytes).collect();
        assert!(fed == bytes, "{}", replay("a_reader_sees", seed));
    }
}

#[test]
fn who_finds_the_log_full_waits_until_another_releases() {
    let world = new_world(2);
    let (stream, done) = (&*world.stream, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                if stream.is_pressed() {
                    stream.release(stream.stable()).expect("the disk is sound");
                }
                std::thread::yield_now();
            }
        });
        for number in 0..100 {
            put(stream, number, 1, 9000).expect("it fits");
            stream.flush().expect("room is made");
        }
        done.store(true, Ordering::SeqCst);
    });
    let found = groups(&frames(&*world.log)).expect("whole");
    assert_eq!(found.last().map(|group| group.0), Some(99));
    assert!(world.log.marks().released > Lsn::ZERO);
}
