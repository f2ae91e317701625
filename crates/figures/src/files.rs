//! The files of figures.
//!
//! Promise: the JSON has every figure, and can be read again; the plot beside it shows nothing
//! else.
//! Never: writes outside the folder it was given.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::chart::Chart;
use crate::figures::Figures;
use crate::plot::{Panel, with_charts};

/// A file of the figures could not be written: make room or choose another folder.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The folder could not be made.
    Folder(PathBuf, io::Error),
    /// The file could not be written.
    File(PathBuf, io::Error),
}

impl Figures {
    /// What was written into a folder under this name; nothing if there is no such file.
    ///
    /// # Errors
    /// If it cannot be read, or was written in another shape: look at it before it is replaced.
    pub fn read(folder: &Path, name: &str) -> io::Result<Option<Figures>> {
        match fs::read_to_string(folder.join(format!("{name}.json"))) {
            Ok(text) => Ok(Some(serde_json::from_str(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes `NAME.json` and, with these panels, `NAME.svg` into a folder, which it makes if it is
    /// missing.
    ///
    /// # Errors
    /// At the first file that cannot be written.
    pub fn write(&self, folder: &Path, panels: &[Panel]) -> Result<(), WriteError> {
        self.write_with_charts(folder, panels, &[])
    }

    /// [`Figures::write`], with charts above the panels.
    ///
    /// # Errors
    /// Likewise.
    pub fn write_with_charts(
        &self,
        folder: &Path,
        panels: &[Panel],
        charts: &[Chart],
    ) -> Result<(), WriteError> {
        fs::create_dir_all(folder).map_err(|error| WriteError::Folder(folder.into(), error))?;
        let json = serde_json::to_string_pretty(self).expect("numbers and words are always JSON");
        for (kind, text) in [("json", json + "\n"), ("svg", with_charts(self, panels, charts))] {
            let path = folder.join(format!("{}.{kind}", self.name));
            fs::write(&path, text).map_err(|error| WriteError::File(path, error))?;
        }
        Ok(())
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Folder(path, error) => {
                write!(out, "the folder {} cannot be made: {error}", path.display())
            }
            WriteError::File(path, error) => {
                write!(out, "{} cannot be written: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for WriteError {}

#[cfg(test)]
mod tests;
