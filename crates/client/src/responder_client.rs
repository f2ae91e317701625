//! A service of bytes in, bytes out, asked so that each request is done once.
//!
//! Promise: a request that was answered was done once, whoever died meanwhile; its answer is the
//! one that was given when it was done.
//! Never: knows what the bytes mean.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{error, fmt, io};

use crate::answer::{Refusal, judged};
use crate::call::{Call, ResponseTarget};
use crate::connect::ConnectError;
use crate::protocol::{Operation, Status};
use crate::session::{Patience, Session};

/// How long a program waits until there is room for it again.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(10);

/// A served responder. Share it among all threads of a process, each with one request under way.
/// When it is dropped, the service is told that nothing will be asked again.
#[derive(Debug)]
pub struct ResponderClient {
    session: Session,
}

/// Why a request was not answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RequestError {
    /// The request is longer than the service takes. Nothing was done; ask for less at once.
    TooLarge {
        /// Bytes it has.
        request_bytes: u64,
        /// Most bytes of a request.
        request_bytes_max: u64,
    },
    /// The bytes are no request of this service. Nothing was done; correct the program.
    Malformed,
    /// What keeps the service's state failed; whether the request was done is not known. See to the
    /// service.
    Failed(Arc<io::Error>),
    /// The server refuses this client, and so does what follows. Whether the request was done is
    /// not known.
    Unreachable(Arc<io::Error>),
}

impl ResponderClient {
    /// Connects to the service of this full name, such as `table/accounts`, of the server that
    /// listens at `socket`.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(socket: &Path, service: &str) -> Result<ResponderClient, ConnectError> {
        let patience = Patience { first: Duration::ZERO, later: REFUSAL_PATIENCE };
        let session = Session::open(socket.to_owned(), service.to_owned(), patience)?;
        Ok(ResponderClient { session })
    }

    /// Has a request done once, and returns its answer. Waits while there is no server.
    ///
    /// Durability: that of the service.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn request(&self, request: &[u8]) -> Result<Vec<u8>, RequestError> {
        let request_bytes = request.len() as u64;
        let request_bytes_max = self.session.reply().payload_bytes_max;
        if request_bytes > request_bytes_max {
            return Err(RequestError::TooLarge { request_bytes, request_bytes_max });
        }
        let (mut answer, parts) = (Vec::new(), [request]);
        let ask = Call { parts: &parts, ..Call::new(Operation::Respond, [0; 2]) };
        let answered = self.session.ask_once(ask, &mut ResponseTarget::Vector(&mut answer));
        let answered = answered.map_err(RequestError::Unreachable)?;
        judged(answered).map_err(|refusal| request_error(&refusal))?;
        Ok(answer)
    }
}

fn request_error(refusal: &Refusal) -> RequestError {
    match refusal.status {
        Status::Malformed => RequestError::Malformed,
        Status::Failed => RequestError::Failed(Arc::new(refusal.errno())),
        _ => RequestError::Unreachable(refusal.refused()),
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { request_bytes, request_bytes_max } => {
                write!(out, "a request has at most {request_bytes_max} bytes, not {request_bytes}")
            }
            Self::Malformed => out.write_str("the bytes are no request of this service"),
            Self::Failed(error) => write!(out, "what keeps the service's state failed: {error}"),
            Self::Unreachable(error) => write!(out, "the server refuses: {error}"),
        }
    }
}

impl error::Error for RequestError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Failed(error) | Self::Unreachable(error) => Some(error),
            Self::TooLarge { .. } | Self::Malformed => None,
        }
    }
}
