//! An answer, judged: what was asked for, or a refusal with its reason.
//!
//! Promise: a status that this version does not know is a refusal, too.
//! Never: decides what a refusal means to a caller; each client does.

use std::io;
use std::sync::Arc;

use holdfast_memory::queue::Response;

use crate::protocol::Status;

/// An answer that is not [`Status::Done`].
pub(crate) struct Refusal {
    pub(crate) status: Status,
    pub(crate) value: u64,
}

/// An answer as a value or a refusal.
pub(crate) fn judged(response: Response) -> Result<Response, Refusal> {
    match Status::from_number(response.status) {
        Some(Status::Done) => Ok(response),
        Some(status) => Err(Refusal { status, value: response.value[0] }),
        None => Err(Refusal { status: Status::BadOperation, value: 0 }),
    }
}

impl Refusal {
    /// The failure of what the server keeps the state on.
    pub(crate) fn errno(&self) -> io::Error {
        match i32::try_from(self.value) {
            Ok(errno) if errno > 0 => io::Error::from_raw_os_error(errno),
            _ => io::Error::other(self.status.to_string()),
        }
    }

    /// The server does not do this for us.
    pub(crate) fn refused(&self) -> Arc<io::Error> {
        Arc::new(io::Error::new(io::ErrorKind::ConnectionRefused, self.status.to_string()))
    }
}
