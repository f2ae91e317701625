//! Clients that come, and connections that are handed on.
//!
//! Promise: every connection has a thread of its own; each listener has never more than the
//! configuration says, and one that is full takes nothing from another; who has not chosen an
//! export makes room for others, who has keeps his place; when it is to stop, every connection ends
//! where another process can go on.
//! Never: reads or writes a connection, or knows the meaning of a byte.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Builder, Scope};
use std::time::{Duration, Instant};

use holdfast_peers::Peer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};

use super::connection::Connection;
use super::export::{Export, NbdConfig};
use super::gate::{Entry, Gate};
use super::session::Session;
use super::shared::Shared;
use crate::abort::AbortOnPanic;
use crate::wake::WakeUp;

/// How often it is looked whether to stop.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Pause after a client could not be taken, for something to get free.
const PAUSE: Duration = Duration::from_millis(100);

/// Pause while connections that were told to end do so.
const ENDING: Duration = Duration::from_millis(1);

/// Why nobody is served any longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The machine has no descriptor left for this: raise `RLIMIT_NOFILE`.
    #[error("no descriptors (RLIMIT_NOFILE): {0}")]
    Descriptors(#[source] io::Error),
    /// No client can come through a listener: it is none.
    #[error("cannot accept connections: {0}")]
    Listener(#[source] io::Error),
}

/// A socket, unix or TCP, to which clients connect.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
}

impl Listener {
    /// Takes a socket that listens.
    pub fn new(socket: impl Into<OwnedFd>) -> io::Result<Listener> {
        let socket = socket.into();
        // A client may be gone again between the call that tells of it and the one that takes it.
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Listener { socket })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Serves `exports` to whoever connects through `listeners`, and to `sessions`, until `stop` is
/// set; then returns all connections, each between two messages or inside a long write, for another
/// process to go on. Without listeners it also ends when the last session has.
///
/// A panic in a disk ends the whole process.
pub fn serve(
    listeners: Vec<Listener>,
    sessions: Vec<Session>,
    exports: &[Export<'_>],
    config: &NbdConfig,
    stop: &AtomicBool,
) -> Result<Vec<Session>, ListenError> {
    // Memory reclaim must not wait for the process that it may be writing through. Without the
    // right to say so, the front end works like any other process.
    let _ = rustix::process::configure_io_flusher_behavior(true);
    let listeners_and_rest = listeners.iter().map(|it| Some(it.as_fd())).chain([None]);
    let shared = Shared {
        exports,
        config: config.clone(),
        complaints: Arc::default(),
        gates: listeners_and_rest.map(|listener| Gate::new(listener, config)).collect(),
        is_closing: AtomicBool::new(false),
        closing: WakeUp::new().map_err(ListenError::Descriptors)?,
        open: AtomicUsize::new(0),
        stopped: Mutex::default(),
    };
    thread::scope(|scope| {
        let door = Door { scope, shared: &shared };
        sessions.into_iter().for_each(|session| door.take_over(session));
        let listened = door.listen(&listeners, stop);
        shared.close();
        listened
    })?;
    Ok(shared.stopped.into_inner().expect("panics abort"))
}

struct Door<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    shared: &'env Shared<'env>,
}

impl<'env> Door<'_, 'env> {
    fn listen(&self, listeners: &[Listener], stop: &AtomicBool) -> Result<(), ListenError> {
        let watch = |listener| PollFd::new(listener, PollFlags::IN);
        let mut watched: Vec<PollFd<'_>> = listeners.iter().map(watch).collect();
        while !stop.load(Ordering::Relaxed) && !self.is_done(listeners) {
            match poll(&mut watched, Some(&LOOK)) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(Errno::NOMEM | Errno::AGAIN) => {
                    thread::sleep(PAUSE);
                    continue;
                }
                Err(error) => return Err(ListenError::Listener(error.into())),
            }
            let gates = listeners.iter().zip(&self.shared.gates);
            for ((listener, gate), watched) in gates.zip(&watched) {
                if !watched.revents().is_empty() {
                    self.accept(listener, gate)?;
                }
            }
            self.shared.complaints.settle(Instant::now());
        }
        Ok(())
    }

    fn is_done(&self, listeners: &[Listener]) -> bool {
        listeners.is_empty() && self.shared.open.load(Ordering::Relaxed) == 0
    }

    fn accept(&self, listener: &Listener, gate: &'env Gate) -> Result<(), ListenError> {
        if gate.is_crowded() {
            // Those who were pushed out are on their way, and nobody else can be so many.
            thread::sleep(ENDING);
            return Ok(());
        }
        let (socket, from) = match acceptfrom_with(listener, SocketFlags::CLOEXEC) {
            Ok(accepted) => accepted,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(()),
            Err(error @ (Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP)) => {
                return Err(ListenError::Listener(error.into()));
            }
            Err(error) => {
                self.complain(Peer::Unknown, "a client could not be taken", error.into());
                thread::sleep(PAUSE);
                return Ok(());
            }
        };
        // The socket no longer says so once the client has gone.
        let from = from.and_then(|from| std::net::SocketAddr::try_from(from).ok());
        let peer = from.map_or_else(|| Peer::of(&socket), |from| Peer::at(from.ip()));
        match gate.enter(&socket, peer) {
            Ok(entry) => self.admit(Session::new(socket), entry),
            Err(error) => self.complain(peer, "a client could not be taken", error),
        }
        Ok(())
    }

    /// Goes on with a connection of an earlier process, in the place that it had there.
    fn take_over(&self, session: Session) {
        let (gate, peer) = (self.shared.gate_of(&session.socket), Peer::of(&session.socket));
        let entered = match session.has_chosen() {
            true => gate.keep(peer),
            false => gate.enter(&session.socket, peer),
        };
        match entered {
            Ok(entry) => self.admit(session, entry),
            Err(error) => self.complain(peer, "a connection is not taken over", error),
        }
    }

    /// Gives a connection its thread.
    fn admit(&self, session: Session, entry: Entry<'env>) {
        let (shared, scope, peer) = (self.shared, self.scope, entry.peer());
        shared.open.fetch_add(1, Ordering::Relaxed);
        let thread = Builder::new().name("nbd".into()).spawn_scoped(scope, move || {
            let _guard = AbortOnPanic;
            let connection = Connection::new(session, shared, scope, entry);
            if let Some(stopped) = connection.and_then(Connection::serve) {
                shared.stopped.lock().expect("panics abort").push(stopped);
            }
            shared.open.fetch_sub(1, Ordering::Relaxed);
        });
        if let Err(error) = thread {
            shared.open.fetch_sub(1, Ordering::Relaxed);
            self.complain(peer, "no thread for a client", error);
        }
    }

    fn complain(&self, peer: Peer, what: &str, error: io::Error) {
        self.shared.complaints.say(peer, Instant::now(), format_args!("NBD: {what}: {error}"));
    }
}
