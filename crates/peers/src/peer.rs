//! Who is at the other end of a socket.
//!
//! Promise: what is said comes from the kernel; one who can have many names at no cost has one
//! here, as all addresses of an IPv6 network have, and all by which this machine calls itself.
//! Never: believes a peer's word for who it is.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use rustix::net::sockopt::{socket_domain, socket_peercred};
use rustix::net::{AddressFamily, getpeername};

/// An identity that is counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// A user of this machine, at a unix socket.
    User(u32),
    /// An IPv4 address.
    Address(Ipv4Addr),
    /// The first half of an IPv6 address: whoever has one of a network may have all.
    Network([u8; 8]),
    /// The kernel does not say. All these are one.
    Unknown,
}

impl Peer {
    /// Who is at the other end.
    #[must_use]
    pub fn of(socket: &impl AsFd) -> Peer {
        if socket_domain(socket) == Ok(AddressFamily::UNIX) {
            let user = |peer: rustix::net::UCred| Peer::User(peer.uid.as_raw());
            return socket_peercred(socket).map_or(Peer::Unknown, user);
        }
        let address = getpeername(socket).ok().flatten();
        let address = address.and_then(|address| SocketAddr::try_from(address).ok());
        address.map_or(Peer::Unknown, |address| Peer::at(address.ip()))
    }

    /// Who has this address.
    #[must_use]
    pub fn at(address: IpAddr) -> Peer {
        match address.to_canonical() {
            address if address.is_loopback() => Peer::Address(Ipv4Addr::LOCALHOST),
            IpAddr::V4(address) => Peer::Address(address),
            IpAddr::V6(address) => {
                Peer::Network(*address.octets().first_chunk().expect("8 of 16 bytes"))
            }
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(uid) => write!(out, "user {uid}"),
            Self::Address(address) => write!(out, "{address}"),
            Self::Network(half) => {
                let half = u128::from(u64::from_be_bytes(*half)) << 64;
                write!(out, "{}/64", std::net::Ipv6Addr::from_bits(half))
            }
            Self::Unknown => out.write_str("an unknown peer"),
        }
    }
}
