//! What an open works with.
//!
//! Promise: files and region that belong together.
//! Never: opens anything; `open` does, and what else adds to this.

use std::sync::Arc;

use holdfast_core::frame::Sealer;
use holdfast_core::ring::Geometry;
use holdfast_io::{Clock, Files};
use holdfast_memory::Region;

use crate::config::LogConfig;

/// What an open works with.
pub(crate) struct Opening<'a> {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) region: Arc<Region>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) config: &'a LogConfig,
    pub(crate) sealer: Sealer,
    pub(crate) geometry: Geometry,
}
