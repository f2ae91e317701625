//! Where the store of one table is that a server has open.
//!
//! The server opens a store by its name, and has all of it open from then on.
//!
//! Promise: a directory of the store that the next server would not find is noticed at the next
//! look, and told; a log of a store whose files were removed is noticed, too.
//! Never: makes a store; ends a server.

use crate::supervisor::log_place::{LogPlace, MOVE_BACK, Step, reason};
use holdfast_attach::whereabouts::{Lost, Whereabouts, directory_whereabouts};
use holdfast_client::protocol::TABLE_PREFIX;
use holdfast_config::TableConfig;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::holders::Holder;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The store of one table, as a server found it.
pub(super) struct StorePlace {
    /// The directories that no server makes.
    directories: [(PathBuf, OwnedFd); 2],
    log: OwnedFd,
    log_place: LogPlace,
    /// What is not as it should be of the directories, and what to do.
    pub(super) trouble: Option<Holder>,
}

impl StorePlace {
    pub(super) fn of(table: &TableConfig) -> io::Result<StorePlace> {
        let named = |path: PathBuf| -> io::Result<(PathBuf, OwnedFd)> {
            let held = File::open(&path)?.into();
            Ok((path, held))
        };
        let directories = [named(table.store.clone())?, named(table.archive())?];
        let log = File::open(table.log())?.into();
        Ok(StorePlace { directories, log, log_place: LogPlace::default(), trouble: None })
    }

    /// What of the directories is not as it should be, and what to do.
    fn missing(&self, name: &str) -> Option<Holder> {
        let mut places = self.directories.iter();
        places.find_map(|(path, held)| {
            let at = path.display();
            match directory_whereabouts(held, path) {
                Whereabouts::Moved(to) => {
                    let why = format!("its directory is not at {at} any more, but at {to}");
                    Some((why, MOVE_BACK.to_owned()))
                }
                Whereabouts::Removed => Some((format!("{at} was removed"), only_in_server(name))),
                _ => None,
            }
        })
    }

    pub(super) fn look(&mut self, name: &str) {
        let trouble = self.missing(name);
        if let Some((why, remedy)) = trouble.as_ref().filter(|_| self.trouble != trouble) {
            tracing::error!("table {name}: {why}; {remedy}");
        }
        self.trouble = trouble;
    }

    /// Whether another server is to write the log's files again.
    pub(super) fn look_at_log(
        &mut self,
        (name, table): (&str, &TableConfig),
        may_end: bool,
    ) -> bool {
        let (service, log) = (service_of(name), table.log());
        let step = self.log_place.look(&lost(&service, table, &log), &self.log, may_end);
        !matches!(step, Step::GoOn)
    }

    /// What is not as it should be of the log.
    pub(super) fn trouble_of_log(&self) -> Option<&str> {
        self.log_place.trouble()
    }

    /// Before a server looks for the store, when none has it: makes its log again if nothing is
    /// left of that. A store that is elsewhere is left to the server, which says what it lacks.
    pub(super) fn restore(&mut self, name: &str, table: &TableConfig) -> Outcome<()> {
        if self.missing(name).is_some() {
            return Ok(());
        }
        let (service, log) = (service_of(name), table.log());
        // The server opens it by its name.
        self.log_place.restore(&lost(&service, table, &log), &self.log).map(drop)
    }

    /// Why a server did not come to serve, if the files of the log had been removed.
    pub(super) fn reason(&self, (name, table): (&str, &TableConfig), said: Problem) -> Problem {
        reason(&lost(&service_of(name), table, &table.log()), &self.log, said)
    }
}

/// For rows that no other server would find.
fn only_in_server(name: &str) -> String {
    format!(
        "this server alone still has the rows, as long as it runs: copy them with `holdfast table \
         list {name}` and `holdfast table scan {name} TABLE`, or bring a backup of the store back \
         after `holdfast shutdown`"
    )
}

pub(super) fn service_of(name: &str) -> String {
    format!("{TABLE_PREFIX}{name}")
}

fn lost<'a>(service: &'a str, table: &TableConfig, log: &'a Path) -> Lost<'a> {
    let medium = table.memory.medium();
    Lost { service, log, medium, config: table.log_config(), home: None, is_of_store: true }
}
