//! A tree in memory, as small as a whole file system can be.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdfast_io::tree::{
    Allocate, Attributes, Errno, Kind, Listed, NewNode, NodeId, ROOT, RenameHow, SetAttributes,
    Space, Tree,
};

const ENOENT: Errno = Errno(2);
const EEXIST: Errno = Errno(17);
const ENOTDIR: Errno = Errno(20);
const EISDIR: Errno = Errno(21);
const EINVAL: Errno = Errno(22);
const ENOTEMPTY: Errno = Errno(39);

pub(crate) struct MemoryTree {
    state: Mutex<State>,
    sync_is_needed: bool,
    /// What it says of itself; it counts them either way.
    counts_opens: bool,
    /// What was said when the mount began.
    pub(crate) keeps_pages: Mutex<Option<bool>>,
    pub(crate) syncs: AtomicU64,
    pub(crate) writes: AtomicU64,
    /// Findings that nobody has given back.
    pub(crate) found: AtomicU64,
    /// Writes that begin with this have to wait.
    pub(crate) holds_up: Mutex<Option<u8>>,
}

struct State {
    nodes: HashMap<NodeId, Node>,
    next: u64,
}

struct Node {
    attributes: Attributes,
    data: Vec<u8>,
    /// By cookie, which is also the order of making.
    names: BTreeMap<u64, (Vec<u8>, NodeId)>,
    cookies: HashMap<Vec<u8>, u64>,
    opens: u64,
}

impl MemoryTree {
    pub(crate) fn new(sync_is_needed: bool) -> Self {
        let new = NewNode {
            kind: Kind::Directory,
            mode: 0o755,
            umask: 0,
            uid: 0,
            gid: 0,
            rdev: 0,
            target: b"",
        };
        let nodes = HashMap::from([(ROOT, Node::new(ROOT, &new))]);
        let state = Mutex::new(State { nodes, next: 2 });
        Self {
            state,
            sync_is_needed,
            counts_opens: true,
            keeps_pages: None.into(),
            syncs: 0.into(),
            writes: 0.into(),
            found: 0.into(),
            holds_up: None.into(),
        }
    }

    /// The same tree, that says whether it needs to be told of opens.
    pub(crate) fn that_says_of_opens(self, counts_opens: bool) -> Self {
        Self { counts_opens, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// How many nodes there are, the root included.
    pub(crate) fn nodes(&self) -> usize {
        self.state().nodes.len()
    }
}

impl Node {
    fn new(node: NodeId, new: &NewNode<'_>) -> Self {
        let now = now_ns();
        let attributes = Attributes {
            node,
            kind: new.kind,
            mode: new.mode & !new.umask,
            uid: new.uid,
            gid: new.gid,
            size_bytes: new.target.len() as u64,
            allocated_bytes: 0,
            links: 1 + u32::from(new.kind == Kind::Directory),
            rdev: new.rdev,
            accessed_ns: now,
            modified_ns: now,
            changed_ns: now,
        };
        let (names, cookies) = Default::default();
        Self { attributes, data: new.target.to_vec(), names, cookies, opens: 0 }
    }

    fn resize(&mut self, bytes: u64) {
        self.data.resize(bytes as usize, 0);
        self.touch();
    }

    fn touch(&mut self) {
        let bytes = self.data.len() as u64;
        let now = now_ns();
        let attributes = &mut self.attributes;
        (attributes.size_bytes, attributes.allocated_bytes) = (bytes, bytes.next_multiple_of(4096));
        (attributes.modified_ns, attributes.changed_ns) = (now, now);
    }
}

impl State {
    fn node(&mut self, node: NodeId) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&node).ok_or(Errno(116))
    }

    fn child(&mut self, parent: NodeId, name: &[u8]) -> Result<NodeId, Errno> {
        let parent = self.node(parent)?;
        let cookie = parent.cookies.get(name).ok_or(ENOENT)?;
        Ok(parent.names[cookie].1)
    }

    fn put(&mut self, parent: NodeId, name: &[u8], node: NodeId) -> Result<(), Errno> {
        self.next += 1;
        let cookie = self.next;
        let parent = self.node(parent)?;
        if parent.attributes.kind != Kind::Directory {
            return Err(ENOTDIR);
        }
        parent.names.insert(cookie, (name.to_vec(), node));
        parent.cookies.insert(name.to_vec(), cookie);
        parent.attributes.modified_ns = now_ns();
        Ok(())
    }

    fn take(&mut self, parent: NodeId, name: &[u8]) -> Result<NodeId, Errno> {
        let parent = self.node(parent)?;
        let cookie = parent.cookies.remove(name).ok_or(ENOENT)?;
        Ok(parent.names.remove(&cookie).unwrap().1)
    }

    fn unlink(&mut self, node: NodeId) -> Result<(), Errno> {
        let found = self.node(node)?;
        found.attributes.links -= 1;
        if found.attributes.kind == Kind::Directory {
            found.attributes.links = 0;
        }
        self.drop_unused(node);
        Ok(())
    }

    fn drop_unused(&mut self, node: NodeId) {
        let unused = |found: &Node| found.attributes.links == 0 && found.opens == 0;
        if self.nodes.get(&node).is_some_and(unused) {
            self.nodes.remove(&node);
        }
    }
}

fn now_ns() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i128
}

impl Tree for MemoryTree {
    fn lookup(&self, parent: NodeId, name: &[u8]) -> Result<Attributes, Errno> {
        let mut state = self.state();
        let node = state.child(parent, name)?;
        self.found.fetch_add(1, Relaxed);
        Ok(state.node(node)?.attributes)
    }

    fn forget(&self, _node: NodeId, count: u64) {
        self.found.fetch_sub(count, Relaxed);
    }

    fn attributes(&self, node: NodeId) -> Result<Attributes, Errno> {
        Ok(self.state().node(node)?.attributes)
    }

    fn set_attributes(&self, node: NodeId, set: &SetAttributes) -> Result<Attributes, Errno> {
        let mut state = self.state();
        let node = state.node(node)?;
        if let Some(bytes) = set.size_bytes {
            node.resize(bytes);
        }
        let attributes = &mut node.attributes;
        attributes.mode = set.mode.unwrap_or(attributes.mode);
        attributes.uid = set.uid.unwrap_or(attributes.uid);
        attributes.gid = set.gid.unwrap_or(attributes.gid);
        attributes.accessed_ns = set.accessed_ns.unwrap_or(attributes.accessed_ns);
        attributes.modified_ns = set.modified_ns.unwrap_or(attributes.modified_ns);
        attributes.changed_ns = now_ns();
        Ok(*attributes)
    }

    fn read_link(&self, node: NodeId) -> Result<Vec<u8>, Errno> {
        Ok(self.state().node(node)?.data.clone())
    }

    fn make(&self, parent: NodeId, name: &[u8], new: &NewNode<'_>) -> Result<Attributes, Errno> {
        let mut state = self.state();
        if state.child(parent, name).is_ok() {
            return Err(EEXIST);
        }
        state.next += 1;
        let node = NodeId(state.next);
        state.put(parent, name, node)?;
        let made = Node::new(node, new);
        let attributes = made.attributes;
        state.nodes.insert(node, made);
        self.found.fetch_add(1, Relaxed);
        Ok(attributes)
    }

    fn link(&self, node: NodeId, parent: NodeId, name: &[u8]) -> Result<Attributes, Errno> {
        let mut state = self.state();
        if state.child(parent, name).is_ok() {
            return Err(EEXIST);
        }
        state.put(parent, name, node)?;
        let linked = state.node(node)?;
        linked.attributes.links += 1;
        self.found.fetch_add(1, Relaxed);
        Ok(linked.attributes)
    }

    fn remove_file(&self, parent: NodeId, name: &[u8]) -> Result<(), Errno> {
        let mut state = self.state();
        let node = state.child(parent, name)?;
        if state.node(node)?.attributes.kind == Kind::Directory {
            return Err(EISDIR);
        }
        state.take(parent, name)?;
        state.unlink(node)
    }

    fn remove_dir(&self, parent: NodeId, name: &[u8]) -> Result<(), Errno> {
        let mut state = self.state();
        let node = state.child(parent, name)?;
        if !state.node(node)?.names.is_empty() {
            return Err(ENOTEMPTY);
        }
        state.take(parent, name)?;
        state.unlink(node)
    }

    fn rename(
        &self,
        from: (NodeId, &[u8]),
        to: (NodeId, &[u8]),
        how: RenameHow,
    ) -> Result<(), Errno> {
        let mut state = self.state();
        let node = state.child(from.0, from.1)?;
        let target = state.child(to.0, to.1).ok();
        match (how, target) {
            (RenameHow::KeepTarget, Some(_)) => return Err(EEXIST),
            (RenameHow::Exchange(_), None) => return Err(ENOENT),
            (RenameHow::Replace, Some(target)) if target == node => return Ok(()),
            (RenameHow::Replace, Some(target)) if !state.node(target)?.names.is_empty() => {
                return Err(ENOTEMPTY);
            }
            _ => {}
        }
        state.take(from.0, from.1)?;
        if let Some(target) = target {
            state.take(to.0, to.1)?;
            match how {
                RenameHow::Exchange(_) => state.put(from.0, from.1, target)?,
                _ => state.unlink(target)?,
            }
        }
        state.put(to.0, to.1, node)
    }

    fn counts_opens(&self) -> bool {
        self.counts_opens
    }

    fn mount_begins(&self, keeps_pages: bool) -> Result<(), Errno> {
        *self.keeps_pages.lock().unwrap() = Some(keeps_pages);
        Ok(())
    }

    fn mount_keeps_pages(&self) -> Option<bool> {
        *self.keeps_pages.lock().unwrap()
    }

    fn opened(&self, node: NodeId) -> Result<(), Errno> {
        self.state().node(node)?.opens += 1;
        Ok(())
    }

    fn closed(&self, node: NodeId) {
        let mut state = self.state();
        state.node(node).unwrap().opens -= 1;
        state.drop_unused(node);
    }

    fn read(&self, node: NodeId, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let mut state = self.state();
        let data = &state.node(node)?.data;
        let from = data.get(offset as usize..).unwrap_or_default();
        let bytes = from.len().min(into.len());
        into[..bytes].copy_from_slice(&from[..bytes]);
        Ok(bytes)
    }

    fn write(
        &self,
        node: NodeId,
        from: &[u8],
        offset: u64,
        clear_privileges: bool,
    ) -> Result<(), Errno> {
        if from.first().is_some_and(|first| *self.holds_up.lock().unwrap() == Some(*first)) {
            return Err(Errno::LATER);
        }
        self.writes.fetch_add(1, Relaxed);
        let mut state = self.state();
        let node = state.node(node)?;
        let (start, end) = (offset as usize, offset as usize + from.len());
        if node.data.len() < end {
            node.data.resize(end, 0);
        }
        node.data[start..end].copy_from_slice(from);
        node.touch();
        if clear_privileges {
            // Set-group-id without group-execute is the front end's to take away.
            let mode = node.attributes.mode;
            let group = if mode & 0o010 != 0 { 0o2000 } else { 0 };
            node.attributes.mode = mode & !(0o4000 | group);
        }
        Ok(())
    }

    fn allocate(&self, node: NodeId, how: Allocate, offset: u64, bytes: u64) -> Result<(), Errno> {
        let mut state = self.state();
        let node = state.node(node)?;
        let (start, end) = (offset as usize, (offset + bytes) as usize);
        let keep_size = match how {
            Allocate::Reserve { keep_size } | Allocate::ZeroRange { keep_size } => keep_size,
            Allocate::PunchHole => true,
        };
        if !keep_size && node.data.len() < end {
            node.resize(end as u64);
        }
        if !matches!(how, Allocate::Reserve { .. }) {
            let end = end.min(node.data.len());
            node.data.get_mut(start..end).unwrap_or_default().fill(0);
        }
        Ok(())
    }

    fn sync(&self, node: NodeId) -> Result<(), Errno> {
        self.syncs.fetch_add(1, Relaxed);
        self.state().node(node).map(drop).map_err(|_| EINVAL)
    }

    fn sync_is_needed(&self) -> bool {
        self.sync_is_needed
    }

    fn list(
        &self,
        directory: NodeId,
        cookie: u64,
        sink: &mut dyn FnMut(Listed<'_>) -> bool,
    ) -> Result<(), Errno> {
        let mut state = self.state();
        let names = state.node(directory)?.names.clone();
        for (cookie, (name, node)) in names.range(cookie + 1..) {
            let kind = state.node(*node)?.attributes.kind;
            if !sink(Listed { name, inode: node.0, kind, cookie: *cookie }) {
                break;
            }
        }
        Ok(())
    }

    fn space(&self) -> Result<Space, Errno> {
        Ok(Space {
            total_bytes: 1 << 30,
            free_bytes: 1 << 29,
            available_bytes: 1 << 28,
            total_inodes: 1000,
            free_inodes: 500,
            name_bytes_max: 255,
            block_bytes: 4096,
            room_unit_bytes: 4096,
            read_only: false,
        })
    }

    fn wait_until_later(&self, _patience: Duration) {
        std::thread::yield_now();
    }
    fn remember_for(&self) -> Duration {
        Duration::from_secs(3600)
    }
}
