//! A symbolic link where a store or a log has a directory or a file.
//!
//! Promise: who is refused for a link is told which it is, and what to do instead.
//! Never: follows one for anybody.

use holdfast_config::exit::Exit;
use holdfast_config::problem::Problem;
use holdfast_io::errno;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// Directories below that of a store.
const BELOW: [&str; 3] = ["", "log", "archive"];

/// What the system says of a link that it is not to follow, and of one that leads nowhere.
const OF_LINKS: [Errno; 3] = [Errno::LOOP, Errno::NOTDIR, Errno::EXIST];

/// The problem of a store or log in `directory` whose files cannot be had, if that is for a link.
pub fn problem(what: &str, directory: &Path, error: &io::Error) -> Option<Problem> {
    let number = errno(error)?;
    if !OF_LINKS.iter().any(|of| of.raw_os_error() == number) {
        return None;
    }
    let (why, remedy) = endless(directory).or_else(|| unfollowed(directory))?;
    Some(Problem::new(Exit::Usage, what, why, format!("nothing was changed; {remedy}")))
}

/// A link on the way there that leads back to itself.
fn endless(directory: &Path) -> Option<(String, String)> {
    let is_endless = |path: &&Path| {
        let followed = path.metadata().err().and_then(|error| Errno::from_io_error(&error));
        is_link(path) && followed == Some(Errno::LOOP)
    };
    let link = directory.ancestors().filter(is_endless).last()?.display();
    Some((format!("{link} is a symbolic link that leads to itself"), "correct it".to_owned()))
}

/// A link in the place of the directory, or of something in it.
fn unfollowed(directory: &Path) -> Option<(String, String)> {
    let why = |link: &Path| format!("{} is a symbolic link, and is not followed", link.display());
    if is_link(directory) {
        let target = directory.read_link().ok()?;
        let target = directory.parent().unwrap_or(Path::new("")).join(target);
        return Some((why(directory), format!("name what it leads to: {}", target.display())));
    }
    let within = BELOW.iter().flat_map(|below| links_in(&directory.join(below)));
    let remedy = "put what it leads to in its place; a directory of another disk can be mounted \
                  there";
    Some((why(&within.min()?), remedy.to_owned()))
}

fn links_in(directory: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(directory).into_iter().flatten().flatten();
    found.map(|entry| entry.path()).filter(|path| is_link(path)).collect()
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_symlink())
}
