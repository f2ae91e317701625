//! What a stream does when nothing goes wrong.

use std::sync::Arc;

use holdfast_io::fake::{Mood, Random};
use holdfast_log::Lsn;
use holdfast_pages::{Feed, Rsn, StageError};

use crate::support::{frames, groups, new_world, open, put, replay, seeds};

#[test]
fn records_are_in_the_log_where_they_were_put_and_not_before_they_are_flushed() {
    let world = new_world(1);
    let (first, end) = put(&world.stream, 7, 3, 20).expect("it fits");
    assert_eq!((first, end, world.stream.next()), (Rsn::FIRST, end, end));
    assert_eq!((world.stream.stable(), frames(&*world.log).len()), (Rsn::FIRST, 0));
    assert_eq!(world.stream.flush().expect("there is room"), end);
    let found = frames(&*world.log);
    assert_eq!((found[0].place.first, found[0].place.end), (first, end));
    assert_eq!(groups(&found), Ok(vec![(7, first)]));
    assert_eq!(world.stream.flush().expect("there is nothing to do"), end);
    assert_eq!(frames(&*world.log).len(), 1);
}

#[test]
fn whatever_is_put_comes_in_whole_groups_however_it_is_flushed() {
    for seed in seeds(20) {
        let (world, mut random) = (new_world(seed), Random::new(seed));
        let (mut put_there, mut fed, mut feed) = (Vec::new(), Vec::new(), Feed::default());
        for number in 0..60 {
            let (records, bytes) = (random.below(5) as u8, random.below(400) as usize);
            let bytes = if random.chance(10) { 9 * bytes } else { bytes };
            let (first, _) = put(&world.stream, number, records, bytes).expect("it fits");
            put_there.extend((records > 0).then_some((number, first)));
            if random.chance(20) {
                world.stream.flush().expect("there is room");
            }
            if random.chance(20) {
                world.stream.take_feed(&mut feed);
                fed.append(&mut feed.bytes);
            }
        }
        world.stream.flush().expect("there is room");
        let found = frames(&*world.log);
        assert_eq!(groups(&found), Ok(put_there), "{}", replay("whatever_is_put", seed));
        world.stream.take_feed(&mut feed);
        fed.append(&mut feed.bytes);
        let bytes: Vec<u8> = found.into_iter().flat_map(|frame| frame.bytes).collect();
        assert!(fed == bytes, "{}", replay("whatever_is_put", seed));
    }
}

#[test]
fn the_feed_says_which_frame_has_which_records() {
    let world = new_world(2);
    for number in 0..3 {
        put(&world.stream, number, 2, 100).expect("it fits");
        world.stream.flush().expect("there is room");
    }
    let mut feed = Feed::default();
    world.stream.take_feed(&mut feed);
    let found: Vec<_> = frames(&*world.log).into_iter().map(|frame| frame.place).collect();
    assert_eq!(feed.frames, found);
    world.stream.take_feed(&mut feed);
    assert!(feed.frames.is_empty() && feed.bytes.is_empty());
}

#[test]
fn more_than_a_frame_holds_goes_into_several() {
    let world = new_world(3);
    for number in 0..10 {
        put(&world.stream, number, 3, 3000).expect("it fits");
    }
    world.stream.flush().expect("there is room");
    let found = frames(&*world.log);
    assert_eq!(found.len(), 4);
    assert_eq!(groups(&found).expect("they are whole").len(), 10);
}

#[test]
fn a_group_that_no_frame_holds_is_refused_and_leaves_nothing() {
    let world = new_world(4);
    let refused = put(&world.stream, 1, 4, 9000);
    assert!(matches!(refused, Err(StageError::TooLarge { .. })), "{refused:?}");
    assert_eq!(world.stream.next(), Rsn::FIRST);
    let (first, _) = put(&world.stream, 2, 3, 9000).expect("it fits");
    world.stream.flush().expect("there is room");
    assert_eq!(groups(&frames(&*world.log)), Ok(vec![(2, first)]));
}

#[test]
fn what_was_synced_outlives_the_power_and_what_was_not_leaves_a_prefix() {
    let world = new_world(5);
    let (_, end) = put(&world.stream, 1, 2, 100).expect("it fits");
    world.stream.sync(end).expect("the disk is sound");
    assert_eq!((world.stream.durable(), world.stream.stable()), (end, end));
    world.stream.sync(end).expect("it is durable already");
    put(&world.stream, 2, 2, 100).expect("it fits");
    world.stream.flush().expect("there is room");
    put(&world.stream, 3, 2, 100).expect("it fits");
    let world = open(&world.files.after_power_cut_in(Mood::LoseAll, 5)).expect("a log is there");
    assert_eq!(groups(&frames(&*world.log)), Ok(vec![(1, Rsn::FIRST)]));
    assert_eq!((world.stream.next(), world.stream.durable()), (end, end));
    let (first, _) = put(&world.stream, 4, 1, 1).expect("it fits");
    world.stream.flush().expect("there is room");
    assert_eq!(groups(&frames(&*world.log)), Ok(vec![(1, Rsn::FIRST), (4, first)]));
}

#[test]
fn a_sync_waits_for_no_more_than_was_asked_for() {
    let world = new_world(6);
    let (_, early) = put(&world.stream, 1, 1, 0).expect("it fits");
    world.stream.sync(early).expect("the disk is sound");
    let (_, late) = put(&world.stream, 2, 1, 0).expect("it fits");
    world.stream.flush().expect("there is room");
    let operations = world.files.operations();
    world.stream.sync(early).expect("it is durable already");
    assert_eq!((world.files.operations(), world.stream.durable()), (operations, early));
    world.stream.sync(late).expect("the disk is sound");
    assert_eq!(world.stream.durable(), late);
}

#[test]
fn a_full_log_takes_more_when_frames_are_released() {
    let world = new_world(8);
    let weak = Arc::downgrade(&world.stream);
    world.stream.make_room_by(move |_| {
        let stream = weak.upgrade().expect("it is the one that asks");
        assert!(stream.is_pressed());
        stream.release(stream.stable()).expect("the disk is sound");
        Ok(())
    });
    for number in 0..200 {
        put(&world.stream, number, 1, 9000).expect("it fits");
        world.stream.flush().expect("room is made");
    }
    assert!(!world.stream.is_pressed());
    let found = groups(&frames(&*world.log)).expect("they are whole");
    assert_eq!(found.last().map(|group| group.0), Some(199));
    assert!(found.len() < 30, "the ring holds no more");
}

#[test]
fn what_is_released_is_not_there_after_a_restart_and_what_is_not_is() {
    let world = new_world(9);
    let mut ends = Vec::new();
    for number in 0..6 {
        ends.push(put(&world.stream, number, 2, 500).expect("it fits").1);
        world.stream.flush().expect("there is room");
    }
    // Two whole frames, and half of a third.
    world.stream.release(Rsn(ends[1].get() + 5)).expect("the disk is sound");
    world.stream.release(ends[0]).expect("it was given back before");
    assert!(world.stream.durable() >= ends[1]);
    world.stream.sync(ends[0]).expect("it is durable, and gone");
    world.stream.sync(ends[5]).expect("the disk is sound");
    let world = open(&world.files.after_power_cut_in(Mood::LoseAll, 9)).expect("a log is there");
    let found = groups(&frames(&*world.log)).expect("they are whole");
    assert_eq!(found.iter().map(|group| group.0).collect::<Vec<_>>(), [2, 3, 4, 5]);
    assert_eq!(world.stream.next(), ends[5]);
    world.stream.release(ends[5]).expect("the disk is sound");
    assert!(frames(&*world.log).is_empty());
    assert!(world.log.marks().released > Lsn::ZERO);
    put(&world.stream, 6, 1, 0).expect("it fits");
    world.stream.flush().expect("there is room");
    assert_eq!(groups(&frames(&*world.log)), Ok(vec![(6, ends[5])]));
}
