//! What the keeper and the processes it starts tell each other.
//!
//! Promise: everything that passes between the two processes besides descriptors: orders once, at
//! the start, and reports as JSON lines until the end.
//! Never: crosses a version, but to a process that replaces another, which says so if it does not
//! understand.

use holdfast_config::claims::{PowerSource, Verdict};
use holdfast_config::problem::Problem;
use holdfast_config::{
    DiskConfig, Protocol, ServedLogConfig, SnapshotConfig, TableConfig, VolumeConfig,
};
use holdfast_front::ublk::UblkConfig;
use holdfast_memory::Medium;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a front-end process is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Attach, serve until unmounted, then detach.
    Serve,
    /// Attach, apply everything to the home, detach. Serves nobody.
    Detach,
    /// Bring everything that waits in the region to the log's device; apply nothing.
    Drain,
}

/// The orders of a front end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// The name of the volume, or of the disk.
    pub name: String,
    /// The volume, if it is one.
    pub volume: Option<VolumeConfig>,
    /// The disk in durable memory, if it is one.
    pub disk: Option<DiskConfig>,
    /// What powers the machine when the mains fail.
    pub power: PowerSource,
    /// What to do.
    pub task: Task,
    /// An earlier front end already spoke on this FUSE connection.
    pub resume: bool,
    /// Who has the disk, or the volume's log if that is not the front end itself.
    pub server: Option<Server>,
    /// The keeper's term, if other hosts stand by. One takes over once the keeper is silent, so
    /// nobody serves without it.
    pub term: Option<u64>,
    /// The next keeper has the mount, or the disk's region, served by a front end of its own, so
    /// this one ends with its keeper.
    pub ends_with_keeper: bool,
    /// Where users of the disk connect.
    pub sockets: Vec<SocketOrders>,
    /// How their connections are handed on, if there can be any.
    pub handover: Option<HandoverOrders>,
    /// The number of the inherited descriptor for signs of life.
    #[serde(default)]
    pub pulse_fd: Option<i32>,
    /// The number of the inherited descriptor of the lease, if memory may acknowledge for a while.
    #[serde(default)]
    pub lease_fd: Option<i32>,
}

impl Orders {
    /// What is served, for people.
    pub fn whose(&self) -> String {
        let kind = if self.volume.is_some() { "volume" } else { "disk" };
        format!("{kind} {}", self.name)
    }

    /// Where the memory is that it rests in.
    pub fn medium(&self) -> Medium {
        let of_disk = || self.disk.as_ref().map_or(Medium::Private, DiskConfig::medium);
        self.volume.as_ref().map_or_else(of_disk, VolumeConfig::medium)
    }

    /// The block device that it is on this machine, if it is one.
    pub fn ublk(&self) -> Option<UblkConfig> {
        let of_disk = || self.disk.as_ref().and_then(|disk| disk.device_of(&self.name));
        self.volume.as_ref().map_or_else(of_disk, |volume| volume.device_of(&self.name))
    }
}

/// A socket that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketOrders {
    /// What is spoken there.
    pub protocol: Protocol,
    /// The number of its inherited descriptor.
    pub socket_fd: i32,
}

/// Where connections are that one front end leaves to the next: numbers of inherited descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoverOrders {
    /// For those that this front end will leave.
    pub leave_fd: i32,
    /// With those that an earlier one has left.
    pub take_fd: i32,
}

/// The server as a front end finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Where it listens.
    pub socket: PathBuf,
    /// What acknowledgements mean on the memory that it has mapped.
    pub verdict: Verdict,
}

/// One line from a front end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// It attached and serves.
    Ready {
        /// A sentence about what recovery found.
        recovery: String,
        /// What acknowledgements mean, now that the memory itself was looked at.
        verdict: Verdict,
        /// What they mean while the power is to be relied on, if that makes a difference.
        #[serde(default)]
        armed: Option<Verdict>,
    },
    /// Memory has acknowledged nothing since the lease was taken back so often, and the log's
    /// device has all that it had acknowledged.
    GivenUp {
        /// How often.
        taken_back: u64,
    },
    /// It drained, and this is what became of what was in memory, for people.
    Drained(String),
    /// It cannot go on and ends.
    Failed(Problem),
}

/// The orders of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerOrders {
    /// The logs it has.
    pub logs: Vec<LogOrders>,
    /// The disks it has.
    pub disks: Vec<DiskOrders>,
    /// The tables it has, by name.
    pub tables: Vec<(String, TableConfig)>,
    /// The snapshots it has, by the name of their service.
    pub snapshots: Vec<(String, SnapshotConfig)>,
    /// Most clients at a time, over all services.
    pub clients_max: u32,
    /// What powers the machine when the mains fail.
    pub power: PowerSource,
    /// As for a front end.
    pub term: Option<u64>,
    /// As for a front end.
    #[serde(default)]
    pub pulse_fd: Option<i32>,
}

/// One log that the server is to serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogOrders {
    /// Full name of its service: `log/NAME` or `volume/NAME`.
    pub service: String,
    /// The log.
    pub log: ServedLogConfig,
    /// The number of the inherited descriptor of its directory.
    pub directory_fd: i32,
}

/// One disk that the server is to serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskOrders {
    /// Its name.
    pub name: String,
    /// The disk.
    pub disk: DiskConfig,
}

/// What a server says when it serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerReady {
    /// A sentence about what recovery found.
    pub recovery: String,
    /// What acknowledgements of each service mean.
    pub verdicts: Vec<(String, Verdict)>,
    /// The services that it cannot serve, and why. Their clients are refused.
    pub unserved: Vec<(String, Problem)>,
    /// The rights that the machine would not take from it, and why.
    pub rights_kept: Vec<String>,
}

/// One line from the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerReport {
    /// Clients are answered.
    Ready(ServerReady),
    /// It cannot go on and ends.
    Failed(Problem),
}

/// What the keeper tells the server. Descriptors are inherited; those of the logs are in the
/// orders.
#[derive(Debug, clap::Args)]
pub struct ServerArgs {
    /// Descriptor of the JSON description of the work.
    #[arg(long)]
    pub orders_fd: i32,
    /// Descriptor that progress and outcome are reported to, as JSON lines.
    #[arg(long)]
    pub report_fd: i32,
    /// Descriptor of the listening socket.
    #[arg(long)]
    pub listen_fd: i32,
}

/// What the keeper tells a front end. Descriptors are inherited; those of sockets are in the
/// orders.
#[derive(Debug, clap::Args)]
pub struct FrontArgs {
    /// The name of what is served, for people who look at the process list.
    #[arg(long)]
    pub volume: String,
    /// Descriptor of the JSON description of the work.
    #[arg(long)]
    pub orders_fd: i32,
    /// Descriptor that progress and outcome are reported to, as JSON lines.
    #[arg(long)]
    pub report_fd: i32,
    /// Descriptor of the home, if it is a volume.
    #[arg(long)]
    pub home_fd: Option<i32>,
    /// Descriptor of the log directory, unless the server has the log.
    #[arg(long)]
    pub log_fd: Option<i32>,
    /// Descriptor of the FUSE connection, if there is a mount to serve.
    #[arg(long)]
    pub fuse_fd: Option<i32>,
}
