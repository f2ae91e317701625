//! Hearing what a process says.
//!
//! Promise: a process runs only if there is somebody who hears it, and its end is told last.
//! Never: ends a process.

use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::threads::thread;
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, PipeReader};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::channel;

/// What a process tells.
pub(crate) enum Heard<R> {
    Said(R),
    Ended(ExitStatus),
}

/// Starts a process; `hear` is told on another thread what it says until it ends, then how it
/// ended. Returns its number. The thread is made first: a process whose end nobody hears of would
/// never be replaced.
pub(crate) fn start_heard<R: DeserializeOwned>(
    start: impl FnOnce() -> Outcome<(Child, PipeReader)>,
    hear: impl Fn(Heard<R>) + Send + 'static,
) -> Outcome<u32> {
    let (hand, handed) = channel();
    let listen = move || {
        handed.recv().into_iter().for_each(|(child, reports)| listen(child, reports, &hear))
    };
    thread("reports", listen)
        .map_err(|problem| Problem { what: "starting a process".into(), ..problem })?;
    let (child, reports) = start()?;
    let pid = child.id();
    hand.send((child, reports)).expect("it waits for just this");
    Ok(pid)
}

fn listen<R: DeserializeOwned>(mut child: Child, reports: PipeReader, hear: &impl Fn(Heard<R>)) {
    for line in BufReader::new(reports).lines() {
        let Ok(line) = line else { break };
        match serde_json::from_str(&line) {
            Ok(report) => hear(Heard::Said(report)),
            Err(error) => tracing::warn!(line, %error, "a process said what nobody understands"),
        }
    }
    match child.wait() {
        Ok(status) => hear(Heard::Ended(status)),
        Err(error) => tracing::error!(%error, "waiting for a process"),
    }
}
