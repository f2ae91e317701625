//! Signals that order nothing.
//!
//! Promise: what serves ends by an order to end (SIGTERM, SIGINT), by SIGQUIT, by SIGKILL, or
//! because it is broken. A terminal that closes, a signal meant for another program, and a file
//! that grows beyond a limit end nothing. It hears of both, of a notice that the power is about to
//! fail (SIGPWR), and of the end of what it starts, whoever started it.
//! Never: makes a program that Holdfast starts for somebody deaf.

use crate::raw::{hear_signals, ignore_signal};
use crate::threads::thread;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXFSZ,
};
use signal_hook::iterator::Signals;
use std::io;

/// What asks a process to end.
const ORDERS: [i32; 2] = [SIGTERM, SIGINT];

/// What would end a process that does nothing about it, and orders nothing. SIGXFSZ comes with an
/// error, EFBIG, that says the same to whoever wrote.
const NO_ORDERS: [i32; 9] =
    [SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGXFSZ];

/// What a failing power supply has sent, to the machine's first process, or to whom that tells.
const SIGPWR: i32 = libc::SIGPWR;

/// From now on this process hears of what it is sent, and of the end of what it starts, although
/// whoever started it ignored or blocked that: an exec leaves both as they were. To be called
/// before there is a thread.
pub fn hear_all() {
    hear_signals();
}

/// From now on this process, which starts no other, does not hear what orders nothing.
pub fn ignore_no_orders() -> io::Result<()> {
    NO_ORDERS.into_iter().try_for_each(ignore_signal)
}

/// From now on calls `obey` at each order to end, `notice` when the power is said to fail, and goes
/// on at everything else. Programs that this process starts hear signals as ever.
pub fn obey_orders(
    obey: impl Fn() + Send + 'static,
    notice: impl Fn() + Send + 'static,
) -> Outcome<()> {
    let mut signals = Signals::new(ORDERS.iter().chain(&NO_ORDERS)).map_err(|error| {
        Problem::new(Exit::Failed, "listening for signals", error, "see the system's log")
    })?;
    let listen = move || {
        for signal in signals.forever() {
            match signal {
                SIGTERM | SIGINT => obey(),
                SIGPWR => notice(),
                _ => tracing::info!(signal, "a signal that orders nothing; it goes on"),
            }
        }
    };
    thread("signals", listen).map(drop)
}

/// True if a process that this signal ended was in order: somebody else ended it.
pub fn is_from_outside(signal: i32) -> bool {
    use signal_hook::consts::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    ![SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP].contains(&signal)
}
