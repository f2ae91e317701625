//! Copies of a mount that nobody uses.
//!
//! Promise: what was unmounted here, and goes on being served only because other mount namespaces
//! have a copy of the mount, is cut off from them when they had the time to pass by, whoever waits
//! for that.
//! Never: cuts off somebody who is seen to have a file, a directory or a mapping of it, or to have
//! mounted something of it.

use crate::supervisor::attached::Attached;
use crate::supervisor::front_end::FrontEndLife;
use holdfast_machine::mounts::elsewhere::{FileSystem, KeptBy, PASSING, copies_text};
use holdfast_machine::threads::thread;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Has those who keep copies of its mount alone be cut off, whether somebody waits for that or not.
pub(crate) fn watch_volume(name: &str, attached: &Arc<Attached>) {
    let (whose, attached) = (format!("volume {name}"), attached.clone());
    let told = whose.clone();
    let watch = move || {
        let file_system = attached.file_system.as_ref();
        file_system.inspect(|it| watch(&whose, it, &attached.life));
    };
    let watched = thread("copies", watch);
    let _ = watched.map_err(|why| tracing::warn!("{told}: copies of it are not cut off: {why}"));
}

/// Looks until what is unmounted is over, or cut off.
fn watch(whose: &str, file_system: &FileSystem, life: &FrontEndLife) {
    let begun = Instant::now();
    loop {
        let seen = life.wait_while(LOOK_EVERY, |it| !it.is_over());
        if seen.is_over() || seen.of.is_cut_off {
            return;
        }
        if begun.elapsed() >= PASSING {
            cut_off(whose, file_system, life);
        }
    }
}

/// Cuts off those who have copies alone. Nobody else keeps what is unmounted here by now.
pub(crate) fn cut_off(whose: &str, file_system: &FileSystem, life: &FrontEndLife) {
    let is_mounted = file_system.mount().is_some();
    if let Some(KeptBy::Copied(processes)) = file_system.kept().filter(|_| !is_mounted) {
        tracing::warn!("{whose}: {}", copies_text(processes));
        life.cut_off_copies(processes);
    }
}
