//! What guests boot from, as `guests/setup` makes it.
//!
//! Promise: every file is there, or the error says what makes it.
//! Never: writes to any of them.

use crate::error::GuestError;
use crate::options::Database;
use std::path::{Path, PathBuf};

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
                let cause = format!("{} is missing; run guests/setup", missing.display());
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

    /// The root image.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("root.img")
    }

    /// The data image of a database, with an empty cluster in it.
    pub(crate) fn data(&self, database: Database) -> PathBuf {
        self.folder.join(format!("{}.img", database.name()))
    }
}
