//! What a restart knows is what all records come to, wherever the power failed, time after time.

use std::cell::OnceCell;
use std::sync::Arc;

use holdfast_io::Files;
use holdfast_io::fake::{FakeFiles, Mood, Random};
use holdfast_pages::{
    Analysis, AnalysisError, Bases, Expected, Follower, PageLink, PageNumber, Records, RereadError,
    Rereader, Rsn, Slot, Stale, State, What, analyse,
};

use crate::support::{World, frames, new_world, open, replay, seeds, tag};

const PAGES: u64 = 6;

/// A store of which only the stream is there.
struct Store {
    world: World,
    bases: Bases,
    follower: Follower,
    stale: Arc<Stale>,
    /// The last record of each page.
    lasts: Vec<Rsn>,
}

fn files(world: &World) -> Arc<dyn Files> {
    Arc::new(world.files.clone())
}

fn whole(state: &State) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.put_whole(&mut bytes);
    bytes
}

/// What every record that is in the log comes to, taken one by one.
fn folded(world: &World) -> State {
    let mut state = State::new();
    for frame in frames(&*world.log) {
        for record in Records::new(frame.place.first, &frame.bytes) {
            state.take(&record.expect("it was written so")).expect("it follows");
        }
    }
    state
}

impl Store {
    fn new(seed: u64) -> Store {
        let world = new_world(seed);
        let bases = Bases::create(files(&world), tag(), &State::new()).expect("the disk is sound");
        let analysis = analyse(&*world.log, tag(), State::new(), Rsn::FIRST).expect("it is empty");
        Store::of(world, bases, analysis)
    }

    fn of(world: World, bases: Bases, analysis: Analysis) -> Store {
        let Analysis { state, fresh, .. } = analysis;
        let mut lasts = vec![Rsn::NONE; PAGES as usize + 1];
        state.stale().for_each(|(page, last)| lasts[page.get() as usize] = last);
        let stale = Arc::new(Stale::new());
        let follower = Follower::new(Arc::clone(&world.stream), Arc::clone(&stale), state, fresh);
        Store { world, bases, follower, stale, lasts }
    }

    fn open(disk: &FakeFiles) -> Store {
        let world = open(disk).expect("a log is there");
        let (bases, loaded) =
            Bases::load(files(&world), tag(), Rsn(u64::MAX)).expect("a base is there");
        let analysis = analyse(&*world.log, tag(), loaded.state, Rsn::FIRST).expect("it is whole");
        Store::of(world, bases, analysis)
    }

    /// A record of some page, or the end of a transaction.
    fn put(&mut self, random: &mut Random) {
        let (page, slot) = (1 + random.below(PAGES), Slot(random.below(3) as u16));
        let last = &mut self.lasts[page as usize];
        let at = PageLink { page: PageNumber(page), before: *last };
        let body = [random.any() as u8; 9];
        let what = match random.below(5) {
            0 => What::Commit(slot),
            _ if at.before == Rsn::NONE => What::Image { at, bytes: &body },
            1 => What::System { at, body: &body },
            _ => What::Update { slot, at, body: &body },
        };
        let put = self.world.stream.append(&mut |group| {
            let rsn = group.put(&what);
            if what.link().is_some() {
                *last = rsn;
            }
        });
        put.expect("it fits");
    }

    /// Something that may fail when the power does.
    fn step(&mut self, random: &mut Random) -> bool {
        match random.below(12) {
            0 => self.world.stream.flush().is_ok(),
            1 => self.world.stream.sync(self.world.stream.next()).is_ok(),
            2 | 3 => self.follower.step().is_ok(),
            4 => self.follower.checkpoint().is_ok(),
            5 => {
                self.world.stream.sync(self.world.stream.next()).is_ok()
                    && self.bases.write(&folded(&self.world)).is_ok()
            }
            _ => {
                self.put(random);
                true
            }
        }
    }

    /// The follower, and a restart, know what a fold from the beginning does.
    fn check(&self, random: &mut Random) {
        self.follower.step().expect("the stream is sound");
        let (wanted, fresh) = (folded(&self.world), self.follower.fresh());
        assert_eq!((fresh.begin(), fresh.end()), (Rsn::FIRST, wanted.at()));
        for (page, last) in wanted.stale() {
            assert_eq!(self.stale.expected(page), Expected::At(last));
        }
        let told = self.follower.checkpoint().expect("the stream is sound");
        assert_eq!(told, Some(wanted.at()));
        self.world.stream.flush().expect("there is room");
        let wanted = folded(&self.world);
        let (_, loaded) =
            Bases::load(files(&self.world), tag(), Rsn(u64::MAX)).expect("a base is there");
        let archived = frames(&*self.world.log);
        let archived = archived[random.below(archived.len() as u64) as usize].place.first;
        let known = analyse(&*self.world.log, tag(), loaded.state, archived).expect("it is whole");
        assert_eq!((whole(&known.state), known.fresh.begin()), (whole(&wanted), archived));
    }
}

#[test]
fn crashes_in_a_row_leave_what_the_records_come_to() {
    for seed in seeds(30) {
        let replay = replay("crashes_in_a_row", seed);
        let mut random = Random::new(seed);
        let mut store = Store::new(seed);
        for life in 0..4 {
            store.world.files.cut_power_at(store.world.files.operations() + random.below(40) + 1);
            while store.step(&mut random) && store.world.stream.next().get() < 20_000 {}
            let mood = [Mood::LoseAll, Mood::KeepAll, Mood::Subset][random.below(3) as usize];
            let durable = store.world.stream.durable();
            let disk = store.world.files.after_power_cut_in(mood, seed + life);
            store = Store::open(&disk);
            assert!(store.world.stream.next() >= durable, "{replay}");
            for _ in 0..20 {
                store.put(&mut random);
            }
            store.world.stream.sync(store.world.stream.next()).expect("the disk is sound");
            store.check(&mut random);
        }
    }
}

#[test]
fn with_checkpoints_few_records_are_taken_one_by_one() {
    let (mut store, mut random) = (Store::new(1), Random::new(1));
    for _ in 0..20 {
        (0..20).for_each(|_| store.put(&mut random));
        store.world.stream.flush().expect("there is room");
        let at = store.follower.checkpoint().expect("the stream is sound");
        assert_eq!(at, Some(store.follower.fresh().end()));
    }
    store.world.stream.flush().expect("there is room");
    let known = analyse(&*store.world.log, tag(), State::new(), Rsn::FIRST).expect("it is whole");
    assert_eq!(whole(&known.state), whole(&folded(&store.world)));
    // The last checkpoint itself.
    assert_eq!(known.records_folded, 1);
    store.follower.step().expect("the stream is sound");
    assert_eq!(store.follower.checkpoint().expect("the stream is sound"), None);
}

#[test]
fn records_that_nobody_has_are_told() {
    let (mut store, mut random) = (Store::new(2), Random::new(2));
    let mut ends = Vec::new();
    for _ in 0..3 {
        (0..5).for_each(|_| store.put(&mut random));
        ends.push(store.world.stream.flush().expect("there is room"));
    }
    let state = folded(&store.world);
    store.world.stream.release(ends[0]).expect("the disk is sound");
    let read = |base, archived| analyse(&*store.world.log, tag(), base, archived);
    let lost = read(State::new(), ends[1]).expect_err("the base is too old");
    assert!(matches!(lost, AnalysisError::Gap { need: Rsn::FIRST, .. }), "{lost}");
    let lost = read(state.clone(), Rsn::FIRST).expect_err("the archive ends too early");
    assert!(matches!(lost, AnalysisError::Gap { need: Rsn::FIRST, .. }), "{lost}");
    let more = Rsn(ends[2].get() + 1);
    let lost = read(state.clone(), more).expect_err("the log ends too early");
    assert!(matches!(lost, AnalysisError::Older { need, .. } if need == more), "{lost}");
    let known = read(state, ends[1]).expect("everything is there");
    assert_eq!((known.fresh.begin(), known.fresh.end()), (ends[1], ends[2]));
}

/// All records of a life in which somebody takes checkpoints.
fn life(seed: u64, checkpoint: impl Fn(&Store) -> Option<Rsn>) -> Vec<u8> {
    let (mut store, mut random, mut told) = (Store::new(seed), Random::new(seed), 0);
    for _ in 0..10 {
        (0..random.below(30)).for_each(|_| store.put(&mut random));
        store.world.stream.flush().expect("there is room");
        told += u32::from(checkpoint(&store).is_some());
        store.world.stream.flush().expect("there is room");
    }
    assert!(told > 5, "{}", replay("reading_the_log_again", seed));
    frames(&*store.world.log).into_iter().flat_map(|frame| frame.bytes).collect()
}

#[test]
fn reading_the_log_again_tells_the_same_as_following_the_stream() {
    for seed in seeds(10) {
        let reader = OnceCell::new();
        let read = life(seed, |store| {
            let stream = || Arc::clone(&store.world.stream);
            let reader = reader.get_or_init(|| Rereader::new(stream(), State::new()));
            reader.checkpoint().expect("the log is sound")
        });
        let followed = life(seed, |store| store.follower.checkpoint().expect("it is sound"));
        assert!(read == followed, "{}", replay("reading_the_log_again", seed));
    }
}

#[test]
fn what_is_released_cannot_be_read_again() {
    let (mut store, mut random) = (Store::new(3), Random::new(3));
    let reader = Rereader::new(Arc::clone(&store.world.stream), State::new());
    (0..9).for_each(|_| store.put(&mut random));
    store.world.stream.flush().expect("there is room");
    let read = reader.checkpoint().expect("the log is sound").expect("something changed");
    store.world.stream.release(read).expect("the disk is sound");
    store.world.stream.flush().expect("there is room");
    reader.checkpoint().expect("what is left is what was not read");
    let late = Rereader::new(Arc::clone(&store.world.stream), State::new());
    let refused = late.checkpoint().expect_err("it is gone");
    assert!(matches!(refused, RereadError::Released { from: Rsn::FIRST }), "{refused}");
}

#[test]
fn differences_lead_on_from_the_older_base_too() {
    let (mut store, mut random) = (Store::new(4), Random::new(4));
    let mut states = Vec::new();
    for _ in 0..3 {
        (0..20).for_each(|_| store.put(&mut random));
        store.world.stream.flush().expect("there is room");
        states.push(folded(&store.world));
        store.follower.checkpoint().expect("the stream is sound");
    }
    store.world.stream.flush().expect("there is room");
    for state in states {
        let known = analyse(&*store.world.log, tag(), state, Rsn::FIRST).expect("it is whole");
        assert_eq!(whole(&known.state), whole(&folded(&store.world)));
        // The last checkpoint itself.
        assert_eq!(known.records_folded, 1);
    }
}
