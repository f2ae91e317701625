//! How much is measured.
//!
//! Promise: a quick run does all that a whole one does, with less of each.
//! Never: differs between stores.

use std::time::Duration;

use crate::tpcb::Bank;

/// Clients of durable transactions; as many as the first of these ask for those that are not.
pub(crate) const THREADS: [u32; 3] = [2, 8, 32];

/// Branches of the bank in which checkpoints are compared, of which few have clients: so that there
/// is much that a checkpoint may have to look at. One of [`THREADS`].
pub(crate) const FLAT_BRANCHES: u32 = THREADS[1];

/// Memory for what a store keeps of its files: more than the largest bank that is measured.
pub(crate) const CACHE_BYTES: usize = 2 << 30;

/// How much.
pub(crate) struct Effort {
    /// Times that everything is measured.
    pub(crate) repetitions: usize,
    /// How long transactions run before the clock starts,
    pub(crate) warm_up: Duration,
    /// and while it runs.
    pub(crate) timed: Duration,
    /// How long the device is measured by itself, before and after.
    pub(crate) control: Duration,
    /// Accounts of a branch.
    pub(crate) accounts: u32,
    /// How long checkpoints of one kind and interval run before others do; no divisor of an
    /// interval, so that checkpoints fall anywhere in a turn;
    pub(crate) flat_turn: Duration,
    /// how many turns of each are taken together,
    pub(crate) flat_turns: usize,
    /// and how often that is done.
    pub(crate) flat_rounds: usize,
    /// How long pages are cleaned in one way before they are in another; as often as that.
    pub(crate) cleaning_slice: Duration,
    /// How long writers run with or without somebody who reads beside them, and how often.
    pub(crate) scan_slice: Duration,
    pub(crate) scan_rounds: usize,
    /// Pages that are damaged.
    pub(crate) faults: u64,
    /// Megabytes of rows that a killed process leaves in its log, in order. Others than ours are
    /// measured with the last of them.
    pub(crate) left_mb: &'static [u32],
    /// Times that what a killed process left is opened, at most one each time that all is measured.
    pub(crate) restarts: usize,
    /// Rows that go through a queue;
    pub(crate) queued_rows: u64,
    /// rows of a table that turns over, and how often it does.
    pub(crate) churned_rows: u64,
    pub(crate) churns: u64,
    /// How long transactions run before a process is killed, and after the next has begun.
    pub(crate) around_kill: Duration,
    /// How long a store is used in the loads that go on and on, and how often it is looked at.
    pub(crate) soak: Duration,
    pub(crate) soak_sample: Duration,
}

impl Effort {
    pub(crate) fn whole() -> Effort {
        Effort {
            repetitions: 5,
            warm_up: Duration::from_millis(200),
            timed: Duration::from_secs(1),
            control: Duration::from_millis(250),
            accounts: 100_000,
            flat_turn: Duration::from_millis(37),
            flat_turns: 18,
            flat_rounds: 15,
            cleaning_slice: Duration::from_millis(700),
            scan_slice: Duration::from_secs(3),
            scan_rounds: 7,
            faults: 1000,
            left_mb: &[10, 30, 100, 300, 1000],
            restarts: 3,
            queued_rows: 200_000,
            churned_rows: 100_000,
            churns: 6,
            around_kill: Duration::from_secs(2),
            soak: Duration::from_mins(5),
            soak_sample: Duration::from_secs(10),
        }
    }

    /// As much of checkpoints as in the paper: a quarter of an hour of each kind and interval, and
    /// as much of cleaners. With the log in both places that takes nine hours. The loads that go on
    /// and on take half an hour of each store.
    pub(crate) fn long() -> Effort {
        let soak = Duration::from_mins(30);
        Effort { flat_turns: 540, flat_rounds: 45, soak, ..Effort::whole() }
    }

    pub(crate) fn quick() -> Effort {
        Effort {
            repetitions: 1,
            warm_up: Duration::from_millis(20),
            timed: Duration::from_millis(150),
            control: Duration::from_millis(50),
            accounts: 2_000,
            flat_turn: Duration::from_millis(50),
            flat_turns: 2,
            flat_rounds: 1,
            cleaning_slice: Duration::from_millis(50),
            scan_slice: Duration::from_millis(300),
            scan_rounds: 3,
            faults: 50,
            left_mb: &[1, 3, 10],
            restarts: 1,
            queued_rows: 20_000,
            churned_rows: 10_000,
            churns: 3,
            around_kill: Duration::from_millis(200),
            soak: Duration::from_secs(6),
            soak_sample: Duration::from_millis(500),
        }
    }

    /// A bank with a branch a client.
    pub(crate) fn bank(&self, clients: u32) -> Bank {
        Bank { branches: clients, accounts: self.accounts }
    }
}
