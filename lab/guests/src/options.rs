//! The command line.
//!
//! Promise: the same options and the same seed end guests at the same moments after the same
//! acknowledgements.
//! Never: looks at the machine.

use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// Boots databases in QEMU guests, ends them under load, and checks that nothing acknowledged is
/// lost.
///
/// `boot/setup` makes what the guests boot from. Needs root.
#[derive(Debug, Parser)]
#[command(name = "holdfast-guests")]
pub(crate) struct Options {
    /// What is shown.
    #[arg(long, value_delimiter = ',', default_value = "databases,reserved-memory,standby")]
    pub(crate) parts: Vec<Part>,
    /// Which databases.
    #[arg(long, value_delimiter = ',', default_value = "postgres,mariadb")]
    pub(crate) databases: Vec<Database>,
    /// How QEMU reaches the volume that is the data disk.
    #[arg(long, value_delimiter = ',', default_value = "file,nbd,vhost-user")]
    pub(crate) ways: Vec<Way>,
    /// How a guest ends.
    #[arg(long, value_delimiter = ',', default_value = "panic,qemu-killed,front-end-killed")]
    pub(crate) ends: Vec<End>,
    /// How often, for each database and way.
    #[arg(long, default_value_t = 3)]
    pub(crate) kills: u32,
    /// What the moments of the ends are drawn from.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The folder that lab/guests/boot/setup fills.
    #[arg(long, default_value = "target/guests")]
    pub(crate) images: PathBuf,
    /// The command that serves the volumes.
    #[arg(long, default_value = "target/release/holdfast")]
    pub(crate) holdfast: PathBuf,
}

/// What guests show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Databases on block volumes of the host's lose nothing.
    Databases,
    /// A volume in the guest, with its region in reserved memory, outlives the guest's kernel.
    ReservedMemory,
    /// Two guests on shared memory and one disk take over from each other.
    Standby,
    /// Volumes and disks that are block devices of the guest outlive whoever serves them. It needs
    /// what `boot/setup ublk` makes, and a command with the feature `ublk`.
    Ublk,
}

/// What runs in a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Database {
    /// PostgreSQL.
    Postgres,
    /// MariaDB with InnoDB.
    Mariadb,
}

/// From QEMU to the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// The file in the volume's mount.
    File,
    /// As a network block device; QEMU connects again.
    Nbd,
    /// By the guest's own queues; QEMU connects again.
    VhostUser,
}

/// How a guest under load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum End {
    /// Its kernel panics.
    Panic,
    /// QEMU is killed.
    QemuKilled,
    /// What serves its data disk is killed and replaced; the guest goes on, and panics later.
    FrontEndKilled,
}

impl Database {
    /// All of them.
    pub(crate) const ALL: [Database; 2] = [Database::Postgres, Database::Mariadb];

    /// As the guest knows it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Database::Postgres => "postgres",
            Database::Mariadb => "mariadb",
        }
    }
}

impl Way {
    /// In words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::File => "file",
            Way::Nbd => "NBD",
            Way::VhostUser => "vhost-user",
        }
    }
}

impl End {
    /// In words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            End::Panic => "panic",
            End::QemuKilled => "kill of QEMU",
            End::FrontEndKilled => "kill of the front end",
        }
    }
}

impl Options {
    /// How to have the same again.
    pub(crate) fn again(&self) -> String {
        format!("again: make test-guests KILLS={} SEED={}", self.kills, self.seed)
    }
}
