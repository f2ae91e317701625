//! What is written to the log about one client.
//!
//! Promise: the first faults of a client each have a line; the rest are counted in one more.
//! Never: lets a client fill the log.

use std::fmt::Display;

/// Lines about one connection.
const LINES_MAX: u64 = 16;

/// The faults of one client.
pub(crate) struct Complaints {
    client: String,
    count: u64,
}

impl Complaints {
    /// `client` names it in every line.
    pub(crate) fn about(client: String) -> Complaints {
        Complaints { client, count: 0 }
    }

    pub(crate) fn say(&mut self, what: impl Display) {
        self.count += 1;
        if self.count <= LINES_MAX {
            tracing::warn!(client = self.client, "NBD: {what}");
        }
    }
}

impl Drop for Complaints {
    fn drop(&mut self) {
        if self.count > LINES_MAX {
            let (client, more) = (&self.client, self.count - LINES_MAX);
            tracing::warn!(client, "NBD: {more} more faults of this client");
        }
    }
}
