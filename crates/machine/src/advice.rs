//! What there is to do about a disk that refuses something.
//!
//! Promise: the advice goes by the error that the disk gave, wherever it was wrapped on its way:
//! nobody is told to make space on a disk that has some.
//! Never: looks at a disk.

use std::io;
use std::sync::Arc;

use holdfast_io::unnamed;
use rustix::io::Errno;

/// What to do, as an order: "make space on the log's disk". `disk` is how people call it here.
pub fn cure(error: &io::Error, disk: &str) -> String {
    match errno_of(error) {
        Some(Errno::NOSPC) => format!("make space on {disk}"),
        Some(Errno::DQUOT) => format!("make space within the quota on {disk}, or raise it"),
        Some(Errno::ROFS) => {
            format!("see in `dmesg` why {disk} is read-only, and mount it for writing again")
        }
        Some(Errno::PERM) => {
            format!("see with `lsattr` what is immutable on {disk}, and undo it with `chattr -i`")
        }
        Some(Errno::ACCESS) => {
            format!("see who may read and write on {disk}, or do it as a user who may")
        }
        Some(Errno::MFILE | Errno::NFILE) => "raise the limit of open files".to_owned(),
        Some(Errno::NOMEM) => "see what takes the machine's memory".to_owned(),
        Some(Errno::IO) => format!("see in `dmesg` what {disk} says, and mend or replace it"),
        _ => format!("mend {disk}"),
    }
}

/// The number of the error that the system gave. Where only its kind is left, one of that kind.
fn errno_of(error: &io::Error) -> Option<Errno> {
    let error = unnamed(error);
    if let Some(number) = Errno::from_io_error(error) {
        return Some(number);
    }
    let within = error.get_ref();
    let plain = within.and_then(|within| within.downcast_ref::<io::Error>());
    let shared = || within?.downcast_ref::<Arc<io::Error>>().map(|shared| &**shared);
    match plain.or_else(shared) {
        Some(within) => errno_of(within),
        None => Some(match error.kind() {
            io::ErrorKind::StorageFull => Errno::NOSPC,
            io::ErrorKind::QuotaExceeded => Errno::DQUOT,
            io::ErrorKind::ReadOnlyFilesystem => Errno::ROFS,
            io::ErrorKind::PermissionDenied => Errno::ACCESS,
            io::ErrorKind::OutOfMemory => Errno::NOMEM,
            _ => return None,
        }),
    }
}

#[cfg(test)]
mod tests;
