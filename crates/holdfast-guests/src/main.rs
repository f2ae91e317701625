//! QEMU guests with databases, or with memory or block devices of their own, ended under load again
//! and again.
//!
//! Promise: after each end the guest boots anew and every row whose commit had returned before is
//! there, or the program says which database, which end and which seed, and fails. Before that it
//! shows that it would see a loss: on a disk that forgets.
//! Never: judges speed; the guests' processors are emulated.

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
use error::GuestError;
use options::{Options, Part};
use reserved::Reserved;
use series::Series;
use standby::Standby;
use std::io::{self, Write};
use std::process::ExitCode;
use ublk::Ublk;

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _unwritable = writeln!(io::stderr(), "guests: {error}\n{}", options.again());
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), GuestError> {
    let images = images::Images::find(&options.images)?;
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

fn databases(options: &Options, images: &images::Images) -> Result<(), GuestError> {
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
