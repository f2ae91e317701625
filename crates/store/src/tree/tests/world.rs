//! A tree on a real stream, whose pages are made of their records whenever they have left the pool,
//! and the checker of trees.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use holdfast_io::Files;
use holdfast_io::fake::{EIO, Effect, FakeClock, FakeFiles, Fault, Operation};
use holdfast_log::{CommitLog, Log, LogConfig};
use holdfast_memory::{Medium, Region, RegionSpec};
use holdfast_pages::{
    Feed, FlushError, Page, PageNumber, Records, Rsn, Stream, Tag, What, apply, parse,
};

use super::super::{Seek, Tree};
use crate::face::config::Eviction;
use crate::node::Node;
use crate::node::contents::NodeContents;
use crate::pool::allocator::Allocator;
use crate::pool::{Below, Pool};
use crate::snapshot::formers::Formers;
use crate::trees::Trees;

const IDENTITY: [u8; 16] = *b"a store in tests";
const CONFIG: LogConfig =
    LogConfig { dirty_bytes_max: 1 << 20, ..LogConfig::in_ring(RING_BYTES, 1 << 20, 2) };
const RING_BYTES: u64 = 64 << 20;

/// What trees stand on.
pub(crate) struct World {
    files: FakeFiles,
    pub(crate) pool: Pool<Arc<Kept>>,
    pub(crate) stream: Arc<Stream>,
    pub(crate) numbers: Allocator,
    pub(crate) formers: Formers,
    pub(crate) root: PageNumber,
}

/// Where each record of a page stands, and its bytes.
type OfPages = BTreeMap<PageNumber, Vec<(Rsn, Vec<u8>)>>;

/// Every record that is stable, and how far pages that left the pool are.
pub(crate) struct Kept {
    stream: Arc<Stream>,
    records: Mutex<OfPages>,
    noted: Mutex<BTreeMap<PageNumber, Rsn>>,
    /// What becomes of pages while they are loaded.
    damage: Mutex<BTreeMap<PageNumber, Damage>>,
}

/// What becomes of the contents of a page.
pub(crate) type Damage = fn(&mut [u8]);

impl World {
    /// A tree with nothing in it, and a pool of so many frames.
    pub(crate) fn new(frames: usize) -> World {
        let files = FakeFiles::new(1);
        let stream = Arc::new(stream(&files));
        let (records, noted) = (Mutex::default(), Mutex::default());
        let damage = Mutex::default();
        let kept = Kept { stream: Arc::clone(&stream), records, noted, damage };
        let (pool, numbers) = (
            Pool::new(frames, Arc::new(kept), Eviction::Unused),
            Allocator::new(PageNumber(1), vec![]),
        );
        let formers = Formers::new(1 << 20);
        let root = Tree::create(&pool, &stream, &numbers, &formers).expect("there is room");
        World { files, pool, stream, numbers, formers, root }
    }

    pub(crate) fn trees(&self) -> Trees<'_, Arc<Kept>> {
        Trees::new(&self.pool, &self.stream, &self.numbers, &self.formers)
    }

    /// Damages a page in its frame.
    pub(crate) fn damage(&self, number: PageNumber, damage: Damage) {
        damage(self.pool.write(number).expect("it is there").contents_mut());
    }

    /// Damages a page wherever it comes from.
    pub(crate) fn damage_for_good(&self, number: PageNumber, damage: Damage) {
        self.damage(number, damage);
        self.pool.below.damage.lock().expect("no test panics here").insert(number, damage);
    }

    /// Lets the log's device fail, after which nothing is put.
    pub(crate) fn fail_log(&self) {
        let (operation, effect) = (Operation::SyncData, Effect::Errno(EIO));
        self.files.fail(Fault { operation, skip: 0, effect });
        self.stream.sync(self.stream.next()).expect_err("the device failed");
    }

    /// Fills the log with what is no page's, and lets nobody make room.
    pub(crate) fn fill_log(&self) {
        self.stream.make_room_by(|_| Err(Arc::new(io::Error::other("there is no room"))));
        let much = vec![0; self.stream.group_bytes_max() as usize / 2];
        loop {
            let put = self.stream.append(&mut |group| {
                group.put(&What::Checkpoint(&much));
            });
            put.expect("it fits");
            match self.stream.flush() {
                Ok(_) => {}
                Err(FlushError::Full(_)) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(crate) fn tree(&self) -> Tree<'_, Arc<Kept>> {
        self.trees().tree(self.root)
    }
}

fn stream(files: &FakeFiles) -> Stream {
    Log::create(files, IDENTITY, &CONFIG).expect("an empty disk takes a log");
    let spec = RegionSpec { ring_bytes: RING_BYTES, roster_bytes: 64, identity: IDENTITY };
    let region = Arc::new(Region::create(&Medium::Private, &spec).expect("memory for a region"));
    let (files, clock): (Arc<dyn Files>, _) =
        (Arc::new(files.clone()), Arc::new(FakeClock::default()));
    let (log, _) =
        Log::open(files, region, Arc::<FakeClock>::clone(&clock), CONFIG).expect("a new log opens");
    let log: Arc<dyn CommitLog> = Arc::new(log);
    Stream::new(log, clock, Tag::of(&IDENTITY), Rsn::FIRST, vec![])
}

impl Kept {
    /// The page as its stable records up to this one make it.
    pub(crate) fn made(&self, number: PageNumber, upto: Rsn) -> Page {
        let (mut page, mut records) = (Page::zeroed(), self.records.lock().expect("sound"));
        self.take_feed(&mut records);
        for (rsn, bytes) in records.get(&number).into_iter().flatten() {
            if *rsn <= upto {
                let record = parse(*rsn, bytes).expect("it was put");
                apply(&mut page, &record, &NodeContents).expect("it fits");
            }
        }
        page
    }

    fn take_feed(&self, records: &mut OfPages) {
        let mut feed = Feed::default();
        self.stream.take_feed(&mut feed);
        let Some(first) = feed.frames.first().map(|frame| frame.first) else { return };
        for record in Records::new(first, &feed.bytes) {
            let record = record.expect("it was put");
            let bytes = &feed.bytes[record.rsn.since(first) as usize..];
            let bytes = bytes[..record.end.since(record.rsn) as usize].to_vec();
            if let Some(link) = record.what.link() {
                records.entry(link.page).or_default().push((record.rsn, bytes));
            }
        }
    }
}

/// The page has no records.
#[derive(Debug)]
pub(crate) struct Unknown;

impl Below for Arc<Kept> {
    type Error = Unknown;

    fn load(&self, number: PageNumber, into: &mut Page) -> Result<(), Unknown> {
        let noted = self.noted.lock().expect("no test panics here").get(&number).copied();
        *into = self.made(number, noted.ok_or(Unknown)?);
        if let Some(damage) = self.damage.lock().expect("no test panics here").get(&number) {
            damage(into.contents_mut());
        }
        Ok(())
    }

    fn cleaned(&self) -> Rsn {
        Rsn::FIRST
    }

    fn stable(&self) -> Rsn {
        self.stream.stable()
    }

    fn settle(&self) -> Result<(), Unknown> {
        let (mut records, mut noted) =
            (self.records.lock().expect("sound"), self.noted.lock().expect("sound"));
        self.take_feed(&mut records);
        for (number, of_page) in &*records {
            let last = of_page.last().expect("a page has records").0;
            noted.insert(*number, last);
        }
        Ok(())
    }

    fn note(&self, number: PageNumber, rsn: Rsn) {
        self.noted.lock().expect("no test panics here").insert(number, rsn);
    }
}

/// What a tree holds, ghosts left out.
pub(crate) type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// The checker: pages cover all keys once, each is what its neighbours say, and is what its records
/// make of it.
pub(crate) fn check(world: &World) -> Result<Contents, String> {
    world.stream.flush().expect("the log takes it");
    let mut contents = Contents::new();
    let end = walk(world, world.root, &[], &mut contents)?;
    if end.is_some() { Err(format!("the tree ends at {end:?}")) } else { Ok(contents) }
}

/// Adds what is below and to the right of a page, which begins at `low`, and returns where it ends.
fn walk(
    world: &World,
    number: PageNumber,
    low: &[u8],
    contents: &mut Contents,
) -> Result<Option<Vec<u8>>, String> {
    let page = (*world.pool.read(number).map_err(|error| format!("{error:?}"))?).clone();
    if !world.pool.below.made(number, page.rsn()).same_bytes(&page) {
        return Err(format!("page {number} is not what its records make of it"));
    }
    let node = Node::of(&page).map_err(|unfit| unfit.0.to_string())?;
    let (shape, mut at) = (node.shape(), Some(low.to_vec()));
    if shape.low != low {
        return Err(format!("page {number} begins at {:?}, not at {low:?}", shape.low));
    }
    for (place, entry) in node.entries().enumerate() {
        let key = node.key(place);
        if node.level() == 0 && !entry.ghost {
            contents.insert(key, entry.value.to_vec());
        } else if node.level() > 0 {
            if at.as_ref() != Some(&key) || Seek::At(&key).child_place(node) != Ok(place) {
                return Err(format!("page {number} has a hole before {key:?}"));
            }
            let child = node.child(place).map_err(|unfit| unfit.0.to_string())?;
            at = walk(world, child, &key, contents)?;
        }
    }
    let end = if node.level() == 0 { shape.end().map(<[u8]>::to_vec) } else { at };
    if end.as_deref() != shape.end() {
        return Err(format!("page {number} ends at {end:?}"));
    }
    let end = match shape.foster {
        Some(foster) => walk(world, foster.page, foster.key, contents)?,
        None => end,
    };
    if end.as_deref() == shape.high { Ok(end) } else { Err(format!("{number} has a wrong fence")) }
}
