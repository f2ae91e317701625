//! QEMU guests with databases, or with memory or block devices of their own, ended under load again
//! and again.
//!
//! Promise: after each end the guest boots anew and every row whose commit had returned before is
//! there, or the program says which database, which end and which seed, and fails. Before that it
//! shows that it would see a loss: on a disk that forgets.
//! Never: judges speed; the guests' processors are emulated. A benchmark compares two ways to one.

mod disk;
mod error;
mod guest;
mod images;
mod ledger;
mod machine;
mod options;
mod reserved;
mod sentence;
mod series;
mod shared;
mod stage;
mod standby;
mod ublk;
mod volume;

use clap::Parser;
use disk::Disk;
use images::Images;
use machine::Machine;
use options::{Options, Part};
use reserved::Reserved;
use series::Series;
use stage::Stage;
use standby::Standby;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use ublk::Ublk;

pub use error::GuestError;
pub use options::Database;
pub use stage::TakenUp;

/// What the command does, with its arguments.
pub fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _unwritable = writeln!(io::stderr(), "guests: {error}\n{}", options.again());
            ExitCode::FAILURE
        }
    }
}

/// Boots a guest with a database, stops it `load` after its first commits, and takes it up.
///
/// `program` is the command, `images` what `boot/setup` fills, and the guest's data disk is an
/// image in `folder` meanwhile. Needs root.
///
/// # Errors
/// If something is missing, or the guest does not say what one that is well would.
pub fn stop_and_take_up(
    program: &Path,
    images: &Path,
    database: Database,
    folder: &Path,
    load: Duration,
) -> Result<TakenUp, GuestError> {
    let images = Images::find(images)?;
    let mut stage = Stage::new_in(folder, &images, database, |image, _| Ok(Disk::Image(image)))?;
    stage.stop_and_take_up(&Machine::new(program)?, load)
}

fn run(options: &Options) -> Result<(), GuestError> {
    let images = Images::find(&options.images)?;
    for part in &options.parts {
        match part {
            Part::Databases => databases(options, &images)?,
            Part::ReservedMemory => Reserved::new(options, &images).run()?,
            Part::Standby => Standby::new(options, &images).run()?,
            Part::Ublk => Ublk::new(options, &images).run()?,
        }
    }
    Ok(())
}

fn databases(options: &Options, images: &Images) -> Result<(), GuestError> {
    for &database in &options.databases {
        let series = Series::new(options, images, &options.holdfast, database);
        series.canary()?;
        for &way in &options.ways {
            series.count_flushes(way)?;
            // QEMU cannot save what it does not serve itself.
            if way != options::Way::VhostUser {
                series.stop_and_take_up(way)?;
            }
            options.ends.iter().try_for_each(|&end| series.run(way, end))?;
        }
    }
    Ok(())
}
