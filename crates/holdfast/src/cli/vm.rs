//! `holdfast vm ...`, as data.
//!
//! Promise: every flag says what it does.
//! Never: acts; `commands::vm` does.

use clap::Subcommand;
use std::path::PathBuf;

/// `holdfast vm ...`
#[derive(Debug, Subcommand)]
pub(crate) enum VmCommand {
    /// Start a virtual machine: where its snapshot stopped it, or by booting if it has none.
    ///
    /// Runs QEMU and ends with its exit code. A snapshot is taken up once. It is of use only to the
    /// same QEMU with the same arguments, and only while nobody has written to the guest's disks.
    /// Where it does not fit, or its memory is gone, this says so and the guest boots.
    Boot {
        /// The machine's folder; made if it is missing.
        folder: PathBuf,
        /// Take up this snapshot that the server keeps, as SERVICE/NAME: the guest's memory and
        /// the disks of the service become what they were. It can be taken up again and again.
        #[arg(long, value_name = "SERVICE/NAME")]
        from: Option<String>,
        /// QEMU and its arguments. Its memory has to be a file:
        /// `-object memory-backend-file,id=ram,size=1G,mem-path=/dev/shm/vm1,share=on`
        /// `-machine pc,memory-backend=ram -m 1G`
        #[arg(last = true, required = true, value_name = "QEMU")]
        command: Vec<String>,
    },
    /// Stop a virtual machine that `boot` started, and keep its state for the next `boot`.
    ///
    /// The guest stands still, its disks are flushed, and QEMU ends. Its memory stays in its
    /// file and survives what that file survives: the end of any process in /dev/shm, of the host
    /// where it is on persistent memory or on a disk. If anything fails, the guest goes on.
    Snapshot {
        /// The machine's folder.
        folder: PathBuf,
        /// Have the server keep the snapshot, with the disks of the service at the same instant,
        /// as SERVICE/NAME. The guest then goes on.
        #[arg(long, value_name = "SERVICE/NAME")]
        to: Option<String>,
    },
}
