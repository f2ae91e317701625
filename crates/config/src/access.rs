//! Who may be a client of what the server has, and how many at a time.
//!
//! Promise: somebody may.
//! Never: allows a user that the file does not name, but the one who runs the keeper.

const CLIENTS_DEFAULT: u32 = 64;
/// Each client has a thread in the server and some 10 MiB of memory.
const CLIENTS_MAX: u32 = 1024;

pub(crate) fn clients_default() -> u32 {
    CLIENTS_DEFAULT
}

pub(crate) fn uids_default() -> Vec<u32> {
    vec![rustix::process::geteuid().as_raw()]
}

/// Who may be a client of a service, and how many.
pub(crate) fn check_access(allow_uids: &[u32], clients_max: u32) -> Result<(), String> {
    match allow_uids.is_empty() {
        true => Err("allow_uids is empty: nobody could use it".into()),
        false => check_clients(clients_max),
    }
}

/// The same of their number alone.
pub(crate) fn check_clients(clients_max: u32) -> Result<(), String> {
    match (1..=CLIENTS_MAX).contains(&clients_max) {
        true => Ok(()),
        false => Err(format!("clients_max = {clients_max} is not in 1..={CLIENTS_MAX}")),
    }
}
