//! Commands that a message about a log's memory names.
//!
//! Promise: each is one that the command has, and comes with what has to be done before it.
//! Never: runs one.

/// Whether a keeper's server has this kind of log for itself: nothing of it can be unmounted.
fn is_servers(kind: &str) -> bool {
    ["log", "table"].contains(&kind)
}

/// The command that gives memory up, and when.
pub fn accept_memory_lost(kind: &str, name: &str) -> String {
    let stopped = ", once `holdfast shutdown` has stopped the keeper";
    let when = if is_servers(kind) { stopped } else { "" };
    format!("`holdfast {kind} accept {name} --memory-lost`{when}")
}

/// What ends the use of memory before its place is changed.
pub(crate) fn end_of_use(kind: &str) -> &'static str {
    if is_servers(kind) { "stop the keeper with `holdfast shutdown`" } else { "unmount" }
}
