//! Signs of life of the processes that serve, and of the memory that they serve.
//!
//! Promise: that a process gives none, or does not answer, is told with what it does instead; that
//! memory has lost its name is told once, and once that it has it again.
//! Never: ends what gives none.

use crate::pulse::{Pulse, what_it_does, why_silent};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::standstill::Standstill;

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

/// Says once that memory has lost its name, and once that it has it again.
pub(crate) fn tell_astray(whose: &str, astray: Option<&str>, was_astray: bool) {
    match astray {
        Some(why) if !was_astray => tracing::error!("{whose}: {why}"),
        None if was_astray => tracing::info!("{whose}: its memory has its name again"),
        _ => {}
    }
}
