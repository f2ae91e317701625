//! Servers that lie, stop in the middle, say too much or nothing: real connections, each of them.

use super::*;
use crate::state::Line;
use std::net::TcpListener;
use std::thread;

const UPS: &str = "cellar";

/// Asks a server that does `serve` with its one connection.
fn asked(patience: Duration, serve: impl FnOnce(TcpStream) + Send) -> Result<Reading, String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || serve(listener.accept().unwrap().0));
        ask(address, UPS, Instant::now() + patience)
    })
}

/// Answers each question with the next of these lines.
fn answers(lines: &'static [&'static str]) -> impl FnOnce(TcpStream) + Send {
    move |mut stream: TcpStream| {
        for line in lines {
            let mut asked = [0; 1000];
            if stream.read(&mut asked).unwrap_or(0) == 0 {
                return;
            }
            let _ = stream.write_all(line.as_bytes());
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn two_variables_make_a_reading() {
    let told =
        answers(&["VAR cellar ups.status \"OB DISCHRG\"\n", "VAR cellar battery.runtime \"90\"\n"]);
    let reading = asked(PATIENCE, told).unwrap();
    assert_eq!((reading.line, reading.hold_up_ms), (Line::Battery, Some(90_000)));
    let untold = answers(&["VAR cellar ups.status \"OB DISCHRG\"\r\n", "ERR VAR-NOT-SUPPORTED\n"]);
    assert_eq!(asked(PATIENCE, untold).unwrap().hold_up_ms, None);
}

#[test]
fn what_the_server_refuses_is_said_in_words() {
    let of = |lines: &'static [&'static str]| asked(PATIENCE, answers(lines)).unwrap_err();
    assert!(of(&["ERR DATA-STALE\n"]).contains("hears nothing from cellar any more"));
    assert!(of(&["ERR UNKNOWN-UPS\n"]).contains("has no UPS called cellar"));
    assert!(of(&["ERR DRIVER-NOT-CONNECTED\n"]).contains("has no driver"));
    assert!(of(&["ERR ACCESS-DENIED\n"]).contains("\"ACCESS-DENIED\""));
    assert!(of(&["VAR cellar ups.status \"OL\"\n", "ERR DATA-STALE\n"]).contains("hears nothing"));
}

#[test]
fn garbage_is_no_reading() {
    let of = |lines: &'static [&'static str]| asked(PATIENCE, answers(lines)).unwrap_err();
    for lines in [
        &["\n"] as &'static [&'static str],
        &["OL\n"],
        &["VAR attic ups.status \"OL\"\n"],
        &["VAR cellar ups.status OL\n"],
        &["VAR cellar battery.runtime \"OL\"\n"],
        &["HTTP/1.1 400 Bad Request\r\n"],
        &["\u{0}\u{1}\u{fffd}\n"],
    ] {
        let refusal = of(lines);
        assert!(refusal.contains("not NUT's"), "{lines:?}: {refusal}");
    }
    assert!(of(&["VAR cellar ups.status \"OL OB\"\n", "ERR VAR-NOT-SUPPORTED\n"]).contains("both"));
}

#[test]
fn a_line_without_an_end_is_not_read_for_ever() {
    let refusal = asked(PATIENCE, |mut stream| while stream.write_all(&[b'x'; 4096]).is_ok() {});
    assert!(refusal.unwrap_err().contains("no end"));
}

#[test]
fn who_answers_a_letter_at_a_time_is_not_waited_for() {
    let slowly = |mut stream: TcpStream| {
        let begun = Instant::now();
        // Each letter comes in time, and all of them never would.
        while stream.write_all(b"V").is_ok() && begun.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(50));
        }
    };
    let refusal = asked(Duration::from_millis(500), slowly).unwrap_err();
    assert!(refusal.contains("timed out"), "{refusal}");
}

#[test]
fn who_says_nothing_or_goes_away_is_not_waited_for() {
    let refusal = asked(PATIENCE, drop).unwrap_err();
    assert!(refusal.contains("asking upsd at 127.0.0.1"), "{refusal}");
    let silent = |stream: TcpStream| {
        let mut stream = stream;
        while stream.read(&mut [0; 100]).is_ok_and(|read| read > 0) {}
    };
    assert!(asked(Duration::from_millis(200), silent).is_err());
}

#[test]
fn quotation_marks_in_a_value_are_plain() {
    assert_eq!(unescaped(r#"a\"b\\c"#), r#"a"b\c"#);
    assert_eq!(unescaped("\\"), "");
}
