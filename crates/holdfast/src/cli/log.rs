//! `holdfast log ...`, as data.
//!
//! Promise: every flag says what it does, and what is asked of the log meanwhile.
//! Never: acts; `commands::log` does.

use crate::spelling::position;
use clap::{Args, Subcommand, ValueEnum};
use holdfast_config::sizes;
use std::path::PathBuf;

/// `holdfast log ...`
#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Make a log that the server is to serve: its segment files, full of zeros.
    Make {
        /// The log, as named in the configuration.
        name: String,
    },
    /// Make a served log again from its memory, if its files are gone for good.
    ///
    /// The memory has everything that no reader has released. If the files are on a disk that is
    /// not mounted, mount that instead.
    Mend {
        /// The log, as named in the configuration.
        name: String,
    },
    /// Go on without the memory of a served log that is gone.
    ///
    /// The server refuses a log whose newest bytes may have been in memory that nothing it knows of
    /// has taken. This says to go on with what the log's disk has.
    Accept {
        /// The log, as named in the configuration.
        name: String,
        /// Go on without it.
        #[arg(long, required = true)]
        memory_lost: bool,
    },
    /// Make an empty log in a directory, for a program that embeds one or for `append`.
    Create(CreateArgs),
    /// Append records; they are on the disk when this ends.
    ///
    /// Each argument is a record; without any, each line of standard input is. In a log of format
    /// json a record is JSON; in one of message-pack it is given as JSON, a struct as the array of
    /// its fields, as `dump` prints it; in one of format raw it is taken as it is.
    Append {
        #[command(flatten)]
        log: Existing,
        /// The records.
        records: Vec<String>,
    },
    /// Print records, from the last checkpoint on, one a line: position, then the record.
    ///
    /// Records of json and message-pack are printed as JSON, text as it is, and all else in
    /// hexadecimal digits. Ends at the first damage, with its position and exit code 6. Opening the
    /// log cuts off the remains of an unfinished write, as its program would. The log of a volume,
    /// of tables or of the server is read as its disk has it, a set of records as one; nothing of
    /// it is changed.
    Dump {
        #[command(flatten)]
        log: Existing,
        /// Begin at this position: the start of a set, as it is printed.
        #[arg(long, value_name = "LSN", value_parser = position)]
        from: Option<u64>,
        /// Print so many records at most.
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
        /// Begin at the end, or at the end of the set that ends at --from, and go back.
        #[arg(long)]
        reverse: bool,
    },
    /// Print the last records, as `dump` does; or follow a log that a program writes meanwhile.
    Tail {
        #[command(flatten)]
        log: Existing,
        /// How many.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
        records: usize,
        /// Go on with each record that becomes durable, until interrupted. The log may be open in
        /// another program, and is left as it is. A record is printed when the log's files say that
        /// it is durable: when something is written behind it, or the log is closed.
        #[arg(short, long)]
        follow: bool,
    },
    /// Show what a log is: records of which type, how many, between which positions, on how much
    /// disk.
    ///
    /// Of a log that somebody has open, of a sealed one without its keys, and of one that the
    /// server, a volume or a store uses, it shows what the files say by themselves: not where it
    /// ends, but how far it is durable at the least.
    Stat {
        #[command(flatten)]
        log: Existing,
    },
    /// Read every set that is still needed, and all parity; name what is damaged. Changes nothing.
    ///
    /// Damage to what was acknowledged ends it with exit code 6, and each stretch is named with
    /// file and byte. An unfinished write at the end of the log is no damage. A sealed log needs no
    /// keys for this, nor for `repair`.
    Verify {
        /// The log's directory. Nobody may have the log open.
        directory: PathBuf,
    },
    /// Save what can be read of a damaged log into a new one, and name what is lost.
    ///
    /// Every set keeps its position. The damaged log is not changed: keep it until the new one has
    /// been looked at.
    Repair {
        /// The damaged log's directory. Nobody may have the log open.
        directory: PathBuf,
        /// Where the new log is made: a new directory, or an empty one.
        #[arg(required_unless_present = "dry_run")]
        to: Option<PathBuf>,
        /// Write nothing; say what would be saved and lost.
        #[arg(long, conflicts_with = "to")]
        dry_run: bool,
    },
    /// Take away the records before a position that are not needed any more, or those after one.
    Truncate {
        #[command(flatten)]
        log: Existing,
        #[command(flatten)]
        at: TruncateArgs,
    },
    /// Measure how fast a log in this directory is: synced sets of 1 to 64 threads, and records
    /// that are waited for once.
    ///
    /// Works in a folder of its own below the directory, which it removes.
    Bench {
        /// A directory on the disk that is to be measured.
        directory: PathBuf,
        /// How long each measurement takes.
        #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
        seconds: f64,
    },
}

/// A log that is there.
#[derive(Debug, Args)]
pub(crate) struct Existing {
    /// The log's directory. Nobody may have the log open, except for `stat` and `tail --follow`.
    pub directory: PathBuf,
    /// The keys of a sealed log: lines of an id and 64 hexadecimal digits, the current key first. A
    /// file that others may read is refused.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

/// Where `holdfast log truncate` cuts.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct TruncateArgs {
    /// The first position that is still needed: the start of a set, or the end of the log. Later
    /// replays begin there, and the space before is used again: a checkpoint.
    #[arg(long, value_name = "LSN", value_parser = position)]
    pub before: Option<u64>,
    /// The first position that goes, for good, with all behind it: the start or the end of a set.
    #[arg(long, value_name = "LSN", value_parser = position)]
    pub after: Option<u64>,
}

/// `holdfast log create ...`
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Where: a new directory, or an empty one.
    pub directory: PathBuf,
    /// What the type of the records is called; a program that opens the log must say the same.
    #[arg(long, value_name = "NAME", default_value = "bytes")]
    pub record: String,
    /// How the records are written.
    #[arg(long, value_name = "FORMAT", default_value = "raw")]
    pub format: FormatName,
    /// Bytes of one segment file: a power of two from 64KiB to 1GiB.
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = sizes::parse)]
    pub segment: u64,
    /// Write six blocks of parity for 64 of the log, from which lost ones are given back.
    #[arg(long)]
    pub parity: bool,
    /// Make a sealed log, which nobody reads without these keys: see `dump`.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

/// The formats that `append` can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    /// Bytes as they are.
    Raw,
    /// JSON, one value a record.
    Json,
    /// MessagePack, one value a record.
    MessagePack,
}

impl FormatName {
    /// As the label of a log has it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            FormatName::Raw => "raw",
            FormatName::Json => "json",
            FormatName::MessagePack => "message-pack",
        }
    }
}
