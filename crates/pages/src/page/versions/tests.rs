//! A block comes back as it was written, or is unknown as a whole.

use holdfast_io::fake::{FakeFiles, Mood, Sectors};

use super::*;

const PATH: &str = "versions";

fn tag() -> Tag {
    Tag::of(b"a store in tests")
}

fn open(files: &FakeFiles) -> Versions {
    Versions::open(files, Path::new(PATH), tag()).expect("a fake disk opens files")
}

fn block(first: u64) -> VersionsBlock {
    std::array::from_fn(|at| Rsn(first + at as u64))
}

fn read(versions: &Versions, number: u64) -> Result<VersionsBlock, VersionsError> {
    let mut found = block(0);
    versions.read(number, &mut found).map(|()| found)
}

#[test]
fn a_block_comes_back_as_it_was_written() {
    let files = FakeFiles::new(1);
    open(&files).write(2, &block(100)).expect("there is room");
    assert_eq!(read(&open(&files), 2).expect("it is whole"), block(100));
    assert_eq!(Versions::place(PageNumber(1030)), (2, 8));
}

#[test]
fn a_block_that_was_never_written_is_unknown() {
    let files = FakeFiles::new(1);
    open(&files).write(2, &block(100)).expect("there is room");
    for never in [0, 1, 3] {
        let found = read(&open(&files), never);
        assert!(matches!(found, Err(VersionsError::Unknown)), "{found:?}");
    }
}

#[test]
fn a_block_of_another_place_store_or_version_is_not_taken() {
    let files = FakeFiles::new(1);
    let (versions, mut bytes) = (open(&files), [0; BLOCK_BYTES]);
    versions.write(0, &block(100)).expect("there is room");
    versions.file().read_full_at(&mut bytes, 0).expect("it is there");
    versions.file().write_all_at(&bytes, offset(1)).expect("there is room");
    assert!(matches!(read(&versions, 1), Err(VersionsError::Unknown)));
    let tag = Tag::of(b"another in tests");
    let foreign = Versions { tag, ..open(&files) };
    assert!(matches!(read(&foreign, 0), Err(VersionsError::Unknown)));
    bytes[VERSION_AT] = 1;
    let check = versions.check_of(0, &bytes);
    bytes[..4].copy_from_slice(&check.to_le_bytes());
    versions.file().write_all_at(&bytes, 0).expect("there is room");
    assert_eq!(read(&versions, 0).expect("it is only older"), block(100));
    bytes[VERSION_AT] = 3;
    let check = versions.check_of(0, &bytes);
    bytes[..4].copy_from_slice(&check.to_le_bytes());
    versions.file().write_all_at(&bytes, 0).expect("there is room");
    let found = read(&versions, 0);
    assert!(matches!(found, Err(VersionsError::OtherVersion { found: 3, known: 2 })), "{found:?}");
}

#[test]
fn every_bit_turned_over_makes_the_block_unknown() {
    let files = FakeFiles::new(1);
    let versions = open(&files);
    versions.write(0, &block(100)).expect("there is room");
    for byte in 0..BLOCK_BYTES as u64 {
        let bit = byte * 8 + byte % 8;
        files.flip_bit(Path::new(PATH), bit).expect("it is there");
        assert!(matches!(read(&versions, 0), Err(VersionsError::Unknown)), "byte {byte}");
        files.flip_bit(Path::new(PATH), bit).expect("it is there");
    }
    read(&versions, 0).expect("each bit was turned back");
}

#[test]
fn a_power_cut_leaves_the_old_block_the_new_one_or_an_unknown_one() {
    let moods = [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter];
    let mut unknown = 0;
    for seed in 0..200 {
        let files = FakeFiles::new(seed);
        files.set_sectors(if seed % 3 == 0 { Sectors::Garbage } else { Sectors::Whole });
        let versions = open(&files);
        versions.write(0, &block(100)).expect("there is room");
        versions.sync().and_then(|()| files.sync_dir(Path::new(""))).expect("the disk is sound");
        versions.write(0, &block(9000)).expect("there is room");
        let cut = files.after_power_cut_in(moods[seed as usize % 4], seed);
        match read(&open(&cut), 0) {
            Ok(found) => assert!(found == block(100) || found == block(9000), "seed {seed}"),
            Err(VersionsError::Unknown) => unknown += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(unknown > 0, "no block was torn, so nothing was tested");
}

#[test]
fn a_file_that_is_older_than_what_is_clean_says_nothing_until_it_is_renewed() {
    let files = FakeFiles::new(1);
    let versions = open(&files);
    versions.write(0, &block(100)).expect("there is room");
    versions.write(1, &block(200)).expect("there is room");
    versions.distrust_before(Rsn(100));
    assert_eq!(read(&versions, 1).expect("it is as new"), block(200));
    versions.distrust_before(Rsn(101));
    assert!(matches!(read(&versions, 1), Err(VersionsError::Unknown)));
    versions.renew().expect("there is room");
    versions.write(0, &block(300)).expect("there is room");
    assert_eq!(read(&versions, 0).expect("it was written"), block(300));
    assert!(matches!(read(&versions, 1), Err(VersionsError::Unknown)));
}
