//! A page of a tree, as it is read.
//!
//! Byte table: FORMAT.md, "Node".
//!
//! Promise: keys of a node are found by what they share (once, in front) and by their first bytes
//! behind that; a node knows the keys that it may hold, whoever points to it.
//! Never: changes a byte; looks into another page.
//!
//! A node covers the keys from its low fence on, up to its high fence. Until its parent knows its
//! right neighbour, it points to that itself: the *foster* child, which covers what lies from the
//! foster key on, so the node itself holds only what lies below (Graefe, Kimura, Kuno: "Foster
//! B-trees", TODS 2012, section 3).

pub(crate) mod aside;
pub(crate) mod body;
pub(crate) mod contents;
pub(crate) mod fields;
pub(crate) mod large;
pub(crate) mod node_change;
pub(crate) mod node_check;

use std::cmp::Ordering;
use std::ops::Range;

use holdfast_pages::{PAGE_BYTES, PAGE_HEAD_BYTES, Page, PageKind, PageNumber, Unfit, varint};

/// Bytes of a page that are its node.
pub(crate) const NODE_BYTES: usize = PAGE_BYTES - PAGE_HEAD_BYTES;
/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 768;
/// The longest value that lies beside its key, in bytes.
pub const VALUE_BYTES_MAX: usize = 2048;

pub(crate) const LEVEL: usize = 0;
pub(crate) const COUNT: usize = 2;
pub(crate) const HEAP: usize = 4;
pub(crate) const DEAD: usize = 6;
pub(crate) const PREFIX: usize = 8;
pub(crate) const LOW: usize = 10;
pub(crate) const HIGH: usize = 12;
pub(crate) const FOSTER: usize = 14;
pub(crate) const FOSTER_PAGE: usize = 16;
/// Bytes before the fences.
pub(crate) const HEAD_BYTES: usize = 24;
/// Bytes that an entry takes before the heap.
pub(crate) const SLOT_BYTES: usize = 8;
/// The length of a high fence that is above every key.
pub(crate) const INFINITE: u16 = u16::MAX;
/// Set in the length of a key whose entry is a ghost.
pub(crate) const GHOST: u16 = 1 << 15;

/// The most that an entry takes: slot, key, length of the value, value.
const ENTRY_BYTES_MAX: usize = SLOT_BYTES + KEY_BYTES_MAX + 2 + VALUE_BYTES_MAX;
const FENCES_BYTES_MAX: usize = 3 * KEY_BYTES_MAX;
// A node without room for an entry has two others at least, so it can be split between them.
const _: () = assert!(HEAD_BYTES + FENCES_BYTES_MAX + 2 * ENTRY_BYTES_MAX <= NODE_BYTES);
// Either half of a node fits, though its fences are longer than the whole node's were.
const _: () =
    assert!(HEAD_BYTES + FENCES_BYTES_MAX + (NODE_BYTES + ENTRY_BYTES_MAX) / 2 <= NODE_BYTES);
const _: () = assert!(NODE_BYTES < INFINITE as usize && KEY_BYTES_MAX < GHOST as usize);

/// A node whose head is sound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    bytes: &'a [u8; NODE_BYTES],
    slots_at: usize,
    count: usize,
}

/// A key, less what all keys of the node begin with, and what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// The key behind the node's prefix.
    pub suffix: &'a [u8],
    /// In a leaf the value, in an inner node the child as a varint.
    pub value: &'a [u8],
    /// Whether the key is deleted. Its entry stays until nobody can want it back.
    pub ghost: bool,
}

/// The right neighbour that a node's parent does not know yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foster<'a> {
    /// The first key that belongs to it.
    pub key: &'a [u8],
    /// Where it is.
    pub page: PageNumber,
}

/// Which keys a node covers, and how far it is from the leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape<'a> {
    /// 0 for leaves.
    pub level: u8,
    /// No key is below.
    pub low: &'a [u8],
    /// All keys are below, if there is such a key.
    pub high: Option<&'a [u8]>,
    /// Who has the upper part of the keys, if not the node itself.
    pub foster: Option<Foster<'a>>,
}

impl<'a> Shape<'a> {
    /// The keys that the node itself may hold are below this.
    #[must_use]
    #[inline]
    pub(crate) fn end(&self) -> Option<&'a [u8]> {
        self.foster.map(|foster| foster.key).or(self.high)
    }

    /// Whether the node itself may hold the key.
    #[must_use]
    #[inline]
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        self.low <= key && self.end().is_none_or(|end| key < end)
    }

    /// What every key begins with that lies between the fences.
    pub(crate) fn prefix(&self) -> &'a [u8] {
        let high = self.high.unwrap_or(&[]);
        let same = self.low.iter().zip(high).take_while(|(low, high)| low == high).count();
        &self.low[..same]
    }

    /// Bytes of head and fences.
    pub(crate) fn bytes(&self) -> usize {
        let (high, foster) = (self.high.unwrap_or(&[]), self.foster.map_or(&[][..], |it| it.key));
        HEAD_BYTES + self.low.len() + high.len() + foster.len()
    }

    /// Refuses a shape that no node has.
    pub(crate) fn check(&self) -> Result<(), Unfit> {
        let above = |key: &[u8], upper: Option<&[u8]>| upper.is_none_or(|upper| key < upper);
        let longest = [Some(self.low), self.high, self.foster.map(|foster| foster.key)];
        let longest = longest.iter().flatten().map(|key| key.len()).max();
        if longest > Some(KEY_BYTES_MAX) {
            return Err(Unfit("a fence is too long"));
        }
        let foster = self.foster.is_none_or(|foster| {
            self.low < foster.key && above(foster.key, self.high) && foster.page != PageNumber::NONE
        });
        if above(self.low, self.high) && foster { Ok(()) } else { Err(Unfit("fences cross")) }
    }
}

impl<'a> Node<'a> {
    /// The node that the page is.
    ///
    /// # Errors
    /// The page is no node, or its head is none that a node has.
    #[inline]
    pub(crate) fn of(page: &'a Page) -> Result<Node<'a>, Unfit> {
        let node = Node::in_contents(page.contents())?;
        match (page.kind(), node.level()) {
            (Some(PageKind::Leaf), 0) | (Some(PageKind::Inner), 1..) => Ok(node),
            _ => Err(Unfit("the page is no node")),
        }
    }

    pub(crate) fn in_contents(contents: &'a [u8]) -> Result<Node<'a>, Unfit> {
        let bytes = contents.try_into().map_err(|_| Unfit("a node fills its page"))?;
        let mut node = Node { bytes, slots_at: HEAD_BYTES, count: 0 };
        let low = usize::from(node.u16_at(LOW));
        node.slots_at += low + node.high_bytes() + usize::from(node.u16_at(FOSTER));
        node.count = usize::from(node.u16_at(COUNT));
        let slots_end = node.slots_at + node.count * SLOT_BYTES;
        let sound = usize::from(node.u16_at(PREFIX)) <= low
            && slots_end <= node.heap()
            && node.heap() + node.dead() <= NODE_BYTES;
        if sound { Ok(node) } else { Err(Unfit("the head of a node is damaged")) }
    }

    /// How far it is from the leaves.
    #[must_use]
    #[inline]
    pub(crate) fn level(&self) -> u8 {
        self.bytes[LEVEL]
    }

    /// How many entries it has, ghosts included.
    #[must_use]
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Which keys it covers.
    #[must_use]
    pub(crate) fn shape(&self) -> Shape<'a> {
        let low = usize::from(self.u16_at(LOW));
        let (low_end, high_end) = (HEAD_BYTES + low, HEAD_BYTES + low + self.high_bytes());
        let high = &self.bytes[low_end..high_end];
        let page = self.bytes[FOSTER_PAGE..FOSTER_PAGE + 8].try_into().expect("eight bytes");
        let page = PageNumber(u64::from_le_bytes(page));
        let foster = Foster { key: &self.bytes[high_end..self.slots_at], page };
        Shape {
            level: self.level(),
            low: &self.bytes[HEAD_BYTES..low_end],
            high: (self.u16_at(HIGH) != INFINITE).then_some(high),
            foster: (page != PageNumber::NONE).then_some(foster),
        }
    }

    /// What each of its keys begins with.
    #[must_use]
    #[inline]
    pub(crate) fn prefix(&self) -> &'a [u8] {
        &self.bytes[HEAD_BYTES..HEAD_BYTES + usize::from(self.u16_at(PREFIX))]
    }

    /// Where the key is, or else where it would go.
    ///
    /// # Errors
    /// The place of the first key above it.
    pub(crate) fn find(&self, key: &[u8]) -> Result<usize, usize> {
        let prefix = self.prefix();
        let Some(suffix) = key.strip_prefix(prefix) else {
            return Err(if key < prefix { 0 } else { self.count });
        };
        let wanted = first_four(suffix);
        let (mut from, mut to) = (0, self.count);
        while from < to {
            let middle = from + (to - from) / 2;
            match self.compare(middle, wanted, suffix) {
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(from)
    }

    /// The entry at a place.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    #[inline]
    pub(crate) fn entry(&self, place: usize) -> Entry<'a> {
        self.try_entry(place).expect("what a node holds was put there")
    }

    /// The entry at a place, if it lies within the page.
    #[inline]
    pub(crate) fn try_entry(&self, place: usize) -> Option<Entry<'a>> {
        let behind = self.bytes.get(self.offset(place)..)?;
        let (suffix, behind) = behind.split_at_checked(self.suffix_bytes(place))?;
        let (from, length) = value_place(behind)?;
        let ghost = self.u16_at(self.slot(place) + 2) & GHOST != 0;
        Some(Entry { suffix, value: behind.get(from..)?.get(..length)?, ghost })
    }

    /// All entries, in order.
    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = Entry<'a>> + Clone + use<'a> {
        let node = *self;
        (0..self.count).map(move |place| node.entry(place))
    }

    /// Whether the entry at this place has this key.
    #[must_use]
    #[inline]
    pub(crate) fn is_at(&self, place: usize, key: &[u8]) -> bool {
        let suffix = key.strip_prefix(self.prefix());
        place < self.count && suffix.is_some_and(|suffix| self.entry(place).suffix == suffix)
    }

    /// The whole key at a place.
    ///
    /// # Panics
    /// If there are not so many entries.
    #[must_use]
    pub(crate) fn key(&self, place: usize) -> Vec<u8> {
        [self.prefix(), self.entry(place).suffix].concat()
    }

    /// The child of an inner node at a place.
    ///
    /// # Errors
    /// The entry is not what it is in an inner node.
    ///
    /// # Panics
    /// If there are not so many entries.
    pub(crate) fn child(&self, place: usize) -> Result<PageNumber, Unfit> {
        child_in(self.entry(place).value)
    }

    /// Whether another entry of this size fits.
    #[must_use]
    pub(crate) fn fits(&self, key: &[u8], value_bytes: usize) -> bool {
        let suffix_bytes = key.len().saturating_sub(self.prefix().len());
        SLOT_BYTES + heap_bytes(suffix_bytes, value_bytes) <= self.room()
    }

    /// Whether the entry at a place may have a value of this size instead of its own.
    ///
    /// # Panics
    /// If there are not so many entries.
    #[must_use]
    pub(crate) fn fits_instead(&self, place: usize, value_bytes: usize) -> bool {
        let entry = self.entry(place);
        heap_bytes(entry.suffix.len(), value_bytes) <= self.room() + entry.heap_bytes()
    }

    /// Bytes that nothing lies in, wherever they are.
    #[must_use]
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.gap() + self.dead()
    }

    /// Bytes between slots and heap.
    pub(crate) fn gap(&self) -> usize {
        self.heap() - self.slots_end()
    }

    /// Bytes of the heap that nothing lies in.
    pub(crate) fn dead(&self) -> usize {
        self.u16_at(DEAD).into()
    }

    /// Where the heap begins.
    pub(crate) fn heap(&self) -> usize {
        self.u16_at(HEAP).into()
    }

    pub(crate) fn slots_end(&self) -> usize {
        self.slot(self.count)
    }

    /// Where the slot of a place is.
    #[inline]
    pub(crate) fn slot(&self, place: usize) -> usize {
        self.slots_at + place * SLOT_BYTES
    }

    /// Where the entry of a place lies in the heap.
    pub(crate) fn entry_place(&self, place: usize) -> Range<usize> {
        let from = self.offset(place);
        from..from + self.entry(place).heap_bytes()
    }

    /// The first bytes of the key behind the prefix, as its slot says.
    #[inline]
    pub(crate) fn first_of(&self, place: usize) -> u32 {
        let at = self.slot(place) + 4;
        u32::from_be_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    /// A part of it, if there is such a part.
    pub(crate) fn bytes_of(&self, range: Range<usize>) -> Option<&'a [u8]> {
        self.bytes.get(range)
    }

    fn compare(&self, place: usize, wanted: u32, suffix: &[u8]) -> Ordering {
        self.first_of(place).cmp(&wanted).then_with(|| {
            let from = self.offset(place);
            self.bytes[from..from + self.suffix_bytes(place)].cmp(suffix)
        })
    }

    #[inline]
    fn offset(&self, place: usize) -> usize {
        assert!(place < self.count, "there is no entry at place {place}");
        self.u16_at(self.slot(place)).into()
    }

    #[inline]
    fn suffix_bytes(&self, place: usize) -> usize {
        (self.u16_at(self.slot(place) + 2) & !GHOST).into()
    }

    fn high_bytes(&self) -> usize {
        let length = self.u16_at(HIGH);
        if length == INFINITE { 0 } else { length.into() }
    }

    #[inline]
    fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }
}

impl Entry<'_> {
    /// Bytes that it takes in the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        heap_bytes(self.suffix.len(), self.value.len())
    }
}

/// Bytes that an entry of these lengths takes in the heap.
pub(crate) fn heap_bytes(suffix_bytes: usize, value_bytes: usize) -> usize {
    suffix_bytes + varint::bytes(value_bytes as u64) + value_bytes
}

/// The first bytes of a suffix, which order keys as far as they go.
#[inline]
pub(crate) fn first_four(suffix: &[u8]) -> u32 {
    let mut first = [0; 4];
    let bytes = suffix.len().min(4);
    first[..bytes].copy_from_slice(&suffix[..bytes]);
    u32::from_be_bytes(first)
}

/// The child that the value of an entry of an inner node names.
pub(crate) fn child_in(mut value: &[u8]) -> Result<PageNumber, Unfit> {
    let child = crate::node::fields::page(&mut value)?;
    if value.is_empty() { Ok(child) } else { Err(Unfit("a child is not a number alone")) }
}

/// Where a value lies behind its key, and how long it is.
#[inline]
fn value_place(behind: &[u8]) -> Option<(usize, usize)> {
    let mut rest = behind;
    let length = varint::take(&mut rest)?;
    Some((behind.len() - rest.len(), length as usize))
}
