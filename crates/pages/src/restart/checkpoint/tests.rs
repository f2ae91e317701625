//! A state and its differences survive as bytes; other bytes are refused.

use super::*;
use crate::restart::analysis_state::tests::{Life, check};

fn whole(state: &State) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.put_whole(&mut bytes);
    bytes
}

fn difference(state: &State) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.put_difference(&mut bytes);
    bytes
}

/// A state after so many records.
fn state(seed: u64, records: u64) -> (Life, State) {
    let (mut life, mut state) = (Life::new(seed), State::new());
    life.run(records, |record| state.take(record).expect("it follows"));
    (life, state)
}

#[test]
fn equal_states_give_equal_bytes_however_they_came_about() {
    for seed in 1..=50 {
        let (mut life, mut folded) = (Life::new(seed), State::new());
        let mut applied = State::new();
        for _ in 0..20 {
            let records = 1 + life.random.below(60);
            life.run(records, |record| folded.take(record).expect("it follows"));
            let bytes = difference(&folded);
            let difference = Difference::parse(&bytes).expect("it was written so");
            assert_eq!((difference.from(), difference.at()), (applied.at(), folded.at()));
            applied.apply(&difference).expect("it follows");
            folded.mark();
            assert_eq!(whole(&applied), whole(&folded), "seed {seed}");
            let parsed = State::parse(&whole(&folded)).expect("it was written so");
            assert_eq!(whole(&parsed), whole(&folded), "seed {seed}");
            check(&parsed, &life);
            if life.random.chance(30) {
                applied = parsed;
            }
        }
    }
}

#[test]
fn a_state_that_was_parsed_goes_on_as_the_one_that_was_written() {
    for seed in 1..=20 {
        let (mut life, mut state) = state(seed, 300);
        let mut parsed = State::parse(&whole(&state)).expect("it was written so");
        state.mark();
        life.run(100, |record| {
            state.take(record).expect("it follows");
            parsed.take(record).expect("it follows");
        });
        assert_eq!(difference(&parsed), difference(&state), "seed {seed}");
    }
}

#[test]
fn a_difference_applies_only_where_it_begins() {
    let (mut life, mut state) = state(1, 100);
    let early = State::parse(&whole(&state)).expect("it was written so");
    state.mark();
    life.run(50, |record| state.take(record).expect("it follows"));
    let bytes = difference(&state);
    let difference = Difference::parse(&bytes).expect("it was written so");
    let elsewhere = Err(StateFault::Elsewhere { from: early.at() });
    assert_eq!(State::new().apply(&difference), elsewhere);
    assert_eq!(state.clone().apply(&difference), elsewhere);
    let mut applied = early;
    applied.apply(&difference).expect("it follows");
    assert_eq!(whole(&applied), whole(&state));
    assert_eq!(applied.apply(&difference), Err(StateFault::Elsewhere { from: difference.from() }));
}

/// Whatever is made of these bytes, it is refused, or it is a state that gives the same bytes.
fn check_bytes(bytes: &[u8]) {
    if let Ok(state) = State::parse(bytes) {
        assert_eq!(whole(&state), bytes);
    }
    if let Ok(difference) = Difference::parse(bytes) {
        let _ = State::new().apply(&difference);
    }
}

#[test]
fn bytes_that_were_changed_are_refused_or_say_something_else() {
    for seed in 1..=4 {
        let (mut life, mut state) = state(seed, 60);
        state.mark();
        life.run(20, |record| state.take(record).expect("it follows"));
        for sample in [whole(&state), difference(&state)] {
            for at in 0..sample.len() {
                check_bytes(&sample[..at]);
                for bit in 0..8 {
                    let mut bytes = sample.clone();
                    bytes[at] ^= 1 << bit;
                    check_bytes(&bytes);
                }
            }
            let long = [&sample[..], &[0]].concat();
            assert!(State::parse(&long).is_err() && Difference::parse(&long).is_err());
        }
    }
}

#[test]
fn what_a_difference_cannot_say_is_refused_and_changes_nothing() {
    let mut state = State::new();
    // From 8 to 20, cleaned 8, next page 1, a slot keeps one body of none.
    let bytes = [DIFFERENCE, 8, 20, 8, 1, 1, 3, 1, 0, 0];
    let difference = Difference::parse(&bytes).expect("it is one");
    assert_eq!(state.apply(&difference), Err(StateFault::Number));
    assert_eq!(whole(&state), whole(&State::new()));
    let refused = |bytes: &[u8]| Difference::parse(bytes).expect_err("it is none");
    assert_eq!(refused(&[]), StateFault::Short);
    assert_eq!(refused(&[WHOLE]), StateFault::Form(WHOLE));
    assert_eq!(refused(&[DIFFERENCE, 8, 20, 21, 1, 0, 0]), StateFault::Number);
    assert_eq!(refused(&[DIFFERENCE, 8, 20, 8, 1, 2, 3, 0, 0, 3, 0, 0, 0]), StateFault::Number);
    assert_eq!(refused(&[DIFFERENCE, 8, 20, 8, 1, 0, 1, 1, 2]), StateFault::Number);
    assert_eq!(refused(&[DIFFERENCE, 8, 20, 8, 2, 0, 1, 1, 0]), StateFault::Number);
    assert_eq!(refused(&[DIFFERENCE, 8, 20, 8, 1, 0, 0, 0]), StateFault::Length);
}
