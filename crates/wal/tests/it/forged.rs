//! Somebody who can write the files, and has no key. Checks of frames are no secret, so whoever
//! writes there makes them good.

use holdfast_io::checksum::crc32c;
use holdfast_io::fake::FakeFiles;
use holdfast_io::{Files, OpenHow};
use holdfast_wal::format::Raw;
use holdfast_wal::{Compression, Log, Lsn, Options, ReplayError};

use crate::sealed::{contents, new_log, open_as, sealed};
use crate::support::{SMALL, factor};

/// Of [`SMALL`].
const SEGMENT_BYTES: u64 = 64 << 10;
const HEADER_BYTES: usize = 48;

/// The disk of a closed log, and its frames: where each begins and how long its payload is.
struct Victim {
    files: FakeFiles,
    identity: [u8; 16],
    frames: Vec<(Lsn, usize)>,
}

/// A log of 600 sets that look alike, over several segments.
fn victim(options: &Options) -> Victim {
    let (files, log) = new_log::<Vec<u8>, Raw>(options);
    let lsns: Vec<_> = (0..600).map(|id| log.append(&vec![id as u8; 200]).unwrap().lsn()).collect();
    log.close().unwrap();
    drop(log);
    let identity = contents(&files, "catalogue".as_ref())[16..32].try_into().unwrap();
    let length = |lsn: Lsn| {
        let (name, at) = place_of(lsn);
        let head = &contents(&files, name.as_ref())[at..at + HEADER_BYTES];
        (lsn, u32::from_le_bytes(head[24..28].try_into().unwrap()) as usize)
    };
    let frames = lsns.into_iter().map(length).collect();
    Victim { files, identity, frames }
}

fn place_of(lsn: Lsn) -> (String, usize) {
    let (segment, offset) = (lsn.get() / SEGMENT_BYTES, lsn.get() % SEGMENT_BYTES);
    (format!("segment-{segment:08}"), 4096 + offset as usize)
}

impl Victim {
    fn frame(&self, number: usize) -> Vec<u8> {
        let (lsn, length) = self.frames[number];
        let (name, at) = place_of(lsn);
        contents(&self.files, name.as_ref())[at..at + HEADER_BYTES + length].to_vec()
    }

    /// Writes bytes where a frame is, with good checks.
    fn write(&self, number: usize, mut frame: Vec<u8>) {
        let seed = crc32c(0, &self.identity);
        let check = crc32c(seed, &frame[HEADER_BYTES..]);
        frame[28..32].copy_from_slice(&check.to_le_bytes());
        let check = crc32c(seed, &frame[8..HEADER_BYTES]);
        frame[4..8].copy_from_slice(&check.to_le_bytes());
        let (name, at) = place_of(self.frames[number].0);
        let how = OpenHow { write: true, ..OpenHow::default() };
        let file = self.files.open(name.as_ref(), how).unwrap();
        file.write_all_at(&frame, at as u64).unwrap();
    }

    /// What reading says that reached this frame: nothing, if it was read.
    fn refusal(&self, number: usize, options: &Options) -> Option<ReplayError> {
        let log: Log<Vec<u8>, Raw> = open_as(&self.files, options).unwrap();
        log.iter_from(self.frames[number].0).next().expect("there is a frame").err()
    }
}

#[test]
fn a_frame_that_is_written_back_is_read() {
    let victim = victim(&sealed(&[1]));
    victim.write(5, victim.frame(5));
    assert!(victim.refusal(5, &sealed(&[1])).is_none());
}

#[test]
fn a_frame_that_was_moved_is_refused() {
    let victim = victim(&sealed(&[1]));
    let in_segment = |number: usize| victim.frames[number].0.get() / SEGMENT_BYTES;
    for (from, to) in [(5, 6), (6, 5), (3, 599)] {
        assert_eq!(in_segment(from) == in_segment(to), to < 10);
        let whole = victim.frame(to);
        let moved = [&whole[..HEADER_BYTES], &victim.frame(from)[HEADER_BYTES..]].concat();
        victim.write(to, moved);
        let refusal = victim.refusal(to, &sealed(&[1]));
        assert!(matches!(refusal, Some(ReplayError::WrongKey { id: 1, .. })), "{refusal:?}");
        victim.write(to, whole);
        assert!(victim.refusal(to, &sealed(&[1])).is_none());
    }
}

#[test]
fn a_payload_moves_where_nothing_is_sealed() {
    let victim = victim(&SMALL);
    let moved = [&victim.frame(6)[..HEADER_BYTES], &victim.frame(5)[HEADER_BYTES..]].concat();
    victim.write(6, moved);
    assert!(victim.refusal(6, &SMALL).is_none(), "which is what sealing is for");
}

/// What the cipher covers of a header: generation, flags, count of records.
const COVERED: [usize; 7] = [32, 33, 34, 35, 37, 38, 39];

#[test]
fn every_bit_of_a_sealed_payload_counts_and_so_does_what_is_said_of_it() {
    let victim = victim(&sealed(&[1]));
    let whole = victim.frame(9);
    let payload = HEADER_BYTES..whole.len();
    for byte in COVERED.into_iter().chain(payload.step_by(if factor() > 1 { 1 } else { 5 })) {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[byte] ^= 1 << bit;
            // No frame of these flags, a frame of another time, and a set without records, which
            // is one that is missing.
            if changed[37] > 3 || (32..36).contains(&byte) && bit != 0 || changed[38] == 0 {
                continue;
            }
            victim.write(9, changed);
            let opened = open_as::<Vec<u8>, Raw>(&victim.files, &sealed(&[1])).map(drop);
            let refused = opened.is_err() || victim.refusal(9, &sealed(&[1])).is_some();
            assert!(refused, "byte {byte} bit {bit}");
            victim.write(9, whole.clone());
        }
    }
}

#[test]
fn a_set_that_is_not_sealed_is_refused_where_all_are_and_the_other_way_round() {
    let sealed_log = victim(&sealed(&[1]));
    let plain_log = victim(&SMALL);
    let mut plain = sealed_log.frame(7);
    plain[37] = 0;
    sealed_log.write(7, plain);
    let refusal = sealed_log.refusal(7, &sealed(&[1]));
    assert!(matches!(refusal, Some(ReplayError::NotSealed { .. })), "{refusal:?}");
    let mut sealed = plain_log.frame(7);
    sealed[37] = 2;
    plain_log.write(7, sealed);
    let refusal = plain_log.refusal(7, &SMALL);
    assert!(matches!(refusal, Some(ReplayError::Sealed { .. })), "{refusal:?}");
}

#[test]
fn a_compressed_set_that_claims_to_be_longer_than_any_is_damaged() {
    let victim = victim(&SMALL);
    let mut frame = victim.frame(7);
    frame[37] = 1;
    frame[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(&[0xff; 4]);
    victim.write(7, frame);
    let refusal = victim.refusal(7, &SMALL.with_compression(Compression::Lz4));
    assert!(matches!(refusal, Some(ReplayError::DamagedRecord { index: 0, .. })), "{refusal:?}");
}
