//! The life of a process that a keeper has started: what it reports, and when it ends by itself.
//!
//! Promise: a keeper that wants to see signs of life sees them; a process that has lost a thread,
//! or everybody that it could serve for, ends.
//! Never: knows what the process does.

use holdfast_client::ConnectError;
use holdfast_config::problem::Problem;
use holdfast_config::shortage::AGAIN;
use holdfast_front::nbd;
use holdfast_io::private::is_refusal;
use holdfast_keeper::orders::Report;
use holdfast_keeper::pulse;
use holdfast_machine::holders::is_mapped_by;
use holdfast_machine::raw::inherited;
use holdfast_machine::signals::ignore_no_orders;
use holdfast_memory::{Medium, Region};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

/// Says things to the keeper. A keeper that is gone hears nothing, and that is no reason to end.
pub(crate) struct Reporter(pub(crate) File);

impl Reporter {
    pub(crate) fn say(&mut self, report: &Report) {
        let mut line = serde_json::to_vec(report).expect("plain data");
        line.push(b'\n');
        let _ = self.0.write_all(&line);
    }

    /// What nobody reads from any more when the keeper is gone.
    pub(crate) fn to_keeper(&self) -> io::Result<File> {
        self.0.try_clone()
    }

    /// The same, for another thread. Each says a line at once, and none is too long for a pipe to
    /// keep it whole.
    pub(crate) fn try_clone(&self) -> io::Result<Reporter> {
        self.to_keeper().map(Reporter)
    }
}

/// Without the right to choose what it hears, a process is as easily ended as any.
pub(crate) fn be_deaf_to_no_orders() {
    if let Err(error) = ignore_no_orders() {
        tracing::warn!(%error, "signals that order nothing would end this process");
    }
}

/// A front end that lost one of its threads would serve without draining, or drain without serving.
/// It ends instead, and the keeper starts a whole one.
pub(crate) fn end_on_any_panic() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        say(panic);
        std::process::abort();
    }));
}

/// Has this process end, wherever it is, as soon as nobody reads its reports any more.
pub(crate) fn end_with_keeper(reports: &File) -> io::Result<()> {
    let reports = reports.try_clone()?;
    let watch = move || {
        wait_until_unread(&reports);
        tracing::error!("the keeper is gone, and whoever comes after it serves");
        std::process::abort();
    };
    thread::Builder::new().name("orphan".into()).spawn(watch).map(drop)
}

/// For a keeper that wants to see them.
pub(crate) fn give_signs_of_life(pulse: Option<i32>) -> io::Result<()> {
    let pulse = pulse.map(inherited).transpose()?.map(File::from);
    pulse.map_or(Ok(()), |pulse| pulse::beat(pulse, nbd::tls_connections))
}

/// How long a front end without a keeper waits for the server that has its log or disk. Nobody
/// starts another one, unless another keeper does.
const SERVER_PATIENCE: Duration = Duration::from_secs(10);

/// Has this process end when there is neither a keeper nor a server any more: programs on its mount
/// would wait for ever, and hear an error instead. What was acknowledged is in the region.
pub(crate) fn end_with_keeper_and_server(reports: &File, medium: Medium) -> io::Result<()> {
    let reports = reports.try_clone()?;
    let watch = move || {
        wait_until_unread(&reports);
        let mut seen = Instant::now();
        while seen.elapsed() < SERVER_PATIENCE {
            thread::sleep(SERVER_PATIENCE / 40);
            let server = Region::observe(&medium).map(|region| region.server_pid());
            if server.is_ok_and(|pid| is_mapped_by(&medium, pid)) {
                seen = Instant::now();
            }
        }
        tracing::error!("keeper and server are gone, and nobody starts another: ending");
        std::process::abort();
    };
    thread::Builder::new().name("orphan".into()).spawn(watch).map(drop)
}

/// The problem of a server that is not reached. A socket that was taken away is made again by its
/// keeper, which also tells of a stranger's in its place.
pub(crate) fn unless_away(error: &ConnectError, problem: Problem) -> Problem {
    let is_away = |error: &io::Error| {
        let is_absent =
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
        is_absent || is_refusal(error)
    };
    match error {
        ConnectError::Unreachable(error) if is_away(error) => {
            let remedy = format!("{AGAIN}: see `holdfast status` for the server");
            Problem { passes: true, remedy, ..problem }
        }
        _ => problem,
    }
}

/// Returns when nobody has the other end of a pipe any more.
fn wait_until_unread(pipe: &File) {
    // A pipe that cannot be written to any more is reported as an error, asked for or not.
    let mut waited = [PollFd::new(pipe, PollFlags::empty())];
    while poll(&mut waited, None) == Err(Errno::INTR) {}
}
