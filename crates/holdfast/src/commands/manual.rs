//! `holdfast manual`.
//!
//! Promise: a page for each command, and what shells complete, as the command line has them.
//! Never: writes anywhere but into the folder that was named.

use crate::cli::Cli;
use crate::output::Output;
use clap::CommandFactory;
use clap_complete::Shell;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::private;
use std::io;
use std::path::{Path, PathBuf};

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes manual pages and completions.
pub(crate) fn manual(folder: &Path, output: Output) -> Outcome<()> {
    write(folder).map_err(|error| {
        let what = format!("writing the manual into {}", folder.display());
        Problem::new(Exit::Failed, what, error, "name another folder, or make room")
    })?;
    output.done(&format!("{}: man1 and completions", folder.display()));
    Ok(())
}

fn write(folder: &Path) -> io::Result<()> {
    clap_mangen::generate_to(Cli::command(), made(folder.join("man1"))?)?;
    let completions = made(folder.join("completions"))?;
    SHELLS.into_iter().try_for_each(|shell| {
        clap_complete::generate_to(shell, &mut Cli::command(), "holdfast", &completions).map(drop)
    })
}

fn made(folder: PathBuf) -> io::Result<PathBuf> {
    private::public_directory(&folder).map(|_there| folder)
}
