//! Canaries: each checker must be able to fail.
//!
//! Promise: for each check one sample that passes and one that must not.
//! Never: starts a database.

use super::*;

fn acknowledged(client: u32, seq: u64) -> Acknowledged {
    Acknowledged { client, seq, latency_us: 0, at_us: 0 }
}

#[test]
fn an_acknowledged_transaction_without_a_row_is_counted_as_lost() {
    let present = Sequences::from([(0, vec![1, 2, 3]), (1, vec![1])]);
    let all = [acknowledged(0, 1), acknowledged(0, 3), acknowledged(1, 1)];
    assert_eq!(missing(&present, &all), 0);
    assert_eq!(missing(&present, &[acknowledged(1, 2), acknowledged(2, 1)]), 2);
}

#[test]
fn a_row_that_was_never_acknowledged_is_no_loss() {
    let present = Sequences::from([(0, vec![1, 2])]);
    assert_eq!(missing(&present, &[acknowledged(0, 1)]), 0);
}

#[test]
fn one_changed_byte_one_mode_and_one_missing_file_are_each_a_difference() {
    let root = std::env::temp_dir().join(format!("holdfast-tree-{}", std::process::id()));
    fs::create_dir_all(root.join("archive_status")).unwrap();
    fs::write(root.join("segment"), "bytes").unwrap();
    let before = tree(&root).unwrap();
    assert!(differences(&before, &tree(&root).unwrap()).is_empty());
    fs::write(root.join("segment"), "bytez").unwrap();
    assert_eq!(differences(&before, &tree(&root).unwrap()), [PathBuf::from("segment")]);
    fs::remove_dir(root.join("archive_status")).unwrap();
    assert_eq!(differences(&before, &tree(&root).unwrap()).len(), 2);
    fs::remove_dir_all(root).unwrap();
}
