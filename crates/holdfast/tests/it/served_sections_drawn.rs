//! Sections of served logs, disks, tables and snapshots that operators rename, remove, move,
//! exchange and put back while a keeper has them and between keepers, drawn from a seed.
//!
//! Whatever is drawn, what is served is shown under the name by which clients find it, and whoever
//! is shown as served can be used; what the configuration has otherwise is told, with a way out
//! that works; nothing acknowledged is lost.

use crate::fixture::{Fixture, kill, wait_until};
use crate::nbd::Client;
use crate::seeds::{Random, for_seeds};
use holdfast_client::{LogClient, ResponderClient};
use holdfast_log::CommitLog;
use holdfast_table::{Kind as Field, Outcome, Request, Schema, decode_answer, row};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

const SEEDS: u64 = 2;
const STEPS: u32 = 18;

/// So much advice one after the other ends in everything being served.
const ADVICE_MAX: u32 = 4;

/// The size of a disk, as the client of a network block device expects it.
const DISK: &str = "32MiB";
const BLOCK_BYTES: usize = 4096;

/// The way out that is named.
const WAY_OUT: &str = "`holdfast shutdown`, then start the keeper again";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Log,
    Disk,
    DiskAlone,
    Table,
    Snapshot,
}

impl Kind {
    /// The key of its sections, and of its list in a status.
    fn keys(self) -> (&'static str, &'static str) {
        match self {
            Kind::Log => ("log", "logs"),
            Kind::Disk | Kind::DiskAlone => ("disk", "disks"),
            Kind::Table => ("table", "tables"),
            Kind::Snapshot => ("snapshot", "snapshots"),
        }
    }
}

impl Kind {
    fn is_of_server(self) -> bool {
        self != Kind::DiskAlone
    }
}

const KINDS: [Kind; 7] =
    [Kind::Log, Kind::Log, Kind::Disk, Kind::DiskAlone, Kind::Table, Kind::Table, Kind::Snapshot];

/// A section as it stands in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Section {
    name: u64,
    /// Its memory is said to be at another place, where there is none.
    is_elsewhere: bool,
    clients_max: u32,
}

/// One thing that is served.
#[derive(Clone, Copy, Debug)]
struct Thing {
    kind: Kind,
    configured: Option<Section>,
    /// As the keeper found it when it started.
    begun: Option<Section>,
    /// Whether the status said so when the keeper had started.
    is_served: bool,
    /// So many values were acknowledged.
    values: u64,
}

struct World {
    fixture: Fixture,
    things: Vec<Thing>,
}

impl World {
    fn new() -> World {
        let number = |index: usize| (index % 2) as u64;
        let thing = |(index, kind): (usize, &Kind)| {
            let made = Section { name: number(index), is_elsewhere: false, clients_max: 60 };
            Thing { kind: *kind, configured: Some(made), begun: None, is_served: false, values: 0 }
        };
        let things = KINDS.iter().enumerate().map(thing).collect();
        let mut world = World { fixture: Fixture::new(), things };
        world.configure();
        for index in 0..world.things.len() {
            let name = world.name(index);
            let (kind, _) = world.things[index].kind.keys();
            world.fixture.holdfast(&[kind, "make", &name]).succeeded();
        }
        world.start();
        world
    }

    fn name_of(kind: Kind, section: Section) -> String {
        format!("{}{}", kind.keys().0, section.name)
    }

    /// Its name in the configuration.
    fn name(&self, index: usize) -> String {
        let thing = &self.things[index];
        World::name_of(thing.kind, thing.configured.unwrap())
    }

    fn memory(&self, index: usize, is_elsewhere: bool) -> PathBuf {
        let mut path = self.fixture.region.clone().into_os_string();
        path.push(format!("-{index}{}", if is_elsewhere { "b" } else { "" }));
        path.into()
    }

    fn socket(&self) -> PathBuf {
        self.fixture.path("run/server.sock")
    }

    fn nbd(&self, index: usize) -> PathBuf {
        self.fixture.path(&format!("nbd{index}"))
    }

    fn configure(&self) {
        let all = self.fixture.config_text();
        let mut text = all.split("[volume.").next().unwrap().to_owned();
        for (index, thing) in self.things.iter().enumerate() {
            let Some(section) = thing.configured else { continue };
            let (key, name) = (thing.kind.keys().0, World::name_of(thing.kind, section));
            let memory = self.memory(index, section.is_elsewhere);
            let folder = self.fixture.path(&format!("folder{index}"));
            let nbd = format!("nbd = [\"unix:{}\"]", self.nbd(index).display());
            let clients = format!("clients_max = {}", section.clients_max);
            let (size, lines) = match thing.kind {
                Kind::Log => (", size = \"8MiB\"", format!("log = {folder:?}\n{clients}")),
                Kind::Table => (", size = \"8MiB\"", format!("store = {folder:?}\n{clients}")),
                Kind::Disk => ("", format!("size = {DISK:?}\n{nbd}\n{clients}")),
                Kind::DiskAlone => ("", format!("size = {DISK:?}\n{nbd}\nway = \"direct\"")),
                Kind::Snapshot => ("", format!("size = \"16MiB\"\n{clients}")),
            };
            text += &format!(
                "[{key}.{name}]\nmemory = {{ medium = \"shm\"{size}, path = {memory:?} }}\n\
                 must_survive = [\"process\"]\n{lines}\n"
            );
        }
        self.fixture.configure(&text);
    }

    fn start(&mut self) {
        self.fixture.begin_to_serve();
        self.things.iter_mut().for_each(|it| it.begun = it.configured);
        let is_decided = |it: &Value| !matches!(it["state"].as_str(), None | Some("starting"));
        let has_server = self.things.iter().any(|it| it.begun.is_some() && it.kind.is_of_server());
        let is_there = || {
            let report = self.report();
            let disks = report["disks"].as_array().into_iter().flatten();
            let mut disks = disks.filter(|it| it["problem"].is_null());
            let has_come =
                |disk: &Value| disk["last_error"].is_string() || is_decided(&disk["front_end"]);
            let server = !has_server || is_decided(&report["server"]);
            report["keeper"].is_object() && server && disks.all(has_come)
        };
        if self.things.iter().any(|it| it.begun.is_some()) {
            wait_until(is_there, || format!("{}\n{}", self.report(), self.fixture.keeper_log()));
        }
        let report = self.report();
        for index in 0..self.things.len() {
            let Thing { kind, begun, .. } = self.things[index];
            let shown = begun.and_then(|begun| self.shown(&report, kind, begun));
            self.things[index].is_served = shown.is_some_and(|it| it["state"] == "served");
        }
        self.check_values();
    }

    fn report(&self) -> Value {
        serde_json::from_str(&self.fixture.holdfast(&["status", "--json"]).out).unwrap_or_default()
    }

    fn is_served(&self, index: usize) -> bool {
        self.things[index].is_served
    }

    fn step(&mut self, random: &mut Random) -> String {
        let index = random.below(self.things.len() as u64) as usize;
        let did = match random.below(16) {
            0..=2 => self.rename(index, random.below(3)),
            3 | 4 => self.swap(index),
            5 => self.edit(index, |_| None),
            6 => self.edit(index, |it| it.map(|it| Section { is_elsewhere: true, ..it })),
            7 if self.things[index].kind != Kind::DiskAlone => {
                self.edit(index, |it| it.map(|it| Section { clients_max: 61, ..it }))
            }
            8 => self.put_back(index),
            9 => {
                self.fixture.holdfast(&["upgrade", "server"]);
                "the server is upgraded".into()
            }
            10 => self.upgrade_disk(index),
            11 => self.twice(index),
            12 | 13 => self.restart(random.below(2) == 0, random.below(3) == 0),
            _ => "nothing is changed".into(),
        };
        self.write_all();
        self.check_status();
        did
    }

    fn edit(&mut self, index: usize, with: impl Fn(Option<Section>) -> Option<Section>) -> String {
        let thing = &mut self.things[index];
        thing.configured = with(thing.configured);
        self.configure();
        format!("{:?} {index} is {:?}", self.things[index].kind, self.things[index].configured)
    }

    fn is_free(&self, kind: Kind, name: u64) -> bool {
        let is_it = |it: &&Thing| it.kind.keys() == kind.keys();
        self.things.iter().filter(is_it).all(|it| it.configured.is_none_or(|it| it.name != name))
    }

    fn rename(&mut self, index: usize, name: u64) -> String {
        match self.is_free(self.things[index].kind, name) {
            true => self.edit(index, |it| it.map(|it| Section { name, ..it })),
            false => "the name is taken".into(),
        }
    }

    /// Two things of a kind exchange their names.
    fn swap(&mut self, index: usize) -> String {
        let kind = self.things[index].kind;
        let other = (0..self.things.len())
            .find(|it| *it != index && self.things[*it].kind.keys() == kind.keys());
        let Some(other) = other else { return "there is one of a kind".into() };
        let [one, two] = [index, other].map(|it| self.things[it].configured);
        let renamed = |whose: Option<Section>, name: Option<Section>| {
            whose.zip(name).map(|(section, named)| Section { name: named.name, ..section })
        };
        if one.is_none() || two.is_none() {
            return "one of them is not there".into();
        }
        self.things[index].configured = renamed(one, two);
        self.things[other].configured = renamed(two, one);
        self.configure();
        format!("{index} and {other} have exchanged their names")
    }

    /// As the keeper has it, or as it was made.
    fn put_back(&mut self, index: usize) -> String {
        let begun = self.things[index].begun.filter(|it| !it.is_elsewhere);
        let name = (0..3).find(|name| self.is_free(self.things[index].kind, *name)).unwrap_or(3);
        let made = Section { name, is_elsewhere: false, clients_max: 60 };
        let own = self.things[index].configured.take();
        let is_free = |it: &Section| self.is_free(self.things[index].kind, it.name);
        let own = own.map(|it| Section { is_elsewhere: false, ..it });
        let back = begun.filter(is_free).or(own).unwrap_or(made);
        self.edit(index, |_| Some(back))
    }

    /// Another section says the same paths: nothing is done with such a configuration, and what is
    /// served goes on.
    fn twice(&mut self, index: usize) -> String {
        if self.things[index].configured.is_none() {
            return "it is not there".into();
        }
        let text = fs::read_to_string(self.fixture.config()).unwrap();
        let (key, name) = (self.things[index].kind.keys().0, self.name(index));
        let head = format!("[{key}.{name}]");
        let (_, behind) = text.split_once(&head).unwrap();
        let body = behind.split("\n[").next().unwrap();
        self.fixture.configure(&format!("{text}[{key}.again]{body}\n"));
        for command in [&["status"][..], &["upgrade", "disk", "again"], &["shutdown"]] {
            self.fixture.holdfast(command).expect(2, &["is already", "nothing was changed"]);
        }
        self.configure();
        "a copy of a section was refused".into()
    }

    fn upgrade_disk(&mut self, index: usize) -> String {
        let thing = &self.things[index];
        let Some(section) = thing.configured.filter(|_| thing.kind.keys().0 == "disk") else {
            return "no disk".into();
        };
        let name = World::name_of(thing.kind, section);
        let has = |it: &Thing| {
            it.kind.keys().0 == "disk" && it.begun.map(|it| it.name) == Some(section.name)
        };
        let ended = self.fixture.holdfast(&["upgrade", "disk", &name]);
        match self.things.iter().any(has) {
            true => assert!(!ended.err.contains("it has none"), "{ended:?}"),
            false => ended.expect(2, &[WAY_OUT]),
        }
        format!("disk {name} was upgraded: {:?}", ended.code)
    }

    /// Ends the keeper, in order or by kills, and starts one.
    fn restart(&mut self, in_order: bool, puts_back: bool) -> String {
        if in_order {
            self.end();
        } else {
            let report = self.report();
            let fronts = report["disks"].as_array().into_iter().flatten();
            let fronts = fronts.filter_map(|it| it["front_end"]["pid"].as_i64());
            let pids: Vec<i64> = fronts.chain(report["server"]["pid"].as_i64()).collect();
            kill(self.fixture.keeper_pid(), Signal::STOP);
            pids.iter().for_each(|pid| kill(*pid as i32, Signal::KILL));
            self.fixture.kill_keeper();
            let is_gone = |pid: &i64| !fs::exists(format!("/proc/{pid}")).unwrap();
            wait_until(|| pids.iter().all(is_gone), || format!("{pids:?}"));
        }
        if puts_back {
            (0..self.things.len()).for_each(|index| self.move_back(index));
        }
        self.start();
        self.settle();
        format!("the keeper was {}", if in_order { "restarted" } else { "killed and started" })
    }

    fn end(&mut self) {
        self.fixture.holdfast(&["shutdown"]).succeeded();
        self.fixture.reap();
    }

    fn move_back(&mut self, index: usize) {
        self.edit(index, |it| it.map(|it| Section { is_elsewhere: false, ..it }));
    }

    /// Does what is said of what is not served until all is.
    fn settle(&mut self) {
        for _ in 0..ADVICE_MAX {
            let is_left = |index: &usize| {
                self.things[*index].begun.is_some() && !self.things[*index].is_served
            };
            let left: Vec<usize> = (0..self.things.len()).filter(is_left).collect();
            if left.is_empty() {
                return;
            }
            let report = self.report();
            self.end();
            left.into_iter().for_each(|index| self.mend(index, &report));
            self.start();
        }
        panic!("advice without end: {}", self.report());
    }

    fn mend(&mut self, index: usize, report: &Value) {
        let Thing { kind, begun, .. } = self.things[index];
        let shown = self.shown(report, kind, begun.unwrap()).unwrap();
        let why = shown["last_error"].as_str().unwrap_or_else(|| panic!("{shown}"));
        println!("  {kind:?} {index}: {why}");
        let accept = why.split('`').find(|it| it.contains("accept"));
        match accept.filter(|_| !begun.unwrap().is_elsewhere) {
            Some(accept) => {
                let words: Vec<&str> = accept.split(' ').skip(1).collect();
                self.fixture.holdfast(&words).succeeded();
            }
            None => self.move_back(index),
        }
    }

    fn write_all(&mut self) {
        for index in 0..self.things.len() {
            if self.is_served(index) {
                let value = self.things[index].values;
                self.write(index, value);
                self.things[index].values += 1;
            }
        }
    }

    fn log(&self, index: usize) -> LogClient {
        let thing = &self.things[index];
        let name = World::name_of(thing.kind, thing.begun.unwrap());
        LogClient::connect(&self.socket(), &name).unwrap()
    }

    fn table(&self, index: usize) -> ResponderClient {
        let thing = &self.things[index];
        let name = World::name_of(thing.kind, thing.begun.unwrap());
        ResponderClient::connect(&self.socket(), &format!("table/{name}")).unwrap()
    }

    fn disk(&self, index: usize) -> Client<UnixStream> {
        Client::new(UnixStream::connect(self.nbd(index)).unwrap()).unwrap()
    }

    fn write(&self, index: usize, value: u64) {
        match self.things[index].kind {
            Kind::Log => drop(self.log(index).append(1, &[&value.to_le_bytes()]).unwrap()),
            Kind::Table => self.insert(index, value),
            Kind::Disk | Kind::DiskAlone => {
                let block = [value as u8; BLOCK_BYTES];
                self.disk(index).write(&block, value * BLOCK_BYTES as u64).unwrap();
            }
            Kind::Snapshot => self.list(index),
        }
    }

    fn insert(&self, index: usize, value: u64) {
        let rows = Schema::new(vec![Field::U64], 1, vec![]).unwrap();
        let request = match value {
            0 => Request::new().make("rows", rows),
            _ => Request::new(),
        };
        let answer = self.table(index).request(&request.insert("rows", row![value]).encode());
        decode_answer(&answer.unwrap()).unwrap().unwrap();
    }

    /// Asks a service of snapshots for what it has, as its client, whatever the configuration says.
    fn list(&self, index: usize) {
        let thing = &self.things[index];
        let name = World::name_of(thing.kind, thing.begun.unwrap());
        drop(ResponderClient::connect(&self.socket(), &format!("snapshot/{name}")).unwrap());
    }

    /// Whatever is served has all that was acknowledged.
    fn check_values(&self) {
        for index in 0..self.things.len() {
            let (kind, values) = (self.things[index].kind, self.things[index].values);
            if !self.is_served(index) || values == 0 {
                continue;
            }
            match kind {
                Kind::Log => self.check_log(index, values),
                Kind::Table => (0..values).for_each(|value| self.check_row(index, value)),
                Kind::Disk | Kind::DiskAlone => {
                    let mut disk = self.disk(index);
                    for value in 0..values {
                        let found = disk.read(BLOCK_BYTES, value * BLOCK_BYTES as u64).unwrap();
                        assert!(found == [value as u8; BLOCK_BYTES], "{kind:?} {index}: {value}");
                    }
                }
                Kind::Snapshot => {}
            }
        }
    }

    fn check_log(&self, index: usize, values: u64) {
        let log = self.log(index);
        let is_durable = || log.marks().durable == log.marks().tail;
        wait_until(is_durable, || format!("{:?}", log.marks()));
        let mut found = Vec::new();
        let (marks, mut read) = (log.marks(), |frame: &holdfast_log::Frame<'_>| {
            found.push(u64::from_le_bytes(frame.payload.try_into().unwrap()));
            true
        });
        log.read(marks.released, marks.durable, &mut read).unwrap();
        assert_eq!(found, (0..values).collect::<Vec<_>>(), "log {index}");
    }

    fn check_row(&self, index: usize, value: u64) {
        let request = Request::new().get("rows", row![value]).encode();
        let answer = self.table(index).request(&request).unwrap();
        let outcomes = decode_answer(&answer).unwrap().unwrap();
        assert_eq!(outcomes, [Outcome::Row(row![value])], "table {index}");
    }

    fn shown(&self, report: &Value, kind: Kind, section: Section) -> Option<Value> {
        let name = World::name_of(kind, section);
        let all = report[kind.keys().1].as_array().unwrap();
        all.iter().find(|it| it["name"] == *name).cloned()
    }

    fn check_status(&self) {
        let report = self.report();
        for (index, thing) in self.things.iter().enumerate() {
            let is_as_begun = thing.configured == thing.begun;
            if let Some(begun) = thing.begun {
                let shown = self.shown(&report, thing.kind, begun);
                let shown = shown.unwrap_or_else(|| panic!("{thing:?} is not told: {report}"));
                let problem = shown["problem"].as_str();
                assert_eq!(problem.is_none(), is_as_begun, "{thing:?}: {shown}");
                assert!(problem.is_none_or(|it| it.contains(WAY_OUT)), "{thing:?}: {shown}");
                let state = shown["state"].as_str().unwrap();
                assert_eq!(state == "served", self.is_served(index), "{thing:?}: {shown}");
            }
            let Some(configured) = thing.configured else { continue };
            let begun_as = |it: &&Thing| {
                it.kind.keys() == thing.kind.keys()
                    && it.begun.map(|it| it.name) == Some(configured.name)
            };
            if self.things.iter().any(|it| begun_as(&it)) {
                continue;
            }
            let shown = self.shown(&report, thing.kind, configured);
            let shown = shown.unwrap_or_else(|| panic!("{thing:?} is not told: {report}"));
            let problem = shown["problem"].as_str().unwrap_or_default();
            assert!(problem.contains(WAY_OUT), "{thing:?}: {shown}");
            assert_ne!(shown["state"], "served", "{thing:?}: {shown}");
            let has_more = thing.kind != Kind::Snapshot;
            let is_used = thing
                .begun
                .is_some_and(|it| has_more || it.is_elsewhere == configured.is_elsewhere);
            let other = thing.begun.map(|it| World::name_of(thing.kind, it)).unwrap_or_default();
            let is_told = problem.contains(&format!("of {} {other} ", thing.kind.keys().0));
            assert_eq!(is_told, is_used, "{thing:?}: {shown}");
        }
        let is_well = self.things.iter().all(|it| it.configured == it.begun)
            && (0..self.things.len())
                .all(|index| self.things[index].begun.is_none() || self.is_served(index));
        assert_eq!(report["health"] == "serving", is_well, "{report}");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.fixture.end_keepers_and_what_serves();
        for index in 0..self.things.len() {
            for is_elsewhere in [false, true] {
                let _ = fs::remove_file(self.memory(index, is_elsewhere));
            }
        }
    }
}

#[test]
fn whatever_becomes_of_their_sections_what_is_served_is_told_truly_and_the_way_out_works() {
    for_seeds("what_is_served_is_told_truly", SEEDS, |seed| {
        let mut random = Random::new(seed);
        let mut world = World::new();
        for step in 1..=STEPS {
            let said = world.step(&mut random);
            println!("seed {seed}, step {step}: {said}");
        }
        world.restart(true, true);
        world.check_status();
    });
}
