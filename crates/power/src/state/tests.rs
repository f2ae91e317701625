//! Every reachable state of the power, and every input: told a second time by counting, and
//! compared.

use super::*;
use std::collections::HashSet;

/// A step is a second.
const STEP_MS: u64 = 1000;

const TERMS: Terms = Terms {
    hold_up_ms: None,
    reserve_ms: 4000,
    drain_ms_min: 1000,
    fresh_ms: 2 * STEP_MS,
    settle_ms: 3 * STEP_MS,
    drill_ms: 50 * STEP_MS,
};

/// Later than anything that is told, whatever its age.
const NOW_MS: u64 = 1_000_000;

/// For as long as that every sign has been good, a number of steps counts.
const GOOD_STEPS: u64 = TERMS.settle_ms / STEP_MS;

fn flags() -> [bool; 2] {
    [false, true]
}

fn pairs() -> [(bool, bool); 4] {
    [(false, false), (false, true), (true, false), (true, true)]
}

/// Each kind of reading there is: no hold-up, one that the reserve uses up, one that leaves too
/// little, and two that suffice.
fn readings() -> Vec<Reading> {
    let mut all = Vec::new();
    for line in [Line::Mains, Line::Battery] {
        for is_low in flags() {
            for is_testing in flags() {
                for is_faulty in flags() {
                    for hold_up_ms in [None, Some(4000), Some(5999), Some(6000), Some(u64::MAX)] {
                        all.push(Reading { line, is_low, is_testing, is_faulty, hold_up_ms });
                    }
                }
            }
        }
    }
    all
}

/// Each kind of moment there is.
fn moments() -> Vec<Known> {
    let ages = [0, TERMS.fresh_ms, TERMS.fresh_ms + 1, NOW_MS];
    let told_ms = ages.map(|age_ms| NOW_MS - age_ms).into_iter().chain([NOW_MS + 1]);
    let told_ms: Vec<u64> = told_ms.collect();
    let told = readings()
        .into_iter()
        .flat_map(|reading| told_ms.iter().map(move |at| Some((reading, *at))).collect::<Vec<_>>());
    let told: Vec<_> = told.chain([None]).collect();
    let mut all = Vec::new();
    for told in told {
        for drilled_ms_ago in [None, Some(0), Some(TERMS.drill_ms), Some(TERMS.drill_ms + 1)] {
            for noticed_ms in [None, Some(NOW_MS - TERMS.fresh_ms)] {
                for (is_drilling, is_drained) in pairs() {
                    let now_ms = NOW_MS;
                    all.push(Known {
                        now_ms,
                        told,
                        noticed_ms,
                        drilled_ms_ago,
                        is_drilling,
                        is_drained,
                    });
                }
            }
        }
    }
    all
}

fn fresh_reading(known: &Known) -> Option<Reading> {
    let (reading, at_ms) = known.told?;
    let ages_ms = 0..=TERMS.fresh_ms;
    (at_ms <= known.now_ms && ages_ms.contains(&(known.now_ms - at_ms))).then_some(reading)
}

/// Whether every sign is good, told a second time.
fn is_good(known: &Known) -> bool {
    let is_proved = known.drilled_ms_ago.is_some_and(|ago_ms| ago_ms <= TERMS.drill_ms);
    let is_fit = fresh_reading(known).is_some_and(|it| {
        let lasts = it.hold_up_ms.is_some_and(|ms| ms >= 6000);
        it.line == Line::Mains && !it.is_low && !it.is_testing && !it.is_faulty && lasts
    });
    is_fit && is_proved && !known.is_drilling && !is_noticed(known)
}

/// Whether the last that was heard is a notice, told a second time.
fn is_noticed(known: &Known) -> bool {
    let heard = [known.told.map(|(_, at_ms)| (at_ms, 0)), known.noticed_ms.map(|ms| (ms, 1))];
    heard.into_iter().flatten().max().is_some_and(|(_, kind)| kind == 1)
}

/// The same state of affairs, a step later.
fn a_step_later(power: Power) -> Power {
    let since = power.good_since_ms;
    // What has been good for long enough has been so, however long.
    let oldest = NOW_MS - 2 * TERMS.settle_ms;
    let good_since_ms = since.map(|ms| (ms - STEP_MS).max(oldest));
    Power { good_since_ms, stepped_ms: NOW_MS - STEP_MS, ..power }
}

fn check(before: &Power, steps: u64, known: &Known, after: &Power) {
    let context = || format!("{before:?} after {steps} good steps, {known:?}: {after:?}");
    let is_armed = after.state() == State::Armed;
    assert_eq!(is_armed, is_good(known) && steps >= GOOD_STEPS, "{}", context());
    assert_eq!(is_armed, after.why().is_none(), "{}", context());
    let reading = fresh_reading(known);
    let line = reading.map(|it| it.line);
    let is_emergency = |it: State| matches!(it, State::OnBattery | State::Draining | State::Safe);
    if after.state() == State::Safe {
        assert!(known.is_drained && before.state() != State::Armed, "{}", context());
    }
    if is_emergency(after.state()) {
        let goes_on = is_emergency(before.state()) && reading.is_none();
        let is_told = line == Some(Line::Battery) || is_noticed(known);
        assert!(goes_on || is_told, "{}", context());
    }
    if is_noticed(known) {
        assert!(matches!(after.state(), State::Draining | State::Safe), "{}", context());
    }
    if matches!(before.state(), State::Draining | State::Safe) && line != Some(Line::Mains) {
        assert!(matches!(after.state(), State::Draining | State::Safe), "{}", context());
    }
    if line == Some(Line::Battery) {
        let is_left = matches!(after.state(), State::Testing) || is_emergency(after.state());
        assert!(is_left, "{}", context());
    }
    if reading.is_none() && !is_emergency(before.state()) && !is_noticed(known) {
        assert_eq!(after.state(), State::Stale, "{}", context());
    }
}

#[test]
fn memory_may_acknowledge_exactly_after_every_sign_was_good_for_a_while() {
    let moments = moments();
    let mut seen = HashSet::from([(Power::default(), 0)]);
    let mut open: Vec<(Power, u64)> = seen.iter().copied().collect();
    let mut transitions = 0_u64;
    while let Some((before, steps)) = open.pop() {
        for known in &moments {
            let mut after = before;
            after.step(known, &TERMS);
            let was_good = if is_good(known) { steps } else { 0 };
            check(&before, was_good, known, &after);
            transitions += 1;
            let steps = if is_good(known) { (steps + 1).min(GOOD_STEPS) } else { 0 };
            let next = (a_step_later(after), steps);
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    let states: HashSet<State> = seen.iter().map(|(power, _)| power.state()).collect();
    assert_eq!(states.len(), State::ALL.len(), "{states:?}");
    println!("{} states, {transitions} transitions", seen.len());
}

#[test]
fn half_of_what_the_reserve_leaves_is_for_the_drain() {
    let reading = |hold_up_ms| Reading {
        line: Line::Mains,
        is_low: false,
        is_testing: false,
        is_faulty: false,
        hold_up_ms,
    };
    let drain_ms = |told, believed| {
        let terms = Terms { hold_up_ms: believed, ..TERMS };
        terms.drain_ms(&reading(told))
    };
    assert_eq!(drain_ms(Some(10_000), None), Some(3000));
    assert_eq!(drain_ms(Some(10_000), Some(6000)), Some(1000));
    assert_eq!(drain_ms(Some(6000), Some(10_000)), Some(1000));
    assert_eq!(drain_ms(None, Some(10_000)), Some(3000));
    assert_eq!(drain_ms(Some(3000), None), Some(0));
    assert_eq!(drain_ms(None, None), None);
}

#[test]
fn the_first_sign_that_is_good_is_not_enough_even_where_nothing_has_to_settle() {
    let terms = Terms { settle_ms: 0, ..TERMS };
    let good = moments().into_iter().find(is_good).unwrap();
    let mut power = Power::default();
    power.step(&good, &terms);
    assert_eq!(power.state(), State::Charging);
    power.step(&good, &terms);
    assert_eq!(power.state(), State::Armed);
}

#[test]
fn what_nobody_has_looked_at_for_a_while_has_to_settle_anew() {
    let good = moments().into_iter().find(is_good).unwrap();
    let at = |now_ms: u64| {
        let told = good.told.map(|(reading, _)| (reading, now_ms));
        Known { now_ms, told, ..good }
    };
    let mut power = Power::default();
    let mut now_ms = NOW_MS;
    while power.state() != State::Armed {
        power.step(&at(now_ms), &TERMS);
        now_ms += STEP_MS;
    }
    power.step(&at(now_ms + TERMS.fresh_ms), &TERMS);
    assert_eq!(power.state(), State::Charging, "{power:?}");
}
