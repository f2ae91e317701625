//! What the tests share: a folder of their own, small disks, changes that follow from a seed.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;

use holdfast_blocks::{Vdisk, VdiskSpec};
use holdfast_io::fake::Random;
use holdfast_io::{Blocks, SendError, Sending};
use holdfast_memory::Medium;
use tempfile::TempDir;

pub(crate) const BLOCK: usize = 4096;

/// Whose region it is in these tests.
pub(crate) const IDENTITY: [u8; 16] = *b"a disk of mine..";

/// A folder in shared memory, removed at the end, and a medium in it.
pub(crate) fn shm() -> (TempDir, Medium) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("region");
    (folder, Medium::Shm { path })
}

pub(crate) fn path_of(medium: &Medium) -> PathBuf {
    medium.path().unwrap().to_owned()
}

pub(crate) fn create(medium: &Medium, blocks: usize) -> Vdisk {
    let size_bytes = (blocks * BLOCK) as u64;
    Vdisk::create(medium, &VdiskSpec { size_bytes, identity: IDENTITY }).unwrap()
}

/// All bytes of a disk.
pub(crate) fn content(disk: &dyn Blocks) -> Vec<u8> {
    let mut content = vec![0; disk.size_bytes() as usize];
    disk.read(&mut content, 0).unwrap();
    content
}

/// What a disk sends of a range, where it does, and otherwise what it reads.
pub(crate) fn sent(disk: &dyn Blocks, offset: usize, bytes: usize) -> Vec<u8> {
    let (near, mut far) = UnixStream::pair().unwrap();
    let far = thread::spawn(move || {
        let mut heard = Vec::new();
        far.read_to_end(&mut heard).unwrap();
        heard
    });
    let (mut at, end) = (offset, offset + bytes);
    let (mut head, tail): (&[u8], _) = (b"head", b"tail");
    while at < end {
        let what = Sending { head, offset: at as u64, bytes: end - at, tail };
        match disk.send(near.as_fd(), &what) {
            Ok(count) => {
                let of_head = count.min(head.len());
                at += (count - of_head).min(end - at);
                head = &head[of_head..];
                // The socket had room for the tail, or another try is made.
                let of_tail = count - of_head - (count - of_head).min(what.bytes);
                if at == end {
                    (&near).write_all(&tail[of_tail..]).unwrap();
                }
            }
            Err(SendError::Copy) => {
                let mut copy = vec![0; (end - at).min(BLOCK)];
                disk.read(&mut copy, at as u64).unwrap();
                (&near).write_all(head).unwrap();
                (&near).write_all(&copy).unwrap();
                (head, at) = (&[], at + copy.len());
                if at == end {
                    (&near).write_all(tail).unwrap();
                }
            }
            Err(SendError::Socket(error)) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                thread::yield_now();
            }
        }
    }
    drop(near);
    let heard = far.join().unwrap();
    let heard = heard.strip_prefix(b"head").unwrap();
    heard.strip_suffix(b"tail").unwrap().to_vec()
}

/// A change of a stretch of a disk.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Zero { offset: usize, bytes: usize },
    Discard { offset: usize, bytes: usize },
}

impl Change {
    /// A change of at most `most` bytes of the stretch from `start` to `end`: mostly of whole
    /// blocks, at times of any bytes.
    pub(crate) fn any(random: &mut Random, start: usize, end: usize, most: usize) -> Change {
        let unit = if random.chance(60) { BLOCK } else { 1 };
        let offset = start + random.below(((end - start) / unit) as u64) as usize * unit;
        let room = (end - offset).min(most) / unit;
        let bytes = (1 + random.below(room as u64) as usize) * unit;
        match random.below(10) {
            0 => Change::Zero { offset, bytes },
            1 => Change::Discard { offset, bytes },
            _ => Change::Write { offset, bytes: telling(random.any(), bytes) },
        }
    }

    pub(crate) fn apply(&self, disk: &dyn Blocks) {
        match self {
            Change::Write { offset, bytes } => disk.write(bytes, *offset as u64).unwrap(),
            Change::Zero { offset, bytes } => {
                disk.write_zeroes(*offset as u64, *bytes as u64).unwrap();
            }
            Change::Discard { offset, bytes } => {
                disk.discard(*offset as u64, *bytes as u64).unwrap();
            }
        }
    }

    pub(crate) fn model(&self, disk: &mut [u8]) {
        match self {
            Change::Write { offset, bytes } => {
                disk[*offset..][..bytes.len()].copy_from_slice(bytes);
            }
            Change::Zero { offset, bytes } | Change::Discard { offset, bytes } => {
                disk[*offset..][..*bytes].fill(0);
            }
        }
    }

    /// Whether a failure leaves all of it or none.
    pub(crate) fn is_one_step(&self) -> bool {
        matches!(self, Change::Write { .. })
    }
}

/// Bytes that tell whose they are and, at every sector, where they belong; made fast, so that who
/// writes them mostly writes.
fn telling(number: u64, bytes: usize) -> Vec<u8> {
    let mut content = vec![number as u8; bytes];
    for (index, sector) in content.as_chunks_mut::<512>().0.iter_mut().enumerate() {
        sector[..8].copy_from_slice(&(number ^ index as u64).to_le_bytes());
    }
    content
}

/// Runs `body` for seeds 1..=`count`, or for HOLDFAST_SEED alone. A failure prints the command
/// that repeats it.
pub(crate) fn for_seeds(test: &str, count: u64, body: impl Fn(u64, &mut Random)) {
    let given = std::env::var("HOLDFAST_SEED").ok().map(|seed| seed.parse().unwrap());
    for seed in given.map_or(1..=count, |seed| seed..=seed) {
        let replay = Replay { test, seed };
        body(seed, &mut Random::new(seed));
        std::mem::forget(replay);
    }
}

/// Dropped only while a failed body unwinds.
struct Replay<'a> {
    test: &'a str,
    seed: u64,
}

impl Drop for Replay<'_> {
    #[allow(clippy::print_stderr)] // the seed is for whoever reads the failure
    fn drop(&mut self) {
        eprintln!(
            "failed with seed {seed}; to repeat: HOLDFAST_SEED={seed} \
             cargo test -p holdfast-blocks --test it {test}",
            seed = self.seed,
            test = self.test
        );
    }
}
