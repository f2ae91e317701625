//! Mounting and unmounting.
//!
//! Promise: the descriptor that [`mount()`] returns *is* the file system: as long as some process
//! has it open, programs wait for answers instead of seeing errors.
//! Never: reads or answers a request.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

use super::wire;

/// How a mount looks to the system.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Shown as the source in `/proc/mounts`.
    pub name: String,
}

/// Why a mount failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// `/dev/fuse` cannot be opened: load the module `fuse`, or allow the device in the container.
    #[error("cannot open /dev/fuse: {0} ({remedy})", remedy = device_remedy(.0))]
    Device(io::Error),
    /// Mounting needs the right `CAP_SYS_ADMIN`: run as root.
    #[error("mounting needs CAP_SYS_ADMIN: run as root")]
    NotPermitted,
    /// The mount point does not exist or is not a directory: make it.
    #[error("{0} is not a directory: make it first")]
    NotADirectory(PathBuf),
    /// A file system whose server is gone is still mounted there: unmount it first.
    #[error("a file system whose server is gone is mounted on {0}: `umount {0}` first")]
    Dead(PathBuf),
    /// Something else.
    #[error("cannot mount: {0}")]
    Io(io::Error),
}

impl MountError {
    /// Why a mount point could not be opened.
    #[must_use]
    pub fn at(mountpoint: &Path, error: io::Error) -> MountError {
        use io::ErrorKind::{NotADirectory, NotFound};
        match error.kind() {
            NotFound | NotADirectory => MountError::NotADirectory(mountpoint.into()),
            _ if error.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()) => {
                MountError::Dead(mountpoint.into())
            }
            _ => MountError::Io(error),
        }
    }
}

/// What to do about a device that cannot be opened.
fn device_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "run as root, and allow the device in the container",
        _ if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
            "raise the limit of open files"
        }
        _ => "load the module with `modprobe fuse`, and have the device in the container",
    }
}

/// Mounts a file system of type `fuse.holdfast` that all users may reach and whose permissions the
/// kernel checks. Set-user-id bits and device files have no effect in it.
///
/// The caller keeps the descriptor and hands a copy to whatever process serves; see
/// [`super::Session::adopt`].
pub fn mount(mountpoint: &Path, options: &MountOptions) -> Result<OwnedFd, MountError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let point = rustix::fs::open(mountpoint, flags, Mode::empty());
    match point.and_then(|point| rustix::fs::fstat(&point).map(|_| point)) {
        Ok(point) => mount_on(&point, options),
        Err(error) => Err(MountError::at(mountpoint, error.into())),
    }
}

/// [`mount()`], over a directory that is open: wherever its names lead by now.
pub fn mount_on(point: impl AsFd, options: &MountOptions) -> Result<OwnedFd, MountError> {
    let device = rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| MountError::Device(error.into()))?;
    let data = format!(
        "fd={},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions,max_read={}",
        device.as_raw_fd(),
        wire::TRANSFER_BYTES_MAX
    );
    let data = CString::new(data).expect("no NUL was put into it");
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    match rustix::mount::mount(
        options.name.as_str(),
        format!("/proc/self/fd/{}", point.as_fd().as_raw_fd()),
        "fuse.holdfast",
        flags,
        data.as_c_str(),
    ) {
        Ok(()) => Ok(device),
        Err(Errno::PERM) => Err(MountError::NotPermitted),
        Err(error) => Err(MountError::Io(error.into())),
    }
}

/// When to unmount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmount {
    /// Only if no program uses it; otherwise `EBUSY`.
    IfIdle,
    /// Takes it out of sight at once; it ends when the last program has let go.
    Detach,
}

/// Unmounts. The processes that listen on the descriptor then end.
pub fn unmount(mountpoint: &Path, when: Unmount) -> io::Result<()> {
    let flags = match when {
        Unmount::IfIdle => UnmountFlags::empty(),
        Unmount::Detach => UnmountFlags::DETACH,
    };
    Ok(rustix::mount::unmount(mountpoint, flags)?)
}

#[cfg(test)]
mod tests;
