//! The door through which `holdfast store` comes to a store.
//!
//! Promise: a store is opened here as nobody else has it, and without the memory of whoever had it
//! last only where nothing can be missing then.
//! Never: changes a store whose log has its newest records in memory that somebody else has.

use super::opened::{Opened, open_problem, what};
use crate::cli::store::StoreArgs;
use crate::commands::making::aloud;
use crate::output::Progress;
use holdfast_attach::bond::RegionNote;
use holdfast_attach::remedy::accept_memory_lost;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::Files;
use holdfast_io::real::RealFiles;
use holdfast_machine::configuration;
use holdfast_store::{Config, OpenError, Store, log_of};
use std::fs::canonicalize;
use std::path::Path;

/// How a command comes to stores.
#[derive(Clone, Copy)]
pub(super) struct Door<'a> {
    /// The configuration file, which may name whose a store is.
    pub(super) config: &'a Path,
}

impl Door<'_> {
    /// Opens the store in a directory, aloud if it takes long.
    pub(super) fn open<'s>(self, doing: &'s str, store: &'s StoreArgs) -> Outcome<Opened<'s>> {
        self.check_is_there(doing, &store.directory)?;
        self.open_or_make(doing, store, &store.config())
    }

    /// Refuses a directory where there is no store.
    pub(super) fn check_is_there(self, doing: &str, directory: &Path) -> Outcome<()> {
        let is_there = Store::is_at(directory).map_err(OpenError::Io);
        if !is_there.map_err(|error| open_problem(doing, directory, &error))? {
            let remedy = format!(
                "name a store's directory, or make it: holdfast store open {}",
                directory.display()
            );
            let why = "there is no store here";
            return Err(Problem::new(Exit::Usage, what(doing, directory), why, remedy));
        }
        Ok(())
    }

    /// [`Door::open`], but makes a store where there is none.
    pub(super) fn open_or_make<'s>(
        self,
        doing: &'s str,
        store: &'s StoreArgs,
        config: &Config,
    ) -> Outcome<Opened<'s>> {
        let directory = &store.directory;
        let problem = |error: &OpenError| open_problem(doing, directory, error);
        // Nobody can begin to serve it behind what is seen here.
        let place = Store::place(directory).map_err(|error| problem(&error))?;
        self.refuse_without_memory(what(doing, directory), directory, place.log())?;
        let mut progress = Progress::new();
        let say = || progress.say(&format!("opening the store in {}", directory.display()));
        let opened = aloud(say, || Store::open_at(place, config));
        let (store, recovery) = opened.map_err(|error| problem(&error))?;
        Ok(Opened { store, recovery, doing, directory })
    }

    /// Refuses a store that another one is to be made of, and that lacks what memory has.
    pub(super) fn check_source(self, doing: &str, directory: &Path) -> Outcome<()> {
        let what = what(doing, directory);
        match RealFiles::open(&log_of(directory)) {
            Ok(log) => self.refuse_without_memory(what, directory, &log),
            // A backup has none; who opens a store says why else it cannot be had.
            Err(_) => Ok(()),
        }
    }

    fn refuse_without_memory(self, what: String, directory: &Path, log: &dyn Files) -> Outcome<()> {
        let missed = RegionNote::missed(log).map_err(|error| {
            Problem::new(Exit::Failed, &*what, error, "nothing was changed; mend its disk")
        })?;
        let Some(memory) = missed else { return Ok(()) };
        let (whose, name) = match self.table_in(directory) {
            Some(name) => (format!("[table.{name}] of {}", self.config.display()), name),
            None => ("tables that a server serves".to_owned(), "NAME".to_owned()),
        };
        let why = format!("it is the store of {whose}, and {memory} may have what it lacks");
        let ask = format!("`holdfast table list {name}` and the like");
        let accept = accept_memory_lost("table", &name);
        let remedy = format!(
            "nothing was changed; ask it with {ask}, or start `holdfast serve`; if that memory is \
             gone for good: {accept}"
        );
        Err(Problem::new(Exit::Usage, what, why, remedy))
    }

    /// The tables whose store this is, if the configuration can be read and has them.
    fn table_in(self, directory: &Path) -> Option<String> {
        let config = configuration::load(self.config).ok()?;
        let here = canonicalize(directory).ok()?;
        let is_here = |store: &Path| canonicalize(store).is_ok_and(|it| it == here);
        let mut tables = config.tables.into_iter();
        tables.find(|(_, table)| is_here(&table.store)).map(|(name, _)| name)
    }
}
