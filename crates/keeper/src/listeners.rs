//! The sockets at which users of a volume's disk connect, whatever is spoken there.
//!
//! Promise: they listen as long as the volume is attached, whatever becomes of its front ends, so
//! that a client that comes in between waits; one whose name was taken away can have it again;
//! their files go with them.
//! Never: takes a client, or a place where somebody else listens.

pub(crate) mod peers;
pub(crate) mod tcp_table;

use crate::kept::part_names::{part_name, socket_name};
use crate::listeners::tcp_table::parse_tcp;
use crate::orders::SocketOrders;
use crate::taken;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{Address, Protocol, VolumeConfig};
use holdfast_front::ublk;
use holdfast_io::private::NamedListener;
use holdfast_machine::service_manager::ServiceManager;
use holdfast_peers::refuse_descriptors;
use rustix::net::{SocketAddrUnix, sockopt};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Connections in the kernel's tables of sockets, those too that no front end has taken yet.
const UNIX_CONNECTED: [&[u8]; 2] = [b"02", b"03"];
const TCP_CONNECTED: &str = "01";

/// Only the keeper's own user can connect.
const SOCKET_MODE: u32 = 0o600;

/// The sockets of one volume.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    sockets: Vec<Socket>,
}

#[derive(Debug)]
struct Socket {
    protocol: Protocol,
    listener: Listener,
}

#[derive(Debug)]
enum Listener {
    /// The service manager opened it, and sees to its name.
    Given(OwnedFd),
    /// A port has no name that could be taken away.
    Port(OwnedFd),
    Named(NamedListener),
}

impl Listeners {
    /// Listens at every address of a volume or disk: with a socket that the service manager opened
    /// for it, with the one of a keeper that was killed, or with a new one.
    pub(crate) fn bind(
        whose: &str,
        sockets: Vec<(Protocol, Address)>,
        manager: &ServiceManager,
    ) -> Outcome<Listeners> {
        let mut listeners = Listeners::default();
        for (place, (protocol, address)) in sockets.into_iter().enumerate() {
            let given = |name: &str| manager.take(name).filter(|it| listens_at(it, &address));
            let of_kind = listeners.sockets.iter().filter(|it| it.protocol == protocol).count();
            let opened = given(&part_name(&format!("{}-{of_kind}", protocol.word()), whose));
            let kept = socket_name(whose, place);
            let listener = match (opened, given(&kept)) {
                (Some(opened), _) => Listener::Given(opened),
                (None, left) => match left.and_then(|it| Listener::left(it, &address)) {
                    Some(left) => left,
                    None => {
                        manager.forget(&kept);
                        let made = Listener::new(&address);
                        let what = || format!("attaching {whose}: listening at {address}");
                        let key = protocol.word();
                        made.map_err(|error| taken::refused(what(), &address, key, &error))?
                    }
                },
            };
            let socket = Socket { protocol, listener };
            socket.prepare();
            listeners.sockets.push(socket);
        }
        Ok(listeners)
    }

    /// Where clients come in vain: what was there was taken away.
    pub(crate) fn unfound(&self) -> Vec<&Path> {
        let named = self.sockets.iter().filter_map(|socket| socket.listener.named());
        named.filter(|named| !named.is_found()).map(NamedListener::path).collect()
    }

    /// Listens anew wherever a name is gone; returns the places of those that do among the
    /// volume's, for the next front end, and why one of them cannot.
    pub(crate) fn mend(&mut self) -> (Vec<usize>, io::Result<()>) {
        let (mut mended, mut outcome) = (Vec::new(), Ok(()));
        for (place, socket) in self.sockets.iter_mut().enumerate() {
            let Listener::Named(named) = &mut socket.listener else { continue };
            match named.mend() {
                Ok(false) => {}
                Ok(true) => {
                    socket.prepare();
                    mended.push(place);
                }
                Err(error) => outcome = Err(error),
            }
        }
        (mended, outcome)
    }

    /// What a front end needs to take clients.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(|socket| socket.listener.as_fd())
    }

    /// Those that nobody else opened, with their places among the volume's.
    pub(crate) fn own_descriptors(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        let is_own = |socket: &Socket| !matches!(socket.listener, Listener::Given(_));
        let own = self.sockets.iter().enumerate().filter(move |(_, socket)| is_own(socket));
        own.map(|(place, socket)| (place, socket.listener.as_fd()))
    }

    /// What a front end is told of [`Self::descriptors`].
    pub(crate) fn orders(&self) -> Vec<SocketOrders> {
        let order = |socket: &Socket| SocketOrders {
            protocol: socket.protocol,
            socket_fd: socket.listener.as_fd().as_raw_fd(),
        };
        self.sockets.iter().map(order).collect()
    }
}

impl Socket {
    /// What every listener needs before anybody comes.
    fn prepare(&self) {
        // A frontend of vhost-user hands over a guest's memory.
        if self.protocol != Protocol::VhostUser {
            refuse_descriptors(&self.listener);
        }
    }
}

impl Listener {
    fn new(address: &Address) -> io::Result<Listener> {
        Ok(match address {
            Address::Unix(path) => Listener::Named(NamedListener::bind(path, SOCKET_MODE)?),
            Address::Tcp(address) => Listener::Port(TcpListener::bind(address)?.into()),
        })
    }

    /// One that a keeper has left, if clients still find it.
    fn left(descriptor: OwnedFd, address: &Address) -> Option<Listener> {
        let Address::Unix(path) = address else { return Some(Listener::Port(descriptor)) };
        let is_found = peers::is_found(&descriptor, path).unwrap_or(true);
        let listener = is_found.then(|| NamedListener::of(descriptor.into(), path, SOCKET_MODE));
        listener?.ok().map(Listener::Named)
    }

    fn named(&self) -> Option<&NamedListener> {
        match self {
            Listener::Named(named) => Some(named),
            Listener::Given(_) | Listener::Port(_) => None,
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Given(descriptor) | Listener::Port(descriptor) => descriptor.as_fd(),
            Listener::Named(named) => named.listener().as_fd(),
        }
    }
}

/// Whether a descriptor that came from elsewhere is a socket at which clients of this address wait.
fn listens_at(descriptor: &OwnedFd, address: &Address) -> bool {
    let Ok(found) = rustix::net::getsockname(descriptor) else { return false };
    let is_listening = sockopt::socket_acceptconn(descriptor).unwrap_or(false);
    is_listening
        && match address {
            Address::Unix(path) => SocketAddrUnix::try_from(found)
                .is_ok_and(|found| found.path_bytes() == Some(path.as_os_str().as_bytes())),
            Address::Tcp(address) => SocketAddr::try_from(found).is_ok_and(|it| it == *address),
        }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        for named in self.sockets.iter().filter_map(|socket| socket.listener.named()) {
            let _may_be_gone = named.remove();
        }
    }
}

/// Refuses to take a disk away from clients that have a connection to it.
pub fn refuse_connected(what: &str, volume: &VolumeConfig) -> Outcome<()> {
    if let Some(id) = volume.ublk.filter(|id| ublk::is_in_use(*id)) {
        let why =
            format!("{} is in use, as by a mounted file system", ublk::block_path(id).display());
        let remedy = "end that and try again, or use --force";
        return Err(Problem::new(Exit::InUse, what, why, remedy));
    }
    for (_, address) in volume.sockets() {
        let count = connections(&address);
        if count > 0 {
            let why = format!("{count} clients are connected at {address}");
            let remedy = "disconnect them and try again, or use --force";
            return Err(Problem::new(Exit::InUse, what, why, remedy));
        }
    }
    Ok(())
}

/// Whether anybody has a connection to one of these.
pub fn are_in_use(sockets: &[(Protocol, Address)]) -> bool {
    sockets.iter().any(|(_, address)| connections(address) > 0)
}

/// Connections at an address, by the kernel's tables, so that no front end has to answer.
fn connections(address: &Address) -> usize {
    let table = |name: &str| std::fs::read(format!("/proc/net/{name}")).unwrap_or_default();
    match address {
        // The table has names that anybody can give to a socket, in a view of files of one's own.
        Address::Unix(path) => {
            peers::connections(path).unwrap_or_else(|| unix_connections(&table("unix"), path))
        }
        Address::Tcp(address) => {
            ["tcp", "tcp6"].iter().map(|name| tcp_connections(&table(name), *address)).sum()
        }
    }
}

/// `Num RefCount Protocol Flags Type St Inode Path`
fn unix_connections(table: &[u8], path: &Path) -> usize {
    let ends_there = |line: &&[u8]| {
        let mut fields = line.splitn(8, |byte| *byte == b' ').filter(|field| !field.is_empty());
        let is_connected = fields.nth(5).is_some_and(|state| UNIX_CONNECTED.contains(&state));
        let end = [b" ", path.as_os_str().as_bytes()].concat();
        is_connected && line.ends_with(&end)
    };
    table.split(|byte| *byte == b'\n').filter(ends_there).count()
}

/// `sl local_address rem_address st ...`, addresses as `0100007F:2A39`.
fn tcp_connections(table: &[u8], bound: SocketAddr) -> usize {
    let text = String::from_utf8_lossy(table);
    let ends_there = |line: &&str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().take(4).collect();
        let [_, local, _, TCP_CONNECTED] = *fields else { return false };
        parse_tcp(local).is_some_and(|(ip, port)| {
            port == bound.port() && (bound.ip().is_unspecified() || ip == bound.ip())
        })
    };
    text.lines().filter(ends_there).count()
}

#[cfg(test)]
mod tests;
