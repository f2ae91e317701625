//! The queue: one page through which a client asks the server for work (DM/6000, sections 4.3 to
//! 4.5).
//!
//! Promise: every step is lock-free, and the page is in a right state between any two
//! instructions, so a client that stops anywhere stops nobody else; requests are taken in the
//! order in which they were put; whatever bytes a client writes into the page, the server's side
//! neither panics nor loops nor reads outside of it, and says what it found damaged.
//! Never: knows what a request means. It holds no pointer: a link is an offset into the page.
//!
//! In the order in which a request goes: [`Queue::acquire`] finds a free slot and
//! [`Queue::put`] links it (`client`); [`Queue::take`] hands out the oldest and
//! [`Queue::complete`] answers it (`server`); [`Queue::wait`] and [`Queue::free`] end it
//! (`client`). `page` is the layout, `slot` one slot's word, `repair` brings back the slots of the
//! dead and a page that was damaged.
//!
//! A page has any number of clients and **one taker at a time**: the thread of the server that
//! calls `take`, `reclaim` and `rebuild`. [`Queue::complete`] may be called from anywhere.

use std::sync::atomic::{AtomicU64 as Counter, Ordering};

// Named outright, because the models include this file by its path.
#[path = "queue/client.rs"]
mod client;
#[path = "queue/page.rs"]
mod page;
#[path = "queue/repair.rs"]
mod repair;
#[path = "queue/server.rs"]
mod server;
#[path = "queue/slot.rs"]
mod slot;

pub(crate) use page::Page;
pub use page::{PAGE_BYTES, SLOTS, SlotIndex};
pub use repair::REBUILT;
pub use server::{Damage, Taken};
pub use slot::{Owner, Request, Response};

/// How often to look before sleeping, on a machine with more than one core; with one core, 0.
///
/// About as long as waking a process on an idle core takes, so whoever waits in vain loses at most
/// what it would have lost by sleeping at once (decision 21).
pub const SPINS: u32 = 500;

/// One side's view of a queue page.
#[derive(Clone, Copy, Debug)]
pub struct Queue<'a> {
    page: &'a Page,
    /// Outside the page: what the server counts is not for a client to change.
    damages: &'a Counter,
}

impl<'a> Queue<'a> {
    pub(crate) fn over(page: &'a Page, damages: &'a Counter) -> Queue<'a> {
        Queue { page, damages }
    }

    /// How often this side found the page damaged.
    #[must_use]
    pub fn damage_count(&self) -> u64 {
        self.damages.load(Ordering::Relaxed)
    }
}
