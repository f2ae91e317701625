//! Removing a directory with all that is in it.
//!
//! Promise: what is emptied is the directory that the caller holds, never what its name leads to by
//! now; where the name leads elsewhere nothing is removed.
//! Never: follows a link, or goes through a name twice.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, statat, unlinkat};

use super::folder::Folder;
use super::owner::refused;

/// Removes a directory that is held, which this path led to, and all that is in it.
///
/// # Errors
/// As the system says; `PermissionDenied` with a [`super::Refusal`] if the path leads elsewhere by
/// now. Nothing was removed then.
pub fn remove_directory(path: &Path, held: impl AsFd) -> io::Result<()> {
    let (folder, name) = Folder::of(path)?;
    let (found, own) = (statat(folder.fd(), &name, AtFlags::SYMLINK_NOFOLLOW)?, fstat(&held)?);
    if (found.st_dev, found.st_ino) != (own.st_dev, own.st_ino) {
        return Err(refused(path, "it is not what was made there, which is somewhere else by now"));
    }
    clear(held.as_fd())?;
    // Whatever has the name by now, only an empty directory goes.
    Ok(unlinkat(folder.fd(), &name, AtFlags::REMOVEDIR)?)
}

fn clear(directory: BorrowedFd<'_>) -> io::Result<()> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            unlinkat(directory, name, AtFlags::empty())?;
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        clear(openat(directory, name, flags, Mode::empty())?.as_fd())?;
        unlinkat(directory, name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}
