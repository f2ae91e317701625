//! Whoever has tables: the server, or this process.
//!
//! Promise: a request that reads is answered as of one moment, with nothing changed.
//! Never: opens tables that the server has.

use holdfast_client::protocol::{Status as HelloStatus, TABLE_PREFIX};
use holdfast_client::{ConnectError, ResponderClient};
use holdfast_config::Config;
use holdfast_config::claims::PowerSource;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_process::tables::{failed, is_made, open};
use holdfast_table::{Answer, Outcome as Done, Request, Schema, Tables, decode_answer};

/// The lowest name there can be.
const FIRST_NAME: &str = "\0";

/// Tables that can be asked.
pub(super) struct Asked<'a> {
    name: &'a str,
    by: By,
}

enum By {
    Server(Box<ResponderClient>),
    /// Nobody else has them.
    Opening(Box<Tables>),
}

impl<'a> Asked<'a> {
    /// The tables of this name.
    pub(super) fn find(config: &Config, name: &'a str) -> Outcome<Asked<'a>> {
        let table = config.table(name)?;
        let service = format!("{TABLE_PREFIX}{name}");
        let by = match ResponderClient::connect(&config.server.socket, &service) {
            Ok(client) => By::Server(Box::new(client)),
            Err(ConnectError::Unreachable(_) | ConnectError::Refused(HelloStatus::NoService)) => {
                is_made(name, table)?;
                By::Opening(Box::new(open(name, table, PowerSource::None)?))
            }
            Err(error) => {
                let remedy = "see `holdfast status`, and allow_uids and clients_max of the tables";
                return Err(Problem::new(Exit::Failed, reading(name), error, remedy));
            }
        };
        Ok(Asked { name, by })
    }

    /// What a request came to that has one operation, which reads.
    pub(super) fn ask(&self, request: &Request) -> Outcome<Done> {
        let bytes = request.encode();
        let answer = match &self.by {
            By::Server(client) => client.request(&bytes).map_err(|error| self.failed(error))?,
            By::Opening(tables) => {
                let mut answer = Vec::new();
                let responded = tables.respond(0, 1, 1, &bytes, &mut answer);
                responded.map_err(|error| self.failed(error))?;
                answer
            }
        };
        let answer: Answer = decode_answer(&answer).map_err(|error| self.failed(error))?;
        let outcomes = answer.map_err(|refusal| self.refused(refusal.status))?;
        outcomes.into_iter().next().ok_or_else(|| self.failed("an answer is empty"))
    }

    /// All tables, in the order of their names.
    pub(super) fn tables(&self) -> Outcome<Vec<(String, Schema)>> {
        let (mut all, mut from) = (Vec::new(), FIRST_NAME.to_owned());
        loop {
            let Done::Tables { tables, has_more } = self.ask(&Request::new().list(&from))? else {
                return Err(self.failed("an answer is none to what was asked"));
            };
            // The last of them begins the next part, as nothing lies between a name and itself.
            all.pop();
            all.extend(tables);
            match all.last() {
                Some((last, _)) if has_more => from.clone_from(last),
                _ => return Ok(all),
            }
        }
    }

    /// What the rows of a table are.
    pub(super) fn schema(&self, table: &str) -> Outcome<Schema> {
        let found = self.tables()?.into_iter().find(|(name, _)| name == table);
        found.map(|(_, schema)| schema).ok_or_else(|| self.refused(format!("no table is {table}")))
    }

    /// Why the tables cannot answer that.
    pub(super) fn refused(&self, why: impl std::fmt::Display) -> Problem {
        let remedy = format!("`holdfast table list {}` shows what there is", self.name);
        Problem::new(Exit::Usage, reading(self.name), why, remedy)
    }

    /// Whoever has them could not answer.
    pub(super) fn failed(&self, error: impl std::fmt::Display) -> Problem {
        failed(self.name, error)
    }

    /// Lets go of them.
    pub(super) fn close(self) -> Outcome<()> {
        match self.by {
            By::Server(_) => Ok(()),
            By::Opening(tables) => tables.close().map_err(|error| failed(self.name, error)),
        }
    }
}

fn reading(name: &str) -> String {
    format!("reading table {name}")
}
