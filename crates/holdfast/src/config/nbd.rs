//! Addresses at which a disk is served as a network block device.
//!
//! Promise: what parses can be listened at, if nobody else does and the machine has the address.
//! Never: looks at the machine.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The longest path of a socket; the kernel has room for no more, and a zero behind it.
const PATH_BYTES_MAX: usize = 107;

/// One address, as `unix:/run/disk.sock` or `tcp:127.0.0.1:10809`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) enum NbdAddress {
    /// A unix socket, by its path.
    Unix(PathBuf),
    /// A TCP socket.
    Tcp(SocketAddr),
}

impl NbdAddress {
    /// The path, if it has one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            NbdAddress::Unix(path) => Some(path),
            NbdAddress::Tcp(_) => None,
        }
    }
}

impl fmt::Display for NbdAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NbdAddress::Unix(path) => write!(out, "unix:{}", path.display()),
            NbdAddress::Tcp(address) => write!(out, "tcp:{address}"),
        }
    }
}

impl From<NbdAddress> for String {
    fn from(address: NbdAddress) -> String {
        address.to_string()
    }
}

impl TryFrom<String> for NbdAddress {
    type Error = String;

    fn try_from(text: String) -> Result<NbdAddress, String> {
        let refused = |why: &str| Err(format!("nbd: {text:?} {why}"));
        match text.split_once(':') {
            Some(("unix", path)) if !path.starts_with('/') => refused("has no absolute path"),
            Some(("unix", path)) if path.len() > PATH_BYTES_MAX => {
                refused("is too long: the path of a socket has at most 107 bytes")
            }
            Some(("unix", path)) => Ok(NbdAddress::Unix(path.into())),
            Some(("tcp", address)) => match address.parse() {
                Ok(address) => Ok(NbdAddress::Tcp(address)),
                Err(_) => refused("has no address and port, such as tcp:127.0.0.1:10809"),
            },
            _ => refused("is neither unix:/PATH nor tcp:ADDRESS:PORT"),
        }
    }
}
