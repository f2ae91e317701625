//! The places of one listener.
//!
//! Promise: clients that have chosen an export hold a place each, which nobody takes from them; of
//! all others there are only so many, of one peer and of all, and one that comes takes the room of
//! one who is silent before that of one who is shaking hands. Every connection is counted until its
//! thread has ended.
//! Never: knows another listener, so one that is full is full alone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use holdfast_peers::{Lobby, LobbyLimits, Peer, Place, Places, Ticket};
use rustix::net::sockopt::socket_domain;
use rustix::net::{AddressFamily, Shutdown, SocketAddrAny, getsockname, shutdown};

use super::export::NbdConfig;

/// Connections of one listener that may be about to choose an export, of all peers and of one.
const HESITANT_MAX: usize = 32;
const HESITANT_OF_PEER: usize = 16;

/// Connections that were pushed out, and whose threads have not ended yet.
const ENDING_MAX: usize = 16;

/// Where clients of one listener are counted.
pub(crate) struct Gate {
    address: Option<(AddressFamily, SocketAddrAny)>,
    connections_max: usize,
    clients: Places,
    hesitant: Mutex<Lobby<OwnedFd>>,
    threads: AtomicUsize,
}

/// A connection that is counted, until this is dropped: its thread has it.
pub(crate) struct Entry<'gate> {
    gate: &'gate Gate,
    peer: Peer,
    stage: Stage,
}

enum Stage {
    /// It has not chosen an export; whether it has begun to keep to the protocol.
    Hesitant(Ticket, bool),
    /// It has.
    Client { _place: Place },
    /// It was pushed out, or found no place.
    Out,
}

/// Why a connection that has chosen an export is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crowded {
    /// It took so long that others needed its room.
    PushedOut,
    /// All places are held, or all that its peer may have.
    NoPlace,
}

impl Gate {
    /// The gate of a listener, or of those whose listener is elsewhere.
    pub(crate) fn new(listener: Option<BorrowedFd<'_>>, config: &NbdConfig) -> Gate {
        let limits = LobbyLimits {
            most: HESITANT_MAX,
            of_peer: HESITANT_OF_PEER,
            patience: config.negotiation_patience,
        };
        let most = u32::try_from(config.connections_max).unwrap_or(u32::MAX);
        Gate {
            address: listener.and_then(address_of),
            connections_max: config.connections_max,
            clients: Places::for_anybody(most),
            hesitant: Mutex::new(Lobby::new(limits)),
            threads: AtomicUsize::new(0),
        }
    }

    /// Whether a connection came in here.
    pub(crate) fn is_of(&self, connection: &OwnedFd) -> bool {
        let (Some((family, own)), Some((of, its))) =
            (&self.address, address_of(connection.as_fd()))
        else {
            return false;
        };
        let port = |address: &SocketAddrAny| {
            std::net::SocketAddr::try_from(address.clone()).map(|address| address.port()).ok()
        };
        // A listener may have any address of the machine, and a connection has one of them.
        match *family == AddressFamily::UNIX {
            true => of == *family && its == *own,
            false => of != AddressFamily::UNIX && port(&its) == port(own),
        }
    }

    /// Whether so many connections are ending that none can be taken.
    pub(crate) fn is_crowded(&self) -> bool {
        let most = self.connections_max + HESITANT_MAX + ENDING_MAX;
        self.threads.load(Ordering::Relaxed) >= most
    }

    /// Counts a connection that has chosen no export. Another one may be pushed out for it.
    pub(crate) fn enter(&self, socket: &OwnedFd, peer: Peer) -> io::Result<Entry<'_>> {
        let to_end_it = socket.try_clone()?;
        let (ticket, pushed_out) = self.lobby().enter(peer, Instant::now(), to_end_it);
        if let Some(pushed_out) = pushed_out {
            // Its thread finds the end of the connection, and ends. It may be over already.
            let _ = shutdown(&pushed_out, Shutdown::Both);
        }
        Ok(self.entry(peer, Stage::Hesitant(ticket, false)))
    }

    /// Counts a client of an earlier process, which had its place there.
    pub(crate) fn keep(&self, peer: Peer) -> io::Result<Entry<'_>> {
        let place = self.clients.keep(peer).ok_or_else(|| io::Error::other("there is no place"))?;
        Ok(self.entry(peer, Stage::Client { _place: place }))
    }

    fn entry(&self, peer: Peer, stage: Stage) -> Entry<'_> {
        self.threads.fetch_add(1, Ordering::Relaxed);
        Entry { gate: self, peer, stage }
    }

    fn lobby(&self) -> MutexGuard<'_, Lobby<OwnedFd>> {
        self.hesitant.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry<'_> {
    /// Who it is.
    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    /// Its connection has sent a beginning that is in order.
    pub(crate) fn has_spoken(&mut self) {
        if let Stage::Hesitant(ticket, has_spoken @ false) = &mut self.stage {
            *has_spoken = true;
            self.gate.lobby().has_spoken(*ticket);
        }
    }

    /// Its connection has chosen an export, and is to be a client's.
    pub(crate) fn choose(&mut self) -> Result<(), Crowded> {
        let Stage::Hesitant(ticket, _) = self.stage else { return Ok(()) };
        self.stage = Stage::Out;
        self.gate.lobby().leave(ticket).ok_or(Crowded::PushedOut)?;
        let place = self.gate.clients.take(self.peer).ok_or(Crowded::NoPlace)?;
        self.stage = Stage::Client { _place: place };
        Ok(())
    }

    /// Whether it was pushed out.
    pub(crate) fn is_pushed_out(&self) -> bool {
        match self.stage {
            Stage::Hesitant(ticket, _) => self.gate.lobby().get_mut(ticket).is_none(),
            Stage::Client { .. } | Stage::Out => false,
        }
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if let Stage::Hesitant(ticket, _) = self.stage {
            self.gate.lobby().leave(ticket);
        }
        self.gate.threads.fetch_sub(1, Ordering::Relaxed);
    }
}

fn address_of(socket: BorrowedFd<'_>) -> Option<(AddressFamily, SocketAddrAny)> {
    Some((socket_domain(socket).ok()?, getsockname(socket).ok()?))
}
