//! `holdfast store --log`: stores whose log is in the server, by the command.

use crate::fixture::{Ended, kill};
use crate::served::Served;
use rustix::process::Signal;
use serde_json::Value;

/// A server with a log for one store.
fn serving() -> Served {
    let mut served = Served::with("clients_max = 1\n");
    served.serve();
    served
}

/// `holdfast store COMMAND DIRECTORY ARGUMENTS...`
fn store(served: &Served, command: &str, directory: &str, arguments: &[&str]) -> Ended {
    let directory = served.path(directory);
    let words = ["store", command, directory.to_str().unwrap()];
    Ended::of(served.holdfast(&[&words, arguments].concat()))
}

/// [`store`] with the log of this name.
fn with_log(served: &Served, name: &str, words: [&str; 2], arguments: &[&str]) -> Ended {
    let log = format!("{}/{name}", served.socket().display());
    store(served, words[0], words[1], &[arguments, &["--log", &log]].concat())
}

/// A command on the store that is made first.
fn json(served: &Served, command: &str, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    let ended = with_log(served, "ledger", [command, "a-store"], &arguments);
    serde_json::from_str(&ended.succeeded().out).unwrap()
}

#[test]
fn every_command_works_on_a_store_whose_log_is_in_the_server() {
    let mut served = serving();
    let lines = served.path("lines");
    std::fs::write(&lines, "b\t2\nc\t3\n").unwrap();
    let [lines, backup] = [lines, served.path("backup")].map(|path| path.display().to_string());
    assert_eq!(json(&served, "open", &[])["is_new"], true);
    json(&served, "put", &["a", "1"]);
    assert_eq!(json(&served, "load", &[&lines])["loaded"], 2);
    let said = |command| with_log(&served, "ledger", [command, "a-store"], &[]).succeeded().out;
    assert_eq!(said("scan"), "a\t1\nb\t2\nc\t3\n");
    kill(served.server_pid(), Signal::KILL);
    assert_eq!(json(&served, "get", &["c"])["value"], "3");
    let stat = json(&served, "stat", &[]);
    assert_eq!((&stat["served_log"], &stat["log_file_bytes"]), (&"ledger".into(), &Value::Null));
    assert!(said("stat").contains("log       ledger, in the server"), "{}", said("stat"));
    assert_eq!(json(&served, "verify", &[])["verdict"], "clean");
    json(&served, "backup", &[&backup]);
    json(&served, "put", &["a", "4"]);
    json(&served, "backup", &[&backup, "--forward"]);
    served.stop();

    let to = served.path("restored");
    store(&served, "restore", "backup", &[to.to_str().unwrap()]).succeeded();
    assert_eq!(store(&served, "get", "restored", &["a"]).succeeded().out, "4\n");
}

#[test]
fn what_is_wrong_with_a_log_is_said_with_its_exit_code() {
    let mut served = serving();
    let open = |served: &Served, directory, name| with_log(served, name, ["open", directory], &[]);
    open(&served, "a-store", "ledger").succeeded();
    store(&served, "get", "a-store", &["a"]).expect(2, &["another log", "--log"]);
    open(&served, "other", "ledger").expect(2, &["somebody else's", "--log"]);
    open(&served, "other", "none").expect(2, &["no service has this name"]);
    for text in ["", "ledger", "/ledger", "server.sock/"] {
        store(&served, "open", "other", &["--log", text]).expect(2, &["is no SOCKET/NAME"]);
    }
    store(&served, "open", "embedded", &[]).succeeded();
    open(&served, "embedded", "ledger").expect(2, &["another log", "--log"]);
    served.stop();
    open(&served, "a-store", "ledger").expect(4, &["no server answers", "holdfast serve"]);
    served.serve();
    open(&served, "a-store", "ledger").succeeded();
    served.stop();

    let mut shared = Served::with("");
    shared.serve();
    open(&shared, "a-store", "ledger").expect(2, &["clients_max to 1", "configuration"]);
    shared.stop();
}

#[test]
fn a_log_that_was_made_anew_is_told_and_the_store_is_restored_into_it() {
    let mut served = serving();
    json(&served, "open", &[]);
    json(&served, "put", &["a", "1"]);
    served.stop();
    served.remake_log();
    served.serve();
    let ledger = |words, arguments: &[&str]| with_log(&served, "ledger", words, arguments);
    ledger(["get", "a-store"], &["a"]).expect(6, &["made anew", "`restore` makes another"]);
    let to = served.path("restored");
    ledger(["restore", "a-store"], &[to.to_str().unwrap()]).succeeded();
    assert_eq!(ledger(["get", "restored"], &["a"]).succeeded().out, "1\n");
    served.stop();
}
