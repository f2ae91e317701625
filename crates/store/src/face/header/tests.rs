//! A directory is told to be free, to hold a store, or to be somebody else's.

use holdfast_io::fake::FakeFiles;

use super::*;

const HEADER: Header = Header { identity: *b"0123456789abcdef", history: 9 };

fn put(files: &FakeFiles, name: &str, bytes: &[u8]) {
    let how = OpenHow { write: true, create_mode: Some(0o644), ..OpenHow::default() };
    let file = files.open(Path::new(name), how).expect("a file");
    file.write_all_at(bytes, 0).expect("there is room");
}

fn made() -> FakeFiles {
    let files = FakeFiles::new(1);
    HEADER.begin(&files, &STORE).expect("a free directory");
    assert!(matches!(Header::read(&files, &STORE), Err(NoHeader::Free)));
    HEADER.finish(&files, &STORE).expect("it has begun");
    files
}

#[test]
fn a_header_is_found_once_the_store_is_made() {
    assert!(Header::read(&made(), &STORE).is_ok_and(|header| header == HEADER));
    let after = made().after_power_cut(1);
    assert!(Header::read(&after, &STORE).is_ok_and(|header| header == HEADER));
}

#[test]
fn a_directory_with_other_things_in_it_is_not_free() {
    let files = FakeFiles::new(1);
    for directory in DIRECTORIES {
        files.make_dir(Path::new(directory), 0o755).expect("a directory");
    }
    assert!(matches!(Header::read(&files, &STORE), Err(NoHeader::Free)));
    put(&files, "pages", b"");
    assert!(matches!(Header::read(&files, &STORE), Err(NoHeader::Taken)));
}

#[test]
fn every_bit_of_a_header_counts() {
    let bytes = HEADER.encode();
    assert!(Header::parse(&bytes).is_ok_and(|header| header == HEADER));
    for bit in 0..HEADER_BYTES * 8 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(Header::parse(&flipped), Err(NoHeader::Damaged)), "bit {bit}");
    }
}

#[test]
fn a_header_of_another_version_is_told() {
    let mut bytes = HEADER.encode();
    bytes[8] = 7;
    let check = crc32c(MAGIC, &bytes[4..]);
    bytes[..4].copy_from_slice(&check.to_le_bytes());
    assert!(matches!(Header::parse(&bytes), Err(NoHeader::OtherVersion(7))));
}

#[test]
fn a_header_of_an_older_version_is_taken_and_becomes_one_of_this() {
    let files = made();
    let mut bytes = HEADER.encode();
    bytes[8] = 1;
    let check = crc32c(MAGIC, &bytes[4..]);
    bytes[..4].copy_from_slice(&check.to_le_bytes());
    put(&files, STORE.name, &bytes);
    assert!(Header::read(&files, &STORE).is_ok_and(|header| header == HEADER));
    HEADER.renew(&files, &STORE).expect("the machine is well");
    let mut found = [0; HEADER_BYTES];
    read(&files.after_power_cut(1), STORE.name, &mut found).expect("it is there");
    assert_eq!(found, HEADER.encode());
}

#[test]
fn one_of_the_two_files_is_enough_and_makes_the_other_again() {
    for name in [STORE.name, STORE.copy] {
        for is_missing in [true, false] {
            let files = made();
            match is_missing {
                true => files.remove_file(Path::new(name)).expect("it is there"),
                false => put(&files, name, b"damaged"),
            }
            assert!(Header::read(&files, &STORE).is_ok_and(|header| header == HEADER), "{name}");
            HEADER.renew(&files, &STORE).expect("the machine is well");
            let after = files.after_power_cut(1);
            assert!([STORE.name, STORE.copy].iter().all(|name| HEADER.is_in(&after, name)));
        }
    }
}

#[test]
fn without_both_files_nothing_is_begun_over_what_is_left() {
    let files = made();
    put(&files, "pages", b"");
    for name in [STORE.name, STORE.copy] {
        files.remove_file(Path::new(name)).expect("it is there");
    }
    assert!(matches!(Header::read(&files, &STORE), Err(NoHeader::Taken)));
}

#[test]
fn a_store_whose_restore_was_cut_short_is_not_taken_for_one_that_is_being_made() {
    let files = FakeFiles::new(1);
    HEADER.begin(&files, &RESTORED).expect("a free directory");
    assert!(matches!(Header::read(&files, &STORE), Err(NoHeader::Taken)));
    assert!(matches!(Header::read(&files, &RESTORED), Err(NoHeader::Free)));
    HEADER.finish(&files, &RESTORED).expect("it has begun");
    assert!(Header::read(&files, &STORE).is_ok());
}
