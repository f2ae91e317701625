//! Addresses at which one cannot listen.
//!
//! Promise: who has an address is named, where the kernel says so to this user; what is to be done
//! is possible, and is about what is there.
//! Never: connects to whoever listens, or takes an address from anybody.

use crate::listeners::peers;
use crate::listeners::tcp_table::parse_tcp;
use holdfast_config::Address;
use holdfast_config::exit::Exit;
use holdfast_config::problem::Problem;
use holdfast_io::process;
use holdfast_machine::processes::{BRIEF, Process, ask_all, is_trusted_process};
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// More processes than these share a socket only where a server has forked.
const SHOWN_MAX: usize = 3;

/// TIME_WAIT, which keeps nobody from listening.
const PAST: &str = "06";

/// That it is not listened at an address, which is the one that `key` names.
pub(crate) fn refused(
    what: impl Into<String>,
    address: &Address,
    key: &str,
    error: &io::Error,
) -> Problem {
    let remedy = match (error.kind(), address) {
        (io::ErrorKind::AddrInUse, Address::Unix(path)) if !is_socket(path) => {
            format!("move it away, or set another address in {key}")
        }
        (io::ErrorKind::AddrInUse, _) => {
            format!("end that process, or set another address in {key}")
        }
        (io::ErrorKind::AddrNotAvailable, _) => {
            format!("give this machine that address, or set one that it has in {key}")
        }
        (io::ErrorKind::PermissionDenied, Address::Tcp(_)) => {
            format!("run as root, or set a port from 1024 on in {key}")
        }
        (_, Address::Unix(_)) => format!("run as root, or set another address in {key}"),
        (_, Address::Tcp(_)) => format!("correct the address in {key}"),
    };
    let exit = match error.kind() {
        io::ErrorKind::AddrInUse => Exit::InUse,
        _ => Exit::Failed,
    };
    Problem::new(exit, what, why(address, error), remedy)
}

/// Why it is not listened there, for people.
pub fn why(address: &Address, error: &io::Error) -> String {
    if error.kind() != io::ErrorKind::AddrInUse {
        return error.to_string();
    }
    match address {
        Address::Unix(path) if !is_socket(path) => {
            format!("what is at {} is no socket", path.display())
        }
        _ => match holders(address).as_slice() {
            [] => format!("{address} is in use by a process that is not seen"),
            pids => format!("{address} is in use by {}", process::all_named(pids, SHOWN_MAX)),
        },
    }
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

/// The processes that have a socket of this address.
fn holders(address: &Address) -> Vec<u32> {
    let numbers = match address {
        Address::Unix(path) => peers::listeners(path).unwrap_or_default(),
        Address::Tcp(address) => {
            let table = |name| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
            ["tcp", "tcp6"].iter().flat_map(|name| in_the_way(&table(name), *address)).collect()
        }
    };
    if numbers.is_empty() {
        return Vec::new();
    }
    let links: Vec<_> = numbers.iter().map(|it| PathBuf::from(format!("socket:[{it}]"))).collect();
    let is_one = move |at: PathBuf| fs::read_link(at).is_ok_and(|link| links.contains(&link));
    let has_one = move |it: &Process| it.list("fd").into_iter().any(&is_one);
    let answers = ask_all(process::all(), BRIEF, is_trusted_process, has_one);
    answers.into_iter().filter(|it| it.told == Some(true)).map(|it| it.pid).collect()
}

/// The numbers of the sockets that keep others from listening:
/// `sl local_address rem_address st queues timer retransmits uid timeout inode ...`
fn in_the_way(table: &str, wanted: SocketAddr) -> Vec<u32> {
    let meets =
        |ip: IpAddr| ip == wanted.ip() || ip.is_unspecified() || wanted.ip().is_unspecified();
    let number = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
        let [_, local, _, state, .., number] = *fields else { return None };
        let (ip, port) = parse_tcp(local)?;
        let is_one = state != PAST && port == wanted.port() && meets(ip);
        is_one.then(|| number.parse().ok()).flatten()
    };
    table.lines().filter_map(number).filter(|number| *number > 0).collect()
}

#[cfg(test)]
mod tests;
