//! Exactly once: which appends of a client are in the log, and what they were answered.
//!
//! A client numbers its appends and says with each which is the oldest it has no answer to. The
//! server writes both before the payload, into the frame itself, so the log is the truth: after a
//! death the windows are read from the ring. What a reader releases before its client is known to
//! have the answer is carried over into the region's roster first.
//!
//! Promise: a number that was appended is answered as it was then, never appended again; a number
//! that no longer can be told from a new one is refused.
//! Never: keeps more of a client than [`WINDOW`] numbers.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_client::protocol::{ClientId, WINDOW};
use holdfast_log::{Lsn, NUMBER_BYTES};
use holdfast_peers::Peer;

/// Clients that went away and are still remembered, should they only have lost their connection.
const DEPARTED_MAX: usize = 256;

/// Bytes of a carried answer.
const CARRIED_BYTES: usize = NUMBER_BYTES + 16;

/// Where an append went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) lsn: Lsn,
    pub(crate) end: Lsn,
}

/// What the server puts before the records of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) client: ClientId,
    pub(crate) sequence: u64,
    /// The client has the answers to everything below.
    pub(crate) oldest: u64,
}

impl Number {
    pub(crate) fn encode(&self) -> [u8; NUMBER_BYTES] {
        let mut bytes = [0; NUMBER_BYTES];
        bytes[..16].copy_from_slice(&self.client.0);
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..].copy_from_slice(&self.oldest.to_le_bytes());
        bytes
    }

    /// The number of a frame.
    pub(crate) fn decode(bytes: &[u8; NUMBER_BYTES]) -> Number {
        let (words, _) = bytes.as_chunks::<8>();
        let (client, _) = bytes.split_first_chunk().expect("16 of 32 bytes");
        let [sequence, oldest] = [words[2], words[3]].map(u64::from_le_bytes);
        Number { client: ClientId(*client), sequence, oldest }
    }
}

/// What is known of a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing: append it.
    New,
    /// It was appended, and went there.
    Placed(Placed),
    /// Outside the window: the client does not keep to the protocol.
    Outside,
}

/// The appends of one client that it may ask for again.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// The client has the answers to everything below.
    oldest: u64,
    /// The highest number appended.
    last: u64,
    placed: BTreeMap<u64, Placed>,
    /// Everything below this position is in the roster, if it is needed at all.
    carried: Lsn,
    has_session: bool,
}

impl Window {
    /// Looks a number up; the client has the answers to everything below `oldest`.
    pub(crate) fn look(&mut self, sequence: u64, oldest: u64) -> Seen {
        if sequence < oldest.max(self.oldest) || oldest == 0 {
            return Seen::Outside;
        }
        self.forget_below(oldest);
        if let Some(placed) = self.placed.get(&sequence) {
            return Seen::Placed(*placed);
        }
        match sequence - self.oldest < WINDOW {
            true => Seen::New,
            false => Seen::Outside,
        }
    }

    /// Remembers where a number went.
    pub(crate) fn put(&mut self, sequence: u64, placed: Placed) {
        self.last = self.last.max(sequence);
        self.placed.insert(sequence, placed);
    }

    /// Takes over what a frame or a note says, in the order of the log.
    fn replay(&mut self, number: Number, placed: Placed) {
        self.forget_below(number.oldest);
        if number.sequence >= self.oldest {
            self.put(number.sequence, placed);
        }
    }

    fn forget_below(&mut self, oldest: u64) {
        if oldest > self.oldest {
            self.oldest = oldest;
            self.placed = self.placed.split_off(&oldest);
        }
    }

    /// What would be lost with the frames below `upto`.
    fn to_carry(&self, upto: Lsn) -> impl Iterator<Item = (u64, Placed)> {
        let is_leaving = move |placed: &Placed| self.carried <= placed.lsn && placed.lsn < upto;
        let placed = self.placed.iter().map(|(sequence, placed)| (*sequence, *placed));
        placed.filter(move |(_, placed)| is_leaving(placed))
    }
}

/// A client's window while it has a session.
pub(crate) type Shared = Arc<Mutex<Window>>;

/// The windows of a log's clients.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    windows: HashMap<ClientId, Shared>,
    /// Those without a session that had one in this server's life, the longest gone first.
    departed: VecDeque<(Peer, ClientId)>,
    /// A client was forgotten.
    has_forgotten: bool,
}

impl Known {
    /// The oldest of the peer that has the most.
    fn to_forget(&self) -> usize {
        let mut counts = BTreeMap::<Peer, usize>::new();
        self.departed.iter().for_each(|(peer, _)| *counts.entry(*peer).or_default() += 1);
        let most = counts.into_iter().max_by_key(|(_, count)| *count).map(|(peer, _)| peer);
        self.departed.iter().position(|(peer, _)| Some(*peer) == most).unwrap_or(0)
    }
}

/// Why a client gets no window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowRefusal {
    /// A session of the same client is open.
    InUse,
    /// It has requests that it wants answered, and they may have been forgotten.
    Forgotten,
}

impl Windows {
    /// Takes over a frame found in the ring.
    pub(crate) fn replay(&self, number: Number, placed: Placed) {
        let window = Arc::clone(self.lock().windows.entry(number.client).or_default());
        lock(&window).replay(number, placed);
    }

    /// Takes over what [`Windows::carry`] wrote.
    pub(crate) fn replay_carried(&self, record: &[u8]) {
        let Some((number, rest)) = record.split_first_chunk() else { return };
        let &[lsn, end] = rest.as_chunks::<8>().0 else { return };
        let [lsn, end] = [lsn, end].map(|bytes| Lsn(u64::from_le_bytes(bytes)));
        self.replay(Number::decode(number), Placed { lsn, end });
    }

    /// What came of requests of before cannot be known: whoever had a session is refused.
    pub(crate) fn forget_all(&self) {
        *self.lock() = Known { has_forgotten: true, ..Known::default() };
    }

    /// Whether anything of this client is remembered.
    pub(crate) fn knows(&self, client: ClientId) -> bool {
        self.lock().windows.contains_key(&client)
    }

    /// Opens a client's window, and returns it with the highest number that was appended.
    pub(crate) fn enter(
        &self,
        client: ClientId,
        oldest: u64,
    ) -> Result<(Shared, u64), WindowRefusal> {
        let mut known = self.lock();
        if !known.windows.contains_key(&client) && oldest > 0 && known.has_forgotten {
            return Err(WindowRefusal::Forgotten);
        }
        let shared = Arc::clone(known.windows.entry(client).or_default());
        let mut window = lock(&shared);
        if window.has_session {
            return Err(WindowRefusal::InUse);
        }
        window.has_session = true;
        window.forget_below(oldest);
        let last = window.last;
        drop(window);
        known.departed.retain(|(_, departed)| *departed != client);
        Ok((shared, last))
    }

    /// The client's session is over. Of too many that are remembered the peer that has the most
    /// loses its oldest, so nobody can have another's forgotten.
    pub(crate) fn leave(&self, client: ClientId, peer: Peer) {
        let mut known = self.lock();
        if let Some(window) = known.windows.get(&client) {
            lock(window).has_session = false;
        }
        known.departed.push_back((peer, client));
        if known.departed.len() > DEPARTED_MAX {
            let place = known.to_forget();
            let (_, gone) = known.departed.remove(place).expect("there are too many");
            known.windows.remove(&gone);
            known.has_forgotten = true;
        }
    }

    /// The answers that would be lost with the frames below `upto`, as records of the roster. When
    /// they are there, [`Windows::carried`] is to be told.
    pub(crate) fn carry(&self, upto: Lsn) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        for (client, window) in &self.lock().windows {
            let window = lock(window);
            for (sequence, placed) in window.to_carry(upto) {
                let number = Number { client: *client, sequence, oldest: window.oldest };
                records.push(carried_record(&number, placed));
            }
        }
        records
    }

    /// What [`Windows::carry`] gave for this position is in the roster.
    pub(crate) fn carried(&self, upto: Lsn) {
        for window in self.lock().windows.values() {
            let mut window = lock(window);
            window.carried = window.carried.max(upto);
        }
    }

    /// Everything that is below `upto` and may still be asked for, whether carried or not.
    pub(crate) fn carry_anew(&self, upto: Lsn) -> Vec<Vec<u8>> {
        self.lock().windows.values().for_each(|window| lock(window).carried = Lsn(0));
        self.carry(upto)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A window, whoever panicked with it.
pub(crate) fn lock(window: &Mutex<Window>) -> MutexGuard<'_, Window> {
    window.lock().unwrap_or_else(PoisonError::into_inner)
}

fn carried_record(number: &Number, placed: Placed) -> Vec<u8> {
    let mut record = Vec::with_capacity(CARRIED_BYTES);
    record.extend_from_slice(&number.encode());
    record.extend_from_slice(&placed.lsn.0.to_le_bytes());
    record.extend_from_slice(&placed.end.0.to_le_bytes());
    record
}

#[cfg(test)]
mod tests;
