//! `holdfast`: the command.
//!
//! Promise: results on standard output, everything else on standard error, an exit code that says
//! what kind of end it was ([`holdfast_config::exit::Exit`]). `HOLDFAST_LOG` sets what is logged,
//! as in `HOLDFAST_LOG=debug`.
//! Never: does anything itself; `commands` does.
//!
//! Where to look: `cli` declares, `misread` tells what it cannot read, `commands` acts, one
//! file a subcommand. The configuration is read at the door (`configuration`). The `keeper` starts
//! front ends (`commands::front`, by `orders`) and is reached through `control`; `bond` ties a
//! log to its home and memory; `observe` looks into a region from outside for `report`. `pulse`
//! and `standstill` tell what lives and moves. `found` tells what the memory is, `probe`
//! whether a restart spares it; `bounded` asks what may not answer. `terms` has whose turn it
//! is to serve. `vm` knows QEMU.

mod advice;
mod bond;
mod bounded;
mod cli;
mod commands;
mod configuration;
mod confinement;
mod control;
mod found;
mod keeper;
mod misread;
mod moment;
mod observe;
mod orders;
mod output;
mod places;
mod probe;
mod processes;
mod pulse;
#[allow(unsafe_code)]
mod raw;
mod report;
mod service_manager;
mod signals;
mod spelling;
mod standstill;
mod terms;
#[cfg(test)]
mod tests;
mod threads;
mod vm;

use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = match misread::read() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let filter = EnvFilter::try_from_env("HOLDFAST_LOG").unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| output::LogLines)
        .with_ansi(std::io::stderr().is_terminal() && !cli.json)
        .init();
    commands::run(cli)
}
