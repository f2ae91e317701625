//! The parity of what a cut leaves.
//!
//! Promise: the groups of the stripes that a cut changes are on the device before the first of
//! their blocks is written over. That of the one stripe which also holds frames that stay is in the
//! cut's file before, so they can be given back at any time.
//! Never: reads.

use std::io;

use holdfast_core::Lsn;
use holdfast_core::frame::Sealer;
use holdfast_core::ring::Geometry;

use super::Cut;
use crate::format::buffer::Buffer;
use crate::format::stripe::{Encoder, GROUP_BYTES, Spec, stripe_bytes};
use crate::segments::segment::Segment;

impl Cut {
    /// With the group of the stripe in which the cut begins, which holds these bytes before it.
    pub(crate) fn with_group(mut self, sealer: &Sealer, at: Geometry, bytes: &mut [u8]) -> Cut {
        let stripe = self.from.align_down(stripe_bytes(at.segment_bytes()));
        let mut group = vec![0; GROUP_BYTES as usize];
        self.encode_group(&mut self.spec(at).encoder(), (sealer, at), (stripe, bytes), &mut group);
        self.group = group;
        self
    }

    /// Whether all that this stripe holds is cut off.
    pub(crate) fn takes(&self, stripe: Lsn) -> bool {
        (self.from..self.to).contains(&stripe)
    }

    /// Whether the cut begins in this stripe, and not where it does.
    pub(crate) fn splits(&self, stripe: Lsn, stripe_bytes: u64) -> bool {
        stripe < self.from && self.from < stripe.advance(stripe_bytes)
    }

    /// Writes the groups of the stripes between two positions of a span, through to the device.
    pub(super) fn write_groups(
        &self,
        segment: &Segment,
        sealer: &Sealer,
        geometry: Geometry,
        (from, to): (Lsn, Lsn),
    ) -> io::Result<()> {
        let spec = self.spec(geometry);
        let (stripe_bytes, mut encoder) = (spec.stripe_bytes(), spec.encoder());
        let first = from.align_down(stripe_bytes);
        let count = to.align_up(stripe_bytes).since(first) / stripe_bytes;
        let mut groups = Buffer::zeroed((count * GROUP_BYTES) as usize);
        let mut stripe = first;
        for group in groups.bytes_mut().as_chunks_mut::<{ GROUP_BYTES as usize }>().0 {
            if stripe <= self.from {
                group.copy_from_slice(&self.group);
            } else {
                let mut bytes = vec![0; stripe_bytes as usize];
                let stripe = (stripe, &mut bytes[..]);
                self.encode_group(&mut encoder, (sealer, geometry), stripe, group);
            }
            stripe = stripe.advance(stripe_bytes);
        }
        segment.write_groups(first, groups.bytes())
    }

    /// The group of a stripe as the cut leaves it.
    fn encode_group(
        &self,
        encoder: &mut Encoder,
        (sealer, geometry): (&Sealer, Geometry),
        (stripe, bytes): (Lsn, &mut [u8]),
        group: &mut [u8],
    ) {
        self.overlay(sealer, geometry, stripe, bytes);
        let covered = self.to.min(stripe.advance(bytes.len() as u64)).since(stripe);
        encoder.encode(stripe, &bytes[..covered as usize], group);
    }

    fn spec(&self, geometry: Geometry) -> Spec {
        let Cut { identity, generation, .. } = *self;
        Spec { identity, generation, segment_bytes: geometry.segment_bytes() }
    }
}
