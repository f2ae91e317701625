//! Which files are one.

use super::*;

#[test]
fn a_file_is_the_same_by_every_name_and_another_one_is_refused_with_both_names() {
    let folder = tempfile::tempdir().unwrap();
    let [file, copy, hard, soft] = ["a", "b", "hard", "soft"].map(|name| folder.path().join(name));
    fs::write(&file, "").unwrap();
    fs::copy(&file, &copy).unwrap();
    fs::hard_link(&file, &hard).unwrap();
    std::os::unix::fs::symlink("a", &soft).unwrap();
    let theirs = told(&file);
    for same in [&file, &hard, &soft, &folder.path().join(".").join("a")] {
        refuse_other_file("asking", Some(same), Some(&theirs)).unwrap();
    }
    let refused = refuse_other_file("asking", Some(&copy), Some(&theirs)).unwrap_err();
    assert_eq!(refused.exit, Exit::InUse);
    for named in [&file, &copy] {
        assert!(refused.why.contains(&told(named)), "{refused}");
    }
    // Neither of them is there any more.
    refuse_other("asking", Some("/gone/a"), Some("/gone/a")).unwrap();
    refuse_other("asking", Some("/gone/a"), Some("/gone/b")).unwrap_err();
}

#[test]
fn whoever_says_nothing_of_a_file_is_taken_as_before() {
    refuse_other("asking", None, Some("/etc/holdfast.toml")).unwrap();
    refuse_other("asking", Some("/etc/holdfast.toml"), None).unwrap();
}
