//! Clients of a bank, a thread each.
//!
//! Promise: all threads start together, and each waits for its transaction before it asks for the
//! next.
//! Never: lets a client change branches.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::peers::{Peer, Worker};
use crate::tpcb::{Bank, Client};

/// A client and how long each of its transactions took.
pub(crate) struct Hand {
    client: Client,
    times_ns: Vec<u64>,
    done: u64,
}

impl Hand {
    /// A client a thread.
    pub(crate) fn all(bank: Bank, threads: u32) -> Vec<Hand> {
        (0..threads).map(|client| Hand::new(Client::new(bank, client, 0))).collect()
    }

    pub(crate) fn new(client: Client) -> Hand {
        Hand { client, times_ns: Vec::with_capacity(1 << 16), done: 0 }
    }

    /// Transactions of it that were acknowledged.
    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    /// Does one more.
    pub(crate) fn transact(&mut self, worker: &mut dyn Worker) -> Result<(), Failure> {
        let began = Instant::now();
        worker.transaction(&self.client.next())?;
        self.times_ns.push(began.elapsed().as_nanos() as u64);
        self.done += 1;
        Ok(())
    }
}

/// How long each transaction since the last call took, sorted.
pub(crate) fn take_times_ns(hands: &mut [Hand]) -> Vec<u64> {
    let mut times: Vec<u64> = hands.iter_mut().flat_map(|hand| hand.times_ns.drain(..)).collect();
    times.sort_unstable();
    times
}

/// Each client asks for so long.
pub(crate) fn all(peer: &dyn Peer, hands: &mut [Hand], time: Duration) -> Result<(), Failure> {
    let start = &Barrier::new(hands.len());
    std::thread::scope(|scope| {
        let begin = |hand| scope.spawn(move || one(peer, hand, start, time));
        let threads: Vec<_> = hands.iter_mut().map(begin).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread died")?)
    })
}

/// The same. Returns when each transaction ended, counted from the beginning, sorted.
pub(crate) fn ends(
    peer: &dyn Peer,
    hands: &mut [Hand],
    time: Duration,
) -> Result<Vec<Duration>, Failure> {
    take_times_ns(hands);
    all(peer, hands, time)?;
    let mut ends = Vec::new();
    for hand in hands {
        // A client asks for the next as soon as it has one.
        let mut end = Duration::ZERO;
        ends.extend(hand.times_ns.drain(..).map(|took| {
            end += Duration::from_nanos(took);
            end
        }));
    }
    ends.sort_unstable();
    Ok(ends)
}

/// What one thread does once all are there.
fn one(peer: &dyn Peer, hand: &mut Hand, start: &Barrier, time: Duration) -> Result<(), Failure> {
    let worker = peer.worker();
    start.wait();
    let (mut worker, began) = (worker?, Instant::now());
    while began.elapsed() < time {
        hand.transact(&mut *worker)?;
    }
    Ok(())
}
