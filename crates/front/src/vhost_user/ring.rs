//! One queue's rings: which requests are there, and which were answered.
//!
//! Promise: a request is marked as taken before anybody looks at it, and is answered once; what the
//! process before took and did not answer comes first.
//! Never: looks at a request's memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use virtio_queue::{Queue, QueueOwnedT, QueueT};
use vm_memory::GuestAddress;

use super::chain::Table;
use super::inflight::InflightQueue;
use super::memory::{Guest, Lost};

#[cfg(test)]
mod tests;

/// Largest queue of the specification.
const QUEUE_SIZE_MAX: u16 = 32768;

/// Why a queue cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RingFault {
    /// Its rings do not lie in the guest's memory, or have a wrong size or alignment.
    #[error("rings at a place where none can be")]
    Place,
    /// The available ring runs ahead of itself, or behind.
    #[error("an available ring with a wrong index")]
    Index,
    /// A head that is in no table.
    #[error("a head outside the table: {0}")]
    Head(u16),
    /// A head that was not answered yet.
    #[error("a head that waits for its answer already: {0}")]
    Twice(u16),
    /// The memory of the rings, or of what keeps account of them, is gone.
    #[error("memory that was taken away while it was in use")]
    Lost,
}

impl From<Lost> for RingFault {
    fn from(Lost: Lost) -> Self {
        Self::Lost
    }
}

/// Where the rings are.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) size: u16,
    pub(crate) descriptors: GuestAddress,
    pub(crate) available: GuestAddress,
    pub(crate) used: GuestAddress,
    /// The drivers and devices tell each other from which index on they want to be told.
    pub(crate) event_index: bool,
}

/// The rings of one queue.
pub(crate) struct Ring {
    queue: Queue,
    memory: Arc<Guest>,
    inflight: Option<InflightQueue>,
    again: VecDeque<u16>,
    is_taken: Vec<bool>,
}

impl Ring {
    /// Takes the rings up. `next_available` is where to go on if nothing keeps what was taken.
    pub(crate) fn new(
        place: &Place,
        next_available: u16,
        memory: Arc<Guest>,
        inflight: Option<InflightQueue>,
    ) -> Result<Ring, RingFault> {
        let queue = queue(place, &memory).ok_or(RingFault::Place)?;
        let is_taken = vec![false; place.size.into()];
        let mut ring = Ring { queue, memory, inflight, again: VecDeque::new(), is_taken };
        let memory = ring.memory.unchecked();
        let used = ring.queue.used_idx(memory, SeqCst).map_err(|_| RingFault::Place)?.0;
        ring.check()?;
        ring.queue.set_next_used(used);
        ring.queue.set_next_avail(next_available);
        if let Some(inflight) = &mut ring.inflight {
            ring.again = inflight.recover(used).into();
            // Every request up to here was answered or is one of these.
            ring.queue.set_next_avail(used.wrapping_add(ring.again.len() as u16));
        }
        ring.check()?;
        for head in &ring.again {
            ring.is_taken[usize::from(*head)] = true;
        }
        Ok(ring)
    }

    /// The table in which heads are.
    pub(crate) fn table(&self) -> Table {
        let start = GuestAddress(self.queue.desc_table());
        Table { start, entries: self.queue.size().into() }
    }

    /// The head of the next request.
    pub(crate) fn take(&mut self) -> Result<Option<u16>, RingFault> {
        if let Some(head) = self.again.pop_front() {
            return Ok(Some(head));
        }
        let mut available =
            self.queue.iter(self.memory.unchecked()).map_err(|_| RingFault::Index)?;
        let head = available.next().map(|chain| chain.head_index());
        self.check()?;
        let Some(head) = head else { return Ok(None) };
        let is_taken = self.is_taken.get_mut(usize::from(head)).ok_or(RingFault::Head(head))?;
        if std::mem::replace(is_taken, true) {
            return Err(RingFault::Twice(head));
        }
        if let Some(inflight) = &mut self.inflight {
            inflight.take(head);
        }
        self.check()?;
        Ok(Some(head))
    }

    /// Gives a request back; its answer of `bytes` is in place. True if the guest is to be told.
    pub(crate) fn answer(&mut self, head: u16, bytes: u32) -> Result<bool, RingFault> {
        if let Some(inflight) = &mut self.inflight {
            inflight.begin_answer(head);
        }
        let memory = self.memory.unchecked();
        self.queue.add_used(memory, head, bytes).map_err(|_| RingFault::Place)?;
        if let Some(inflight) = &mut self.inflight {
            inflight.end_answer(head, self.queue.next_used());
        }
        self.is_taken[usize::from(head)] = false;
        let is_told = self.queue.needs_notification(memory).map_err(|_| RingFault::Place)?;
        self.check()?;
        Ok(is_told)
    }

    /// From here on the guest need not tell of new requests.
    pub(crate) fn mute(&mut self) -> Result<(), RingFault> {
        let memory = self.memory.unchecked();
        self.queue.disable_notification(memory).map_err(|_| RingFault::Place)?;
        self.check()
    }

    /// The guest is to tell of new requests. True if some are there already.
    pub(crate) fn unmute(&mut self) -> Result<bool, RingFault> {
        let memory = self.memory.unchecked();
        let has_more = self.queue.enable_notification(memory).map_err(|_| RingFault::Place)?;
        self.check()?;
        Ok(has_more)
    }

    /// Whether all that was touched so far was there.
    fn check(&self) -> Result<(), RingFault> {
        self.memory.check()?;
        match &self.inflight {
            Some(inflight) if inflight.is_lost() => Err(RingFault::Lost),
            _ => Ok(()),
        }
    }

    /// True once nothing is left of what the process before had taken.
    pub(crate) fn is_caught_up(&self) -> bool {
        self.again.is_empty()
    }

    /// Where another would go on.
    pub(crate) fn next_available(&self) -> u16 {
        self.queue.next_avail()
    }

    pub(crate) fn memory(&self) -> &Arc<Guest> {
        &self.memory
    }
}

fn queue(place: &Place, memory: &Guest) -> Option<Queue> {
    let mut queue = Queue::new(QUEUE_SIZE_MAX).ok()?;
    queue.try_set_size(place.size).ok()?;
    queue.try_set_desc_table_address(place.descriptors).ok()?;
    queue.try_set_avail_ring_address(place.available).ok()?;
    queue.try_set_used_ring_address(place.used).ok()?;
    queue.set_event_idx(place.event_index);
    queue.set_ready(true);
    queue.is_valid(memory.unchecked()).then_some(queue)
}
