//! Tables that are served: asked by clients that notice nothing of upgrades and kills.

use crate::fixture::{Ended, kill, wait_until};
use crate::reserved::BOOT;
use crate::served::Served;
use holdfast_client::ResponderClient;
use holdfast_table::{
    Index, Kind, Outcome, Range, Request, Row, Schema, Status, Value, decode_answer, row,
};
use rustix::process::Signal;
use serde_json::Value as Json;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

static NUMBER: AtomicU32 = AtomicU32::new(0);

const CLIENTS: u64 = 4;
const ACCOUNTS: u64 = 50;
const TELLERS: u64 = 10;
const BRANCHES: u64 = 3;

/// A served log and tables, whose region goes with the test.
pub(crate) struct WithTables {
    pub(crate) served: Served,
    pub(crate) region: PathBuf,
}

impl WithTables {
    pub(crate) fn new(line: &str) -> WithTables {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let region = format!("/dev/shm/holdfast-test-table-{}-{number}", std::process::id());
        // The folder above it is made with it.
        let store = format!("{region}-store/bank").replace("/dev/shm", "/tmp");
        let lines = format!(
            "[table.bank]\nstore = {store:?}\n\
             memory = {{ medium = \"shm\", size = \"8MiB\", path = {region:?} }}\n{line}\n"
        );
        WithTables { served: Served::with(&lines), region: region.into() }
    }

    pub(crate) fn store(&self) -> PathBuf {
        let name = self.region.file_name().unwrap().to_str().unwrap();
        PathBuf::from(format!("/tmp/{name}-store"))
    }

    pub(crate) fn holdfast(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.served.holdfast(arguments))
    }

    /// Kills keeper and server. A process lets go of the store last of all.
    pub(crate) fn kill(&mut self) {
        let server = self.served.server_pid();
        // A keeper that stands starts no other server. Were the server stopped instead, the end of
        // its keeper would have the kernel continue it, and it would end in order.
        self.served.stop_keeper();
        kill(server, Signal::KILL);
        self.served.kill_keeper();
        let store = fs::File::open(self.store().join("bank")).unwrap();
        wait_until(|| store.try_lock().is_ok(), || "somebody has the store".into());
        // Closing is not enough: a child that another test is starting has a copy for a moment.
        store.unlock().unwrap();
    }

    pub(crate) fn client(&self) -> ResponderClient {
        ResponderClient::connect(&self.served.socket(), "table/bank").unwrap()
    }

    pub(crate) fn status(&self) -> Json {
        let report: Json = serde_json::from_str(&self.holdfast(&["status", "--json"]).out).unwrap();
        report["tables"][0].clone()
    }
}

impl Drop for WithTables {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.region);
        let _ = fs::remove_dir_all(self.store());
    }
}

pub(crate) fn ask(client: &ResponderClient, request: &Request) -> Vec<Outcome> {
    let answer = client.request(&request.encode()).unwrap();
    decode_answer(&answer).unwrap().unwrap()
}

pub(crate) fn made(client: &ResponderClient) {
    let balances = Schema::new(vec![Kind::U64, Kind::I64], 1, vec![]).unwrap();
    let kinds = vec![Kind::U64, Kind::U64, Kind::U64, Kind::I64];
    let by_account = Index { fields: vec![2], is_unique: false };
    let history = Schema::new(kinds, 2, vec![by_account]).unwrap();
    let mut request = Request::new().make("history", history);
    for (name, count) in [("accounts", ACCOUNTS), ("tellers", TELLERS), ("branches", BRANCHES)] {
        request = request.make(name, balances.clone());
        request = (0..count).fold(request, |request, at| request.insert(name, row![at, 0_i64]));
    }
    ask(client, &request);
}

#[test]
fn a_keeper_of_nothing_but_tables_has_a_server() {
    let mut bank = WithTables::new("must_survive = [\"process\"]");
    bank.served.leave_out_log();
    bank.holdfast(&["table", "make", "bank"]).succeeded();
    bank.served.serve();
    assert!(bank.status()["verdict"].is_object(), "{}", bank.status());
    drop(bank.client());
    bank.served.stop();
}

#[test]
fn a_keeper_says_who_has_the_tables_when_a_server_outlived_the_one_before_it() {
    let mut bank = WithTables::new("must_survive = [\"process\"]");
    bank.holdfast(&["table", "make", "bank"]).succeeded();
    bank.served.serve();
    let (client, server) = (bank.client(), bank.served.server_pid());
    bank.served.kill_keeper();
    bank.served.begin_to_serve();
    let log = || fs::read_to_string(bank.served.path("keeper.log")).unwrap();
    wait_until(|| log().contains("gave up on the server"), log);
    assert_eq!(bank.served.reap().code(), Some(5));
    let told = fs::read_to_string(bank.served.path("keeper.log")).unwrap();
    assert!(told.contains(&format!("process {server} serves the region")), "{told}");
    assert!(told.contains("it ends by itself with the last of its users"), "{told}");
    made(&client);
    drop(client);
    wait_until(|| !fs::exists(format!("/proc/{server}")).unwrap(), || "it does not end".into());
    bank.served.serve();
    assert_eq!(check(&bank.client(), &[0; CLIENTS as usize]), Ok(()), "nothing is lost");
    bank.served.stop();
}

#[test]
fn people_read_tables_that_the_server_has_and_tables_that_nobody_has() {
    let mut tables = WithTables::new("must_survive = [\"process\"]");
    tables.holdfast(&["table", "make", "bank"]).succeeded();
    tables.served.serve();
    let client = tables.client();
    made(&client);
    let lines = (0..1500_u64).fold(Request::new(), |request, at| {
        request.insert("history", row![1_u64, at, at % 3, -5_i64])
    });
    ask(&client, &lines);
    let read = |arguments: &[&str]| {
        let arguments = [&["table"][..], arguments].concat();
        tables.holdfast(&arguments).succeeded().out
    };
    let all = || {
        let history = ["scan", "bank", "history"];
        let some = ["--by", "0", "--from", "1", "--to", "2", "--limit", "2", "--reverse"];
        let mut json = vec!["--json", "table"];
        json.extend(["get", "bank", "accounts", "7"]);
        [
            read(&["list", "bank"]),
            read(&["get", "bank", "accounts", "7"]),
            tables.holdfast(&json).succeeded().out,
            read(&[&history[..], &some].concat()),
            read(&history),
        ]
    };
    let served = all();
    let [list, account, json, some, history] = &served;
    assert!(list.contains("history\tu64, u64, u64, i64; key 0, 1; index 0 2\n"), "{list}");
    assert_eq!(list.lines().count(), 4, "{list}");
    assert_eq!((&**account, &**json), ("7\t0\n", "[7,0]\n"));
    assert_eq!(some, "1\t1498\t1\t-5\n1\t1495\t1\t-5\n");
    let wanted: Vec<_> = (0..1500).map(|at| format!("1\t{at}\t{}\t-5", at % 3)).collect();
    assert_eq!(history.lines().collect::<Vec<_>>(), wanted);
    let missing = ["table", "get", "bank", "accounts", "999"];
    tables.holdfast(&missing).expect(2, &["no such row"]);
    let words = ["table", "get", "bank", "accounts", "many"];
    tables.holdfast(&words).expect(2, &["`many` is no value of a field of kind u64"]);
    tables.holdfast(&["table", "scan", "bank", "other"]).expect(2, &["other", "table list bank"]);
    drop(client);
    tables.served.stop();
    let read = |arguments: &[&str]| tables.holdfast(arguments).succeeded().out;
    assert_eq!(read(&["table", "list", "bank"]), *list);
    assert_eq!(read(&["table", "scan", "bank", "history"]), *history);
}

#[test]
fn a_list_is_one_value_of_json_and_a_sentence_where_nothing_is_in_it() {
    let mut tables = WithTables::new("must_survive = [\"process\"]");
    tables.holdfast(&["table", "make", "bank"]).succeeded();
    let list = ["table", "list", "bank"];
    let listed = |tables: &WithTables| -> Json {
        let json = tables.holdfast(&[&["--json"], &list[..]].concat()).succeeded().out;
        serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json:?}"))
    };
    assert_eq!(listed(&tables), serde_json::json!([]));
    assert_eq!(tables.holdfast(&list).succeeded().out, "there are none\n");
    tables.served.serve();
    let client = tables.client();
    made(&client);
    assert_eq!(listed(&tables).as_array().map(Vec::len), Some(4));
    drop(client);
    tables.served.stop();
}

/// TPC-B, over and over. Returns how often, and the longest wait.
fn pay(client: &ResponderClient, me: u64, stop: &AtomicBool) -> (u64, Duration) {
    let (mut number, mut longest, mut balance) = (0, Duration::ZERO, 0);
    while !stop.load(Ordering::Relaxed) {
        let cents = ((number * 37 + me * 11) % 199).cast_signed() - 99;
        // An account of its own, so that it knows the balance; tellers and branches are shared.
        let account = me + CLIENTS * (number % 2);
        let request = Request::new()
            .add("accounts", row![account], 1, cents)
            .add("tellers", row![number % TELLERS], 1, cents)
            .add("branches", row![number % BRANCHES], 1, cents)
            .insert("history", row![me, number, account, cents])
            .get("accounts", row![me])
            .get("accounts", row![me + CLIENTS]);
        let began = Instant::now();
        let outcomes = ask(client, &request);
        longest = longest.max(began.elapsed());
        balance += cents;
        let [Outcome::Row(one), Outcome::Row(other)] = &outcomes[4..] else { panic!() };
        assert_eq!(number_in(one, 1) + number_in(other, 1), balance, "client {me}, {number}");
        number += 1;
    }
    (number, longest)
}

fn number_in(row: &Row, field: usize) -> i64 {
    match row[field] {
        Value::I64(number) => number,
        _ => panic!("{row:?}"),
    }
}

/// All rows of a table.
pub(crate) fn rows(client: &ResponderClient, name: &str, key_fields: usize) -> Vec<Row> {
    let (mut all, mut range) = (Vec::new(), Range::all());
    loop {
        let outcomes = ask(client, &Request::new().scan(name, range));
        let [Outcome::Rows { rows, has_more }] = &outcomes[..] else { panic!() };
        all.extend_from_slice(rows);
        match all.last() {
            Some(last) if *has_more => range = Range::all().behind(last[..key_fields].to_vec()),
            _ => return all,
        }
    }
}

/// The sums of all tables agree, and the history has so many lines of each client.
fn check(client: &ResponderClient, done: &[u64]) -> Result<(), String> {
    let history = rows(client, "history", 2);
    let mut lines = vec![0; done.len()];
    for line in &history {
        let Value::U64(me) = line[0] else { panic!("{line:?}") };
        lines[me as usize] += 1;
    }
    let paid: i64 = history.iter().map(|row| number_in(row, 3)).sum();
    for name in ["accounts", "tellers", "branches"] {
        let sum: i64 = rows(client, name, 1).iter().map(|row| number_in(row, 1)).sum();
        if sum != paid {
            return Err(format!("{name} have {sum}, the history {paid}"));
        }
    }
    if lines == done { Ok(()) } else { Err(format!("{lines:?} lines of {done:?} requests")) }
}

#[test]
fn clients_of_tables_notice_nothing_of_upgrades_and_kills() {
    let factor = std::env::var("HOLDFAST_SEEDS_FACTOR").ok().and_then(|text| text.parse().ok());
    let rounds = factor.map_or(5, |factor: u64| 100 * factor / 8);
    let mut tables = WithTables::new("must_survive = [\"process\"]");
    tables.holdfast(&["table", "make", "bank"]).succeeded();
    tables.served.serve();
    made(&tables.client());
    let stop = AtomicBool::new(false);
    let done: Vec<(u64, Duration)> = std::thread::scope(|scope| {
        let work = |me: u64| {
            let (client, stop) = (tables.client(), &stop);
            scope.spawn(move || pay(&client, me, stop))
        };
        let threads: Vec<_> = (0..CLIENTS).map(work).collect();
        for round in 0..rounds {
            tables.holdfast(&["upgrade", "server"]).succeeded();
            if round % 2 == 1 {
                kill(tables.served.server_pid(), Signal::KILL);
            }
        }
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (done, longest): (Vec<u64>, Vec<Duration>) = done.into_iter().unzip();
    let client = tables.client();
    assert_eq!(check(&client, &done), Ok(()));
    println!("{rounds} upgrades, requests {done:?}, longest wait {:?}", longest.iter().max());
    // The canary: a line too many, and one cent too many, are noticed.
    ask(&client, &Request::new().insert("history", row![0_u64, u64::MAX, 0_u64, 0_i64]));
    assert!(check(&client, &done).is_err());
    ask(&client, &Request::new().delete("history", row![0_u64, u64::MAX]));
    ask(&client, &Request::new().add("tellers", row![0_u64], 1, 1));
    assert!(check(&client, &done).is_err());
    tables.served.stop();
    let told = tables.holdfast(&["table", "check", "bank"]).succeeded().out;
    assert!(told.contains("4 tables") && told.contains("all agree"), "{told}");
}

#[test]
fn the_status_tells_of_tables_and_of_what_keeps_them_from_being_served() {
    let mut tables = WithTables::new("must_survive = [\"process\"]");
    tables.served.serve();
    let status = tables.status();
    assert_eq!(status["state"], "not served");
    let told = status["last_error"].as_str().unwrap();
    assert!(told.contains("holdfast table make bank"), "{told}");
    assert!(ResponderClient::connect(&tables.served.socket(), "table/bank").is_err());
    tables.holdfast(&["table", "check", "bank"]).expect(2, &["holdfast table make bank"]);
    tables.holdfast(&["table", "make", "bank"]).succeeded();
    tables.holdfast(&["upgrade", "server"]).succeeded();
    let status = tables.status();
    assert_eq!(status["state"], "served", "{status}");
    assert_eq!(status["verdict"]["survives"], serde_json::json!(["process"]));
    let client = tables.client();
    made(&client);
    let again = client.request(&Request::new().get("none", row![1_u64]).encode()).unwrap();
    let refusal = decode_answer(&again).unwrap().unwrap_err();
    assert_eq!(refusal.status, Status::NoTable);
    let text = tables.holdfast(&["status"]).succeeded().out;
    assert!(text.contains("table bank: served"), "{text}");
    tables.served.stop();
    tables.served.serve();
    assert_eq!(check(&tables.client(), &[0; CLIENTS as usize]), Ok(()), "it outlives the keeper");
    tables.served.stop();
}

#[test]
fn tables_that_must_survive_the_power_are_answered_from_disk() {
    let mut tables = WithTables::new("");
    tables.holdfast(&["table", "make", "bank"]).succeeded();
    tables.served.serve();
    assert_eq!(tables.status()["verdict"]["class"], "disk", "{}", tables.status());
    made(&tables.client());
    kill(tables.served.server_pid(), Signal::KILL);
    assert_eq!(check(&tables.client(), &[0; CLIENTS as usize]), Ok(()));
    tables.served.stop();
}

#[test]
fn tables_whose_memory_is_elsewhere_are_told_how_to_get_it_back() {
    let mut tables = WithTables::new("must_survive = [\"process\"]");
    tables.holdfast(&["table", "make", "bank"]).succeeded();
    tables.served.serve();
    made(&tables.client());
    tables.kill();
    let path = tables.served.path("holdfast.toml");
    let before = fs::read_to_string(&path).unwrap();
    let (was, other) = (format!("{:?}", tables.region), tables.region.with_extension("other"));
    fs::write(&path, before.replace(&was, &format!("{other:?}"))).unwrap();
    tables.served.serve();
    let told = tables.status().to_string();
    for words in ["set memory.path = ", "and stop the keeper with `holdfast shutdown` before"] {
        assert!(told.contains(words) && !told.contains("unmount"), "{told}");
    }
    tables.holdfast(&["shutdown"]).succeeded();
    tables.served.stop_ended();
    fs::write(&path, before).unwrap();
    tables.served.serve();
    assert_eq!(check(&tables.client(), &[0; CLIENTS as usize]), Ok(()), "nothing is lost");
    tables.served.stop();
}

#[test]
fn tables_whose_memory_is_of_an_earlier_run_of_the_system_go_on_with_what_the_disk_has() {
    let mut tables = WithTables::new("");
    let path = tables.served.path("holdfast.toml");
    let text = fs::read_to_string(&path).unwrap();
    let (log, table) = text.split_once("[table.bank]").unwrap();
    let table = table.replace("\"shm\"", "\"file\"");
    fs::write(&path, format!("{log}[table.bank]{table}")).unwrap();
    tables.holdfast(&["table", "make", "bank"]).succeeded();
    tables.served.serve();
    made(&tables.client());
    tables.kill();
    let mut earlier = fs::read(&tables.region).unwrap();
    earlier[BOOT].fill(1);
    fs::write(&tables.region, &earlier).unwrap();
    tables.served.restart();
    tables.served.serve();
    assert_eq!(tables.status()["state"], "served", "{}", tables.status());
    assert_eq!(check(&tables.client(), &[0; CLIENTS as usize]), Ok(()));
    let told = fs::read_to_string(tables.served.path("keeper.log")).unwrap();
    assert!(told.contains("from the log anew"), "{told}");
    tables.served.stop();
    tables.holdfast(&["table", "check", "bank"]).succeeded();
}

#[test]
fn tables_whose_memory_loses_its_name_are_told_and_outlive_their_server() {
    let mut tables = WithTables::new("must_survive = [\"process\"]");
    tables.holdfast(&["table", "make", "bank"]).succeeded();
    tables.served.serve();
    made(&tables.client());
    fs::remove_file(&tables.region).unwrap();
    let status = tables.status();
    let told = status["problem"].to_string();
    assert!(told.contains("the name of its memory is gone"), "{status}");
    assert_eq!(status["verdict"]["survives"].as_array().map(Vec::len), Some(0), "{status}");
    kill(tables.served.server_pid(), Signal::KILL);
    assert_eq!(check(&tables.client(), &[0; CLIENTS as usize]), Ok(()), "nothing is lost");
    wait_until(|| tables.status()["problem"].is_null(), || tables.status().to_string());
    tables.served.stop();
}

#[test]
fn tables_whose_memory_is_gone_are_refused_until_somebody_says_to_go_on() {
    let mut tables = WithTables::new("must_survive = [\"process\"]");
    tables.holdfast(&["table", "make", "bank"]).succeeded();
    tables.served.serve();
    made(&tables.client());
    tables.kill();
    let away = tables.region.with_extension("away");
    fs::rename(&tables.region, &away).unwrap();
    tables.served.serve();
    let told = tables.status()["last_error"].to_string();
    for words in ["is gone, although", "`holdfast table accept bank --memory-lost`"] {
        assert!(told.contains(words), "{told}");
    }
    tables.holdfast(&["table", "accept", "bank", "--memory-lost"]).expect(5, &["shutdown"]);
    tables.served.stop();
    tables.holdfast(&["table", "check", "bank"]).expect(6, &["put it back"]);
    fs::rename(&away, &tables.region).unwrap();
    tables.served.serve();
    assert_eq!(check(&tables.client(), &[0; CLIENTS as usize]), Ok(()), "nothing is lost");
    tables.kill();
    fs::remove_file(&tables.region).unwrap();
    let said = tables.holdfast(&["table", "accept", "bank", "--memory-lost"]).succeeded().out;
    assert!(said.contains("at most 8.0 MiB of acknowledged changes may be lost"), "{said}");
    tables.served.serve();
    assert_eq!(tables.status()["state"], "served", "{}", tables.status());
    tables.served.stop();
    fs::remove_file(&tables.region).unwrap();
    tables.holdfast(&["table", "check", "bank"]).succeeded();
}
