//! Many keys change at once, and nobody undoes that.
//!
//! Promise: all changes are in one group of records, or nothing has changed; leaves that are too
//! full for them split in the same group.
//! Never: waits for a lock; waits for a latch while it has another.

use std::borrow::Cow;

use holdfast_pages::{Contents, Page, PageNumber, Rsn, Unfit};

use super::change::told;
use super::put::{By, Change, Said, put_keys};
use super::seek::before;
use super::split::{halves, split_place};
use super::stop::{Stop, TreeError, corrupt};
use super::{Seek, TRIES_MAX, Tree};
use crate::node::body::{Body, Spot};
use crate::node::contents::NodeContents;
use crate::node::large::{Large, Stored};
use crate::node::{Node, Shape};
use crate::pool::{Below, WriteLatch};
use crate::trees::{NAMES_ROOT, Trees};

/// What a key is to be.
#[derive(Debug)]
pub(crate) struct Wanted<'w> {
    /// The root of its tree.
    pub(crate) tree: PageNumber,
    pub(crate) key: &'w [u8],
    /// What the leaf is to say of its value; none if the key is to be deleted.
    pub(crate) stored: Option<Cow<'w, [u8]>>,
}

/// What became of changes.
#[derive(Debug)]
pub(crate) enum WriteBatch {
    /// All are made.
    Done {
        /// Where their records end.
        end: Rsn,
        /// Large values that no leaf tells of any more, and their trees.
        gone: Vec<(PageNumber, Large)>,
    },
    /// The caller has not got the lock on the gap behind `gap`, which `key` comes into. Nothing
    /// happened.
    Wait { tree: PageNumber, gap: Vec<u8>, key: Vec<u8> },
}

/// How an attempt ended.
enum Attempt {
    Over(WriteBatch),
    /// This tree is a leaf alone, and too full.
    Grow(PageNumber),
    /// A leaf had no latch to give, or has changed meanwhile.
    Busy,
}

/// What a leaf has to do for a key.
enum Step {
    Nothing,
    Put(Vec<u8>, Option<Large>),
    Room,
    Wait(Vec<u8>),
}

/// Wanted keys that one leaf has.
struct Span<'w> {
    leaf: PageNumber,
    wanted: &'w [Wanted<'w>],
}

/// A leaf that is to change.
struct Planned<'a> {
    latch: WriteLatch<'a>,
    number: PageNumber,
    tree: PageNumber,
    /// As it will be.
    page: Page,
    says: Vec<Says>,
    is_new: bool,
}

/// What will be said of it.
enum Says {
    Begin(Vec<u8>),
    Body(Vec<u8>),
}

/// Leaves that are to change, all latched, neighbours in order.
struct Plan<'t, 'a, B> {
    trees: &'t Trees<'a, B>,
    leaves: Vec<Planned<'a>>,
    leaves_max: usize,
    gone: Vec<(PageNumber, Large)>,
}

/// Leaves that have split, each by its tree and its low fence.
type Parted = Vec<(PageNumber, Vec<u8>)>;

impl<'a, B: Below> Trees<'a, B> {
    /// Makes keys what is wanted, which is ordered by tree and key. `has_gap` is asked, of a tree,
    /// under latches, whether the caller has the lock on the gap behind the first key, which the
    /// second one comes into.
    ///
    /// # Errors
    /// See [`TreeError`]; nothing has changed. [`TreeError::PoolTooSmall`] also if more leaves
    /// change than half of the pool has frames.
    pub(crate) fn change_together(
        &self,
        wanted: &[Wanted<'_>],
        mut has_gap: impl FnMut(PageNumber, &[u8], &[u8]) -> bool,
    ) -> Result<WriteBatch, TreeError<B::Error>> {
        let any = self.tree(wanted.first().map_or(NAMES_ROOT, |first| first.tree));
        let (mut busy, mut parted) = (None, Parted::new());
        for _ in 0..TRIES_MAX {
            let attempt = || self.attempt(wanted, &mut has_gap, &mut busy, &mut parted);
            match any.again(attempt)? {
                Attempt::Over(together) => {
                    self.formers.bound();
                    self.adopt(&parted);
                    return Ok(together);
                }
                Attempt::Grow(root) => self.tree(root).grow_leaf()?,
                Attempt::Busy => std::thread::yield_now(),
            }
        }
        Err(TreeError::PoolTooSmall)
    }

    fn attempt(
        &self,
        wanted: &[Wanted<'_>],
        has_gap: &mut impl FnMut(PageNumber, &[u8], &[u8]) -> bool,
        busy: &mut Option<PageNumber>,
        parted: &mut Parted,
    ) -> Result<Attempt, Stop<B::Error>> {
        let spans = self.spans(wanted)?;
        let leaves_max = self.pool.frames.len() / 2;
        if spans.len() > leaves_max {
            return Err(Stop::Error(TreeError::PoolTooSmall));
        }
        let Some(latches) = self.latch_all(&spans, busy)? else { return Ok(Attempt::Busy) };
        let mut plan = Plan { trees: self, leaves: Vec::new(), leaves_max, gone: Vec::new() };
        let mut made = plan.make(&spans, latches, has_gap);
        if let Ok(None) = made {
            *parted = plan.parted();
            made = plan.put().map(|end| {
                let gone = std::mem::take(&mut plan.gone);
                Some(Attempt::Over(WriteBatch::Done { end, gone }))
            });
        }
        let is_done = matches!(made, Ok(Some(Attempt::Over(WriteBatch::Done { .. }))));
        if !is_done {
            parted.clear();
            plan.take_back();
        }
        made.map(|attempt| attempt.unwrap_or(Attempt::Busy))
    }

    /// Which leaves have the wanted keys now. Whoever latches them has to look again.
    fn spans<'w>(&self, wanted: &'w [Wanted<'w>]) -> Result<Vec<Span<'w>>, Stop<B::Error>> {
        let (mut spans, mut rest) = (Vec::new(), wanted);
        while let Some(first) = rest.first() {
            let tree = self.tree(first.tree);
            let (leaf, _) = tree.descend(Seek::At(first.key), 0, false)?;
            let end = tree.node(&leaf)?.shape().end();
            let is_here = |it: &Wanted<'_>| it.tree == first.tree && is_before(it.key, end);
            let (here, behind) = rest.split_at(rest.partition_point(is_here));
            spans.push(Span { leaf: leaf.number(), wanted: here });
            rest = behind;
        }
        Ok(spans)
    }

    /// The latches of all leaves, or of none if one cannot be had at once. That one is waited for
    /// the next time, when there is no other yet.
    fn latch_all(
        &self,
        spans: &[Span<'_>],
        busy: &mut Option<PageNumber>,
    ) -> Result<Option<Vec<WriteLatch<'a>>>, Stop<B::Error>> {
        let waited_for = spans.iter().position(|span| Some(span.leaf) == *busy).unwrap_or(0);
        let mut first = match spans.get(waited_for) {
            Some(span) => Some(self.pool.write(span.leaf)?),
            None => None,
        };
        let latches = spans.iter().enumerate().map(|(at, span)| {
            let latch =
                if at == waited_for { first.take() } else { self.pool.try_write(span.leaf) };
            latch.ok_or(span.leaf)
        });
        match latches.collect::<Result<Vec<_>, _>>() {
            Ok(latches) => Ok(Some(latches)),
            Err(leaf) => {
                *busy = Some(leaf);
                Ok(None)
            }
        }
    }

    /// Has parents know leaves that have split. Whoever is busy is told by others who pass there.
    fn adopt(&self, parted: &Parted) {
        for (root, low) in parted {
            let tree = self.tree(*root);
            let _ = tree.again(|| tree.adopt(low, 0));
        }
    }
}

impl<B: Below> Tree<'_, B> {
    /// Gives the root a child, if it is a leaf.
    fn grow_leaf(&self) -> Result<(), TreeError<B::Error>> {
        self.again(|| {
            let mut root = self.pool.write(self.root)?;
            if self.node(&root)?.level() == 0 { self.grow(&mut root) } else { Ok(()) }
        })
    }
}

impl<'a, B: Below> Plan<'_, 'a, B> {
    /// Plans everything. None if it can be put.
    fn make(
        &mut self,
        spans: &[Span<'_>],
        latches: Vec<WriteLatch<'a>>,
        has_gap: &mut impl FnMut(PageNumber, &[u8], &[u8]) -> bool,
    ) -> Result<Option<Attempt>, Stop<B::Error>> {
        for (span, latch) in spans.iter().zip(latches) {
            let tree = span.wanted[0].tree;
            // Its page may be another's since it was looked for.
            let node = Node::of(&latch).ok().filter(|_| latch.tree() == tree);
            let is_leaf = |node: &Node<'_>| node.level() == 0 && covers(&node.shape(), span.wanted);
            if !node.is_some_and(|node| is_leaf(&node)) {
                return Ok(Some(Attempt::Busy));
            }
            let (number, page) = (span.leaf, latch.clone());
            self.leaves.push(Planned { latch, number, tree, page, says: vec![], is_new: false });
            let mut at = self.leaves.len() - 1;
            for wanted in span.wanted {
                if let Some(attempt) = self.make_one(&mut at, wanted, has_gap)? {
                    return Ok(Some(attempt));
                }
            }
        }
        Ok(None)
    }

    /// Plans the change of one key, which the leaf at `at` has or one behind it.
    fn make_one(
        &mut self,
        at: &mut usize,
        wanted: &Wanted<'_>,
        has_gap: &mut impl FnMut(PageNumber, &[u8], &[u8]) -> bool,
    ) -> Result<Option<Attempt>, Stop<B::Error>> {
        let tree = wanted.tree;
        loop {
            while !self.leaves[*at].is_before_end(wanted.key)? {
                *at += 1;
            }
            let leaf = &mut self.leaves[*at];
            let of_leaf = |why| corrupt(&leaf.latch, why);
            match step(&leaf.page, wanted, has_gap).map_err(of_leaf)? {
                Step::Nothing => return Ok(None),
                Step::Put(body, gone) => {
                    leaf.say(body)?;
                    self.gone.extend(gone.map(|large| (tree, large)));
                    return Ok(None);
                }
                Step::Room if leaf.number == tree => return Ok(Some(Attempt::Grow(tree))),
                Step::Room => self.split(*at, wanted.key)?,
                Step::Wait(gap) => {
                    let key = wanted.key.to_vec();
                    return Ok(Some(Attempt::Over(WriteBatch::Wait { tree, gap, key })));
                }
            }
        }
    }

    /// Plans that a leaf gives its upper part to a new one.
    fn split(&mut self, at: usize, key: &[u8]) -> Result<(), Stop<B::Error>> {
        if self.leaves.len() == self.leaves_max {
            return Err(Stop::Error(TreeError::PoolTooSmall));
        }
        let left = &mut self.leaves[at];
        let (tree, node) = (left.tree, Node::of(&left.page));
        let node = node.map_err(|why| corrupt(&left.latch, why))?;
        let place = split_place(node, key);
        let full = || corrupt(&left.latch, Unfit("too full, with too few entries"));
        let place = place.ok_or_else(full)?;
        let (number, latch) = self.trees.tree(tree).begin()?;
        let (image, body) = halves(tree, node, place, number);
        let mut page = Page::zeroed();
        let restored = NodeContents.restore(&mut page, number, &image);
        restored.expect("an image that was made of a node is one");
        left.say(body)?;
        let says = vec![Says::Begin(image)];
        let right = Planned { latch, number, tree, page, says, is_new: true };
        self.leaves.insert(at + 1, right);
        Ok(())
    }

    /// Puts what is planned.
    fn put(&mut self) -> Result<Rsn, Stop<B::Error>> {
        let parts = self.leaves.iter_mut().map(|leaf| {
            let Planned { latch, number, says, .. } = leaf;
            (latch, *number, says.iter().map(Says::said).collect::<Vec<_>>())
        });
        let mut parts: Vec<_> = parts.collect();
        let changes =
            parts.iter_mut().map(|(page, number, said)| Change { page, number: *number, said });
        let mut changes: Vec<_> = changes.collect();
        Ok(put_keys(self.trees.stream, self.trees.formers, &mut changes)?)
    }

    /// Leaves that have a new one behind them.
    fn parted(&self) -> Parted {
        let pairs = self.leaves.windows(2).filter(|pair| pair[1].is_new);
        let low = |leaf: &Planned<'_>| Some(Node::of(&leaf.page).ok()?.shape().low.to_vec());
        pairs.filter_map(|pair| Some((pair[0].tree, low(&pair[0])?))).collect()
    }

    /// Lets go of pages that have not begun after all.
    fn take_back(self) {
        for leaf in self.leaves.into_iter().filter(|leaf| leaf.is_new) {
            self.trees.pool.forget(leaf.latch);
            self.trees.numbers.give_back(leaf.number);
        }
    }
}

impl Planned<'_> {
    fn is_before_end<E>(&self, key: &[u8]) -> Result<bool, Stop<E>> {
        let node = Node::of(&self.page).map_err(|why| corrupt(&self.latch, why))?;
        Ok(is_before(key, node.shape().end()))
    }

    fn say<E>(&mut self, body: Vec<u8>) -> Result<(), Stop<E>> {
        let applied = NodeContents.apply(&mut self.page, &body);
        applied.map_err(|why| corrupt(&self.latch, why))?;
        self.says.push(Says::Body(body));
        Ok(())
    }
}

impl Says {
    fn said(&self) -> Said<'_> {
        match self {
            Says::Begin(image) => Said::Begin(image),
            Says::Body(body) => Said::Body(By::System, body),
        }
    }
}

/// What makes a key in this leaf what is wanted.
fn step(
    page: &Page,
    wanted: &Wanted<'_>,
    has_gap: &mut impl FnMut(PageNumber, &[u8], &[u8]) -> bool,
) -> Result<Step, Unfit> {
    let (node, key) = (Node::of(page)?, wanted.key);
    let found = node.find(key);
    let (Ok(place) | Err(place)) = found;
    let spot = Spot { tree: wanted.tree, place, key };
    let body = match (found.map(|place| node.entry(place)), wanted.stored.as_deref()) {
        (Err(_), None) => return Ok(Step::Nothing),
        (Ok(entry), None) if entry.ghost => return Ok(Step::Nothing),
        (Ok(_), None) => Body::Ghost(spot),
        (Err(_), Some(value)) => {
            let gap = before(node, place);
            if !has_gap(wanted.tree, &gap, key) {
                return Ok(Step::Wait(gap));
            }
            if !node.fits(key, value.len()) {
                return Ok(Step::Room);
            }
            Body::Insert { spot, value }
        }
        (Ok(entry), Some(value)) => {
            if !node.fits_instead(place, value.len()) {
                return Ok(Step::Room);
            }
            let (at, gone, new) = told(entry.value, value);
            if !entry.ghost && gone.is_empty() && new.is_empty() {
                return Ok(Step::Nothing);
            }
            let mut body = Vec::new();
            Body::Renew { spot, at, cut: gone.len(), new }.put(&mut body);
            return Ok(Step::Put(body, Stored::large_of(entry.value)));
        }
    };
    let mut bytes = Vec::new();
    body.put(&mut bytes);
    Ok(Step::Put(bytes, None))
}

fn is_before(key: &[u8], end: Option<&[u8]>) -> bool {
    end.is_none_or(|end| key < end)
}

/// Whether a leaf of this shape has all of these keys.
fn covers(shape: &Shape<'_>, wanted: &[Wanted<'_>]) -> bool {
    wanted.first().is_none_or(|first| shape.low <= first.key)
        && wanted.last().is_none_or(|last| is_before(last.key, shape.end()))
}
