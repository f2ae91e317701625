//! From a connection to a hello: who is it, and does it say in time what it wants.
//!
//! Promise: a peer that has not said its hello costs a socket and nothing else, has one moment for
//! all of it, and makes room for others of its user before it makes room for others; it never costs
//! a client that has said it anything.
//! Never: waits for a peer, or for what it has sent, or has a thread for one that is no client yet.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use holdfast_client::protocol::{HELLO_BYTES, Hello, HelloFault, Status};
use holdfast_peers::{Complaints, Connection, Lobby, LobbyLimits, Peer, Ticket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::admission::refuse;
use crate::registry::Registry;

/// Peers that may be about to say hello.
const LIMITS: LobbyLimits = LobbyLimits { most: 64, of_peer: 16, patience: Duration::from_secs(1) };

/// A pause after an accept that failed, most often for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// A client that has said what it wants.
pub(crate) struct Arrival {
    pub(crate) stream: Connection,
    pub(crate) peer: Peer,
    pub(crate) hello: Hello,
}

/// A peer that has not said all of its hello.
struct Knock {
    stream: Connection,
    bytes: [u8; HELLO_BYTES],
    heard: usize,
}

/// Where clients come in.
pub(crate) struct Door<'a> {
    listener: &'a UnixListener,
    registry: &'a Registry,
    complaints: &'a Complaints,
    lobby: Lobby<Knock>,
}

impl<'a> Door<'a> {
    pub(crate) fn new(
        listener: &'a UnixListener,
        registry: &'a Registry,
        complaints: &'a Complaints,
    ) -> io::Result<Door<'a>> {
        listener.set_nonblocking(true)?;
        Ok(Door { listener, registry, complaints, lobby: Lobby::new(LIMITS) })
    }

    /// Sleeps until somebody comes or says something, or something is to be heard from `others`, at
    /// most for `patience`. Returns for each of `others` whether there is something.
    pub(crate) fn wait<const N: usize>(
        &self,
        others: [(BorrowedFd<'_>, PollFlags); N],
        patience: Option<Duration>,
    ) -> io::Result<[bool; N]> {
        let mut polled: Vec<_> =
            others.iter().map(|(it, flags)| PollFd::from_borrowed_fd(*it, *flags)).collect();
        polled.push(PollFd::new(self.listener, PollFlags::IN));
        let knocks = self.lobby.iter().map(|(_, _, knock)| knock.stream.as_fd());
        polled.extend(knocks.map(|knock| PollFd::from_borrowed_fd(knock, PollFlags::IN)));
        let patience = self.time_left().into_iter().chain(patience).min();
        let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
        match poll(&mut polled, patience.as_ref()) {
            Ok(_) => Ok(std::array::from_fn(|at| !polled[at].revents().is_empty())),
            Err(Errno::INTR) => Ok([false; N]),
            Err(error) => Err(error.into()),
        }
    }

    /// Until somebody's time is over, or something is to be said.
    fn time_left(&self) -> Option<Duration> {
        let at = self.lobby.next_deadline().into_iter().chain(self.complaints.settles_at()).min();
        at.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Takes what has come: whoever said all of its hello comes back. Those who are there are heard
    /// before another is let in, so nobody is pushed out who has spoken.
    pub(crate) fn take(&mut self) -> Vec<Arrival> {
        self.complaints.settle(Instant::now());
        let mut arrived = self.hear_all();
        if let Some((ticket, peer)) = self.accept() {
            arrived.extend(self.hear(ticket, peer));
        }
        for (peer, knock) in self.lobby.expired(Instant::now()) {
            self.turn_away(&knock.stream, peer, Status::BadHello, "did not say hello in time");
        }
        arrived
    }

    fn hear_all(&mut self) -> Vec<Arrival> {
        let all: Vec<_> = self.lobby.iter().map(|(ticket, peer, _)| (ticket, peer)).collect();
        all.into_iter().filter_map(|(ticket, peer)| self.hear(ticket, peer)).collect()
    }

    /// Lets one in, if any service allows that user.
    fn accept(&mut self) -> Option<(Ticket, Peer)> {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Err(error) => {
                let what = format_args!("a connection could not be accepted: {error}");
                self.complaints.say(Peer::Unknown, Instant::now(), what);
                std::thread::sleep(ACCEPT_PAUSE);
                return None;
            }
        };
        let (peer, stream) = (Peer::of(&stream), Connection::new(stream));
        if !self.registry.all().any(|service| service.allows(peer)) {
            self.turn_away(&stream, peer, Status::NotAllowed, "no service allows this user");
            return None;
        }
        let knock = Knock { stream, bytes: [0; HELLO_BYTES], heard: 0 };
        let (ticket, pushed_out) = self.lobby.enter(peer, Instant::now(), knock);
        if let Some(pushed_out) = pushed_out {
            let why = "too many connections wait to say hello";
            self.turn_away(&pushed_out.stream, peer, Status::TooManyClients, why);
        }
        Some((ticket, peer))
    }

    /// Hears more of a hello. Whoever has said it, or never will, is not here any more.
    fn hear(&mut self, ticket: Ticket, peer: Peer) -> Option<Arrival> {
        let heard = self.lobby.get_mut(ticket)?.hear()?;
        let Knock { stream, .. } = self.lobby.leave(ticket)?;
        match heard {
            Ok(hello) => Some(Arrival { stream, peer, hello }),
            Err(status) => {
                self.turn_away(&stream, peer, status, "what it sent is no hello");
                None
            }
        }
    }

    fn turn_away(&self, stream: &Connection, peer: Peer, status: Status, why: &str) {
        let what = format_args!("a connection was refused: {why}");
        self.complaints.say(peer, Instant::now(), what);
        refuse(stream, status);
    }
}

impl Knock {
    /// Takes what was sent. `None`: there is more to come.
    fn hear(&mut self) -> Option<Result<Hello, Status>> {
        while self.heard < HELLO_BYTES {
            let room = &mut self.bytes[self.heard..];
            match self.stream.hear(room) {
                Ok(bytes @ 1..) => self.heard += bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return None,
                Ok(0) | Err(_) => return Some(Err(Status::BadHello)),
            }
        }
        Some(Hello::parse(&self.bytes).map_err(|fault| match fault {
            HelloFault::Version { .. } => Status::OtherVersion,
            _ => Status::BadHello,
        }))
    }
}
