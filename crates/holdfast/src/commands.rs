//! The subcommands, one file each.
//!
//! Promise: each turns its arguments into one call of what does the work and prints the outcome.
//! Never: holds logic that another part needs.

mod accept;
mod advise;
mod apart;
pub(crate) mod aside;
mod check;
mod disk;
mod folder;
mod log;
mod making;
mod manual;
mod mending;
mod mount;
mod plan;
mod region;
mod run;
mod shutdown;
mod snapshot;
mod status;
mod store;
mod systemd;
mod table;
mod umount;
mod vm;
pub(crate) mod volume;
mod wait;

use crate::cli::{Cli, Command};
use crate::output::{Output, untold};
use holdfast_config::exit::Exit;
use holdfast_config::problem::Outcome;
use holdfast_machine::holders::{COMMAND_NAME, be_called};
use holdfast_process::{front, serve, server, standby};
use std::process::ExitCode;

/// Runs what the command line asks for; says why if it fails.
pub(crate) fn run(cli: Cli) -> ExitCode {
    be_called(COMMAND_NAME);
    let output = Output::of_this_process(cli.json);
    match dispatch(cli, output) {
        Ok(code) => untold().map_or(code, ExitCode::from),
        Err(problem) => {
            output.problem(&problem);
            problem.exit.into()
        }
    }
}

fn dispatch(cli: Cli, output: Output) -> Outcome<ExitCode> {
    let config = cli.config;
    let done = match cli.command {
        Command::Run(args) => return run::run(args),
        Command::Front(args) => return Ok(front::front(&args).into()),
        Command::Server(args) => return Ok(server::server(&args).into()),
        Command::Log { command } => log::log(&config, command, output),
        Command::Disk { command } => disk::disk(&config, command, output),
        Command::Table { command } => table::table(&config, command, output),
        Command::Snapshot { command } => snapshot::snapshot(&config, command, output),
        Command::Advise { directories } => advise::advise(&directories, output),
        Command::Region { command } => return region::region(command, output),
        Command::Vm { command } => return vm::vm(&config, command, output),
        Command::Store { command } => store::store(&config, command, output),
        Command::Plan { command } => plan::plan(command, output),
        Command::Upgrade { command } => mount::upgrade(&config, command, output),
        Command::Serve => serve::serve(config),
        Command::Standby => standby::standby(config),
        Command::Mount { name } => mount::mount(&config, name, output),
        Command::Umount { name, force } => umount::umount(&config, &name, force, output),
        Command::Wait { name } => wait::wait(&config, &name, output),
        Command::Systemd { command } => systemd::systemd(&config, &command, output),
        Command::Drill => mount::drill(&config, output),
        Command::Shutdown => shutdown::shutdown(&config, output),
        Command::Status => return status::status(&config, output).map(ExitCode::from),
        Command::Volume { command } => volume::volume(&config, command, output),
        Command::Manual { folder } => manual::manual(&folder, output),
        Command::Matrix => {
            let matrix = holdfast_config::claims::matrix();
            output.result(&matrix, &matrix);
            Ok(())
        }
    };
    done.map(|()| Exit::Ok.into())
}
