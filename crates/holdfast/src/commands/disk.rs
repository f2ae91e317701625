//! `holdfast disk make | remove`.
//!
//! Promise: a disk is made once; one that is served is not removed.
//! Never: makes a disk where one was expected: zeros are no answer to who asks for his data.

use crate::cli::disk::DiskCommand;
use crate::output::Output;
use holdfast_config::Config;
use holdfast_config::claims::PowerSource;
use holdfast_config::problem::Outcome;
use holdfast_config::sizes::rounded;
use holdfast_config::verdict_text;
use holdfast_machine::configuration;
use std::path::Path;

pub(super) use holdfast_process::disk::{Use, make_one, remove_one};
/// Does what is asked of disks.
pub(crate) fn disk(config: &Path, command: DiskCommand, output: Output) -> Outcome<()> {
    let config = configuration::load(config)?;
    match command {
        DiskCommand::Make { name } => make(&config, &name, output),
        DiskCommand::Remove { name } => remove(&config, &name, output),
    }
}

fn make(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let disk = config.disk(name)?;
    let verdict = make_one(Use::disk(name), disk, PowerSource::None)?;
    let (size, verdict) = (rounded(disk.size.0), verdict_text(&verdict));
    output.done(&format!("{name} is made: {size} of zeros\n{verdict}"));
    Ok(())
}

fn remove(config: &Config, name: &str, output: Output) -> Outcome<()> {
    remove_one(Use::disk(name), config.disk(name)?)?;
    output.done(&format!("{name} is removed, and its memory given back"));
    Ok(())
}
