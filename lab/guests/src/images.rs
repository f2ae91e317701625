//! What guests boot from, as `boot/setup` makes it.
//!
//! Promise: every file is there, or the error says what makes it.
//! Never: writes to any of them.

use crate::error::{During, GuestError};
use crate::options::Database;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of images.
pub(crate) struct Images {
    folder: PathBuf,
}

impl Images {
    /// Finds them.
    pub(crate) fn find(folder: &Path) -> Result<Images, GuestError> {
        let images = Images { folder: folder.to_owned() };
        let data = Database::ALL.map(|it| images.data(it));
        let all = [images.kernel(), images.first(), images.root()].into_iter().chain(data);
        match all.into_iter().find(|path| !path.exists()) {
            None => Ok(images),
            Some(missing) => {
                let cause = format!("{} is missing; run lab/guests/boot/setup", missing.display());
                Err(GuestError::new("looking for what guests boot from", cause))
            }
        }
    }

    /// The kernel.
    pub(crate) fn kernel(&self) -> PathBuf {
        self.folder.join("vmlinuz")
    }

    /// The first file system.
    pub(crate) fn first(&self) -> PathBuf {
        self.folder.join("first.gz")
    }

    /// The kernel that makes block devices, and its first file system.
    pub(crate) fn for_ublk(&self) -> Result<[PathBuf; 2], GuestError> {
        let both = ["vmlinuz-ublk", "first-ublk.gz"].map(|name| self.folder.join(name));
        match both.iter().find(|path| !path.exists()) {
            None => Ok(both),
            Some(missing) => {
                let cause =
                    format!("{} is missing; run lab/guests/boot/setup ublk", missing.display());
                Err(GuestError::new("looking for a kernel that makes block devices", cause))
            }
        }
    }

    /// A first file system with the command in it, as a file in `folder`.
    pub(crate) fn with_program(
        plain: &Path,
        program: &Path,
        folder: &Path,
    ) -> Result<PathBuf, GuestError> {
        let doing = "packing the command";
        let first = folder.join("first.gz");
        fs::copy(program, folder.join("holdfast")).during(doing)?;
        // What was built has many times its size in names and lines, and a guest has little memory.
        let stripped = Command::new("strip").arg(folder.join("holdfast")).status();
        stripped.during(doing)?;
        let mut pack = Command::new("sh");
        pack.args(["-c", "echo holdfast | cpio --quiet -o -H newc | gzip -1"]);
        pack.current_dir(folder);
        let packed = pack.output().during(doing)?;
        if !packed.status.success() || packed.stdout.is_empty() {
            return Err(GuestError::new(doing, packed.status.to_string()));
        }
        // The kernel unpacks one archive after another.
        fs::copy(plain, &first).during(doing)?;
        let mut file = File::options().append(true).open(&first).during(doing)?;
        file.write_all(&packed.stdout).during(doing)?;
        Ok(first)
    }

    /// The root image.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("root.img")
    }

    /// The data image of a database, with an empty cluster in it.
    pub(crate) fn data(&self, database: Database) -> PathBuf {
        self.folder.join(format!("{}.img", database.name()))
    }
}
