//! A session that is used by hand, by clients that keep to no protocol.

use crate::support::Place;
use holdfast_client::protocol::{ClientId, HELLO_BYTES, Hello, REPLY_BYTES, Reply, VERSION};
use holdfast_memory::SessionMemory;
use holdfast_memory::queue::{Owner, Request};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::File;
use std::io::{IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A session that is used by hand.
pub(crate) struct Raw {
    pub(crate) stream: UnixStream,
    pub(crate) file: File,
    pub(crate) memory: SessionMemory,
    pub(crate) reply: Reply,
}

/// A hello as it should be.
pub(crate) fn hello(client: [u8; 16], service: &str) -> [u8; HELLO_BYTES] {
    let client = ClientId(client);
    Hello { version: VERSION, client, oldest: 0, service: service.into() }.encode()
}

/// Connects with a chosen identity; None while the server refuses.
pub(crate) fn connect(place: &Place, client: [u8; 16], service: &str) -> Option<Raw> {
    let mut stream = UnixStream::connect(place.socket()).unwrap();
    stream.write_all(&hello(client, service)).ok()?;
    let (mut bytes, mut file) = ([0; REPLY_BYTES], None);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    recvmsg(&stream, &mut parts, &mut beside, RecvFlags::empty()).ok()?;
    for part in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = part {
            file = descriptors.next();
        }
    }
    let reply = Reply::parse(&bytes).ok()?;
    let file: OwnedFd = file?;
    let memory = SessionMemory::map(file.as_fd()).unwrap();
    Some(Raw { stream, file: File::from(file), memory, reply })
}

impl Raw {
    /// Puts a request without waiting for the answer.
    pub(crate) fn put(&self, request: &Request) {
        if let Some(slot) = self.memory.queue().acquire(Owner::MIN) {
            self.memory.queue().put(slot, request);
        }
    }

    /// Asks properly.
    pub(crate) fn ask(&self, request: &Request) -> u32 {
        let queue = self.memory.queue();
        let slot = queue.acquire(Owner::MIN).unwrap();
        queue.put(slot, request);
        let response = queue.wait(slot, 100, Duration::from_secs(30)).unwrap();
        queue.free(slot);
        response.status
    }

    /// A request that is right but for what is changed in it.
    pub(crate) fn request(&self, operation: u16) -> Request {
        let (handle, check) = (self.reply.handle, self.reply.check);
        Request { sequence: 1, handle, check, operation, argument: [1, 0], ..Request::default() }
    }

    /// Every byte of the memory, as the client sees it.
    pub(crate) fn sees(&self, mark: &[u8]) -> bool {
        let bytes = 4096 + self.memory.buffer_bytes() as usize;
        let mut seen = vec![0; bytes];
        self.file.read_exact_at(&mut seen, 0).unwrap();
        seen.windows(mark.len()).any(|window| window == mark)
    }
}
