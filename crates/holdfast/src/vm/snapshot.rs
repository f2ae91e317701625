//! The folder of a virtual machine: its control socket, and its snapshot if it has one.
//!
//! Promise: a snapshot is whole or is not there, after any crash; one that was taken up is gone
//! before its guest runs.
//! Never: talks to QEMU.

use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Version of [`Taken`] as it is kept.
const FORMAT: u32 = 1;

/// The folder.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    folder: PathBuf,
}

/// What is kept of a snapshot beside the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Taken {
    format: u32,
    /// The files that are the guest's memory.
    pub memory: Vec<PathBuf>,
    /// QEMU and its arguments: the state is of no use to another machine.
    pub command: Vec<String>,
}

impl Taken {
    /// What to keep of a guest that runs so.
    pub(crate) fn new(memory: Vec<PathBuf>, command: Vec<String>) -> Taken {
        Taken { format: FORMAT, memory, command }
    }

    /// Why this command cannot take it up; `None` if it can.
    pub(crate) fn refusal(&self, command: &[String]) -> Option<String> {
        let gone = self.memory.iter().find(|path| !path.exists());
        let gone = gone.map(|path| format!("the guest's memory {} is gone", path.display()));
        gone.or_else(|| self.mismatch(command))
    }

    /// Why it is none of this command, whether or not the memory is there.
    pub(crate) fn mismatch(&self, command: &[String]) -> Option<String> {
        if self.format != FORMAT {
            return Some(format!("it is of format {}", self.format));
        }
        let is_same = self.command == command;
        (!is_same).then(|| format!("it is of another machine: {}", self.command.join(" ")))
    }
}

impl Snapshot {
    /// The folder at this path; made if it is missing.
    pub(crate) fn at(folder: &Path) -> io::Result<Snapshot> {
        fs::create_dir_all(folder)?;
        Ok(Snapshot { folder: fs::canonicalize(folder)? })
    }

    /// QEMU's control socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("qmp.sock")
    }

    /// What QEMU knows beside the guest's memory.
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// Notes how the machine was started, for the snapshot that may come.
    pub(crate) fn note_command(&self, command: &[String]) -> io::Result<()> {
        self.put("command", &serde_json::to_vec(command)?)
    }

    /// How the machine was started.
    pub(crate) fn command(&self) -> io::Result<Vec<String>> {
        Ok(serde_json::from_slice(&fs::read(self.folder.join("command"))?)?)
    }

    /// Makes the snapshot valid. The state is in its file by now, and the guest stands still.
    pub(crate) fn keep(&self, taken: &Taken) -> io::Result<()> {
        File::open(self.state())?.sync_all()?;
        for memory in &taken.memory {
            File::open(memory)?.sync_all()?;
        }
        self.put("snapshot", &serde_json::to_vec(taken)?)
    }

    /// The snapshot, if there is one.
    pub(crate) fn taken(&self) -> io::Result<Option<Taken>> {
        match fs::read(self.folder.join("snapshot")) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Ends the snapshot's life: its memory is about to become another.
    pub(crate) fn forget(&self) -> io::Result<()> {
        match fs::remove_file(self.folder.join("snapshot")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => File::open(&self.folder)?.sync_all(),
        }
    }

    /// Writes a small file that is there wholly or not at all.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let (path, new) = (self.folder.join(name), self.folder.join(format!("{name}.new")));
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(new, path)?;
        File::open(&self.folder)?.sync_all()
    }
}

#[cfg(test)]
mod tests;
