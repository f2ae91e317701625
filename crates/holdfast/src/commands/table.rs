//! `holdfast table make | mend | accept | check | list | get | scan`.
//!
//! Promise: an answer is as safe as the claims say.
//! Never: makes a store where one was expected: an empty one is no answer to who asks for his rows.

mod asked;
mod read;
mod values;

use crate::cli::table::TableCommand;
use crate::commands::{accept, mending};
use crate::output::Output;
use holdfast_config::Config;
use holdfast_config::claims::PowerSource;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::verdict_text;
use holdfast_io::private;
use holdfast_machine::configuration;
use holdfast_machine::found::verdict_of_table;
use holdfast_process::link;
use holdfast_process::tables::{close, failed, is_made, open};
use serde_json::json;
use std::path::Path;

/// Does what is asked of tables.
pub(crate) fn table(config: &Path, command: TableCommand, output: Output) -> Outcome<()> {
    let config = configuration::load(config)?;
    match command {
        TableCommand::Make { name } => make(&config, &name, output),
        TableCommand::Mend { name } => mending::table(&config, &name, output),
        TableCommand::Accept { name, .. } => accept::memory_of_table(&config, &name, output),
        TableCommand::Check { name } => check(&config, &name, output),
        TableCommand::List { name } => read::list(&config, &name, output),
        TableCommand::Get { table, key } => read::get(&config, &table, &key, output),
        TableCommand::Scan { table, part } => read::scan(&config, &table, &part, output),
    }
}

fn make(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let table = config.table(name)?;
    let verdict = verdict_of_table(name, table, PowerSource::None)?;
    private::directory(&table.store).map_err(|error| {
        let what = format!("making table {name} in {}", table.store.display());
        link::problem(&what, &table.store, &error).unwrap_or_else(|| {
            Problem::new(Exit::Failed, what, error, "make the directory, or correct store")
        })
    })?;
    close(name, table, open(name, table, PowerSource::None)?)?;
    output.done(&format!("{name} is made, without tables\n{}", verdict_text(&verdict)));
    Ok(())
}

fn check(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let table = config.table(name)?;
    is_made(name, table)?;
    let tables = open(name, table, PowerSource::None)?;
    let checked = tables.check().map_err(|error| failed(name, error))?;
    close(name, table, tables)?;
    if let Some(first) = checked.disagreements.first() {
        let (count, remedy) = (checked.disagreements.len(), "restore the store as it was");
        let why = format!("{count} disagreements, the first of which is {first:?}");
        return Err(Problem::new(Exit::Damaged, format!("checking table {name}"), why, remedy));
    }
    let (tables, rows, entries) = (checked.tables, checked.rows, checked.entries);
    let text = format!("{tables} tables, {rows} rows, {entries} entries of indexes: all agree");
    output.result(&json!({ "tables": tables, "rows": rows, "entries": entries }), &text);
    Ok(())
}
