//! Stripes: what parity is computed over, and the group of blocks that holds it.
//!
//! Byte table: FORMAT.md, "Group".
//!
//! Promise: blocks that a group gives back are those that it was made of, by a check of each; a
//! group of another place, log or round is never believed.
//! Never: touches a file; decides whether a block may be given back.

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;
use holdfast_io::checksum::crc32c;
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

use crate::format::bytes::{array_at, u32_at, u64_at};

/// Blocks that a group can give back.
pub(crate) const SHARDS: usize = 5;
/// A group: the shards, then the block that tells what they are of.
pub(crate) const GROUP_BYTES: u64 = (SHARDS as u64 + 1) * BLOCK_BYTES;

/// Most blocks in a stripe.
const STRIPE_BLOCKS_MAX: u64 = 64;
const BLOCK: usize = BLOCK_BYTES as usize;
const MAGIC: u32 = 0x5046_4648;
const VERSION: u32 = 1;
/// Where the checks of the blocks begin, and those of the shards.
const BLOCK_CHECKS: usize = 48;
const SHARD_CHECKS: usize = BLOCK_CHECKS + 4 * STRIPE_BLOCKS_MAX as usize;
const TOLD_BYTES: usize = SHARD_CHECKS + 4 * SHARDS;

const _: () = assert!(TOLD_BYTES <= BLOCK);

/// Bytes of the log in one stripe. A span is a whole number of stripes.
pub(crate) fn stripe_bytes(segment_bytes: u64) -> u64 {
    segment_bytes.min(STRIPE_BLOCKS_MAX * BLOCK_BYTES)
}

/// What a group says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    pub(crate) identity: [u8; 16],
    /// The open of the log that made it.
    pub(crate) generation: u32,
    /// Where its stripe starts.
    pub(crate) stripe: Lsn,
    /// Blocks of the stripe that it covers, from the first one on. The others count as zeros.
    pub(crate) blocks: u32,
    pub(crate) block_checks: [u32; STRIPE_BLOCKS_MAX as usize],
    pub(crate) shard_checks: [u32; SHARDS],
}

impl GroupHeader {
    /// The last block of a group as bytes.
    pub(crate) fn encode(&self, block: &mut [u8]) {
        block.fill(0);
        block[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        block[4..8].copy_from_slice(&VERSION.to_le_bytes());
        block[12..16].copy_from_slice(&self.generation.to_le_bytes());
        block[16..32].copy_from_slice(&self.identity);
        block[32..40].copy_from_slice(&self.stripe.get().to_le_bytes());
        block[40..44].copy_from_slice(&self.blocks.to_le_bytes());
        block[44..48].copy_from_slice(&(SHARDS as u32).to_le_bytes());
        let checks = self.block_checks.iter().chain(&self.shard_checks);
        let (places, _) = block[BLOCK_CHECKS..TOLD_BYTES].as_chunks_mut();
        for (place, check) in places.iter_mut().zip(checks) {
            *place = check.to_le_bytes();
        }
        let check = crc32c(0, &block[12..]);
        block[8..12].copy_from_slice(&check.to_le_bytes());
    }

    /// A block as the last one of a group. None if it is not whole.
    fn decode(block: &[u8]) -> Option<GroupHeader> {
        let told = u32_at(block, 0) == MAGIC
            && u32_at(block, 4) == VERSION
            && u32_at(block, 8) == crc32c(0, &block[12..])
            && u32_at(block, 40) <= STRIPE_BLOCKS_MAX as u32
            && u32_at(block, 44) == SHARDS as u32;
        told.then(|| GroupHeader {
            identity: array_at(block, 16),
            generation: u32_at(block, 12),
            stripe: Lsn(u64_at(block, 32)),
            blocks: u32_at(block, 40),
            block_checks: std::array::from_fn(|at| u32_at(block, BLOCK_CHECKS + 4 * at)),
            shard_checks: std::array::from_fn(|at| u32_at(block, SHARD_CHECKS + 4 * at)),
        })
    }
}

/// A group read from a device, whose header is whole and of this stripe.
pub(crate) struct Group<'a> {
    header: GroupHeader,
    shards: &'a [u8],
}

impl<'a> Group<'a> {
    /// These bytes as the group of the stripe of so many bytes that starts at `stripe`.
    pub(crate) fn of(
        bytes: &'a [u8],
        identity: &[u8; 16],
        (stripe, stripe_bytes): (Lsn, usize),
    ) -> Option<Group<'a>> {
        let (shards, last) = bytes.split_at(SHARDS * BLOCK);
        let header = GroupHeader::decode(last)?;
        let fits = header.blocks as usize <= stripe_bytes / BLOCK;
        let own = fits && header.identity == *identity && header.stripe == stripe;
        own.then_some(Group { header, shards })
    }

    /// Blocks of the stripe that it covers.
    pub(crate) fn blocks(&self) -> usize {
        self.header.blocks as usize
    }

    /// Whether all shards are as they were written.
    pub(crate) fn is_whole(&self) -> bool {
        (0..SHARDS).all(|shard| self.shard(shard).is_some())
    }

    /// The covered blocks of `stripe` that are not what the group was made of.
    pub(crate) fn lost(&self, stripe: &[u8]) -> Vec<usize> {
        let block = |index: &usize| crc32c(0, block_of(stripe, *index));
        let differs = |index: &usize| block(index) != self.header.block_checks[*index];
        (0..self.blocks()).filter(differs).collect()
    }

    /// Gives the blocks back that are `lost`. What lies behind the covered ones is not looked at.
    /// False, and `stripe` as it was, if there are more of them than whole shards.
    pub(crate) fn restore(&self, stripe: &mut [u8], lost: &[usize]) -> bool {
        let Some(restored) = self.decode(stripe, lost) else { return false };
        for (index, block) in lost.iter().zip(&restored) {
            stripe[index * BLOCK..][..BLOCK].copy_from_slice(block);
        }
        true
    }

    /// The lost blocks, each checked.
    fn decode(&self, stripe: &[u8], lost: &[usize]) -> Option<Vec<Vec<u8>>> {
        let blocks = stripe.len() / BLOCK;
        let mut decoder = ReedSolomonDecoder::new(blocks, SHARDS, BLOCK).ok()?;
        for index in (0..blocks).filter(|index| !lost.contains(index)) {
            let covered = index < self.blocks();
            let block = if covered { block_of(stripe, index) } else { &[0; BLOCK][..] };
            decoder.add_original_shard(index, block).ok()?;
        }
        for shard in 0..SHARDS {
            if let Some(bytes) = self.shard(shard) {
                decoder.add_recovery_shard(shard, bytes).ok()?;
            }
        }
        let decoded = decoder.decode().ok()?;
        let restored = lost.iter().map(|index| decoded.restored_original(*index));
        let restored: Vec<Vec<u8>> =
            restored.map(|b| b.map(<[u8]>::to_vec)).collect::<Option<_>>()?;
        let checked = lost.iter().zip(&restored);
        let mut whole =
            checked.map(|(at, block)| crc32c(0, block) == self.header.block_checks[*at]);
        whole.all(|whole| whole).then_some(restored)
    }

    /// A shard, if it is whole.
    fn shard(&self, index: usize) -> Option<&[u8]> {
        let bytes = block_of(self.shards, index);
        (crc32c(0, bytes) == self.header.shard_checks[index]).then_some(bytes)
    }
}

/// What the stripes of one open of a log have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) identity: [u8; 16],
    pub(crate) generation: u32,
    pub(crate) segment_bytes: u64,
}

impl Spec {
    /// Bytes of one stripe.
    pub(crate) fn stripe_bytes(&self) -> u64 {
        stripe_bytes(self.segment_bytes)
    }

    pub(crate) fn encoder(&self) -> Encoder {
        let blocks = (self.stripe_bytes() / BLOCK_BYTES) as usize;
        let code = ReedSolomonEncoder::new(blocks, SHARDS, BLOCK);
        let code = code.expect("a stripe has 16 to 64 blocks of a multiple of 64 bytes");
        Encoder { spec: *self, blocks, code }
    }
}

/// Makes groups.
pub(crate) struct Encoder {
    spec: Spec,
    blocks: usize,
    code: ReedSolomonEncoder,
}

impl Encoder {
    /// The group of a stripe, or of as much as there is of it: whole blocks.
    pub(crate) fn encode(&mut self, stripe: Lsn, bytes: &[u8], group: &mut [u8]) {
        let covered = bytes.len() / BLOCK;
        let mut block_checks = [0; STRIPE_BLOCKS_MAX as usize];
        for (block, check) in bytes.as_chunks::<BLOCK>().0.iter().zip(&mut block_checks) {
            self.add(block);
            *check = crc32c(0, block);
        }
        (covered..self.blocks).for_each(|_| self.add(&[0; BLOCK]));
        let (shards, last) = group.split_at_mut(SHARDS * BLOCK);
        let encoded = self.code.encode().expect("every block was added");
        let mut shard_checks = [0; SHARDS];
        for (index, shard) in encoded.recovery_iter().enumerate() {
            shards[index * BLOCK..][..BLOCK].copy_from_slice(shard);
            shard_checks[index] = crc32c(0, shard);
        }
        let Spec { identity, generation, .. } = self.spec;
        let blocks = covered as u32;
        GroupHeader { identity, generation, stripe, blocks, block_checks, shard_checks }
            .encode(last);
    }

    fn add(&mut self, block: &[u8]) {
        self.code.add_original_shard(block).expect("as many as it was made for");
    }
}

fn block_of(bytes: &[u8], index: usize) -> &[u8] {
    &bytes[index * BLOCK..][..BLOCK]
}
