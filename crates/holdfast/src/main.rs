//! `holdfast`: the command.
//!
//! Promise: results on standard output, everything else on standard error, an exit code that says
//! what kind of end it was ([`holdfast_config::exit::Exit`]). `HOLDFAST_LOG` sets what is logged,
//! as in `HOLDFAST_LOG=debug`.
//! Never: does anything itself; `commands` does.
//!
//! Where to look: `cli` declares, `misread` tells what it cannot read, `commands` acts, one file a
//! subcommand, and `output` prints. `vm` knows QEMU. What runs for long is in `holdfast_process`
//! and `holdfast_keeper`.

mod cli;
mod commands;
mod misread;
mod moment;
mod output;
mod spelling;
#[cfg(test)]
mod tests;
mod vm;

use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    holdfast_machine::signals::hear_all();
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
