//! Whether this process sees what a home wears.
//!
//! To who lacks a right of the superuser's, in a container most often, attributes of the badge's
//! kind read as if they were not there.
//!
//! Promise: a badge that cannot be seen is not taken for none where there is, or may be, one.
//! Never: changes anything that has a name.

use super::badge::{BADGE, Wearer};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use rustix::fs::{MemfdFlags, fremovexattr, memfd_create};
use rustix::io::Errno;
use std::path::Path;

/// What the file is called in which such attributes are looked for.
const PROBE: &str = "holdfast-attributes";

/// Refuses a home that shows no badge to a process that sees none. `is_worn` says whether its log
/// knows that it has one; a directory that is barred has one in any case.
pub fn refuse_hidden(what: &str, (home, wearer): (&Path, &Wearer), is_worn: bool) -> Outcome<()> {
    let is_barred = || wearer.is_directory() && wearer.mode().is_ok_and(|mode| mode == 0);
    let shows_none = wearer.badge().is_none();
    if !shows_none || !(is_worn || is_barred()) || sees_badges() {
        return Ok(());
    }
    let why = format!(
        "this process may not see the attribute by which {} is known: it lacks CAP_SYS_ADMIN",
        home.display()
    );
    let remedy = "nothing was changed; run it as root with that right: outside of the container, \
                  or in one that has it";
    Err(Problem::new(Exit::Usage, what, why, remedy))
}

/// Who may not see such attributes may not remove one that is not there either.
fn sees_badges() -> bool {
    let made = memfd_create(PROBE, MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL);
    // Before Linux 6.3 nothing could be said of programs in it.
    let probe = made.or_else(|_| memfd_create(PROBE, MemfdFlags::CLOEXEC));
    probe.is_ok_and(|probe| fremovexattr(&probe, BADGE) != Err(Errno::PERM))
}
