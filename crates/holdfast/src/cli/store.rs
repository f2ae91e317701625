//! `holdfast store ...`, as data.
//!
//! Promise: every flag says what it does, and what is asked of the store meanwhile.
//! Never: acts; `commands::store` does.

use clap::{Args, Subcommand};
use holdfast_pages::At;
use holdfast_store::{Config, Keep, LogPlace};
use std::path::PathBuf;

/// `holdfast store ...`
///
/// Keys and values are text. Bytes that cannot be printed are written as `0x` and hexadecimal
/// digits, everywhere.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Open a store, or make one in an empty directory; say what was found, and close it in order.
    ///
    /// Transactions that had not ended when the store's last program did are undone.
    Open {
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Print the value of a key.
    Get {
        #[command(flatten)]
        tree: InTree,
        /// The key: text, or 0x and hexadecimal digits.
        key: String,
    },
    /// Give a key a value; it is on the disk when this ends.
    Put {
        #[command(flatten)]
        tree: InTree,
        /// The key: text, or 0x and hexadecimal digits.
        key: String,
        /// The value, likewise.
        value: String,
    },
    /// Delete a key; it is gone from the disk when this ends.
    Delete {
        #[command(flatten)]
        tree: InTree,
        /// The key: text, or 0x and hexadecimal digits.
        key: String,
    },
    /// Print keys and their values in order, one a line: the key, a tab, the value.
    ///
    /// `load` takes what is printed.
    Scan {
        #[command(flatten)]
        tree: InTree,
        #[command(flatten)]
        part: ScanArgs,
    },
    /// Give many keys their values: lines of a key, a tab and a value, as `scan` prints them.
    ///
    /// A thousand lines are a transaction, or fewer that have 512 KiB together. A line that is none
    /// ends it, and what stands before that line is in the store.
    Load {
        #[command(flatten)]
        tree: InTree,
        /// The lines [default: standard input].
        file: Option<PathBuf>,
    },
    /// Show what a store is: its trees, how far its records go, and its files.
    Stat {
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Read every page of every tree, wherever it has to come from; name what is damaged.
    ///
    /// A page whose image on the disk is damaged is made again from its records, and counted. What
    /// cannot be had, or is not what its neighbours say, ends it with exit code 6.
    Verify {
        #[command(flatten)]
        store: StoreArgs,
        /// Free the pages that belong to no tree, as a crash can leave them, if nothing is damaged.
        #[arg(long)]
        reclaim: bool,
    },
    /// Leave out of the archive what is past, and is not to be kept.
    ///
    /// No moment before what is kept can be restored from the store then. Every page can be made
    /// again from what is left.
    Trim {
        #[command(flatten)]
        store: StoreArgs,
        /// What is kept: a time back from now such as 36h or 7d, the newest bytes such as 10GiB, or
        /// `repair` for what a repair of pages needs.
        #[arg(long, value_name = "HOW-MUCH", value_parser = keep)]
        keep: Keep,
    },
    /// Copy a store to another directory, from which `restore` makes one again.
    ///
    /// A program backs up its own store while it uses it.
    Backup {
        #[command(flatten)]
        store: StoreArgs,
        /// Where the backup is made: a new directory, or an empty one.
        to: PathBuf,
        /// Bring the backup that is there to where the store is now.
        #[arg(long)]
        forward: bool,
    },
    /// Make a store as another one was at a moment, from a backup or from the store itself.
    ///
    /// What it is made from is not changed. A transaction that had not been committed at that
    /// moment has never been.
    Restore {
        /// A backup, or the directory of a store that nobody has open.
        from: PathBuf,
        /// Where the store is made: a new directory, or an empty one.
        to: PathBuf,
        /// The moment: a time such as 2026-11-22T12:00:00Z, `rsn:N`, or `lsn:N` [default: the
        /// newest one that there is].
        #[arg(long, value_name = "MOMENT", value_parser = crate::moment::parse)]
        at: Option<At>,
        /// Give the new store this log in the server, which is new as well.
        #[arg(long, value_name = "SOCKET/NAME", value_parser = served_log)]
        log: Option<LogPlace>,
    },
    /// Measure how fast a store in this directory is: transfers of a bank, by 1 to 8 threads, that
    /// wait for the disk, and that do not.
    ///
    /// Works in a folder of its own below the directory, which it removes. A transfer changes an
    /// account of 10,000 to a branch, a teller and the branch, and adds a line of history. The
    /// balances are added up afterwards.
    Bench {
        /// A directory on the disk that is to be measured.
        directory: PathBuf,
        /// How long each measurement takes.
        #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
        seconds: f64,
    },
}

/// How much of the past is kept.
fn keep(text: &str) -> Result<Keep, String> {
    const HOUR_MS: u64 = 60 * 60 * 1000;
    let time = |unit: char, ms: u64| text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(ms);
    match time('h', HOUR_MS).or_else(|| time('d', 24 * HOUR_MS)) {
        _ if text == "repair" => Ok(Keep::Repair),
        Some(ms) => Ok(Keep::WindowMs(ms)),
        None => holdfast_config::sizes::parse(text).map(Keep::Bytes),
    }
}

/// A store.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store's directory. Nobody may have the store open.
    pub directory: PathBuf,
    /// The store's log is in the server: the path of the server's socket, and the log's name.
    #[arg(long, value_name = "SOCKET/NAME", value_parser = served_log)]
    pub log: Option<LogPlace>,
}

/// One of a store's trees.
#[derive(Debug, Args)]
pub(crate) struct InTree {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The name of the tree that the keys are in.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub tree: String,
}

/// What `holdfast store scan` prints.
#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    /// Begin at this key, or where it would be.
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
    /// End before this key.
    #[arg(long, value_name = "KEY")]
    pub to: Option<String>,
    /// Print so many keys at most.
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// From the highest key down.
    #[arg(long)]
    pub reverse: bool,
}

impl StoreArgs {
    /// How the store is opened.
    pub(crate) fn config(&self) -> Config {
        Config { log: self.log.clone().unwrap_or_default(), ..Config::default() }
    }
}

/// The log in the server that `SOCKET/NAME` names. The error is a sentence.
fn served_log(text: &str) -> Result<LogPlace, String> {
    match text.rsplit_once('/') {
        Some((socket, name)) if !socket.is_empty() && !name.is_empty() => {
            Ok(LogPlace::Served { socket: socket.into(), name: name.to_owned() })
        }
        _ => Err(format!("`{text}` is no SOCKET/NAME such as /run/holdfast/server.sock/ledger")),
    }
}
