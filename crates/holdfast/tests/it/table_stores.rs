//! The stores of served tables, and people who come to them with `holdfast store`.
//!
//! Whatever is tried, and whenever: what tables have acknowledged from memory is there as soon as
//! they are served again, without anybody having to give memory up.

use crate::fixture::{Ended, kill, wait_until};
use crate::seeds::{Random, for_seeds};
use crate::served_tables::{WithTables, ask, made, rows};
use holdfast_table::{Request, row};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const SEEDS: u64 = 2;
const ROUNDS: u64 = 3;
const LINES: u64 = 40;

/// Tables that are served, with lines that each request has added.
struct Bank {
    tables: WithTables,
    lines: u64,
}

impl Bank {
    fn serving() -> Bank {
        let mut tables = WithTables::new("must_survive = [\"process\"]");
        tables.holdfast(&["table", "make", "bank"]).succeeded();
        tables.served.serve();
        made(&tables.client());
        Bank { tables, lines: 0 }
    }

    fn directory(&self) -> PathBuf {
        self.tables.store().join("bank")
    }

    /// Adds lines, each acknowledged from memory.
    fn add_lines(&mut self) {
        let client = self.tables.client();
        for at in self.lines..self.lines + LINES {
            ask(&client, &Request::new().insert("history", row![7_u64, at, 0_u64, 0_i64]));
        }
        self.lines += LINES;
    }

    fn check(&self) {
        let status = self.tables.status();
        assert_eq!(status["state"], "served", "{status}");
        let found = rows(&self.tables.client(), "history", 2).len() as u64;
        assert_eq!(found, self.lines, "of what was acknowledged");
    }

    /// `holdfast store COMMAND`, as it is asked of the store.
    fn store(&self, command: &str) -> Ended {
        let directory = self.directory();
        let new = self.tables.served.path("new");
        let lines = self.tables.served.path("lines");
        fs::write(&lines, "k\tv\n").unwrap();
        let [at, new, lines] = [&directory, &new, &lines].map(|it| it.to_str().unwrap());
        let arguments: &[&str] = match command {
            "open" | "stat" | "verify" | "scan" => &[at],
            "get" | "delete" => &[at, "k"],
            "put" => &[at, "k", "v"],
            "load" => &[at, lines],
            "trim" => &[at, "--keep", "repair"],
            "backup" | "restore" => &[at, new],
            "bench" => &[at, "--seconds", "0.01"],
            _ => panic!("how is `holdfast store {command}` asked of a store?"),
        };
        self.tables.holdfast(&[&["store", command], arguments].concat())
    }

    /// All commands of `holdfast store`, as its help has them, in an order that is drawn.
    fn commands(&self, random: &mut Random) -> Vec<String> {
        let help = self.tables.holdfast(&["store", "--help"]).succeeded().out;
        let (_, listed) = help.split_once("Commands:\n").unwrap();
        let listed = listed.lines().take_while(|line| !line.is_empty());
        let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        let mut names: Vec<_> =
            names.filter(|name| !["", "help"].contains(name)).map(str::to_owned).collect();
        assert!(names.len() >= 12, "{help}");
        (1..names.len()).for_each(|at| names.swap(at, random.below(at as u64 + 1) as usize));
        names
    }
}

/// Every file in a directory and below it.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(contents(&path)),
            false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    found
}

/// A command that came to a store whose memory somebody else has.
fn assert_refused(told: &Ended, command: &str, bank: &Bank) {
    let region = bank.tables.region.to_str().unwrap();
    let words = [
        "[table.bank]",
        region,
        "nothing was changed",
        "`holdfast serve`",
        "`holdfast table list bank`",
        "`holdfast table accept bank --memory-lost`",
    ];
    println!("store {command}: {}", told.err);
    told.expect(2, &words);
}

#[test]
fn no_command_of_stores_goes_on_without_the_memory_of_tables_whose_keeper_was_killed() {
    for_seeds("no_command_of_stores_goes_on_without_the_memory", SEEDS, |seed| {
        let (mut bank, random) = (Bank::serving(), &mut Random::new(seed));
        for round in 0..ROUNDS {
            bank.add_lines();
            bank.tables.kill();
            let before = contents(&bank.directory());
            for command in bank.commands(random) {
                match &*command {
                    "bench" if round > 0 => {}
                    // It has a store of its own.
                    "bench" => drop(bank.store(&command).succeeded()),
                    command => assert_refused(&bank.store(command), command, &bank),
                }
                let now = contents(&bank.directory());
                let changed = now.keys().filter(|path| now.get(*path) != before.get(*path));
                assert_eq!(changed.collect::<Vec<_>>(), Vec::<&PathBuf>::new(), "{command}");
            }
            bank.tables.served.serve();
            bank.check();
        }
        bank.tables.served.stop();
    });
}

#[test]
fn no_command_of_stores_gets_in_between_a_server_of_tables_and_the_next() {
    for_seeds("no_command_of_stores_gets_in_between", SEEDS, |seed| {
        let (mut bank, random) = (Bank::serving(), &mut Random::new(seed));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let mut command = bank.tables.served.command();
            command.args(["store", "put", bank.directory().to_str().unwrap(), "k", "v"]);
            let stop = &stop;
            let tried = scope.spawn(move || {
                let mut tried = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    tried.push(Ended::of(command.output().unwrap()));
                }
                tried
            });
            for _ in 0..2 * ROUNDS {
                bank.add_lines();
                match random.below(2) {
                    0 => kill(bank.tables.served.server_pid(), Signal::KILL),
                    _ => drop(bank.tables.holdfast(&["upgrade", "server"]).succeeded()),
                }
            }
            stop.store(true, Ordering::Relaxed);
            let tried = tried.join().unwrap();
            println!("{} attempts", tried.len());
            for told in tried {
                assert!(matches!(told.code, Some(2 | 5)), "{told:?}");
            }
        });
        wait_until(
            || bank.tables.status()["state"] == "served",
            || bank.tables.status().to_string(),
        );
        bank.check();
        bank.tables.served.stop();
    });
}

#[test]
fn tables_that_were_closed_in_order_are_a_store_as_any_and_are_served_again_afterwards() {
    for_seeds("tables_that_were_closed_in_order_are_a_store", SEEDS, |seed| {
        let (mut bank, random) = (Bank::serving(), &mut Random::new(seed));
        for _ in 0..ROUNDS {
            bank.add_lines();
            bank.tables.served.stop();
            let commands = bank.commands(random);
            for command in commands.iter().take(1 + random.below(3) as usize) {
                let told = bank.store(command);
                assert_ne!(told.code, None, "{told:?}");
                assert!(!told.err.contains("memory"), "{told:?}");
                let _ = fs::remove_dir_all(bank.tables.served.path("new"));
            }
            bank.tables.served.serve();
            bank.check();
        }
        bank.tables.served.stop();
        bank.tables.holdfast(&["table", "check", "bank"]).succeeded();
    });
}
