//! A full ring can always be emptied, whatever filled it, and whoever dies on the way.

use std::path::Path;

use holdfast_core::frame::{
    BLOCK_BYTES, FrameHeader, Kind, Sealer, encode, encode_mark, frame_end, pad_payload_bytes,
    payload_check,
};
use holdfast_io::fake::{FakeFiles, Random};
use holdfast_io::{Files, OpenHow, checksum};
use holdfast_log::{AppendError, Log, Lsn};

use crate::support::{CONFIG, IDENTITY, RING_BYTES, new_log, open_with, region};

/// A frame of one small change, as a volume logs it.
const SMALL_BYTES: usize = 100;

/// Fills the ring with small frames. Returns where each begins, and the end of the last.
fn fill(log: &Log) -> Vec<Lsn> {
    let mut starts = Vec::new();
    loop {
        match log.append(1, &[&[7; SMALL_BYTES]]) {
            Ok(appended) => starts.push(appended.lsn),
            Err(AppendError::Full) if log.drain().expect("a sound disk").bytes == 0 => break,
            Err(error) => assert!(matches!(error, AppendError::Full), "{error:?}"),
        }
    }
    starts.push(log.marks().tail);
    starts
}

/// The reader applies one frame after the other, and says so of each.
fn release_each(log: &Log, starts: &[Lsn]) {
    for upto in starts {
        log.mark(*upto).expect("a mark needs no room");
        log.commit(log.marks().tail).expect("a sound disk");
        log.release(*upto);
    }
}

#[test]
fn a_full_ring_is_emptied_frame_by_frame() {
    let (_files, _region, log) = new_log(1);
    let starts = fill(&log);
    assert!(starts.len() > 1000, "the frames are small");
    release_each(&log, &starts);
    let marks = log.marks();
    assert_eq!(marks.released, *starts.last().expect("some frames"));
    assert!(marks.tail.since(marks.released) <= RING_BYTES / 2, "marks have filled it: {marks:?}");
    assert!(log.has_room(log.payload_bytes_max()));
}

/// Files of a log whose ring is full to the last block, as versions left it behind that said every
/// mark in the ring: each took a block, and gave a small frame.
fn stuck(files: &FakeFiles, starts: &[Lsn], tail: Lsn) -> u64 {
    let sealer = Sealer::new(&IDENTITY, checksum::crc32c);
    let how = OpenHow { write: true, ..OpenHow::default() };
    let (mut tail, mut marks) = (tail, 0);
    for (released, before) in starts[1..].iter().zip(starts) {
        let mark_end = frame_end(tail, 16);
        let end = mark_end.align_up(BLOCK_BYTES);
        if mark_end.get() + BLOCK_BYTES > before.get() + RING_BYTES {
            break;
        }
        let bytes = [
            frame(&sealer, Kind::Mark, tail, &encode_mark(*released)),
            frame(
                &sealer,
                Kind::Pad,
                mark_end,
                &vec![0; pad_payload_bytes(mark_end, end) as usize],
            ),
        ];
        let number = tail.get() / CONFIG.segment_bytes;
        let name = format!("segment-{number:08}");
        let file = files.open(Path::new(&name), how).expect("it is in use");
        let offset = BLOCK_BYTES + tail.get() % CONFIG.segment_bytes;
        file.write_all_at(&bytes.concat(), offset).expect("a sound disk");
        file.sync_data().expect("a sound disk");
        (tail, marks) = (end, marks + 1);
    }
    marks
}

fn frame(sealer: &Sealer, kind: Kind, lsn: Lsn, payload: &[u8]) -> Vec<u8> {
    let header = FrameHeader {
        lsn,
        durable: lsn,
        payload_bytes: payload.len() as u32,
        payload_check: payload_check(sealer, payload),
        generation: 1,
        kind,
        flags: 0,
        records: 0,
        utc_ns: 0,
    };
    let mut bytes = encode(sealer, &header).to_vec();
    bytes.extend_from_slice(payload);
    bytes.resize(header.end().since(lsn) as usize, 0);
    bytes
}

#[test]
fn a_ring_that_marks_alone_have_filled_is_emptied_too() {
    let (files, _region, log) = new_log(1);
    let starts = fill(&log);
    let tail = log.marks().tail;
    drop(log);
    let marks = stuck(&files, &starts, tail);
    assert!(marks > 3, "only {marks} marks: the ring is not full");
    let (log, recovery) = open_with(&files, region()).expect("a log of an earlier version");
    assert_eq!(recovery.released, starts[marks as usize], "the newest mark counts");
    let used_bytes = recovery.tail.since(recovery.released);
    assert!(RING_BYTES - used_bytes < 2 * BLOCK_BYTES, "not full: {recovery:?}");
    release_each(&log, &starts[marks as usize + 1..]);
    assert!(log.has_room(log.payload_bytes_max()));
}

/// What is said in the catalogue counts as a mark does, with the region and without it, and nothing
/// that writes the catalogue later takes it back.
#[test]
fn a_mark_in_the_catalogue_outlives_everybody() {
    let seeds = 0..40;
    for seed in seeds {
        let (files, region_kept, log) = new_log(seed);
        let starts = fill(&log);
        let mut random = Random::new(seed);
        let upto = starts[1 + random.below(9) as usize];
        log.mark(upto).expect("a mark needs no room");
        if random.chance(50) {
            let _ = log.prepare().expect("a sound disk");
        }
        if random.chance(50) {
            log.release(upto);
        }
        if random.chance(50) {
            log.close().expect("a sound disk");
        }
        drop(log);
        let (log, recovery) = match random.chance(50) {
            true => open_with(&files.after_power_cut(seed), region()).expect("a sound log"),
            false => crate::support::open_shared(&files, &region_kept).expect("a sound log"),
        };
        assert_eq!(recovery.released, upto, "seed {seed}");
        drop(log);
    }
}
