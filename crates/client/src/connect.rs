//! From a path to a session: hello, reply, the session's memory.
//!
//! Promise: a link that is returned has memory of the size that the reply says, sealed by the
//! kernel against change of size; every other outcome says who has to act.
//! Never: tries twice; `session` decides that.

use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use std::{error, fmt};

use holdfast_io::private::check_listener;
use holdfast_memory::SessionMemory;
use holdfast_memory::queue::SLOTS;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};

use crate::link::Link;
use crate::protocol::{Hello, HelloFault, REPLY_BYTES, Reply, Status};

/// How long a server may take to say anything. One that starts up recovers its logs first.
const REPLY_PATIENCE: Duration = Duration::from_secs(30);

/// Why there is no session.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// Nobody answers at the socket. Start the keeper, or correct the path.
    Unreachable(io::Error),
    /// The server says no, and why. The configuration of the server has to change, or the name.
    Refused(Status),
    /// What answered is no server of this protocol. Correct the path, or use its version.
    Protocol(HelloFault),
    /// The session's memory is not what the reply says, or cannot be mapped.
    Memory(io::Error),
}

/// Connects and says hello, unless somebody listens there who is not to be believed.
pub(crate) fn connect(socket: &Path, hello: &Hello) -> Result<Link, ConnectError> {
    let unreachable = ConnectError::Unreachable;
    let mut stream = UnixStream::connect(socket).map_err(unreachable)?;
    check_listener(socket, &stream).map_err(unreachable)?;
    stream.set_read_timeout(Some(REPLY_PATIENCE)).map_err(unreachable)?;
    // A server that has no place refuses before it listens, and its reply is there all the same.
    let said = stream.write_all(&hello.encode());
    let (bytes, descriptor) = receive(&stream).map_err(unreachable)?;
    let reply = Reply::parse(&bytes).map_err(|fault| match fault {
        HelloFault::Short => {
            unreachable(said.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()))
        }
        fault => ConnectError::Protocol(fault),
    })?;
    if reply.status != Status::Done {
        return Err(ConnectError::Refused(reply.status));
    }
    let memory = descriptor.ok_or_else(|| damaged("the reply brings no memory"))?;
    let memory = SessionMemory::map(memory.as_fd())
        .map_err(|error| ConnectError::Memory(io::Error::other(error)))?;
    let needed = u64::from(reply.buffers) * u64::from(reply.buffer_bytes);
    let counts = 1..=SLOTS as u32;
    if !counts.contains(&reply.buffers) || needed > u64::from(memory.buffer_bytes()) {
        return Err(damaged("the session's memory is smaller than the reply says"));
    }
    Ok(Link::new(stream, memory, reply))
}

fn damaged(why: &str) -> ConnectError {
    ConnectError::Memory(io::Error::new(io::ErrorKind::InvalidData, why))
}

/// The reply with the descriptor that came beside it. A connection that ends gives what came.
fn receive(stream: &UnixStream) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut bytes = [0; REPLY_BYTES];
    let (mut got, mut descriptor) = (0, None);
    while got < REPLY_BYTES {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes[got..])];
        let message = recvmsg(stream, &mut parts, &mut beside, RecvFlags::CMSG_CLOEXEC)?;
        if message.bytes == 0 || message.flags.contains(ReturnFlags::CTRUNC) {
            break;
        }
        got += message.bytes;
        for part in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(mut descriptors) = part {
                descriptor = descriptors.next().or(descriptor);
            }
        }
    }
    Ok((bytes[..got].to_vec(), descriptor))
}

impl fmt::Display for ConnectError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => write!(out, "no server answers at the socket: {error}"),
            Self::Refused(status) => write!(out, "the server refuses: {status}"),
            Self::Protocol(fault) => write!(out, "what answers is not the server: {fault}"),
            Self::Memory(error) => write!(out, "the session's memory cannot be used: {error}"),
        }
    }
}

impl error::Error for ConnectError {}
