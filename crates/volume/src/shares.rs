//! Who has how much of what the users of a volume share: room in the ring, open files, and what the
//! home has to do that is no bytes of the ring, as to make zeros.
//!
//! A user fills the ring as fast as he writes, and it is emptied as fast as the home takes what he
//! wrote, which may be a thousand times slower. If whoever comes first gets what becomes free, all
//! others wait behind him. So a part stays free of whoever has much.
//!
//! Promise: nobody gets anything that leaves him with more than [`FREE_TIMES_MAX`] times as much
//! as is free then. So each user who comes leaves a quarter of what he finds, and as things are
//! given back `n` who take all they get come to have the same, and one part in `1 + n *
//! FREE_TIMES_MAX` is free. While somebody waits for room in the ring, nobody gets any who has
//! more than he; so who has least waits for what is given back next, and for nobody. What others
//! wait for in the kernel goes before its turn, one at a time every [`OUT_OF_TURN_NS`]; it counts.
//! Never: keeps anybody from taking who has nothing. When all that waits in the log is at home,
//! nobody has anything: so a full ring is emptied and filled again as without shares.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_log::Lsn;

/// How much more than what is free one user may have.
pub(crate) const FREE_TIMES_MAX: u64 = 3;
/// How often something goes before its turn: so seldom that it fills no ring, so often that nobody
/// waits long for it.
const OUT_OF_TURN_NS: u64 = 10_000_000;
/// Log in which one user's frames are kept as one.
const TOGETHER_BYTES: u64 = 16 << 10;

/// The books.
#[derive(Default)]
pub(crate) struct Shares {
    books: Mutex<Books>,
    freed: Condvar,
}

#[derive(Default)]
struct Books {
    /// What each user has who has anything.
    held: HashMap<u32, Held>,
    /// Whose frames lie in the ring, oldest first.
    placed: VecDeque<Placed>,
    /// Who was told to wait, until he gets what he waits for or gives up.
    waiting: HashMap<u32, Waiting>,
    /// Files that are open, of users and of nobody.
    files: usize,
    /// Bytes of work for the home that are no bytes of the ring.
    work_bytes: u64,
    /// When something went before its turn last, and whether something waits for that.
    out_of_turn_ns: Option<u64>,
    is_soon: bool,
    /// How often something became free, and how often that was when somebody last looked.
    freed: u64,
    looked: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Held {
    ring_bytes: u64,
    work_bytes: u64,
    files: usize,
}

impl Held {
    fn add(&mut self, more: Held) {
        self.ring_bytes += more.ring_bytes;
        self.work_bytes += more.work_bytes;
        self.files += more.files;
    }
}

/// Whether one may have so much more of what so much is free of. Who asks for more than that waits
/// for what is free, and not for his share.
fn is_fair(held: u64, more: u64, free: u64) -> bool {
    match free.checked_sub(more) {
        Some(left) => held + more <= left.saturating_mul(FREE_TIMES_MAX),
        None => held <= free.saturating_mul(FREE_TIMES_MAX),
    }
}

struct Placed {
    first: Lsn,
    last: Lsn,
    user: u32,
    held: Held,
}

#[derive(Clone, Copy)]
struct Waiting {
    since_ns: u64,
    kind: Wait,
}

/// What somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The ring has no room for a payload of so many bytes.
    Room(u64),
    /// It has, and others are to have it.
    Turn,
    /// The home: a file, or what it says of its room.
    Home,
}

impl Shares {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is the user's turn to put so many bytes into a ring, of which so many are free,
    /// if that is known. Whether they fit says the ring.
    pub(crate) fn may_append(&self, user: u32, bytes: u64, free_bytes: Option<u64>) -> bool {
        self.books().may_append(user, bytes, free_bytes)
    }

    /// Whether the user may leave so much work to the home of which the ring knows nothing. All of
    /// it is at most `bytes_max`, and one request more of each.
    pub(crate) fn may_leave_work(&self, user: u32, bytes: u64, bytes_max: u64) -> bool {
        let books = self.books();
        let held = books.of(user).work_bytes;
        let free = bytes_max.saturating_sub(books.work_bytes);
        bytes == 0 || held == 0 || is_fair(held, bytes, free)
    }

    /// Whether it is time that something goes before its turn. Whoever waits for others is told
    /// that it soon will be.
    pub(crate) fn goes_out_of_turn(&self, now_ns: u64) -> bool {
        let mut books = self.books();
        let is_soon = |at_ns: u64| now_ns.saturating_sub(at_ns) < OUT_OF_TURN_NS;
        if !books.out_of_turn_ns.is_some_and(is_soon) {
            (books.out_of_turn_ns, books.is_soon) = (Some(now_ns), false);
            return true;
        }
        if !books.is_soon {
            books.is_soon = true;
            books.freed += 1;
            self.freed.notify_all();
        }
        false
    }

    /// The user has a frame in the ring, and so much work with it beyond that.
    pub(crate) fn placed(&self, user: u32, lsn: Lsn, bytes: u64, work_bytes: u64) {
        self.books().place(user, lsn, Held { ring_bytes: bytes, work_bytes, files: 0 });
    }

    /// A frame of whoever's turns out to be so much more work for the home.
    pub(crate) fn turns_out(&self, lsn: Lsn, work_bytes: u64) {
        self.books().turns_out(lsn, work_bytes);
    }

    /// The home has everything below `upto`, and the ring has been given back so far.
    pub(crate) fn came_home(&self, upto: Lsn) {
        self.books().came_home(upto);
        self.freed.notify_all();
    }

    /// Counts one more open file, unless that is more than the user may have of `files_max`.
    pub(crate) fn open_file(&self, user: Option<u32>, files_max: usize) -> bool {
        self.books().open_file(user, files_max)
    }

    /// A file was closed that the user had open.
    pub(crate) fn close_file(&self, user: Option<u32>) {
        let mut books = self.books();
        books.files -= 1;
        if let Some(user) = user {
            books.take_back(user, Held { files: 1, ..Held::default() });
        }
    }

    /// The user is told to wait.
    pub(crate) fn waits(&self, user: u32, kind: Wait, now_ns: u64) {
        let mut books = self.books();
        let new = Waiting { since_ns: now_ns, kind };
        books.waiting.entry(user).or_insert(new).kind = kind;
    }

    /// The user has got what he asked for, or does not wait for it any more. Returns since when he
    /// waited, if he did.
    pub(crate) fn waits_no_more(&self, user: u32) -> Option<u64> {
        let mut books = self.books();
        if books.waiting.is_empty() {
            return None;
        }
        books.waiting.remove(&user).map(|waiting| waiting.since_ns)
    }

    /// The most that somebody waits for in the ring.
    pub(crate) fn wanted_bytes(&self) -> Option<u64> {
        let bytes = |waiting: &Waiting| match waiting.kind {
            Wait::Room(bytes) => Some(bytes),
            Wait::Turn | Wait::Home => None,
        };
        self.books().waiting.values().filter_map(bytes).max()
    }

    /// Returns when something has become free since the last look, or after so long.
    pub(crate) fn wait(&self, patience: Duration) {
        let books = self.books();
        let soon = Duration::from_nanos(OUT_OF_TURN_NS);
        let patience = if books.is_soon { patience.min(soon) } else { patience };
        let waited =
            self.freed.wait_timeout_while(books, patience, |books| books.freed == books.looked);
        let (mut books, ended) = waited.unwrap_or_else(PoisonError::into_inner);
        books.looked = books.freed;
        books.is_soon &= !ended.timed_out();
    }
}

impl Books {
    fn of(&self, user: u32) -> Held {
        self.held.get(&user).copied().unwrap_or_default()
    }

    fn may_append(&self, user: u32, bytes: u64, free_bytes: Option<u64>) -> bool {
        let held = self.of(user).ring_bytes;
        let goes_first = |(other, waiting): (&u32, &Waiting)| {
            waiting.kind != Wait::Home && self.of(*other).ring_bytes < held
        };
        free_bytes.is_none_or(|free| is_fair(held, bytes, free))
            && !self.waiting.iter().any(goes_first)
    }

    fn place(&mut self, user: u32, lsn: Lsn, more: Held) {
        self.held.entry(user).or_default().add(more);
        self.work_bytes += more.work_bytes;
        match self.placed.back_mut() {
            Some(last) if last.user == user && lsn.0 < last.first.0 + TOGETHER_BYTES => {
                last.last = last.last.max(lsn);
                last.held.add(more);
            }
            _ => self.placed.push_back(Placed { first: lsn, last: lsn, user, held: more }),
        }
    }

    fn turns_out(&mut self, lsn: Lsn, work_bytes: u64) {
        let index = self.placed.partition_point(|placed| placed.last < lsn);
        let placed = self.placed.get_mut(index).filter(|placed| placed.first <= lsn);
        let Some(placed) = placed else { return };
        let more = Held { work_bytes, ..Held::default() };
        placed.held.add(more);
        self.held.entry(placed.user).or_default().add(more);
        self.work_bytes += work_bytes;
    }

    fn came_home(&mut self, upto: Lsn) {
        while let Some(oldest) = self.placed.pop_front_if(|oldest| oldest.last < upto) {
            self.work_bytes -= oldest.held.work_bytes;
            self.take_back(oldest.user, oldest.held);
        }
        self.freed += 1;
    }

    fn open_file(&mut self, user: Option<u32>, files_max: usize) -> bool {
        let free = files_max.saturating_sub(self.files);
        let share = free.saturating_mul(FREE_TIMES_MAX as usize);
        if free == 0 || user.is_some_and(|user| self.of(user).files > share) {
            return false;
        }
        self.files += 1;
        if let Some(user) = user {
            self.held.entry(user).or_default().files += 1;
        }
        true
    }

    /// Who has nothing left is forgotten.
    fn take_back(&mut self, user: u32, less: Held) {
        let held = self.held.get_mut(&user).expect("he has it");
        held.ring_bytes -= less.ring_bytes;
        held.work_bytes -= less.work_bytes;
        held.files -= less.files;
        if *held == Held::default() {
            self.held.remove(&user);
        }
    }
}

#[cfg(test)]
mod tests;
