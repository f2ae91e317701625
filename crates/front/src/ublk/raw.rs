//! What is shared with the kernel: rings of commands, and descriptions of requests.
//!
//! Promise: memory that a command names stays where it is until the command has ended; what the
//! kernel describes is read as a copy.
//! Never: knows the meaning of a command.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::wire::{CONTROL_BYTES, QUEUE_BYTES, REQUEST_BYTES, control, requests_at};

/// Bytes of a command in an entry of double length.
const LONG_BYTES: usize = 80;

const _: () = assert!(CONTROL_BYTES <= LONG_BYTES);

/// Commands about devices, one at a time.
pub(crate) struct ControlRing {
    file: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
}

impl ControlRing {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        Ok(Self { file, ring: IoUring::builder().build(1)? })
    }

    /// Does a command about the device `id` and waits for its end. The kernel reads or fills
    /// `structure`.
    pub(crate) fn command(
        &mut self,
        code: u32,
        id: u32,
        structure: &mut [u8],
        value: u64,
    ) -> io::Result<()> {
        let bytes = u16::try_from(structure.len()).expect("a structure of the interface");
        let mut command = [0; LONG_BYTES];
        command[..CONTROL_BYTES].copy_from_slice(&control(
            id,
            structure.as_mut_ptr().expose_provenance() as u64,
            bytes,
            value,
        ));
        let entry = opcode::UringCmd80::new(Fd(self.file.as_raw_fd()), code).cmd(command).build();
        // SAFETY: `structure` is borrowed until this returns, and this does not return, or unwind,
        // before the command has ended, after which the kernel does not touch it.
        unsafe { self.ring.submission().push(&entry) }.expect("one command at a time");
        let result = loop {
            // A signal ends the waiting, not the command.
            let _waited = self.ring.submit_and_wait(1);
            if let Some(ended) = self.ring.completion().next() {
                break ended.result();
            }
        };
        match result {
            0.. => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}

/// The commands of one queue. Only the thread that made it may use it: the kernel has its requests
/// done by that one.
pub(crate) struct QueueRing {
    file: Arc<File>,
    ring: IoUring,
}

impl QueueRing {
    /// With room for so many commands at a time.
    pub(crate) fn new(file: Arc<File>, entries: u32) -> io::Result<Self> {
        Ok(Self { file, ring: IoUring::new(entries.next_power_of_two())? })
    }

    /// Prepares a command, which names no memory; its end will have `cookie`.
    pub(crate) fn command(&mut self, code: u32, command: [u8; QUEUE_BYTES], cookie: u64) {
        let file = Fd(self.file.as_raw_fd());
        self.push(&opcode::UringCmd16::new(file, code).cmd(command).build().user_data(cookie));
    }

    /// Has `cookie` heard of once the descriptor is readable.
    pub(crate) fn watch(&mut self, descriptor: BorrowedFd<'_>, cookie: u64) {
        let descriptor = Fd(descriptor.as_raw_fd());
        let readable = libc::POLLIN as u32;
        self.push(&opcode::PollAdd::new(descriptor, readable).build().user_data(cookie));
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: no entry that is made here names memory of this process.
        unsafe { self.ring.submission().push(entry) }.expect("room for all commands of a queue");
    }

    /// Hands over what was prepared, and waits until something has ended.
    pub(crate) fn wait(&self) -> io::Result<()> {
        match self.ring.submit_and_wait(1) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// The cookie and the result of what has ended, if anything has.
    pub(crate) fn next(&mut self) -> Option<(u64, i32)> {
        self.ring.completion().next().map(|ended| (ended.user_data(), ended.result()))
    }
}

/// The descriptions of a queue's requests, which the kernel writes.
pub(crate) struct Requests {
    start: NonNull<c_void>,
    depth: u16,
}

impl Requests {
    pub(crate) fn of(file: &File, queue: u16, depth: u16) -> io::Result<Self> {
        let at = requests_at(queue, rustix::param::page_size() as u64);
        let (null, bytes) = (std::ptr::null_mut(), Self::bytes(depth));
        // SAFETY: a new mapping at an address of the kernel's choice touches no other.
        let start = unsafe { mmap(null, bytes, ProtFlags::READ, MapFlags::SHARED, file, at) }?;
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, depth })
    }

    fn bytes(depth: u16) -> usize {
        (usize::from(depth) * REQUEST_BYTES).next_multiple_of(rustix::param::page_size())
    }

    /// A copy of the description of the request `tag`.
    pub(crate) fn get(&self, tag: u16) -> [u8; REQUEST_BYTES] {
        assert!(tag < self.depth, "a tag of this queue");
        let first = self.start.as_ptr().cast::<[u8; REQUEST_BYTES]>();
        // SAFETY: it lies in the mapping (asserted), which the kernel has filled and which lives as
        // long as `self`; any bytes are a value, and the read is not repeated.
        unsafe { first.add(usize::from(tag)).read_volatile() }
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and nobody has a reference into it.
        let unmapped = unsafe { munmap(self.start.as_ptr(), Self::bytes(self.depth)) };
        debug_assert!(unmapped.is_ok());
    }
}
