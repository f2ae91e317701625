//! Promise: a restart that lost a word is told from one that lost nothing.
//! Never: restarts a system: another run is another number here.

use super::*;

use std::fs::File;
use std::os::unix::fs::FileExt;
use tempfile::TempDir;

const BYTES: u64 = 16 * PAGE_BYTES;
const NONCE: [u8; 16] = *b"as no other time";
const BEFORE: [u64; 2] = [1, 2];
const AFTER: [u64; 2] = [1, 3];

impl Proof {
    /// A proof that this firmware kept everything.
    pub(crate) fn sample(firmware: &str) -> Proof {
        Proof::new((BYTES, BYTES), BEFORE, AFTER, firmware)
    }
}

fn written() -> (TempDir, Medium) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let medium = Medium::Shm { path: folder.path().join(PATTERN_FILE) };
    assert!(write(&medium, BYTES, NONCE, BEFORE).unwrap());
    (folder, medium)
}

/// Changes bytes of the pattern from its byte `at` on.
fn overwrite(medium: &Medium, at: u64, bytes: &[u8]) {
    let file = File::options().read(true).write(true).open(medium.path().unwrap()).unwrap();
    let end = file.metadata().unwrap().len();
    file.write_all_at(bytes, end - BYTES + at).unwrap();
}

fn kept_bytes(medium: &Medium) -> u64 {
    match look(medium, AFTER).unwrap() {
        Seen::Restarted { bytes: BYTES, kept_bytes, written_in: BEFORE } => kept_bytes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pattern_proves_nothing_in_the_run_that_wrote_it() {
    let (_folder, medium) = written();
    assert_eq!(look(&medium, BEFORE).unwrap(), Seen::SameRun);
    assert_eq!(look(&medium, BEFORE).unwrap(), Seen::SameRun);
}

#[test]
fn a_pattern_that_is_whole_was_kept_to_the_last_byte() {
    let (_folder, medium) = written();
    assert_eq!(kept_bytes(&medium), BYTES);
}

#[test]
fn one_bit_is_missed_wherever_it_was() {
    for at in [0, 1, PAGE_BYTES, BYTES / 2 + 5, BYTES - 1] {
        let (_folder, medium) = written();
        let page = page(NONCE, at - at % PAGE_BYTES);
        overwrite(&medium, at, &[page[(at % PAGE_BYTES) as usize] ^ 0x10]);
        assert_eq!(kept_bytes(&medium), BYTES - WORD_BYTES, "at byte {at}");
    }
}

#[test]
fn memory_that_was_cleared_or_holds_another_pattern_kept_nothing() {
    let (_folder, medium) = written();
    overwrite(&medium, 0, &[0; BYTES as usize]);
    assert_eq!(kept_bytes(&medium), 0);
    let another = *b"at another time.";
    for at in (0..BYTES).step_by(PAGE_BYTES as usize) {
        overwrite(&medium, at, &page(another, at));
    }
    assert_eq!(kept_bytes(&medium), 0);
    // A page at another's place is no page that was kept.
    overwrite(&medium, 0, &page(NONCE, PAGE_BYTES));
    assert_eq!(kept_bytes(&medium), 0);
}

#[test]
fn memory_behind_a_page_cache_is_not_probed() {
    let folder = tempfile::tempdir().unwrap();
    let medium = Medium::Pmem { path: folder.path().join(PATTERN_FILE) };
    assert!(!write(&medium, BYTES, NONCE, BEFORE).unwrap());
    assert!(!medium.path().unwrap().exists(), "nothing is left");
}

#[test]
fn a_proof_is_read_as_it_was_kept_and_holds_for_its_firmware() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Proof::get(folder.path()).unwrap(), None);
    let proof = Proof::sample("f 1");
    proof.put(folder.path()).unwrap();
    assert_eq!(Proof::get(folder.path()).unwrap(), Some(proof));
    assert!(Proof::holds_in(folder.path(), "f 1"));
    assert!(!Proof::holds_in(folder.path(), "f 2"));
}

#[test]
fn a_proof_with_any_byte_changed_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let proof = Proof::new((BYTES, 0), BEFORE, AFTER, "f");
    proof.put(folder.path()).unwrap();
    let path = folder.path().join(PROOF_FILE);
    let text = fs::read(&path).unwrap();
    for at in 0..text.len() - 1 {
        let mut changed = text.clone();
        changed[at] ^= 1;
        fs::write(&path, changed).unwrap();
        let got = Proof::get(folder.path());
        assert!(!matches!(got, Ok(Some(_))), "byte {at}: {got:?}");
    }
}
