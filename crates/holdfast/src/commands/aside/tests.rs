//! Listing what was put aside.

use super::*;
use holdfast_log::Lsn;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn a_name_that_is_no_text_is_listed_as_messages_show_it() {
    let one = PutAside {
        lsn: Lsn(4096),
        index: 0,
        path: OsStr::from_bytes(b"ex\xff").into(),
        what: "write".to_owned(),
        errno: 26,
        file: "aside/1".into(),
    };
    let listed = listed(&one, Path::new("/log"));
    assert_eq!(listed["path"], Shown::name(&one.path).to_string());
    assert_eq!(listed["file"], "/log/aside/1");
}
