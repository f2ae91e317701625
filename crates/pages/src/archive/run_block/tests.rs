//! A block comes back as it was, or is refused, whatever its head claims.

use holdfast_io::checksum::crc32c;
use holdfast_io::fake::Random;

use super::{Block, COMPRESSED, HEAD_BYTES, Packer};
use crate::archive::run_format::{CHECK_BYTES, UNCOMPRESSED};

fn check(bytes: &[u8]) -> u32 {
    crc32c(7, bytes)
}

/// A block of this version, with its check.
fn sealed(version: u16, whole: u32, bytes: &[u8]) -> Vec<u8> {
    let head = if version < COMPRESSED { vec![] } else { whole.to_le_bytes().to_vec() };
    let told = [&head[..], bytes].concat();
    [&check(&told).to_le_bytes()[..], &told].concat()
}

fn open(version: u16, stored: &[u8]) -> Option<Vec<u8>> {
    let mut block = Block::default();
    block.room(stored.len()).copy_from_slice(stored);
    block.open(version, check).map(|()| block.records().to_vec())
}

/// Bytes that repeat themselves more or less.
fn any(random: &mut Random) -> Vec<u8> {
    let bits = random.below(9);
    let (bytes, values) = (1 + random.below(5000), 1 + random.below(1 << bits));
    (0..bytes).map(|_| random.below(values) as u8).collect()
}

#[test]
fn what_is_packed_comes_back_and_what_does_not_shrink_stays() {
    let (mut packer, mut shrunk) = (Packer::default(), 0);
    for seed in 1..=300 {
        let records = any(&mut Random::new(seed));
        let mut out = [&[9; HEAD_BYTES][..], &records].concat();
        let whole = packer.pack(&mut out, HEAD_BYTES);
        let bytes = &out[HEAD_BYTES..];
        shrunk += u32::from(whole != 0);
        let is_right = if whole == 0 { bytes == records } else { bytes.len() < records.len() };
        assert!(is_right, "seed {seed}: {} of {}", bytes.len(), records.len());
        assert_eq!(out[..HEAD_BYTES], [9; HEAD_BYTES]);
        let found = open(COMPRESSED, &sealed(COMPRESSED, whole, bytes));
        assert_eq!(found.as_ref(), Some(&records), "seed {seed}");
    }
    assert!((50..250).contains(&shrunk), "{shrunk} of 300 shrunk");
}

#[test]
fn a_block_of_the_first_version_is_what_it_is() {
    assert_eq!(open(UNCOMPRESSED, &sealed(UNCOMPRESSED, 0, b"records")), Some(b"records".into()));
    assert_eq!(open(UNCOMPRESSED, &[0; CHECK_BYTES - 1]), None);
}

#[test]
fn a_block_that_claims_what_it_is_not_is_refused_although_its_check_is_right() {
    let mut out = vec![3; 4000];
    let whole = Packer::default().pack(&mut out, 0);
    assert_eq!(open(COMPRESSED, &sealed(COMPRESSED, whole, &out)).map(|it| it.len()), Some(4000));
    for claimed in [1, whole - 1, whole + 1, 60_000, u32::MAX] {
        assert_eq!(open(COMPRESSED, &sealed(COMPRESSED, claimed, &out)), None, "{claimed}");
    }
    assert_eq!(open(COMPRESSED, &sealed(COMPRESSED, 40, b"not by LZ4, whatever it is")), None);
    assert_eq!(open(COMPRESSED, &sealed(UNCOMPRESSED, 0, b"xyz")), None);
}

#[test]
fn what_a_damaged_block_leaves_is_no_record_that_was_there_before() {
    let mut block = Block::default();
    block.room(CHECK_BYTES + 3).copy_from_slice(&sealed(UNCOMPRESSED, 0, b"one"));
    assert_eq!(block.open(UNCOMPRESSED, check), Some(()));
    block.room(CHECK_BYTES + 3).copy_from_slice(&[1; CHECK_BYTES + 3]);
    assert_eq!(block.open(UNCOMPRESSED, check), None);
    assert_eq!(block.records(), b"");
}
