//! Where the users of a disk connect, and what is spoken there.
//!
//! Promise: what parses can be listened at, if nobody else does and the machine has the address.
//! Never: looks at the machine.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The longest path of a socket; the kernel has room for no more, and a zero behind it.
const PATH_BYTES_MAX: usize = 107;

/// The kernel numbers as many block devices of a driver, and no more.
const DEVICES_MAX: u32 = 1 << 20;

/// What is spoken at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// For whatever speaks NBD.
    Nbd,
    /// vhost-user-blk, for hypervisors on this machine.
    VhostUser,
}

impl Protocol {
    /// Its name: the key in the configuration, and the word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Protocol::Nbd => "nbd",
            Protocol::VhostUser => "vhost-user",
        }
    }
}

/// One address, as `unix:/run/disk.sock` or `tcp:127.0.0.1:10809`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Address {
    /// A unix socket, by its path.
    Unix(PathBuf),
    /// A TCP socket.
    Tcp(SocketAddr),
}

impl Address {
    /// The path, if it has one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Address::Unix(path) => Some(path),
            Address::Tcp(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(out, "unix:{}", path.display()),
            Address::Tcp(address) => write!(out, "tcp:{address}"),
        }
    }
}

impl From<Address> for String {
    fn from(address: Address) -> String {
        address.to_string()
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Address, String> {
        let refused = |why: &str| Err(format!("nbd: {text:?} {why}"));
        match text.split_once(':') {
            Some(("unix", path)) => match path_fault(Path::new(path)) {
                Some(why) => refused(why),
                None => Ok(Address::Unix(path.into())),
            },
            Some(("tcp", address)) => match address.parse() {
                Ok(address) => Ok(Address::Tcp(address)),
                Err(_) => refused("has no address and port, such as tcp:127.0.0.1:10809"),
            },
            _ => refused("is neither unix:/PATH nor tcp:ADDRESS:PORT"),
        }
    }
}

/// Everywhere that users of a disk connect.
pub(crate) fn sockets_of(nbd: &[Address], vhost_user: Option<&Path>) -> Vec<(Protocol, Address)> {
    let nbd = nbd.iter().map(|address| (Protocol::Nbd, address.clone()));
    let vhost_user = vhost_user.map(|path| (Protocol::VhostUser, Address::Unix(path.to_owned())));
    nbd.chain(vhost_user).collect()
}

/// What is wrong with the path of a hypervisor's socket.
pub(crate) fn check_vhost_user(path: Option<&Path>) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    path_fault(path).map_or(Ok(()), |why| Err(format!("vhost-user: {path:?} {why}")))
}

/// What is wrong with the number of a block device.
pub(crate) fn check_ublk(id: Option<u32>) -> Result<(), String> {
    match id {
        Some(id) if id >= DEVICES_MAX => {
            Err(format!("ublk = {id} is no number below {DEVICES_MAX}"))
        }
        _ => Ok(()),
    }
}

/// Why no socket can have this path.
fn path_fault(path: &Path) -> Option<&'static str> {
    if path.is_relative() {
        return Some("has no absolute path");
    }
    let is_too_long = path.as_os_str().len() > PATH_BYTES_MAX;
    is_too_long.then_some("is too long: the path of a socket has at most 107 bytes")
}
