//! What outlives a connection: who the client is, and which of its requests are unanswered.
//!
//! Each thread has at most one request under way and repeats it itself on the next connection.
//! Requests of several threads have no order among each other, so nobody has to restore one.
//!
//! Promise: a request is asked until it is answered or the server refuses the client; one that must
//! happen once carries the same sequence number each time, by which the server knows it again.
//! Never: gives up on a server that is away.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdfast_io::Entropy;
use holdfast_io::real::RealEntropy;
use holdfast_memory::queue::Response;

use crate::call::{Call, ResponseTarget};
use crate::connect::{ConnectError, connect};
use crate::link::Link;
use crate::protocol::{ClientId, DISK_PREFIX, Hello, Reply, Status, VERSION, WINDOW};

/// The first pause between two attempts to connect; it doubles up to the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(1);
const PAUSE_LONGEST: Duration = Duration::from_millis(100);

/// How long refusals that may pass are waited out: a server may still have the connections of
/// clients that went away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For the first connection.
    pub(crate) first: Duration,
    /// For each later one.
    pub(crate) later: Duration,
}

/// A client's session, shared by the threads of its process.
#[derive(Debug)]
pub(crate) struct Session {
    socket: PathBuf,
    service: String,
    patience: Duration,
    client: ClientId,
    /// What the first server said; every later one takes payloads as long.
    reply: Reply,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// The connection, unless one is being made.
    link: Option<Arc<Link>>,
    /// Why there will be none any more.
    refused: Option<Arc<io::Error>>,
    /// The highest sequence number given out.
    last: u64,
    /// Those that have no answer yet.
    unanswered: BTreeSet<u64>,
}

impl State {
    fn oldest(&self) -> u64 {
        self.unanswered.first().copied().unwrap_or(self.last + 1)
    }
}

impl Session {
    /// Connects for the first time.
    pub(crate) fn open(
        socket: PathBuf,
        service: String,
        patience: Patience,
    ) -> Result<Session, ConnectError> {
        let mut client = ClientId([0; 16]);
        RealEntropy.fill(&mut client.0);
        let hello = Hello { version: VERSION, client, oldest: 0, service: service.clone() };
        let (begun, mut pause) = (Instant::now(), PAUSE_FIRST);
        let link = loop {
            match connect(&socket, &hello) {
                Ok(link) => break link,
                Err(error) if passes(&error) && begun.elapsed() < patience.first => {}
                Err(error) => return Err(error),
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_LONGEST);
        };
        let reply = *link.reply();
        let link = Some(Arc::new(link));
        let state = State { link, refused: None, last: 0, unanswered: BTreeSet::new() };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let patience = patience.later;
        Ok(Session { socket, service, patience, client, reply, state, changed })
    }

    /// What the server said when the session began.
    pub(crate) fn reply(&self) -> &Reply {
        &self.reply
    }

    /// Asks until there is an answer.
    pub(crate) fn ask(
        &self,
        ask: &Call<'_>,
        into: &mut ResponseTarget<'_>,
    ) -> Result<Response, Arc<io::Error>> {
        loop {
            let link = self.link()?;
            match link.exchange(ask, into) {
                Some(response) => return Ok(response),
                None => self.reconnect(&link),
            }
        }
    }

    /// Asks for what must happen once.
    pub(crate) fn ask_once(
        &self,
        mut ask: Call<'_>,
        into: &mut ResponseTarget<'_>,
    ) -> Result<Response, Arc<io::Error>> {
        let (sequence, oldest) = self.number();
        ask.sequence = sequence;
        ask.argument[0] = oldest;
        let answer = self.ask(&ask, into);
        self.lock().unanswered.remove(&sequence);
        self.changed.notify_all();
        answer
    }

    /// A new sequence number, and the oldest that is unanswered. Waits while a much older one is.
    fn number(&self) -> (u64, u64) {
        let state = self.lock();
        let is_far = |state: &mut State| state.last + 1 - state.oldest() >= WINDOW;
        let waited = self.changed.wait_while(state, is_far);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.last += 1;
        let sequence = state.last;
        state.unanswered.insert(sequence);
        (sequence, state.oldest())
    }

    /// The connection. Waits while another thread makes one.
    fn link(&self) -> Result<Arc<Link>, Arc<io::Error>> {
        let mut state = self.lock();
        loop {
            if let Some(refused) = &state.refused {
                return Err(Arc::clone(refused));
            }
            if let Some(link) = &state.link {
                return Ok(Arc::clone(link));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Replaces a connection that ended. The first thread to notice does it, the others wait.
    fn reconnect(&self, ended: &Arc<Link>) {
        let oldest = {
            let mut state = self.lock();
            if state.link.as_ref().is_none_or(|link| !Arc::ptr_eq(link, ended)) {
                return;
            }
            state.link = None;
            state.oldest()
        };
        let outcome = self.connect_again(oldest);
        let mut state = self.lock();
        match outcome {
            Ok(link) => state.link = Some(Arc::new(link)),
            Err(error) => state.refused = Some(Arc::new(error)),
        }
        self.changed.notify_all();
    }

    fn connect_again(&self, oldest: u64) -> io::Result<Link> {
        let (version, client, service) = (VERSION, self.client, self.service.clone());
        let hello = Hello { version, client, oldest, service };
        let (mut pause, mut refused_since) = (PAUSE_FIRST, None);
        loop {
            match connect(&self.socket, &hello) {
                Ok(link) => match self.misfit(link.reply()) {
                    None => return Ok(link),
                    Some(why) => return Err(io::Error::other(why)),
                },
                Err(ConnectError::Unreachable(_)) => refused_since = None,
                Err(error) => {
                    let since: &mut Instant = refused_since.get_or_insert_with(Instant::now);
                    let passes = passes(&error) || is_missing(&error);
                    if !passes || since.elapsed() > self.patience {
                        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, error));
                    }
                }
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_LONGEST);
        }
    }

    /// Why what is under way cannot be repeated to this server.
    fn misfit(&self, reply: &Reply) -> Option<&'static str> {
        // All of a disk is in its region, so another region is another disk.
        if self.service.starts_with(DISK_PREFIX) && reply.check != self.reply.check {
            return Some("another disk has the name now");
        }
        let is_shorter = reply.payload_bytes_max < self.reply.payload_bytes_max
            || reply.buffer_bytes < self.reply.buffer_bytes;
        is_shorter.then_some("the server takes shorter payloads now")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    /// Who has all answers leaves in order. A thread that was ended while it waited has not.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (Some(link), true) = (&state.link, state.unanswered.is_empty()) {
            link.leave();
        }
    }
}

/// Whether the server has not what is asked for. It had what a session is of, and has it again when
/// nothing hinders it any more. Where no other service allows the user, it does not even ask which
/// one is meant.
fn is_missing(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Refused(Status::NoService | Status::NotAllowed))
}

/// Whether a refusal may be over soon.
fn passes(error: &ConnectError) -> bool {
    let ConnectError::Refused(status) = error else {
        return matches!(error, ConnectError::Memory(_));
    };
    matches!(status, Status::InUse | Status::TooManyClients | Status::NoMemory)
}
