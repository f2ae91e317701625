//! What takes long, for whoever waits for it.
//!
//! Promise: all parts of the keeper wait and tell alike.
//! Never: waits.

use holdfast_config::problem::Outcome;
use std::time::Duration;

/// How often something that takes long is spoken of.
pub(crate) const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// How often is looked whether what the kernel does has ended.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How often a volume that cannot be unmounted is tried again while the keeper ends.
pub(crate) const RETRY_EVERY: Duration = Duration::from_millis(200);

/// Takes sentences about what takes long.
pub type Progress<'a> = &'a mut dyn FnMut(&str);

/// Why nothing is waited for any more until it serves, if that is so.
pub(crate) type Refuse<'a> = &'a dyn Fn() -> Outcome<()>;
