//! Whatever happens while a base is replaced, there is one, and it is not older than it may be.

use holdfast_io::fake::{EIO, Effect, FakeFiles, Fault, Mood, Operation};

use super::*;
use crate::restart::analysis_state::tests::Life;

const IDENTITY: &[u8; 16] = b"a store in tests";

fn tag() -> Tag {
    Tag::of(IDENTITY)
}

/// States of one stream, each further on than the one before.
fn states(count: usize) -> Vec<State> {
    let (mut life, mut state) = (Life::new(1), State::new());
    let mut states = vec![state.clone()];
    while states.len() < count {
        life.run(20, |record| state.take(record).expect("it follows"));
        states.push(state.clone());
    }
    states
}

fn load(files: &FakeFiles) -> Result<(Bases, Loaded), LoadError> {
    Bases::load(Arc::new(files.clone()), tag(), Rsn(u64::MAX))
}

/// Writes these states on a new disk until the power fails. Returns how many certainly are there,
/// and from where on records were needed then.
fn write(files: &FakeFiles, states: &[State]) -> (usize, Rsn) {
    let Ok(mut bases) = Bases::create(Arc::new(files.clone()), tag(), &states[0]) else {
        return (0, Rsn::NONE);
    };
    for (written, state) in states.iter().enumerate().skip(1) {
        if bases.write(state).is_err() {
            return (written, bases.needed_from());
        }
    }
    (states.len(), bases.needed_from())
}

#[test]
fn the_newest_is_found_and_the_older_one_says_what_is_needed() {
    let (files, states) = (FakeFiles::new(1), states(5));
    assert!(matches!(load(&files), Err(LoadError::Damaged([BaseFault::Missing, _]))));
    let mut bases = Bases::create(Arc::new(files.clone()), tag(), &states[0]).expect("sound");
    assert_eq!(bases.needed_from(), states[0].at());
    for at in 1..states.len() {
        bases.write(&states[at]).expect("the disk is sound");
        assert_eq!(bases.needed_from(), states[at - 1].at());
        let (found, loaded) = load(&files.after_power_cut_in(Mood::LoseAll, 1)).expect("there");
        assert_eq!(
            (loaded.state.at(), found.needed_from()),
            (states[at].at(), states[at - 1].at())
        );
        assert!(loaded.damaged.is_none());
        let bytes = |state: &State| {
            let mut bytes = Vec::new();
            state.put_whole(&mut bytes);
            bytes
        };
        assert_eq!(bytes(&loaded.state), bytes(&states[at]));
    }
}

/// After a power cut at this operation there is a base; with either one damaged, if there were two,
/// there still is one that is not older than what was needed. False if nothing was cut.
fn survives(operation: u64, seed: u64, mood: Mood, states: &[State]) -> bool {
    let files = FakeFiles::new(seed);
    files.cut_power_at(operation);
    let (written, needed) = write(&files, states);
    let after = files.after_power_cut_in(mood, seed);
    if written > 0 {
        let (_, loaded) = load(&after).expect("one was there");
        assert!(loaded.state.at() >= states[written - 1].at(), "operation {operation}");
    }
    for name in NAMES.iter().filter(|_| written > 1) {
        let after = files.after_power_cut_in(mood, seed);
        after.flip_bit(Path::new(name), 300).expect("it is there");
        let (_, loaded) = load(&after).expect("the other one is sound");
        assert!(loaded.state.at() >= needed && loaded.damaged.is_some(), "operation {operation}");
    }
    written < states.len()
}

#[test]
fn after_a_power_cut_at_any_moment_there_is_one_even_if_the_other_is_damaged_then() {
    let states = states(5);
    for mood in [Mood::LoseAll, Mood::KeepAll, Mood::Subset, Mood::Scatter] {
        for seed in 1..=3 {
            let cuts = (1..).take_while(|operation| survives(*operation, seed, mood, &states));
            assert!(cuts.count() > 20);
        }
    }
}

#[test]
fn a_failure_while_writing_leaves_both() {
    for operation in [Operation::Write, Operation::SyncData, Operation::Rename, Operation::SyncDir]
    {
        let (files, states) = (FakeFiles::new(1), states(4));
        let mut bases = Bases::create(Arc::new(files.clone()), tag(), &states[0]).expect("sound");
        bases.write(&states[1]).expect("the disk is sound");
        files.fail(Fault { operation, skip: 0, effect: Effect::Errno(EIO) });
        assert!(bases.write(&states[2]).is_err());
        assert_eq!(bases.needed_from(), states[0].at());
        let (_, loaded) = load(&files).expect("there are two");
        assert!(loaded.state.at() >= states[1].at() && loaded.damaged.is_none());
        bases.write(&states[3]).expect("the disk is sound again");
        assert_eq!(bases.needed_from(), states[1].at());
    }
}

#[test]
fn each_damaged_bit_is_noticed_and_the_other_one_serves() {
    let (files, states) = (FakeFiles::new(1), states(3));
    let mut bases = Bases::create(Arc::new(files.clone()), tag(), &states[1]).expect("sound");
    bases.write(&states[2]).expect("the disk is sound");
    let bits = 8 * read_all(&files, NAMES[1]).expect("it is there").len() as u64;
    for bit in 0..bits {
        files.flip_bit(Path::new(NAMES[1]), bit).expect("it is there");
        let (bases, loaded) = load(&files).expect("the other one is sound");
        assert!(matches!(loaded.damaged, Some(BaseFault::Check)), "bit {bit}");
        assert_eq!((loaded.state.at(), bases.needed_from()), (states[1].at(), states[1].at()));
        files.flip_bit(Path::new(NAMES[1]), bit).expect("it is there");
    }
    NAMES.iter().for_each(|name| files.flip_bit(Path::new(name), 99).expect("it is there"));
    let lost = load(&files).expect_err("both are damaged");
    assert!(matches!(lost, LoadError::Damaged([BaseFault::Check, BaseFault::Check])), "{lost}");
}

#[test]
fn what_is_another_stores_or_of_another_version_is_told() {
    let (files, states) = (FakeFiles::new(1), states(2));
    Bases::create(Arc::new(files.clone()), tag(), &states[1]).expect("sound");
    let other = Bases::load(Arc::new(files.clone()), Tag::of(b"another in tests"), Rsn(u64::MAX));
    assert!(matches!(other, Err(LoadError::Foreign)), "{other:?}");
    let mut bytes = read_all(&files, NAMES[0]).expect("it is there");
    bytes[8] = 2;
    let check = crc32c(0, &bytes[8..]);
    bytes[4..8].copy_from_slice(&check.to_le_bytes());
    let how = OpenHow { write: true, ..OpenHow::default() };
    let file = files.open(Path::new(NAMES[0]), how).expect("it is there");
    file.write_all_at(&bytes, 0).expect("the disk is sound");
    let found = load(&files);
    assert!(matches!(found, Err(LoadError::OtherVersion { found: 2, known: 1 })), "{found:?}");
}

#[test]
fn unchecked_bases_would_be_lost() {
    use crate::canary::switch_off;
    let off = switch_off(Invariant::BasesAreChecked);
    let states = states(5);
    let lost = (0..200).any(|operation| {
        let files = FakeFiles::new(operation);
        files.cut_power_at(operation);
        let (written, _) = write(&files, &states);
        let found = load(&files.after_power_cut_in(Mood::LoseAll, operation));
        written > 0 && !found.is_ok_and(|(_, it)| it.state.at() >= states[written - 1].at())
    });
    drop(off);
    assert!(lost);
}

#[test]
fn a_base_behind_the_archives_end_does_not_serve() {
    let (files, states) = (FakeFiles::new(1), states(2));
    let mut bases = Bases::create(Arc::new(files.clone()), tag(), &states[0]).expect("sound");
    bases.write(&states[1]).expect("the disk is sound");
    let load = |archived| Bases::load(Arc::new(files.clone()), tag(), archived);
    let (bases, loaded) = load(states[0].at()).expect("the older one serves");
    assert_eq!((loaded.state.at(), bases.needed_from()), (states[0].at(), states[0].at()));
    assert!(matches!(loaded.damaged, Some(BaseFault::Ahead { .. })), "{:?}", loaded.damaged);
    let Err(LoadError::Damaged(faults)) = load(Rsn(states[0].at().get() - 1)) else {
        panic!("neither serves");
    };
    assert!(faults.iter().all(|fault| matches!(fault, BaseFault::Ahead { .. })), "{faults:?}");
}
