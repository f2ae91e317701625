//! The command line, as data.
//!
//! Promise: every flag and subcommand is declared here with help that tells what to do.
//! Never: acts; `commands` does.

pub(crate) mod disk;
pub(crate) mod log;
pub(crate) mod plan;
pub(crate) mod region;
pub(crate) mod snapshot;
pub(crate) mod store;
pub(crate) mod table;
pub(crate) mod vm;

use clap::{Args, Parser, Subcommand, ValueEnum};
use holdfast_config::claims::Failure;
use holdfast_config::exit::Exit;
use holdfast_config::sizes;
use holdfast_keeper::orders::{FrontArgs, ServerArgs};
use std::ffi::OsString;
use std::path::PathBuf;

/// Makes an unmodified database commit at memory speed, and loses nothing.
///
/// A volume is an ordinary directory, or a disk in a file or device (its home), plus a log.
/// Programs see it through a mount. What they write is acknowledged when the memory region has it,
/// if that memory survives the failures the volume's `must_survive` names, and otherwise when the
/// log's disk has it.
///
/// First steps, as root: write /etc/holdfast.toml, then
///   holdfast volume make NAME     make the log of a volume
///   holdfast serve                start the keeper; it mounts every volume
///   holdfast status               see what survives what
///   holdfast umount NAME          give the home back, complete and ordinary
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, about, verbatim_doc_comment, after_long_help = Exit::HELP)]
pub(crate) struct Cli {
    /// The configuration file.
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = "HOLDFAST_CONFIG",
        default_value = "/etc/holdfast.toml"
    )]
    pub config: PathBuf,

    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub json: bool,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the keeper: mount every configured volume and keep it served until SIGTERM.
    ///
    /// The keeper holds what must outlive a front end: the mount, the home, the log. It starts one
    /// front-end process a volume and restarts it when it dies; programs see a pause, no error.
    /// Stop it with SIGTERM or Ctrl-C: every volume is unmounted, drained and given back. Signals
    /// that order nothing, as SIGHUP when a terminal closes, end neither it nor its processes.
    /// SIGPWR tells it that the power is about to fail.
    /// A keeper killed with SIGKILL leaves its front ends serving; `holdfast umount` ends them.
    Serve,
    /// Run the keeper on one of several hosts: wait until no other host serves, then do as `serve`.
    ///
    /// The hosts share storage with homes, logs and the folder of [standby]. One of them serves and
    /// says so again and again. When it was silent for patience_ms, another one runs the fence,
    /// takes over, and serves; of several that try at once one does, and the others end with exit
    /// code 5. An old owner that comes back learns of it and ends at once.
    Standby,
    /// Attach and mount a volume. The running keeper does it, from the configuration as it is now.
    Mount {
        /// The volume, as named in the configuration.
        name: String,
    },
    /// Unmount a volume, drain it, and give its home back, complete and ordinary.
    ///
    /// The running keeper does it. Without a keeper this command does it itself.
    Umount {
        /// The volume, as named in the configuration.
        name: String,
        /// Unmount although programs use it; their open files fail with an error, and clients of a
        /// disk are cut off.
        #[arg(long)]
        force: bool,
    },
    /// Return when a volume is served; have the keeper mount it if it is not.
    ///
    /// For units of systemd that need the volume: see docs/systemd.md.
    Wait {
        /// The volume, as named in the configuration.
        name: String,
    },
    /// Print what binds a unit of systemd to its volume.
    Systemd {
        /// What to print.
        #[command(subcommand)]
        command: SystemdCommand,
    },
    /// Stop the keeper: unmount, drain and give back every volume, as SIGTERM does.
    ///
    /// Returns when the keeper has ended, and says every few seconds what it waits for. Programs
    /// that use a volume are waited for; a second shutdown, or signal, cuts them off, and ends the
    /// keeper once nothing has moved for ten seconds, whatever it waits for.
    Shutdown,
    /// Show whether what memory may hold gets to the disks before the power is gone.
    ///
    /// Needs [power] in the configuration, and volumes whose memory may acknowledge because of it.
    /// For that moment they wait for their disks; then as much as may be in memory alone is written
    /// to all logs' disks at once, and flushed. Without a drill that was passed within drill_days,
    /// memory acknowledges nothing that has to survive the power; one that fails ends that at once.
    Drill,
    /// Run one command on a volume of its own, then give the home back; ends with its exit code.
    Run(RunArgs),
    /// Show every volume: state, what it survives and what not, dirty bytes, rates, last error.
    ///
    /// Works without a keeper too (exit code 4), from what the memory regions say.
    Status,
    /// Make, check, mend or list volumes.
    Volume {
        /// What to do with volumes.
        #[command(subcommand)]
        command: VolumeCommand,
    },
    /// Measure how long a commit waits for each disk here, and say where logs belong.
    ///
    /// On each file system that is on a device, up to 300 blocks are written into a file without a
    /// name, one after the other, each until the disk has it, for two seconds at the most; what
    /// does not answer in ten is told. Nothing is changed, and no configuration is needed.
    Advise {
        /// Directories whose disks are measured [default: one on each disk].
        #[arg(value_name = "DIR")]
        directories: Vec<PathBuf>,
    },
    /// Find out what memory regions survive on this machine.
    Region {
        /// What to do with memory.
        #[command(subcommand)]
        command: region::RegionCommand,
    },
    /// Write manual pages and shell completions into a folder.
    #[command(hide = true)]
    Manual {
        /// The folder; `man1` and `completions` are made in it.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Print the failure x medium matrix that the claims are computed from, as Markdown.
    #[command(hide = true)]
    Matrix,
    /// Make the logs that the server serves; make, fill, print and measure those of other programs.
    Log {
        /// What to do with logs.
        #[command(subcommand)]
        command: log::LogCommand,
    },
    /// Make and remove the disks in durable memory that the server serves.
    Disk {
        /// What to do with disks.
        #[command(subcommand)]
        command: disk::DiskCommand,
    },
    /// Make and check the tables that the server serves.
    Table {
        /// What to do with tables.
        #[command(subcommand)]
        command: table::TableCommand,
    },
    /// Make room for snapshots of virtual machines, tell of them, and remove them.
    Snapshot {
        /// What to do with snapshots.
        #[command(subcommand)]
        command: snapshot::SnapshotCommand,
    },
    /// Open, fill, read, check, save and measure stores of keys and values.
    Store {
        /// What to do with a store.
        #[command(subcommand)]
        command: store::StoreCommand,
    },
    /// Simulate how much memory should be durable: what requests and recoveries cost, and advice.
    Plan {
        /// What to simulate.
        #[command(subcommand)]
        command: plan::PlanCommand,
    },
    /// Start virtual machines where they stopped.
    Vm {
        /// What to do with a virtual machine.
        #[command(subcommand)]
        command: vm::VmCommand,
    },
    /// Replace a process of the running keeper by another version of itself, under load.
    Upgrade {
        /// What to replace.
        #[command(subcommand)]
        command: UpgradeCommand,
    },
    /// A front end; the keeper starts it.
    #[command(hide = true)]
    Front(FrontArgs),
    /// The server; the keeper starts it.
    #[command(hide = true)]
    Server(ServerArgs),
}

/// `holdfast volume ...`
#[derive(Debug, Subcommand)]
pub(crate) enum VolumeCommand {
    /// Make the log of a volume. The home is taken as it stands; nothing in it changes.
    Make {
        /// The volume, as named in the configuration.
        name: String,
    },
    /// Check a volume that is not mounted: paths, claims, log and region. Changes nothing.
    ///
    /// Every frame of the log that is still needed is read and compared with its checks, and every
    /// frame that waits in the memory region. Damage to what was acknowledged ends it with exit
    /// code 6 and the position (LSN), the file, the byte and what to do next. An unfinished write
    /// at the end of the log is no damage.
    Check {
        /// The volume, as named in the configuration.
        name: String,
    },
    /// Take a volume whose log's disk failed, or whose log was removed, into use again.
    ///
    /// A failed write or sync ends the use of a log, because nobody knows what the disk kept. The
    /// memory region still has all of it. With the volume unmounted and the disk back, this writes
    /// what the region has to the log once more, reads it back, and forgets the failure; mount the
    /// volume afterwards. If the disk fails again, everything stays as it was. A log whose files
    /// are gone for good is made again in its directory first; if they are on a disk that is not
    /// mounted, mount that instead.
    Mend {
        /// The volume, as named in the configuration.
        name: String,
    },
    /// Say how to go on where a log, its home and its memory are not what they were together.
    ///
    /// Attaching a volume is refused when its home is not the one that the log knows, when somebody
    /// changed it while the log had what it lacks, or when memory is gone that nothing has taken.
    /// The refusal says what was found; this says which side counts. Nothing is applied by it.
    Accept {
        /// The volume, as named in the configuration.
        name: String,
        #[command(flatten)]
        what: Accepted,
    },
    /// Put aside what a volume's cleaner is stuck at, so that the rest goes on.
    ///
    /// A change that was acknowledged and that the home can never take (too large a file, a quota,
    /// a directory that somebody removed from the home) would keep everything behind it from being
    /// applied. `status` tells what it is. This has its records written to files beside the log,
    /// whole, and passed over; what cannot be applied without them follows. It works while the
    /// volume is mounted, and at its next mount or unmount otherwise.
    Skip {
        /// The volume, as named in the configuration.
        name: String,
    },
    /// List what a volume has put aside, and the files that it is in.
    Aside {
        /// The volume, as named in the configuration.
        name: String,
    },
    /// List the configured volumes.
    List,
}

/// `holdfast systemd ...`
#[derive(Debug, Subcommand)]
pub(crate) enum SystemdCommand {
    /// Print a drop-in: the unit starts when the volume is served, and ends before it is given
    /// back.
    Dropin {
        /// The volume, as named in the configuration.
        name: String,
        /// The unit of the program that lives on it, such as `postgresql@16-main.service`.
        unit: String,
    },
}

/// What somebody says about a volume that was refused.
#[derive(Clone, Copy, Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Accepted {
    /// The home is the right one: what the log still has is applied to it.
    #[arg(long)]
    pub home: bool,
    /// Go on without the memory that is gone, and with what the log's disk has.
    #[arg(long)]
    pub memory_lost: bool,
    /// Of a home that somebody changed: `log` applies the log over it; `home` keeps it as it is,
    /// and puts the log aside, whole, beside the new one that takes its place.
    #[arg(long, value_name = "SIDE")]
    pub keep: Option<Side>,
}

/// One of two that have different changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    /// What the log has.
    Log,
    /// What the home has.
    Home,
}

/// `holdfast run ...`
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The ordinary directory that the command's files live in.
    #[arg(long, value_name = "DIR")]
    pub home: PathBuf,
    /// Where the command sees it; may be the home itself.
    #[arg(long, value_name = "DIR")]
    pub mount: PathBuf,
    /// Where the log is kept while the command runs [default: HOME.holdfast, beside the home].
    #[arg(long, value_name = "DIR")]
    pub log: Option<PathBuf>,
    /// How much memory the region has, a power of two of at least 8MiB.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = sizes::parse)]
    pub memory: u64,
    /// The failures that acknowledgements must survive; fewer is faster and less safe.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "process,os,power")]
    pub must_survive: Vec<Failure>,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// `holdfast upgrade ...`
#[derive(Debug, Subcommand)]
pub(crate) enum UpgradeCommand {
    /// Replace the server. Its clients wait a moment and notice nothing else.
    ///
    /// The old server finishes what it took and ends; the new one goes on from the same memory. If
    /// the new one ends or does not serve within 60 s, the old one is started again, and this
    /// command says why.
    Server {
        /// The program to run from now on [default: the one at the keeper's own path].
        #[arg(long, value_name = "PATH")]
        binary: Option<PathBuf>,
    },
    /// Replace the front end of a disk of the server's, as that of a volume.
    Disk {
        /// The disk, as named in the configuration.
        name: String,
        /// The program to run from now on [default: the one at the keeper's own path].
        #[arg(long, value_name = "PATH")]
        binary: Option<PathBuf>,
    },
    /// Replace the front end of a volume. Its users wait a moment and notice nothing else.
    ///
    /// The old front end answers what it took, and leaves its NBD connections to the new one; a
    /// hypervisor has to connect again by itself, and programs behind a mount wait. If the new one
    /// ends or does not serve within 60 s, the old one is started again, and this command says why.
    Volume {
        /// The volume, as named in the configuration.
        name: String,
        /// The program to run from now on [default: the one at the keeper's own path].
        #[arg(long, value_name = "PATH")]
        binary: Option<PathBuf>,
    },
}
