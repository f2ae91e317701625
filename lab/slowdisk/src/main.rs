//! `holdfast-slowdisk`: the modelled disk of the measurements, in the foreground.
//!
//! Promise: serves until it is unmounted or told to stop, then says what the disk did.
//! Never: is part of a volume; a benchmark puts a log on it.

use clap::Parser;
use holdfast_slowdisk::{Counts, SlowDisk, SlowDiskError, run};
use std::io::{self, Write};
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Exit code of a command line that is wrong.
const USAGE: u8 = 2;

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "holdfast-slowdisk", version)]
struct Cli {
    #[command(flatten)]
    disk: SlowDisk,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let Cli { disk, json } = Cli::parse();
    let filter = EnvFilter::try_from_env("HOLDFAST_LOG").unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
    match run(&disk) {
        Ok(counts) => match tell(counts, json) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => refuse(&disk, &error),
    }
}

/// Prints what the disk did.
fn tell(Counts { flushes, flushed_bytes }: Counts, json: bool) -> io::Result<()> {
    let value = serde_json::json!({ "flushes": flushes, "flushed_bytes": flushed_bytes });
    let text = format!("{flushes} flushes of {flushed_bytes} bytes in all");
    writeln!(io::stdout(), "{}", if json { value.to_string() } else { text })
}

/// Says why there is no disk.
fn refuse(disk: &SlowDisk, error: &SlowDiskError) -> ExitCode {
    let at = disk.mountpoint.display();
    let _unwritable = writeln!(
        io::stderr(),
        "holdfast-slowdisk: modelling a disk at {at} failed: {error}; correct the cause and start \
         it again"
    );
    let is_usage = matches!(error, SlowDiskError::Speed);
    if is_usage { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
}
