//! The rule against a model of a ring, drawn from seeds.

use super::*;

const RING_BYTES: u64 = 1 << 20;
/// Users who take all they get, at the most.
const HEAVY_MAX: u32 = 3;
/// The longest frame of theirs, and what somebody asks for now and then who has nothing.
const HEAVY_BYTES: u64 = 4096;
const LIGHT_BYTES: u64 = 1024;
const LIGHT: u32 = 1;
/// Somebody who has nothing and asks for more than stays free of the others.
const LARGE: u32 = 2;
const LARGE_BYTES: u64 = RING_BYTES / 4;
const HEAVY: u32 = 1000;

type Rule = fn(&Shares, u32, u64, u64) -> bool;

fn fair(shares: &Shares, user: u32, bytes: u64, free: u64) -> bool {
    shares.may_append(user, bytes, Some(free))
}

/// Whoever comes first gets what is free.
fn first_come(_: &Shares, _: u32, _: u64, _: u64) -> bool {
    true
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// A ring that many fill, and whoever empties it.
struct Model {
    shares: Shares,
    rule: Rule,
    /// Whose frames lie in it, and where each ends.
    frames: VecDeque<(u32, u64)>,
    released: u64,
    tail: u64,
}

impl Model {
    fn new(rule: Rule) -> Model {
        let (shares, frames) = (Shares::default(), VecDeque::new());
        Model { shares, rule, frames, released: 0, tail: 0 }
    }

    fn free(&self) -> u64 {
        RING_BYTES - (self.tail - self.released)
    }

    fn held(&self, user: u32) -> u64 {
        self.shares.books().of(user).ring_bytes
    }

    fn append(&mut self, user: u32, bytes: u64) -> bool {
        let has_turn = (self.rule)(&self.shares, user, bytes, self.free());
        if !has_turn || bytes > self.free() {
            self.shares.waits(user, if has_turn { Wait::Room(bytes) } else { Wait::Turn }, 0);
            return false;
        }
        self.shares.waits_no_more(user);
        self.shares.placed(user, Lsn(self.tail), bytes, 0);
        self.tail += bytes;
        self.frames.push_back((user, self.tail));
        true
    }

    /// The home has the oldest frames, some of them.
    fn release(&mut self, frames: usize) {
        for _ in 0..frames.min(self.frames.len()) {
            self.released = self.frames.pop_front().expect("one is left").1;
        }
        self.shares.came_home(Lsn(self.released));
    }
}

/// One ring's life. Says what was not fair, or left over.
fn life(seed: u64, rule: Rule) -> Result<(), String> {
    let mut state = seed;
    let mut model = Model::new(rule);
    let heavy = 1 + next(&mut state) as u32 % HEAVY_MAX;
    let mut large_waits = false;
    for step in 0..20_000 {
        match next(&mut state) % 64 {
            0 => model.release(next(&mut state) as usize % 64),
            1 if model.held(LIGHT) == 0 && !large_waits => {
                if !model.append(LIGHT, LIGHT_BYTES) {
                    return Err(format!("step {step}: who has nothing waits"));
                }
            }
            2 if large_waits || model.held(LARGE) == 0 => {
                large_waits = !model.append(LARGE, LARGE_BYTES);
            }
            _ => {
                let user = HEAVY + next(&mut state) as u32 % heavy;
                let bytes = 64 + next(&mut state) % (HEAVY_BYTES - 64);
                let before = model.held(user);
                if model.append(user, bytes) && large_waits && before > 0 {
                    return Err(format!("step {step}: what becomes free goes to who has more"));
                }
                if model.held(user) > before && model.held(user) > FREE_TIMES_MAX * model.free() {
                    return Err(format!("step {step}: somebody has more than his share"));
                }
            }
        }
    }
    model.release(usize::MAX);
    let books = model.shares.books();
    let is_empty = books.held.is_empty() && books.placed.is_empty();
    if is_empty { Ok(()) } else { Err("somebody has something of an empty ring".into()) }
}

#[test]
fn whoever_has_nothing_waits_for_nobody_however_many_take_all_they_get() {
    for seed in 0..100 {
        life(seed, fair).unwrap_or_else(|fault| {
            panic!("seed {seed}: {fault}; replay it: cargo test -p holdfast-volume --lib shares")
        });
    }
}

#[test]
fn a_ring_of_who_comes_first_is_found_unfair() {
    assert!((0..5).all(|seed| life(seed, first_come).is_err()));
}

#[test]
fn a_user_has_three_quarters_of_the_files_and_leaves_the_rest() {
    let shares = Shares::default();
    let taken = (0..).take_while(|_| shares.open_file(Some(1), 512)).count();
    assert!((384..=388).contains(&taken), "{taken}");
    assert!(shares.open_file(Some(2), 512) && shares.open_file(None, 512));
    for _ in 0..taken {
        shares.close_file(Some(1));
    }
    assert!(shares.books().held.keys().eq([&2]));
}
