//! The memory that the keeper's processes serve, held open by the keeper as well.
//!
//! Promise: memory whose name is gone, or leads to something else, while a process serves it is
//! told of, with what to do; it outlives that process, and gets a free name back before another
//! process looks for it. No process is started on anything else in its place. From before a process
//! looks for it until it is at home there is no moment at which the keeper does not hold it; a
//! keeper that ends leaves it where somebody finds it.
//! Never: maps memory or looks into it.

use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::shortage::AGAIN;
use holdfast_io::real::RealEntropy;
use holdfast_io::{Entropy, private};
use holdfast_machine::holders::{Holder, is_locked, is_mapped_by};
use holdfast_machine::lock::nameless_with;
use holdfast_memory::{Medium, Region};
use rustix::fs::statvfs;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{File, metadata, symlink_metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What makes room for a name, once that is done.
const THEN: &str = "nothing is lost while the keeper runs, which holds the memory";

/// Between the name that memory could not have and a number: where it was left.
pub(crate) const ASIDE: &str = ".held-";

/// All memory that the keeper holds, by its name. It outlives whatever serves it.
#[derive(Debug, Default)]
pub(crate) struct Memories(Mutex<BTreeMap<PathBuf, Shared>>);

type Shared = Arc<Mutex<ServedMemory>>;

/// The memory of one volume, log, disk or of one service's tables.
#[derive(Debug)]
struct ServedMemory {
    medium: Medium,
    /// What the name led to when a process was last about to look for it, or served it.
    file: Option<File>,
    /// A process has served it. What nobody serves now may be all that there is.
    was_served: bool,
    /// Whose it is, for people.
    whose: String,
}

/// Memory that a process serves and no other would find, or take, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Astray {
    /// What is wrong, for people.
    pub why: String,
    /// What has to be done to its file. None where its name is gone, which the next process to
    /// serve it has the keeper give back.
    pub mend: Option<String>,
}

impl Astray {
    /// Memory whose name is gone, as its keeper is: nobody holds it but a process of ours that
    /// serves it still.
    pub fn without_keeper(medium: &Medium) -> Option<Astray> {
        let path = medium.path()?;
        let pid = nameless_with(path)?;
        let why = format!(
            "the name of its memory is gone ({}), although process {pid} serves it, which no \
             keeper looks after",
            path.display()
        );
        let mend = "nothing else has what is in it: copy that through a connection which it has \
                    now; it ends with the last of these, and what is in it goes with it";
        Some(Astray { why, mend: Some(mend.to_owned()) })
    }
}

/// Where a name leads.
#[derive(Debug)]
enum Leads {
    Here,
    Nowhere,
    Elsewhere,
    /// To what is held, which nobody would take for the region any more.
    Barred(io::Error),
}

impl Memories {
    /// What is held of a medium that has a name.
    fn of(&self, medium: &Medium) -> Option<Shared> {
        let path = medium.path()?.to_owned();
        let fresh = || ServedMemory { medium: medium.clone(), ..ServedMemory::default() };
        let mut all = self.lock();
        Some(all.entry(path).or_insert_with(|| Arc::new(Mutex::new(fresh()))).clone())
    }

    /// Before a process looks for it: gives memory that is held its name back, if that leads
    /// nowhere, and holds what there is.
    pub(crate) fn put_back(&self, medium: &Medium, whose: &str) -> Outcome<()> {
        self.of(medium).map_or(Ok(()), |it| lock(&it).put_back(whose))
    }

    /// Holds what this process has just begun to serve: what was there before, or what it made.
    /// False if that is other memory than what is held, which it must not serve.
    #[must_use]
    pub(crate) fn hold(&self, medium: &Medium, pid: u32) -> bool {
        self.of(medium).is_none_or(|it| lock(&it).hold(pid))
    }

    /// Nobody is to go on with it, and `is_at_home` if nothing is in it alone. What could be, and
    /// nobody else would find, is held on.
    pub(crate) fn let_go(&self, medium: &Medium, is_at_home: bool) {
        let Some(held) = self.of(medium) else { return };
        let mut held = lock(&held);
        if is_at_home || matches!(held.leads(), Some(Leads::Here) | None) {
            (held.file, held.was_served) = (None, false);
        }
    }

    /// That a process serves it and no other would find it, if that is so.
    pub(crate) fn astray(&self, medium: &Medium) -> Option<Astray> {
        lock(&self.of(medium)?).astray()
    }

    /// Why a process did not come to serve: what it says, unless it looked for memory that is held
    /// and has lost its name. That is no loss, and the next process is given the name back.
    pub(crate) fn reason(&self, medium: &Medium, said: Problem) -> Problem {
        let is_misplaced = || self.of(medium).is_some_and(|it| lock(&it).is_misplaced());
        if !said.exit.stays() || !is_misplaced() {
            return said;
        }
        let why = "the name of its memory was gone when it was looked for; the keeper holds it";
        let remedy = format!("{AGAIN}, and nothing is lost");
        Problem { passes: true, ..Problem::new(Exit::Failed, said.what, why, remedy) }
    }

    /// What keeps memory that is held from having its name, if anything does.
    pub(crate) fn hindrance(&self, medium: &Medium) -> Option<Holder> {
        lock(&self.of(medium)?).hindrance()
    }

    /// Whether a process serves what is held.
    pub(crate) fn is_served(&self, medium: &Medium) -> bool {
        self.of(medium).is_some_and(|it| lock(&it).file.as_ref().is_some_and(is_locked))
    }

    /// Whether the name leads to what nobody here has held.
    pub(crate) fn leads_elsewhere(&self, medium: &Medium) -> bool {
        let leads = self.of(medium).and_then(|it| lock(&it).leads());
        matches!(leads, Some(Leads::Elsewhere))
    }

    /// The keeper ends: what has lost its name gets it back, or another one; each of those is told.
    pub(crate) fn leave(&self) -> Vec<Problem> {
        let all = std::mem::take(&mut *self.lock());
        let left: Vec<_> = all.values().filter_map(|it| lock(it).leave().err()).collect();
        left.iter().for_each(|problem| tracing::error!("{problem}"));
        left
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Shared>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock(one: &Shared) -> MutexGuard<'_, ServedMemory> {
    one.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for ServedMemory {
    fn default() -> ServedMemory {
        ServedMemory {
            medium: Medium::Private,
            file: None,
            was_served: false,
            whose: String::new(),
        }
    }
}

impl ServedMemory {
    fn hold(&mut self, pid: u32) -> bool {
        let found = self.open().ok();
        // Looked at after the opening: a name that led elsewhere then is not the process's now.
        if let Some(found) = found.filter(|_| is_mapped_by(&self.medium, pid)) {
            let is_other = self.file.as_ref().is_some_and(|file| !is_same(file, &found));
            if self.was_served && is_other {
                tracing::error!("process {pid} found other memory of {}", self.whose);
                return false;
            }
            self.file = Some(found);
            self.was_served = true;
        }
        self.was_served |= self.file.as_ref().is_some_and(is_locked);
        true
    }

    fn open(&self) -> io::Result<File> {
        let path = self.medium.path().unwrap_or(Path::new(""));
        match path.is_symlink() {
            // Nobody attaches memory by a link, wherever it leads.
            true => Err(io::Error::other("it is a symbolic link")),
            false => private::open(path, false),
        }
    }

    fn astray(&self) -> Option<Astray> {
        let (at, file) = self.held()?;
        let path = at.display();
        let (why, mend) = match self.leads()? {
            Leads::Here => return None,
            Leads::Nowhere => (format!("the name of its memory is gone ({path})"), None),
            Leads::Elsewhere => {
                let why = "the name of its memory leads to another file";
                (format!("{why} ({path}), to be moved away"), None)
            }
            Leads::Barred(error) => {
                let why = format!("the file of its memory is refused ({path}): {error}");
                (why, Some(unbarred(at)))
            }
        };
        is_locked(file).then(|| Astray { why: format!("{why}, although it is served"), mend })
    }

    fn hindrance(&self) -> Option<Holder> {
        if let Some(left) = left_aside(&self.medium) {
            let (path, left) = (self.medium.path()?.display(), left.display());
            return Some((
                format!("an earlier keeper left its memory at {left}, as its name led elsewhere"),
                put_under_its_name(path, left),
            ));
        }
        if !self.was_served {
            return self.refusal();
        }
        let (at, file) = self.held()?;
        let path = at.display();
        match self.leads()? {
            Leads::Here => None,
            Leads::Nowhere => self.want_of_room(file),
            Leads::Elsewhere => Some((
                format!("another file has the name of its memory, {path}"),
                format!("{THEN}: move the file there away"),
            )),
            Leads::Barred(error) => Some((
                format!("the file of its memory, {path}, is refused: {error}"),
                format!("{THEN}: {}", unbarred(at)),
            )),
        }
    }

    /// What is there and has not been served, and nobody would take for the region as it is.
    fn refusal(&self) -> Option<Holder> {
        let path = self.medium.path()?;
        let error = self.open().err().filter(private::is_refusal)?;
        let why = format!("the file of its memory, {}, is refused: {error}", path.display());
        Some((why, unbarred(path)))
    }

    fn want_of_room(&self, file: &File) -> Option<Holder> {
        let folder = self.medium.path()?.parent()?;
        let needed_bytes = file.metadata().ok()?.len();
        let room = statvfs(folder).ok()?;
        (room.f_bavail.saturating_mul(room.f_frsize) < needed_bytes).then(|| {
            let folder = folder.display();
            let why = format!("its memory has lost its name, and {folder} has no room for it");
            (why, format!("{THEN}: make room there for {needed_bytes} bytes"))
        })
    }

    fn put_back(&mut self, whose: &str) -> Outcome<()> {
        whose.clone_into(&mut self.whose);
        if !self.was_served {
            self.file = self.open().ok();
        }
        let what = format!("giving the memory of {whose} its name back");
        if let Some((why, remedy)) = self.hindrance() {
            let remedy = format!("{remedy}, and it is tried again");
            return Err(Problem::new(Exit::InUse, what, why, remedy));
        }
        let Some((path, file)) = self.held() else { return Ok(()) };
        if !matches!(self.leads(), Some(Leads::Nowhere)) {
            return Ok(());
        }
        let made = Region::put_back(&self.medium, file).map_err(|error| {
            let remedy = format!("{THEN}: make room there, and it is tried again");
            Problem::new(Exit::InUse, &*what, format!("{}: {error}", path.display()), remedy)
        })?;
        tracing::warn!("{what}: the name {} was gone, and nothing is lost", path.display());
        self.file = Some(made);
        Ok(())
    }

    fn leave(&mut self) -> Outcome<()> {
        let whose = self.whose.clone();
        // Whoever serves it still goes on with it.
        let is_served = self.file.as_ref().is_some_and(is_locked);
        if is_served || !self.was_served || matches!(self.leads(), Some(Leads::Here) | None) {
            return Ok(());
        }
        self.put_back(&whose).or_else(|problem| self.leave_aside(&problem.why))
    }

    /// What cannot have its own name gets one beside it.
    fn leave_aside(&mut self, why: &str) -> Outcome<()> {
        let Some((path, file)) = self.held() else { return Ok(()) };
        // A name that nobody can have made before, where others may make some.
        let mut number = [0; 8];
        RealEntropy.fill(&mut number);
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!("{ASIDE}{}", u64::from_le_bytes(number)));
        let aside = PathBuf::from(aside);
        let what = format!("leaving the memory of {} under its name", self.whose);
        let (path, there) = (path.display().to_string(), aside.display().to_string());
        let put = Region::put_back(&self.medium.at(aside), file);
        Err(match put {
            Ok(_) => {
                let put = put_under_its_name(&path, &there);
                let remedy = format!("it is whole at {there}, and not served before this: {put}");
                Problem::new(Exit::Failed, what, why, remedy)
            }
            Err(error) => {
                let remedy = "what was in memory alone is gone with this keeper";
                Problem::new(Exit::Failed, what, format!("{why}; {there}: {error}"), remedy)
            }
        })
    }

    fn is_misplaced(&self) -> bool {
        self.was_served && !matches!(self.leads(), Some(Leads::Here) | None)
    }

    fn held(&self) -> Option<(&Path, &File)> {
        self.medium.path().zip(self.file.as_ref())
    }

    fn leads(&self) -> Option<Leads> {
        let (path, file) = self.held()?;
        Some(match self.open() {
            Ok(found) if is_same(&found, file) => Leads::Here,
            Ok(_) => Leads::Elsewhere,
            Err(error) if error.kind() == ErrorKind::NotFound => Leads::Nowhere,
            Err(error) => match metadata(path).map(|it| (it.dev(), it.ino())) {
                Ok(there) if place(file) == Some(there) => Leads::Barred(error),
                _ => Leads::Elsewhere,
            },
        })
    }
}

/// How a file that is refused becomes one that nobody else decides about.
fn unbarred(path: &Path) -> String {
    let way = || "let nobody else change what is on the way to it".to_owned();
    let Ok(found) = symlink_metadata(path) else { return way() };
    if !found.is_file() {
        return format!("move {} away, which is no file", path.display());
    }
    let causes = [
        (found.nlink() > 1, "take its other names away"),
        (!private::is_trusted(found.uid()), "give it the keeper's user as owner (`chown`)"),
        (found.mode() & 0o022 != 0, "let nobody else write it (`chmod go-w`)"),
    ];
    let mends: Vec<&str> = causes.iter().filter(|(is_one, _)| *is_one).map(|it| it.1).collect();
    if mends.is_empty() { way() } else { mends.join(", and ") }
}

/// What to do about memory that was left beside its name.
pub(crate) fn put_under_its_name(path: impl Display, left: impl Display) -> String {
    format!("move what is at {path} away, if anything is, and {left} there")
}

/// Where a keeper that ended has left the memory that has this name.
pub(crate) fn left_aside(medium: &Medium) -> Option<PathBuf> {
    let path = medium.path()?;
    let begin = [path.file_name()?.as_encoded_bytes(), ASIDE.as_bytes()].concat();
    let entries = std::fs::read_dir(path.parent()?).ok()?.flatten();
    let names = entries.filter(|it| it.file_name().as_encoded_bytes().starts_with(&begin));
    // Others may make names there, too.
    names.map(|it| it.path()).find(|it| private::open(it, false).is_ok())
}

fn place(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().map(|it| (it.dev(), it.ino()))
}

fn is_same(one: &File, other: &File) -> bool {
    place(one).is_some_and(|it| place(other) == Some(it))
}

/// Refuses to end a process whose successor would not find the memory.
pub(crate) fn refuse_upgrade(whose: &str, (why, remedy): &Holder) -> Problem {
    Problem::new(Exit::Failed, format!("upgrading {whose}"), why, format!("it goes on; {remedy}"))
}
