//! What the tests share: a store and a disk that outlive who uses them, and a client.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_blocks::{Vdisk, VdiskSpec};
use holdfast_io::Blocks;
use holdfast_io::fake::Random;
use holdfast_memory::Medium;
use holdfast_snapshot::{
    Answer, NewImage, PIECE_BYTES_MAX, Refusal, Request, Snapshot, Snapshots, Source,
};

pub(crate) const PAGE: usize = 4096;
pub(crate) const STORE_PAGES: u64 = 2048;
pub(crate) const DISK_PAGES: u64 = 70;

/// A client of the tests.
pub(crate) const ME: u64 = 7;

pub(crate) fn disk_of(pages: u64) -> Arc<Vdisk> {
    let spec = VdiskSpec { size_bytes: pages * PAGE as u64, identity: [1; 16] };
    Arc::new(Vdisk::create(&Medium::Private, &spec).unwrap())
}

/// What outlives a process: a store and a disk.
pub(crate) struct Machine {
    pub(crate) store: Arc<Vdisk>,
    pub(crate) disk: Arc<Vdisk>,
}

impl Machine {
    pub(crate) fn new() -> Machine {
        Machine { store: disk_of(STORE_PAGES), disk: disk_of(DISK_PAGES) }
    }

    pub(crate) fn open(&self) -> Snapshots {
        Snapshots::open(self.store.clone(), disks("ram", self.disk.clone())).unwrap()
    }
}

pub(crate) fn disks(name: &str, disk: Arc<dyn Source>) -> BTreeMap<String, Arc<dyn Source>> {
    BTreeMap::from([(name.to_owned(), disk)])
}

/// Has a request done; none if the machine failed.
pub(crate) fn asked(snapshots: &Snapshots, request: &Request, piece: &[u8]) -> Option<Answered> {
    let mut answer = Vec::new();
    snapshots.respond(ME, &request.encode(piece), &mut answer).ok()?;
    let (answer, read) = Answer::decode(&answer).unwrap();
    Some(Answered { answer, read: read.to_vec() })
}

#[derive(Debug, PartialEq)]
pub(crate) struct Answered {
    pub(crate) answer: Answer,
    pub(crate) read: Vec<u8>,
}

#[track_caller]
pub(crate) fn ask(snapshots: &Snapshots, request: &Request) -> Answer {
    asked(snapshots, request, &[]).expect("the machine is well").answer
}

#[track_caller]
pub(crate) fn refused(snapshots: &Snapshots, request: &Request) -> Refusal {
    match ask(snapshots, request) {
        Answer::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn begin(id: u64, memory: &[u8]) -> Request {
    let images = vec![NewImage { name: "memory".into(), size_bytes: memory.len() as u64 }];
    let (name, note) = (format!("s{id}"), "a note".to_owned());
    Request::Begin { id, name, taken_ms: id, note, images }
}

/// All that it takes to make a snapshot.
pub(crate) fn making(id: u64, memory: &[u8]) -> Vec<(Request, Vec<u8>)> {
    let mut requests = vec![(begin(id, memory), Vec::new())];
    for (index, piece) in memory.chunks(PIECE_BYTES_MAX).enumerate() {
        let offset = (index * PIECE_BYTES_MAX) as u64;
        requests.push((Request::Put { id, image: 0, offset }, piece.to_vec()));
    }
    requests.push((Request::TakeDisks { id }, Vec::new()));
    requests.push((Request::Commit { id }, Vec::new()));
    requests
}

/// Makes a snapshot; none if the machine failed on the way.
pub(crate) fn make(snapshots: &Snapshots, id: u64, memory: &[u8]) -> Option<()> {
    for (request, piece) in making(id, memory) {
        assert_eq!(asked(snapshots, &request, &piece)?.answer, Answer::Done);
    }
    Some(())
}

pub(crate) fn list(snapshots: &Snapshots) -> Vec<Snapshot> {
    match ask(snapshots, &Request::List) {
        Answer::Snapshots(list) => list,
        other => panic!("{other:?}"),
    }
}

/// All of an image.
pub(crate) fn image(snapshots: &Snapshots, id: u64, image: u32) -> Result<Vec<u8>, Refusal> {
    let there = list(snapshots).into_iter().find(|it| it.id == id).unwrap();
    let size_bytes = there.images[image as usize].size_bytes;
    let mut all = Vec::new();
    while (all.len() as u64) < size_bytes {
        let offset = all.len() as u64;
        let bytes = (size_bytes - offset).min(PIECE_BYTES_MAX as u64) as u32;
        let answered = asked(snapshots, &Request::Read { id, image, offset, bytes }, &[]).unwrap();
        match answered.answer {
            Answer::Bytes => all.extend(answered.read),
            Answer::Zeros => all.resize(all.len() + bytes as usize, 0),
            Answer::Refused(refusal) => return Err(refusal),
            other => panic!("{other:?}"),
        }
    }
    Ok(all)
}

/// Bytes that nobody has: what is refused for its size says so.
pub(crate) fn room_bytes(snapshots: &Snapshots) -> u64 {
    let images = vec![NewImage { name: "too much".into(), size_bytes: 1 << 60 }];
    let (name, note) = ("too-much".to_owned(), String::new());
    let request = Request::Begin { id: u64::MAX, name, taken_ms: 0, note, images };
    match refused(snapshots, &request) {
        Refusal::NoSpace { room_bytes, .. } => room_bytes,
        other => panic!("{other:?}"),
    }
}

/// Pages, of which two in three are not zeros.
pub(crate) fn content(seed: u64, pages: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut page = |_| match random.below(3) {
        0 => vec![0; PAGE],
        _ => random.any().to_le_bytes().repeat(PAGE / 8),
    };
    (0..pages).flat_map(&mut page).collect()
}

pub(crate) fn bytes_of(disk: &dyn Blocks) -> Vec<u8> {
    let mut bytes = vec![0; disk.size_bytes() as usize];
    disk.read(&mut bytes, 0).unwrap();
    bytes
}
