//! A disk for a virtual machine, through memory that is shared with it: vhost-user-blk, for QEMU,
//! Cloud Hypervisor, and whatever else speaks vhost-user.
//!
//! Promise: a guest or hypervisor that breaks the protocol or dies hurts itself alone. A process
//! that is killed is replaced by another that connects to the same machine: what was taken and not
//! answered is done again, in its order, and nothing is answered twice. The disk says that it has a
//! write cache, and a flush is answered when the disk was flushed.
//! One that takes its memory away ends its own connection.
//! Never: keeps data between two requests, or uses what a guest can change without a copy of it.
//!
//! Spoken: split rings with indirect tables and notifications by index; several queues; FLUSH,
//! CONFIG_WCE, DISCARD, WRITE_ZEROES, GET_ID; the inflight area; memory that comes and goes
//! (CONFIGURE_MEM_SLOTS). Not spoken: packed rings, live migration.
//!
//! Source: the vhost-user protocol as QEMU documents it; Virtio 1.3, 2.7 and 5.2.

mod chain;
mod inflight;
mod listen;
mod memory;
pub mod parse;
mod queue;
#[allow(unsafe_code)]
mod raw;
mod ring;
mod serve;
mod session;
mod wire;

pub use listen::{ListenError, converse, serve};

/// How to serve a disk.
#[derive(Clone, Debug)]
pub struct VhostUserConfig {
    /// What the guest reads as the disk's serial number: the first 20 bytes of it.
    pub name: String,
    /// Queues that a guest may have, from 1 to 256. Each has a thread (two while it waits for slow
    /// flushes) and a buffer of 1 MiB.
    pub queues_max: u16,
}
