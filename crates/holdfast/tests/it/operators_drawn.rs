//! Sequences of what operators do to a volume, drawn from a seed: they mount, unmount, kill, bind a
//! part of the home elsewhere, nest homes, put an older log in the place of the newest, rename the
//! volume, remove its memory and restart the machine, several of them at the same time.
//!
//! Beside the volume stands a model of what was acknowledged. Whatever is drawn, nothing of it is
//! missing that no refusal and no count has named; nothing is attached by two, or that has another
//! way in; and nothing is refused without a reason that doing what is said takes away.

use crate::bound::Bound;
use crate::fixture::{Ended, Fixture, NAME, kill, way};
use crate::seeds::{Random, for_seeds};
use crate::watchdog::processes_of;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SEEDS: u64 = 2;
const STEPS: u32 = 16;

/// So many refusals one after the other end in an attachment.
const REFUSALS_MAX: u32 = 12;

/// Within this time a home is told how far its log has got.
const NOTED: Duration = Duration::from_millis(600);

const FILES: [&str; 3] = ["f", "g", "data/h"];

/// The volume's other name.
const RENAMED: &str = "renamed";

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// A keeper and its front end.
    Served,
    /// A keeper that has nothing attached.
    Idle,
    /// A front end whose keeper was killed.
    Orphan,
    /// Nothing.
    Down,
}

/// What makes a home nobody's to attach, and the word by which that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    Bound,
    Strange,
    Nested,
}

impl Obstacle {
    const ALL: [Obstacle; 3] = [Obstacle::Bound, Obstacle::Strange, Obstacle::Nested];

    fn word(self) -> &'static str {
        match self {
            Obstacle::Bound => "is mounted at",
            Obstacle::Strange => "is not what a volume made there",
            Obstacle::Nested => "lies inside",
        }
    }
}

/// A volume in the hands of operators, and what has to be in it.
struct World {
    /// What [`Obstacle::Bound`] stands for; gone before the directories are.
    bound: Option<Bound>,
    fixture: Fixture,
    life: Life,
    name: &'static str,
    /// An acknowledgement means that the log's disk has it.
    is_durable: bool,
    obstacles: Vec<Obstacle>,
    /// There is a copy of the log from an earlier moment.
    has_copy: bool,
    /// That copy is in the place of the log, which is beside it.
    is_older: bool,
    /// The log has gone on from such a copy, as far as memory had what the copy lacks.
    is_mixed: bool,
    memory_is_gone: bool,
    restarted: bool,
    /// A refusal has named what may be missing, and somebody went on without it.
    is_named: bool,
    expected: BTreeMap<&'static str, String>,
    /// Everything that was ever acknowledged.
    ever: BTreeMap<&'static str, Vec<String>>,
    written: u64,
}

impl World {
    fn new(is_durable: bool) -> World {
        let fixture = Fixture::new();
        for folder in ["data", "sub"] {
            fs::create_dir(fixture.home().join(folder)).unwrap();
        }
        fs::create_dir(fixture.path("mount-w")).unwrap();
        let world = World {
            bound: None,
            fixture,
            life: Life::Down,
            name: NAME,
            is_durable,
            obstacles: Vec::new(),
            has_copy: false,
            is_older: false,
            is_mixed: false,
            memory_is_gone: false,
            restarted: false,
            is_named: false,
            expected: BTreeMap::new(),
            ever: BTreeMap::new(),
            written: 0,
        };
        world.configure();
        world.holdfast(&["volume", "make", NAME]).succeeded();
        world
    }

    fn configure(&self) {
        let mut text = self.fixture.config_text();
        if self.is_durable {
            text = text.replace("[\"process\"]", "[\"process\", \"os\", \"power\"]");
        }
        text = text.replace(&format!("[volume.{NAME}]"), &format!("[volume.{}]", self.name));
        if self.obstacles.contains(&Obstacle::Nested) {
            text += &format!(
                "\n[volume.w]\nhome = {:?}\nmount = {:?}\nlog = {:?}\nmemory = {{ medium = \
                 \"shm\", size = \"8MiB\", path = {:?} }}\nmust_survive = [\"process\"]\n",
                self.fixture.home().join("sub"),
                self.fixture.path("mount-w"),
                self.fixture.path("log-w"),
                self.fixture.block_cache(),
            );
        }
        self.fixture.configure(&text);
    }

    fn holdfast(&self, arguments: &[&str]) -> Ended {
        self.fixture.holdfast(arguments)
    }

    fn step(&mut self, random: &mut Random) -> String {
        match (self.life, random.below(12)) {
            (Life::Served, 0..4) | (Life::Orphan, 0..3) => self.write(random),
            (Life::Served, 4) => self.stop(),
            (Life::Served, 5) | (Life::Orphan, 3..6) => self.umount(),
            (Life::Served, 6) => self.kill_keeper(),
            (Life::Served, 7) | (Life::Orphan, 6) => self.copy_log(),
            (Life::Served, 8) => self.set(Obstacle::Bound),
            (Life::Served, _) => self.kill_all(),
            (Life::Orphan, 7 | 8) => self.serve_in_vain(),
            (Life::Orphan, _) => self.kill_front_end(),
            (Life::Idle, 0..4) => self.mount(random),
            (Life::Idle, 4..6) => self.race_of_mounts(random),
            (Life::Idle, 6) => self.stop(),
            (Life::Down, 0..3) => self.serve(random, 0),
            (Life::Down, 3) => self.serve(random, 2),
            (Life::Down, 4) => self.umount(),
            (Life::Down, 5 | 6) => self.swap_log(),
            (Life::Down, 7) => self.remove_memory(),
            (Life::Down, 8) => self.restart(),
            (Life::Down, 9) => self.rename(),
            (Life::Idle | Life::Down, at) => self.disturb(at, random),
        }
    }

    fn write(&mut self, random: &mut Random) -> String {
        self.written += 1;
        let file = FILES[random.below(FILES.len() as u64) as usize];
        // Some are larger than what a segment has left.
        let text = format!("{} {}", self.written, "x".repeat(random.below(60_000) as usize));
        let path = self.fixture.mount().join(file);
        fs::write(&path, &text).unwrap();
        fs::File::open(&path).unwrap().sync_all().unwrap();
        self.ever.entry(file).or_default().push(text.clone());
        self.expected.insert(file, text);
        format!("write {file}: {}", self.written)
    }

    /// The keeper is told to end: everything comes home.
    fn stop(&mut self) -> String {
        let was_served = self.life == Life::Served;
        assert_eq!(self.fixture.stop(), Some(0), "{}", self.fixture.keeper_log());
        self.life = Life::Down;
        if was_served {
            self.check_home();
            self.is_mixed = false;
        }
        "the keeper ends".into()
    }

    fn umount(&mut self) -> String {
        let ended = self.holdfast(&["umount", self.name]);
        if ended.code != Some(0) {
            assert_eq!(self.life, Life::Down, "{ended:?}");
            assert!(self.has_reason(), "refused without a reason: {ended:?}");
            return format!("unmount, refused: {}", ended.err.trim());
        }
        self.check_home();
        (self.is_older, self.is_mixed) = (false, false);
        self.life = if self.life == Life::Served { Life::Idle } else { Life::Down };
        "unmount".into()
    }

    fn kill_keeper(&mut self) -> String {
        self.fixture.kill_keeper();
        self.life = Life::Orphan;
        "kill the keeper".into()
    }

    fn kill_all(&mut self) -> String {
        self.let_it_be_noted();
        self.fixture.kill_all();
        self.life = Life::Down;
        "kill everything".into()
    }

    /// Until the home says how far its log has got; what is newer is told from nothing.
    fn let_it_be_noted(&self) {
        if self.has_copy {
            std::thread::sleep(NOTED);
        }
    }

    fn kill_front_end(&mut self) -> String {
        self.let_it_be_noted();
        kill(self.fixture.front_end(), Signal::KILL);
        self.fixture.wait_for_state("left in memory");
        self.fixture.wait_until_let_go();
        self.fixture.take_mounts_away();
        self.life = Life::Down;
        "kill the front end".into()
    }

    fn serve_in_vain(&mut self) -> String {
        let ended = self.holdfast(&["serve"]);
        let obstacle = self.obstacles.iter().any(|it| ended.err.contains(it.word()));
        assert!(ended.code == Some(5) || obstacle, "two keepers: {ended:?}");
        "another keeper is refused".into()
    }

    /// A keeper starts, while so many others ask for the volume.
    fn serve(&mut self, random: &mut Random, others: usize) -> String {
        let others: Vec<_> = (0..others).map(|_| self.spawn(&["mount", self.name])).collect();
        let refused = self.fixture.try_to_serve();
        let others: Vec<_> = others.into_iter().map(ended).collect();
        assert!(others.iter().all(|it| it.code.is_some()), "{others:?}");
        self.at_most_one();
        match refused {
            None => self.attached(),
            Some(refusal) => self.refused(&refusal, random),
        }
    }

    fn mount(&mut self, random: &mut Random) -> String {
        let ended = self.holdfast(&["mount", self.name]);
        self.at_most_one();
        match ended.code {
            Some(0) => self.attached(),
            _ => self.refused(&ended, random),
        }
    }

    /// Several operators ask for opposite things at the same time.
    fn race_of_mounts(&mut self, random: &mut Random) -> String {
        let orders = ["mount", "mount", "umount", "mount"];
        let asked: Vec<_> = orders.map(|order| self.spawn(&[order, self.name])).into();
        let ended: Vec<_> = asked.into_iter().map(ended).collect();
        self.at_most_one();
        let state = self.fixture.status()["state"].to_string();
        if state == "\"serving\"" {
            return self.attached();
        }
        let is_mount = |order: &str| order == "mount";
        let mut mounts = orders.iter().zip(&ended).filter(|(order, _)| is_mount(order));
        match mounts.find(|(_, it)| it.code != Some(0)) {
            Some((_, refusal)) if self.has_reason() => {
                let refusal = Ended { err: refusal.err.clone(), out: String::new(), ..*refusal };
                self.refused(&refusal, random)
            }
            _ => {
                let is_away = ["\"detached\"", "\"left in memory\""].contains(&&*state);
                assert!(is_away, "{state} after {ended:?}");
                self.check_home();
                (self.is_older, self.is_mixed) = (false, false);
                "mounts and an unmount at once: it is unmounted".into()
            }
        }
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.fixture.command();
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// No volume has two front ends.
    fn at_most_one(&self) {
        let name = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let is_front = |pid: &i32| name(pid).trim_end() == "holdfast-front";
        let lives =
            |pid: &i32| fs::read(format!("/proc/{pid}/maps")).is_ok_and(|it| !it.is_empty());
        let fronts = processes_of(&self.fixture.config());
        let count = fronts.iter().filter(|pid| is_front(pid) && lives(pid)).count();
        assert!(count <= 1, "{count} front ends");
    }

    fn copy_log(&mut self) -> String {
        let copy = self.fixture.path("log.copy");
        let _ = fs::remove_dir_all(&copy);
        copy_all(&self.fixture.log(), &copy);
        self.has_copy = true;
        "the log is copied".into()
    }

    fn newest(&self) -> PathBuf {
        self.fixture.path("log.newest")
    }

    /// The copy takes the log's place, or the log its own again.
    fn swap_log(&mut self) -> String {
        if !self.has_copy {
            return self.copy_log();
        }
        if self.is_older {
            fs::remove_dir_all(self.fixture.log()).unwrap();
            fs::rename(self.newest(), self.fixture.log()).unwrap();
        } else {
            let _ = fs::remove_dir_all(self.newest());
            fs::rename(self.fixture.log(), self.newest()).unwrap();
            copy_all(&self.fixture.path("log.copy"), &self.fixture.log());
        }
        self.is_older = !self.is_older;
        format!("the log is {}", if self.is_older { "an older copy" } else { "the newest again" })
    }

    fn remove_memory(&mut self) -> String {
        let removed = fs::remove_file(&self.fixture.region).is_ok();
        self.memory_is_gone |= removed;
        format!("the memory is removed: {removed}")
    }

    fn restart(&mut self) -> String {
        self.fixture.restart();
        self.restarted = true;
        "the system restarts".into()
    }

    fn rename(&mut self) -> String {
        self.name = if self.name == NAME { RENAMED } else { NAME };
        self.configure();
        format!("the volume is called {}", self.name)
    }

    fn disturb(&mut self, at: u64, random: &mut Random) -> String {
        let which = Obstacle::ALL[((at + random.below(3)) % 3) as usize];
        match self.obstacles.contains(&which) {
            true => self.clear(which),
            // The configuration of a keeper that runs has to stay one that it accepts.
            false if which == Obstacle::Nested && self.life != Life::Down => {
                self.set(Obstacle::Strange)
            }
            false => self.set(which),
        }
    }

    fn set(&mut self, which: Obstacle) -> String {
        if self.obstacles.contains(&which) {
            return format!("still {which:?}");
        }
        let home = self.fixture.home();
        match which {
            Obstacle::Bound => {
                let place = self.fixture.path("elsewhere");
                self.bound = Some(Bound::at(place, &home.join("data")));
            }
            Obstacle::Strange => {
                // A volume's own is aside meanwhile, if there is any.
                let _ = fs::rename(home.join(".holdfast"), self.fixture.path("own"));
                fs::DirBuilder::new().mode(0o700).create(home.join(".holdfast")).unwrap();
                fs::write(home.join(".holdfast/f"), "precious").unwrap();
            }
            Obstacle::Nested => {}
        }
        self.obstacles.push(which);
        self.configure();
        format!("{which:?}")
    }

    fn clear(&mut self, which: Obstacle) -> String {
        let home = self.fixture.home();
        match which {
            Obstacle::Bound => {
                drop(self.bound.take());
            }
            Obstacle::Strange => {
                let kept = fs::read(home.join(".holdfast/f")).unwrap();
                assert_eq!(kept, b"precious", "what was not ours was changed");
                fs::remove_dir_all(home.join(".holdfast")).unwrap();
                let _ = fs::rename(self.fixture.path("own"), home.join(".holdfast"));
            }
            Obstacle::Nested => {}
        }
        self.obstacles.retain(|it| *it != which);
        self.configure();
        format!("no longer {which:?}")
    }

    fn attached(&mut self) -> String {
        let with = &self.obstacles;
        assert!(with.is_empty() || self.life == Life::Served, "attached although {with:?}");
        self.life = Life::Served;
        self.is_mixed |= self.is_older;
        self.is_older = false;
        self.check(&self.fixture.mount());
        "attach".into()
    }

    fn check_home(&mut self) {
        self.check(&self.fixture.home());
    }

    /// What was acknowledged is there, or it was said that it may not be.
    fn check(&mut self, place: &Path) {
        let found = |file: &str| fs::read_to_string(place.join(file)).unwrap_or_default();
        let status = self.fixture.status();
        let is_counted = self.restarted && !self.is_durable && status["loss"].is_string();
        for (file, text) in &self.expected {
            let seen = found(file);
            let short = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
            let was = seen.is_empty() || self.ever[file].contains(&seen);
            assert!(was, "{file} has what was never written: {:?}", short(&seen));
            assert!(
                seen == *text || self.is_named || is_counted,
                "{file} has {:?}, and {:?} was acknowledged; nothing has named that: {status}",
                short(&seen),
                short(text)
            );
        }
        self.expected = self.expected.keys().map(|file| (*file, found(file))).collect();
        (self.is_named, self.restarted, self.memory_is_gone) = (false, false, false);
    }

    fn has_reason(&self) -> bool {
        let log_is_odd = self.is_older || self.is_mixed;
        !self.obstacles.is_empty() || log_is_odd || self.memory_is_gone || self.restarted
    }

    /// A refusal names what is wrong; what it says is done, or what it names is put right.
    fn refused(&mut self, refusal: &Ended, random: &mut Random) -> String {
        let text = &refusal.err;
        assert!(self.has_reason(), "refused without a reason: {refusal:?}");
        assert!(matches!(refusal.code, Some(1..=6)), "{refusal:?}");
        if let Some(obstacle) = self.obstacles.iter().find(|it| text.contains(it.word())) {
            let cleared = self.clear(*obstacle);
            return format!("refused: {cleared}");
        }
        let stop = if self.life == Life::Idle { self.stop() } else { String::new() };
        if text.contains("`holdfast volume check") && self.is_mixed {
            return self.keep_home();
        }
        let ways = ["--keep log", "--keep home", "--memory-lost", "--home"];
        let mut ways: Vec<_> = ways.into_iter().filter(|way| text.contains(way)).collect();
        ways.truncate(ways.len().min(3));
        let drawn = random.below(ways.len() as u64 + 1) as usize;
        if self.is_older && (drawn == ways.len() || ways.is_empty()) {
            let back = self.swap_log();
            return format!("refused, {stop} {back}");
        }
        let way = *ways.get(drawn).or(ways.first()).unwrap_or_else(|| panic!("no way on: {text}"));
        let words: Vec<_> = way.split(' ').collect();
        let accepted = self.holdfast(&[&["volume", "accept", self.name], &words[..]].concat());
        if accepted.code == Some(0) {
            self.is_named = true;
        } else {
            assert!(!self.obstacles.is_empty() || self.is_older, "{accepted:?} after {text}");
        }
        format!("refused, {stop} accept {way}: {:?}", accepted.code)
    }

    /// The log is damaged, and it is said so.
    fn keep_home(&mut self) -> String {
        let checked = self.holdfast(&["volume", "check", self.name]);
        checked.expect(6, &["acknowledged bytes from", "accept", "--keep home"]);
        let _ = fs::remove_dir_all(self.fixture.path("log.damaged"));
        fs::rename(self.fixture.log(), self.fixture.path("log.damaged")).unwrap();
        self.holdfast(&["volume", "accept", self.name, "--keep", "home"]).succeeded();
        (self.is_named, self.is_mixed) = (true, false);
        "refused: the log is damaged, and the home is kept".into()
    }

    /// In the end all of it is home.
    fn end(&mut self, random: &mut Random) {
        if self.life == Life::Orphan {
            self.umount();
        }
        if self.life == Life::Idle {
            self.stop();
        }
        for attempt in 0.. {
            if self.life == Life::Served {
                break;
            }
            assert!(attempt < REFUSALS_MAX, "refused without end");
            println!("  in the end: {}", self.serve(random, 0));
        }
        self.obstacles.clone().into_iter().for_each(|it| drop(self.clear(it)));
        self.stop();
    }
}

fn ended(child: Child) -> Ended {
    Ended::of(child.wait_with_output().unwrap())
}

fn copy_all(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

#[test]
fn whatever_operators_do_nothing_acknowledged_is_missing_that_nothing_has_named() {
    if way() == "queue" {
        return;
    }
    for_seeds("whatever_operators_do", SEEDS, |seed| {
        let mut random = Random::new(seed);
        let mut world = World::new(seed.is_multiple_of(2));
        for step in 1..=STEPS {
            let said = world.step(&mut random);
            println!("seed {seed}, step {step}: {said}");
        }
        world.end(&mut random);
    });
}

/// The model has to say so of a volume that lost something without a word, and of one that has two
/// ways in.
#[test]
fn a_volume_that_loses_what_it_acknowledged_or_has_a_second_way_in_fails_the_model() {
    let mut random = Random::new(1);
    let fails = |world: &mut World, word: &str, act: &mut dyn FnMut(&mut World)| {
        let act = std::panic::AssertUnwindSafe(|| act(world));
        let failure = std::panic::catch_unwind(act).expect_err("the model saw nothing");
        let text = failure.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(text.contains(word), "{text}");
    };
    let mut world = World::new(true);
    world.serve(&mut random, 0);
    world.write(&mut Random::new(3));
    world.stop();
    let (file, text) = world.expected.first_key_value().map(|(f, t)| (*f, t.clone())).unwrap();
    fs::write(world.fixture.home().join(file), "").unwrap();
    fails(&mut world, "nothing has named that", &mut |world| drop(world.serve(&mut random, 0)));
    fs::write(world.fixture.mount().join(file), text).unwrap();
    world.life = Life::Served;
    world.stop();
    world.obstacles.push(Obstacle::Bound);
    fails(&mut world, "attached although", &mut |world| drop(world.serve(&mut random, 0)));
}
