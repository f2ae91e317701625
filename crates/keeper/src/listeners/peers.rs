//! Who is connected at a unix socket, by what the kernel says of the socket itself.
//!
//! Promise: a connection counts if it was made at the socket that has the path now; a socket of the
//! same name elsewhere, in another user's view of the files, does not.
//! Never: guesses: where the kernel cannot say, the answer is none.
//!
//! The kernel is asked by sock_diag(7), a netlink socket: `struct unix_diag_req` to it, and for
//! each socket a `struct unix_diag_msg` with attributes back (linux/unix_diag.h).

use rustix::fs::{fstat, major, minor};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of a message's header: length, type, flags, number, sender.
const HEADER_BYTES: usize = 16;
/// Bytes of what a message says of a socket before its attributes.
const SOCKET_BYTES: usize = 16;
/// SOCK_DIAG_BY_FAMILY.
const BY_FAMILY: u16 = 20;
/// NLM_F_REQUEST | NLM_F_DUMP.
const ALL: u16 = 0x301;
/// NLMSG_DONE.
const DONE: u16 = 3;
/// UDIAG_SHOW_VFS and UDIAG_SHOW_RQLEN, and the attributes that they bring.
const SHOWN: u32 = 0x12;
const FILE: u16 = 1;
const WAITING: u16 = 4;
/// States of sockets.
const CONNECTED: u8 = 1;
const LISTENS: u8 = 10;
/// More than the kernel sends at once.
const ANSWER_BYTES: usize = 64 << 10;

/// The file that a socket has its name from: inode and device, as the kernel cuts them.
type File = (u32, u32);

/// What the kernel says of a socket.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// By which the process that has it knows it.
    number: u32,
    state: u8,
    file: Option<File>,
    /// Of one that listens: the connections that nobody has taken yet. They are no sockets so far.
    waiting: u32,
}

/// Connections at the socket of this path, those too that nobody has taken yet; none if the kernel
/// does not say.
pub(crate) fn connections(path: &Path) -> Option<usize> {
    let wanted = file_at(path)?;
    let sockets = sockets()?;
    let of =
        |state: u8| sockets.iter().filter(move |it| (it.state, it.file) == (state, Some(wanted)));
    let waiting = of(LISTENS).map(|it| it.waiting as usize).sum::<usize>();
    // A file system that numbers its files otherwise shows nobody who listens.
    of(LISTENS).next().map(|_| of(CONNECTED).count() + waiting)
}

/// The sockets that listen with a name from the file at this path, by their numbers; none if the
/// kernel does not say.
pub(crate) fn listeners(path: &Path) -> Option<Vec<u32>> {
    let wanted = file_at(path)?;
    let sockets = sockets()?.into_iter();
    let there = sockets.filter(|it| (it.state, it.file) == (LISTENS, Some(wanted)));
    Some(there.map(|it| it.number).collect())
}

/// Whether who connects at the path comes to this socket; none if the kernel does not say.
pub(crate) fn is_found(listener: impl AsFd, path: &Path) -> Option<bool> {
    let number = fstat(listener).ok()?.st_ino as u32;
    let seen = sockets()?.into_iter().find(|it| it.number == number)?;
    // There are file systems that give their files another device than they are on.
    let (inode, _) = seen.file?;
    Some(file_at(path).is_some_and(|found| found.0 == inode))
}

fn file_at(path: &Path) -> Option<File> {
    let found = path.symlink_metadata().ok()?;
    Some((found.ino() as u32, major(found.dev()) << 20 | minor(found.dev())))
}

/// Every unix socket of this network that listens or is connected.
fn sockets() -> Option<Vec<Seen>> {
    let flags = SocketFlags::CLOEXEC;
    let (family, kind) = (AddressFamily::NETLINK, SocketType::DGRAM);
    let kernel = socket_with(family, kind, flags, Some(netlink::SOCK_DIAG)).ok()?;
    send(&kernel, &request(), SendFlags::empty()).ok()?;
    let (mut answer, mut found) = (vec![0; ANSWER_BYTES], Vec::new());
    loop {
        let (bytes, _) = recv(&kernel, &mut answer[..], RecvFlags::empty()).ok()?;
        let mut rest = answer.get(..bytes)?;
        while let Some(length) = number(rest, 0).filter(|_| !rest.is_empty()) {
            let message = rest.get(..length as usize).filter(|it| it.len() >= HEADER_BYTES)?;
            match half(message, 4)? {
                BY_FAMILY => found.extend(socket(&message[HEADER_BYTES..])),
                DONE => return Some(found),
                _ => return None,
            }
            rest = rest.get(message.len().next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

fn request() -> Vec<u8> {
    let states = 1_u32 << CONNECTED | 1 << LISTENS;
    let asked = [u32::from(rustix::net::AddressFamily::UNIX.as_raw()), states, 0, SHOWN, 0, 0];
    let length = (HEADER_BYTES + size_of_val(&asked)) as u32;
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(BY_FAMILY.to_le_bytes());
    bytes.extend(ALL.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(asked.into_iter().flat_map(u32::to_le_bytes));
    bytes
}

/// `family type state pad inode cookie cookie`, then attributes: `length type bytes`.
fn socket(told: &[u8]) -> Option<Seen> {
    let mut seen = Seen { state: *told.get(2)?, number: number(told, 4)?, ..Seen::default() };
    let mut rest = told.get(SOCKET_BYTES..)?;
    while let (Some(length), Some(kind)) = (half(rest, 0), half(rest, 2)) {
        match kind {
            FILE => seen.file = Some((number(rest, 4)?, number(rest, 8)?)),
            WAITING => seen.waiting = number(rest, 4)?,
            _ => {}
        }
        rest = rest.get(usize::from(length).max(4).next_multiple_of(4)..).unwrap_or_default();
    }
    Some(seen)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

// The kernel speaks as the machine does.
const _: () = assert!(cfg!(target_endian = "little"));
