//! Lines that are accesses, and lines that are none.

use super::*;
use std::fs::File;
use std::io::BufReader;

fn read(text: &str) -> Result<Trace, String> {
    Trace::read(text.as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn pages_are_numbered_as_they_come_and_comments_are_no_accesses() {
    let trace = read("# two pages\nr 900\n\n w\t7 # again\nr 900\n").unwrap();
    let found: Vec<Request> = (0..trace.accesses()).map(|at| trace.request(at)).collect();
    let request = |page, is_write| Request { page, is_write };
    assert_eq!(found, [request(0, false), request(1, true), request(0, false)]);
    assert_eq!((trace.pages(), trace.hottest_first()), (2, vec![0, 1]));
}

#[test]
fn the_hottest_page_comes_first_wherever_it_stands_in_the_trace() {
    assert_eq!(read("r 1\nr 2\nw 3\nr 3\n").unwrap().hottest_first(), [2, 0, 1]);
}

#[test]
fn a_line_that_is_no_access_is_named_with_what_is_wrong() {
    for (text, said) in [
        ("r 1\nread 2\n", "line 2: `read 2` begins neither with `r` nor with `w`"),
        ("r 1\nw 2\n17\n", "line 3: `17` begins neither with `r` nor with `w`"),
        ("r\n", "line 1: `r` lacks the number of one page"),
        ("r 1\nr -1\n", "line 2: `r -1` lacks the number of one page"),
        ("r 1 2\n", "line 1: `r 1 2` lacks the number of one page"),
        (
            "r 18446744073709551616\n",
            "line 1: `r 18446744073709551616` lacks the number of one page",
        ),
        ("", "line 1: the trace ends and has not named two pages"),
        ("r 1\nw 1\n", "line 3: the trace ends and has not named two pages"),
    ] {
        assert_eq!(read(text), Err(said.to_owned()), "{text:?}");
    }
}

#[test]
fn a_line_that_is_not_text_or_does_not_end_is_named() {
    let not_text = "line 2: it is not text of up to 4096 bytes";
    let error = Trace::read(&b"r 1\nr \xff\n"[..]).unwrap_err();
    assert_eq!(error.to_string(), not_text);
    let endless = "r 1\n".as_bytes().chain(io::repeat(b' '));
    let error = Trace::read(BufReader::new(endless)).unwrap_err();
    assert_eq!(error.to_string(), not_text);
}

#[test]
fn the_longest_line_and_a_last_one_without_an_end_are_read() {
    let longest = format!("r 1 #{}\nr 2", "x".repeat(LINE_BYTES_MAX - 6));
    assert_eq!(read(&longest).unwrap().accesses(), 2);
    assert!(read(&longest.replace('#', "##")).is_err());
}

#[test]
fn a_line_that_cannot_be_read_is_named_with_the_reason() {
    let folder = File::open(env!("CARGO_MANIFEST_DIR")).unwrap();
    let error = Trace::read(BufReader::new(folder)).unwrap_err();
    assert!(error.line == 1 && matches!(error.fault, TraceFault::Io(_)), "{error}");
}
