//! What directories of the home ask of the names in them, by flags that their owners may set.
//!
//! Promise: tells what the home says of a directory at the moment.
//! Never: sets a flag.

use holdfast_io::Held;
use holdfast_io::tree::Errno;

/// What a directory asks. Each is handed down to directories that are made in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// What comes into it from elsewhere is of this project.
    pub(super) project: Option<u32>,
    /// No symbolic link is made in it.
    pub(super) no_symlinks: bool,
    /// Names that differ in case alone are one.
    pub(super) folds_case: bool,
}

impl Rules {
    pub(super) fn of(directory: &dyn Held) -> Result<Rules, Errno> {
        let traits = directory.traits()?.unwrap_or_default();
        Ok(Rules {
            project: traits.hands_project_down.then_some(traits.project),
            no_symlinks: traits.no_symlinks,
            folds_case: traits.folds_case,
        })
    }
}
