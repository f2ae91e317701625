//! What all connections see.
//!
//! Promise: who is to stop hears of it at once.
//! Never: serves anybody.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_peers::Complaints;

use super::export::{Export, NbdConfig};
use super::gate::Gate;
use super::session::Session;
use crate::wake::WakeUp;

/// What all connections see.
pub(crate) struct Shared<'e> {
    pub(crate) exports: &'e [Export<'e>],
    pub(crate) config: NbdConfig,
    pub(crate) complaints: Arc<Complaints>,
    /// Of each listener, and behind them of sessions whose listener is not here.
    pub(super) gates: Vec<Gate>,
    pub(super) is_closing: AtomicBool,
    pub(super) closing: WakeUp,
    pub(super) open: AtomicUsize,
    pub(super) stopped: Mutex<Vec<Session>>,
}

impl Shared<'_> {
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Readable once everybody is to stop.
    pub(crate) fn closing(&self) -> &WakeUp {
        &self.closing
    }

    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
        self.closing.wake();
    }

    /// Where a connection came in.
    pub(super) fn gate_of(&self, socket: &OwnedFd) -> &Gate {
        let (last, gates) = self.gates.split_last().expect("there is one for the rest");
        gates.iter().find(|gate| gate.is_of(socket)).unwrap_or(last)
    }
}
