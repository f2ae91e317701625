//! Requests, one after the other.
//!
//! Promise: the same load and seed give the same requests; a mix draws one random number a request.
//! Never: ends: a trace begins again.

use std::sync::Arc;

use crate::configuration::{Load, Mix};
use crate::request::Request;
use crate::trace::Trace;

/// Where requests come from.
#[derive(Debug)]
pub(crate) enum Requests {
    /// Drawn.
    Mix(Drawn),
    /// Replayed.
    Trace(Replayed),
}

impl Requests {
    /// The requests of a load whose pages can be numbered with 32 bits.
    pub(crate) fn new(load: &Load, seed: u64) -> Requests {
        match load {
            Load::Mix(mix) => Requests::Mix(Drawn::new(mix, seed)),
            Load::Trace(trace) => Requests::Trace(Replayed { trace: Arc::clone(trace), next: 0 }),
        }
    }

    /// The next one.
    #[inline]
    pub(crate) fn next(&mut self) -> Request {
        match self {
            Requests::Mix(drawn) => drawn.next(),
            Requests::Trace(replayed) => replayed.next(),
        }
    }
}

/// Requests of a mix. Pages `0..hot` are the hot ones.
#[derive(Debug)]
pub(crate) struct Drawn {
    /// State of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
    /// 2014).
    state: u64,
    hot: Kind,
    cold: Kind,
}

/// Requests for hot pages, or for cold ones.
#[derive(Clone, Copy, Debug)]
struct Kind {
    first_page: u32,
    pages: u32,
    /// The lower halves of random numbers that mean such a request begin here; so many of them
    /// follow, and of these so many mean a write.
    first: u32,
    requests: u32,
    writes: u32,
}

impl Drawn {
    fn new(mix: &Mix, seed: u64) -> Drawn {
        let (pages, hot_pages) = (mix.database_pages as u32, mix.hot_pages() as u32);
        let whole = f64::from(u32::MAX);
        let hot_requests = (mix.hot_requests * whole) as u32;
        let cold_requests = u32::MAX - hot_requests;
        let writes = |requests: u32| (f64::from(requests) * mix.writes) as u32;
        let hot = Kind {
            first_page: 0,
            pages: hot_pages,
            first: 0,
            requests: hot_requests,
            writes: writes(hot_requests),
        };
        let cold = Kind {
            first_page: hot_pages,
            pages: pages - hot_pages,
            first: hot_requests,
            requests: cold_requests,
            writes: writes(cold_requests),
        };
        Drawn { state: seed, hot, cold }
    }

    #[inline]
    fn next(&mut self) -> Request {
        let random = self.random();
        let (page, kind) = ((random >> 32) as u32, random as u32);
        let of = if kind < self.hot.requests { self.hot } else { self.cold };
        // The upper half says which of the pages, the lower which kind of request.
        let page = (u64::from(page) * u64::from(of.pages)) >> 32;
        Request { page: of.first_page + page as u32, is_write: kind - of.first < of.writes }
    }

    #[inline]
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Requests of a trace, over and over.
#[derive(Debug)]
pub(crate) struct Replayed {
    trace: Arc<Trace>,
    next: usize,
}

impl Replayed {
    #[inline]
    fn next(&mut self) -> Request {
        let request = self.trace.request(self.next);
        self.next += 1;
        if self.next == self.trace.accesses() {
            self.next = 0;
        }
        request
    }
}

#[cfg(test)]
mod tests;
