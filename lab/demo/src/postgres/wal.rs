//! Moving `pg_wal` from one directory to another while the server is stopped.
//!
//! Promise: after a move the cluster starts from the new directory, which then holds as many
//! preallocated segments as every other setting's directory, so no setting pays for making files
//! that another finds ready.
//! Never: copies more than the segments that recovery can read. The rest of a directory are spare
//! segments; they stay where they are and get the names that come next, as PostgreSQL itself
//! recycles them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::cluster::Cluster;
use crate::error::{DemoError, During};

/// PostgreSQL's default segment size.
const SEGMENT_BYTES: u64 = 16 << 20;

/// Segments with one value in the middle eight digits of their names.
const SEGMENTS_PER_LOG: u64 = (1 << 32) / SEGMENT_BYTES;

/// The segment with the last checkpoint, and the next one in case the record crosses over.
const LIVE_SEGMENTS: u64 = 2;

/// Preallocated segments in every directory: 512 MiB, more than one setting writes in its turn.
const SPARE_SEGMENTS: u64 = 32;

/// What a new spare segment is filled with, a mebibyte at a time.
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

/// A segment's place in the log, with the timeline it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    timeline: u32,
    number: u64,
}

impl Segment {
    fn parse(name: &str) -> Option<Segment> {
        let part = |range| u32::from_str_radix(name.get(range)?, 16).ok();
        if name.len() != 24 {
            return None;
        }
        let (timeline, log, low) = (part(0..8)?, part(8..16)?, part(16..24)?);
        Some(Segment { timeline, number: u64::from(log) * SEGMENTS_PER_LOG + u64::from(low) })
    }

    fn plus(self, segments: u64) -> Segment {
        Segment { number: self.number + segments, ..self }
    }

    fn name(self) -> String {
        let (log, low) = (self.number / SEGMENTS_PER_LOG, self.number % SEGMENTS_PER_LOG);
        format!("{:08X}{log:08X}{low:08X}", self.timeline)
    }
}

/// Points the stopped cluster's `pg_wal` at `target`.
pub(super) fn move_to(cluster: &Cluster, target: &Path) -> Result<(), DemoError> {
    let link = cluster.data().join("pg_wal");
    let source = fs::read_link(&link).unwrap_or_else(|_| link.clone());
    if source == target {
        return Ok(());
    }
    let doing = || format!("moving pg_wal to {}", target.display());
    let first = last_checkpoint(cluster)?;
    cluster.owner.own_directory(target)?;
    cluster.owner.own_directory(&target.join("archive_status"))?;
    let spares = set_spares_aside(target).during(doing)?;
    for segment in (0..LIVE_SEGMENTS).map(|step| first.plus(step).name()) {
        let (from, to) = (source.join(&segment), target.join(&segment));
        if from.exists() {
            copy_synced(&from, &to).during(doing)?;
            cluster.owner.own(&to)?;
        }
    }
    name_spares(cluster, target, first, spares)?;
    File::open(target).and_then(|folder| folder.sync_all()).during(doing)?;
    relink(&link, target).during(doing)
}

/// Points the stopped cluster at a directory that already holds its whole `pg_wal`.
pub(super) fn relink_to(cluster: &Cluster, target: &Path) -> Result<(), DemoError> {
    let doing = || format!("pointing pg_wal at {}", target.display());
    relink(&cluster.data().join("pg_wal"), target).during(doing)
}

/// The segment that holds the last checkpoint's redo point, from `pg_controldata`.
fn last_checkpoint(cluster: &Cluster) -> Result<Segment, DemoError> {
    let control = cluster.run("pg_controldata", |command| command.arg("-D").arg(cluster.data()))?;
    let line =
        control.lines().find_map(|line| line.strip_prefix("Latest checkpoint's REDO WAL file:"));
    line.and_then(|name| Segment::parse(name.trim()))
        .ok_or_else(|| DemoError::new("reading pg_controldata", "it names no REDO WAL file"))
}

/// Renames every segment in the directory so that its name is free, and returns the new names.
fn set_spares_aside(target: &Path) -> io::Result<Vec<PathBuf>> {
    let mut spares = Vec::new();
    for entry in fs::read_dir(target)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let aside = target.join(format!("spare.{name}"));
        if Segment::parse(&name).is_some() {
            fs::rename(target.join(&name), &aside)?;
            spares.push(aside);
        }
    }
    Ok(spares)
}

/// Gives the spare segments the names after the live ones, and fills the pool up with zeros.
fn name_spares(
    cluster: &Cluster,
    target: &Path,
    first: Segment,
    spares: Vec<PathBuf>,
) -> Result<(), DemoError> {
    let doing = || format!("preallocating segments in {}", target.display());
    let mut spares = spares.into_iter();
    for step in LIVE_SEGMENTS..LIVE_SEGMENTS + SPARE_SEGMENTS {
        let path = target.join(first.plus(step).name());
        match spares.next() {
            Some(spare) => fs::rename(spare, &path).during(doing)?,
            None => write_zeros(&path).during(doing)?,
        }
        cluster.owner.own(&path)?;
    }
    spares.try_for_each(fs::remove_file).during(doing)
}

fn copy_synced(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

fn write_zeros(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    for _ in 0..SEGMENT_BYTES / ZEROS.len() as u64 {
        io::Write::write_all(&mut file, &ZEROS)?;
    }
    file.sync_all()
}

/// Replaces the directory or link at `link` by a link to `target`.
fn relink(link: &Path, target: &Path) -> io::Result<()> {
    if link.symlink_metadata()?.is_dir() {
        fs::remove_dir_all(link)?;
    } else {
        fs::remove_file(link)?;
    }
    symlink(target, link)
}

#[cfg(test)]
mod tests;
