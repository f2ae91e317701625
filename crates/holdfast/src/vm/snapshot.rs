//! The folder of a virtual machine: its control socket, and its snapshot if it has one.
//!
//! Promise: a snapshot is whole or is not there, after any crash; one that was taken up is gone
//! before its guest runs.
//! Never: talks to QEMU.

use holdfast_io::private::{self, Folder, Reach};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
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

    /// A file that the command does not name as its memory. What a snapshot says is a client's
    /// word, and these files are written.
    pub(crate) fn unnamed_memory(&self, command: &[String]) -> Option<&Path> {
        let is_named = |path: &Path| {
            let path = path.to_str().filter(|path| !path.is_empty());
            path.is_some_and(|path| command.iter().any(|argument| names(argument, path)))
        };
        self.memory.iter().map(PathBuf::as_path).find(|path| !is_named(path))
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

/// Whether an argument of QEMU's is this path, or has it as the whole of a value.
fn names(argument: &str, path: &str) -> bool {
    argument.match_indices(path).any(|(at, _)| {
        let (before, after) = (&argument[..at], &argument[at + path.len()..]);
        (before.is_empty() || before.ends_with(['=', '"']))
            && (after.is_empty() || after.starts_with([',', '"']))
    })
}

impl Snapshot {
    /// The folder at this path; made for this user alone if it is missing. One in which others can
    /// put something is refused: QEMU, and what reads here, would take it for the machine's.
    pub(crate) fn at(folder: &Path) -> io::Result<Snapshot> {
        private::directory(folder)?;
        let folder = Folder::find(folder)?;
        folder.allow(Reach::Nobody)?;
        Ok(Snapshot { folder: folder.path().to_owned() })
    }

    /// QEMU's control socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("qmp.sock")
    }

    /// What QEMU knows beside the guest's memory.
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// Makes the file for the state, which a shell of QEMU's will write: nobody else can read it,
    /// and no link of that name is written through.
    pub(crate) fn make_state(&self) -> io::Result<()> {
        private::create_anew(&self.state()).map(drop)
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
        private::remove(&self.folder.join("snapshot"))?;
        File::open(&self.folder)?.sync_all()
    }

    /// Writes a small file that is there wholly or not at all.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        private::replace(&self.folder.join(name), bytes)
    }
}

#[cfg(test)]
mod tests;
