//! What a power cut takes: writes that were not synced, sector by sector.
//!
//! Promise: after [`Unsynced::cut`] a sector that was written since its file's last sync holds what
//! it held after some earlier write to it, or before all of them; which one is drawn from the seed,
//! for each sector apart, so pages tear and writes reorder.
//! Never: takes anything that was synced, or leaves a sector as it never was. Names, sizes and
//! holes stay as they are: a file system with a journal keeps those in order, and this model is
//! about contents. So a sector of which a cut or a hole made zeros is not taken back behind that.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_io::OpenFile;

/// What a disk writes at once.
const SECTOR_BYTES: u64 = 512;

/// The contents that unsynced writes have replaced, by inode: nodes are forgotten and made anew.
pub(super) struct Unsynced {
    files: Mutex<HashMap<u64, File>>,
    /// So many writes there were; changes while `files` is locked.
    writes: AtomicU64,
}

/// A file with unsynced writes, held open so that it can still be reached, and keeps its inode.
struct File {
    file: Arc<dyn OpenFile>,
    replaced: Vec<Replaced>,
}

/// What stood in one place before one write. What lay beyond the end of the file was zero.
struct Replaced {
    /// Later writes have higher numbers.
    write: u64,
    offset: u64,
    bytes: Vec<u8>,
}

impl Unsynced {
    /// Nothing is unsynced yet.
    pub(super) fn new() -> Self {
        Self { files: Mutex::default(), writes: AtomicU64::new(0) }
    }

    fn files(&self) -> MutexGuard<'_, HashMap<u64, File>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes, and remembers what stood there.
    pub(super) fn write(
        &self,
        file: Arc<dyn OpenFile>,
        from: &[u8],
        offset: u64,
    ) -> io::Result<()> {
        // Held across both, so that the writes to a file are remembered in their order.
        let mut files = self.files();
        let inode = file.metadata()?.inode;
        let mut bytes = vec![0; from.len()];
        file.read_full_at(&mut bytes, offset)?;
        file.write_all_at(from, offset)?;
        let known = files.entry(inode).or_insert_with(|| File { file, replaced: Vec::new() });
        let write = self.writes.fetch_add(1, Ordering::Relaxed);
        known.replaced.push(Replaced { write, offset, bytes });
        Ok(())
    }

    /// Cuts or extends the file. What is cut off is zero if it grows again.
    pub(super) fn set_len(&self, file: &dyn OpenFile, bytes: u64) -> io::Result<()> {
        let mut files = self.files();
        let before = file.metadata()?;
        file.set_len(bytes)?;
        if let Some(known) = files.get_mut(&before.inode).filter(|_| bytes < before.size_bytes) {
            known.became_zero(bytes, u64::MAX);
        }
        Ok(())
    }

    /// Makes a hole.
    pub(super) fn punch(&self, file: &dyn OpenFile, offset: u64, bytes: u64) -> io::Result<()> {
        let mut files = self.files();
        let inode = file.metadata()?.inode;
        file.punch(offset, bytes)?;
        if let Some(known) = files.get_mut(&inode) {
            known.became_zero(offset, offset.saturating_add(bytes));
        }
        Ok(())
    }

    /// Syncs a file: by the time that `flush` is done, what it had been written before is there
    /// for good. A power cut meanwhile takes of that, too.
    pub(super) fn sync(&self, inode: u64, flush: impl FnOnce()) {
        let files = self.files();
        let writes = self.writes.load(Ordering::Relaxed);
        drop(files);
        flush();
        let mut files = self.files();
        if files.get_mut(&inode).is_some_and(|file| file.has_synced(writes)) {
            files.remove(&inode);
        }
    }

    /// The power fails. Returns how many pieces of sectors were taken back.
    pub(super) fn cut(&self, seed: u64) -> io::Result<u64> {
        let mut coin = Coin { state: seed };
        let mut taken = 0;
        for (_, mut file) in self.files().drain() {
            taken += file.cut(&mut coin)?;
        }
        Ok(taken)
    }
}

impl File {
    /// Forgets what stood there before writes with lower numbers. True if there are no others.
    fn has_synced(&mut self, writes: u64) -> bool {
        self.replaced.retain(|it| it.write >= writes);
        self.replaced.is_empty()
    }

    /// Sectors of which something between `from` and `to` has become zero, for good, keep all that
    /// was written to them before: a file system with a journal lets no cut count before that.
    fn became_zero(&mut self, from: u64, to: u64) {
        let first = from / SECTOR_BYTES * SECTOR_BYTES;
        let end = to.checked_next_multiple_of(SECTOR_BYTES).unwrap_or(u64::MAX);
        let outside = |replaced: Replaced| replaced.outside(first, end);
        self.replaced = self.replaced.drain(..).flat_map(outside).collect();
    }

    /// From the last write to the first: a sector of which one write is kept keeps all before it.
    fn cut(&mut self, coin: &mut Coin) -> io::Result<u64> {
        let (mut kept, mut taken) = (HashSet::new(), 0);
        while let Some(Replaced { offset, bytes, .. }) = self.replaced.pop() {
            let end = offset.saturating_add(bytes.len() as u64);
            let mut at = offset;
            while at < end {
                let sector = at / SECTOR_BYTES;
                let next = end.min((sector + 1) * SECTOR_BYTES);
                if !kept.contains(&sector) && coin.toss() {
                    let piece = (at - offset) as usize..(next - offset) as usize;
                    self.file.write_all_at(&bytes[piece], at)?;
                    taken += 1;
                } else {
                    kept.insert(sector);
                }
                at = next;
            }
        }
        Ok(taken)
    }
}

impl Replaced {
    /// What of it lies before one place or behind the other.
    fn outside(mut self, from: u64, to: u64) -> impl Iterator<Item = Replaced> {
        let within = |at: u64| at.saturating_sub(self.offset).min(self.bytes.len() as u64) as usize;
        let (before, behind) = (within(from), within(to));
        let (offset, bytes) = (self.offset + behind as u64, self.bytes[behind..].to_vec());
        let rest = Replaced { write: self.write, offset, bytes };
        self.bytes.truncate(before);
        [self, rest].into_iter().filter(|replaced| !replaced.bytes.is_empty())
    }
}

/// Random bits from a seed (xorshift).
struct Coin {
    state: u64,
}

impl Coin {
    fn toss(&mut self) -> bool {
        // Zero would stay zero.
        self.state = self.state.max(1);
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 63 == 1
    }
}

#[cfg(test)]
mod tests;
