//! Whose turn it is to serve what several hosts could.
//!
//! Promise: a term has one owner, whoever begins it at the same moment; an owner learns that a
//! newer term has begun no later than at its next beat.
//! Never: decides when an owner is dead, or keeps it from writing: a fence does.
//!
//! A term is a file in a folder that all hosts have, made by linking, which succeeds once. Its
//! owner says that it lives by changing the file beside it. Clocks of different hosts are not
//! compared: who waits looks at its own, and at whether the file has changed.

use holdfast_io::private;
use holdfast_machine::probe::run_text;
use holdfast_memory::boot_id;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const TERM_PREFIX: &str = "term-";
const BEAT_PREFIX: &str = "beat-";

/// A term, as it was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Term {
    /// Which it is; the first is 1.
    pub number: u64,
    /// The name of the host that owns it.
    pub host: String,
    /// Which machine that is; nothing in a term of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// A machine, whatever it is called, in one run of its system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Machine {
    /// What its system and its firmware number it by; empty if neither does.
    pub id: String,
    /// The run of the system, which no other machine has.
    pub boot: String,
}

/// Who owned a term, seen from a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// This very machine: its kernel's locks keep an owner that still runs from writing.
    This,
    /// Another host, by its name.
    Other,
    /// A host of this name that is another machine: a fence by name could hit either.
    Namesake,
    /// A host of this name, in a term of an earlier version, which does not say which machine.
    Unknown,
}

impl Machine {
    /// This one.
    pub(crate) fn this() -> io::Result<Machine> {
        let number = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let numbers = ["/etc/machine-id", "/sys/class/dmi/id/product_uuid"].map(number);
        let id = numbers.map(|number| number.trim().to_owned()).join("/");
        let id = if id == "/" { String::new() } else { id };
        Ok(Machine { id, boot: run_text(boot_id()?) })
    }
}

impl Term {
    /// Who owned it, seen from the host of this name on this machine.
    pub(crate) fn owner(&self, host: &str, machine: &Machine) -> Owner {
        match &self.machine {
            _ if self.host != host => Owner::Other,
            None => Owner::Unknown,
            // Two that run at the same time share no run of a system, even if one is the other's
            // copy, with all numbers that are on a disk.
            Some(owner) if owner.boot == machine.boot => Owner::This,
            Some(owner) if owner.id == machine.id && !machine.id.is_empty() => Owner::This,
            Some(_) => Owner::Namesake,
        }
    }
}

/// What its owner said last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Beat {
    /// It lives, and has said so this often.
    Lives(u64),
    /// It has given back what it served.
    Ended,
}

/// How an attempt to begin a term ended.
#[derive(Debug)]
pub(crate) enum Begun {
    /// The caller owns it.
    Won(Owned),
    /// Somebody else does.
    Lost(Term),
}

/// The folder of terms.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    folder: PathBuf,
}

/// A term of this process.
#[derive(Debug)]
pub(crate) struct Owned {
    terms: Terms,
    term: Term,
    beats: u64,
}

impl Terms {
    /// The terms in a folder that is there.
    pub(crate) fn at(folder: &Path) -> Terms {
        Terms { folder: folder.to_owned() }
    }

    /// The newest term, and what its owner said last; `None` before the first.
    pub(crate) fn newest(&self) -> io::Result<Option<(Term, Option<Beat>)>> {
        let mut newest = 0;
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(TERM_PREFIX));
            newest = newest.max(number.and_then(|number| number.parse().ok()).unwrap_or(0));
        }
        match newest {
            0 => Ok(None),
            number => Ok(Some((self.term(number)?, self.beat_of(number)?))),
        }
    }

    /// Begins the term after `last`, for this host, unless somebody has.
    pub(crate) fn begin(&self, last: u64, host: &str, machine: &Machine) -> io::Result<Begun> {
        let machine = Some(machine.clone());
        let term = Term { number: last + 1, host: host.to_owned(), machine };
        let (path, draft) = (self.term_path(term.number), self.draft(host));
        self.write(&draft, &term)?;
        let linked = fs::hard_link(&draft, &path);
        private::remove(&draft)?;
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(Begun::Lost(self.term(term.number)?))
            }
            linked => {
                linked?;
                self.sync()?;
                Ok(Begun::Won(Owned { terms: self.clone(), term, beats: 0 }))
            }
        }
    }

    fn term(&self, number: u64) -> io::Result<Term> {
        Ok(serde_json::from_slice(&fs::read(self.term_path(number))?)?)
    }

    /// None between the beginning of a term and its first beat.
    fn beat_of(&self, number: u64) -> io::Result<Option<Beat>> {
        match fs::read(self.beat_path(number)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            bytes => Ok(Some(serde_json::from_slice(&bytes?)?)),
        }
    }

    fn term_path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{TERM_PREFIX}{number}"))
    }

    fn beat_path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{BEAT_PREFIX}{number}"))
    }

    /// A file of this process alone: several on one host may begin a term at once.
    fn draft(&self, host: &str) -> PathBuf {
        self.folder.join(format!("draft-{host}-{}", std::process::id()))
    }

    fn write(&self, path: &Path, value: &impl Serialize) -> io::Result<()> {
        let mut file = private::create_anew(path)?;
        file.write_all(&serde_json::to_vec(value)?)?;
        file.sync_all()
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }
}

impl Owned {
    /// The term.
    pub(crate) fn term(&self) -> &Term {
        &self.term
    }

    /// Says that the owner lives. The outer error: that could not be said. The inner one: the newer
    /// term that has begun, so that nothing may be acknowledged any more.
    pub(crate) fn beat(&mut self) -> io::Result<Result<(), Term>> {
        self.beats += 1;
        self.say(Beat::Lives(self.beats))?;
        match self.terms.term(self.term.number + 1) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Ok(())),
            newer => Ok(Err(newer?)),
        }
    }

    /// Says that everything was given back: the next term may begin at once.
    pub(crate) fn end(self) -> io::Result<()> {
        self.say(Beat::Ended)
    }

    fn say(&self, beat: Beat) -> io::Result<()> {
        let draft = self.terms.draft(&self.term.host);
        self.terms.write(&draft, &beat)?;
        fs::rename(draft, self.terms.beat_path(self.term.number))?;
        self.terms.sync()
    }
}

#[cfg(test)]
mod tests;
