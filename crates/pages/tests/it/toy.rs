//! A store whose pages hold counters, on a disk that may fail, and what it must hold.

use std::io;
use std::path::Path;
use std::sync::Arc;

use holdfast_io::fake::{FakeClock, FakeFiles, Random};
use holdfast_log::{CommitLog, Log};
use holdfast_memory::{Medium, Region, RegionSpec};
use holdfast_pages::{
    Checkpoints, CleaningOrder, Compression, Contents, Directories, Found, IMAGE_EVERY_BYTES, Keep,
    Page, PageKind, PageLink, PageNumber, Pages, PagesConfig, Rsn, Slot, StageError, Unfit, What,
    apply, parse,
};

use crate::support::{CONFIG, IDENTITY, RING_BYTES, tag};

/// Pages that a store has at most.
pub(crate) const PAGES: u64 = 9;
pub(crate) const CONFIG_OF_PAGES: PagesConfig = PagesConfig {
    window_bytes: 32 << 10,
    segment_pages: 4,
    clean_every_bytes: 8 << 10,
    cleaning: CleaningOrder::EveryPage,
    keep: Keep::All,
    compression: Compression::None,
    checkpoints: Checkpoints::Followed,
};

/// A page is an array of counters; a body says which one grows by how much, and carries a load.
pub(crate) struct Counters;

const COUNTERS: usize = 64;
/// The counters lie so far apart: everywhere in a page.
const APART_BYTES: usize = 127;

impl Contents for Counters {
    fn apply(&self, page: &mut Page, body: &[u8]) -> Result<(), Unfit> {
        let [which, more, ..] = *body else { return Err(Unfit("a body has two bytes")) };
        let counter = counters_mut(page).nth(usize::from(which));
        let counter = counter.ok_or(Unfit("there are 64 counters"))?;
        *counter = counter.wrapping_add(more);
        Ok(())
    }

    fn image(&self, page: &Page, into: &mut Vec<u8>) {
        into.extend(page.contents().iter().step_by(APART_BYTES).take(COUNTERS));
    }

    fn restore(&self, page: &mut Page, number: PageNumber, image: &[u8]) -> Result<(), Unfit> {
        page.begin(number, PageKind::Leaf, number);
        if image.len() > COUNTERS {
            return Err(Unfit("there are 64 counters"));
        }
        counters_mut(page).zip(image).for_each(|(counter, found)| *counter = *found);
        Ok(())
    }
}

fn counters_mut(page: &mut Page) -> impl Iterator<Item = &mut u8> {
    page.contents_mut().iter_mut().step_by(APART_BYTES).take(COUNTERS)
}

/// What a store must hold: every record of a page that was put, in order.
#[derive(Clone, Default)]
pub(crate) struct Model(Vec<(Rsn, Vec<u8>)>);

impl Model {
    /// The records before `next` are all there are.
    pub(crate) fn cut(&mut self, next: Rsn) {
        self.0.truncate(self.0.partition_point(|(rsn, _)| *rsn < next));
    }

    /// Only what stands before a place.
    pub(crate) fn before(&self, end: Rsn) -> Model {
        let mut model = self.clone();
        model.cut(end);
        model
    }

    /// The page as its records make it.
    pub(crate) fn page(&self, number: PageNumber) -> Page {
        let mut page = Page::zeroed();
        for (rsn, bytes) in &self.0 {
            let record = parse(*rsn, bytes).expect("it was put");
            if record.what.link().is_some_and(|link| link.page == number) {
                apply(&mut page, &record, &Counters).expect("it follows");
            }
        }
        page
    }
}

/// An open store.
pub(crate) struct Store {
    pub(crate) files: FakeFiles,
    pub(crate) log: Arc<Log>,
    pub(crate) clock: FakeClock,
    pub(crate) pages: Pages,
    pub(crate) found: Found,
    pub(crate) model: Model,
    /// The last record of each page.
    lasts: Vec<Rsn>,
    since_image: Vec<u64>,
}

fn dir(files: &FakeFiles, name: &str) -> FakeFiles {
    files.below(Path::new(name)).expect("it was made")
}

/// A new disk with a log, and no store.
pub(crate) fn new_log(seed: u64) -> FakeFiles {
    let files = FakeFiles::new(seed);
    for name in ["log", "archive"] {
        holdfast_io::Files::make_dir(&files, Path::new(name), 0o700).expect("the disk is sound");
    }
    holdfast_io::Files::sync_dir(&files, Path::new("")).expect("the disk is sound");
    Log::create(&dir(&files, "log"), IDENTITY, &CONFIG).expect("an empty disk takes a log");
    files
}

/// A new disk with a store that has no records.
pub(crate) fn new_disk(seed: u64) -> FakeFiles {
    let files = new_log(seed);
    Pages::create(&directories(&files), tag()).expect("the disk is sound");
    files
}

pub(crate) fn directories(files: &FakeFiles) -> Directories {
    Directories { store: Arc::new(files.clone()), archive: Arc::new(dir(files, "archive")) }
}

impl Store {
    pub(crate) fn new(seed: u64) -> Store {
        Store::open(&new_disk(seed), Model::default()).expect("a new store opens")
    }

    /// The store on this disk, which has what the model has, or less at the end.
    pub(crate) fn open(files: &FakeFiles, model: Model) -> Result<Store, String> {
        Store::open_with(files, model, &CONFIG_OF_PAGES)
    }

    pub(crate) fn open_with(
        files: &FakeFiles,
        mut model: Model,
        config: &PagesConfig,
    ) -> Result<Store, String> {
        let spec = RegionSpec { ring_bytes: RING_BYTES, roster_bytes: 64, identity: IDENTITY };
        let region = Region::create(&Medium::Private, &spec).expect("memory for a region");
        let (clock, log_files) = (Arc::new(FakeClock::default()), Arc::new(dir(files, "log")));
        let region = Arc::new(region);
        let (log, _) =
            Log::open(log_files, region, Arc::<FakeClock>::clone(&clock), CONFIG).map_err(said)?;
        let log = Arc::new(log);
        let shared: Arc<dyn CommitLog> = Arc::<Log>::clone(&log);
        let (directories, contents) = (directories(files), Arc::new(Counters));
        let of_pages = Arc::<FakeClock>::clone(&clock);
        let opened = Pages::open(&directories, of_pages, shared, tag(), contents, config);
        let (pages, found) = opened.map_err(said)?;
        model.cut(found.next);
        let numbers = (0..=PAGES).map(PageNumber);
        let lasts = numbers.map(|number| model.page(number).rsn()).collect();
        let since_image = vec![0; PAGES as usize + 1];
        let (files, clock) = (files.clone(), (*clock).clone());
        Ok(Store { files, log, clock, pages, found, model, lasts, since_image })
    }

    /// Puts a record of a page that has one, which is no image.
    pub(crate) fn put_update(
        &mut self,
        number: PageNumber,
        random: &mut Random,
    ) -> Result<(), StageError> {
        let at = number.get() as usize;
        let link = PageLink { page: number, before: self.lasts[at] };
        let body = [random.below(COUNTERS as u64) as u8, random.any() as u8];
        self.put_what(at, false, &What::System { at: link, body: &body })
    }

    /// Puts a record of a page: an image, if it has none or needs one.
    pub(crate) fn put(
        &mut self,
        number: PageNumber,
        random: &mut Random,
    ) -> Result<(), StageError> {
        let at = number.get() as usize;
        let (link, mut image) = (PageLink { page: number, before: self.lasts[at] }, Vec::new());
        let mut body = vec![random.any() as u8; 40 + random.below(400) as usize];
        body[0] = random.below(COUNTERS as u64) as u8;
        let is_image = link.before == Rsn::NONE
            || self.since_image[at] > u64::from(IMAGE_EVERY_BYTES) / 8
            || random.below(30) == 0;
        let what = if is_image {
            Counters.image(&self.model.page(number), &mut image);
            What::Image { at: link, bytes: &image }
        } else if random.below(3) == 0 {
            What::Update { slot: Slot(random.below(3) as u16), at: link, body: &body }
        } else {
            What::System { at: link, body: &body }
        };
        self.put_what(at, is_image, &what)
    }

    fn put_what(&mut self, at: usize, is_image: bool, what: &What<'_>) -> Result<(), StageError> {
        let mut rsn = Rsn::NONE;
        self.pages.stream().append(&mut |group| rsn = group.put(what))?;
        let mut bytes = Vec::new();
        what.put(rsn, &mut bytes);
        self.since_image[at] = if is_image { 0 } else { self.since_image[at] + bytes.len() as u64 };
        self.lasts[at] = rsn;
        self.model.0.push((rsn, bytes));
        Ok(())
    }

    /// The end of a transaction.
    pub(crate) fn end(&mut self, slot: Slot) -> Result<(), StageError> {
        let commit = What::Commit(slot);
        self.pages.stream().append(&mut |group| {
            group.put(&commit);
        })?;
        Ok(())
    }

    /// The page is what its records make of it, as far as they are stable.
    pub(crate) fn check_page(&self, number: PageNumber) -> Result<(), String> {
        let last = self.lasts[number.get() as usize];
        if last >= self.pages.stream().stable() {
            return Ok(());
        }
        if last != Rsn::NONE {
            self.pages.note(number, last);
        }
        let (mut page, wanted) = (Page::zeroed(), self.model.page(number));
        match self.pages.load(number, &mut page) {
            Ok(_) if page.same_bytes(&wanted) => Ok(()),
            Ok(_) => Err(format!("{page:?} is not {wanted:?}")),
            Err(_) if last == Rsn::NONE => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Every page is what its records make of it, as a restart knows them.
    pub(crate) fn check(&self) -> Result<(), String> {
        (1..=PAGES).map(PageNumber).try_for_each(|number| self.check_page(number))
    }

    /// One thing or another; fails if the disk does.
    pub(crate) fn step(&mut self, random: &mut Random) -> Result<(), String> {
        match random.below(19) {
            0 => self.pages.stream().flush().map(drop).map_err(said),
            1 | 2 => self.pages.stream().sync(self.pages.stream().next()).map_err(said),
            3 | 4 => self.pages.follow().map(drop).map_err(said),
            5 => self.pages.checkpoint().map(drop).map_err(said),
            6 | 7 => self.pages.archive().map(drop).map_err(said),
            8 if random.below(8) == 0 => self.pages.write_base().map(drop).map_err(said),
            8 if random.below(8) == 0 => self.pages.archive_all().map(drop).map_err(said),
            9 => self.check_page(PageNumber(1 + random.below(PAGES))),
            10 => self.log.prepare().map(drop).map_err(said),
            12 => self.pages.clean().map(drop).map_err(said),
            13 => self.pages.merge().map(drop).map_err(said),
            11 => self.end(Slot(random.below(3) as u16)).map_err(said),
            _ => self.put(PageNumber(1 + random.below(PAGES)), random).map_err(said),
        }
    }
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Whether the power was cut.
pub(crate) fn is_cut(files: &FakeFiles) -> bool {
    let refused = holdfast_io::Files::sync_dir(files, Path::new(""));
    refused.is_err_and(|error: io::Error| holdfast_io::fake::is_power_cut(&error))
}
