//! The names under which a service manager has what it keeps.
//!
//! Promise: parts of one volume or disk have names of their own, the same for every keeper that
//! comes.
//! Never: asks a service manager for anything.

/// The name under which a service manager has a part of a volume or disk.
pub(crate) fn part_name(part: &str, whose: &str) -> String {
    format!("{part}-{}", whose.replace(' ', "-"))
}

/// The name of the socket at this place among all of them.
pub(crate) fn socket_name(whose: &str, place: usize) -> String {
    part_name(&format!("kept-socket-{place}"), whose)
}
