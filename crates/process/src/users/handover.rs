//! A front end's side of the handover: what it finds there, and what it leaves.
//!
//! Promise: a connection comes out as it was put in: its descriptor, and where its conversation
//! stands. What another version left and nobody here knows is a line in the log.
//! Never: reads or writes a connection.

use holdfast_config::Protocol;
use holdfast_keeper::orders::HandoverOrders;
use holdfast_machine::raw::inherited;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// Room for the word of any protocol.
const WORD_BYTES_MAX: usize = 32;

/// Where connections are between two front ends. Neither socket ever waits.
pub(super) struct Handover {
    leave: OwnedFd,
    take: OwnedFd,
}

/// What is in one message.
struct Left {
    word: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Handover {
    /// The handover of the orders.
    pub(super) fn of(orders: &HandoverOrders) -> io::Result<Handover> {
        Ok(Handover { leave: inherited(orders.leave_fd)?, take: inherited(orders.take_fd)? })
    }

    /// Leaves a connection to the next front end. The state is of any length.
    pub(super) fn leave(
        &self,
        protocol: Protocol,
        connection: &OwnedFd,
        state: &[u8],
    ) -> io::Result<()> {
        let mut file = File::from(memfd_create("holdfast-connection", MemfdFlags::CLOEXEC)?);
        file.write_all(state)?;
        let descriptors = [connection.as_fd(), file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        beside.push(SendAncillaryMessage::ScmRights(&descriptors));
        let word = [IoSlice::new(protocol.word().as_bytes())];
        sendmsg(&self.leave, &word, &mut beside, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Everything that earlier front ends have left, each with its state.
    pub(super) fn take_all(&self, protocol: Protocol) -> Vec<(OwnedFd, Vec<u8>)> {
        let mut taken = Vec::new();
        while let Ok(left) = self.take() {
            match left.connection(protocol) {
                Some(connection) => taken.push(connection),
                None => tracing::warn!("what an earlier front end has left is not understood"),
            }
        }
        taken
    }

    /// The next message; `AGAIN` after the last one.
    fn take(&self) -> Result<Left, Errno> {
        let mut word = [0; WORD_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut word)];
        let received = recvmsg(&self.take, &mut parts, &mut beside, RecvFlags::CMSG_CLOEXEC)?;
        let rights = |part| match part {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        };
        let descriptors = beside.drain().filter_map(rights).flatten().collect();
        Ok(Left { word: word[..received.bytes].to_vec(), descriptors })
    }
}

impl Left {
    fn connection(self, protocol: Protocol) -> Option<(OwnedFd, Vec<u8>)> {
        let [connection, state] = <[OwnedFd; 2]>::try_from(self.descriptors).ok()?;
        let (mut file, mut state) = (File::from(state), Vec::new());
        file.rewind().ok()?;
        file.read_to_end(&mut state).ok()?;
        (self.word == protocol.word().as_bytes()).then_some((connection, state))
    }
}

#[cfg(test)]
mod tests;
