//! When to start a front end again.
//!
//! Promise: a pure decision from how long front ends lived. The first death is answered at once, so
//! that programs see the shortest pause; deaths at every start are answered more and more slowly and
//! then no longer.
//! Never: looks at a clock or a process.

use std::time::Duration;

/// A front end that lived this long was well; the count of deaths begins anew.
pub(crate) const WELL_AFTER: Duration = Duration::from_secs(10);

/// So many deaths in a row, each within [`WELL_AFTER`] of its start, and the keeper gives up.
pub(crate) const DEATHS_MAX: u32 = 5;

/// The pause before the second restart in a row; it doubles from there.
const BACK_OFF: Duration = Duration::from_millis(50);

/// How a front end died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Death {
    /// From start to death.
    pub lived: Duration,
    /// It had reported that it serves.
    pub was_ready: bool,
    /// SIGKILL or SIGTERM ended it: somebody else's doing, not its own.
    pub was_killed: bool,
}

/// What to do about a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Start another after this pause.
    StartAfter(Duration),
    /// Starting more of them is of no use.
    GiveUp,
}

/// The deaths in a row that speak against another start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deaths(u32);

impl Deaths {
    /// Counts a death and decides.
    ///
    /// A front end that served and was killed from outside says nothing about the next one: it is
    /// replaced at once and not counted, however often that happens.
    pub(crate) fn another(&mut self, death: Death) -> Decision {
        if death.lived >= WELL_AFTER || (death.was_ready && death.was_killed) {
            *self = Deaths(0);
            return Decision::StartAfter(Duration::ZERO);
        }
        self.0 += 1;
        match self.0 {
            1 => Decision::StartAfter(Duration::ZERO),
            DEATHS_MAX.. => Decision::GiveUp,
            count => Decision::StartAfter(BACK_OFF * (1 << (count - 2))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash(lived_ms: u64) -> Death {
        let lived = Duration::from_millis(lived_ms);
        Death { lived, was_ready: false, was_killed: false }
    }

    #[test]
    fn the_first_death_is_answered_at_once_and_later_ones_more_slowly() {
        let mut deaths = Deaths::default();
        let answers: Vec<Decision> = (0..5).map(|_| deaths.another(crash(3))).collect();
        let after = |ms| Decision::StartAfter(Duration::from_millis(ms));
        assert_eq!(answers, [after(0), after(50), after(100), after(200), Decision::GiveUp]);
    }

    #[test]
    fn a_front_end_that_was_well_for_a_while_starts_the_count_anew() {
        let mut deaths = Deaths::default();
        (0..4).map(|_| crash(9_999)).for_each(|death| _ = deaths.another(death));
        assert_eq!(deaths.another(crash(10_000)), Decision::StartAfter(Duration::ZERO));
        assert_eq!(deaths.another(crash(0)), Decision::StartAfter(Duration::ZERO));
    }

    #[test]
    fn being_killed_while_serving_is_never_held_against_it() {
        let mut deaths = Deaths::default();
        let killed = Death { was_ready: true, was_killed: true, ..crash(1) };
        for _ in 0..1000 {
            assert_eq!(deaths.another(killed), Decision::StartAfter(Duration::ZERO));
        }
    }

    #[test]
    fn being_killed_before_serving_is_counted_for_the_start_itself_may_be_the_reason() {
        let mut deaths = Deaths::default();
        let killed = Death { was_killed: true, ..crash(1) };
        (0..4).for_each(|_| _ = deaths.another(killed));
        assert_eq!(deaths.another(killed), Decision::GiveUp);
    }
}
