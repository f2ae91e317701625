//! The folder that a path leads to, and who else can change its names.
//!
//! Promise: the way is gone one name at a time, each from the open folder before it, and a link on
//! it is followed only if nobody else can have put it there; what is found is held open, so no
//! later change of a name leads elsewhere.
//! Never: reads a folder, or goes back to a path once the folder is open.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fstat, fsync, mkdirat, open, openat, readlinkat, statat,
};
use rustix::io::Errno;

use super::owner::{is_trusted, others_write, refused};

/// Others may go through a folder, and see its names.
pub(super) const PUBLIC: Mode = Mode::from_raw_mode(0o755);

/// Links followed on one way; the kernel's own limit.
const LINKS_MAX: u32 = 40;

/// Who else can change what names in a folder lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Nobody.
    Nobody,
    /// Others can add names, and change the names of what is theirs: a folder like `/tmp`.
    Additions,
    /// Somebody else can change any name in it, or on the way to it.
    Anybody,
}

/// A folder, held open.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    path: PathBuf,
    found: Stat,
    reach: Reach,
}

impl Folder {
    /// The folder at this path.
    ///
    /// # Errors
    /// As the system says; `PermissionDenied` with a [`super::Refusal`] for a link of somebody
    /// else's.
    pub fn find(path: &Path) -> io::Result<Folder> {
        match walk(path, Missing::IsAnError)? {
            (folder, None) => Ok(folder),
            (folder, Some(name)) => folder.enter(&name),
        }
    }

    /// The folder at this path, if it is nobody's but those who can change its name.
    pub(super) fn to_mount_over(path: &Path) -> io::Result<Folder> {
        let (around, Some(name)) = walk(path, Missing::IsAnError)? else {
            return Folder::find(path);
        };
        let point = around.enter(&name)?;
        let (owner, of_names) = (point.found.st_uid, around.found.st_uid);
        if around.reach == Reach::Nobody || is_trusted(owner) || owner == of_names {
            return Ok(point);
        }
        let why = format!(
            "it belongs to user {owner}, and others can change {}; name a directory in a folder \
             that only you can write, or make it yours with `chown`",
            around.path.display()
        );
        Err(refused(&point.path, why))
    }

    /// The folder at this path. If it is missing it is made with this mode, and its parents
    /// readable by all.
    pub(super) fn find_or_make(path: &Path, mode: Mode) -> io::Result<Folder> {
        let (folder, Some(name)) = walk(path, Missing::IsMade)? else {
            return Folder::find(path);
        };
        match mkdirat(&folder.fd, &name, mode) {
            Ok(()) | Err(Errno::EXIST) => folder.enter(&name),
            Err(error) => Err(error.into()),
        }
    }

    /// The folder in which the last name of a path is, and that name: of what is there, or will be.
    pub(super) fn of(path: &Path) -> io::Result<(Folder, OsString)> {
        match walk(path, Missing::IsAnError)? {
            (folder, Some(name)) => Ok((folder, name)),
            (folder, None) => Err(refused(&folder.path, "it is a directory, and no name in one")),
        }
    }

    /// Where it is, without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who else can change what its names lead to.
    #[must_use]
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// Refuses a folder that others can change further than this.
    ///
    /// # Errors
    /// `PermissionDenied`, with a [`super::Refusal`] that says who.
    pub fn allow(&self, most: Reach) -> io::Result<()> {
        match self.reach <= most {
            true => Ok(()),
            false => Err(refused(
                &self.path,
                "others than you and root can change what is in it, or what leads to it; name a \
                 folder that only you can write (`chown`, `chmod go-w`)",
            )),
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// [`Self::open`], if it belongs to this user or root.
    pub(super) fn open_own(self) -> io::Result<OwnedFd> {
        match is_trusted(self.found.st_uid) {
            true => self.open(),
            false => {
                let owner = self.found.st_uid;
                let why = format!("it belongs to user {owner}; make it yours with `chown`");
                Err(refused(&self.path, why))
            }
        }
    }

    /// Has the names that were changed on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(fsync(self.open()?)?)
    }

    /// The folder itself, opened for a lock or for files below it, whosever it is.
    ///
    /// # Errors
    /// As the system says.
    pub fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(&self.fd, ".", flags, Mode::empty())?)
    }

    fn root() -> io::Result<Folder> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = open("/", flags, Mode::empty())?;
        let found = fstat(&fd)?;
        let reach = reach_of(&fd, &found);
        Ok(Folder { fd, path: "/".into(), found, reach })
    }

    /// The folder of this name in it, which is no link.
    fn enter(&self, name: &OsStr) -> io::Result<Folder> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::empty())?;
        let found = fstat(&fd)?;
        // In a folder like /tmp a name that is ours stays ours.
        let before = if self.reach == Reach::Anybody { Reach::Anybody } else { Reach::Nobody };
        let reach = reach_of(&fd, &found).max(before);
        Ok(Folder { fd, path: self.path.join(name), found, reach })
    }

    /// Where a link of this name leads, if it may be followed.
    fn follow(&self, name: &OsStr, link: &Stat) -> io::Result<PathBuf> {
        let may = match self.reach {
            Reach::Nobody => true,
            // A second name of a link is one that somebody else may have given it.
            Reach::Additions => is_trusted(link.st_uid) && link.st_nlink == 1,
            Reach::Anybody => false,
        };
        if !may {
            let why = format!("it is a link of user {}, where others can make one", link.st_uid);
            return Err(refused(&self.path.join(name), why));
        }
        let to = readlinkat(&self.fd, name, Vec::new())?;
        Ok(OsString::from_vec(to.into_bytes()).into())
    }
}

/// What is done about a folder on the way that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    IsAnError,
    IsMade,
}

/// Goes to the folder that has the last name of a path. No name is left if the path ends with a
/// folder that has none, such as `/` or `a/..`.
fn walk(path: &Path, missing: Missing) -> io::Result<(Folder, Option<OsString>)> {
    let mut left = names_of(&std::path::absolute(path)?);
    let mut way = vec![Folder::root()?];
    let mut links = 0;
    while let Some(name) = left.pop_front() {
        if name == ".." {
            leave(&mut way);
            continue;
        }
        let here = way.last().expect("the root stays");
        let found = match statat(&here.fd, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Some(found),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(link) = found.filter(is_link) {
            links += 1;
            if links > LINKS_MAX {
                return Err(Errno::LOOP.into());
            }
            let to = here.follow(&name, &link)?;
            if to.is_absolute() {
                way.truncate(1);
            }
            let further = names_of(&to);
            further.into_iter().rev().for_each(|name| left.push_front(name));
            continue;
        }
        if left.is_empty() {
            return Ok((way.pop().expect("the root stays"), Some(name)));
        }
        if found.is_none() && missing == Missing::IsMade {
            make_on_the_way(here, &name)?;
        }
        let next = here.enter(&name)?;
        way.push(next);
    }
    Ok((way.pop().expect("the root stays"), None))
}

/// Goes back to the folder above. Whoever can exchange the folder that is left decides what is
/// above it, so the way keeps the worst that it has seen.
fn leave(way: &mut Vec<Folder>) {
    let Some(left) = (way.len() > 1).then(|| way.pop()).flatten() else { return };
    let here = way.last_mut().expect("the root stays");
    if left.reach == Reach::Anybody {
        here.reach = Reach::Anybody;
    }
}

/// A folder on the way to one that is made: others may go through it.
fn make_on_the_way(here: &Folder, name: &OsStr) -> io::Result<()> {
    match mkdirat(&here.fd, name, PUBLIC) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn is_link(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Symlink
}

fn names_of(path: &Path) -> VecDeque<OsString> {
    let name = |part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

/// Who else can change the names in this folder, if nobody can change what leads to it.
fn reach_of(fd: &OwnedFd, found: &Stat) -> Reach {
    if !is_trusted(found.st_uid) {
        Reach::Anybody
    } else if !others_write(fd.as_fd(), found) {
        Reach::Nobody
    } else if found.st_mode & 0o1000 != 0 {
        Reach::Additions
    } else {
        Reach::Anybody
    }
}
