//! Printing.
//!
//! Promise: results go to standard output, once, as text or JSON; progress and errors go to
//! standard error, so that a pipe sees results only. Whoever stops reading, as `head` does, ends a
//! command quietly, with the code of a program that SIGPIPE ended.
//! Whatever is in a line, a terminal shows it and obeys none of it.
//! Never: decides what is said; panics because nobody listens.

mod unread;

use holdfast_config::exit::Exit;
use holdfast_config::problem::Problem;
use holdfast_io::Shown;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How results are printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// As JSON.
    pub json: bool,
}

impl Output {
    /// The form of everything that this process says.
    pub(crate) fn of_this_process(json: bool) -> Output {
        AS_JSON.store(json, Ordering::Relaxed);
        Output { json }
    }

    /// Prints a result in one of its two forms.
    pub(crate) fn result(self, value: &impl Serialize, text: &str) {
        match self.json {
            true => print(&serde_json::to_string(value).expect("plain data")),
            false => print(text.trim_end()),
        }
    }

    /// Prints lines that are in their form already.
    pub(crate) fn lines(self, lines: impl IntoIterator<Item = String>) {
        lines.into_iter().for_each(|line| print(&line));
    }

    /// Prints a sentence about what was done.
    pub(crate) fn done(self, text: &str) {
        self.result(&serde_json::json!({ "done": text }), text);
    }

    /// Prints why a command failed.
    pub(crate) fn problem(self, problem: &Problem) {
        match self.json {
            true => tell(&serde_json::json!({ "failed": problem })),
            false => tell(&format_args!("holdfast: {problem}")),
        }
    }
}

/// Whatever is said is a JSON object in a line of its own, on standard error too.
static AS_JSON: AtomicBool = AtomicBool::new(false);
/// How often a line of progress is said, at most.
const SAY_EVERY: Duration = Duration::from_secs(1);
/// How often it is, if it is the same.
const SAY_AGAIN_EVERY: Duration = Duration::from_secs(10);

/// Nobody reads results any more.
static UNREAD: AtomicBool = AtomicBool::new(false);
/// Results could not be printed.
static UNPRINTED: AtomicBool = AtomicBool::new(false);

/// Prints a line of a result. What was done is done; only the telling can fail, and the code of the
/// process says that it did.
fn print(line: &str) {
    let mut out = io::stdout().lock();
    let printed = write_line(&mut out, line).and_then(|_read_on| read_to_end(&mut out));
    if let Err(error) = printed {
        tell(&format_args!("holdfast: printing failed: {error}"));
        UNPRINTED.store(true, Ordering::Relaxed);
    }
}

/// How a command ends whose result could not be told, although all else went well.
pub(crate) fn untold() -> Option<Exit> {
    match (UNREAD.load(Ordering::Relaxed), UNPRINTED.load(Ordering::Relaxed)) {
        (true, _) => Some(Exit::Unread),
        (false, true) => Some(Exit::Failed),
        (false, false) => None,
    }
}

/// Says something on standard error. Nobody can be told that nobody listens there.
fn tell(text: &dyn Display) {
    let _ = writeln!(io::stderr(), "{}", Shown::text(&text.to_string()));
}

/// Standard error for what is logged: a process that serves goes on when its terminal is gone, or
/// stands still.
pub(crate) struct LogLines;

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match AS_JSON.load(Ordering::Relaxed) {
            true => {
                let line = String::from_utf8_lossy(bytes);
                let told = serde_json::json!({ "log": line.trim_end() });
                unread::say(format!("{told}\n").as_bytes());
            }
            false => unread::say(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a line. Returns whether anybody reads on.
pub(crate) fn write_line(out: &mut impl Write, line: &str) -> io::Result<bool> {
    is_read(writeln!(out, "{}", Shown::text(line)))
}

/// Hands on what was written last. Returns whether somebody was there to read it.
pub(crate) fn read_to_end(out: &mut impl Write) -> io::Result<bool> {
    is_read(out.flush())
}

/// Bars are for people who watch.
fn shows_bars() -> bool {
    io::stderr().is_terminal() && !AS_JSON.load(Ordering::Relaxed)
}

fn is_read(written: io::Result<()>) -> io::Result<bool> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            UNREAD.store(true, Ordering::Relaxed);
            Ok(false)
        }
        written => written.map(|()| true),
    }
}

/// Progress of something that may take long: one line that changes on a terminal, lines elsewhere.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    /// What was said last where there is no bar, and when.
    said: Option<(String, Instant)>,
}

impl Progress {
    /// Shows nothing until something is said.
    pub(crate) fn new() -> Progress {
        Progress { bar: shows_bars().then(ProgressBar::new_spinner), said: None }
    }

    /// A bar of bytes, where there is a terminal; nothing elsewhere.
    pub(crate) fn of_bytes(text: &str) -> Progress {
        let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes} of {total_bytes}");
        let style = style.expect("the template has no unknown words");
        let bar = || ProgressBar::new(0).with_style(style).with_message(text.to_owned());
        Progress { bar: shows_bars().then(bar), said: None }
    }

    /// So many bytes are done, of so many.
    pub(crate) fn done(&mut self, done_bytes: u64, all_bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(all_bytes);
            bar.set_position(done_bytes);
        }
    }

    /// Says how far it is; in lines, no oftener than anybody reads them.
    pub(crate) fn say(&mut self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.enable_steady_tick(Duration::from_millis(100));
            return bar.set_message(Shown::text(text).to_string());
        }
        let now = Instant::now();
        if !is_worth_a_line(self.said.as_ref(), text, now) {
            return;
        }
        self.said = Some((text.to_owned(), now));
        match AS_JSON.load(Ordering::Relaxed) {
            true => tell(&serde_json::json!({ "progress": text })),
            false => tell(&format_args!("holdfast: {text}")),
        }
    }
}

/// Whether a line that follows this one, said then, tells anybody anything.
fn is_worth_a_line(said: Option<&(String, Instant)>, text: &str, now: Instant) -> bool {
    said.is_none_or(|(before, at)| {
        let pause = if before == text { SAY_AGAIN_EVERY } else { SAY_EVERY };
        now.duration_since(*at) >= pause
    })
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests;
