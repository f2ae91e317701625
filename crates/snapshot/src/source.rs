//! A disk that a snapshot takes.
//!
//! Promise: a way to read a disk while nobody changes it.
//! Never: knows what else the disk is used for.

use holdfast_blocks::Vdisk;
use holdfast_io::Blocks;

/// A disk that can be kept as it is for a moment.
pub trait Source: Blocks {
    /// Runs `job`, which reads this disk, while every change of it waits.
    fn while_still(&self, job: &mut dyn FnMut());
}

impl Source for Vdisk {
    fn while_still(&self, job: &mut dyn FnMut()) {
        Vdisk::while_still(self, job);
    }
}
