//! What is written to the log about one client.
//!
//! Promise: every line that a client can cause goes through the one limit of all clients.
//! Never: lets a client fill the log, however often it connects.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use holdfast_peers::Peer;

/// The way to the log for what is to be said about one client.
#[derive(Clone)]
pub(crate) struct Complaints {
    protocol: &'static str,
    client: String,
    peer: Peer,
    all: Arc<holdfast_peers::Complaints>,
}

impl Complaints {
    /// `client` names it in every line; `all` has the lines of all clients.
    pub(crate) fn about(
        protocol: &'static str,
        client: String,
        peer: Peer,
        all: &Arc<holdfast_peers::Complaints>,
    ) -> Complaints {
        Complaints { protocol, client, peer, all: Arc::clone(all) }
    }

    /// About one who has no others beside it.
    pub(crate) fn alone(protocol: &'static str, client: String) -> Complaints {
        Complaints::about(protocol, client, Peer::Unknown, &Arc::default())
    }

    pub(crate) fn say(&self, what: impl Display) {
        let (protocol, client) = (self.protocol, &self.client);
        // One that has gone has no name any more, and its peer is named before all this.
        match client.is_empty() {
            true => self.all.say(self.peer, Instant::now(), format_args!("{protocol}: {what}")),
            false => {
                self.all.say(
                    self.peer,
                    Instant::now(),
                    format_args!("{protocol}: {client}: {what}"),
                );
            }
        }
    }
}
