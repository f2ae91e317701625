//! A store of ours in one of the ways that it can be configured, under load in short slices.
//!
//! Promise: every page is in the pool before the first slice; the store stays open between slices,
//! and its sums agree at the end.
//! Never: knows what is compared.

use holdfast_bench_common::clock::Clock;
use holdfast_bench_common::place::Place;
use holdfast_figures::percentile;
use holdfast_store::Config;

use std::time::Duration;

use crate::Failure;
use crate::drive::{self, Hand};
use crate::peers::Durability;
use crate::peers::holdfast::{self, Bank};
use crate::rates::{Loaded, terms};
use crate::tpcb;

/// Clients: each has a branch, and other branches have none.
const CLIENTS: u32 = 2;

/// A store and its clients.
pub(crate) struct Subject {
    pub(crate) bank: Bank,
    hands: Vec<Hand>,
    place: Place,
}

/// What a slice came to.
pub(crate) struct Rate {
    pub(crate) per_s: f64,
    pub(crate) cpu_us: f64,
    pub(crate) p99_us: f64,
}

impl Subject {
    /// A copy of what was loaded, with what is usual in its configuration changed.
    pub(crate) fn open(
        loaded: &Loaded,
        name: &str,
        whole: &Place,
        durability: Durability,
        change: impl FnOnce(&mut Config),
    ) -> Result<Subject, Failure> {
        let place = whole.copy(name, loaded.place.path())?;
        let mut config = holdfast::config(place.path(), &terms(durability));
        change(&mut config);
        let bank = Bank::open(place.path(), &config, durability)?;
        // Brings every page into the pool.
        tpcb::check(&bank, loaded.bank, 0..=0)?;
        let hands = Hand::all(loaded.bank, CLIENTS);
        Ok(Subject { bank, hands, place })
    }

    /// Transactions for so long, with nothing timed.
    pub(crate) fn warm_up(&mut self, time: Duration) -> Result<(), Failure> {
        drive::all(&self.bank, &mut self.hands, time)
    }

    /// One slice, with something beside it that is told when it is over. What that then still does
    /// takes time of the processors, and no transaction's.
    pub(crate) fn slice(
        &mut self,
        beside: impl FnOnce(&Bank, &mut dyn FnMut() -> Result<(), Failure>) -> Result<(), Failure>,
        time: Duration,
    ) -> Result<Rate, Failure> {
        drive::take_times_ns(&mut self.hands);
        let (bank, hands) = (&self.bank, &mut self.hands);
        let clock = Clock::start();
        let mut wall_s = 0.0;
        beside(bank, &mut || {
            drive::all(bank, hands, time)?;
            wall_s = clock.wall_s();
            Ok(())
        })?;
        let cpu_us = clock.process_us();
        let times = drive::take_times_ns(&mut self.hands);
        let (count, p99_us) = (times.len() as f64, percentile(&times, 99) as f64 / 1000.0);
        Ok(Rate { per_s: count / wall_s, cpu_us: cpu_us / count, p99_us })
    }

    /// Looks whether everything is there.
    pub(crate) fn end(self, loaded: &Loaded) -> Result<(), Failure> {
        let done = self.hands.iter().map(Hand::done).sum();
        tpcb::check(&self.bank, loaded.bank, done..=done)?;
        self.bank.store.close()?;
        drop(self.place);
        Ok(())
    }
}
