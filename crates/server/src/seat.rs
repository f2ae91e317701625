//! What a client costs, on the account of its user.
//!
//! Promise: a seat is given back with the last of what was held for it, and no sooner.
//! Never: asks whether a user is allowed.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_peers::{Peer, Place, Places};

use crate::service_words::ServiceWords;
use crate::words;

/// The places of a service's clients, and the word that says how many are held.
pub(crate) struct Clients {
    places: Places,
    words: Arc<dyn ServiceWords>,
}

impl Clients {
    pub(crate) fn new(places: Places, words: Arc<dyn ServiceWords>) -> Arc<Clients> {
        let clients = Arc::new(Clients { places, words });
        clients.show();
        clients
    }

    /// Most sessions at a time.
    pub(crate) fn most(&self) -> u32 {
        self.places.most()
    }

    /// Tells status how many clients hold a seat.
    fn show(&self) {
        self.words.word(words::CLIENTS).store(self.places.held().into(), Ordering::Relaxed);
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Clients").field("places", &self.places).finish_non_exhaustive()
    }
}

/// A place among a service's clients and the server's, given back when dropped. What a client costs
/// owns it, so that it is given back when that is.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Both are `Some` until this is dropped.
    places: Option<[Place; 2]>,
    clients: Arc<Clients>,
}

impl Seat {
    pub(crate) fn take(clients: &Arc<Clients>, of_server: &Places, peer: Peer) -> Option<Seat> {
        let places = [of_server.take(peer)?, clients.places.take(peer)?];
        clients.show();
        Some(Seat { places: Some(places), clients: Arc::clone(clients) })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        drop(self.places.take());
        self.clients.show();
    }
}
