//! Transactions that change several times what the log's ring and the pool have room for, on a
//! machine whose power is cut at I/Os of chance.
//!
//! Promise: every look at the store, after a cut, by a snapshot or at a restored moment, is refused
//! unless it shows exactly what one transaction left; and not one before the last that was durable.
//! Never: looks at anything but keys and values.

use std::panic::{AssertUnwindSafe, catch_unwind};

use holdfast_io::fake::{FakeFiles, Mood, Random, Sectors};
use holdfast_pages::Rsn;
use holdfast_pages::canary::{Invariant, switch_off};
use holdfast_store::{
    At, Config, Direction, Durability, Service, Snapshot, Store, Transaction, TransactionError,
    Tree, VerifyFault, restore_at,
};

use crate::life::Failed;
use crate::model::Contents;
use crate::power::with_seeds;
use crate::support::{config, cut, machine, open, place, settle, sound};

/// Keys that a transaction gives a value, or takes it from.
const KEYS: u32 = 400;
/// Transactions of a life.
const GENERATIONS: u8 = 3;
/// Cuts of one life.
const CUTS: u64 = 4;

const MOODS: [Mood; 4] = [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter];

/// What a transaction makes of a key; none if it deletes it. With the old values, those of all keys
/// have four times the bytes of the ring.
fn value_of(key: u32, generation: u8) -> Option<Vec<u8>> {
    let is_there = generation > 0 && !(key + u32::from(generation)).is_multiple_of(7);
    let bytes = if key % 97 == 5 { 9000 } else { 500 + key as usize % 900 };
    is_there.then(|| vec![generation; bytes])
}

/// All that a transaction leaves.
fn left_by(generation: u8) -> Contents {
    let value = |key: u32| Some((key.to_be_bytes().to_vec(), value_of(key, generation)?));
    (0..KEYS).filter_map(value).collect()
}

/// Which transaction left this; none if none did.
fn generation_of(found: &Contents) -> Option<u8> {
    let generation = found.values().next().map_or(0, |value| value[0]);
    (left_by(generation) == *found).then_some(generation)
}

/// What transactions were asked for, and how far they are.
#[derive(Clone, Copy, Default)]
struct Told {
    /// The last that was committed.
    committed: u8,
    /// The last that was asked to be.
    asked: u8,
    durable: u8,
}

fn config_of(seed: u64) -> Config {
    // As little as can be, so that all that is put aside has something older behind it, or some.
    let undo_bytes = [0, 16 << 10, 1 << 20][seed as usize % 3];
    Config { undo_bytes, ..config() }
}

/// Everything that the store holds.
fn contents(store: &Store, tree: &Tree) -> Result<Contents, TransactionError> {
    store.begin_impatient().scan::<&[u8]>(tree, .., Direction::Up).collect()
}

/// Opens the store, finds in it what one transaction left, and runs others.
fn life(files: &FakeFiles, told: &mut Told, seed: u64, generations: u8) -> Result<(), Failed> {
    let (store, _) = Store::open_at(place(files), &config_of(seed))?;
    let tree = store.tree("rows")?;
    let found = contents(&store, &tree)?;
    let found = generation_of(&found).ok_or_else(|| wrong(seed, "half of a transaction", &found));
    let found = found.unwrap_or_else(|why| panic!("{why}"));
    assert!((told.durable..=told.asked).contains(&found), "seed {seed}: {found} is there");
    *told = Told { committed: found, asked: found, durable: found };
    let mut random = Random::new(seed);
    for generation in found + 1..=found + generations {
        run(&store, &tree, told, generation, &mut random)?;
    }
    let verified = store.verify(&mut |_| ())?;
    let is_ours = |fault: &VerifyFault| !matches!(fault, VerifyFault::OnDevice(_));
    match verified.faults.iter().find(|(_, fault)| is_ours(fault)) {
        Some(fault) => Err(format!("verify: {fault:?}").into()),
        None => Ok(()),
    }
}

fn wrong(seed: u64, what: &str, found: &Contents) -> String {
    let of = |generation: &u8| found.values().filter(|value| value[0] == *generation).count();
    let counts: Vec<_> = (0..=9).map(|generation| of(&generation)).collect();
    format!("seed {seed}: {what}: keys by generation {counts:?}")
}

/// One transaction, which may be aborted a few times first.
fn run(
    store: &Store,
    tree: &Tree,
    told: &mut Told,
    generation: u8,
    random: &mut Random,
) -> Result<(), Failed> {
    while random.chance(30) {
        let mut one = store.begin_impatient();
        change(store, tree, &mut one, (told.committed, generation), random)?;
        if random.chance(50) { one.abort()? } else { drop(one) }
    }
    let mut one = store.begin_impatient();
    let snapshot = change(store, tree, &mut one, (told.committed, generation), random)?;
    told.asked = generation;
    let durability = if random.chance(70) { Durability::Disk } else { Durability::Memory };
    one.commit(durability)?;
    if durability == Durability::Disk {
        told.durable = generation;
    }
    shows(&snapshot, tree, told.committed)?;
    told.committed = generation;
    Ok(())
}

/// Makes all keys what the generation leaves, with detours, while services take steps. Returns a
/// snapshot that was taken meanwhile.
fn change<'s>(
    store: &'s Store,
    tree: &Tree,
    one: &mut Transaction<'s>,
    (before, generation): (u8, u8),
    random: &mut Random,
) -> Result<Snapshot<'s>, Failed> {
    let (mut saved, mut snapshot) = ((one.savepoint(), 0), None);
    let looks_at = random.below(KEYS.into()) as u32;
    let mut key = 0;
    while key < KEYS {
        match value_of(key, generation) {
            Some(value) => one.put(tree, &key.to_be_bytes(), &value)?,
            None => drop(one.delete(tree, &key.to_be_bytes())?),
        }
        key += 1;
        match random.below(400) {
            0..40 => drop(store.step(Service::ALL[random.below(10) as usize])?),
            40 => saved = (one.savepoint(), key),
            41 => {
                one.roll_back_to(saved.0)?;
                key = saved.1;
            }
            _ => {}
        }
        if key >= looks_at && snapshot.is_none() {
            let taken = store.snapshot()?;
            shows(&taken, tree, before)?;
            snapshot = Some(taken);
        }
    }
    Ok(snapshot.expect("it was taken on the way"))
}

/// The snapshot shows what this transaction left.
fn shows(snapshot: &Snapshot<'_>, tree: &Tree, generation: u8) -> Result<(), Failed> {
    let found = snapshot.scan::<&[u8]>(tree, .., Direction::Up).collect::<Result<Contents, _>>()?;
    let is_right = found == left_by(generation);
    assert!(is_right, "{}", wrong(generation.into(), "a snapshot of generation", &found));
    Ok(())
}

/// Cuts the power at I/Os of chance. Returns how many disks were recovered.
fn cut_sometimes(seed: u64) -> u64 {
    let (files, mut told) = (machine(seed), Told::default());
    let before = files.operations();
    life(&files, &mut told, seed, GENERATIONS).unwrap_or_else(|error| panic!("{seed}: {error}"));
    let (whole, mut random) = (files.operations() - before, Random::new(seed));
    let cuts = (0..CUTS).map(|_| cut_at(seed, 1 + random.below(whole)));
    cuts.sum()
}

fn cut_at(seed: u64, at: u64) -> u64 {
    let (files, mut told) = (machine(seed), Told::default());
    let at = files.operations() + at;
    files.set_sectors(if at.is_multiple_of(3) { Sectors::Garbage } else { Sectors::Whole });
    files.cut_power_at(at);
    let end = life(&files, &mut told, seed, GENERATIONS);
    assert!(end.is_err() && files.operations() >= at, "seed {seed} cut {at}: {end:?}");
    for mood in MOODS {
        let (files, mut told) = (files.after_power_cut_in(mood, seed ^ at), told);
        let end = life(&files, &mut told, seed ^ at, 1);
        assert!(end.is_ok(), "seed {seed} cut {at} {mood:?}: {end:?}");
    }
    MOODS.len() as u64
}

#[test]
fn a_transaction_larger_than_the_ring_is_there_whole_or_not_at_all_after_a_power_cut() {
    with_seeds(1..4, "great::a_transaction_larger", cut_sometimes);
}

/// Restores stores to moments of chance. Returns how many those were.
fn restore_sometimes(seed: u64) -> u64 {
    let (files, mut told) = (machine(seed), Told::default());
    life(&files, &mut told, seed, GENERATIONS).unwrap_or_else(|error| panic!("{seed}: {error}"));
    let (store, _) = Store::open_at(place(&files), &config_of(seed)).expect("it opens");
    let (end, mut random) = (store.stat().stable.get(), Random::new(seed));
    store.close().expect("a device");
    for _ in 0..CUTS {
        let (to, at) = (machine(seed + 1), Rsn(end / 20 + random.below(end - end / 20)));
        restore_at(&place(&files), At::Rsn(at), &place(&to), &config(), &mut |_| ())
            .unwrap_or_else(|error| panic!("seed {seed} at {at}: {error}"));
        let (store, _) = open(&to);
        let tree = store.tree("rows").expect("a tree");
        let found = contents(&store, &tree).expect("pages");
        assert!(generation_of(&found).is_some(), "at {at}: {}", wrong(seed, "half", &found));
        settle(&store);
        sound(&store);
    }
    CUTS
}

#[test]
fn a_moment_within_it_is_restored_without_it() {
    with_seeds(1..3, "great::a_moment", restore_sometimes);
}

/// Whether the generator notices that this does not hold.
fn is_noticed(invariant: Invariant) -> bool {
    let _off = switch_off(invariant);
    catch_unwind(AssertUnwindSafe(|| (1..5).map(cut_sometimes).sum::<u64>())).is_err()
}

#[test]
fn changes_that_lie_elsewhere_and_are_not_locked_would_be_noticed() {
    assert!(is_noticed(Invariant::LosersAreLocked));
}

#[test]
fn snapshots_that_show_them_would_be_noticed() {
    assert!(is_noticed(Invariant::SnapshotsUndoWhatRuns));
}

#[test]
fn a_transaction_may_change_far_more_than_it_has_in_memory() {
    let (store, _) = open(&machine(1));
    let tree = store.tree("rows").expect("a tree");
    for commits in [false, true] {
        let mut one = store.begin();
        for round in 0..6_000_u32 {
            one.put(&tree, &(round % 10).to_be_bytes(), &[round as u8; 1500]).expect("room");
        }
        if commits {
            one.commit(Durability::Disk).map(drop).expect("a log")
        } else {
            drop(one)
        }
        let values = contents(&store, &tree).expect("pages");
        assert_eq!(values.len(), if commits { 10 } else { 0 });
    }
    settle(&store);
    assert_eq!(sound(&store).unreached, []);
}

#[test]
fn what_lay_elsewhere_is_free_when_its_transaction_ends() {
    for seed in 0..3 {
        let files = machine(seed);
        let (store, _) = Store::open_at(place(&files), &config_of(seed)).expect("it opens");
        let tree = store.tree("rows").expect("a tree");
        let mut random = Random::new(seed);
        let mut one = store.begin_impatient();
        drop(change(&store, &tree, &mut one, (0, 1), &mut random).expect("room"));
        one.abort().expect("room");
        let mut one = store.begin_impatient();
        drop(change(&store, &tree, &mut one, (0, 1), &mut random).expect("room"));
        one.commit(Durability::Disk).expect("room");
        settle(&store);
        assert_eq!(sound(&store).unreached, [], "seed {seed}");
        drop(store);
        let (store, recovery) = open(&cut(&files));
        assert_eq!((recovery.losers, sound(&store).unreached), (0, vec![]), "seed {seed}");
    }
}
