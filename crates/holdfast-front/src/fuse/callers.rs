//! Who asks, beyond what a request says of him.
//!
//! Promise: a caller that waits for his answer is told right.
//! Never: keeps anything; a process number is another's once its request has been answered.

/// Whether a process has a group among its further ones. One that is not to be seen has none.
pub(super) fn is_in_group(pid: u32, gid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let groups = status.lines().find_map(|line| line.strip_prefix("Groups:"));
    groups.is_some_and(|groups| groups.split_whitespace().any(|group| group == gid.to_string()))
}
