//! `holdfast slowdisk`: the modelled disk of the measurements, in the foreground.
//!
//! Promise: serves until it is unmounted or told to stop, then says what the disk did.
//! Never: is part of a volume; a benchmark puts a log on it.

use crate::cli::SlowDiskArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::problem::{Outcome, Problem};
use crate::slowdisk::{Counts, SlowDisk, SlowDiskError, run};

/// Serves the disk to its end.
pub(crate) fn slowdisk(args: SlowDiskArgs, output: Output) -> Outcome<()> {
    let disk = SlowDisk {
        backing: args.backing,
        mountpoint: args.mount,
        turns_per_minute: args.rpm,
        megabytes_per_s: args.mb_per_s,
        power_cut_seed: args.power_cut_seed,
    };
    let Counts { flushes, flushed_bytes } = run(&disk).map_err(|error| {
        let exit = match error {
            SlowDiskError::Mount(problem) => return problem,
            SlowDiskError::Speed => Exit::Usage,
            _ => Exit::Failed,
        };
        let what = format!("modelling a disk at {}", disk.mountpoint.display());
        Problem::new(exit, what, error, "correct the cause and start it again")
    })?;
    let value = serde_json::json!({ "flushes": flushes, "flushed_bytes": flushed_bytes });
    output.result(&value, &format!("{flushes} flushes of {flushed_bytes} bytes in all"));
    Ok(())
}
