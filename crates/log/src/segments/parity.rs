//! The stripe that a log is filling, and when its parity is written.
//!
//! What a drain takes is absorbed in the order of positions. A drain that completes a stripe writes
//! its group, too, before it writes its own bytes. The group of a stripe that is not complete is
//! written when the log is idle or closed.
//!
//! Promise: a group on the device is of bytes that are, or are about to be, where it says; one that
//! a cut tail left behind is gone before anything new is written in its stripe.
//! Never: says what is durable. Without all of this a log is as safe as it says it is.

use std::io;

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;
use holdfast_core::ring::Geometry;

use crate::format::buffer::Buffer;
use crate::format::stripe::{GROUP_BYTES, Group, Spec};
use crate::segments::segment::Segment;

/// Groups of consecutive stripes, to be written beside the drain that completes them.
pub(crate) struct ParityWrite {
    /// Where the first stripe starts.
    pub(crate) stripe: Lsn,
    pub(crate) groups: Buffer,
}

/// Stripes that a drain completes.
pub(crate) struct Complete {
    spec: Spec,
    stripe: Lsn,
    count: usize,
    /// What the first one holds from drains before.
    head: Vec<u8>,
}

impl Complete {
    /// Their groups. `bytes` are those that were absorbed; nobody else waits meanwhile.
    pub(crate) fn encode(self, bytes: &[u8]) -> ParityWrite {
        let Complete { spec, mut stripe, count, mut head } = self;
        let stripe_bytes = spec.stripe_bytes() as usize;
        let (first, mut encoder) = (stripe, spec.encoder());
        let mut groups = Buffer::zeroed(count * GROUP_BYTES as usize);
        let mut rest = bytes;
        for group in groups.bytes_mut().as_chunks_mut::<{ GROUP_BYTES as usize }>().0 {
            let (part, behind) = rest.split_at(stripe_bytes - head.len());
            rest = behind;
            match head.is_empty() {
                true => encoder.encode(stripe, part, group),
                false => {
                    head.extend_from_slice(part);
                    encoder.encode(stripe, &head, group);
                    head.clear();
                }
            }
            stripe = stripe.advance(spec.stripe_bytes());
        }
        ParityWrite { stripe: first, groups }
    }

    fn end(&self) -> Lsn {
        self.stripe.advance(self.count as u64 * self.spec.stripe_bytes())
    }
}

/// The stripe that is being filled.
pub(crate) struct Stripes {
    spec: Spec,
    stripe: Lsn,
    filled: Vec<u8>,
    /// Bytes of it that its group on the device covers.
    covered: usize,
}

impl Stripes {
    /// Where nothing has been written yet.
    pub(crate) fn begin(spec: Spec, stripe: Lsn) -> Stripes {
        Stripes { spec, stripe, filled: Vec::new(), covered: 0 }
    }

    /// Where a log goes on that is durable up to `durable`, with the segment there, if it has one.
    /// Groups further on are remains of a drain that never counted, and are wiped out.
    ///
    /// # Errors
    /// Of the device, unless only groups cannot be read: they are written anew.
    pub(crate) fn resume(
        segment: Option<&Segment>,
        spec: Spec,
        geometry: &Geometry,
        durable: Lsn,
    ) -> io::Result<Stripes> {
        let stripe = durable.align_down(spec.stripe_bytes());
        let mut stripes = Stripes::begin(spec, stripe);
        // The tables of the code take their time, once in a process: now, not in the first stripe.
        drop(spec.encoder());
        if let Some(segment) = segment {
            let count = geometry.span_end(durable).since(stripe) / spec.stripe_bytes();
            stripes.take_up(segment, durable, count as usize)?;
        }
        Ok(stripes)
    }

    /// Takes bytes that a drain was given: whole blocks of one span, where the last ones ended.
    /// Returns the stripes that they complete.
    pub(crate) fn absorb(&mut self, lsn: Lsn, bytes: &[u8]) -> Option<Complete> {
        assert!(lsn == self.stripe.advance(self.filled.len() as u64), "drains leave no gap");
        let stripe_bytes = self.spec.stripe_bytes() as usize;
        let count = (self.filled.len() + bytes.len()) / stripe_bytes;
        if count == 0 {
            self.filled.extend_from_slice(bytes);
            return None;
        }
        let rest = count * stripe_bytes - self.filled.len();
        let head = std::mem::replace(&mut self.filled, bytes[rest..].to_vec());
        let complete = Complete { spec: self.spec, stripe: self.stripe, count, head };
        (self.stripe, self.covered) = (complete.end(), 0);
        Some(complete)
    }

    /// The group of the stripe as far as it goes, unless the device has it.
    pub(crate) fn seal_partial(&mut self) -> Option<ParityWrite> {
        if self.covered == self.filled.len() {
            return None;
        }
        let mut groups = Buffer::zeroed(GROUP_BYTES as usize);
        self.spec.encoder().encode(self.stripe, &self.filled, groups.bytes_mut());
        self.covered = self.filled.len();
        Some(ParityWrite { stripe: self.stripe, groups })
    }

    /// Reads what the stripe holds, mended if its group can do that, and wipes out what no drain
    /// that counted has written.
    fn take_up(&mut self, segment: &Segment, durable: Lsn, count: usize) -> io::Result<()> {
        let mut bytes = Buffer::zeroed(self.spec.stripe_bytes() as usize);
        let filled = durable.since(self.stripe) as usize;
        segment.read(self.stripe, &mut bytes.bytes_mut()[..filled])?;
        let mut groups = Buffer::zeroed(count * GROUP_BYTES as usize);
        let unread = segment.read_groups(self.stripe, groups.bytes_mut()).is_err();
        let (groups, _) = groups.bytes().as_chunks::<{ GROUP_BYTES as usize }>();
        for (index, group) in groups.iter().enumerate() {
            let at = self.stripe.advance(index as u64 * self.spec.stripe_bytes());
            let group =
                Group::of(group, &self.spec.identity, (at, self.spec.stripe_bytes() as usize));
            let kept = group.as_ref().filter(|g| index == 0 && g.blocks() * BLOCK <= filled);
            if let Some(group) = kept {
                self.covered = mend(group, bytes.bytes_mut());
            } else if unread || group.is_some() {
                segment.write_groups(at, Buffer::zeroed(GROUP_BYTES as usize).bytes())?;
            }
        }
        self.filled.extend_from_slice(&bytes.bytes()[..filled]);
        Ok(())
    }
}

const BLOCK: usize = BLOCK_BYTES as usize;

/// Mends the first part of a stripe in memory. Returns how many of its bytes the group covers,
/// unless it is to be written anew.
fn mend(group: &Group<'_>, bytes: &mut [u8]) -> usize {
    let lost = group.lost(bytes);
    if lost.is_empty() && group.is_whole() {
        return group.blocks() * BLOCK;
    }
    // What it cannot give back stays as it is found; the checks of the frames tell.
    let _mended = !lost.is_empty() && group.restore(bytes, &lost);
    0
}
