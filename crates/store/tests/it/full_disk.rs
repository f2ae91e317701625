//! Room runs out at every allocation of a life in turn: of bytes, of files, or for one call.
//!
//! What was acknowledged is kept, what is told says that the disk is full, the store opens and is
//! read while there is no room, and goes on as if nothing had been once there is.

use std::fmt::Debug;

use holdfast_io::Files;
use holdfast_io::fake::{ENOSPC, Effect, FakeFiles, FakeLimits, Fault, Mood, Operation, Random};
use holdfast_store::{
    CommitError, Durability, Service, Store, Transaction, TransactionError, Tree,
};

use crate::life::contents;
use crate::model::{Contents, Model, Writes};
use crate::power::with_seeds;
use crate::support::{config, machine, open, place, settle, sound};

const PAGE_BYTES: u64 = 4096;
/// Steps before room runs out, while there is none, and after.
const STEPS_BEFORE: u32 = 60;
const STEPS_WITHOUT: u32 = 40;
const STEPS_AFTER: u32 = 20;

/// Calls that may find no room. Those for which a file system has no room that it gave before are
/// told apart: the log fails then until it is opened again.
const CALLS: [Operation; 4] =
    [Operation::SetLen, Operation::Reserve, Operation::Rename, Operation::Write];

/// What there is no more of.
#[derive(Clone, Copy, Debug)]
enum Scarce {
    /// So many pages are left.
    Pages(u64),
    /// So many files can be made.
    Names(u64),
    /// One call, that many calls from now, finds no room.
    Call(Operation, u64),
}

impl Scarce {
    fn begin(self, files: &FakeFiles) {
        let space = files.space().expect("a disk");
        match self {
            Scarce::Pages(pages) => {
                let used = space.total_bytes - space.free_bytes;
                files.set_capacity_bytes(Some(used + pages * PAGE_BYTES));
            }
            Scarce::Names(more) => {
                let used = space.total_inodes - space.free_inodes;
                let inodes_max = used + more;
                files.set_limits(FakeLimits { inodes_max, ..FakeLimits::default() });
            }
            Scarce::Call(operation, skip) => {
                files.fail(Fault { operation, skip, effect: Effect::Errno(ENOSPC) });
            }
        }
    }

    /// There is room again.
    fn end(files: &FakeFiles) {
        files.set_capacity_bytes(None);
        files.set_limits(FakeLimits::default());
        files.forget_faults();
    }
}

/// What is told of a full disk says so.
fn says_full(told: &dyn Debug) -> bool {
    format!("{told:?}").contains("StorageFull")
}

/// A program that goes on when the disk is full.
struct Program<'s> {
    store: &'s Store,
    tree: Tree,
    random: Random,
    model: Model,
    /// How often it was told so.
    told: u64,
    /// Whether the log has failed.
    failed: bool,
}

impl<'s> Program<'s> {
    fn new(store: &'s Store, seed: u64) -> Program<'s> {
        let tree = store.tree("accounts").expect("there is room");
        let (random, model) = (Random::new(seed), Model::default());
        Program { store, tree, random, model, told: 0, failed: false }
    }

    fn work(&mut self, steps: u32) {
        for _ in 0..steps {
            if self.random.chance(40) {
                self.serve();
            } else {
                self.transact();
            }
        }
    }

    fn serve(&mut self) {
        let service = Service::ALL[self.random.below(Service::ALL.len() as u64) as usize];
        if let Err(error) = self.store.step(service) {
            self.hear(&error);
        }
    }

    fn hear(&mut self, error: &dyn Debug) {
        self.failed |= format!("{error:?}").contains("Poisoned");
        assert!(says_full(error) || self.failed, "told otherwise: {error:?}");
        self.told += 1;
    }

    /// What it puts is committed, or is not; a full disk alone leaves no doubt.
    fn transact(&mut self) {
        let mut one = self.store.begin_impatient();
        let writes = match self.write(&mut one) {
            Ok(writes) => writes,
            Err(error) => {
                self.hear_of(error);
                // What cannot be undone now is undone later.
                return drop(one);
            }
        };
        let on_disk = self.random.chance(50);
        self.model.commit(writes);
        match one.commit(if on_disk { Durability::Disk } else { Durability::Memory }) {
            Ok(_) if on_disk => self.model.is_durable(),
            Ok(_) => {}
            Err(error @ (CommitError::NotDurable(_) | CommitError::Poisoned(_))) => {
                self.hear(&error);
            }
            Err(error) => panic!("told otherwise: {error:?}"),
        }
    }

    /// Keys of those that were not undone yet are busy.
    fn hear_of(&mut self, error: TransactionError) {
        if !matches!(error, TransactionError::Busy(_)) {
            self.hear(&error);
        }
    }

    fn write(&mut self, one: &mut Transaction<'_>) -> Result<Writes, TransactionError> {
        let mut writes = Writes::new();
        for _ in 0..1 + self.random.below(4) {
            let key = self.random.below(60).to_be_bytes().to_vec();
            if self.random.chance(20) {
                one.delete(&self.tree, &key)?;
                writes.push((key, None));
                continue;
            }
            let most = [8, 600, 2049, 12_000][self.random.below(4) as usize];
            let mut value = vec![0; (most / 2 + self.random.below(most / 2)) as usize];
            self.random.fill(&mut value);
            one.put(&self.tree, &key, &value)?;
            writes.push((key, Some(value)));
        }
        Ok(writes)
    }

    /// What others read is what was committed, unless a key waits for room to be undone.
    fn compare(&mut self) {
        match contents(self.store, &self.tree) {
            Ok(found) => assert!(found == self.model.now(), "others read something else"),
            Err(error) => self.hear_of(error),
        }
    }

    /// There is room again.
    fn go_on(mut self) -> Model {
        self.store.sync().expect("there is room");
        self.model.is_durable();
        settle(self.store);
        let told = self.told;
        self.compare();
        self.work(STEPS_AFTER);
        self.compare();
        assert_eq!(self.told, told, "there is room");
        sound(self.store);
        self.model
    }
}

/// Whether a store that is opened has what was acknowledged. While its disk is full, keys that wait
/// to be undone are told to.
fn look(files: &FakeFiles, model: &Model, what: &str) -> Option<Contents> {
    let opened = Store::open_at(place(files), &config());
    let (store, recovery) = opened.unwrap_or_else(|error| panic!("{what}: {error:?}"));
    let found = store.find_tree("accounts").map(|tree| tree.expect("it was made"));
    match found.and_then(|tree| contents(&store, &tree)) {
        Ok(found) => {
            let fits = model.clone().found(&found);
            fits.unwrap_or_else(|error| panic!("{what}: {error}"));
            Some(found)
        }
        Err(error) => {
            let is_told = matches!(error, TransactionError::Busy(_)) || says_full(&error);
            assert!(is_told && recovery.losers > 0, "{what}: {error:?}");
            None
        }
    }
}

/// A life that meets a full disk. Returns how often it was told of that, unless it is one that no
/// call met.
fn meet(seed: u64, scarce: Scarce) -> Option<u64> {
    let files = machine(seed);
    let (store, _) = open(&files);
    let mut program = Program::new(&store, seed);
    program.work(STEPS_BEFORE);
    scarce.begin(&files);
    program.work(STEPS_WITHOUT);
    program.compare();
    let (told, failed) = (program.told, program.failed);
    let what = format!("seed {seed}, {scarce:?}");
    assert!(!failed || matches!(scarce, Scarce::Call(..)), "{what}: a full disk is no failure");
    for mood in [Mood::LoseAll, Mood::KeepAll] {
        let image = files.after_power_cut_in(mood, seed);
        look(&image, &program.model, &format!("{what}, without room, {mood:?}"));
        Scarce::end(&image);
        let found = look(&image, &program.model, &format!("{what}, with room, {mood:?}"));
        found.expect("there is room");
    }
    let model = if failed || seed.is_multiple_of(2) {
        let model = program.model.clone();
        let closed = store.close();
        assert!(closed.is_ok() || failed || says_full(&closed), "{what}: {closed:?}");
        // Who opens is not to meet a call that nobody met so far: he may be told, and tries again.
        files.forget_faults();
        look(&files, &model, &format!("{what}, closed"));
        Scarce::end(&files);
        model
    } else {
        Scarce::end(&files);
        program.go_on()
    };
    let image = files.after_power_cut_in(Mood::LoseAll, seed);
    look(&image, &model, &format!("{what}, at last")).expect("there is room");
    (!matches!(scarce, Scarce::Call(..)) || files.faults_fired() > 0).then_some(told)
}

/// Every count of pages and of files that is left, and every call. Returns how many heard of it.
fn meet_everywhere(seed: u64) -> u64 {
    let mut met = 0;
    let pages = (0..40).map(|more| Scarce::Pages(more * more / 4));
    let names = (0..6).map(Scarce::Names);
    let is_told = |told: &u64| *told > 0;
    met += pages.chain(names).filter_map(|scarce| meet(seed, scarce)).filter(is_told).count();
    for operation in CALLS {
        let every = if operation == Operation::Write { 9 } else { 1 };
        let calls = (0..).map(|call| Scarce::Call(operation, call * every + seed % every));
        met += calls.map_while(|scarce| meet(seed, scarce)).filter(is_told).count();
    }
    met as u64
}

#[test]
fn a_store_goes_on_wherever_its_disk_was_full_and_is_read_while_it_is() {
    with_seeds(1..4, "full_disk::a_store", meet_everywhere);
}
