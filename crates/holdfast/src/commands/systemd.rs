//! `holdfast systemd`.
//!
//! Promise: what is printed binds a unit to its volume: never started before it is served, ended
//! before it is given back.
//! Never: writes into the manager's directories.

use crate::cli::SystemdCommand;
use crate::output::Output;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::configuration;
use std::path::Path;

/// Prints what is asked for.
pub(crate) fn systemd(config: &Path, command: &SystemdCommand, output: Output) -> Outcome<()> {
    let SystemdCommand::Dropin { name, unit } = command;
    let config = configuration::load(config)?;
    let volume = config.volume(name)?;
    check_unit(unit)?;
    let text = dropin(name, unit, volume.mount.as_deref());
    output.result(&serde_json::json!({ "unit": unit, "dropin": text }), &text);
    Ok(())
}

/// A unit that the manager knows by this name, and nothing that would end a line.
fn check_unit(unit: &str) -> Outcome<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    match unit.ends_with(".service") && unit.chars().all(plain) {
        true => Ok(()),
        false => {
            let why = "it is no name of a service, which ends with .service";
            let remedy = "see `systemctl list-units --type=service`";
            Err(Problem::new(Exit::Usage, format!("binding the unit {unit:?}"), why, remedy))
        }
    }
}

/// A path as units have it, where a percent sign begins something else.
fn in_unit(path: &Path) -> String {
    path.display().to_string().replace('%', "%%")
}

/// Names of volumes need no escape in names of units.
fn dropin(name: &str, unit: &str, mount: Option<&Path>) -> String {
    let volume = format!("holdfast-volume@{name}.service");
    let condition = mount.map_or(String::new(), |mount| {
        format!(
            "# Whatever else starts it: not on the bare directory.\n\
                 ConditionPathIsMountPoint={}\n",
            in_unit(mount)
        )
    });
    format!(
        "# /etc/systemd/system/{unit}.d/holdfast.conf, then `systemctl daemon-reload`\n\
         [Unit]\nBindsTo={volume}\nAfter={volume}\n{condition}"
    )
}
