//! Giving damaged blocks back from the parity, in memory.
//!
//! Promise: a block is changed only if it lies below what is proved to have been durable, its check
//! says that it is damaged, and the bytes given back have that check; what a device does not give
//! at all counts as damaged.
//! Never: writes; decides what is damaged (whoever found a frame that is not whole does).

use holdfast_core::Lsn;
use holdfast_core::frame::{BLOCK_BYTES, Sealer};
use holdfast_core::ring::Geometry;
use holdfast_io::checksum::crc32c;

use crate::config::Parity;
use crate::format::buffer::Buffer;
use crate::format::stripe::{GROUP_BYTES, Group, stripe_bytes};
use crate::segments::Table;
use crate::segments::cut::Cut;
use crate::segments::segment::Segment;

const BLOCK: usize = BLOCK_BYTES as usize;

/// How the stripes of one log are mended.
pub(crate) struct Mender {
    identity: [u8; 16],
    geometry: Geometry,
    stripe_bytes: u64,
    /// One that is not finished: stripes are taken as it is to leave them.
    cut: Option<Cut>,
}

impl Mender {
    /// None for a log without parity.
    pub(crate) fn of(table: &Table, geometry: Geometry) -> Option<Mender> {
        let (identity, parity) = (table.catalogue.identity, table.catalogue.parity);
        let stripe_bytes = stripe_bytes(geometry.segment_bytes());
        let mender = Mender { identity, geometry, stripe_bytes, cut: table.cut.clone() };
        (parity != Parity::None).then_some(mender)
    }

    /// Mends what it can of `bytes`, whole blocks of one span that begin at `from`, and returns
    /// where the blocks lie that it changed.
    pub(crate) fn mend(
        &self,
        segment: &Segment,
        from: Lsn,
        bytes: &mut [u8],
        proved: Lsn,
    ) -> Vec<Lsn> {
        let to = from.advance(bytes.len() as u64).min(proved.align_down(BLOCK_BYTES));
        let mut mended = Vec::new();
        let mut stripe = from.align_down(self.stripe_bytes);
        while stripe < to {
            let Restored { stripe: whole, blocks } = self.restore(segment, stripe);
            for block in blocks {
                let at = stripe.advance((block * BLOCK) as u64);
                if from <= at && at < to {
                    let into = &mut bytes[at.since(from) as usize..][..BLOCK];
                    into.copy_from_slice(&whole.bytes()[block * BLOCK..][..BLOCK]);
                    mended.push(at);
                }
            }
            stripe = stripe.advance(self.stripe_bytes);
        }
        mended
    }

    /// What the group of a stripe says of it.
    pub(crate) fn judge(&self, segment: &Segment, stripe: Lsn) -> Judged {
        let (bytes, group) = self.read(segment, stripe);
        match Group::of(group.bytes(), &self.identity, (stripe, self.stripe_bytes as usize)) {
            None => Judged::Unprotected,
            Some(_) if self.is_cut_off(stripe) => Judged::Unprotected,
            Some(group) if group.is_whole() && group.lost(bytes.bytes()).is_empty() => {
                Judged::Sound
            }
            Some(_) => Judged::Damaged,
        }
    }

    /// Bytes of one stripe.
    pub(crate) fn stripe_bytes(&self) -> u64 {
        self.stripe_bytes
    }

    /// A stripe, mended if that can be done.
    pub(crate) fn whole(&self, segment: &Segment, stripe: Lsn) -> Buffer {
        self.restore(segment, stripe).stripe
    }

    fn restore(&self, segment: &Segment, stripe: Lsn) -> Restored {
        let (mut bytes, group) = self.read(segment, stripe);
        let group = Group::of(group.bytes(), &self.identity, (stripe, self.stripe_bytes as usize));
        let group = group.filter(|_| !self.is_cut_off(stripe));
        let lost = group.as_ref().map_or(Vec::new(), |group| group.lost(bytes.bytes()));
        let restored = group.is_some_and(|group| group.restore(bytes.bytes_mut(), &lost));
        Restored { stripe: bytes, blocks: if restored { lost } else { Vec::new() } }
    }

    fn read(&self, segment: &Segment, stripe: Lsn) -> (Buffer, Buffer) {
        let mut bytes = Buffer::zeroed(self.stripe_bytes as usize);
        let mut group = Buffer::zeroed(GROUP_BYTES as usize);
        segment.salvage(stripe, bytes.bytes_mut());
        segment.salvage_group(stripe, group.bytes_mut());
        if let Some(cut) = &self.cut {
            let sealer = Sealer::new(&self.identity, crc32c);
            cut.overlay(&sealer, self.geometry, stripe, bytes.bytes_mut());
            if cut.splits(stripe, self.stripe_bytes) && !cut.group.is_empty() {
                group.bytes_mut().copy_from_slice(&cut.group);
            }
        }
        (bytes, group)
    }

    /// Whether nothing of a stripe is to stay. Its group may be of what was there.
    fn is_cut_off(&self, stripe: Lsn) -> bool {
        self.cut.as_ref().is_some_and(|cut| cut.takes(stripe))
    }
}

/// A stripe, and which of its blocks were given back.
struct Restored {
    stripe: Buffer,
    blocks: Vec<usize>,
}

/// A stripe beside its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// They agree.
    Sound,
    /// Some block of either is not what it was.
    Damaged,
    /// It has no group, or one that is not whole.
    Unprotected,
}
