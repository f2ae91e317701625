//! One service: what every kind has alike, and which kind it is.
//!
//! Promise: a client has one session with a service at a time; seats are given back; what is
//! counted is in the service's region, where it outlives the server.
//! Never: knows what is asked of a service; the kind's handler does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use holdfast_client::protocol::{Hello, PAYLOAD_BYTES_MAX, Status};
use holdfast_io::Blocks;
use holdfast_peers::{Complaints, Peer, Places};

use crate::disk_handler::{DiskHandler, transfer_bytes_max};
use crate::handler::Handler;
use crate::log_handler::LogHandler;
use crate::presence::{Presence, Present};
use crate::responder::{Responder, ResponderHandler};
use crate::seat::Clients;
use crate::served::ServedLog;
use crate::service_words::ServiceWords;
use crate::words;

/// A service that is no log, and for whom.
pub struct ServiceSpec {
    /// Its full name: `disk/NAME`, `table/NAME`.
    pub service: String,
    /// What does the requests.
    pub kind: ServiceKind,
    /// The words of the region that has its state.
    pub words: Arc<dyn ServiceWords>,
    /// The users that may be its clients.
    pub allow_uids: Vec<u32>,
    /// Most sessions at a time.
    pub clients_max: u32,
}

/// What does the requests of a service that is no log. It is called by one thread for each session,
/// and whatever it waits for, only that session's client waits with it.
pub enum ServiceKind {
    /// A disk that several clients share.
    Disk(Arc<dyn Blocks>),
    /// Bytes in, bytes out, once.
    Responder(Arc<dyn Responder>),
}

/// What a service is.
pub(crate) enum Kind {
    Log(Arc<ServedLog>),
    Disk(Arc<dyn Blocks>),
    Responder(Arc<dyn Responder>),
}

/// A service, as requests name it.
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) handle: u32,
    pub(crate) check: u32,
    pub(crate) kind: Kind,
    allow_uids: Vec<u32>,
    pub(crate) words: Arc<dyn ServiceWords>,
    pub(crate) clients: Arc<Clients>,
    complaints: Arc<Complaints>,
    /// Clients of a service that is no log; a log's windows know them.
    present: Arc<Present>,
}

/// What a session begins with.
pub(crate) struct Beginning {
    pub(crate) handler: Box<dyn Handler>,
    pub(crate) last_sequence: u64,
    pub(crate) facts: [u64; 3],
}

impl Service {
    /// A service of this number. The check value is its root: drawn once, kept in the region.
    pub(crate) fn new(
        handle: u32,
        spec: ServiceSpec,
        complaints: &Arc<Complaints>,
        draw: impl FnOnce() -> u32,
    ) -> Service {
        let kind = match spec.kind {
            ServiceKind::Disk(blocks) => Kind::Disk(blocks),
            ServiceKind::Responder(responder) => Kind::Responder(responder),
        };
        let access = (spec.allow_uids, spec.clients_max);
        Service::of((handle, spec.service), kind, spec.words, access, complaints, draw)
    }

    /// [`Service::new`] for a log.
    pub(crate) fn of_log(
        handle: u32,
        log: ServedLog,
        complaints: &Arc<Complaints>,
        draw: impl FnOnce() -> u32,
    ) -> Service {
        let (name, words) = (log.service.clone(), log.region());
        let access = (log.allow_uids.clone(), log.clients_max);
        Service::of((handle, name), Kind::Log(Arc::new(log)), words, access, complaints, draw)
    }

    fn of(
        (handle, name): (u32, String),
        kind: Kind,
        words: Arc<dyn ServiceWords>,
        (allow_uids, clients_max): (Vec<u32>, u32),
        complaints: &Arc<Complaints>,
        draw: impl FnOnce() -> u32,
    ) -> Service {
        let root = words.word(words::ROOT);
        if root.load(Ordering::Relaxed) == 0 {
            root.store(draw().max(1).into(), Ordering::Relaxed);
        }
        let check = root.load(Ordering::Relaxed) as u32;
        let users = allow_uids.iter().map(|uid| Peer::User(*uid));
        let places = Places::for_each_of(users, clients_max);
        let (clients, present) = (Clients::new(places, Arc::clone(&words)), Arc::default());
        let complaints = Arc::clone(complaints);
        Service { name, handle, check, kind, allow_uids, words, clients, complaints, present }
    }

    /// Its users.
    pub(crate) fn users(&self) -> impl Iterator<Item = Peer> {
        self.allow_uids.iter().map(|uid| Peer::User(*uid))
    }

    /// Whether this peer may be its client.
    pub(crate) fn allows(&self, peer: Peer) -> bool {
        self.users().any(|user| user == peer)
    }

    /// Whether a request means this service.
    pub(crate) fn admits(&self, handle: u32, check: u32) -> Result<(), Status> {
        match (handle, check) == (self.handle, self.check) {
            true => Ok(()),
            false => Err(Status::BadHandle),
        }
    }

    /// Adds to one of the server's counters.
    pub(crate) fn count(&self, word: usize) {
        self.words.count(word);
    }

    /// Says something about a client, or counts it.
    pub(crate) fn complain(&self, peer: Peer, what: impl std::fmt::Display) {
        let what = format_args!("at {}: {what}", self.name);
        self.complaints.say(peer, Instant::now(), what);
    }

    /// The log, if it is one.
    pub(crate) fn log(&self) -> Option<&Arc<ServedLog>> {
        match &self.kind {
            Kind::Log(log) => Some(log),
            Kind::Disk(_) | Kind::Responder(_) => None,
        }
    }

    /// The longest payload of one request.
    pub(crate) fn payload_bytes_max(&self) -> u64 {
        match &self.kind {
            Kind::Log(log) => log.payload_bytes_max(),
            Kind::Disk(blocks) => transfer_bytes_max(&**blocks),
            Kind::Responder(_) => PAYLOAD_BYTES_MAX,
        }
    }

    /// Bytes of one buffer of a session.
    pub(crate) fn buffer_bytes(&self) -> u32 {
        match &self.kind {
            Kind::Log(log) => log.buffer_bytes(),
            _ => self.payload_bytes_max().next_multiple_of(4096) as u32,
        }
    }

    /// Begins a session for the client, unless it has one.
    pub(crate) fn begin(
        self: &Arc<Service>,
        hello: &Hello,
        peer: Peer,
    ) -> Result<Beginning, Status> {
        match &self.kind {
            Kind::Log(log) => {
                let (handler, last_sequence) = LogHandler::begin(log, hello, peer)?;
                let marks = log.log.marks();
                let facts = [marks.released, marks.durable, marks.tail].map(|lsn| lsn.0);
                Ok(Beginning { handler: Box::new(handler), last_sequence, facts })
            }
            Kind::Disk(blocks) => {
                let presence = Presence::enter(&self.present, hello.client)?;
                let handler = Box::new(DiskHandler::new(Arc::clone(blocks), presence));
                let facts = [blocks.size_bytes(), blocks.atomic_bytes_max() as u64, 0];
                Ok(Beginning { handler, last_sequence: 0, facts })
            }
            Kind::Responder(responder) => {
                let presence = Presence::enter(&self.present, hello.client)?;
                let handler = ResponderHandler::new(Arc::clone(responder), hello.client, presence);
                Ok(Beginning { handler: Box::new(handler), last_sequence: 0, facts: [0; 3] })
            }
        }
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Service").field("name", &self.name).finish_non_exhaustive()
    }
}
