//! A tree of keys and values, from its root down.
//!
//! Promise: whoever asks for a key gets the leaf that has it or would have it; on the way each page
//! is checked to be what the one above says, so a page that is not is told and not searched.
//! Never: locks a key, or knows transactions; holds a latch when it returns.

use std::ops::Deref;

use holdfast_pages::{Page, PageNumber, Rsn, Stream, Unfit};

use crate::node::contents::put_image;
use crate::node::{Node, Shape};
use crate::pool::allocator::Allocator;
use crate::pool::latches;
use crate::pool::{Below, Pool, ReadLatch, WriteLatch};
use crate::snapshot::formers::Formers;

mod adopt;
mod change;
mod check;
mod distrust;
mod large;
mod load;
mod look;
mod merge;
mod purge;
pub(crate) mod put;
mod scan;
mod seek;
mod split;
mod stop;
mod write_batch;

pub(crate) use change::Changed;
pub(crate) use load::Loaded;
pub(crate) use put::By;
pub(crate) use scan::{LeafEnd, Seen};
pub(crate) use seek::Seek;
pub(crate) use stop::TreeError;
pub(crate) use write_batch::{Wanted, WriteBatch};

use put::{Change, Said, put};
use seek::{Step, before};
use stop::{DOUBTS_MAX, Stop, corrupt};

/// A tree. Cheap to make: it is only where everything is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree<'a, B> {
    pool: &'a Pool<B>,
    stream: &'a Stream,
    numbers: &'a Allocator,
    formers: &'a Formers,
    root: PageNumber,
}

/// How much is put between two looks at what the log has not got yet.
pub(crate) const FLUSH_EVERY_BYTES: usize = 64 << 10;

/// How often an operation begins again for want of a frame.
const TRIES_MAX: usize = 10_000;

/// What is known of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// Its value.
    Value(&'a [u8]),
    /// It is deleted, but its entry is there.
    Ghost,
    /// There is no such key; the one before it, or the low fence of the leaf, is this.
    Gap(&'a [u8]),
}

/// A latch of either kind.
enum Latch<'a> {
    Read(ReadLatch<'a>),
    Write(WriteLatch<'a>),
}

/// A node, and the level of the last foster child on the way there, if there was one.
type Reached<'a, E> = Result<(Latch<'a>, Option<u8>), Stop<E>>;

impl<'a, B: Below> Tree<'a, B> {
    /// The tree with this root.
    #[must_use]
    pub(crate) fn new(
        pool: &'a Pool<B>,
        stream: &'a Stream,
        numbers: &'a Allocator,
        formers: &'a Formers,
        root: PageNumber,
    ) -> Tree<'a, B> {
        Tree { pool, stream, numbers, formers, root }
    }

    /// Makes a tree with nothing in it, and returns its root.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn create(
        pool: &'a Pool<B>,
        stream: &'a Stream,
        numbers: &'a Allocator,
        formers: &'a Formers,
    ) -> Result<PageNumber, TreeError<B::Error>> {
        let root = numbers.take_root();
        let tree = Tree::new(pool, stream, numbers, formers, root);
        let mut image = Vec::new();
        let shape = Shape { level: 0, low: b"", high: None, foster: None };
        put_image(root, &shape, std::iter::empty(), &mut image);
        tree.again(|| {
            let mut page = pool.make(root)?;
            let said = Said::Begin(&image);
            put(stream, &mut [Change { page: &mut page, number: root, said: &[said] }])?;
            Ok(())
        })?;
        Ok(root)
    }

    /// Shows what is known of a key, while its leaf is latched.
    ///
    /// # Errors
    /// See [`TreeError`].
    pub(crate) fn get<T>(
        &self,
        key: &[u8],
        mut found: impl FnMut(Found<'_>) -> T,
    ) -> Result<T, TreeError<B::Error>> {
        self.again(|| {
            let (leaf, _) = self.descend(Seek::At(key), 0, false)?;
            let node = self.node(&leaf)?;
            Ok(match node.find(key) {
                Ok(place) if node.entry(place).ghost => found(Found::Ghost),
                Ok(place) => found(Found::Value(node.entry(place).value)),
                Err(place) => found(Found::Gap(&before(node, place))),
            })
        })
    }

    /// Repeats what stops for want of a frame, after a flush, or at a page that is loaded anew
    /// then.
    fn again<T>(
        &self,
        mut operation: impl FnMut() -> Result<T, Stop<B::Error>>,
    ) -> Result<T, TreeError<B::Error>> {
        let mut doubts = 0;
        for _ in 0..TRIES_MAX {
            match operation() {
                Ok(done) => return Ok(done),
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::Doubt(doubt)) if doubts == DOUBTS_MAX => return Err(doubt.error()),
                Err(Stop::Doubt(doubt)) => {
                    doubts += 1;
                    self.look_anew(doubt)?;
                }
                Err(Stop::NoFrame) => drop(self.flush()?),
                Err(Stop::Low) => unreachable!("every tree has leaves"),
            }
            std::thread::yield_now();
        }
        Err(TreeError::PoolTooSmall)
    }

    fn flush(&self) -> Result<Rsn, TreeError<B::Error>> {
        latches::may_wait();
        self.stream.flush().map_err(TreeError::Flush)
    }

    /// The node of this level on the way there. If `write`, its latch is exclusive.
    fn descend(&self, to: Seek<'_>, level: u8, write: bool) -> Reached<'a, B::Error> {
        self.descend_through(to, level, write, |_| Ok(()))
    }

    /// The same, with a look at each node on the way, that one included.
    fn descend_through(
        &self,
        to: Seek<'_>,
        level: u8,
        write: bool,
        mut look: impl FnMut(&Page) -> Result<(), Unfit>,
    ) -> Reached<'a, B::Error> {
        let (mut latch, mut passed) = (self.fix_root(level, write)?, None);
        loop {
            look(&latch).map_err(|why| corrupt(&latch, why))?;
            let node = self.node(&latch)?;
            let step = to.step(node, level).map_err(|why| corrupt(&latch, why))?;
            let (number, next_level) = match step {
                Step::Here => return Ok((latch, passed)),
                Step::Child(number, _) => (number, node.level() - 1),
                Step::Foster(number) => (number, node.level()),
            };
            if matches!(step, Step::Foster(_)) {
                passed = Some(next_level);
            }
            let next = self.fix(number, write && next_level == level);
            let next = next.and_then(|next| {
                self.check_next(node, &step, &next)?;
                Ok(next)
            });
            latch = next.map_err(|stop| stop.led_by(&latch))?;
        }
    }

    /// The one above the node of this level where `key` is, to be changed; none if that node is
    /// the root, which it may have become a moment ago.
    fn parent(&self, key: &[u8], level: u8) -> Result<Option<WriteLatch<'a>>, Stop<B::Error>> {
        match self.descend(Seek::At(key), level + 1, true) {
            Ok((latch, _)) => Ok(Some(latch.exclusive())),
            Err(Stop::Low) => Ok(None),
            Err(stop) => Err(stop),
        }
    }

    fn fix(&self, number: PageNumber, write: bool) -> Result<Latch<'a>, Stop<B::Error>> {
        Ok(if write {
            Latch::Write(self.pool.write(number)?)
        } else {
            Latch::Read(self.pool.read(number)?)
        })
    }

    /// The root, whose level is known only once it is latched.
    fn fix_root(&self, level: u8, write: bool) -> Result<Latch<'a>, Stop<B::Error>> {
        loop {
            let latch = self.fix(self.root, false)?;
            let found = self.node(&latch)?.level();
            if found < level {
                return Err(Stop::Low);
            }
            if !write || found > level {
                return Ok(latch);
            }
            drop(latch);
            let latch = self.fix(self.root, true)?;
            if self.node(&latch)?.level() == level {
                return Ok(latch);
            }
        }
    }

    fn node<'p>(&self, page: &'p Page) -> Result<Node<'p>, Stop<B::Error>> {
        let node = Node::of(page).map_err(|why| corrupt(page, why))?;
        if page.tree() == self.root {
            Ok(node)
        } else {
            Err(corrupt(page, Unfit("another tree's")))
        }
    }

    /// Whether the page below or to the right is what this node says.
    fn check_next(&self, node: Node<'_>, step: &Step, next: &Page) -> Result<(), Stop<B::Error>> {
        let (shape, below) = (node.shape(), self.node(next)?);
        let found = below.shape();
        let fits = match *step {
            Step::Here => true,
            Step::Foster(_) => {
                let low = shape.foster.map(|foster| foster.key);
                found.level == shape.level && Some(found.low) == low && found.high == shape.high
            }
            Step::Child(_, place) => {
                let high = if place + 1 < node.count() {
                    found.high.is_some_and(|high| node.is_at(place + 1, high))
                } else {
                    found.high == shape.end()
                };
                shape.level.checked_sub(1) == Some(found.level)
                    && node.is_at(place, found.low)
                    && high
            }
        };
        if fits { Ok(()) } else { Err(corrupt(next, Unfit("not what its neighbours say"))) }
    }
}

impl Deref for Latch<'_> {
    type Target = Page;

    fn deref(&self) -> &Page {
        match self {
            Latch::Read(latch) => latch,
            Latch::Write(latch) => latch,
        }
    }
}

impl<'a> Latch<'a> {
    /// The latch that was asked for to change the page.
    fn exclusive(self) -> WriteLatch<'a> {
        match self {
            Latch::Write(latch) => latch,
            Latch::Read(_) => unreachable!("an exclusive latch was asked for"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
