//! The volume's own directory in its home: files that lost their names, marks, what is tried out.
//!
//! Promise: it comes and goes without a trace in the root's time, which belongs to programs.
//! Never: looks at what is not its own. A process that dies between the change and the time leaves
//! the time as that of the change.

use std::io;
use std::path::Path;

use holdfast_io::acl::DEFAULT;
use holdfast_io::{Change, Files, Kind};

use crate::names::{ORPHANS_NAME, to_path};
use crate::tree::Errno;

/// Makes it unless it is there.
pub(crate) fn make(home: &dyn Files) -> io::Result<()> {
    let before_ns = root_time(home)?;
    match home.make_dir(&to_path(ORPHANS_NAME.to_vec()), 0o700) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.and_then(|()| take_list(home)).and_then(|()| set_root_time(home, before_ns)),
    }
}

/// What is made in it gets no list that the root hands down.
fn take_list(home: &dyn Files) -> io::Result<()> {
    match home.remove_xattr(&to_path(ORPHANS_NAME.to_vec()), DEFAULT) {
        Err(error) if error.raw_os_error() == Some(Errno::NOTSUP.0) => Ok(()),
        taken => taken,
    }
}

/// Removes it with all that is in it, and gives the root that time, or else the one that it had.
/// Where it is not there, nothing is done.
pub(crate) fn remove(home: &dyn Files, root_ns: Option<i128>) -> io::Result<()> {
    let own = to_path(ORPHANS_NAME.to_vec());
    let listing = match home.read_dir(&own) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listing => listing?,
    };
    for entry in listing {
        let path = own.join(to_path(entry.name));
        match entry.kind {
            Kind::Directory => home.remove_dir(&path)?,
            _ => home.remove_file(&path)?,
        }
    }
    let before_ns = root_ns.map_or_else(|| root_time(home), Ok)?;
    home.remove_dir(&own)?;
    set_root_time(home, before_ns)?;
    home.sync_dir(Path::new(""))
}

fn root_time(home: &dyn Files) -> io::Result<i128> {
    Ok(home.metadata(Path::new(""))?.modified_ns)
}

fn set_root_time(home: &dyn Files, modified_ns: i128) -> io::Result<()> {
    let change = Change { modified_ns: Some(modified_ns), ..Change::default() };
    home.change(Path::new(""), &change)
}
