//! `holdfast log tail --follow`, beside processes that write the log.

use crate::log_commands::{Place, key_file};
use holdfast_wal::{Background, Log, Options};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Far longer than any record takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command, which never ends by itself, and its lines.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn start(place: &Place, arguments: &[&str]) -> Follower {
        let path = place.path();
        let words = ["log", "tail", path.to_str().unwrap(), "--follow", "--json"];
        let mut command = place.fixture.command();
        let mut child = command.args(words).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let (out, (send, lines)) = (BufReader::new(child.stdout.take().unwrap()), channel());
        std::thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|l| send.send(l))
        });
        Follower { child, lines }
    }

    /// What is under this key in the next lines.
    fn next(&self, count: usize, key: &str) -> Vec<Value> {
        let line = || self.lines.recv_timeout(PATIENCE).expect("there is more");
        let value = |line: String| serde_json::from_str::<Value>(&line).unwrap()[key].clone();
        std::iter::repeat_with(line).map(value).take(count).collect()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn records_of_other_processes_are_printed_as_they_become_durable() {
    let place = Place::with(&["1", "2", "3"]);
    let follower = Follower::start(&place, &["-n", "2"]);
    assert_eq!(follower.next(2, "record"), [2, 3]);
    // The log is free all the while, and another process has it now and then.
    place.log("append", &["4", "5"]).succeeded();
    assert_eq!(follower.next(2, "record"), [4, 5]);
    place.log("append", &["6"]).succeeded();
    assert_eq!(follower.next(1, "record"), [6]);

    let (log, _, _) = Log::open_any(place.path(), &Options::default()).unwrap();
    for number in 7..50_u32 {
        log.append_durable(&number.to_string().into_bytes()).unwrap();
    }
    let numbers: Vec<u32> = (7..49).collect();
    assert_eq!(follower.next(42, "record"), numbers, "each is behind a watermark, but the last");
    log.close().unwrap();
    assert_eq!(follower.next(1, "record"), [49]);
    assert!(follower.lines.try_recv().is_err(), "each is printed once");
}

#[test]
fn a_log_with_threads_of_its_own_shows_its_last_record_too_and_a_sealed_one_needs_its_keys() {
    let place = Place::new();
    let keys = key_file(&place, "keys", 0o600, &format!("1 {}\n", "a1".repeat(32)));
    place.log("create", &["--key-file", &keys]).succeeded();
    place.log("tail", &["--follow"]).expect(2, &["sealed", "--key-file"]);
    let follower = Follower::start(&place, &["--key-file", &keys]);
    let keys = holdfast_wal::Keys::new((1, &[0xa1; 32]), &[]).unwrap();
    let options = Options::new().with_background(Background::DrainAndPrepare).with_keys(keys);
    let (log, _, _) = Log::open_any(place.path(), &options).unwrap();
    log.append_durable(&b"a secret".to_vec()).unwrap();
    assert_eq!(follower.next(1, "text"), ["a secret"]);
}
