//! What this process has taken and not answered yet.
//!
//! Promise: a request that a thread has had in hand since an earlier look is seen by a later one,
//! with the thread and with what it does, whatever the thread waits in. Taking one costs a store.
//! Never: reads a clock, waits, or watches more than [`WATCHED_MAX`] threads: whoever comes when
//! all places are taken works unwatched.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Threads that can be watched at a time: the most connections of a disk, the queues of a few
/// machines, and the clients of a server, together.
pub const WATCHED_MAX: usize = 1024;

/// Behind a request's number, what is done for it; 0 while there is none.
const DOING_BITS: u32 = 8;

/// What is done for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Doing {
    /// Bytes are read.
    Read = 1,
    /// Bytes are written.
    Write,
    /// Something is made durable.
    Sync,
    /// A name is looked up.
    Lookup,
    /// A file is opened, or closed.
    Open,
    /// A name is made, or one more given to a file.
    Make,
    /// A name is removed.
    Remove,
    /// A name is changed.
    Rename,
    /// Attributes, extended ones too, are read or changed.
    Attributes,
    /// A directory is listed.
    List,
    /// A request of a served log, disk, table or snapshot.
    Service,
    /// Anything else.
    Other,
}

/// All of them, in the order of their numbers.
const ALL: [Doing; 12] = [
    Doing::Read,
    Doing::Write,
    Doing::Sync,
    Doing::Lookup,
    Doing::Open,
    Doing::Make,
    Doing::Remove,
    Doing::Rename,
    Doing::Attributes,
    Doing::List,
    Doing::Service,
    Doing::Other,
];

const _: () = assert!(ALL[ALL.len() - 1] as usize == ALL.len());

impl Doing {
    /// For people, behind "has not answered".
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Doing::Read => "a read",
            Doing::Write => "a write",
            Doing::Sync => "a sync",
            Doing::Lookup => "a lookup of a name",
            Doing::Open => "an open",
            Doing::Make => "the making of a name",
            Doing::Remove => "the removal of a name",
            Doing::Rename => "a rename",
            Doing::Attributes => "a question or change of attributes",
            Doing::List => "the listing of a directory",
            Doing::Service => "a client's request",
            Doing::Other => "a request",
        }
    }

    fn of(request: u64) -> Option<Doing> {
        let number = (request & ((1 << DOING_BITS) - 1)) as usize;
        ALL.get(number.checked_sub(1)?).copied()
    }
}

/// Where one thread says what it has in hand. Nobody else writes to it meanwhile.
#[repr(align(64))]
struct Place {
    /// The thread's number; 0 while nobody has the place.
    thread: AtomicU32,
    /// How many requests were taken here so far, and what is done for the newest.
    request: AtomicU64,
}

static PLACES: [Place; WATCHED_MAX] =
    [const { Place { thread: AtomicU32::new(0), request: AtomicU64::new(0) } }; WATCHED_MAX];

/// A thread's place, for as long as the thread lives.
struct Mine(Option<&'static Place>);

thread_local! {
    static MINE: Mine = Mine::take();
}

impl Mine {
    fn take() -> Mine {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let is_free = |place: &&Place| {
            let (to, order) = (thread, Ordering::Relaxed);
            // EDGE in-hand-place: whoever had the place before is through with it.
            place.thread.compare_exchange(0, to, Ordering::Acquire, order).is_ok()
        };
        Mine(PLACES.iter().find(is_free))
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        // EDGE in-hand-place: nothing is written to the place behind this.
        self.0.iter().for_each(|place| place.thread.store(0, Ordering::Release));
    }
}

/// A request that this thread has in hand until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct InHand {
    /// Goes with its thread.
    _stays: PhantomData<*const ()>,
}

impl InHand {
    /// Takes one. A thread has one at a time.
    pub fn take(doing: Doing) -> InHand {
        set(|number| (number + 1) << DOING_BITS | doing as u64);
        InHand { _stays: PhantomData }
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        set(|number| number << DOING_BITS);
    }
}

fn set(request: impl FnOnce(u64) -> u64) {
    // A thread that ends has nothing in hand.
    let _ = MINE.try_with(|mine| {
        let Some(place) = mine.0 else { return };
        let number = place.request.load(Ordering::Relaxed) >> DOING_BITS;
        place.request.store(request(number), Ordering::Relaxed);
    });
}

/// A request that is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Who has it in hand.
    pub thread: u32,
    /// What is done for it.
    pub doing: Doing,
    /// When it was first seen, by the clock of who looks.
    pub since_ns: u64,
}

/// What earlier looks saw.
#[derive(Debug)]
pub struct Looks(Vec<Seen>);

/// What was in hand at one place.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    thread: u32,
    request: u64,
    since_ns: u64,
}

impl Looks {
    /// Before the first look.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is as large as the table of all threads")]
    pub fn new() -> Looks {
        Looks(vec![Seen::default(); WATCHED_MAX])
    }

    /// Looks again. Returns the request that has been in hand for longest.
    pub fn look(&mut self, now_ns: u64) -> Option<Unanswered> {
        let seen = self.0.iter_mut().zip(&PLACES);
        seen.filter_map(|(seen, place)| seen.again(place, now_ns)).min_by_key(|it| it.since_ns)
    }
}

impl Seen {
    fn again(&mut self, place: &Place, now_ns: u64) -> Option<Unanswered> {
        let thread = place.thread.load(Ordering::Relaxed);
        let request = place.request.load(Ordering::Relaxed);
        if (thread, request) != (self.thread, self.request) {
            *self = Seen { thread, request, since_ns: now_ns };
        }
        let doing = Doing::of(request).filter(|_| thread != 0)?;
        Some(Unanswered { thread, doing, since_ns: self.since_ns })
    }
}

#[cfg(test)]
mod tests;
