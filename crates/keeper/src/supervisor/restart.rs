//! When to start a front end again.
//!
//! Promise: a pure decision from how long front ends lived. The first death is answered at once,
//! so that programs see the shortest pause; deaths at every start are answered more and more slowly
//! and then no longer. One that dies again and again after it was well is replaced for ever, and
//! that is told for as long. What fails for want of something that comes back is tried for ever.
//! Never: looks at a clock or a process.

use holdfast_config::exit::Exit;
use holdfast_config::problem::Problem;
use holdfast_config::shortage::AGAIN;
use std::time::Duration;

/// A front end that served and lived this long was well; the count of deaths begins anew. One that
/// never served may have lived as long only because it waited, for who has what it needs.
pub(crate) const WELL_AFTER: Duration = Duration::from_secs(10);

/// So many deaths in a row, each within [`WELL_AFTER`] of its start, and the keeper gives up; each
/// within [`SOUND_AFTER`], and it is told.
pub(crate) const DEATHS_MAX: u32 = 5;

/// One that lived this long has nothing of what others before it died of.
pub(crate) const SOUND_AFTER: Duration = Duration::from_secs(600);

/// The pause before the second restart in a row; it doubles from there.
const BACK_OFF: Duration = Duration::from_millis(50);

/// The pause before another attempt where the system has not what a start needs: short enough for
/// whoever waits, and too long to be a burden to a machine that has nothing left.
pub(crate) const SHORT_PAUSE: Duration = Duration::from_secs(1);

/// How a front end died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Death {
    /// From start to death.
    pub lived: Duration,
    /// It had reported that it serves.
    pub was_ready: bool,
    /// A signal ended it that is somebody else's doing, not its own.
    pub was_killed: bool,
}

impl Death {
    /// Whether it waited for long, and served nobody.
    pub(crate) fn waited_in_vain(self) -> bool {
        !self.was_ready && self.lived >= WELL_AFTER
    }
}

/// What to do about a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Start another after this pause.
    StartAfter(Duration),
    /// Starting more of them is of no use.
    GiveUp,
}

/// The deaths in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deaths {
    /// Those that speak against another start.
    early: u32,
    /// Of those that served: all within [`SOUND_AFTER`] of a start. What kept one from serving is
    /// told for as long as it does, and over once one serves.
    again: u32,
    /// What the last of these died of.
    why: String,
}

impl Deaths {
    /// Decides about a front end that is not there for this reason.
    ///
    /// A lack that passes says nothing about the next one, and is no death: it is waited out, for
    /// as long as it lasts.
    pub(crate) fn after(&mut self, death: Death, why: &Problem) -> Decision {
        match (why.exit.stays(), why.passes) {
            (_, true) => Decision::StartAfter(SHORT_PAUSE),
            (true, _) => Decision::GiveUp,
            (false, _) => self.another(death, &why.why),
        }
    }

    /// That what `whose` processes die of comes again and again, while the newest has lived for
    /// `lived`.
    pub(crate) fn recurrence(&self, whose: &str, lived: Duration) -> Option<Problem> {
        (self.again >= DEATHS_MAX && lived < SOUND_AFTER).then(|| {
            let (times, within_min, why) = (self.again, SOUND_AFTER.as_secs() / 60, &self.why);
            let why = format!(
                "it has died {times} times in a row, each time within {within_min} min: {why}"
            );
            let remedy = "see the keeper's log for its reason, and mend that; it is started again \
                          each time, and nothing that was acknowledged is lost";
            Problem::new(Exit::Degraded, format!("keeping {whose} served"), why, remedy)
        })
    }

    /// Counts a death and decides.
    ///
    /// A front end that served and was killed from outside says nothing about the next one: it is
    /// replaced at once and not counted, however often that happens.
    fn another(&mut self, death: Death, why: &str) -> Decision {
        if death.was_ready && death.was_killed {
            self.early = 0;
            return Decision::StartAfter(Duration::ZERO);
        }
        if death.was_ready {
            let before = if death.lived >= SOUND_AFTER { 0 } else { self.again };
            self.again = before.saturating_add(1);
            why.clone_into(&mut self.why);
        }
        if death.was_ready && death.lived >= WELL_AFTER {
            self.early = 0;
            return Decision::StartAfter(Duration::ZERO);
        }
        self.early += 1;
        match self.early {
            1 => Decision::StartAfter(Duration::ZERO),
            DEATHS_MAX.. => Decision::GiveUp,
            count => Decision::StartAfter(BACK_OFF * (1 << (count - 2))),
        }
    }
}

/// The problem of what is tried again for as long as it lasts.
pub(crate) fn until_it_passes(problem: Problem) -> Problem {
    if problem.remedy.starts_with(AGAIN) {
        return problem;
    }
    Problem { remedy: format!("{AGAIN} until there is room: end some processes"), ..problem }
}

#[cfg(test)]
mod tests;
