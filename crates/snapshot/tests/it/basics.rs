//! What each request does, and what it is refused for.

use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_io::Blocks;
use holdfast_io::fake::Random;
use holdfast_snapshot::{Answer, ImageKind, NewImage, Refusal, Request, Snapshots};

use crate::support::{
    DISK_PAGES, ME, Machine, PAGE, STORE_PAGES, ask, asked, begin, bytes_of, content, disk_of,
    disks, image, list, make, making, refused, room_bytes,
};

#[test]
fn a_snapshot_is_read_and_restored_as_it_was_taken() {
    let machine = Machine::new();
    let (memory, before) = (content(1, 700), content(2, DISK_PAGES));
    machine.disk.write(&before, 0).unwrap();
    make(&machine.open(), 1, &memory).unwrap();
    machine.disk.write(&content(3, DISK_PAGES), 0).unwrap();
    let snapshots = machine.open();
    assert_eq!(image(&snapshots, 1, 0).unwrap(), memory);
    assert_eq!(image(&snapshots, 1, 1).unwrap(), before);
    assert_ne!(bytes_of(&*machine.disk), before);
    assert_eq!(ask(&snapshots, &Request::RestoreDisks { id: 1 }), Answer::Done);
    assert_eq!(bytes_of(&*machine.disk), before);
}

#[test]
fn the_list_tells_what_a_snapshot_has_and_leaves_zeros_out() {
    let machine = Machine::new();
    let memory = [content(1, 0), vec![0; 99 * PAGE], vec![1; PAGE]].concat();
    make(&machine.open(), 1, &memory).unwrap();
    let [told] = &list(&machine.open())[..] else { panic!("there is one") };
    assert_eq!((told.id, &*told.name, told.taken_ms, &*told.note), (1, "s1", 1, "a note"));
    let told: Vec<_> = told.images.iter().map(|it| (&*it.name, it.kind, it.held_bytes)).collect();
    let expected = [("memory", ImageKind::Memory, Some(4096)), ("ram", ImageKind::Disk, Some(0))];
    assert_eq!(told, expected);
}

#[test]
fn what_is_removed_gives_all_its_room_back() {
    let machine = Machine::new();
    let snapshots = machine.open();
    let empty_bytes = room_bytes(&snapshots);
    make(&snapshots, 1, &content(1, 700)).unwrap();
    make(&snapshots, 2, &content(2, 400)).unwrap();
    assert!(room_bytes(&snapshots) < empty_bytes - 700 * PAGE as u64);
    for id in [1, 2, 2] {
        assert_eq!(ask(&snapshots, &Request::Remove { id }), Answer::Done, "also once more");
    }
    assert_eq!(list(&snapshots), []);
    assert_eq!(room_bytes(&snapshots), empty_bytes);
    assert_eq!(room_bytes(&machine.open()), empty_bytes);
}

#[test]
fn a_snapshot_that_does_not_fit_is_refused_with_the_numbers_and_leaves_nothing() {
    let machine = Machine::new();
    let snapshots = machine.open();
    make(&snapshots, 1, &content(1, 300)).unwrap();
    let before_bytes = room_bytes(&snapshots);
    let memory = vec![1; STORE_PAGES as usize * PAGE];
    let told = making(2, &memory).into_iter().find_map(|(request, piece)| {
        match asked(&snapshots, &request, &piece).unwrap().answer {
            Answer::Refused(refusal) => Some(refusal),
            _ => None,
        }
    });
    let Some(Refusal::NoSpace { taken_bytes, images_bytes, room_bytes: room, size_bytes }) = told
    else {
        panic!("{told:?}")
    };
    assert_eq!(taken_bytes, room, "all there was");
    assert_eq!((room, size_bytes), (before_bytes, STORE_PAGES * PAGE as u64));
    assert_eq!(images_bytes, (STORE_PAGES + DISK_PAGES) * PAGE as u64);
    assert_eq!(room_bytes(&snapshots), before_bytes);
    assert_eq!(refused(&snapshots, &Request::Commit { id: 2 }), Refusal::NoDraft);
    assert_eq!(list(&snapshots).len(), 1);
}

#[test]
fn a_directory_that_is_full_refuses_one_more_and_loses_no_space() {
    let machine = Machine::new();
    let snapshots = machine.open();
    let note = "n".repeat(60_000);
    let begin = |id: u64| {
        let (name, note, images) = (format!("s{id}"), note.clone(), Vec::new());
        Request::Begin { id, name, taken_ms: 0, note, images }
    };
    for id in 1..=4 {
        assert_eq!(ask(&snapshots, &begin(id)), Answer::Done);
        assert_eq!(ask(&snapshots, &Request::Commit { id }), Answer::Done);
    }
    let before_bytes = room_bytes(&snapshots);
    assert_eq!(ask(&snapshots, &begin(5)), Answer::Done);
    assert_eq!(refused(&snapshots, &Request::Commit { id: 5 }), Refusal::DirectoryFull);
    assert_eq!((list(&snapshots).len(), room_bytes(&snapshots)), (4, before_bytes));
    assert_eq!(ask(&snapshots, &Request::Remove { id: 2 }), Answer::Done);
    assert_eq!(ask(&snapshots, &begin(5)), Answer::Done);
    assert_eq!(ask(&snapshots, &Request::Commit { id: 5 }), Answer::Done);
    assert_eq!(list(&machine.open()).len(), 4);
}

#[test]
fn who_leaves_or_begins_again_gives_up_what_it_was_making() {
    let snapshots = Machine::new().open();
    let empty_bytes = room_bytes(&snapshots);
    let memory = content(1, 200);
    let half_made = |id| {
        for (request, piece) in making(id, &memory).into_iter().take(2) {
            assert_eq!(asked(&snapshots, &request, &piece).unwrap().answer, Answer::Done);
        }
    };
    half_made(1);
    half_made(2);
    assert_eq!(refused(&snapshots, &Request::Commit { id: 1 }), Refusal::NoDraft);
    snapshots.leave(ME);
    assert_eq!(refused(&snapshots, &Request::Commit { id: 2 }), Refusal::NoDraft);
    assert_eq!(room_bytes(&snapshots), empty_bytes);
}

#[test]
fn another_client_cannot_change_what_one_is_making() {
    let snapshots = Machine::new().open();
    let memory = content(1, 2);
    assert_eq!(ask(&snapshots, &begin(1, &memory)), Answer::Done);
    let request = Request::Put { id: 1, image: 0, offset: 0 }.encode(&memory);
    let mut answer = Vec::new();
    snapshots.respond(ME + 1, &request, &mut answer).unwrap();
    assert_eq!(Answer::decode(&answer).unwrap().0, Answer::Refused(Refusal::NoDraft));
}

#[test]
fn what_is_wrongly_asked_is_refused() {
    let machine = Machine::new();
    let snapshots = machine.open();
    make(&snapshots, 1, &content(1, 3)).unwrap();
    for (name, refusal) in
        [("s1", Refusal::NameTaken), ("", Refusal::BadName), ("a/b", Refusal::BadName)]
    {
        let (name, note, images) = (name.to_owned(), String::new(), Vec::new());
        let request = Request::Begin { id: 2, name, taken_ms: 0, note, images };
        assert_eq!(refused(&snapshots, &request), refusal);
    }
    assert_eq!(ask(&snapshots, &begin(2, &[0; 2 * PAGE])), Answer::Done);
    let put = |image, bytes, offset| {
        let request = Request::Put { id: 2, image, offset };
        asked(&snapshots, &request, &vec![1; bytes]).unwrap().answer
    };
    let out_of_range = Answer::Refused(Refusal::OutOfRange);
    assert_eq!(put(0, 2 * PAGE, 0), Answer::Done);
    for (image, bytes, offset) in [(0, 100, 0), (0, PAGE, 1), (0, 2 * PAGE, 4096), (9, PAGE, 0)] {
        assert_eq!(put(image, bytes, offset), out_of_range, "{bytes} bytes at {offset}");
    }
    assert_eq!(put(0, PAGE, u64::MAX - 4095), out_of_range);
    let read = |image, offset, bytes| Request::Read { id: 1, image, offset, bytes };
    for request in [read(2, 0, 4096), read(0, 1, 4096), read(0, 4096, 3 << 20), read(0, 0, 16384)] {
        assert_eq!(refused(&snapshots, &request), Refusal::OutOfRange, "{request:?}");
    }
    for id in [2, 3] {
        let request = Request::Read { id, image: 0, offset: 0, bytes: 4096 };
        assert_eq!(refused(&snapshots, &request), Refusal::NoSnapshot);
        assert_eq!(refused(&snapshots, &Request::RestoreDisks { id }), Refusal::NoSnapshot);
    }
}

#[test]
fn disks_that_are_others_are_not_restored() {
    let machine = Machine::new();
    make(&machine.open(), 1, &[]).unwrap();
    let restore = Request::RestoreDisks { id: 1 };
    let other_name = disks("other", machine.disk.clone());
    let snapshots = Snapshots::open(machine.store.clone(), other_name).unwrap();
    assert_eq!(refused(&snapshots, &restore), Refusal::NoDisk { disk: "ram".into() });
    let other_size = disks("ram", disk_of(DISK_PAGES + 1));
    let snapshots = Snapshots::open(machine.store.clone(), other_size).unwrap();
    let [had, found] = [DISK_PAGES, DISK_PAGES + 1].map(|pages| pages * PAGE as u64);
    let refusal = Refusal::OtherSize { disk: "ram".into(), found, had };
    assert_eq!(refused(&snapshots, &restore), refusal);
}

#[test]
fn all_disks_are_of_one_instant_and_no_write_is_half_in_it() {
    let (first, second) = (disk_of(64), disk_of(64));
    let mut both = disks("a", first.clone());
    both.append(&mut disks("b", second.clone()));
    let snapshots = Snapshots::open(disk_of(4096), both).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in (0..=u8::MAX).cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
                first.write(&[round; 16 * PAGE], 0).unwrap();
                second.write(&[round; 16 * PAGE], 0).unwrap();
            }
        });
        for id in 1..=40 {
            make(&snapshots, id, &[]).unwrap();
            let [one, other] = [1, 2].map(|disk| image(&snapshots, id, disk).unwrap());
            assert_eq!(is_of_one_instant(&one, &other), Ok(()));
            assert_eq!(ask(&snapshots, &Request::Remove { id }), Answer::Done);
        }
        stop.store(true, Ordering::Relaxed);
    });
    // The canaries: half of a write, and a second disk that is ahead.
    let (old, new) = ([1; 16 * PAGE], [2; 16 * PAGE]);
    assert!(is_of_one_instant(&[&old[..PAGE], &new[PAGE..]].concat(), &old).is_err());
    assert!(is_of_one_instant(&old, &new).is_err());
}

/// Whether one thread that writes first the one and then the other can have left them so.
fn is_of_one_instant(one: &[u8], other: &[u8]) -> Result<(), String> {
    let (one, other) = (&one[..16 * PAGE], &other[..16 * PAGE]);
    let is_whole = |disk: &[u8]| disk.iter().all(|byte| *byte == disk[0]);
    if !is_whole(one) || !is_whole(other) {
        return Err("a write is half there".into());
    }
    match one[0].wrapping_sub(other[0]) {
        0 | 1 => Ok(()),
        ahead => Err(format!("one is {ahead} ahead")),
    }
}

#[test]
fn bytes_that_are_no_request_are_malformed_and_nothing_else() {
    let machine = Machine::new();
    let snapshots = machine.open();
    let mut random = Random::new(1);
    let whole = begin(1, &[0; PAGE]).encode(&[]);
    for at in 0..2000 {
        let mut bytes = whole.clone();
        bytes.truncate(random.below(whole.len() as u64 + 1) as usize);
        if let Some(byte) = bytes.get_mut(random.below(whole.len() as u64) as usize) {
            *byte ^= 1 << random.below(8);
        }
        let mut answer = Vec::new();
        // Some are requests still, of something else.
        let _whatever = snapshots.respond(at, &bytes, &mut answer);
        snapshots.leave(at);
    }
    let images = vec![NewImage { name: "huge".into(), size_bytes: u64::MAX }; 3];
    let (name, note) = ("x".to_owned(), String::new());
    let request = Request::Begin { id: 1, name, taken_ms: 0, note, images };
    assert!(matches!(refused(&snapshots, &request), Refusal::NoSpace { .. }));
    assert_eq!(list(&snapshots), []);
}
