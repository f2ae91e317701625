//! The end of a process whose memory another host has taken over.
//!
//! Promise: nothing more is acknowledged here than before the other host attached.
//! Never: gives anything back.

use holdfast_config::exit::Exit;
use holdfast_memory::Region;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Ends this process once another host has attached one of the regions: what is asked for here is
/// that host's to answer by then.
pub(crate) fn end_when_stale(regions: &[Arc<Region>], stop: &AtomicBool) {
    while !regions.is_empty() && !stop.load(Ordering::Relaxed) {
        if !regions.iter().all(|region| region.is_current()) {
            tracing::error!(
                "stale generation: another host has attached the memory; nothing more is \
                 acknowledged here"
            );
            std::process::exit(Exit::InUse as i32);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
