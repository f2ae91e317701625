//! A page of a tree, as it is changed.
//!
//! Promise: the bytes of a node follow from the bytes before and the change, so a change that is
//! made again gives the same bytes; what nothing lies in is zero; what does not fit is `Unfit`.
//! Never: decides what to change, or where.

use std::ops::Range;

use holdfast_pages::{Page, PageNumber, Unfit, varint};

use crate::node::{
    COUNT, DEAD, Entry, FOSTER, FOSTER_PAGE, Foster, GHOST, HEAD_BYTES, HEAP, HIGH, INFINITE,
    KEY_BYTES_MAX, LEVEL, LOW, NODE_BYTES, Node, PREFIX, SLOT_BYTES, Shape, VALUE_BYTES_MAX,
    child_in, first_four,
};

/// A node whose head was sound when it was taken.
pub(crate) struct NodeMut<'a> {
    bytes: &'a mut [u8],
}

impl<'a> NodeMut<'a> {
    /// The node that the page is.
    pub(crate) fn of(page: &'a mut Page) -> Result<NodeMut<'a>, Unfit> {
        Node::of(page)?;
        Ok(NodeMut { bytes: page.contents_mut() })
    }

    pub(crate) fn node(&self) -> Node<'_> {
        Node::in_contents(self.bytes).expect("a node that is changed stays one")
    }

    /// Puts a new entry at a place.
    pub(crate) fn insert(&mut self, place: usize, key: &[u8], value: &[u8]) -> Result<(), Unfit> {
        let node = self.node();
        if key.len() > KEY_BYTES_MAX || !node.shape().holds(key) {
            return Err(Unfit("the key belongs elsewhere"));
        }
        let suffix = &key[node.prefix().len()..];
        let entry = Entry { suffix, value, ghost: false };
        check(&entry, node.level())?;
        if !lies_between(node, place, suffix) {
            return Err(Unfit("the key belongs at another place"));
        }
        if SLOT_BYTES + entry.heap_bytes() > node.room() {
            return Err(Unfit("the node is full"));
        }
        if SLOT_BYTES + entry.heap_bytes() > node.gap() {
            return self.rebuild(place..place, entry);
        }
        let (slot, slots_end) = (node.slot(place), node.slots_end());
        self.bytes.copy_within(slot..slots_end, slot + SLOT_BYTES);
        let count = self.u16_at(COUNT) + 1;
        self.put_u16(COUNT, count);
        self.put_entry(slot, &entry);
        Ok(())
    }

    /// Changes `old`, at byte `at` of the value of the entry there, into `new`.
    pub(crate) fn splice(
        &mut self,
        place: usize,
        at: usize,
        old: &[u8],
        new: &[u8],
    ) -> Result<(), Unfit> {
        let value = self.node().entry(place).value;
        let found = value.get(at..).and_then(|rest| rest.get(..old.len()));
        if found != Some(old) {
            return Err(Unfit("the value was another one"));
        }
        if old.len() == new.len() {
            let end = self.node().entry_place(place).end;
            let from = end - value.len() + at;
            self.bytes[from..from + new.len()].copy_from_slice(new);
            return Ok(());
        }
        let value = [&value[..at], new, &value[at + old.len()..]].concat();
        self.set_value(place, &value)
    }

    /// Makes what is there an entry, ghost or not, and changes so many bytes, from byte `at` of its
    /// value on, into `new`.
    pub(crate) fn renew(
        &mut self,
        place: usize,
        at: usize,
        cut: usize,
        new: &[u8],
    ) -> Result<(), Unfit> {
        let entry = self.node().entry(place);
        let gone = entry.value.get(at..).and_then(|rest| rest.get(..cut));
        let gone = gone.ok_or(Unfit("the value was another one"))?.to_vec();
        if entry.ghost {
            self.set_ghost(place, false)?;
        }
        self.splice(place, at, &gone, new)
    }

    /// Gives the entry there another value.
    pub(crate) fn set_value(&mut self, place: usize, value: &[u8]) -> Result<(), Unfit> {
        let node = self.node();
        let old = node.entry(place);
        let (range, slot) = (node.entry_place(place), node.slot(place));
        let (suffix, ghost) = (old.suffix.to_vec(), old.ghost);
        let entry = Entry { suffix: &suffix, value, ghost };
        check(&entry, node.level())?;
        if entry.heap_bytes() > node.room() + range.len() {
            return Err(Unfit("the node is full"));
        }
        if entry.heap_bytes() > node.gap() {
            return self.rebuild(place..place + 1, entry);
        }
        let dead = node.dead() + range.len();
        self.bytes[range].fill(0);
        self.put_u16(DEAD, dead as u16);
        self.put_entry(slot, &entry);
        Ok(())
    }

    /// Makes the entry there a ghost, or a ghost an entry again.
    pub(crate) fn set_ghost(&mut self, place: usize, ghost: bool) -> Result<(), Unfit> {
        let node = self.node();
        if node.entry(place).ghost == ghost {
            return Err(Unfit("the entry is a ghost, or is none, already"));
        }
        let at = node.slot(place) + 2;
        let length = self.u16_at(at) ^ GHOST;
        self.put_u16(at, length);
        Ok(())
    }

    /// Leaves everything from a place on to a foster child.
    pub(crate) fn split(&mut self, place: usize, foster: Foster<'_>) -> Result<(), Unfit> {
        if !self.node().is_at(place, foster.key) {
            return Err(Unfit("the foster key is not at its place"));
        }
        let old = self.copy();
        let old = Node::in_contents(&old)?;
        let shape = Shape { foster: Some(foster), ..old.shape() };
        build(self.bytes, &shape, old.entries().take(place))
    }

    /// Lets the parent have the foster child.
    pub(crate) fn let_foster_go(&mut self) -> Result<(), Unfit> {
        let old = self.copy();
        let old = Node::in_contents(&old)?;
        let foster = old.shape().foster.ok_or(Unfit("the node has no foster child"))?;
        let shape = Shape { high: Some(foster.key), foster: None, ..old.shape() };
        let longer = shape.prefix().len() - old.prefix().len();
        let entries = old.entries();
        let entries = entries.map(|entry| Entry { suffix: &entry.suffix[longer..], ..entry });
        build(self.bytes, &shape, entries)
    }

    /// Takes ghosts out, at these places in ascending order.
    pub(crate) fn purge(&mut self, places: &[usize]) -> Result<(), Unfit> {
        let node = self.node();
        let known = |place: &usize| *place < node.count() && node.entry(*place).ghost;
        if !places.is_sorted_by(|lower, upper| lower < upper) || !places.iter().all(known) {
            return Err(Unfit("what is purged is no ghost"));
        }
        self.without(places)
    }

    /// Takes over what the right neighbour has: these entries, whose keys lie behind that one's
    /// prefix, up to its high fence, and its foster child.
    pub(crate) fn absorb(
        &mut self,
        high: Option<&[u8]>,
        foster: Option<Foster<'_>>,
        entries: &[Entry<'_>],
    ) -> Result<(), Unfit> {
        let old = self.copy();
        let old = Node::in_contents(&old)?;
        let left = old.shape();
        let low = left.end().ok_or(Unfit("nothing lies to the right"))?;
        if left.foster.is_some() && left.high != high {
            return Err(Unfit("a foster child ends elsewhere"));
        }
        let right = Shape { low, high, foster, ..left };
        right.check()?;
        let shape = Shape { low: left.low, ..right };
        let longer = (old.prefix(), right.prefix(), shape.prefix().len());
        let joined = old.entries().map(|entry| (longer.0, entry));
        let joined = joined.chain(entries.iter().map(|entry| (longer.1, *entry)));
        let joined: Vec<_> = joined
            .map(|(prefix, entry)| ([&prefix[longer.2..], entry.suffix].concat(), entry))
            .collect();
        let joined = joined.iter().map(|(suffix, entry)| Entry { suffix, ..*entry });
        build(self.bytes, &shape, joined)
    }

    /// Takes the child at a place out, which is this one.
    pub(crate) fn disown(&mut self, place: usize, page: PageNumber) -> Result<(), Unfit> {
        let node = self.node();
        let is_child = node.level() > 0 && (1..node.count()).contains(&place);
        if !is_child || node.child(place)? != page {
            return Err(Unfit("the child that goes is another"));
        }
        self.without(&[place])
    }

    /// Takes all entries of a leaf out.
    pub(crate) fn clear(&mut self) -> Result<(), Unfit> {
        let node = self.node();
        if node.level() > 0 {
            return Err(Unfit("only leaves are cleared"));
        }
        let old = self.copy();
        build(self.bytes, &Node::in_contents(&old)?.shape(), std::iter::empty())
    }

    /// Writes the node anew, without the entries at these places, which ascend.
    fn without(&mut self, places: &[usize]) -> Result<(), Unfit> {
        let old = self.copy();
        let old = Node::in_contents(&old)?;
        let stays = |(place, entry)| places.binary_search(&place).is_err().then_some(entry);
        build(self.bytes, &old.shape(), old.entries().enumerate().filter_map(stays))
    }

    /// Writes the node anew, with this entry in place of those.
    fn rebuild(&mut self, places: Range<usize>, entry: Entry<'_>) -> Result<(), Unfit> {
        let old = self.copy();
        let old = Node::in_contents(&old)?;
        let (below, above) = (old.entries().take(places.start), old.entries().skip(places.end));
        build(self.bytes, &old.shape(), below.chain([entry]).chain(above))
    }

    fn copy(&self) -> [u8; NODE_BYTES] {
        (&*self.bytes).try_into().expect("a node fills its page")
    }

    /// Puts an entry in front of the heap, and where it is into a slot.
    fn put_entry(&mut self, slot: usize, entry: &Entry<'_>) {
        put_entry(self.bytes, slot, entry);
    }

    fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn put_u16(&mut self, at: usize, number: u16) {
        put_u16(self.bytes, at, number);
    }
}

/// Makes a node of this shape with these entries, all of whose keys begin with its prefix.
pub(crate) fn build<'e>(
    bytes: &mut [u8],
    shape: &Shape<'_>,
    entries: impl Iterator<Item = Entry<'e>> + Clone,
) -> Result<(), Unfit> {
    shape.check()?;
    let (mut count, mut sum) = (0, shape.bytes());
    for entry in entries.clone() {
        count += 1;
        sum += SLOT_BYTES + entry.heap_bytes();
    }
    if sum > NODE_BYTES {
        return Err(Unfit("the node is full"));
    }
    check_entries(shape, entries.clone())?;
    put_head(bytes, shape, count);
    let slots_at = shape.bytes();
    for (place, entry) in entries.enumerate() {
        put_entry(bytes, slots_at + place * SLOT_BYTES, &entry);
    }
    Ok(())
}

/// The value of an inner node's entry with this child.
pub(crate) fn child_value(page: PageNumber) -> Vec<u8> {
    let mut value = Vec::new();
    varint::put(page.get(), &mut value);
    value
}

/// Whether entries are in order, and are those that a node of this shape may have.
pub(crate) fn check_entries<'e>(
    shape: &Shape<'_>,
    entries: impl Iterator<Item = Entry<'e>>,
) -> Result<(), Unfit> {
    let prefix_bytes = shape.prefix().len();
    let end = shape.end().map(|end| &end[prefix_bytes..]);
    let mut before: Option<&[u8]> = None;
    for entry in entries {
        let above = before
            .map_or(&shape.low[prefix_bytes..] <= entry.suffix, |before| before < entry.suffix);
        let below = end.is_none_or(|end| entry.suffix < end);
        if !above || !below || prefix_bytes + entry.suffix.len() > KEY_BYTES_MAX {
            return Err(Unfit("a key belongs at another place"));
        }
        check(&entry, shape.level)?;
        before = Some(entry.suffix);
    }
    Ok(())
}

/// Whether a node of this level may have such an entry.
fn check(entry: &Entry<'_>, level: u8) -> Result<(), Unfit> {
    if entry.value.len() > VALUE_BYTES_MAX {
        return Err(Unfit("the value is too long"));
    }
    if level == 0 {
        return Ok(());
    }
    child_in(entry.value)?;
    if entry.ghost { Err(Unfit("a child is no ghost")) } else { Ok(()) }
}

/// Whether a key goes between the entry there and the one before.
fn lies_between(node: Node<'_>, place: usize, suffix: &[u8]) -> bool {
    let below = |lower: usize| node.entry(lower).suffix < suffix;
    place <= node.count()
        && place.checked_sub(1).is_none_or(below)
        && (place == node.count() || suffix < node.entry(place).suffix)
}

/// Empties a node and gives it this shape, with room for so many slots.
fn put_head(bytes: &mut [u8], shape: &Shape<'_>, count: usize) {
    bytes.fill(0);
    bytes[LEVEL] = shape.level;
    put_u16(bytes, COUNT, count as u16);
    put_u16(bytes, HEAP, NODE_BYTES as u16);
    put_u16(bytes, PREFIX, shape.prefix().len() as u16);
    put_u16(bytes, LOW, shape.low.len() as u16);
    put_u16(bytes, HIGH, shape.high.map_or(INFINITE, |high| high.len() as u16));
    let mut at = HEAD_BYTES;
    let mut put_fence = |bytes: &mut [u8], fence: &[u8]| {
        bytes[at..at + fence.len()].copy_from_slice(fence);
        at += fence.len();
    };
    put_fence(bytes, shape.low);
    put_fence(bytes, shape.high.unwrap_or(&[]));
    if let Some(foster) = shape.foster {
        put_u16(bytes, FOSTER, foster.key.len() as u16);
        bytes[FOSTER_PAGE..FOSTER_PAGE + 8].copy_from_slice(&foster.page.get().to_le_bytes());
        put_fence(bytes, foster.key);
    }
}

/// Puts an entry in front of the heap, and where it is into a slot.
fn put_entry(bytes: &mut [u8], slot: usize, entry: &Entry<'_>) {
    let heap = u16::from_le_bytes([bytes[HEAP], bytes[HEAP + 1]]);
    let at = usize::from(heap) - entry.heap_bytes();
    put_u16(bytes, HEAP, at as u16);
    put_u16(bytes, slot, at as u16);
    let ghost = if entry.ghost { GHOST } else { 0 };
    put_u16(bytes, slot + 2, entry.suffix.len() as u16 | ghost);
    bytes[slot + 4..slot + SLOT_BYTES].copy_from_slice(&first_four(entry.suffix).to_be_bytes());
    let value_at = at + entry.heap_bytes() - entry.value.len();
    bytes[at..at + entry.suffix.len()].copy_from_slice(entry.suffix);
    put_length(entry.value.len(), &mut bytes[at + entry.suffix.len()..value_at]);
    bytes[value_at..value_at + entry.value.len()].copy_from_slice(entry.value);
}

/// Writes a length as a varint, which takes one byte or two.
fn put_length(length: usize, into: &mut [u8]) {
    const _: () = assert!(varint::bytes(VALUE_BYTES_MAX as u64) == 2);
    match into {
        [one] => *one = length as u8,
        [low, high] => (*low, *high) = (length as u8 | 0x80, (length >> 7) as u8),
        _ => unreachable!("no value is so long"),
    }
}

fn put_u16(bytes: &mut [u8], at: usize, number: u16) {
    bytes[at..at + 2].copy_from_slice(&number.to_le_bytes());
}
