//! A canary: the comparison must be able to fail.
//!
//! Promise: one pair of trees that is equal, and pairs that are not.
//! Never: starts a database.

use super::*;

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
