//! Memory that no section of the configuration has.
//!
//! Promise: whatever lies in the folder of regions with bytes that nobody has released is named, if
//! it is neither of the configuration nor of a process that lives; what was put aside was named
//! when that was done.
//! Never: looks elsewhere, or changes anything.

use holdfast_attach::bond::hex;
use holdfast_attach::observe::observe;
use holdfast_config::sizes::rounded;
use holdfast_io::private;
use holdfast_machine::holders::is_locked;
use holdfast_memory::Medium;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What is in the name of a region that a command has put aside.
const ASIDE: &str = ".aside-";

/// What is in the name of one that a keeper has left beside its place.
const HELD: &str = crate::memory::ASIDE;

/// What stands before the name of a section in the file of its region; a volume's is its name.
const KINDS: [(&str, &str); 2] = [("log-", "log"), ("table-", "table")];

/// The memory of a log that has no section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sectionless {
    /// Where it is.
    pub path: PathBuf,
    /// The identity of its log.
    pub log: String,
    /// How much of it nobody has released.
    pub unapplied_bytes: u64,
    /// Whether it has what has to survive the power, and nothing else has.
    #[serde(default)]
    pub is_alone: bool,
}

impl fmt::Display for Sectionless {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sectionless { path, log, unapplied_bytes, .. } = self;
        let (path, bytes) = (path.display(), rounded(*unapplied_bytes));
        write!(
            out,
            "{path} is the memory of log {log}, which no section of the configuration has, and \
             nobody else has the {bytes} in it that were acknowledged: put its section back, {}; a \
             restart of the system takes it away",
            self.section()
        )
    }
}

impl Sectionless {
    /// The section that it had, as far as its name tells.
    fn section(&self) -> String {
        let place = named(&self.path);
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let of_kind = |(start, kind)| Some(format!("[{kind}.{}]", name.strip_prefix(start)?));
        let known = KINDS.into_iter().find_map(of_kind);
        known.unwrap_or_else(|| format!("[volume.{name}]"))
    }
}

/// All there is, but for the media that are known.
pub(crate) fn sectionless(known: impl Iterator<Item = Medium>) -> Vec<Sectionless> {
    let number = |it: Metadata| (it.dev(), it.ino());
    let known: Vec<PathBuf> = known.filter_map(|it| it.path().map(Path::to_owned)).collect();
    let of = |path: &PathBuf| path.metadata().ok().map(number);
    let numbers: BTreeSet<_> = known.iter().filter_map(of).collect();
    let is_unknown = |path: &PathBuf| {
        let found = path.symlink_metadata().ok().filter(Metadata::is_file).map(number);
        found.is_some_and(|it| !numbers.contains(&it)) && !known.contains(&named(path))
    };
    let is_aside = |path: &PathBuf| path.as_os_str().to_string_lossy().contains(ASIDE);
    let found = fs::read_dir(folder()).into_iter().flatten().flatten().map(|it| it.path());
    let mut found: Vec<_> = found.filter(|path| !is_aside(path) && is_unknown(path)).collect();
    found.sort();
    found.into_iter().filter_map(look).collect()
}

/// The place that memory had which a keeper has left beside it: its section tells of that.
fn named(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(name.split(HELD).next().unwrap_or_default())
}

/// What is left in a region that nobody has.
fn look(path: PathBuf) -> Option<Sectionless> {
    let seen = observe(&Medium::Shm { path: path.clone() }).ok()?;
    let unapplied_bytes = seen.unapplied_bytes();
    let is_left = unapplied_bytes > 0 && !is_held(&path);
    let (log, is_alone) = (hex(seen.identity), seen.is_alone());
    is_left.then_some(Sectionless { path, log, unapplied_bytes, is_alone })
}

fn is_held(path: &Path) -> bool {
    // What cannot be opened is not this user's.
    private::open(path, false).map_or(true, |file| is_locked(&file))
}

/// Where regions are that the configuration gives no path. A test says where instead; a build for
/// users listens to nobody.
fn folder() -> PathBuf {
    let told = cfg!(debug_assertions).then(|| std::env::var_os("HOLDFAST_TEST_REGIONS"));
    told.flatten().map_or_else(private::memory_folder, PathBuf::from)
}

#[cfg(test)]
mod tests;
