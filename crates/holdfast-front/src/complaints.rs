//! What is written to the log about one client.
//!
//! Promise: the first faults of a client each have a line; the rest are counted in one more.
//! Never: lets a client fill the log.

use std::fmt::Display;

/// Lines about one client.
const LINES_MAX: u64 = 16;

/// The faults of one client.
pub(crate) struct Complaints {
    protocol: &'static str,
    client: String,
    count: u64,
}

impl Complaints {
    /// `client` names it in every line.
    pub(crate) fn about(protocol: &'static str, client: String) -> Complaints {
        Complaints { protocol, client, count: 0 }
    }

    pub(crate) fn say(&mut self, what: impl Display) {
        self.count += 1;
        if self.count <= LINES_MAX {
            tracing::warn!(client = self.client, "{}: {what}", self.protocol);
        }
    }
}

impl Drop for Complaints {
    fn drop(&mut self) {
        if self.count > LINES_MAX {
            let (protocol, client) = (self.protocol, &self.client);
            let more = self.count - LINES_MAX;
            tracing::warn!(client, "{protocol}: {more} more faults of this client");
        }
    }
}
