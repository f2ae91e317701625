//! Deaths in a row, and what follows.

use super::*;

fn crash(lived_ms: u64) -> Death {
    let lived = Duration::from_millis(lived_ms);
    Death { lived, was_ready: false, was_killed: false }
}

#[test]
fn the_first_death_is_answered_at_once_and_later_ones_more_slowly() {
    let mut deaths = Deaths::default();
    let answers: Vec<Decision> = (0..5).map(|_| deaths.another(crash(3), "it is broken")).collect();
    let after = |ms| Decision::StartAfter(Duration::from_millis(ms));
    assert_eq!(answers, [after(0), after(50), after(100), after(200), Decision::GiveUp]);
}

#[test]
fn a_lack_that_passes_is_no_death_and_is_waited_out_at_an_even_pace() {
    let mut deaths = Deaths::default();
    let none = std::io::Error::from_raw_os_error(libc::EAGAIN);
    let lack = Problem::caused(Exit::Failed, "starting it", none, "end some processes");
    for _ in 0..1000 {
        assert_eq!(deaths.after(crash(0), &lack), Decision::StartAfter(SHORT_PAUSE));
    }
    let other = Problem::new(Exit::Failed, "starting it", "it is broken", "mend it");
    assert_eq!(deaths.after(crash(0), &other), Decision::StartAfter(Duration::ZERO));
    let lasting = Problem::new(Exit::Damaged, "starting it", "it is damaged", "mend it");
    assert_eq!(deaths.after(crash(0), &lasting), Decision::GiveUp);
}

#[test]
fn a_front_end_that_was_well_for_a_while_starts_the_count_anew() {
    let mut deaths = Deaths::default();
    (0..4).map(|_| crash(9_999)).for_each(|death| _ = deaths.another(death, "it is broken"));
    let well = Death { was_ready: true, ..crash(10_000) };
    assert_eq!(deaths.another(well, "it is broken"), Decision::StartAfter(Duration::ZERO));
    assert_eq!(deaths.another(crash(0), "it is broken"), Decision::StartAfter(Duration::ZERO));
}

#[test]
fn one_that_never_served_was_not_well_however_long_it_waited() {
    let mut deaths = Deaths::default();
    let hindered = Problem::new(Exit::InUse, "starting it", "another has it", "wait for it");
    (0..4).for_each(|_| _ = deaths.after(crash(60_000), &hindered));
    assert_eq!(deaths.after(crash(60_000), &hindered), Decision::GiveUp);
}

#[test]
fn being_killed_while_serving_is_never_held_against_it() {
    let mut deaths = Deaths::default();
    let killed = Death { was_ready: true, was_killed: true, ..crash(1) };
    for _ in 0..1000 {
        assert_eq!(deaths.another(killed, "it is broken"), Decision::StartAfter(Duration::ZERO));
    }
}

#[test]
fn being_killed_before_serving_is_counted_for_the_start_itself_may_be_the_reason() {
    let mut deaths = Deaths::default();
    let killed = Death { was_killed: true, ..crash(1) };
    (0..4).for_each(|_| _ = deaths.another(killed, "it is broken"));
    assert_eq!(deaths.another(killed, "it is broken"), Decision::GiveUp);
}

fn told(deaths: &Deaths, lived_ms: u64) -> Option<Problem> {
    deaths.recurrence("volume v", Duration::from_millis(lived_ms))
}

#[test]
fn what_dies_again_and_again_after_it_was_well_is_told_until_one_of_them_is_sound() {
    let mut deaths = Deaths::default();
    let killed = Death { was_ready: true, was_killed: true, ..crash(1) };
    let well = |lived_ms| Death { was_ready: true, ..crash(lived_ms) };
    let at_once = Decision::StartAfter(Duration::ZERO);
    for count in 1..1000 {
        assert_eq!(deaths.another(well(11_000), "it is broken"), at_once);
        assert_eq!(deaths.another(killed, "it was killed"), at_once);
        assert_eq!(told(&deaths, 0).is_some(), count >= 5, "after {count} deaths");
    }
    let problem = told(&deaths, 599_999).unwrap();
    assert!(problem.why.contains("999 times") && problem.why.contains("broken"), "{problem}");
    assert_eq!(told(&deaths, 600_000), None);
    deaths.another(well(600_000), "it is broken");
    assert_eq!(told(&deaths, 0), None);
}

#[test]
fn what_kept_it_from_serving_is_no_death_of_one_that_was_well_and_hides_none() {
    let mut deaths = Deaths::default();
    let well = Death { was_ready: true, ..crash(11_000) };
    let hindered = Problem::new(Exit::InUse, "starting it", "another has it", "wait for it");
    let broken = Problem::new(Exit::Failed, "serving it", "it is broken", "mend it");
    (0..1000).for_each(|_| _ = deaths.after(crash(0), &hindered));
    assert_eq!(told(&deaths, 0), None);
    for count in 1..10 {
        deaths.after(well, &broken);
        (0..count).for_each(|_| _ = deaths.after(crash(0), &hindered));
        let problem = told(&deaths, 0).map(|problem| problem.why);
        let times = format!("died {count} times");
        let is_told = |why: &String| why.contains(&times) && why.contains("it is broken");
        assert_eq!(problem.as_ref().is_some_and(is_told), count >= 5, "{problem:?}");
    }
}
