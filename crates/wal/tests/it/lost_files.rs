//! One file that is lost costs what it held, and nothing is made over what is left.

use holdfast_io::fake::{FakeFiles, Mood};
use holdfast_io::{Files, OpenHow};
use holdfast_wal::format::MessagePack;
use holdfast_wal::{CreateError, FileFault, Log, OpenError, RepairError, repair_at, verify_at};

use crate::support::{SMALL, Work, make_old, new_log, open, place, records, segments, work, works};

/// The files that say which segments are the log.
const CATALOGUES: [&str; 2] = ["catalogue", "catalogue.copy"];
/// What the log holds, and where its checkpoint is.
const RECORDS: u32 = 3000;
const BELOW: u32 = 1000;

/// A closed log of several segments, with a checkpoint.
fn closed() -> FakeFiles {
    let (files, log) = new_log(1);
    let ends: Vec<_> = works(0..RECORDS).iter().map(|w| log.append(w).unwrap().end()).collect();
    log.checkpoint(ends[BELOW as usize - 1]).unwrap();
    log.close().unwrap();
    drop(log);
    files
}

fn copy(files: &FakeFiles) -> FakeFiles {
    files.after_power_cut_in(Mood::KeepAll, 0)
}

fn remove(files: &FakeFiles, names: &[&str]) {
    names.iter().for_each(|name| drop(files.remove_file(name.as_ref())));
}

fn is_whole(files: &FakeFiles) {
    assert!(records(&open(files).unwrap().0).unwrap() == works(BELOW..RECORDS));
}

/// Repairs into an empty directory.
fn repaired(files: &FakeFiles) -> FakeFiles {
    let to = FakeFiles::new(7);
    repair_at(&place(files), Some(&place(&to)), &mut |_| {}).unwrap();
    to
}

#[test]
fn nothing_is_created_over_segments_that_were_used() {
    let files = closed();
    remove(&files, &CATALOGUES);
    for _ in 0..2 {
        let opened = Log::<Work, MessagePack>::open_at(place(&files), &SMALL).map(drop);
        let missing = |error: &OpenError| {
            let OpenError::File { name, fault } = error else { return false };
            name == "catalogue" && *fault == FileFault::Missing
        };
        assert!(opened.as_ref().is_err_and(missing), "{opened:?}");
        let made = Log::<Work, MessagePack>::create_at(&place(&files), &SMALL);
        assert!(matches!(made, Err(CreateError::Used { .. })), "{made:?}");
        let looked = verify_at(&place(&files), &mut |_| {});
        assert!(looked.as_ref().is_err_and(missing), "{looked:?}");
    }
    is_whole(&repaired(&files));
}

#[test]
fn a_log_whose_first_segments_alone_were_used_is_not_made_over() {
    let (files, log) = new_log(1);
    log.append_durable(&work(0)).unwrap();
    drop(log);
    remove(&files, &CATALOGUES);
    let made = Log::<Work, MessagePack>::create_at(&place(&files), &SMALL);
    assert!(matches!(made, Err(CreateError::Used { .. })), "{made:?}");
    assert!(records(&open(&repaired(&files)).unwrap().0).unwrap() == works(0..1));
}

#[test]
fn either_catalogue_is_enough() {
    for name in CATALOGUES {
        let files = closed();
        remove(&files, &[name]);
        is_whole(&files);
        let log = open(&files).unwrap().0;
        log.append_durable(&work(RECORDS)).unwrap();
        drop(log);
        assert!(files.metadata(name.as_ref()).is_ok(), "{name} is made again");
    }
}

#[test]
fn every_bit_of_either_catalogue_can_turn_over() {
    for name in CATALOGUES {
        let files = closed();
        let bytes = files.metadata(name.as_ref()).unwrap().size_bytes;
        for bit in (0..bytes * 8).step_by(211) {
            files.flip_bit(name.as_ref(), bit).unwrap();
            is_whole(&copy(&files));
            files.flip_bit(name.as_ref(), bit).unwrap();
        }
    }
}

#[test]
fn the_label_is_in_every_segment() {
    let files = closed();
    remove(&files, &["label"]);
    is_whole(&files);
    let names = segments(&files);
    for lost in &names {
        let files = closed();
        remove(&files, &["label"]);
        for name in names.iter().filter(|name| *name != lost) {
            files.flip_bit(name.as_ref(), 8 * 60).unwrap();
        }
        is_whole(&repaired(&files));
    }
}

#[test]
fn a_repair_saves_the_rest_of_a_log_that_lost_a_segment() {
    let names = segments(&closed());
    assert!(names.len() > 3);
    for lost in names {
        let files = closed();
        remove(&files, &[&lost]);
        let refused = open(&files).map(drop);
        assert!(
            matches!(&refused, Err(OpenError::MissingSegment { name }) if *name == lost),
            "{refused:?}"
        );
        let kept = records(&open(&repaired(&files)).unwrap().0).unwrap();
        let all = works(BELOW..RECORDS);
        assert!(kept.iter().all(|record| all.contains(record)), "{lost}");
        assert!(kept.len() + 1500 > all.len(), "{lost}: {}", kept.len());
        remove(&files, &CATALOGUES);
        let again = records(&open(&repaired(&files)).unwrap().0).unwrap();
        // With the last segment, the last checkpoint is lost, too.
        let all = works(0..RECORDS);
        assert!(again.iter().all(|record| all.contains(record)), "{lost}");
        assert!(again.len() + 2500 > all.len(), "{lost}: {}", again.len());
    }
}

#[test]
fn a_segment_a_byte_short_costs_nothing_but_what_the_byte_held() {
    for name in segments(&closed()) {
        let files = closed();
        let file =
            files.open(name.as_ref(), OpenHow { write: true, ..OpenHow::default() }).unwrap();
        file.set_len(file.metadata().unwrap().size_bytes - 1).unwrap();
        let refused = open(&files).map(drop);
        assert!(matches!(refused, Err(OpenError::File { .. })), "{refused:?}");
        is_whole(&repaired(&files));
    }
}

#[test]
fn a_repair_into_a_used_directory_is_refused() {
    let (files, used) = (closed(), closed());
    for _ in 0..2 {
        let refused = repair_at(&place(&files), Some(&place(&used)), &mut |_| {});
        let Err(RepairError::Target(why)) = refused else { panic!("{refused:?}") };
        assert!(matches!(why, CreateError::Exists | CreateError::Used { .. }), "{why:?}");
        remove(&used, &CATALOGUES);
    }
    is_whole(&repaired(&used));
}

#[test]
fn what_an_interrupted_creation_left_is_written_over() {
    for at in 1.. {
        let files = FakeFiles::new(at);
        files.cut_power_at(at);
        let made = Log::<Work, MessagePack>::create_at(&place(&files), &SMALL);
        let image = files.after_power_cut(at);
        match open(&image) {
            Ok(_) => {}
            Err(OpenError::NoLog) => {
                Log::<Work, MessagePack>::create_at(&place(&image), &SMALL).unwrap();
                open(&image).unwrap();
            }
            Err(error) => panic!("cut at {at}: {error:?}"),
        }
        if made.is_ok() {
            break;
        }
    }
}

#[test]
fn a_log_of_the_first_version_opens_and_gets_what_it_lacks_as_it_goes_on() {
    let files = closed();
    make_old(&files);
    is_whole(&copy(&files));
    let (log, _) = open(&files).unwrap();
    works(RECORDS..2 * RECORDS).iter().for_each(|work| {
        log.append(work).unwrap();
    });
    log.close().unwrap();
    drop(log);
    remove(&files, &["label", "catalogue"]);
    assert!(records(&open(&files).unwrap().0).unwrap() == works(BELOW..2 * RECORDS));
}
