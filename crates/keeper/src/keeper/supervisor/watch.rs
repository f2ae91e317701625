//! Looking at what a front end does, and whether it lives.
//!
//! Promise: a front end that gives no sign of life, a request that it took and does not answer, a
//! drain and a cleaner that do not move, are in the snapshot within [`LOOK_EVERY`] of their bound,
//! and in the keeper's log once.
//! Never: ends what stands still: it has lost nothing, and goes on when its reason is gone.

use super::{Snapshot, State, Supervisor};
use crate::pulse::{Pulse, what_it_does, why_silent};
use holdfast_attach::observe::look;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::standstill::{Marks, Standstill};
use std::time::{Duration, Instant};

/// How often is looked.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What earlier looks saw of this front end.
#[derive(Debug, Default)]
pub(super) struct Watch {
    marks: Marks,
    /// What stood still at the last look.
    told: bool,
    /// The memory had lost its name at the last look.
    astray: bool,
}

/// For signs of life of the processes that serve this.
pub(crate) fn new_pulse(whose: &str) -> Outcome<Pulse> {
    Pulse::new().map_err(|error| {
        let what = format!("preparing to watch over {whose}");
        Problem::caused(Exit::Failed, what, error, "see whether descriptors or memory ran out")
    })
}

/// That a process gives no sign of life, and why, if it does not.
pub(crate) fn silence(pulse: &Pulse, pid: Option<u32>, who: &str) -> Option<Standstill> {
    let (pid, silence) = (pid?, pulse.silence()?);
    let what = format!("{who} (process {pid}) gives no sign of life: {}", why_silent(pid));
    Some(Standstill::new(what, silence))
}

/// That a process has taken a request and does not answer it, if it does not. One that gives no
/// sign of life says nothing of its requests.
pub(crate) fn unanswered(pulse: &Pulse, pid: Option<u32>, who: &str) -> Option<Standstill> {
    let pid = pid.filter(|_| pulse.silence().is_none())?;
    let (time, thread, doing) = pulse.unanswered()?;
    let does = what_it_does(pid, thread);
    let what = format!(
        "{who} (process {pid}) has not answered {doing}: {does}; see whether the disks below it \
         answer"
    );
    Some(Standstill::new(what, time))
}

impl Supervisor {
    /// Looks once more.
    pub(super) fn look(&mut self) {
        let seen = self.orders.volume.as_ref().and_then(|volume| look(&volume.medium()));
        let marks = &mut self.watch.marks;
        let moved = seen.map(|seen| marks.look(seen, Instant::now())).unwrap_or_default();
        let pid = self.shared.lock().front_end_pid;
        let silence = silence(&self.shared.pulse, pid, "its front end");
        let unanswered = unanswered(&self.shared.pulse, pid, "its front end");
        self.tell(silence.iter().chain(&unanswered).chain(&moved));
        let astray = self.shared.astray();
        let was_astray = std::mem::replace(&mut self.watch.astray, astray.is_some());
        tell_astray(&self.orders.whose(), astray.as_ref().map(|it| it.why.as_str()), was_astray);
        let stall = silence.map_or(0, |silence| silence.for_ms);
        self.shared.change(|s| {
            s.standstills = moved;
            note_stall(s, Duration::from_millis(stall));
        });
    }

    fn tell<'a>(&mut self, standing: impl Iterator<Item = &'a Standstill>) {
        let text: Vec<String> = standing.map(ToString::to_string).collect();
        let (volume, stands) = (&self.orders.name, !text.is_empty());
        match (stands, std::mem::replace(&mut self.watch.told, stands)) {
            (true, false) => tracing::warn!(volume, "stands still: {}", text.join("; ")),
            (false, true) => tracing::info!(volume, "goes on"),
            _ => {}
        }
    }
}

/// Says once that memory has lost its name, and once that it has it again.
pub(crate) fn tell_astray(whose: &str, astray: Option<&str>, was_astray: bool) {
    match astray {
        Some(why) if !was_astray => tracing::error!("{whose}: {why}"),
        None if was_astray => tracing::info!("{whose}: its memory has its name again"),
        _ => {}
    }
}

/// A front end that serves and gives no sign of life is none for as long.
fn note_stall(snapshot: &mut Snapshot, stall: Duration) {
    if snapshot.state == State::Serving {
        snapshot.longest_stall = snapshot.longest_stall.max(stall);
    }
}
