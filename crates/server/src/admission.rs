//! From a hello to a session: may it, is there room.
//!
//! Promise: every refusal is answered and counted where a service is concerned; what a client costs
//! is on its user's account until it is given back.
//! Never: believes a peer's word for who it is; waits for a peer.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use holdfast_client::protocol::{Hello, Reply, Status, VERSION};
use holdfast_memory::SessionMemory;
use holdfast_peers::{Connection, Peer};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::handler::Copies;
use crate::seat::Seat;
use crate::service::{Beginning, Service};
use crate::session::Session;
use crate::waiting::Address;

/// Requests of one client that may have data under way.
const BUFFERS: u32 = 8;

/// Says no. A peer that does not listen is not waited for.
pub(crate) fn refuse(stream: &Connection, status: Status) {
    let _ = send(stream, &Reply::refusal(status), None);
}

/// Makes the session that a hello asks for, with the memory that it needs.
pub(crate) fn admit(
    stream: Connection,
    peer: Peer,
    hello: &Hello,
    service: &Arc<Service>,
    seat: Seat,
) -> Result<Session, (Connection, Status)> {
    match make(&stream, peer, hello, service, seat) {
        Ok(made) => Ok(made.into_session(stream, peer, service)),
        Err(status) => Err((stream, status)),
    }
}

/// What a session is made of.
struct Made {
    address: Address,
    beginning: Beginning,
    buffer_bytes: u32,
}

impl Made {
    fn into_session(self, stream: Connection, peer: Peer, service: &Arc<Service>) -> Session {
        Session {
            stream,
            peer,
            service: Arc::clone(service),
            handler: self.beginning.handler,
            address: Arc::new(self.address),
            buffers: BUFFERS,
            buffer_bytes: self.buffer_bytes,
            bytes: Copies::default(),
        }
    }
}

/// Makes the memory, and sends it.
fn make(
    stream: &Connection,
    peer: Peer,
    hello: &Hello,
    service: &Arc<Service>,
    seat: Seat,
) -> Result<Made, Status> {
    let beginning = service.begin(hello, peer)?;
    let buffer_bytes = service.buffer_bytes();
    let made = SessionMemory::create_sealed(BUFFERS * buffer_bytes);
    let (memory, descriptor) = made.map_err(|_| Status::NoMemory)?;
    let reply = Reply {
        version: VERSION,
        status: Status::Done,
        handle: service.handle,
        check: service.check,
        buffers: BUFFERS,
        buffer_bytes,
        clients_max: service.clients.most(),
        payload_bytes_max: service.payload_bytes_max(),
        last_sequence: beginning.last_sequence,
        facts: beginning.facts,
    };
    // A peer that is gone by now is found out by its session.
    let _ = send(stream, &reply, Some(descriptor));
    Ok(Made { address: Address::new(memory, seat), beginning, buffer_bytes })
}

fn send(stream: &Connection, reply: &Reply, descriptor: Option<OwnedFd>) -> io::Result<()> {
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
