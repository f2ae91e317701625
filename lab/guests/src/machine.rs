//! A machine that can be stopped and taken up, by `holdfast vm`.
//!
//! Promise: its memory and its snapshot lie in memory, and go with it.
//! Never: knows what runs in it.

use crate::error::{During, GuestError};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The emulator.
pub(crate) const QEMU: &str = "qemu-system-x86_64";

/// Memory of every guest.
pub(crate) const MEMORY_MIB: &str = "512";

/// The machine.
pub(crate) struct Machine {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Machine {
    /// A machine that was never started.
    pub(crate) fn new(program: &Path) -> Result<Machine, GuestError> {
        let folder = tempfile::tempdir_in("/dev/shm").during("making a folder in memory")?;
        Ok(Machine { program: program.to_owned(), folder })
    }

    /// What starts it, or takes it up; QEMU's arguments are to be added.
    pub(crate) fn boot(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["vm", "boot"]).arg(self.folder.path()).args(["--", QEMU]);
        command
    }

    /// QEMU's arguments that make its memory a file.
    pub(crate) fn memory(&self) -> Vec<String> {
        let file = self.folder.path().join("memory");
        let object = format!(
            "memory-backend-file,id=ram,size={MEMORY_MIB}M,share=on,mem-path={}",
            file.display()
        );
        ["-object", &object, "-machine", "pc,memory-backend=ram", "-m", MEMORY_MIB]
            .map(String::from)
            .into()
    }

    /// Stops it and keeps its state.
    pub(crate) fn snapshot(&self) -> Result<(), GuestError> {
        let doing = "stopping the machine";
        let mut command = Command::new(&self.program);
        command.args(["vm", "snapshot"]).arg(self.folder.path());
        let output = command.output().during(doing)?;
        let said = String::from_utf8_lossy(&output.stderr);
        output.status.success().then_some(()).ok_or_else(|| GuestError::new(doing, said))
    }
}
