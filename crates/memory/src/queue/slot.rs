//! One slot: a word that says whose it is and how far its request is, and what was asked and
//! answered.
//!
//! Promise: one word decides, and changes in one step: who has a slot is never in doubt between
//! two instructions, so a slot whose owner died can always be told and brought back.
//! Never: follows links; `client` and `server` do.
//!
//! There is no chain of free slots. Whoever unlinks a slot from a chain and dies before it has put
//! its name on it leaves a slot that nobody can attribute, and a chain must be guarded against a
//! head that left and came back. A slot is free if its word says so; taking it and naming its
//! owner is one compare-and-swap of that word, and the search begins where one became free last
//! (decision 22).
//!
//! The word, from its low end: 4 bits state, 1 bit "the owner sleeps", 11 bits counting how often
//! the slot was taken, 16 bits owner.

use std::num::NonZeroU16;
use std::sync::atomic::Ordering;

use crate::atomics::AtomicU32;
use crate::words::Words;

/// Who has a slot: a number that names one client of the page for as long as it lives.
pub type Owner = NonZeroU16;

/// How far a slot's request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Anybody may take the slot.
    Free,
    /// Its owner fills in a request.
    Held,
    /// The request is in the list, or its owner is about to link it.
    Queued,
    /// The server works on it.
    Taken,
    /// The response is there.
    Done,
}

/// The word of a slot, read once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u32);

const STATE: u32 = 0xf;
const SLEEPS: u32 = 1 << 4;
const COUNT_ONE: u32 = 1 << 5;
const COUNT: u32 = 0xffe0;
const OWNER_SHIFT: u32 = 16;

impl Word {
    /// What the word says; `None` if no program of ours wrote it.
    pub(crate) fn state(self) -> Option<State> {
        use State::{Done, Free, Held, Queued, Taken};
        [Free, Held, Queued, Taken, Done].get((self.0 & STATE) as usize).copied()
    }

    /// Whose the slot is; `None` for nobody's.
    pub(crate) fn owner(self) -> Option<Owner> {
        Owner::new((self.0 >> OWNER_SHIFT) as u16)
    }

    /// Whether the owner sleeps until the response is there.
    pub(crate) fn sleeps(self) -> bool {
        self.0 & SLEEPS != 0
    }

    /// The word of the same owner in another state.
    pub(crate) fn moved_to(self, state: State) -> Word {
        Word(self.0 & !STATE | state as u32)
    }

    /// The word of a slot that `owner` takes.
    pub(crate) fn taken_by(self, owner: Owner) -> Word {
        let count = self.0.wrapping_add(COUNT_ONE) & COUNT;
        Word(u32::from(owner.get()) << OWNER_SHIFT | count | State::Held as u32)
    }

    /// The word of the slot once it is nobody's.
    pub(crate) fn freed(self) -> Word {
        Word(self.0 & COUNT | State::Free as u32)
    }

    /// The word of an owner that is about to sleep.
    pub(crate) fn asleep(self) -> Word {
        Word(self.0 | SLEEPS)
    }
}

/// What a client asks for. Its fields are the client's claims: the server checks them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Counts this client's requests; a request that is repeated keeps its number.
    pub sequence: u64,
    /// Which service.
    pub handle: u32,
    /// Proves that the handle is the one the server gave.
    pub check: u32,
    /// What the service is to do.
    pub operation: u16,
    /// A small number for the operation.
    pub count: u16,
    /// Where the data begins, in bytes from the start of the data buffers.
    pub buffer: u32,
    /// Bytes of data.
    pub bytes: u32,
    /// Two numbers for the operation.
    pub argument: [u64; 2],
}

/// What the server answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// What became of the request; [`REBUILT`](super::REBUILT) is the queue's own.
    pub status: u32,
    /// Bytes of data that came back in the buffer.
    pub bytes: u32,
    /// Two numbers of the operation's.
    pub value: [u64; 2],
}

/// Words of a request; a response needs fewer.
const CONTENT_WORDS: usize = 6;

impl Request {
    fn to_words(self) -> [u64; CONTENT_WORDS] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let operation = u32::from(self.operation) | u32::from(self.count) << 16;
        let [first, second] = self.argument;
        let (name, data) = (pair(self.handle, self.check), pair(operation, self.buffer));
        [self.sequence, name, data, u64::from(self.bytes), first, second]
    }

    fn from_words(words: [u64; CONTENT_WORDS]) -> Request {
        let [sequence, name, data, bytes, first, second] = words;
        Request {
            sequence,
            handle: name as u32,
            check: (name >> 32) as u32,
            operation: data as u16,
            count: (data >> 16) as u16,
            buffer: (data >> 32) as u32,
            bytes: bytes as u32,
            argument: [first, second],
        }
    }
}

impl Response {
    fn to_words(self) -> [u64; CONTENT_WORDS] {
        let head = u64::from(self.status) | u64::from(self.bytes) << 32;
        [head, self.value[0], self.value[1], 0, 0, 0]
    }

    fn from_words([head, first, second, ..]: [u64; CONTENT_WORDS]) -> Response {
        Response { status: head as u32, bytes: (head >> 32) as u32, value: [first, second] }
    }
}

/// A slot as it lies in the page.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Slot {
    /// See the head of this file.
    pub(crate) word: AtomicU32,
    /// The next older request while it is a client's to set, the next newer one once the server
    /// turned the list round.
    pub(crate) next: AtomicU32,
    /// In the oldest request of a turned list: the newest of that list. Else 0.
    pub(crate) tail: AtomicU32,
    unused: AtomicU32,
    /// The request; once the server has copied that, the response. All of a slot that is used lies
    /// on one cache line, which goes to the server and back once.
    content: Words<CONTENT_WORDS>,
}

impl Slot {
    /// The word now. Whoever acts on it swaps it, and so learns whether it still holds.
    pub(crate) fn look(&self) -> Word {
        Word(self.word.load(Ordering::Relaxed))
    }

    /// Changes the word, unless it is not `from` any more.
    pub(crate) fn swap(&self, from: Word, to: Word, order: Ordering) -> bool {
        self.word.compare_exchange(from.0, to.0, order, Ordering::Relaxed).is_ok()
    }

    /// Writes the request. For the owner of a held slot.
    pub(crate) fn write_request(&self, request: &Request) {
        self.content.store(request.to_words());
    }

    /// A copy of the request. For the server, of a taken slot.
    pub(crate) fn read_request(&self) -> Request {
        Request::from_words(self.content.load())
    }

    /// Writes the response. For the server, of a taken slot.
    pub(crate) fn write_response(&self, response: &Response) {
        self.content.store(response.to_words());
    }

    /// A copy of the response. For the owner of a done slot.
    pub(crate) fn read_response(&self) -> Response {
        Response::from_words(self.content.load())
    }

    /// Sets where the slot stands among others.
    pub(crate) fn link(&self, next: u32, tail: u32) {
        self.next.store(next, Ordering::Relaxed);
        self.tail.store(tail, Ordering::Relaxed);
    }
}

#[cfg(model)]
impl Slot {
    /// A free slot outside any page, for the models.
    pub(crate) fn new() -> Slot {
        let zero = || AtomicU32::new(0);
        let content = Words::new();
        Slot { word: zero(), next: zero(), tail: zero(), unused: zero(), content }
    }
}
