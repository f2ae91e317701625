//! Which clients have a session with a service that is no log.
//!
//! Promise: a client has one session at a time.
//! Never: knows a log's clients; its windows do.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_client::protocol::{ClientId, Status};

/// The clients that have a session.
#[derive(Default)]
pub(crate) struct Present(Mutex<BTreeSet<ClientId>>);

impl Present {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<ClientId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The mark that a client has a session, taken away when dropped. Without it a request that a
/// client repeats could be done beside, or after, the one that an earlier session still has.
pub(crate) struct Presence {
    present: Arc<Present>,
    client: ClientId,
}

impl Presence {
    pub(crate) fn enter(present: &Arc<Present>, client: ClientId) -> Result<Presence, Status> {
        match present.lock().insert(client) {
            true => Ok(Presence { present: Arc::clone(present), client }),
            false => Err(Status::InUse),
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.present.lock().remove(&self.client);
    }
}
