//! Pages that a log keeps: whatever a page holds is the sum of its records.
//!
//! Promise: a record has its place in the stream before its page changes; records that belong
//! together reach the log together or not at all; a page changes by [`apply`] alone, running or
//! recovering, so doing a thing once and doing it again give the same bytes; what was damaged or
//! belongs elsewhere is told by name.
//! Never: knows what a page holds (its user says that, by [`Contents`]), or what is buffered,
//! locked or latched; starts a thread.
//!
//! Where to look: `pages` is all of this, opened. Its rooms:
//!
//! * `stream`: hands records to the log. `rsn` has the numbers, `tag` tells one store's bytes from
//!   another's; a `record` is one change of a page as bytes, `append_buffer` gives records their
//!   order, `frame` is what they travel in, and `frame_index` remembers which frame has which.
//! * `page`: 8 KiB with a checked head; `apply` is the one place where a record meets it.
//!   `page_file` is where pages are kept, `versions` which record each of them had got to then,
//!   `images` what the device tells of them.
//! * `archive`: which runs count. `run` writes records sorted by page and `run_reader` finds them
//!   again; `run_format` is what the two agree on, `run_block` how records lie in a block, `bloom`
//!   what saves most reads. `fresh` has those that are not in the archive, `page_records` those of
//!   one page, `merged` those of several runs in one order. `archiver` makes runs and gives the
//!   log its frames back; `merger` makes wide runs of narrow ones, of what `pruned_merge` leaves.
//! * `restart`: `analysis_state` is what all records come to, with `undo` for transactions,
//!   `checkpoint` is that as bytes, `bases` the two files with them. `follower` keeps it up to
//!   date, `reread` does so from the log, and `analysis` finds it again; `stale` knows which
//!   record each page should have got to.
//! * `repair`: `view` is all records as one, and `replay` the one way to rebuild a page; `fetch`
//!   is a page as of now, `repairs` what was wrong with it, and `compare` looks whether it is what
//!   it should be.
//! * `clean`: `sweep` brings pages forward, and `cleaner` writes them to their device, those first
//!   that `order` says.
//! * `backup`: copies pages meanwhile; `backup_run` is a run of what it has, and `manifest` what
//!   it says of itself. `moment` finds a place in the `past`, `restore` makes the pages as they
//!   were there, and `restoring` knows which are missing after their device was lost.
//!
//! `varint` is how numbers are written, and `bodies` how bodies that follow one another are, here
//! and in what users put into records; `canary` lets tests weaken what must hold.

mod archive;
mod backup;
pub mod bodies;
pub mod canary;
mod clean;
mod directories;
mod display;
mod error;
mod page;
mod pages;
mod progress;
mod repair;
mod restart;
mod stream;
pub mod varint;

pub use archive::Archive;
pub use archive::archiver::Archiver;
pub use archive::fresh::{BrokenChain, Fresh, History};
pub use archive::merger::Keep;
pub use archive::page_records::PageRecords;
pub use archive::run::RunWriter;
pub use archive::run_block::Compression;
pub use archive::run_format::{NO_PAGE, RunSpan};
pub use archive::run_reader::{Run, RunEntry, RunScan};
pub use backup::manifest::Manifest;
pub use backup::moment::{At, Moment};
pub use backup::restore::{foresee_restore, restore};
pub use clean::cleaner::framed::Frames;
pub use clean::order::CleaningOrder;
pub use directories::Directories;
pub use error::{
    AnalysisError, ArchiveError, BackupError, BaseFault, CheckpointError, CleanError, CompareError,
    FetchError, FlushError, FollowError, FrameFault, LoadError, MergeError, OpenArchiveError,
    OpenError, Poisoned, ReadPageError, ReleaseError, ReplayError, RereadError, RestoreError,
    RunFault, RunPart, StageError, SyncError, VersionsError, WritePagesError,
};
pub use page::apply::{Applied, ApplyFault, Contents, IMAGE_EVERY_BYTES, apply};
pub use page::images::Images;
pub use page::page_file::PageFile;
pub use page::versions::{VERSIONS_PAGES, Versions, VersionsBlock};
pub use page::{PAGE_BYTES, PAGE_HEAD_BYTES, Page, PageFault, PageKind, Unfit};
pub use pages::{Checkpoints, Found, Pages, PagesConfig};
pub use progress::Progress;
pub use repair::compare::Checked;
pub use repair::fetch::{Fetch, Fetched};
pub use repair::repairs::{FaultKind, Repairs};
pub use repair::replay::{Upto, replay};
pub use repair::view::{View, Views};
pub use restart::analysis::{Analysis, analyse};
pub use restart::analysis_state::{FoldFault, State};
pub use restart::bases::{Bases, Loaded};
pub use restart::checkpoint::{Difference, SURVEY, StateFault};
pub use restart::follower::{Follower, Running};
pub use restart::reread::Rereader;
pub use restart::stale::{Expected, Imaged, PAGES_MAX, Stale};
pub use stream::append_buffer::Group;
pub use stream::frame::{FRAME_HEAD_BYTES, Framed};
pub use stream::frame_index::FramePlace;
pub use stream::record::{Opened, PageLink, Record, RecordFault, Records, What, parse};
pub use stream::rsn::{PageNumber, Rsn, Slot};
pub use stream::tag::Tag;
pub use stream::{Feed, Stream};

#[cfg(test)]
mod tests;
