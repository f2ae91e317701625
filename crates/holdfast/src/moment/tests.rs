//! Moments as text and back.

use super::{parse, time};
use holdfast_log::Lsn;
use holdfast_pages::{At, Rsn};

#[test]
fn a_time_is_what_was_written() {
    // What `date -u -d TIME +%s` prints of each.
    for (text, seconds) in [
        ("1970-01-01T00:00:00.000Z", 0),
        ("2000-02-29T23:59:59.000Z", 951_868_799),
        ("2026-11-22T12:00:00.000Z", 1_795_348_800),
        ("2100-03-01T00:00:00.000Z", 4_107_542_400),
    ] {
        let ns = seconds * 1_000_000_000;
        assert_eq!(parse(text), Ok(At::Time(ns)));
        assert_eq!(time(ns), text);
        assert_eq!(parse(&text.replace(".000", "")), Ok(At::Time(ns)));
        assert_eq!(parse(&time(ns + 7_000_000)), Ok(At::Time(ns + 7_000_000)));
    }
}

#[test]
fn places_say_what_they_count() {
    assert_eq!(parse("rsn:8"), Ok(At::Rsn(Rsn(8))));
    assert_eq!(parse("lsn:0"), Ok(At::Lsn(Lsn(0))));
}

#[test]
fn what_is_no_moment_is_refused() {
    for wrong in [
        "",
        "8",
        "rsn:",
        "rsn:-1",
        "now",
        "2026-11-22",
        "2026-11-22T12:00:00",
        "2026-02-29T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-00-01T12:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:00.5Z",
        "2026-01-+1T00:00:00Z",
        "9999-01-01T00:00:00Z",
    ] {
        let why = parse(wrong).expect_err(wrong);
        assert!(why.contains("is no moment such as"), "{why}");
    }
}
