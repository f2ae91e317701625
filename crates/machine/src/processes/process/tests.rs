//! What a process has mapped, with any name.

use super::{Mapping, Process, mapping};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

#[test]
fn a_line_of_the_table_is_understood_and_a_name_of_memory_is_no_path() {
    let told =
        mapping(b"7f00-7f01 r--p 00000000 fe:10 12                         /a b/\\012\\134x");
    let path = PathBuf::from(OsStr::from_bytes(b"/a b/\n\\134x"));
    let expected = Mapping { range: "7f00-7f01".into(), device: "254:16".into(), path };
    assert_eq!(told, Some(expected));
    for none in [
        &b"7f00-7f01 rw-p 00000000 00:00 0 "[..],
        b"7f00-7f01 rw-p 00000000 00:00 0                          [heap]",
        b"7f00-7f01 rw-p 00000000 00:00 0                          [anon:x /home/x]",
        b"nonsense",
        b"",
    ] {
        assert_eq!(mapping(none), None, "{}", String::from_utf8_lossy(none));
    }
}

#[test]
fn a_process_tells_that_it_has_its_own_program_mapped() {
    let program = std::env::current_exe().unwrap();
    let process = Process::new(std::process::id());
    let mut parts = process.mappings().unwrap();
    let part = parts.find(|part| part.path == program).expect("it runs");
    let link = std::fs::read_link(process.at("map_files").join(part.range));
    assert_eq!(link.unwrap(), program);
}

#[test]
fn threads_that_share_all_with_their_process_are_looked_at_with_it() {
    let all = std::sync::Barrier::new(9);
    let apart = std::thread::scope(|scope| {
        (0..8).for_each(|_| drop(scope.spawn(|| all.wait())));
        let apart = Process::new(std::process::id()).apart();
        all.wait();
        apart
    });
    assert!(apart.is_empty(), "{apart:?}");
}
