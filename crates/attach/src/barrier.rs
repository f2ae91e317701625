//! The barrier before a home, while its volume is served.
//!
//! Promise: a home that somebody let others into is barred again, and who could do that is told;
//! one that is being given back, or that has no barrier, is left as it is.
//! Never: is asked for a home that is not served.

use crate::bond::Wearer;
use holdfast_io::real::RootNotes;
use rustix::fs::{AtFlags, FileType, Mode, RawMode, StatxFlags, fchmod, fstat, fsync, statx};
use std::io;
use std::os::fd::AsFd;

/// A home that others were let into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The permissions that it had.
    pub mode: u32,
    /// Who it belongs to, and could give it those; root could, too.
    pub owner: u32,
}

/// Whether anybody but the superuser may enter it, as far as its permissions say that the kernel
/// knows: a file system that may never answer is not asked.
pub fn is_open(home: impl AsFd) -> bool {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let known = statx(home, "", flags, StatxFlags::TYPE | StatxFlags::MODE);
    known.is_ok_and(|found| may_be_entered(found.stx_mode.into()))
}

/// Whether the home says that it is barred, whatever its permissions are at the moment.
pub fn has_barrier(home: impl AsFd) -> io::Result<bool> {
    Ok(Wearer::of(home)?.shown().is_some())
}

/// Raises the barrier again that somebody took away. Whoever serves the home lowers it himself when
/// it is given back: he says so in the badge before he does, and the badge is read both before and
/// after the permissions are taken away.
pub fn bar_again(home: impl AsFd) -> io::Result<Option<Opened>> {
    let found = fstat(&home)?;
    let closed = || io::Result::Ok(Wearer::of(&home)?.shown());
    let Some(shown) = closed()?.filter(|_| may_be_entered(found.st_mode)) else { return Ok(None) };
    // It may have been raised since the first look.
    if !is_open(&home) {
        return Ok(None);
    }
    fchmod(&home, Mode::empty())?;
    if closed()?.is_none() {
        fchmod(&home, Mode::from_raw_mode(shown))?;
        return Ok(None);
    }
    fsync(&home)?;
    Ok(Some(Opened { mode: found.st_mode & 0o7777, owner: found.st_uid }))
}

fn may_be_entered(mode: RawMode) -> bool {
    FileType::from_raw_mode(mode) == FileType::Directory && mode & 0o7777 != 0
}
