//! Bytes of somebody who knows the format, checks and all: nothing panics, hangs, or misleads.

use std::path::Path;

use holdfast_core::frame::{BLOCK_BYTES, FrameHeader, Kind, Sealer, encode, payload_check};
use holdfast_io::checksum::crc32c;
use holdfast_io::fake::FakeFiles;
use holdfast_io::{Files, OpenHow};
use holdfast_log::{Log, LogConfig, Lsn, OpenError, Policy, Retention};

use crate::device::{open, read};
use crate::support::{IDENTITY, Put};
use crate::survivor::{PLAIN, SHORT, closed, copy, place, with};

/// What no log of ours says.
const HOSTILE: [u64; 16] = [
    1,
    7,
    4095,
    1 << 20,
    (1 << 20) + 8,
    (1 << 31) - 1,
    1 << 31,
    1 << 32,
    1 << 40,
    (1 << 61) - 4096,
    1 << 61,
    (1 << 61) + 4096,
    1 << 62,
    1 << 63,
    u64::MAX - 4095,
    u64::MAX,
];

fn bytes_of(files: &FakeFiles, name: &str) -> Vec<u8> {
    let file = files
        .open(Path::new(name), OpenHow::default())
        .expect("a file that can be read and written");
    let mut bytes =
        vec![0; file.metadata().expect("a file that can be read and written").size_bytes as usize];
    file.read_full_at(&mut bytes, 0).expect("a file that can be read and written");
    bytes
}

fn put(files: &FakeFiles, name: &str, offset: u64, bytes: &[u8]) {
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    files
        .open(Path::new(name), how)
        .expect("a file that can be read and written")
        .write_all_at(bytes, offset)
        .expect("a file that can be read and written");
}

/// Puts the check of everything behind it where all our small files have it.
fn check(bytes: &mut [u8]) {
    let check = crc32c(0, &bytes[12..]);
    bytes[8..12].copy_from_slice(&check.to_le_bytes());
}

/// Looks at a directory in every way. Whoever opens it finds what there was, or a name.
fn look(files: &FakeFiles, config: LogConfig, puts: &[Put], what: &str) {
    let _ = Log::verify(&copy(files), &mut |_| {});
    let _ = Log::left(&copy(files));
    let _ = Log::repair(&copy(files), Some(&FakeFiles::new(1)), &mut |_| {});
    for policy in [Policy::Refuse, Policy::Repair, Policy::Cut] {
        match open(&copy(files), with(config, policy)) {
            Ok((log, _)) if policy != Policy::Cut => {
                let (found, _) = read(&log);
                assert!(puts.starts_with(&found) || found == puts, "{what}: misled");
            }
            Ok(_) | Err(OpenError::File { .. } | OpenError::Corrupt { .. }) => {}
            Err(error) => panic!("{what}: {error:?}"),
        }
    }
}

/// Where the log ends, at a block.
fn end_of(files: &FakeFiles) -> Lsn {
    Log::verify(files, &mut |_| {})
        .expect("a file that can be read and written")
        .end
        .align_up(BLOCK_BYTES)
}

fn forge_mark(files: &FakeFiles, at: Lsn, released: u64, durable: u64, generation: u32) {
    let sealer = Sealer::new(&IDENTITY, crc32c);
    let mut payload = [0; 16];
    payload[..8].copy_from_slice(&released.to_le_bytes());
    let header = FrameHeader {
        lsn: at,
        durable: Lsn(durable),
        payload_bytes: 16,
        payload_check: payload_check(&sealer, &payload),
        generation,
        kind: Kind::Mark,
        flags: 0,
        records: 0,
        utc_ns: 0,
    };
    let (name, offset) = place(PLAIN, at);
    put(files, &name, offset, &[&encode(&sealer, &header)[..], &payload].concat());
}

#[test]
fn marks_watermarks_and_generations_that_no_log_has_are_refused() {
    let (files, puts) = closed(PLAIN, 150 << 10);
    let end = end_of(&files);
    for value in HOSTILE {
        let image = copy(&files);
        forge_mark(&image, end, end.get().saturating_add(value), end.get(), 9);
        look(&image, PLAIN, &puts, &format!("a mark {value} beyond the end"));
        let image = copy(&files);
        forge_mark(&image, end, 0, value, 9);
        look(&image, PLAIN, &puts, &format!("durable up to {value}"));
        let image = copy(&files);
        forge_mark(&image, end, 0, end.get(), value.min(u32::MAX.into()) as u32);
        look(&image, PLAIN, &puts, &format!("generation {value}"));
    }
}

#[test]
fn a_mark_beyond_the_end_is_told() {
    let (files, _) = closed(PLAIN, 150 << 10);
    let end = end_of(&files);
    forge_mark(&files, end, end.get() + (1 << 20), end.get(), 9);
    let opened = open(&files, LogConfig { retention: Retention::OnDevice, ..PLAIN }).map(drop);
    assert!(matches!(opened, Err(OpenError::Corrupt { .. })), "{opened:?}");
}

#[test]
fn numbers_that_no_catalogue_has_are_refused() {
    let (files, puts) = closed(PLAIN, 150 << 10);
    let bytes = bytes_of(&files, "catalogue");
    let length = 72 + 16 * u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    for at in [12, 60, 62].into_iter().chain((16..length).step_by(8)) {
        for value in HOSTILE {
            let mut forged = bytes[..length].to_vec();
            let room = 8.min(length - at);
            forged[at..at + room].copy_from_slice(&value.to_le_bytes()[..room]);
            check(&mut forged);
            let image = copy(&files);
            put(&image, "catalogue", 0, &forged);
            put(&image, "catalogue.copy", 0, &forged);
            let _ = Log::verify(&image, &mut |_| {});
            let _ = Log::repair(&image, Some(&FakeFiles::new(1)), &mut |_| {});
            if let Ok((log, _)) = open(&image, PLAIN) {
                let (found, _) = read(&log);
                assert!(puts.ends_with(&found) || puts.starts_with(&found), "{at}: {value}");
            }
        }
    }
}

#[test]
fn cuts_that_no_log_makes_are_refused() {
    let (files, puts) = closed(PLAIN, 150 << 10);
    let end = end_of(&files).get();
    for from in HOSTILE {
        for to in HOSTILE.iter().flat_map(|to| [*to, end, to.saturating_add(end)]) {
            let mut cut = vec![0; 56 + 4096];
            cut[..8].copy_from_slice(&[b'H', b'F', b'F', b'X', 1, 0, 0, 0]);
            cut[12..16].copy_from_slice(&(from as u32).to_le_bytes());
            cut[16..32].copy_from_slice(&IDENTITY);
            cut[32..40].copy_from_slice(&from.to_le_bytes());
            cut[40..48].copy_from_slice(&to.to_le_bytes());
            check(&mut cut);
            let image = copy(&files);
            put(&image, "cut", 0, &cut);
            look(&image, PLAIN, &puts, &format!("a cut from {from} to {to}"));
        }
    }
}

#[test]
fn blocks_that_no_open_writes_again_are_refused() {
    let (files, puts) = closed(PLAIN, 150 << 10);
    for at in HOSTILE {
        let mut again = vec![0; 48 + 8192];
        again[..8].copy_from_slice(&[b'H', b'F', b'F', b'A', 1, 0, 0, 0]);
        again[12..16].copy_from_slice(&8192u32.to_le_bytes());
        again[16..32].copy_from_slice(&IDENTITY);
        again[32..40].copy_from_slice(&(at & !4095).max(1 << 30).to_le_bytes());
        check(&mut again);
        let image = copy(&files);
        put(&image, "again", 0, &again);
        look(&image, PLAIN, &puts, &format!("blocks at {at}"));
    }
}

#[test]
fn a_group_of_more_blocks_than_its_stripe_has_counts_for_nothing() {
    let (files, puts) = closed(SHORT, 150 << 10);
    let at = 4096 + SHORT.segment_bytes + 5 * 4096;
    let mut group = bytes_of(&files, "segment-00000000")[at as usize..][..4096].to_vec();
    for blocks in [17u32, 64, 65, u32::MAX] {
        group[40..44].copy_from_slice(&blocks.to_le_bytes());
        check(&mut group);
        let image = copy(&files);
        put(&image, "segment-00000000", at, &group);
        look(&image, SHORT, &puts, &format!("{blocks} blocks"));
        put(&image, "segment-00000000", 4096 + 8192, &[7; 4096]);
        look(&image, SHORT, &puts, &format!("{blocks} blocks, and damage"));
    }
}
