//! Those who have come and have not said yet what they want.
//!
//! Promise: there are never more of them than there may be, of one peer nor of all; each has one
//! deadline, which nothing that he does moves; who comes when there is no room takes it from one of
//! his own peer, or of the peers that have the most: from the oldest who has said nothing, as long
//! as at least half of them have not.
//! Never: knows those who have said what they want, so nobody here can push one of them out.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crate::Peer;

/// How many may wait, and how long.
#[derive(Clone, Copy, Debug)]
pub struct LobbyLimits {
    /// Of all peers. At least one.
    pub most: usize,
    /// Of one peer. At least one.
    pub of_peer: usize,
    /// How long each may take for all that he has to say.
    pub patience: Duration,
}

/// One who waits. It is nobody else's, ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// Those who wait, the longest first, each with what the caller keeps of him.
#[derive(Debug)]
pub struct Lobby<T> {
    limits: LobbyLimits,
    waiting: VecDeque<Waiting<T>>,
    entered: u64,
}

#[derive(Debug)]
struct Waiting<T> {
    ticket: Ticket,
    peer: Peer,
    deadline: Instant,
    has_spoken: bool,
    kept: T,
}

impl<T> Lobby<T> {
    /// With nobody in it.
    #[must_use]
    pub fn new(limits: LobbyLimits) -> Lobby<T> {
        assert!(limits.most > 0 && limits.of_peer > 0, "a lobby has room for one");
        Lobby { limits, waiting: VecDeque::new(), entered: 0 }
    }

    /// Takes one in. Whom that pushed out comes back: end him.
    pub fn enter(&mut self, peer: Peer, now: Instant, kept: T) -> (Ticket, Option<T>) {
        let pushed_out = self.victim(peer).and_then(|place| self.waiting.remove(place));
        self.entered += 1;
        let (ticket, deadline) = (Ticket(self.entered), now + self.limits.patience);
        self.waiting.push_back(Waiting { ticket, peer, deadline, has_spoken: false, kept });
        (ticket, pushed_out.map(|waiting| waiting.kept))
    }

    /// Who has to go before another of this peer can come.
    fn victim(&self, peer: Peer) -> Option<usize> {
        let mut counts = BTreeMap::<Peer, usize>::new();
        self.waiting.iter().for_each(|waiting| *counts.entry(waiting.peer).or_default() += 1);
        let own = counts.entry(peer).or_default();
        *own += 1;
        let is_full_of_own = *own > self.limits.of_peer;
        if !is_full_of_own && self.waiting.len() < self.limits.most {
            return None;
        }
        let most = counts.values().max().expect("one comes");
        let may_go = |waiting: &Waiting<T>| match is_full_of_own {
            true => waiting.peer == peer,
            false => counts[&waiting.peer] == *most,
        };
        let all = self.waiting.iter().enumerate().filter(|(_, waiting)| may_go(waiting));
        let (spoken, silent): (Vec<_>, Vec<_>) = all.partition(|(_, waiting)| waiting.has_spoken);
        // Those who speak and never come to the point keep nobody out who is about to speak.
        let from = if spoken.len() > silent.len() { spoken } else { silent };
        // A peer that has the most by the one that comes has nobody here yet if all have one.
        Some(from.first().map_or(0, |(place, _)| *place))
    }

    /// One has begun to say what he wants, and so that it may become something.
    pub fn has_spoken(&mut self, ticket: Ticket) {
        let waiting = self.waiting.iter_mut().find(|waiting| waiting.ticket == ticket);
        waiting.into_iter().for_each(|waiting| waiting.has_spoken = true);
    }

    /// Takes one out, who has said what he wants or has gone. `None`: he was pushed out, or his
    /// time was over.
    pub fn leave(&mut self, ticket: Ticket) -> Option<T> {
        let place = self.waiting.iter().position(|waiting| waiting.ticket == ticket)?;
        self.waiting.remove(place).map(|waiting| waiting.kept)
    }

    /// Takes those out whose time is over: end them.
    pub fn expired(&mut self, now: Instant) -> Vec<(Peer, T)> {
        let count = self.waiting.iter().take_while(|waiting| waiting.deadline <= now).count();
        self.waiting.drain(..count).map(|waiting| (waiting.peer, waiting.kept)).collect()
    }

    /// When the next one's time is over.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.waiting.front().map(|waiting| waiting.deadline)
    }

    /// All of them, the longest first.
    pub fn iter(&self) -> impl Iterator<Item = (Ticket, Peer, &T)> {
        self.waiting.iter().map(|waiting| (waiting.ticket, waiting.peer, &waiting.kept))
    }

    /// What is kept of one.
    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        self.waiting.iter_mut().find(|it| it.ticket == ticket).map(|waiting| &mut waiting.kept)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
