//! The state of the power: whether what memory alone has survives the loss of the mains.
//!
//! Promise: a pure function of what was told, when, and of what was proved. One bad sign ends
//! [`State::Armed`] in the same step; it begins only after every sign was good for a while; an
//! emergency ends only with the mains; [`State::Safe`] never comes right after [`State::Armed`].
//! Checked for every reachable state and every input (`state/tests.rs`).
//! Never: looks at a clock, a file or a network: whoever asks brings the time.

use std::fmt;

/// What powers the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Line {
    /// The mains.
    Mains,
    /// What was stored before they failed.
    Battery,
}

/// What a source told about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reading {
    /// What powers the machine.
    pub line: Line,
    /// What is stored is almost used up, or the machine was told to go down.
    pub is_low: bool,
    /// It tests itself, or measures its battery.
    pub is_testing: bool,
    /// It would not keep the machine up: it is off or bypassed, has too much to bear, or wants
    /// another battery.
    pub is_faulty: bool,
    /// How long what is stored lasts, in milliseconds, if it knows.
    pub hold_up_ms: Option<u64>,
}

/// What has to hold before memory may acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The hold-up that is believed at most, in milliseconds; what a source that tells none has.
    pub hold_up_ms: Option<u64>,
    /// What is kept for everything else that goes down with the machine, in milliseconds.
    pub reserve_ms: u64,
    /// Less than that, in milliseconds, is no time to drain in.
    pub drain_ms_min: u64,
    /// What was told longer ago, in milliseconds, counts for nothing.
    pub fresh_ms: u64,
    /// How long every sign has to be good, in milliseconds.
    pub settle_ms: u64,
    /// How long a drill proves anything, in milliseconds.
    pub drill_ms: u64,
}

/// What is known in one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// A clock that never goes back and counts while the machine sleeps, in milliseconds.
    pub now_ms: u64,
    /// The last that the source told, and when.
    pub told: Option<(Reading, u64)>,
    /// When a signal said last that the power is about to fail, on the same clock.
    pub noticed_ms: Option<u64>,
    /// How long ago the last drill was, in milliseconds, if one was passed and none has failed
    /// since.
    pub drilled_ms_ago: Option<u64>,
    /// A drill goes on.
    pub is_drilling: bool,
    /// Nothing is in memory alone.
    pub is_drained: bool,
}

/// Where the power stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// No drill has shown lately that what is in memory gets to the disk in time.
    Unproven,
    /// What is stored does not suffice, or has not for long enough.
    Charging,
    /// Memory may acknowledge.
    Armed,
    /// The mains have failed. Memory acknowledges nothing, and is drained.
    OnBattery,
    /// The machine is about to go down, and memory is still drained.
    Draining,
    /// The machine may go down: nothing is in memory alone.
    Safe,
    /// The source tests itself, or a drill goes on.
    Testing,
    /// Nothing is known.
    Stale,
}

/// Why memory may not acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The source has told nothing yet, or nothing that was understood.
    NothingTold,
    /// It has told nothing for so many milliseconds.
    ToldLongAgo(u64),
    /// The mains have failed.
    MainsFailed,
    /// What is stored is almost used up, or the machine was told to go down.
    Low,
    /// A signal said that the power is about to fail, and the source has told nothing since.
    Noticed,
    /// The source tests itself.
    Tests,
    /// A drill goes on.
    Drill,
    /// The source says that it would not keep the machine up.
    Faulty,
    /// No drill was passed with all that there is to drain, or one has failed since.
    NoDrill,
    /// The last one was so many milliseconds ago.
    DrillLongAgo(u64),
    /// The source does not say how long what is stored lasts, and neither does the configuration.
    HoldUpUnknown,
    /// There are so many milliseconds to drain in.
    TooShort(u64),
    /// All has been well for so many milliseconds.
    Settles(u64),
}

/// The power, as it is followed from step to step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Power {
    state: State,
    why: Option<Why>,
    /// Since when every sign has been good, in milliseconds.
    good_since_ms: Option<u64>,
    /// When the last step was, in milliseconds.
    stepped_ms: u64,
}

impl Default for Power {
    fn default() -> Power {
        let (state, why) = (State::Stale, Some(Why::NothingTold));
        Power { state, why, good_since_ms: None, stepped_ms: 0 }
    }
}

impl Terms {
    /// How long may be drained after the mains have failed, in milliseconds: half of what is left
    /// once everything else has its share. The other half is for what nobody has thought of.
    #[must_use]
    pub fn drain_ms(&self, reading: &Reading) -> Option<u64> {
        let bounds = reading.hold_up_ms.into_iter().chain(self.hold_up_ms);
        Some(bounds.min()?.saturating_sub(self.reserve_ms) / 2)
    }
}

impl Power {
    /// Where the power stands.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Why memory may not acknowledge; nothing if it may.
    #[must_use]
    pub fn why(&self) -> Option<Why> {
        self.why
    }

    /// Takes in what is known now, which decides alone but for how long it has been good, and for
    /// an emergency that goes on.
    pub fn step(&mut self, known: &Known, terms: &Terms) {
        // Nobody has looked for longer than anything counts: what was is not known.
        if known.now_ms.saturating_sub(self.stepped_ms) > terms.fresh_ms {
            self.good_since_ms = None;
        }
        let (state, why) = self.next(known, terms);
        let is_good = matches!((state, why), (State::Charging, Some(Why::Settles(_))))
            || state == State::Armed;
        let since = self.good_since_ms.unwrap_or(known.now_ms);
        let good_since_ms = is_good.then_some(since);
        *self = Power { state, why, good_since_ms, stepped_ms: known.now_ms };
    }

    fn next(&self, known: &Known, terms: &Terms) -> (State, Option<Why>) {
        let (state, why) = match fresh(known, terms) {
            _ if is_noticed(known) => (State::Draining, Why::Noticed),
            Ok(reading) if reading.line == Line::Battery => self.on_battery(&reading, terms),
            Ok(reading) => match unfit(&reading, known, terms) {
                Some(unfit) => unfit,
                None => return self.settled(known, terms),
            },
            // With the mains, whoever tells of them may have gone, too.
            Err(why) if self.state.is_emergency() => (self.state, why),
            Err(why) => (State::Stale, why),
        };
        let state = match state {
            // What was drained before memory acknowledged says nothing of what it acknowledged.
            State::Draining if known.is_drained && self.state != State::Armed => State::Safe,
            State::Safe if !known.is_drained => State::Draining,
            state => state,
        };
        (state, Some(why))
    }

    /// The mains have failed. A machine that was told to go down goes, whatever is told then.
    fn on_battery(&self, reading: &Reading, terms: &Terms) -> (State, Why) {
        let goes_down = matches!(self.state, State::Draining | State::Safe);
        let is_over = terms.drain_ms(reading) == Some(0);
        match (goes_down || reading.is_low || is_over, reading.is_testing) {
            (true, _) => (State::Draining, Why::Low),
            (false, true) => (State::Testing, Why::Tests),
            (false, false) => (State::OnBattery, Why::MainsFailed),
        }
    }

    /// Every sign is good: for long enough?
    fn settled(&self, known: &Known, terms: &Terms) -> (State, Option<Why>) {
        let since = self.good_since_ms.unwrap_or(known.now_ms);
        let good_ms = known.now_ms.saturating_sub(since);
        match good_ms >= terms.settle_ms && self.good_since_ms.is_some() {
            true => (State::Armed, None),
            false => (State::Charging, Some(Why::Settles(good_ms))),
        }
    }
}

/// Whether a signal said that the power is about to fail. What the source told until then is over.
fn is_noticed(known: &Known) -> bool {
    let has_told_since = |noticed_ms| known.told.is_some_and(|(_, told_ms)| told_ms > noticed_ms);
    known.noticed_ms.is_some_and(|noticed_ms| !has_told_since(noticed_ms))
}

/// What the source told, if it did lately.
fn fresh(known: &Known, terms: &Terms) -> Result<Reading, Why> {
    let (reading, told_ms) = known.told.ok_or(Why::NothingTold)?;
    // What will be told only later is as unknown as what was told long ago.
    match known.now_ms.checked_sub(told_ms) {
        Some(age_ms) if age_ms <= terms.fresh_ms => Ok(reading),
        age_ms => Err(Why::ToldLongAgo(age_ms.unwrap_or(u64::MAX))),
    }
}

/// What keeps memory from acknowledging although the mains are there.
fn unfit(reading: &Reading, known: &Known, terms: &Terms) -> Option<(State, Why)> {
    let drain_ms = terms.drain_ms(reading);
    let whys = [
        known.is_drilling.then_some((State::Testing, Why::Drill)),
        reading.is_testing.then_some((State::Testing, Why::Tests)),
        reading.is_low.then_some((State::Charging, Why::Low)),
        reading.is_faulty.then_some((State::Charging, Why::Faulty)),
        drain_ms.is_none().then_some((State::Charging, Why::HoldUpUnknown)),
        drain_ms
            .filter(|ms| *ms < terms.drain_ms_min)
            .map(|ms| (State::Charging, Why::TooShort(ms))),
        unproven(known, terms).map(|why| (State::Unproven, why)),
    ];
    whys.into_iter().flatten().next()
}

fn unproven(known: &Known, terms: &Terms) -> Option<Why> {
    match known.drilled_ms_ago {
        None => Some(Why::NoDrill),
        Some(ago_ms) => (ago_ms > terms.drill_ms).then_some(Why::DrillLongAgo(ago_ms)),
    }
}

impl State {
    /// All of them.
    pub const ALL: [State; 8] = [
        State::Unproven,
        State::Charging,
        State::Armed,
        State::OnBattery,
        State::Draining,
        State::Safe,
        State::Testing,
        State::Stale,
    ];

    /// Whether the machine may go down before long.
    #[must_use]
    pub fn is_emergency(self) -> bool {
        matches!(self, State::OnBattery | State::Draining | State::Safe)
    }

    /// What reports and documents call it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            State::Unproven => "unproven",
            State::Charging => "charging",
            State::Armed => "armed",
            State::OnBattery => "on battery",
            State::Draining => "draining",
            State::Safe => "safe",
            State::Testing => "testing",
            State::Stale => "stale",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ms: &u64| ms / 1000;
        let time =
            |ms: &u64| if *ms < 10_000 { format!("{ms} ms") } else { format!("{} s", ms / 1000) };
        match self {
            Why::NothingTold => write!(f, "the source tells nothing that is understood"),
            Why::ToldLongAgo(u64::MAX) => write!(f, "the source told of a time to come"),
            Why::ToldLongAgo(ms) => write!(f, "the source has told nothing for {}", time(ms)),
            Why::MainsFailed => write!(f, "the mains have failed"),
            Why::Low => write!(f, "what is stored is almost used up"),
            Why::Noticed => write!(f, "a signal said that the power is about to fail"),
            Why::Tests => write!(f, "the source tests itself"),
            Why::Drill => write!(f, "a drill goes on"),
            Why::Faulty => write!(f, "the source says that it would not keep the machine up"),
            Why::NoDrill => {
                write!(
                    f,
                    "no drill was passed with the volumes that there are, or the last one failed: \
                     `holdfast drill`"
                )
            }
            Why::DrillLongAgo(ms) => write!(
                f,
                "the last drill was {} days ago; `holdfast drill` is the next",
                seconds(ms) / 86_400
            ),
            Why::HoldUpUnknown => write!(
                f,
                "nobody says how long the stored energy lasts: set hold_up_ms under [power]"
            ),
            Why::TooShort(ms) => write!(f, "what is stored leaves {} to drain in", time(ms)),
            Why::Settles(ms) => write!(f, "all has been well for {} only", time(ms)),
        }
    }
}

#[cfg(test)]
mod tests;
