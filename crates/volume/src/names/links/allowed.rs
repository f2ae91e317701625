//! Whether a file of a volume may have several names.
//!
//! Promise: no file that has several is changed where one name may not show what is changed by
//! another.
//! Never: takes a name away.

use holdfast_io::Kind;
use holdfast_io::tree::Errno;

use super::are_one_inode;
use crate::node::Body;
use crate::volume::DirectoryVolume;

impl DirectoryVolume {
    /// Whether a file can get a second name.
    #[must_use]
    pub fn has_links(&self) -> bool {
        match self.space.limits(&*self.home) {
            Ok(limits) => limits.links_max > 1,
            // It may have no room to be asked.
            Err(_) => are_one_inode(&*self.home),
        }
    }

    /// `EPERM` for a file that has several names on a home where one may not show what is changed
    /// by another.
    pub(crate) fn require_one_name(&self, body: &Body) -> Result<(), Errno> {
        let is_file = body.attributes.kind == Kind::File;
        if is_file && body.attributes.links > 1 && !self.has_links() {
            return Err(Errno::PERM);
        }
        Ok(())
    }
}
