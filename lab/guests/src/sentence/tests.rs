//! Promise: no line is misread.
//! Never: talks to a guest.

use super::{Found, Sentence};

fn parsed(line: &str) -> Sentence {
    Sentence::parse(line.as_bytes()).unwrap()
}

#[test]
fn each_sentence_of_the_guest_is_understood() {
    assert_eq!(parsed("cache write back\r\n"), Sentence::Cache("write back".into()));
    assert_eq!(parsed("up 3.1\n"), Sentence::Up);
    assert_eq!(parsed("class memory\n"), Sentence::Class("memory".into()));
    assert_eq!(parsed("probe written  \n"), Sentence::Probe("written".into(), [0, 0]));
    assert_eq!(parsed("probe kept 8 8\n"), Sentence::Probe("kept".into(), [8, 8]));
    assert_eq!(parsed("ready 12.5\n"), Sentence::Ready);
    assert_eq!(parsed("done 2 17\n"), Sentence::Done(2, 17));
    assert_eq!(parsed("refused 2\n"), Sentence::Refused(2));
    assert_eq!(parsed("fence east\n"), Sentence::Fence("east".into()));
    assert_eq!(parsed("said stale term 1\n"), Sentence::Said("stale term 1".into()));
    assert_eq!(parsed("flushes 400\n"), Sentence::Flushes(400));
    assert_eq!(parsed("paused 37\n"), Sentence::Paused(37));
    assert_eq!(parsed("sound\n"), Sentence::Sound);
    let found = Found { writer: 1, highest: 9, rows: 8, wrong: 0 };
    assert_eq!(parsed("found 1 9 8 0\n"), Sentence::Found(found));
    assert_eq!(parsed("unsound index\n"), Sentence::Complaint("unsound index".into()));
    assert_eq!(parsed("broken disk\n"), Sentence::Complaint("broken disk".into()));
}

#[test]
fn a_line_cut_off_in_the_middle_of_a_number_acknowledges_nothing() {
    assert_eq!(Sentence::parse(b"done 1 17"), None);
    assert_eq!(parsed("done 1\n"), Sentence::Other("done 1".into()));
}

#[test]
fn a_line_with_something_else_in_it_acknowledges_nothing() {
    for line in ["done 1 17 18\n", "done 1 x\n", "done 1 [ 3.1] error\n", "adone 1 17\n"] {
        assert!(matches!(parsed(line), Sentence::Other(_)), "{line}");
    }
}
