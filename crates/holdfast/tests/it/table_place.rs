//! A store of served tables that is moved or removed is told, with what to do, and its log is made
//! again from memory.
//!
//! Its server has all files open and goes on; the next one would find nothing, or lack something.

use crate::fixture::{kill, wait_until};
use crate::seeds::{Random, for_seeds};
use crate::served_tables::{WithTables, ask, made};
use holdfast_table::{Request, row};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;

const SEEDS: u64 = 2;
const SCAN: [&str; 3] = ["scan", "bank", "accounts"];

fn serving() -> WithTables {
    let mut bank = WithTables::new("must_survive = [\"process\"]");
    bank.holdfast(&["table", "make", "bank"]).succeeded();
    bank.served.serve();
    made(&bank.client());
    bank
}

/// One more is in the account, and that is acknowledged.
fn add(bank: &WithTables) {
    ask(&bank.client(), &Request::new().add("accounts", row![1_u64], 1, 1));
}

fn assert_has(bank: &WithTables, sum: u32) {
    let found = bank.holdfast(&["table", "get", "bank", "accounts", "1"]);
    assert_eq!(found.out, format!("1\t{sum}\n"), "{found:?}");
}

fn store(bank: &WithTables) -> PathBuf {
    bank.store().join("bank")
}

fn is_well(bank: &WithTables) -> bool {
    let (status, log) = (bank.status(), store(bank).join("log"));
    let has_log = log.join("catalogue").exists() && log.join("segment-00000000").exists();
    has_log
        && status["problem"].is_null()
        && status["state"] == "served"
        && status["last_error"].is_null()
}

fn tell(bank: &WithTables) -> String {
    bank.holdfast(&["status"]).out
}

fn wait_until_told(bank: &WithTables, words: &[&str]) {
    let is_told = || {
        let told = bank.holdfast(&["status"]);
        told.code == Some(7) && words.iter().all(|word| told.out.contains(word))
    };
    wait_until(is_told, || tell(bank));
}

#[test]
fn a_store_of_tables_that_is_moved_while_it_is_served_is_told_with_its_place_until_it_is_back() {
    let mut bank = serving();
    add(&bank);
    let away = bank.store().join("away");
    fs::rename(store(&bank), &away).unwrap();
    wait_until_told(&bank, &[away.to_str().unwrap(), "move it back"]);
    bank.holdfast(&["upgrade", "server"]).expect(1, &["any more", "move it back"]);
    add(&bank);
    fs::rename(&away, store(&bank)).unwrap();
    wait_until(|| is_well(&bank), || tell(&bank));
    bank.holdfast(&["upgrade", "server"]).succeeded();
    bank.kill();
    bank.served.serve();
    assert_has(&bank, 2);
    bank.served.stop();
}

#[test]
fn rows_of_a_store_that_was_removed_can_be_copied_as_long_as_the_server_runs() {
    for removed in ["archive", ""] {
        let mut bank = serving();
        add(&bank);
        fs::remove_dir_all(store(&bank).join(removed)).unwrap();
        let remedies = ["was removed", "holdfast table list bank", "holdfast table scan bank"];
        wait_until_told(&bank, &remedies);
        bank.holdfast(&["upgrade", "server"]).expect(1, &["it goes on", "was removed"]);
        for (command, has) in [(&["list", "bank"][..], "accounts"), (&SCAN[..], "1\t1\n")] {
            let found = bank.holdfast(&[&["table"], command].concat());
            assert!(found.code == Some(0) && found.out.contains(has), "{found:?}");
        }
        bank.served.kill_keeper();
    }
}

/// What of a store's log can be made again.
fn remove(bank: &WithTables, random: &mut Random) -> String {
    let log = store(bank).join("log");
    let Ok(entries) = fs::read_dir(&log) else { return "nothing".into() };
    let mut files: Vec<_> = entries.flatten().map(|it| it.path()).collect();
    files.sort();
    match random.below(3) {
        0 => {
            let _ = fs::remove_dir_all(&log);
            "remove the log".into()
        }
        1 => {
            files.iter().for_each(|it| drop(fs::remove_file(it)));
            "empty the log".into()
        }
        _ => {
            let is_segment = |it: &&PathBuf| it.to_string_lossy().contains("segment-");
            let segments: Vec<_> = files.iter().filter(is_segment).collect();
            let one = random.below(segments.len().max(1) as u64) as usize;
            segments.get(one).into_iter().for_each(|it| drop(fs::remove_file(it)));
            format!("remove segment {one} of {}", segments.len())
        }
    }
}

#[test]
fn whatever_of_a_tables_log_is_removed_while_it_is_served_nothing_that_was_answered_is_lost() {
    for_seeds("whatever_of_a_tables_log_is_removed", SEEDS, |seed| {
        let (mut random, mut bank) = (Random::new(seed), serving());
        let (mut sum, mut steps) = (0, Vec::new());
        for _ in 0..12 {
            match random.below(5) {
                0..2 => {
                    add(&bank);
                    sum += 1;
                    steps.push("add".to_owned());
                }
                2 => steps.push(remove(&bank, &mut random)),
                3 => {
                    kill(bank.served.server_pid(), Signal::KILL);
                    steps.push("kill the server".into());
                }
                _ => {
                    wait_until(|| is_well(&bank), || format!("{steps:?}\n{}", tell(&bank)));
                    steps.push("wait".into());
                }
            }
        }
        println!("seed {seed}: {steps:?}");
        wait_until(|| is_well(&bank), || tell(&bank));
        assert_has(&bank, sum);
        bank.kill();
        bank.holdfast(&["table", "check", "bank"]).succeeded();
        bank.served.serve();
        assert_has(&bank, sum);
        bank.served.stop();
    });
}

#[test]
fn a_tables_log_that_is_gone_with_everybody_dead_is_made_again_as_the_message_says() {
    let mut bank = serving();
    add(&bank);
    bank.kill();
    fs::remove_dir_all(store(&bank).join("log")).unwrap();
    fs::create_dir(store(&bank).join("log")).unwrap();
    bank.holdfast(&["table", "check", "bank"]).expect(6, &["holdfast table mend bank"]);
    bank.holdfast(&["table", "mend", "bank"]).succeeded();
    bank.holdfast(&["table", "mend", "bank"]).expect(2, &["its files are there"]);
    bank.served.serve();
    assert_has(&bank, 1);
    bank.served.stop();
}
