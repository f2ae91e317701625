//! Addresses in the kernel's tables of TCP sockets.
//!
//! Promise: an address is read as the kernel prints it, and what is none is none.
//! Never: reads a table.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kernel prints an address as numbers of 32 bits, each as it lies in memory.
pub(crate) fn parse_tcp(text: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = text.split_once(':')?;
    let word = |index: usize| {
        let word = u32::from_str_radix(ip.get(8 * index..8 * index + 8)?, 16).ok()?;
        Some(u32::from_be(word))
    };
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from_bits(word(0)?)),
        _ => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bits = words.iter().fold(0, |bits, word| bits << 32 | u128::from(*word));
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
    };
    Some((ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests;
