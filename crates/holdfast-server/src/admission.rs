//! From a connection to a session: who is it, what does it want, may it, is there room.
//!
//! Promise: every refusal is answered, counted where a service is concerned, and written to the
//! log; a peer that says nothing is given up after a moment.
//! Never: believes a peer's word for who it is; the kernel says that.

use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use holdfast_client::protocol::{HELLO_BYTES, Hello, HelloFault, Reply, Status, VERSION};
use holdfast_memory::{CreateSessionError, SessionMemory};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::registry::Registry;
use crate::request::Copies;
use crate::service::{Beginning, Seat, Service};
use crate::session::Session;
use crate::waiting::Address;
use crate::words;

/// How long a peer may take for its hello, and for taking the reply.
const HELLO_PATIENCE: Duration = Duration::from_secs(1);

/// Requests of one client that may have data under way.
const BUFFERS: u32 = 8;

/// The user at the other end, if any service allows that user.
pub(crate) fn allowed_uid(stream: &UnixStream, registry: &Registry) -> Option<u32> {
    let uid = socket_peercred(stream).ok()?.uid.as_raw();
    let is_allowed = registry.all().any(|service| service.allow_uids.contains(&uid));
    if !is_allowed {
        registry.count_refused();
        tracing::warn!(uid, "a user that no service allows was refused");
    }
    is_allowed.then_some(uid)
}

/// Says no. A peer that does not listen is not waited for.
pub(crate) fn refuse(stream: &UnixStream, status: Status) {
    let _ = send(stream, &Reply::refusal(status), None);
}

/// Hears the hello and makes the session, or answers why not.
pub(crate) fn admit(stream: UnixStream, uid: u32, registry: &Registry) -> Option<(Session, Seat)> {
    let hello = match hear(&stream) {
        Ok(hello) => hello,
        Err(status) => {
            registry.count_refused();
            tracing::warn!(uid, %status, "a hello was refused");
            refuse(&stream, status);
            return None;
        }
    };
    let Some(service) = registry.find(&hello.service) else {
        registry.count_refused();
        tracing::warn!(uid, service = hello.service, "a client asked for an unknown service");
        refuse(&stream, Status::NoService);
        return None;
    };
    match seat(&stream, uid, &hello, service) {
        Ok((made, seat)) => Some((made.into_session(stream, service), seat)),
        Err(status) => {
            service.count(words::REFUSED);
            tracing::warn!(uid, service = hello.service, %status, "a client was refused");
            refuse(&stream, status);
            None
        }
    }
}

/// What a session is made of.
struct Made {
    memory: SessionMemory,
    beginning: Beginning,
    buffer_bytes: u32,
}

impl Made {
    fn into_session(self, stream: UnixStream, service: &Arc<Service>) -> Session {
        Session {
            stream,
            service: Arc::clone(service),
            handler: self.beginning.handler,
            address: Arc::new(Address::new(self.memory)),
            buffers: BUFFERS,
            buffer_bytes: self.buffer_bytes,
            bytes: Copies::default(),
            faults: 0,
        }
    }
}

/// Checks rights and quotas, makes the memory, and sends it.
fn seat(
    stream: &UnixStream,
    uid: u32,
    hello: &Hello,
    service: &Arc<Service>,
) -> Result<(Made, Seat), Status> {
    if !service.allow_uids.contains(&uid) {
        return Err(Status::NotAllowed);
    }
    let seat = Seat::take(service).ok_or(Status::TooManyClients)?;
    let buffer_bytes = service.buffer_bytes();
    let made = SessionMemory::create_sealed(BUFFERS * buffer_bytes);
    let (memory, descriptor) = made.map_err(|error| no_memory(&error))?;
    let beginning = service.begin(hello)?;
    let reply = Reply {
        version: VERSION,
        status: Status::Done,
        handle: service.handle,
        check: service.check,
        buffers: BUFFERS,
        buffer_bytes,
        payload_bytes_max: service.payload_bytes_max(),
        last_sequence: beginning.last_sequence,
        facts: beginning.facts,
    };
    // A peer that is gone by now is found out by its session.
    let _ = send(stream, &reply, Some(descriptor));
    Ok((Made { memory, beginning, buffer_bytes }, seat))
}

fn no_memory(error: &CreateSessionError) -> Status {
    tracing::warn!(%error, "no memory for a session");
    Status::NoMemory
}

fn hear(mut stream: &UnixStream) -> Result<Hello, Status> {
    let mut bytes = [0; HELLO_BYTES];
    let patience = Some(HELLO_PATIENCE);
    let timeouts = stream.set_read_timeout(patience).and(stream.set_write_timeout(patience));
    timeouts.and_then(|()| stream.read_exact(&mut bytes)).map_err(|_| Status::BadHello)?;
    Hello::parse(&bytes).map_err(|fault| match fault {
        HelloFault::Version { .. } => Status::OtherVersion,
        _ => Status::BadHello,
    })
}

fn send(stream: &UnixStream, reply: &Reply, descriptor: Option<OwnedFd>) -> io::Result<()> {
    let bytes = reply.encode();
    let descriptors: Vec<_> = descriptor.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    // The reply is far smaller than the buffer of a socket that nothing was sent on before.
    sendmsg(stream, &[IoSlice::new(&bytes)], &mut beside, flags)?;
    Ok(())
}
