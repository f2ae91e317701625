//! Who asks, beyond what a request says of him.
//!
//! Promise: a caller that waits for his answer is told right.
//! Never: keeps anything; a process number is another's once its request has been answered.

use holdfast_io::process;

/// Whether a process has a group among its further ones. One that is not to be seen has none.
pub(super) fn is_in_group(pid: u32, gid: u32) -> bool {
    let status = process::status(pid).unwrap_or_default();
    let groups = process::field(&status, "Groups");
    groups.is_some_and(|groups| groups.split_whitespace().any(|group| group == gid.to_string()))
}

/// Whether a process may give files capabilities and take them away (`CAP_SETFCAP`).
pub(super) fn may_set_capabilities(pid: u32) -> bool {
    const SETFCAP: u32 = 31;
    has_capability(pid, SETFCAP)
}

/// Whether the system lets a process link no files of others that run as them
/// (`fs.protected_hardlinks`), unless it may do as their owner (`CAP_FOWNER`).
pub(super) fn links_are_protected_from(pid: u32) -> bool {
    const FOWNER: u32 = 3;
    let setting = std::fs::read_to_string("/proc/sys/fs/protected_hardlinks");
    setting.is_ok_and(|setting| setting.trim() != "0") && !has_capability(pid, FOWNER)
}

fn has_capability(pid: u32, number: u32) -> bool {
    let status = process::status(pid).unwrap_or_default();
    let effective = process::field(&status, "CapEff");
    let effective = effective.and_then(|text| u64::from_str_radix(text, 16).ok());
    effective.is_some_and(|effective| effective & 1 << number != 0)
}
