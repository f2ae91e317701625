//! The server's threads: one accepts, two work for each log, one serves each session.
//!
//! Promise: a client that says nothing, or too much, keeps nobody else waiting; told to stop, every
//! session finishes what it took, and the regions stay as they are for the next server.
//! Never: accepts more connections at a time than it was told.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{Builder, Scope};
use std::time::Duration;

use holdfast_client::protocol::Status;
use holdfast_log::{CommitError, Recovery};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::admission::{admit, allowed_uid, refuse};
use crate::registry::Registry;
use crate::served::{LogSpec, ServeError, ServedLog};
use crate::service::ServiceSpec;

/// A pause after an accept that failed, most often for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// How often a server without a keeper looks whether it still has clients.
const ORPHAN_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What a server serves.
pub struct ServerSpec {
    /// The logs.
    pub logs: Vec<LogSpec>,
    /// The other services.
    pub services: Vec<ServiceSpec>,
    /// Most connections at a time, over all services.
    pub clients_max: u32,
}

/// Services, ready to be served.
pub struct Server {
    registry: Registry,
    clients_max: u32,
    connections: AtomicU32,
}

impl Server {
    /// Opens every log and learns what its clients may ask again. A log that cannot be opened does
    /// not keep the others from being served; nothing that was acknowledged has changed in it.
    #[must_use]
    pub fn open(spec: ServerSpec) -> (Server, Vec<ServeError>) {
        let (mut logs, mut errors) = (Vec::new(), Vec::new());
        for log in spec.logs {
            match ServedLog::open(log) {
                Ok(log) => logs.push(log),
                Err(error) => errors.push(error),
            }
        }
        let (registry, clients_max) = (Registry::new(logs, spec.services), spec.clients_max);
        (Server { registry, clients_max, connections: AtomicU32::new(0) }, errors)
    }

    /// How each log was recovered, by the full name of its service.
    pub fn recoveries(&self) -> impl Iterator<Item = (&str, &Recovery)> {
        self.registry.logs().map(|log| (&*log.service, &log.recovery))
    }

    /// Serves until there is something to read from `stop` or from `drain`; true for `drain`, which
    /// asks for [`Server::drain`] besides. When nobody reads from `keeper` any more, the end of the
    /// last client is the end, too, and asks for the same.
    ///
    /// # Errors
    /// The listening socket cannot be waited for. Everything acknowledged is where it was.
    pub fn serve(
        &self,
        listener: &UnixListener,
        stop: impl AsFd,
        drain: impl AsFd,
        keeper: impl AsFd,
    ) -> io::Result<bool> {
        listener.set_nonblocking(true)?;
        let stopping = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for log in self.registry.logs() {
                scope.spawn(|| log.run_drainer(&stopping));
                scope.spawn(|| log.run_preparer(&stopping));
            }
            let ends = [stop.as_fd(), drain.as_fd(), keeper.as_fd()];
            let outcome = self.accept_until(listener, ends, scope, &stopping);
            stopping.store(true, Ordering::Relaxed);
            outcome
        })
    }

    /// Brings everything to the logs' devices, for a machine that is to be switched off. What other
    /// services keep is their maker's to bring anywhere.
    ///
    /// # Errors
    /// The first log that could not be drained, after all others were.
    pub fn drain(&self) -> Result<(), CommitError> {
        let ends: Vec<_> = self.registry.logs().map(|log| log.log.close()).collect();
        ends.into_iter().collect()
    }

    fn accept_until<'scope>(
        &'scope self,
        listener: &UnixListener,
        [stop, drain, keeper]: [BorrowedFd<'_>; 3],
        scope: &'scope Scope<'scope, '_>,
        stopping: &'scope AtomicBool,
    ) -> io::Result<bool> {
        let mut is_orphan = false;
        loop {
            let mut polled = [
                PollFd::new(listener, PollFlags::IN),
                PollFd::from_borrowed_fd(stop, PollFlags::IN),
                PollFd::from_borrowed_fd(drain, PollFlags::IN),
                PollFd::from_borrowed_fd(keeper, PollFlags::empty()),
            ];
            let (polled, patience) = match is_orphan {
                true => (&mut polled[..3], Some(&ORPHAN_LOOK)),
                false => (&mut polled[..], None),
            };
            match poll(polled, patience) {
                Err(rustix::io::Errno::INTR) => continue,
                outcome => outcome?,
            };
            let is_told = |end: usize| !polled[end].revents().is_empty();
            if is_told(1) || is_told(2) {
                return Ok(is_told(2));
            }
            is_orphan = is_orphan || is_told(3);
            if is_orphan && self.connections.load(Ordering::Relaxed) == 0 {
                return Ok(true);
            }
            match listener.accept() {
                Ok((stream, _)) => self.begin(stream, scope, stopping),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    std::thread::sleep(ACCEPT_PAUSE);
                }
            }
        }
    }

    /// Gives a connection a thread of its own, if there may be one more.
    fn begin<'scope>(
        &'scope self,
        stream: UnixStream,
        scope: &'scope Scope<'scope, '_>,
        stopping: &'scope AtomicBool,
    ) {
        let Some(uid) = allowed_uid(&stream, &self.registry) else {
            return refuse(&stream, Status::NotAllowed);
        };
        let connection = Connection::of(&self.connections);
        if connection.number >= self.clients_max {
            self.registry.count_refused();
            tracing::warn!(uid, "a client was refused: the server has as many as it takes");
            return refuse(&stream, Status::TooManyClients);
        }
        let serve = move || {
            let _connection = connection;
            // An accepted socket does not inherit this from the listening one, but says so itself.
            if stream.set_nonblocking(false).is_err() {
                return;
            }
            if let Some((session, _seat)) = admit(stream, uid, &self.registry) {
                session.run(stopping);
            }
        };
        if let Err(error) = Builder::new().name("session".into()).spawn_scoped(scope, serve) {
            tracing::warn!(%error, "no thread for a client");
        }
    }
}

/// One connection, counted while it lives.
struct Connection<'a> {
    connections: &'a AtomicU32,
    number: u32,
}

impl<'a> Connection<'a> {
    fn of(connections: &'a AtomicU32) -> Connection<'a> {
        Connection { connections, number: connections.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
