//! Whose turn it is to serve what several hosts could.
//!
//! Promise: a term has one owner, whoever begins it at the same moment; an owner learns that a
//! newer term has begun no later than at its next beat.
//! Never: decides when an owner is dead, or keeps it from writing: a fence does.
//!
//! A term is a file in a folder that all hosts have, made by linking, which succeeds once. Its
//! owner says that it lives by changing the file beside it. Clocks of different hosts are not
//! compared: who waits looks at its own, and at whether the file has changed.

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
    /// The host that owns it.
    pub host: String,
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
    pub(crate) fn begin(&self, last: u64, host: &str) -> io::Result<Begun> {
        let term = Term { number: last + 1, host: host.to_owned() };
        let (path, draft) = (self.term_path(term.number), self.draft(host));
        self.write(&draft, &term)?;
        let linked = fs::hard_link(&draft, &path);
        fs::remove_file(&draft)?;
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
        let mut file = File::create(path)?;
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
