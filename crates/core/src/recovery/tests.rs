//! Small logs, and every way in which a power cut or a bit can damage them.

extern crate std;

use std::vec;
use std::vec::Vec;

use super::*;
use crate::check::crc32c;
use crate::frame::{
    BLOCK_BYTES, HEADER_BYTES, Kind, Sealer, decode, encode, frame_end, pad_payload_bytes,
    payload_check, payload_matches,
};
use crate::ring::Place;

/// The smallest span there is; the whole disk is four of them.
const SPAN: u64 = crate::ring::SPAN_BYTES_MIN;
const DISK: u64 = 4 * SPAN;
const SECTOR: usize = 512;

fn geometry() -> Geometry {
    Geometry::new(1 << 63, SPAN).expect("any number of segments")
}

/// One way of seeing the same log: what was appended, and what the device was told.
#[derive(Clone)]
struct Small {
    sealer: Sealer,
    /// What was published.
    bytes: Vec<u8>,
    /// What the platter holds for sure.
    platter: Vec<u8>,
    tail: Lsn,
    durable: Lsn,
    /// Start of the last drain.
    drained_from: Lsn,
    generation: u32,
    ends: Vec<Lsn>,
}

impl Small {
    fn new(old: u8) -> Small {
        Small {
            sealer: Sealer::new(b"the small log   ", crc32c),
            bytes: vec![old; DISK as usize],
            platter: vec![old; DISK as usize],
            tail: Lsn(0),
            durable: Lsn(0),
            drained_from: Lsn(0),
            generation: 1,
            ends: Vec::new(),
        }
    }

    fn append(&mut self, payload_bytes: usize) {
        let here = frame_end(self.tail, payload_bytes as u32);
        let span_end = geometry().span_end(self.tail);
        let place = if here <= span_end {
            Place { lsn: self.tail, end: here }
        } else {
            Place { lsn: span_end, end: frame_end(span_end, payload_bytes as u32) }
        };
        if place.lsn > self.tail {
            self.pad(place.lsn);
        }
        let payload: Vec<u8> = (0..payload_bytes).map(|byte| byte as u8 ^ 0x5A).collect();
        self.frame(Kind::Data, &payload, place.end);
        self.ends.push(self.tail);
    }

    fn pad(&mut self, until: Lsn) {
        let payload = vec![0; pad_payload_bytes(self.tail, until) as usize];
        self.frame(Kind::Pad, &payload, until);
    }

    fn frame(&mut self, kind: Kind, payload: &[u8], end: Lsn) {
        let lsn = self.tail;
        let header = FrameHeader {
            lsn,
            durable: self.durable,
            payload_bytes: payload.len() as u32,
            payload_check: payload_check(&self.sealer, payload),
            generation: self.generation,
            kind,
            flags: 0,
            records: 1,
            utc_ns: 0,
        };
        let at = lsn.0 as usize;
        self.bytes[at..end.0 as usize].fill(0);
        self.bytes[at..at + 48].copy_from_slice(&encode(&self.sealer, &header));
        self.bytes[at + 48..at + 48 + payload.len()].copy_from_slice(payload);
        self.tail = end;
    }

    /// Seals and writes one span at most, without a sync: returns what the drain covers.
    fn begin_drain(&mut self) -> (Lsn, Lsn) {
        let span_end = geometry().span_end(self.durable);
        if self.tail < span_end {
            self.pad(self.tail.advance(1).align_up(BLOCK_BYTES));
        }
        (self.durable, self.tail.min(span_end))
    }

    fn sync(&mut self, (from, to): (Lsn, Lsn)) {
        let range = from.0 as usize..to.0 as usize;
        self.platter[range.clone()].copy_from_slice(&self.bytes[range]);
        self.drained_from = from;
        self.durable = to;
    }

    fn drain(&mut self) {
        let covered = self.begin_drain();
        self.sync(covered);
    }

    /// How many of the appended frames lie below a position.
    fn frames_below(&self, lsn: Lsn) -> usize {
        self.ends.iter().filter(|end| **end <= lsn).count()
    }
}

fn at(disk: &[u8], lsn: Lsn) -> &[u8] {
    &disk[lsn.0 as usize..]
}

fn header_at(sealer: &Sealer, bytes: &[u8]) -> Option<FrameHeader> {
    decode(sealer, bytes.first_chunk()?).ok()
}

/// Feeds a scan of a whole disk. Returns the verdict and where the next drain starts.
fn recover(sealer: &Sealer, disk: &[u8], watermark: Lsn) -> (Verdict, Lsn) {
    recover_from(sealer, disk, Lsn(0), watermark)
}

fn recover_from(sealer: &Sealer, disk: &[u8], from: Lsn, watermark: Lsn) -> (Verdict, Lsn) {
    let limit = Lsn(disk.len() as u64);
    let mut scan = Scan::new(geometry(), from, limit, watermark);
    loop {
        match scan.step() {
            Step::Frame { at: lsn } => {
                let bytes = at(disk, lsn);
                let Some(header) = header_at(sealer, bytes) else {
                    scan.see(Seen::Nothing);
                    continue;
                };
                let payload = &bytes[HEADER_BYTES as usize..];
                let payload_ok = scan.fits(&header)
                    && payload_matches(sealer, &header, &payload[..header.payload_bytes as usize]);
                scan.see(Seen::Frame { header, payload_ok });
            }
            Step::LookAhead { from } => {
                for lsn in (from.0..limit.0).step_by(8).map(Lsn) {
                    if !at(disk, lsn).starts_with(b"HFF1") {
                        continue;
                    }
                    if let Some(header) = header_at(sealer, at(disk, lsn)) {
                        scan.witness(lsn, &header);
                    }
                }
                return (scan.finish(), scan.sealed());
            }
        }
    }
}

fn end_of(verdict: Verdict) -> Option<Lsn> {
    match verdict {
        Verdict::Clean { end } | Verdict::Torn { end } => Some(end),
        Verdict::Corrupt { .. } => None,
    }
}

/// Logs with different histories before the drain that is cut.
fn histories() -> Vec<Small> {
    let mut logs = Vec::new();
    for old in [0, 0xAB] {
        for before in [&[][..], &[100], &[3000, 40], &[100, 9000, 200, 15_000]] {
            let mut log = Small::new(old);
            for payload_bytes in before {
                log.append(*payload_bytes);
                while log.durable < log.tail {
                    log.drain();
                }
            }
            logs.push(log);
        }
    }
    logs
}

/// All subsets of the sectors of a drain that was not synced, over zeros, over the remains of an
/// earlier round, and with noise in place of what did not arrive.
#[test]
fn pitfall_05_any_subset_of_unsynced_sectors_leaves_a_prefix_with_all_that_was_durable() {
    let mut images = 0u64;
    for base in histories() {
        for batch in
            [&[100][..], &[300, 700, 20], &[1500, 1500], &[450, 0, 450, 0, 2600], &[3000, 2000]]
        {
            let mut log = base.clone();
            let was_durable = log.durable;
            batch.iter().for_each(|payload_bytes| log.append(*payload_bytes));
            let (from, to) = log.begin_drain();
            let sectors = to.since(from) as usize / SECTOR;
            assert!(sectors <= 32);
            for subset in 0u32..1 << sectors.min(11) {
                for noise in [false, true] {
                    check_subset(&log, was_durable, (from, to), subset, noise);
                    images += 1;
                }
            }
        }
    }
    assert!(images > 40_000, "{images} images");
}

/// `subset` says which of the first sectors arrived; the others arrived if its lowest bit is set.
fn check_subset(log: &Small, durable: Lsn, (from, to): (Lsn, Lsn), subset: u32, noise: bool) {
    let mut disk = log.platter[..to.0 as usize + SECTOR].to_vec();
    for sector in 0..to.since(from) as usize / SECTOR {
        let bit = if sector < 11 { subset >> sector & 1 } else { subset & 1 };
        let range = from.0 as usize + sector * SECTOR..from.0 as usize + (sector + 1) * SECTOR;
        if bit == 1 {
            disk[range.clone()].copy_from_slice(&log.bytes[range]);
        } else if noise {
            disk[range].fill(0xC3);
        }
    }
    let (verdict, sealed) = recover_from(&log.sealer, &disk, durable, Lsn(0));
    let Some(end) = end_of(verdict) else { panic!("{verdict:?}: a legal power cut was refused") };
    assert!(end >= durable, "{verdict:?} loses what is durable up to {durable}");
    assert!(end <= log.tail && (durable..=end).contains(&sealed));
    assert_eq!(disk[..end.0 as usize], log.bytes[..end.0 as usize], "not what was appended");
}

/// Every single bit of a log of several drains: what a later drain has covered is reported when it
/// is damaged, and nothing is ever invented.
#[test]
fn each_bit_that_turns_over_is_reported_or_cuts_only_the_uncovered_last_drain() {
    let mut log = Small::new(0);
    for payload_bytes in [40, 600, 30] {
        log.append(payload_bytes);
        log.drain();
    }
    let (mut reported, mut cut, mut harmless) = (0, 0, 0);
    for bit in 0..log.durable.0 as usize * 8 {
        if bit % (BLOCK_BYTES as usize * 8) > 8 * 800 && bit % 41 != 0 {
            continue; // the long zeros of pads, sampled
        }
        let mut disk = log.platter[..log.durable.0 as usize + SECTOR].to_vec();
        disk[bit / 8] ^= 1 << (bit % 8);
        match recover(&log.sealer, &disk, Lsn(0)).0 {
            Verdict::Corrupt { from, to } => {
                assert!(from.0 as usize * 8 <= bit && from < to);
                reported += 1;
            }
            Verdict::Clean { end } | Verdict::Torn { end } if end < log.durable => {
                assert!(end >= log.drained_from, "bit {bit}: cut at {end}");
                cut += 1;
            }
            Verdict::Clean { .. } | Verdict::Torn { .. } => harmless += 1,
        }
    }
    assert!(reported > 1000 && cut > 500 && harmless < 1000, "{reported} {cut} {harmless}");
}

/// The same with a watermark from elsewhere (the catalogue of a closed log): nothing is cut.
#[test]
fn a_known_watermark_leaves_no_bit_unreported() {
    let mut log = Small::new(0);
    log.append(40);
    log.drain();
    for bit in 0..8 * 200 {
        let mut disk = log.platter[..log.durable.0 as usize + SECTOR].to_vec();
        disk[bit / 8] ^= 1 << (bit % 8);
        let verdict = recover(&log.sealer, &disk, log.durable).0;
        let whole = end_of(verdict).is_some_and(|end| end == log.durable);
        assert!(whole || end_of(verdict).is_none(), "bit {bit}: {verdict:?}");
    }
}

#[test]
fn a_frame_in_a_later_span_proves_all_spans_before_it() {
    let mut log = Small::new(0);
    // Published before anything was drained, so no header has a watermark above zero.
    for _ in 0..6 {
        log.append(15_000);
    }
    log.drain();
    log.drain();
    let mut disk = log.platter.clone();
    disk[100] ^= 1;
    let verdict = recover(&log.sealer, &disk, Lsn(0)).0;
    assert!(matches!(verdict, Verdict::Corrupt { from: Lsn(0), .. }), "{verdict:?}");
}

#[test]
fn pitfall_08_frames_of_an_earlier_round_or_generation_are_not_taken_for_the_log() {
    let mut log = Small::new(0);
    log.append(100);
    log.drain();
    // What a cut left behind: a whole frame of the old generation where the next one goes, and one
    // further on, with a watermark that is true and proves nothing new.
    let mut old = log.clone();
    old.append(100);
    old.append(100);
    old.drain();
    log.generation = 2;
    log.append(100);
    let mut disk = old.platter.clone();
    let first_new = log.ends[0].align_up(BLOCK_BYTES);
    let range = first_new.0 as usize..log.tail.0 as usize;
    disk[range.clone()].copy_from_slice(&log.bytes[range]);
    let (verdict, _) = recover(&log.sealer, &disk, Lsn(0));
    assert_eq!(verdict, Verdict::Torn { end: log.tail });
}

#[test]
fn an_end_with_nothing_behind_it_is_clean() {
    let mut log = Small::new(0);
    assert_eq!(recover(&log.sealer, &log.platter, Lsn(0)).0, Verdict::Clean { end: Lsn(0) });
    log.append(100);
    log.drain();
    assert_eq!(recover(&log.sealer, &log.platter, Lsn(0)).0, Verdict::Clean { end: log.durable });
    assert_eq!(log.frames_below(log.durable), 1);
}

/// The canary: a device that forgets a synced sector must not pass.
#[test]
fn a_durable_sector_that_is_lost_is_noticed() {
    let mut log = Small::new(0);
    for _ in 0..3 {
        log.append(200);
        log.drain();
    }
    for sector in 0..log.drained_from.0 as usize / SECTOR {
        let range = sector * SECTOR..(sector + 1) * SECTOR;
        let mut disk = log.platter.clone();
        if disk[range.clone()].iter().all(|byte| *byte == 0) {
            continue; // losing zeros loses nothing
        }
        disk[range].fill(0);
        let verdict = recover(&log.sealer, &disk, Lsn(0)).0;
        assert!(matches!(verdict, Verdict::Corrupt { .. }), "sector {sector}: {verdict:?}");
    }
}

#[test]
fn a_witness_elsewhere_or_of_an_older_generation_proves_nothing() {
    let header = |lsn: u64, durable: u64, generation| FrameHeader {
        lsn: Lsn(lsn),
        durable: Lsn(durable),
        payload_bytes: 0,
        payload_check: 0,
        generation,
        kind: Kind::Pad,
        flags: 0,
        records: 0,
        utc_ns: 0,
    };
    let mut scan = Scan::new(geometry(), Lsn(0), Lsn(DISK), Lsn(0));
    assert!(scan.see(Seen::Frame { header: header(0, 0, 5), payload_ok: true }));
    assert!(!scan.see(Seen::Nothing));
    scan.witness(Lsn(4096), &header(4096, 1024, 4));
    scan.witness(Lsn(4096), &header(8192, 4096, 5));
    scan.witness(Lsn(0), &header(0, 0, 5));
    assert_eq!(scan.finish(), Verdict::Clean { end: Lsn(48) });
    scan.witness(Lsn(4096), &header(4096, 0, 5));
    assert_eq!(scan.finish(), Verdict::Torn { end: Lsn(48) });
    scan.witness(Lsn(8192), &header(8192, 4096, 5));
    assert_eq!(scan.finish(), Verdict::Corrupt { from: Lsn(48), to: Lsn(4096) });
}
