//! Files of a store are missing, older, cut short, exchanged or have a bit turned over: one or two
//! at a time, or many that are older or missing together. What the store answers then is right, or
//! it says by name what it cannot answer.
//!
//! A segment of a log is older where the store was closed: what was put last in an opening is in
//! its log and nowhere else until then, so nothing tells it from what was never put.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use holdfast_io::fake::{FakeFiles, Random};
use holdfast_io::{Files, Kind, OpenHow};
use holdfast_store::{
    Config, Direction, Durability, Keep, Rsn, Service, Stat, Store, TransactionError, Tree,
};

use crate::life::{contents, work};
use crate::model::{Contents, Model};
use crate::power::with_seeds;
use crate::support::{config, cut, machine, place};

/// Lives of a store before it is damaged; what they leave are its older copies.
const LIVES: u64 = 4;
const STEPS: u32 = 400;
/// Rounds of all services after which a store has nothing left to do.
const ROUNDS: u32 = 400;
const PAIRS: u64 = 60;
/// How often parts of the archive are taken away, with or without other files.
const LOSSES: u64 = 24;
/// What a store's own threads do in the background. They write no base, so that pages may be clean
/// far behind it.
const BACKGROUND: [Service; 6] = [
    Service::Follow,
    Service::Archive,
    Service::Prepare,
    Service::Clean,
    Service::Merge,
    Service::Undo,
];

/// What every file holds.
type Image = BTreeMap<PathBuf, Vec<u8>>;

/// What happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kinds {
    Missing,
    /// As one of the lives before left it.
    Older,
    Truncated,
    /// Another file has its bytes, and it has that one's.
    Swapped,
    Flipped,
}

const KINDS: [Kinds; 5] =
    [Kinds::Missing, Kinds::Older, Kinds::Truncated, Kinds::Swapped, Kinds::Flipped];

/// One file, and what happens to it.
type Damage = (PathBuf, Kinds);

/// A store before it is damaged.
struct Ground {
    files: FakeFiles,
    now: Image,
    older: Vec<Image>,
    truth: Contents,
}

/// How a damaged store did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Everything was answered, rightly.
    Right,
    /// Some of it was, rightly, and the rest was refused by name.
    InPart,
    /// It was not opened, and said why.
    Refused,
}

/// How often which kind of file with which damage came to what.
type Counts = BTreeMap<(String, Outcome), u64>;

/// A store that cleans as soon as there is something to clean.
fn config_of(seed: u64) -> Config {
    let keep = if seed.is_multiple_of(2) { Keep::All } else { Keep::Repair };
    Config { keep, clean_every_bytes: 1, ..config() }
}

fn read(files: &FakeFiles, path: &Path) -> Vec<u8> {
    let file = files.open(path, OpenHow::default()).expect("the file is there");
    let mut bytes = vec![0; file.metadata().expect("a device").size_bytes as usize];
    file.read_full_at(&mut bytes, 0).expect("a device");
    bytes
}

/// Puts a file in the place of another one, if there is one.
fn put(files: &FakeFiles, path: &Path, bytes: &[u8]) {
    let _may_be_none = files.remove_file(path);
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    let file = files.open(path, how).expect("a device");
    file.write_all_at(bytes, 0).expect("a device");
    file.sync_data().expect("a device");
}

fn image(files: &FakeFiles) -> Image {
    let mut image = Image::new();
    for directory in ["", "log", "archive"] {
        let entries = files.read_dir(Path::new(directory)).expect("a directory");
        for entry in entries.into_iter().filter(|entry| entry.kind == Kind::File) {
            let path = Path::new(directory).join(String::from_utf8_lossy(&entry.name).as_ref());
            image.insert(path.clone(), read(files, &path));
        }
    }
    image
}

/// One step of these services, whatever comes of it. What was refused, if anything was.
fn serve(store: &Store, services: &[Service]) -> (bool, Vec<String>) {
    let (mut did, mut refused) = (false, Vec::new());
    for service in services {
        match store.step(*service) {
            Ok(more) => did |= more,
            Err(error) => refused.push(format!("{service:?}: {error:?}")),
        }
    }
    (did, refused)
}

/// Steps these services until none has anything to do. What was refused in the last round.
fn settle(store: &Store, services: &[Service]) -> Vec<String> {
    for _ in 0..ROUNDS {
        let (did, refused) = serve(store, services);
        if !did {
            return refused;
        }
    }
    vec!["there is no end to it".to_owned()]
}

/// What is done for a store before a life of it ends: nothing, all there is to do, what its threads
/// would do, or a trim.
fn tend(store: &Store, random: &mut Random) {
    match random.below(4) {
        0 => {}
        1 => drop(settle(store, &Service::ALL)),
        2 => drop(settle(store, &BACKGROUND)),
        _ => drop(store.trim().expect("a device")),
    }
}

/// Puts something behind what is durable that nobody asks for. Damage in what a log wrote last,
/// with nothing behind it, cannot be told from a write that was cut.
fn prove(store: &Store) {
    let tree = store.tree("behind").expect("a tree");
    let mut one = store.begin_impatient();
    one.put(&tree, b"key", b"value").expect("room");
    one.commit(Durability::Disk).expect("a device");
}

impl Ground {
    /// A store after some lives, the last of which ended in order if `seed` is even.
    fn of(seed: u64) -> Ground {
        let (mut files, mut model, mut older) = (machine(seed), Model::default(), Vec::new());
        let mut random = Random::new(seed);
        for life in 0..LIVES {
            let (store, _) = Store::open_at(place(&files), &config_of(seed)).expect("a store");
            let tree = store.tree("accounts").expect("a tree");
            // In some nothing is put.
            let steps = if random.chance(20) { 0 } else { STEPS };
            drop(work(&store, &tree, &mut model, seed * LIVES + life, steps).expect("a device"));
            tend(&store, &mut random);
            older.push(image(&files));
            store.sync().expect("a device");
            model.is_durable();
            prove(&store);
            if (seed + life) % 2 == 1 {
                store.close().expect("a device");
            } else {
                drop(store);
            }
            files = cut(&files);
        }
        let now = image(&files);
        older.push(now.clone());
        let (store, _) = Store::open_at(place(&copy(&files)), &config_of(seed)).expect("a store");
        let truth = contents(&store, &store.tree("accounts").expect("a tree")).expect("pages");
        model.found(&truth).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        Ground { files, now, older, truth }
    }

    /// Every file and everything that can happen to it.
    fn singles(&self) -> Vec<Damage> {
        let all = |path: &PathBuf| KINDS.map(|kind| (path.clone(), kind));
        self.now.keys().flat_map(all).collect()
    }

    /// The machine with this damage. None if that changes nothing.
    fn damaged(&self, damage: &[Damage], random: &mut Random) -> Option<FakeFiles> {
        let files = copy(&self.files);
        for (path, kind) in damage {
            let bytes = &self.now[path];
            match kind {
                Kinds::Missing => files.remove_file(path).ok()?,
                Kinds::Older => {
                    if path.starts_with("log") && !self.now.contains_key(Path::new("closed")) {
                        return None;
                    }
                    let others: Vec<_> =
                        self.older.iter().filter_map(|old| old.get(path)).collect();
                    let differ: Vec<_> = others.into_iter().filter(|old| *old != bytes).collect();
                    put(&files, path, pick(&differ, random)?);
                }
                Kinds::Truncated => {
                    let length = random.below(bytes.len() as u64) as usize;
                    put(&files, path, &bytes[..length]);
                }
                Kinds::Swapped => {
                    let alike = |other: &&PathBuf| other.parent() == path.parent();
                    let others: Vec<_> = self.now.keys().filter(alike).collect();
                    let other = *pick(&others, random)?;
                    if other == path || self.now[other] == *bytes {
                        return None;
                    }
                    put(&files, path, &self.now[other]);
                    put(&files, other, bytes);
                }
                Kinds::Flipped => {
                    files.flip_bit(path, random.below(8 * bytes.len() as u64)).ok()?;
                }
            }
        }
        Some(files)
    }
}

fn pick<'a, T>(from: &'a [T], random: &mut Random) -> Option<&'a T> {
    let count = from.len() as u64;
    (count > 0).then(|| &from[random.below(count) as usize])
}

/// The same disk, to be damaged on its own.
fn copy(files: &FakeFiles) -> FakeFiles {
    cut(files)
}

/// Whether an operation says by name that a page, or what it needs, is damaged.
fn is_named(error: &TransactionError) -> bool {
    matches!(error, TransactionError::Page(_) | TransactionError::Corrupt { .. })
}

/// Asks for all keys. Whether all were answered.
fn ask(store: &Store, truth: &Contents, when: &str) -> Result<bool, String> {
    answers(store, truth).map_err(|why| format!("{when}: {why}"))
}

fn answers(store: &Store, truth: &Contents) -> Result<bool, String> {
    let tree = match store.find_tree("accounts") {
        Ok(Some(tree)) => tree,
        Ok(None) => return Err("there is no tree".to_owned()),
        Err(error) if is_named(&error) => return Ok(false),
        Err(error) => return Err(format!("the tree: {error:?}")),
    };
    let mut whole = true;
    for (key, value) in truth {
        match store.begin_impatient().get(&tree, key) {
            Ok(found) if found.as_ref() == Some(value) => {}
            Ok(found) => {
                let found = found.map(|value| value.len());
                return Err(format!("{key:?} is {found:?}, not {}", value.len()));
            }
            Err(error) if is_named(&error) => whole = false,
            Err(error) => return Err(format!("{key:?}: {error:?}")),
        }
    }
    Ok(scan(store, &tree, truth)? && whole)
}

/// Walks through all keys. Whether that went to their end.
fn scan(store: &Store, tree: &Tree, truth: &Contents) -> Result<bool, String> {
    let mut reading = store.begin_impatient();
    let mut expected = truth.iter();
    for found in reading.scan::<&[u8]>(tree, .., Direction::Up) {
        match found {
            Ok((key, value)) if expected.next() == Some((&key, &value)) => {}
            Ok((key, _)) => return Err(format!("{key:?} in a scan")),
            Err(error) if is_named(&error) => return Ok(false),
            Err(error) => return Err(format!("a scan: {error:?}")),
        }
    }
    expected.next().map_or(Ok(true), |(key, _)| Err(format!("{key:?} is not in a scan")))
}

/// Changes keys, one by one. What was committed is the truth from then on.
fn change(store: &Store, truth: &mut Contents, random: &mut Random) -> Result<(), String> {
    let Ok(Some(tree)) = store.find_tree("accounts") else { return Ok(()) };
    for _ in 0..4 {
        let (key, value) = (format!("{:02}", random.below(90)).into_bytes(), vec![7; 300]);
        let mut one = store.begin_impatient();
        match one.put(&tree, &key, &value) {
            Ok(()) => {
                one.commit(Durability::Disk).map_err(|error| format!("a commit: {error:?}"))?;
                truth.insert(key, value);
            }
            Err(error) if is_named(&error) => {
                one.abort().map_err(|error| format!("an abort: {error:?}"))?;
            }
            Err(error) => return Err(format!("a put: {error:?}")),
        }
    }
    Ok(())
}

/// Whether the records up to `end` got into the archive and, as far as pages can be had, into the
/// page file.
fn is_through(stat: &Stat, end: Rsn) -> bool {
    stat.archived >= end && stat.cleaned == stat.archived
}

/// Uses a damaged store, closes it, and uses it again. `truth` is what it should have then.
fn examine(
    files: &FakeFiles,
    truth: &mut Contents,
    seed: u64,
    random: &mut Random,
) -> Result<Outcome, String> {
    let store = match Store::open_at(place(files), &config_of(seed)) {
        Ok((store, _)) => store,
        Err(_) => return Ok(Outcome::Refused),
    };
    let mut whole = ask(&store, truth, "at first")?;
    let faults = store.verify(&mut |_| ()).map_err(|error| format!("verify: {error:?}"))?.faults;
    if !whole && faults.is_empty() {
        return Err("verify does not say what is wrong".to_owned());
    }
    change(&store, truth, random)?;
    whole &= ask(&store, truth, "changed")?;
    let end = store.stat().stable;
    let mut refused = settle(&store, &Service::ALL);
    // A transaction that had not ended may have changed a page that cannot be had any more.
    refused.retain(|why| whole || !why.starts_with("Undo: Undo(Page("));
    if !refused.is_empty() {
        return Err(format!("what is left to do is never done: {refused:?}"));
    }
    whole &= ask(&store, truth, "settled")?;
    store.close().map_err(|error| format!("the close: {error:?}"))?;
    let again = Store::open_at(place(files), &config_of(seed));
    let (store, _) = again.map_err(|error| format!("the next open: {error:?}"))?;
    whole &= ask(&store, truth, "opened again")?;
    settle(&store, &Service::ALL);
    if !is_through(&store.stat(), end) {
        return Err(format!("it is not archived and clean: {:?}", store.stat()));
    }
    Ok(if whole { Outcome::Right } else { Outcome::InPart })
}

/// What may close a whole store: what says that it is one, its log, and both of its bases.
fn may_close(damage: &[Damage]) -> bool {
    let in_root = |path: &Path| path.parent() == Some(Path::new(""));
    let is_vital = |(path, kind): &Damage| {
        let is_exchanged = *kind == Kinds::Swapped && in_root(path);
        path == Path::new("store") || path.starts_with("log") || is_exchanged
    };
    let is_base = |(path, _): &&Damage| path.to_string_lossy().starts_with("base-");
    damage.iter().any(is_vital) || damage.iter().filter(is_base).count() > 1
}

/// What the file is, and what happened to it.
fn class_of((path, kind): &Damage) -> String {
    let name = path.to_string_lossy();
    let end = name.find(|letter: char| letter == '-' || letter.is_ascii_digit());
    let name = if name.starts_with("base") { "base" } else { &name[..end.unwrap_or(name.len())] };
    format!("{name} {kind:?}")
}

/// Damages a store in one way. What came of it; none if there is no such damage.
fn strike(ground: &Ground, damage: &[Damage], seed: u64) -> Option<Result<Outcome, String>> {
    let mut random = Random::new(seed);
    let files = ground.damaged(damage, &mut random)?;
    let mut truth = ground.truth.clone();
    let examined = try_to(&files, &mut truth, seed, &mut random);
    let examined = examined.and_then(|outcome| {
        let are_runs = damage.iter().all(|(path, kind)| is_no_log(path) && *kind == Kinds::Missing);
        if outcome != Outcome::Refused && are_runs {
            put_back(ground, &files, &truth, seed)?;
        }
        Ok(outcome)
    });
    Some(match examined {
        Ok(Outcome::Refused) if !may_close(damage) => {
            let error = Store::open_at(place(&files), &config_of(seed)).err();
            Err(format!("it does not open: {error:?}"))
        }
        examined => examined,
    })
}

fn is_no_log(path: &Path) -> bool {
    ["archive", "pages", "versions"].iter().any(|it| path.starts_with(it))
}

/// Puts the runs there again that were missing: then nothing is, whatever became of the store
/// meanwhile. What was in no run yet is another matter: it goes with the newest one, if a base is
/// further than that was.
fn put_back(ground: &Ground, files: &FakeFiles, truth: &Contents, seed: u64) -> Result<(), String> {
    let runs = ground.now.iter().filter(|(path, _)| path.starts_with("archive"));
    for (path, bytes) in runs.clone() {
        if files.metadata(path).is_err() {
            put(files, path, bytes);
        }
    }
    let opened = Store::open_at(place(files), &config_of(seed));
    let (store, _) = opened.map_err(|error| format!("with its runs again: {error:?}"))?;
    if ask(&store, truth, "with its runs again")? {
        return Ok(());
    }
    let newest = runs.filter_map(|(path, _)| end_of_run(path)).max();
    let lost = store.stat().lost_records;
    match lost.iter().any(|(from, _)| Some(from.get()) >= newest) {
        true => Ok(()),
        false => Err(format!("with its runs again it lacks {lost:?}")),
    }
}

fn end_of_run(path: &Path) -> Option<u64> {
    u64::from_str_radix(path.to_str()?.rsplit('-').next()?, 16).ok()
}

/// Examines a store. A panic is wrong, too.
fn try_to(
    files: &FakeFiles,
    truth: &mut Contents,
    seed: u64,
    random: &mut Random,
) -> Result<Outcome, String> {
    let examined = catch_unwind(AssertUnwindSafe(|| examine(files, truth, seed, random)));
    examined.unwrap_or_else(|_| Err("it panics".to_owned()))
}

fn report(counts: &Counts, wrong: &[String]) {
    for ((class, outcome), count) in counts {
        println!("{count:6} {outcome:?}: {class}");
    }
    wrong.iter().take(40).for_each(|wrong| println!("WRONG {wrong}"));
}

/// Damages a store with each of these. Returns how many damaged directories that were.
fn strike_with(ground: &Ground, all: &[Vec<Damage>], seed: u64) -> u64 {
    let (mut counts, mut wrong, mut done) = (Counts::new(), Vec::new(), 0);
    for (at, damage) in all.iter().enumerate() {
        let Some(outcome) = strike(ground, damage, seed ^ (at as u64) << 32) else { continue };
        done += 1;
        let classes: BTreeSet<_> = damage.iter().map(class_of).collect();
        let class = classes.into_iter().collect::<Vec<_>>().join(" and ");
        match outcome {
            Ok(outcome) => *counts.entry((class, outcome)).or_default() += 1,
            Err(why) => wrong.push(format!("{at}: {damage:?}: {why}")),
        }
    }
    report(&counts, &wrong);
    assert!(wrong.is_empty(), "{} of {done} are wrong", wrong.len());
    done
}

fn each_alone(seed: u64) -> u64 {
    let ground = Ground::of(seed);
    let all: Vec<_> = ground.singles().into_iter().map(|one| vec![one]).collect();
    strike_with(&ground, &all, seed)
}

fn two_at_a_time(seed: u64) -> u64 {
    let (ground, mut random) = (Ground::of(seed), Random::new(seed));
    let singles = ground.singles();
    let mut any = || pick(&singles, &mut random).expect("there are files").clone();
    let all: Vec<_> = (0..PAIRS).map(|_| vec![any(), any()]).collect();
    strike_with(&ground, &all, seed)
}

/// Files that go with parts of the archive, if any do.
const WITH_RUNS: [&[&str]; 9] = [
    &[],
    &[],
    &["pages"],
    &["versions"],
    &["pages", "versions"],
    &["base-0"],
    &["base-1"],
    &["closed"],
    &["log/catalogue.copy"],
];

/// Runs of the archive that are missing together: all, the newest, the oldest, or any.
fn some_runs(ground: &Ground, random: &mut Random) -> Vec<PathBuf> {
    let mut runs: Vec<_> = ground.now.keys().filter(|path| path.starts_with("archive")).collect();
    runs.sort_by_key(|path| path.to_string_lossy().rsplit('-').next().map(str::to_owned));
    let from = random.below(runs.len().max(1) as u64) as usize;
    let how = random.below(4);
    let mut is_gone = |at: usize| match how {
        0 => true,
        1 => at >= from,
        2 => at <= from,
        _ => random.chance(50),
    };
    let gone = runs.into_iter().enumerate().filter(|(at, _)| is_gone(*at));
    gone.map(|(_, path)| path.clone()).collect()
}

fn runs_missing(seed: u64) -> u64 {
    let (ground, mut random) = (Ground::of(seed), Random::new(seed));
    let mut any = || {
        let mut gone = some_runs(&ground, &mut random);
        let with = pick(&WITH_RUNS, &mut random).expect("there are some");
        gone.extend(
            ground.now.keys().filter(|path| with.contains(&&*path.to_string_lossy())).cloned(),
        );
        gone.into_iter().map(|path| (path, Kinds::Missing)).collect()
    };
    let all: Vec<_> = (0..LOSSES).map(|_| any()).collect();
    strike_with(&ground, &all, seed)
}

/// Files that are older together.
const PARTS: [&[&str]; 9] = [
    &["pages", "versions"],
    &["pages", "versions", "base-"],
    &["base-"],
    &["log/"],
    &["archive/"],
    &["log/", "archive/"],
    &["log/", "base-"],
    &["pages", "versions", "base-", "archive/", "opened", "closed", "restoring"],
    &["pages", "versions", "archive/"],
];

/// Files that are as they are now while all others are older: what they tell of is nowhere else.
const NEWER: [&[&str]; 5] =
    [&["versions"], &["base-"], &["archive/"], &["base-", "versions"], &["archive/", "versions"]];

fn is_of(part: &[&str], path: &Path) -> bool {
    part.iter().any(|prefix| path.to_string_lossy().starts_with(prefix))
}

/// The machine with some of its files as they were in an earlier life.
fn with_older(ground: &Ground, old: &Image, is_meant: &dyn Fn(&Path) -> bool) -> FakeFiles {
    let files = copy(&ground.files);
    let is_meant = |path: &&PathBuf| is_meant(path) && !path.to_string_lossy().contains(".lost");
    ground.now.keys().filter(is_meant).for_each(|path| files.remove_file(path).expect("it is"));
    old.keys().filter(is_meant).for_each(|path| put(&files, path, &old[path]));
    files
}

/// What the store had in an earlier life, if it was one by then that can be opened.
fn truth_of(ground: &Ground, old: &Image, seed: u64) -> Option<Contents> {
    let files = with_older(ground, old, &|_| true);
    let (store, _) = Store::open_at(place(&files), &config_of(seed)).ok()?;
    contents(&store, &store.find_tree("accounts").ok()??).ok()
}

fn older_together(seed: u64) -> u64 {
    let ground = Ground::of(seed);
    let (mut counts, mut wrong, mut done) = (Counts::new(), Vec::new(), 0);
    let mut strike = |what: String, life: usize, files: &FakeFiles, truth: &Contents| {
        done += 1;
        match try_to(files, &mut truth.clone(), seed, &mut Random::new(seed)) {
            Ok(outcome) => *counts.entry((what, outcome)).or_default() += 1,
            Err(why) => wrong.push(format!("{what} of life {life}: {why}")),
        }
    };
    for (life, old) in ground.older[..LIVES as usize - 1].iter().enumerate() {
        for part in PARTS {
            let files = with_older(&ground, old, &|path| is_of(part, path));
            strike(format!("older {part:?}"), life, &files, &ground.truth);
        }
        let Some(truth) = truth_of(&ground, old, seed) else { continue };
        for part in NEWER {
            let files = with_older(&ground, old, &|path| !is_of(part, path));
            strike(format!("newer {part:?}"), life, &files, &truth);
        }
    }
    report(&counts, &wrong);
    assert!(wrong.is_empty(), "{} of {done} are wrong", wrong.len());
    done
}

#[test]
fn files_that_are_older_together_are_noticed() {
    with_seeds(1..5, "damage::files_that", older_together);
}

#[test]
fn runs_that_are_missing_together_cost_what_they_had() {
    with_seeds(1..5, "damage::runs_that", runs_missing);
}

#[test]
fn pages_that_are_clean_are_there_without_any_archive() {
    let (files, mut truth) = (machine(1), Contents::new());
    for round in 0..2 {
        let (store, _) = Store::open_at(place(&files), &config_of(1)).expect("a store");
        let tree = store.tree("accounts").expect("a tree");
        for key in 0..90 {
            let (key, value) = (format!("{key:02}").into_bytes(), vec![round; 300]);
            let mut one = store.begin();
            one.put(&tree, &key, &value).expect("room");
            one.commit(Durability::Disk).expect("a device");
            truth.insert(key, value);
        }
        store.trim().expect("a device");
        store.close().expect("a device");
    }
    let runs: Vec<_> = image(&files).into_keys().filter(|it| it.starts_with("archive")).collect();
    runs.iter().for_each(|run| files.remove_file(run).expect("it is there"));
    let (store, _) = Store::open_at(place(&files), &config_of(1)).expect("a store");
    let end = store.stat().stable;
    assert!(store.stat().archived < store.stat().cleaned && !store.stat().lost_records.is_empty());
    assert_eq!(ask(&store, &truth, "at first"), Ok(true));
    assert_eq!(settle(&store, &BACKGROUND), [""; 0]);
    assert_eq!(ask(&store, &truth, "settled"), Ok(true));
    assert!(is_through(&store.stat(), end), "{:?}", store.stat());
}

#[test]
fn a_file_that_is_damaged_costs_what_it_had() {
    with_seeds(1..3, "damage::a_file", each_alone);
}

#[test]
fn two_files_that_are_damaged_cost_what_they_had() {
    with_seeds(1..5, "damage::two_files", two_at_a_time);
}

#[test]
fn an_old_a_lost_and_an_invented_key_would_be_noticed() {
    let ground = Ground::of(1);
    let (store, _) = Store::open_at(place(&copy(&ground.files)), &config_of(1)).expect("a store");
    assert_eq!(ask(&store, &ground.truth, "now"), Ok(true));
    let key = ground.truth.keys().next().expect("there are keys").clone();
    let (mut old, mut lost, mut invented) = Default::default();
    for truth in [&mut old, &mut lost, &mut invented] {
        ground.truth.clone_into(truth);
    }
    old.insert(key.clone(), b"as it is now".to_vec());
    lost.insert(b"99 it was committed".to_vec(), Vec::new());
    invented.remove(&key);
    for truth in [old, lost, invented] {
        ask(&store, &truth, "now").expect_err("it is not what was found");
    }
}
