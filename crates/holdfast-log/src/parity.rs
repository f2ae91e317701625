//! The stripe that a log is filling, and when its parity is written.
//!
//! What a drain takes is absorbed in the order of positions. A drain that completes a stripe writes
//! its group, too, before its sync: same sync, other blocks. The group of a stripe that is not
//! complete is written when the log is idle or closed.
//!
//! Promise: a group on the device is of bytes that are, or are about to be, where it says; one that
//! a cut tail left behind is gone before anything new is written in its stripe.
//! Never: says what is durable. Without all of this a log is as safe as it says it is.

use std::io;

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;
use holdfast_core::ring::Geometry;

use crate::buffer::Buffer;
use crate::segment::Segment;
use crate::stripe::{Encoder, GROUP_BYTES, Group, stripe_bytes};

/// Groups of consecutive stripes, to be written beside the drain that completes them.
pub(crate) struct ParityWrite {
    /// Where the first stripe starts.
    pub(crate) stripe: Lsn,
    pub(crate) groups: Buffer,
}

/// The stripe that is being filled.
pub(crate) struct Stripes {
    encoder: Encoder,
    stripe_bytes: u64,
    stripe: Lsn,
    filled: Vec<u8>,
    /// Bytes of it that its group on the device covers.
    covered: usize,
}

impl Stripes {
    /// Where nothing has been written yet.
    pub(crate) fn begin(encoder: Encoder, segment_bytes: u64, stripe: Lsn) -> Stripes {
        let stripe_bytes = stripe_bytes(segment_bytes);
        let filled = Vec::with_capacity(stripe_bytes as usize);
        Stripes { encoder, stripe_bytes, stripe, filled, covered: 0 }
    }

    /// Where a log goes on that is durable up to `durable`, with the segment there, if it has one.
    /// Groups further on are remains of a drain that never counted, and are wiped out.
    ///
    /// # Errors
    /// Of the device, unless only groups cannot be read: they are written anew.
    pub(crate) fn resume(
        segment: Option<&Segment>,
        encoder: Encoder,
        identity: &[u8; 16],
        geometry: &Geometry,
        durable: Lsn,
    ) -> io::Result<Stripes> {
        let stripe = durable.align_down(stripe_bytes(geometry.segment_bytes()));
        let mut stripes = Stripes::begin(encoder, geometry.segment_bytes(), stripe);
        if let Some(segment) = segment {
            let count = geometry.span_end(durable).since(stripe) / stripes.stripe_bytes;
            stripes.take_up(segment, identity, durable, count as usize)?;
        }
        Ok(stripes)
    }

    /// Takes bytes that a drain was given: whole blocks of one span, where the last ones ended.
    /// Returns the groups of the stripes that they complete.
    pub(crate) fn absorb(&mut self, lsn: Lsn, bytes: &[u8]) -> Option<ParityWrite> {
        assert!(lsn == self.stripe.advance(self.filled.len() as u64), "drains leave no gap");
        let stripe_bytes = self.stripe_bytes as usize;
        let complete = (self.filled.len() + bytes.len()) / stripe_bytes;
        let mut groups = Buffer::zeroed(complete * GROUP_BYTES as usize);
        let (stripe, mut rest) = (self.stripe, bytes);
        for group in groups.bytes_mut().chunks_exact_mut(GROUP_BYTES as usize) {
            let (part, behind) = rest.split_at(stripe_bytes - self.filled.len());
            rest = behind;
            self.complete(part, group);
        }
        self.filled.extend_from_slice(rest);
        (complete > 0).then_some(ParityWrite { stripe, groups })
    }

    /// The group of the stripe as far as it goes, unless the device has it.
    pub(crate) fn seal_partial(&mut self) -> Option<ParityWrite> {
        if self.covered == self.filled.len() {
            return None;
        }
        let mut groups = Buffer::zeroed(GROUP_BYTES as usize);
        self.encoder.encode(self.stripe, &self.filled, groups.bytes_mut());
        self.covered = self.filled.len();
        Some(ParityWrite { stripe: self.stripe, groups })
    }

    /// Ends the stripe with `part`. A stripe that came as a whole is not copied.
    fn complete(&mut self, part: &[u8], group: &mut [u8]) {
        if self.filled.is_empty() {
            self.encoder.encode(self.stripe, part, group);
        } else {
            self.filled.extend_from_slice(part);
            self.encoder.encode(self.stripe, &self.filled, group);
        }
        self.filled.clear();
        (self.stripe, self.covered) = (self.stripe.advance(self.stripe_bytes), 0);
    }

    /// Reads what the stripe holds, mended if its group can do that, and wipes out what no drain
    /// that counted has written.
    fn take_up(
        &mut self,
        segment: &Segment,
        identity: &[u8; 16],
        durable: Lsn,
        count: usize,
    ) -> io::Result<()> {
        let mut bytes = Buffer::zeroed(self.stripe_bytes as usize);
        let filled = durable.since(self.stripe) as usize;
        segment.read(self.stripe, &mut bytes.bytes_mut()[..filled])?;
        let mut groups = Buffer::zeroed(count * GROUP_BYTES as usize);
        let unread = segment.read_groups(self.stripe, groups.bytes_mut()).is_err();
        let mut wiped = false;
        for (index, group) in groups.bytes().chunks_exact(GROUP_BYTES as usize).enumerate() {
            let at = self.stripe.advance(index as u64 * self.stripe_bytes);
            let group = Group::of(group, identity, at);
            let kept = group.as_ref().filter(|g| index == 0 && g.blocks() * BLOCK <= filled);
            if let Some(group) = kept {
                self.covered = mend(group, bytes.bytes_mut());
            } else if unread || group.is_some() {
                segment.write_groups(at, Buffer::zeroed(GROUP_BYTES as usize).bytes())?;
                wiped = true;
            }
        }
        self.filled.extend_from_slice(&bytes.bytes()[..filled]);
        if wiped { segment.sync() } else { Ok(()) }
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
