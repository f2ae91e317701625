//! What the records come to is what a naive model says that they do.

use std::collections::BTreeMap;

use holdfast_io::fake::Random;

use super::*;
use crate::stream::record::parse;

/// The same, as one would write it down at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) lasts: BTreeMap<u64, Rsn>,
    pub(crate) free: BTreeSet<u64>,
    pub(crate) stacks: BTreeMap<u16, Vec<Vec<u8>>>,
    pub(crate) cleaned: u64,
}

/// A stream of records that could be, in the order of a store's life.
pub(crate) struct Life {
    pub(crate) random: Random,
    pub(crate) model: Model,
    pub(crate) next: Rsn,
}

impl Life {
    pub(crate) fn new(seed: u64) -> Life {
        let model = Model { cleaned: Rsn::FIRST.get(), ..Model::default() };
        Life { random: Random::new(seed), model, next: Rsn::FIRST }
    }

    /// The next record, as bytes, and where it stands.
    pub(crate) fn record(&mut self) -> (Rsn, Vec<u8>) {
        let (rsn, mut bytes) = (self.next, Vec::new());
        let slot = self.random.below(5) as u16;
        let body = vec![self.random.any() as u8; self.random.below(9) as usize];
        match self.random.below(100) {
            0..15 => self.begin(rsn, &body, &mut bytes),
            15..55 => self.change(rsn, slot, &body, &mut bytes),
            55..70 => self.undo(rsn, slot, &body, &mut bytes),
            70..80 => {
                self.model.stacks.remove(&slot);
                What::Commit(Slot(slot)).put(rsn, &mut bytes);
            }
            80..90 => self.free(rsn, &mut bytes),
            90..95 => {
                self.model.cleaned += self.random.below(rsn.get() - self.model.cleaned + 1);
                What::Cleaned(Rsn(self.model.cleaned)).put(rsn, &mut bytes);
            }
            95..98 => self.retell(rsn, slot, &mut bytes),
            _ => What::Checkpoint(b"whatever").put(rsn, &mut bytes),
        }
        self.next = rsn.advance(bytes.len() as u64);
        (rsn, bytes)
    }

    /// So many records, taken by `each`.
    pub(crate) fn run(&mut self, records: u64, mut each: impl FnMut(&Record<'_>)) {
        for _ in 0..records {
            let (rsn, bytes) = self.record();
            each(&parse(rsn, &bytes).expect("it was written so"));
        }
    }

    fn begin(&mut self, rsn: Rsn, body: &[u8], out: &mut Vec<u8>) {
        let free = self.model.free.pop_first();
        let page =
            free.unwrap_or_else(|| self.model.lasts.keys().last().map_or(1, |page| page + 1));
        self.model.lasts.insert(page, rsn);
        let at = PageLink { page: PageNumber(page), before: Rsn::NONE };
        What::Image { at, bytes: body }.put(rsn, out);
    }

    /// A page in use, if there is one, which has a record here now.
    fn page(&mut self, rsn: Rsn) -> Option<PageLink> {
        let used: Vec<u64> = self.model.lasts.keys().copied().collect();
        let used: Vec<u64> = used.into_iter().filter(|p| !self.model.free.contains(p)).collect();
        let page = *used.get(self.random.below(used.len().max(1) as u64) as usize)?;
        let before = self.model.lasts.insert(page, rsn).expect("it is in use");
        Some(PageLink { page: PageNumber(page), before })
    }

    fn change(&mut self, rsn: Rsn, slot: u16, body: &[u8], out: &mut Vec<u8>) {
        let Some(at) = self.page(rsn) else { return self.begin(rsn, body, out) };
        if self.random.chance(20) {
            return What::System { at, body }.put(rsn, out);
        }
        self.model.stacks.entry(slot).or_default().push(body.to_vec());
        What::Update { slot: Slot(slot), at, body }.put(rsn, out);
    }

    fn undo(&mut self, rsn: Rsn, slot: u16, body: &[u8], out: &mut Vec<u8>) {
        let Some(stack) = self.model.stacks.get_mut(&slot) else {
            return What::Aborted(Slot(slot)).put(rsn, out);
        };
        stack.pop();
        self.model.stacks.retain(|_, stack| !stack.is_empty());
        let at = self.page(rsn).expect("something was changed");
        What::Compensate { slot: Slot(slot), at, body }.put(rsn, out);
    }

    /// Some of the newest changes become others, fewer or more.
    fn retell(&mut self, rsn: Rsn, slot: u16, out: &mut Vec<u8>) {
        let Some(stack) = self.model.stacks.get_mut(&slot) else {
            return What::Commit(Slot(slot)).put(rsn, out);
        };
        let count = self.random.below(stack.len() as u64 + 1);
        stack.truncate(stack.len() - count as usize);
        let mut bodies = Vec::new();
        for length in 0..1 + self.random.below(4) {
            let body = vec![self.random.any() as u8; length as usize];
            crate::bodies::put(&body, &mut bodies);
            stack.push(body);
        }
        What::Retold { slot: Slot(slot), count, bodies: &bodies }.put(rsn, out);
    }

    fn free(&mut self, rsn: Rsn, out: &mut Vec<u8>) {
        // One is left, so that there is always one where something can be undone.
        if self.model.lasts.len() < self.model.free.len() + 2 {
            return self.begin(rsn, &[], out);
        }
        let at = self.page(rsn).expect("there are two");
        self.model.free.insert(at.page.get());
        What::Free { at }.put(rsn, out);
    }
}

/// The state is what the model says.
pub(crate) fn check(state: &State, life: &Life) {
    let model = &life.model;
    assert_eq!((state.at(), state.cleaned()), (life.next, Rsn(model.cleaned)));
    let stale = model.lasts.iter().filter(|(_, last)| last.get() >= model.cleaned);
    assert!(state.stale().eq(stale.map(|(page, last)| (PageNumber(*page), *last))));
    assert!(state.free().eq(model.free.iter().copied().map(PageNumber)));
    let next = model.lasts.keys().last().map_or(1, |page| page + 1);
    assert_eq!(state.next_page(), PageNumber(next));
    let running = state.running().map(|(slot, bodies)| {
        let bodies: Vec<Vec<u8>> = bodies.map(<[u8]>::to_vec).collect();
        (slot.0, bodies)
    });
    assert_eq!(running.collect::<BTreeMap<_, _>>(), model.stacks);
}

#[test]
fn records_come_to_what_a_model_says() {
    for seed in 1..=50 {
        let (mut life, mut state) = (Life::new(seed), State::new());
        for _ in 0..20 {
            life.run(30, |record| state.take(record).expect("it follows"));
            check(&state, &life);
            if life.random.chance(50) {
                state.mark();
            }
        }
    }
}

/// Takes this record, which would stand next.
fn take(state: &mut State, what: &What<'_>) -> Result<(), FoldFault> {
    let (rsn, mut bytes) = (state.at(), Vec::new());
    what.put(rsn, &mut bytes);
    state.take(&parse(rsn, &bytes).expect("it was written so"))
}

fn image(page: u64) -> What<'static> {
    What::Image { at: PageLink { page: PageNumber(page), before: Rsn::NONE }, bytes: b"" }
}

#[test]
fn a_page_begins_near_the_others_and_before_it_changes() {
    let mut state = State::new();
    let far = PAGES_AHEAD_MAX + 1;
    assert_eq!(take(&mut state, &image(far)), Err(FoldFault::Page(PageNumber(far))));
    take(&mut state, &image(3)).expect("1 and 2 are on their way");
    let at = PageLink { page: PageNumber(4), before: Rsn::FIRST };
    let change = What::System { at, body: b"" };
    assert_eq!(take(&mut state, &change), Err(FoldFault::Page(PageNumber(4))));
    take(&mut state, &image(1)).expect("it is here now");
    assert_eq!((state.next_page(), state.stale().count()), (PageNumber(4), 2));
}

#[test]
fn what_does_not_follow_is_refused_and_changes_nothing() {
    let mut state = State::new();
    let mut bytes = Vec::new();
    image(1).put(Rsn(9), &mut bytes);
    let record = parse(Rsn(9), &bytes).expect("it was written so");
    let gap = FoldFault::Gap { at: Rsn::FIRST, found: Rsn(9) };
    assert_eq!(state.take(&record), Err(gap));
    take(&mut state, &image(1)).expect("it follows");
    let at = PageLink { page: PageNumber(1), before: Rsn::FIRST };
    let (slot, body) = (Slot(2), &b""[..]);
    let undone = take(&mut state, &What::Compensate { slot, at, body });
    assert_eq!(undone, Err(FoldFault::Undo(slot)));
    take(&mut state, &What::Update { slot, at, body }).expect("it follows");
    let before = state.at();
    assert_eq!(take(&mut state, &What::Aborted(slot)), Err(FoldFault::Undo(slot)));
    for (count, bodies) in [(2, &b"\x01x"[..]), (u64::MAX, b"\x01x"), (1, b""), (1, b"\x02x")] {
        let retold = take(&mut state, &What::Retold { slot, count, bodies });
        assert_eq!(retold, Err(FoldFault::Undo(slot)), "{count} {bodies:?}");
    }
    let copy = What::Copy { page: PageNumber(1), bytes: b"" };
    assert_eq!(take(&mut state, &copy), Err(FoldFault::Page(PageNumber(1))));
    let more = Rsn(before.get() + 1);
    assert_eq!(take(&mut state, &What::Cleaned(more)), Err(FoldFault::Cleaned(more)));
    assert_eq!((state.at(), state.running().count()), (before, 1));
    take(&mut state, &What::Commit(slot)).expect("it follows");
    assert_eq!(state.running().count(), 0);
}
