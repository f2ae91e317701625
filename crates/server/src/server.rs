//! The server's threads: one accepts, two work for each log, one serves each session.
//!
//! Promise: a client that says nothing, or too much, keeps nobody else waiting; every user that a
//! service allows finds a place, whoever has the others; told to stop, every
//! session finishes what it took, and the regions stay as they are for the next server.
//! Never: has more clients at a time than it was told, nor starts a thread for one that is none.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

use holdfast_client::protocol::{Hello, Status};
use holdfast_log::{CommitError, Recovery};
use holdfast_peers::{Complaints, Connection, Peer, Places};
use rustix::event::PollFlags;

use crate::admission::{admit, refuse};
use crate::door::{Arrival, Door};
use crate::registry::Registry;
use crate::seat::Seat;
use crate::served::{LogSpec, ServeError, ServedLog};
use crate::service::{Service, ServiceSpec};
use crate::words;

/// How often a server without a keeper looks whether it still has clients.
const ORPHAN_LOOK: Duration = Duration::from_millis(100);

/// What a server serves.
pub struct ServerSpec {
    /// The logs.
    pub logs: Vec<LogSpec>,
    /// The other services.
    pub services: Vec<ServiceSpec>,
    /// Most clients at a time, over all services.
    pub clients_max: u32,
}

/// Services, ready to be served.
pub struct Server {
    registry: Registry,
    places: Places,
    complaints: Arc<Complaints>,
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
        let complaints = Arc::default();
        let registry = Registry::new(logs, spec.services, &complaints);
        let users = registry.all().flat_map(|service| service.users());
        let places = Places::for_each_of(users, spec.clients_max);
        (Server { registry, places, complaints }, errors)
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
    /// The listening socket cannot be waited for, or there is no thread for a log. Everything
    /// acknowledged is where it was.
    pub fn serve(
        &self,
        listener: &UnixListener,
        stop: impl AsFd,
        drain: impl AsFd,
        keeper: impl AsFd,
    ) -> io::Result<bool> {
        let stopping = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let mut logs = self.registry.logs();
            let started = logs.try_for_each(|log| Self::start_threads(log, scope, &stopping));
            let ends = [stop.as_fd(), drain.as_fd(), keeper.as_fd()];
            let accept = |()| self.accept_until(listener, ends, scope, &stopping);
            let outcome = started.and_then(accept);
            stopping.store(true, Ordering::Relaxed);
            self.registry.logs().for_each(|log| log.wake_threads());
            outcome
        })
    }

    fn start_threads<'scope>(
        log: &'scope ServedLog,
        scope: &'scope Scope<'scope, '_>,
        stopping: &'scope AtomicBool,
    ) -> io::Result<()> {
        let drain = || log.run_drainer(stopping);
        Builder::new().name("drainer".into()).spawn_scoped(scope, drain)?;
        let prepare = || log.run_preparer(stopping);
        Builder::new().name("preparer".into()).spawn_scoped(scope, prepare).map(drop)
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
        let mut door = Door::new(listener, &self.registry, &self.complaints)?;
        let told = [(stop, PollFlags::IN), (drain, PollFlags::IN)];
        loop {
            let [is_stop, is_drain, is_orphan] =
                door.wait([told[0], told[1], (keeper, PollFlags::empty())], None)?;
            if is_stop || is_drain {
                return Ok(is_drain);
            }
            if is_orphan {
                break;
            }
            door.take().into_iter().for_each(|arrival| self.begin(arrival, scope, stopping));
        }
        while self.places.held() > 0 {
            let [is_stop, is_drain] = door.wait(told, Some(ORPHAN_LOOK))?;
            if is_stop || is_drain {
                return Ok(is_drain);
            }
            door.take().into_iter().for_each(|arrival| self.begin(arrival, scope, stopping));
        }
        Ok(true)
    }

    /// Gives a client a thread of its own, if there may be one more.
    fn begin<'scope>(
        &'scope self,
        arrival: Arrival,
        scope: &'scope Scope<'scope, '_>,
        stopping: &'scope AtomicBool,
    ) {
        let Arrival { stream, peer, hello } = arrival;
        let (service, seat) = match self.seat(peer, &hello) {
            Ok(seated) => seated,
            Err(status) => return self.refuse(&stream, (peer, &hello), status),
        };
        let serve = move || match admit(stream, peer, &hello, service, seat) {
            Ok(session) => session.run(stopping),
            Err((stream, status)) => self.refuse(&stream, (peer, &hello), status),
        };
        if let Err(error) = Builder::new().name("session".into()).spawn_scoped(scope, serve) {
            let what = format_args!("no thread for a client: {error}");
            self.complaints.say(peer, Instant::now(), what);
        }
    }

    /// Checks rights and quotas.
    fn seat(&self, peer: Peer, hello: &Hello) -> Result<(&Arc<Service>, Seat), Status> {
        let service = self.registry.find(&hello.service).ok_or(Status::NoService)?;
        if !service.allows(peer) {
            return Err(Status::NotAllowed);
        }
        let seat =
            Seat::take(&service.clients, &self.places, peer).ok_or(Status::TooManyClients)?;
        Ok((service, seat))
    }

    fn refuse(&self, stream: &Connection, (peer, hello): (Peer, &Hello), status: Status) {
        // What concerns no service is counted by the lines that the log has of it, or left out.
        if let Some(service) = self.registry.find(&hello.service) {
            service.count(words::REFUSED);
        }
        let what = format_args!("a client of {:?} was refused: {status}", hello.service);
        self.complaints.say(peer, Instant::now(), what);
        refuse(stream, status);
    }
}
