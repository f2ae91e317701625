//! Which of the log reader's words means what to a volume.
//!
//! Promise: `holdfast status` reads them while the front end lives, and after it died. Six of
//! them, [`WINDOW_END`], [`OPENED`], [`PLEDGE`], [`HOME_TOUCHED_NS`], [`MOUNT_PAGES`] and
//! [`INODES_TOLD`], tell the next process what the last one was at; [`RELIES_ON_POWER`] tells the
//! keeper of a machine whose mains fail.
//! Never: counts anything twice.

/// 1 from before memory acknowledges what has to survive the power until all of that is on the
/// log's device.
pub const RELIES_ON_POWER: usize = 39;
/// How often a change began to wait for room, a second at the most each time.
pub const STALLS: usize = 40;
/// The longest wait for room, nanoseconds.
pub const LONGEST_STALL_NS: usize = 41;
/// The error number of the home's last failure; 0 for none.
pub const HOME_ERRNO: usize = 42;
/// Windows applied to the home.
pub const WINDOWS: usize = 43;
/// Bytes applied to the home.
pub const APPLIED_BYTES: usize = 44;
/// Changes acknowledged.
pub const CHANGES: usize = 45;
/// Where the window ends, in the log, that the cleaner began last.
pub const WINDOW_END: usize = 46;
/// 1 once a volume has been opened with this memory, so that the home is where the marks and
/// [`WINDOW_END`] say it is, and the kernel may know numbers of nodes.
pub const OPENED: usize = 47;
/// The process that serves the volume, or the last that did.
pub const FRONT_END_PID: usize = 48;
/// What the block cache of the home goes by while the home is used through it alone; 0 while it is
/// used without one. Set by whoever opens the home for the volume, before the volume is opened.
pub const PLEDGE: usize = 49;
/// 1 while the roster tells of every node which inode of the home it is, if the home has it; 0 if
/// an older version wrote some of it, or there was no room for a note.
pub const INODES_TOLD: usize = 53;
/// When the volume had touched the home last, nanoseconds since 1970; the moment never falls. Says
/// nothing while a window is being applied, nor with bit 62 set: the home is being touched then.
pub const HOME_TOUCHED_NS: usize = 54;
/// Whether the kernel keeps pages of the files of the mount that there is: 1 no, 2 yes, 0 if an
/// older version answered when it began.
pub const MOUNT_PAGES: usize = 55;
