//! What status prints of the tables that the server serves.
//!
//! Promise: as for volumes: the same facts as text and as JSON, which only gains fields.
//! Never: opens their store.

use super::section::{Shown, shown};
use super::words::{UPGRADE, astray_text, is_given_up, of, verdict_with};
use crate::supervisor::server::known::KnownServer;
use holdfast_config::claims::{PowerSource, Verdict};
use holdfast_config::verdict_lines;
use holdfast_config::{Config, TableConfig};
use holdfast_machine::found::verdict_of_table;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::PathBuf;

/// Served tables.
#[derive(Debug, Serialize, Deserialize)]
pub struct TableStatus {
    /// Their name.
    pub name: String,
    /// `served`, `not served`.
    pub state: String,
    /// How the configuration differs from what the keeper has, and what to do.
    #[serde(default)]
    pub problem: Option<String>,
    /// The directory of their store.
    pub store: PathBuf,
    /// What acknowledgements mean; missing when the claims refuse the configuration.
    pub verdict: Option<Verdict>,
    /// Why they are not served.
    pub last_error: Option<String>,
}

impl TableStatus {
    /// All that are configured and all that the keeper has, with what the server said of them, if
    /// one runs.
    pub(crate) fn all(
        config: &Config,
        had: Option<&Config>,
        server: Option<&KnownServer>,
    ) -> Vec<TableStatus> {
        let ready = server.and_then(|server| server.of.ready.as_ref());
        let one = |shown: Shown<'_, TableConfig>| {
            let Shown { name, section: table, problem, .. } = shown;
            let service = format!("{}{name}", holdfast_client::protocol::TABLE_PREFIX);
            let told = ready.and_then(|ready| of(&service, &ready.verdicts)).cloned();
            let judged = || verdict_of_table(name, table, PowerSource::None).ok();
            let unserved = ready.and_then(|ready| of(&service, &ready.unserved));
            let astray = server.and_then(|server| server.of.astray.get(&service));
            let trouble = server.and_then(|server| {
                let of_store = server.of.store_troubles.get(&service);
                let of_store = of_store.map(|(why, remedy)| format!("{why}; {remedy}"));
                of_store.or_else(|| server.of.log_troubles.get(&service).cloned())
            });
            let is_served = told.is_some() && !is_given_up(server);
            let state = if is_served { "served" } else { "not served" };
            TableStatus {
                name: name.to_owned(),
                state: state.to_owned(),
                problem: problem.or(astray.map(|why| astray_text(why, UPGRADE))).or(trouble),
                store: table.store.clone(),
                verdict: verdict_with(astray, told.or_else(judged)),
                last_error: unserved.map(ToString::to_string),
            }
        };
        shown(had.map(|had| &had.tables), &config.tables).into_iter().map(one).collect()
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("\ntable {}: {}", self.name, self.state);
        let mut line = |key: &str, value: &str| {
            let _ = write!(text, "\n  {key:<12} {value}");
        };
        self.problem.iter().for_each(|why| line("problem", why));
        line("store", &self.store.display().to_string());
        match &self.verdict {
            Some(verdict) => verdict_lines(verdict).iter().for_each(|(k, v)| line(k, v)),
            None => line("acknowledges", "never: the claims refuse this configuration"),
        }
        line("last error", self.last_error.as_deref().unwrap_or("none"));
        text + "\n"
    }
}
