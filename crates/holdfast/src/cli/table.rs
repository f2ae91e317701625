//! `holdfast table ...`, as data.
//!
//! Promise: every command says what becomes of what there is.
//! Never: acts; `commands::table` does.

use clap::{Args, Subcommand};

/// `holdfast table ...`
///
/// Whole numbers are written as such. Bytes are text; what cannot be printed is written as `0x` and
/// hexadecimal digits, everywhere.
#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    /// Make the store for tables, with nothing in it. What is there already stays as it is.
    Make {
        /// The tables, as named in the configuration.
        name: String,
    },
    /// Make the log of the store again from its memory, after its files are gone for good.
    ///
    /// The memory has everything that is not in the store's archive yet. If the files are on a disk
    /// that is not mounted, mount that instead.
    Mend {
        /// The tables, as named in the configuration.
        name: String,
    },
    /// Go on without the memory of tables that is gone, or is of an earlier moment.
    ///
    /// The server refuses tables whose newest rows may have been in memory that nothing it knows of
    /// has taken. This says to go on with what the store's disk has; memory that is there is put
    /// aside whole.
    Accept {
        /// The tables, as named in the configuration.
        name: String,
        /// Go on without it.
        #[arg(long, required = true)]
        memory_lost: bool,
    },
    /// Compare all rows with all indexes, while nobody serves them.
    Check {
        /// The tables, as named in the configuration.
        name: String,
    },
    /// Print which tables there are: name, kinds of the fields, primary key, indexes.
    ///
    /// Asks the server if it has them, else opens them.
    List {
        /// The tables, as named in the configuration.
        name: String,
    },
    /// Print the row that has this primary key, its values separated by tabs.
    ///
    /// Asks the server if it has the tables, else opens them.
    Get {
        #[command(flatten)]
        table: InTables,
        /// The values of the primary key.
        #[arg(required = true, allow_negative_numbers = true)]
        key: Vec<String>,
    },
    /// Print rows in order, one a line, their values separated by tabs.
    ///
    /// Asks the server if it has the tables, else opens them. Every thousand rows are as of one
    /// moment.
    Scan {
        #[command(flatten)]
        table: InTables,
        #[command(flatten)]
        part: RowsArgs,
    },
}

/// One of several tables.
#[derive(Debug, Args)]
pub(crate) struct InTables {
    /// The tables, as named in the configuration.
    pub name: String,
    /// Which of them.
    pub table: String,
}

/// What `holdfast table scan` prints.
#[derive(Debug, Args)]
pub(crate) struct RowsArgs {
    /// In the order of this index, counted from 0 [default: that of the primary key].
    #[arg(long, value_name = "INDEX")]
    pub by: Option<u8>,
    /// Begin at rows with this in the first field of the order; once more for each further field.
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
    pub from: Vec<String>,
    /// End before rows with this, likewise.
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
    pub to: Vec<String>,
    /// Print so many rows at most.
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// From the last row down.
    #[arg(long)]
    pub reverse: bool,
}
