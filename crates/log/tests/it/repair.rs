//! A new log from what is left of a damaged one.

use holdfast_io::Files;
use holdfast_io::fake::{EIO, Effect, FakeFiles, Fault, Operation, is_power_cut};
use holdfast_log::{
    CheckVerdict, CreateError, Kind, Log, Lsn, LsnRange, OpenError, RepairError, RepairEvent,
    Repaired,
};

use crate::device::{fill, new_log, open, read};
use crate::support::Put;
use crate::survivor::{BLOCK, PLAIN, SHORT, STRIPED, bytes_of, closed, copy, spoil, spoil_at};

/// Repairs into a new disk.
fn repaired(files: &FakeFiles) -> (FakeFiles, Repaired) {
    let to = FakeFiles::new(9);
    let dry = Log::repair(files, None, &mut |_| {}).expect("it can be read");
    let done = Log::repair(files, Some(&to), &mut |_| {}).expect("there is room");
    assert_eq!(done, dry, "a dry run says the same");
    (to, done)
}

/// The frames whose bytes lie in none of these stretches.
fn but(puts: &[Put], lost: &[LsnRange]) -> Vec<Put> {
    let is_lost = |put: &&Put| lost.iter().any(|lost| put.lsn < lost.to && lost.from < put.end);
    puts.iter().filter(|put| !is_lost(put)).cloned().collect()
}

#[test]
fn every_frame_that_is_whole_is_in_the_new_log_at_its_own_position() {
    let (files, puts) = closed(PLAIN, 300 << 10);
    for at in [3, 4, 20, 41] {
        spoil_at(&files, PLAIN, puts[at].lsn.advance(20), 8);
    }
    let before = files.operations();
    let (to, report) = repaired(&files);
    assert_eq!(files.operations(), before, "the old log is as it was");
    assert_eq!(report.lost.len(), 4, "{:?}", report.lost);
    let kept = but(&puts, &report.lost);
    assert_eq!(kept.len(), puts.len() - 4);
    let (log, recovery) = open(&to, PLAIN).expect("the new log is whole");
    assert_eq!((recovery.tail, recovery.lost), (report.end, None));
    assert!(read(&log).0 == kept);
    let more = fill(&log, 1_000, log.marks().tail.get() + (100 << 10));
    assert!(read(&log).0 == [kept, more].concat(), "it goes on");
    let found = Log::verify(&to, &mut |_| {}).unwrap();
    assert_eq!((found.damaged, found.verdict), (vec![], CheckVerdict::Clean));
}

#[test]
fn what_parity_gives_back_is_not_lost_and_the_new_log_has_parity_too() {
    let (files, puts) = closed(STRIPED, 600 << 10);
    spoil(&files, "segment-00000000", 4096 + 7 * BLOCK, 5 * BLOCK);
    spoil(&files, "segment-00000000", 4096 + 80 * BLOCK, 7 * BLOCK);
    let (to, report) = repaired(&files);
    let mended: u64 = report.mended.iter().map(|part| part.to.since(part.from)).sum();
    assert_eq!(mended, 5 * BLOCK);
    assert!(!report.lost.is_empty());
    let kept = but(&puts, &report.lost);
    let (log, _) = open(&to, STRIPED).unwrap();
    assert!(read(&log).0 == kept);
    drop(log);
    let parity = Log::verify(&to, &mut |_| {}).unwrap().parity.unwrap();
    assert_eq!((parity.stripes, parity.sound), (3, 3));
    spoil(&to, "segment-00000000", 4096 + 80 * BLOCK, 5 * BLOCK);
    let (log, _) = open(&to, STRIPED).map_err(|error| error.to_string()).unwrap_or_else(|_| {
        let config = crate::survivor::with(STRIPED, holdfast_log::Policy::Repair);
        open(&to, config).expect("its parity is good")
    });
    assert!(read(&log).0 == kept);
}

#[test]
fn a_frame_whose_header_is_whole_is_shown_though_it_is_lost() {
    let (files, puts) = closed(PLAIN, 100 << 10);
    let broken = &puts[5];
    let spoilt = broken.payload.len() as u64 - 16;
    spoil_at(&files, PLAIN, broken.lsn.advance(48 + spoilt), 8);
    let mut shown = Vec::new();
    Log::repair(&files, None, &mut |event| {
        if let RepairEvent::BrokenFrame { header, payload } = event {
            assert_eq!((header.lsn, header.kind, header.records), (broken.lsn, Kind::Data, 1));
            shown.push(payload.to_vec());
        }
    })
    .unwrap();
    let part = spoilt as usize;
    assert!(shown.len() == 1 && shown[0][..part] == broken.payload[..part]);
}

#[test]
fn the_label_the_marks_and_the_holes_come_along() {
    let (files, puts) = closed(PLAIN, 200 << 10);
    spoil_at(&files, PLAIN, puts[10].lsn.advance(20), 8);
    let cut = crate::survivor::with(PLAIN, holdfast_log::Policy::Cut);
    let (log, recovery) = open(&files, cut).unwrap();
    let hole = recovery.lost.unwrap();
    let more = fill(&log, 1_000, hole.to.get() + (20 << 10));
    log.mark(puts[2].lsn).unwrap();
    log.close().unwrap();
    drop(log);
    crate::survivor::overwrite_new(&files, "label", b"whose"); // As an earlier version left it.
    let (to, report) = repaired(&files);
    assert_eq!(report.lost, [hole]);
    assert_eq!(Log::label_of(&to).unwrap(), b"whose");
    let (log, recovery) = open(&to, PLAIN).unwrap();
    assert_eq!(recovery.released, puts[2].lsn);
    assert!(read(&log).0 == [&puts[2..10], &more].concat());
}

#[test]
fn a_torn_end_is_no_loss() {
    let (files, log) = new_log(1, PLAIN);
    let puts = fill(&log, 0, 100 << 10);
    let last = puts.last().unwrap();
    spoil_at(&files, PLAIN, last.lsn.advance(20), 8);
    let (to, report) = repaired(&files);
    assert_eq!((report.lost, report.end), (vec![], last.lsn));
    let (log, _) = open(&to, PLAIN).unwrap();
    log.commit(log.marks().tail).unwrap();
    assert!(read(&log).0 == puts[..puts.len() - 1]);
}

#[test]
fn a_new_log_is_there_as_a_whole_or_not_at_all() {
    let (files, puts) = closed(SHORT, 150 << 10);
    spoil_at(&files, SHORT, puts[3].lsn.advance(20), 8);
    for cut in 1.. {
        let to = FakeFiles::new(2);
        to.cut_power_at(cut);
        let done = Log::repair(&files, Some(&to), &mut |_| {});
        let image = to.after_power_cut(cut);
        match Log::repair(&files, Some(&image), &mut |_| {}) {
            Ok(_) | Err(RepairError::Target(CreateError::Exists)) => {}
            Err(RepairError::Target(CreateError::Used { .. })) => {
                let half = Log::identity_of(&image);
                assert!(matches!(half, Err(OpenError::File { .. })), "cut {cut}: {half:?}");
                continue;
            }
            Err(error) => panic!("cut {cut}: {error}"),
        }
        assert!(read(&open(&image, SHORT).unwrap().0).0.len() >= puts.len() - 1);
        match done {
            Ok(_) => break,
            Err(RepairError::Target(CreateError::Io(error))) => assert!(is_power_cut(&error)),
            Err(error) => panic!("cut {cut}: {error}"),
        }
    }
}

#[test]
fn a_log_that_cannot_be_read_so_far_and_a_place_that_is_taken_are_told_apart() {
    let (files, _) = closed(PLAIN, 100 << 10);
    let taken = Log::repair(&files, Some(&files), &mut |_| {});
    assert!(matches!(taken, Err(RepairError::Target(CreateError::Exists))), "{taken:?}");
    let nothing = Log::repair(&FakeFiles::new(1), None, &mut |_| {});
    assert!(matches!(nothing, Err(RepairError::Source(OpenError::NoLog))), "{nothing:?}");
    let image = copy(&files);
    image.remove_file("segment-00000001".as_ref()).unwrap();
    let missing = Log::repair(&image, None, &mut |_| {}).unwrap();
    assert!(missing.rebuilt && missing.lost.len() == 1, "{missing:?}");
    let to = FakeFiles::new(3);
    to.fail(Fault { operation: Operation::Write, skip: 3, effect: Effect::Errno(EIO) });
    let failed = Log::repair(&files, Some(&to), &mut |_| {});
    assert!(matches!(failed, Err(RepairError::Target(CreateError::Io(_)))), "{failed:?}");
}

#[test]
fn all_damage_is_named_not_only_the_first_and_progress_is_told() {
    let (files, puts) = closed(STRIPED, 900 << 10);
    spoil(&files, "segment-00000000", 4096 + 7 * BLOCK, BLOCK);
    spoil(&files, "segment-00000000", 4096 + 80 * BLOCK, 7 * BLOCK);
    spoil(&files, "segment-00000001", 4096 + 9 * BLOCK, 2 * BLOCK);
    let mut told = Vec::new();
    let found = Log::verify(&files, &mut |walked| told.push(walked.done_bytes)).unwrap();
    let mendable: Vec<bool> = found.damaged.iter().map(|damage| damage.mendable).collect();
    assert_eq!((mendable[0], mendable[mendable.len() - 1]), (true, true), "{:?}", found.damaged);
    assert!(mendable.contains(&false));
    assert_eq!(found.damaged[0].place.offset, 4096 + 7 * BLOCK);
    assert_eq!(found.damaged[0].stretch, LsnRange { from: Lsn(7 * BLOCK), to: Lsn(8 * BLOCK) });
    let parity = found.parity.unwrap();
    assert_eq!((parity.stripes, parity.damaged, parity.unprotected), (4, 3, 0));
    assert!(told.len() > 3 && told.is_sorted(), "{told:?}");
    assert!(found.end >= puts.last().unwrap().end && bytes_of(&files, "catalogue").len() > 64);
}
