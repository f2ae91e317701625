//! `holdfast log mend` and `holdfast table mend`.
//!
//! Promise: a log whose files are gone for good is made again from its memory, which has all that
//! its readers lack.
//! Never: touches a log of which files are there, or one that a keeper may serve.

use super::making::refuse_kept;
use crate::output::Output;
use holdfast_attach::made::is_made;
use holdfast_attach::whereabouts::Lost;
use holdfast_client::protocol::{LOG_PREFIX, TABLE_PREFIX};
use holdfast_config::Config;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::configuration;
use std::path::Path;

/// Makes a served log again from its memory.
pub(super) fn log(config: &Path, name: &str, output: Output) -> Outcome<()> {
    let config = configuration::load(config)?;
    let log = config.log(name)?;
    let (medium, sizes) = (log.memory.medium(), log.log_config());
    let service = format!("{LOG_PREFIX}{name}");
    let lost = Lost {
        service: &service,
        log: &log.log,
        medium,
        config: sizes,
        home: None,
        is_of_store: false,
    };
    mend(&config, name, &lost, output)
}

/// Makes the log of the store of tables again from its memory.
pub(super) fn table(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let table = config.table(name)?;
    holdfast_process::tables::is_made(name, table)?;
    let (log, service) = (table.log(), format!("{TABLE_PREFIX}{name}"));
    let medium = table.memory.medium();
    let lost = Lost {
        service: &service,
        log: &log,
        medium,
        config: table.log_config(),
        home: None,
        is_of_store: true,
    };
    mend(config, name, &lost, output)
}

fn mend(config: &Config, name: &str, lost: &Lost<'_>, output: Output) -> Outcome<()> {
    let (what, place) = (format!("mending {}", lost.whose()), lost.log.display());
    refuse_kept(config, what.clone())?;
    if is_made(lost.log) {
        let why = format!("its files are there, in {place}");
        let remedy =
            "nothing was changed; serve it: `holdfast serve` says if anything is in the way";
        return Err(Problem::new(Exit::Usage, what, why, remedy));
    }
    lost.make_again_unserved()?;
    output.done(&format!("{name} is made again from its memory, in {place}: `holdfast serve`"));
    Ok(())
}
