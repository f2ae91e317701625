//! Connections on their way from one front end to the next.
//!
//! Promise: what a front end leaves when it ends in good order waits for the next one, in its
//! order; where none comes any more, the connections end with the volume.
//! Never: looks at what is left: it stays in the kernel.

use crate::orders::HandoverOrders;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A pair of sockets: what one front end puts into the first, the next one finds in the second.
#[derive(Debug)]
pub struct Handover {
    leave: OwnedFd,
    take: OwnedFd,
}

impl Handover {
    /// Nothing is left yet.
    pub fn new() -> io::Result<Handover> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (leave, take) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok(Handover { leave, take })
    }

    /// What a front end needs to take over and to leave.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.leave.as_fd(), self.take.as_fd()]
    }

    /// What a front end is told of [`Self::descriptors`].
    pub(crate) fn orders(&self) -> HandoverOrders {
        HandoverOrders { leave_fd: self.leave.as_raw_fd(), take_fd: self.take.as_raw_fd() }
    }
}
