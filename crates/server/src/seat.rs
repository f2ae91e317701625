//! What a client costs, on the account of its user.
//!
//! Promise: a seat is given back with the last of what was held for it, and no sooner.
//! Never: asks whether a user is allowed.

use std::sync::Arc;

use holdfast_peers::{Peer, Place, Places};

use crate::service::Service;

/// A place among a service's clients and the server's, given back when dropped. What a client costs
/// owns it, so that it is given back when that is.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Both are `Some` until this is dropped.
    places: Option<[Place; 2]>,
    service: Arc<Service>,
}

impl Seat {
    pub(crate) fn take(service: &Arc<Service>, of_server: &Places, peer: Peer) -> Option<Seat> {
        let places = [of_server.take(peer)?, service.clients.take(peer)?];
        service.show_clients();
        Some(Seat { places: Some(places), service: Arc::clone(service) })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        drop(self.places.take());
        self.service.show_clients();
    }
}
