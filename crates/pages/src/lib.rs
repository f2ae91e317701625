//! Pages that a log keeps: whatever a page holds is the sum of its records.
//!
//! Promise: a record has its place in the stream before its page changes; records that belong
//! together reach the log together or not at all; a page changes by [`apply`] alone, running or
//! recovering, so doing a thing once and doing it again give the same bytes; what was damaged or
//! belongs elsewhere is told by name.
//! Never: knows what a page holds (its user says that, by [`Contents`]), or what is buffered,
//! locked or latched; starts a thread.
//!
//! Where to look: `rsn` has the numbers, `tag` tells one store's bytes from another's. `page` is 8
//! KiB with a checked head, `record` one change of it as bytes, `apply` the one place where the
//! two meet. `stage` gives records their order, `frame` is what they travel in, `stream` hands
//! them to the log, and `places` remembers which frame has which. `fresh` has those that are not
//! in the archive, `stale` knows which record each page should have got to. `fold` is what all
//! records come to, with `undo` for transactions, `checkpoint` is that as bytes, `bases` the two
//! files with them. `follower` keeps it up to date, `reread` does so from the log, and `analysis`
//! finds it again. `page_file` is where pages are kept, and `versions` which record each of them
//! had got to then. `run` writes records sorted by page and `run_reader` finds them again;
//! `run_format` is what the two agree on, `run_block` how records lie in a block, and `bloom` what
//! saves most reads. `archive` is which runs count, `view` all records as one, `gathered` those of
//! one page, and `replay` the one way to rebuild it. `archiver` makes runs and gives the log its
//! frames back. `images` is what the device tells of its pages, `fetch` a page as of now, and
//! `repairs` what was wrong with it. `merged` is the records of several runs in one order, `sweep`
//! brings pages forward by them, and `cleaner` writes those to their device, those first that
//! `order` says; `restoring` knows which are missing there after it was lost. `merger` makes wide
//! runs of narrow ones, of what `trimmed` leaves, and `compare` looks whether a page is what it
//! should be. `pages` is all of this, opened. `moment` finds a place in the past,
//! `restore` makes the pages as they were there, and `backup` copies them meanwhile; `condensed` is
//! a run of what a backup has. `varint` is how numbers are written, and `bodies` how bodies that
//! follow one another are, here and in what users put into records; `canary` lets tests weaken what
//! must hold.

mod analysis;
mod apply;
mod archive;
mod archiver;
mod backup;
mod bases;
mod bloom;
pub mod bodies;
pub mod canary;
mod checkpoint;
mod cleaner;
mod compare;
mod condensed;
mod directories;
mod display;
mod error;
mod fetch;
mod fold;
mod follower;
mod frame;
mod fresh;
mod gathered;
mod images;
mod manifest;
mod merged;
mod merger;
mod moment;
mod order;
mod page;
mod page_file;
mod pages;
mod past;
mod places;
mod progress;
mod record;
mod repairs;
mod replay;
mod reread;
mod restore;
mod restoring;
mod rsn;
mod run;
mod run_block;
mod run_copy;
mod run_format;
mod run_reader;
mod stage;
mod stale;
mod stream;
mod sweep;
mod tag;
mod trimmed;
mod undo;
pub mod varint;
mod versions;
mod view;

pub use analysis::{Analysis, analyse};
pub use apply::{Applied, ApplyFault, Contents, IMAGE_EVERY_BYTES, apply};
pub use archive::Archive;
pub use archiver::Archiver;
pub use bases::{Bases, Loaded};
pub use checkpoint::{Difference, SURVEY, StateFault};
pub use cleaner::framed::Frames;
pub use compare::Checked;
pub use directories::Directories;
pub use error::{
    AnalysisError, ArchiveError, BackupError, BaseFault, CheckpointError, CleanError, CompareError,
    FetchError, FlushError, FollowError, FrameFault, LoadError, MergeError, OpenArchiveError,
    OpenError, Poisoned, ReadPageError, ReleaseError, ReplayError, RereadError, RestoreError,
    RunFault, RunPart, StageError, SyncError, VersionsError, WritePagesError,
};
pub use fetch::{Fetch, Fetched};
pub use fold::{FoldFault, State};
pub use follower::{Follower, Running};
pub use frame::{FRAME_HEAD_BYTES, Framed};
pub use fresh::{BrokenChain, Fresh, History};
pub use gathered::Gathered;
pub use images::Images;
pub use manifest::Manifest;
pub use merger::Keep;
pub use moment::{At, Moment};
pub use order::CleaningOrder;
pub use page::{PAGE_BYTES, PAGE_HEAD_BYTES, Page, PageFault, PageKind, Unfit};
pub use page_file::PageFile;
pub use pages::{Checkpoints, Found, Pages, PagesConfig};
pub use places::FramePlace;
pub use progress::Progress;
pub use record::{Opened, PageLink, Record, RecordFault, Records, What, parse};
pub use repairs::{FaultKind, Repairs};
pub use replay::{Upto, replay};
pub use reread::Rereader;
pub use restore::{foresee_restore, restore};
pub use rsn::{PageNumber, Rsn, Slot};
pub use run::RunWriter;
pub use run_block::Compression;
pub use run_format::{NO_PAGE, RunSpan};
pub use run_reader::{Run, RunEntry, RunScan};
pub use stage::Group;
pub use stale::{Expected, Imaged, PAGES_MAX, Stale};
pub use stream::{Feed, Stream};
pub use tag::Tag;
pub use versions::{VERSIONS_PAGES, Versions, VersionsBlock};
pub use view::{View, Views};

#[cfg(test)]
mod tests;
