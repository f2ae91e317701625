//! The names of a volume: which name stands for which node, now and on the home.
//!
//! A directory is read from the home when it is first touched; from then on memory is the truth
//! about it. The home lags behind by what is not applied yet, so a node has its places in the tree
//! of today and one place in the tree of the home.
//!
//! Promise: a path made here is the path at this moment of the log; a home path is where the home
//! has the node at this moment of cleaning.
//! Never: logs, or changes the home.

mod admit;
mod children;
pub(crate) mod forget;
mod homes;
pub(crate) mod links;
pub(crate) mod paths;
mod place;
mod places;
pub(crate) mod requests;
pub(crate) mod roster;
mod rules;
mod unreachable;
mod whereabouts;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use holdfast_io::{Files, Held, Kind, Metadata};
use holdfast_log::Lsn;

pub(crate) use children::{Child, Children};
pub(crate) use place::{ORPHANS, Place};
pub(crate) use places::Places;

use rules::Rules;

use crate::names::paths::to_path;
use crate::names::requests::Requests;
use crate::names::roster::{Entry as RosterEntry, Known, Remembered};
use crate::node::{Node, attributes_of};
use crate::own::ORPHANS_NAME;
use crate::record::AtHome;
use holdfast_io::tree::{Attributes, Errno, NodeId, ROOT};

/// The first number for other nodes.
const FIRST_FREE: u64 = 16;
/// Longest path that is logged: three times what one system call takes. The frame of a rename that
/// replaces an open file has four, and fits into the smallest segment.
const PATH_BYTES_MAX: usize = 12 << 10;

/// An inode of the home: its device, and its number there.
pub(crate) type HomeInode = (u64, u64);

/// A node and where it stands.
pub(crate) struct Entry {
    pub(crate) node: Arc<Node>,
    pub(crate) kind: Kind,
    /// Its names of today; more than one for hard links.
    pub(crate) places: Places,
    /// Its names on the home, as far as they are known; none if the home does not have it.
    pub(crate) home: Places,
    /// Its inode there, if the node was read from the home.
    home_inode: Option<HomeInode>,
    /// The names in it, once read.
    pub(crate) children: Option<Children>,
    /// What it asks of names in it, once it was asked and is at home.
    rules: Option<Rules>,
}

/// All names known to this process.
pub(crate) struct Names {
    entries: HashMap<NodeId, Entry>,
    /// Numbers given to inodes of the home, so that hard links share one.
    by_home_inode: HashMap<HomeInode, NodeId>,
    /// Nodes that the log names, by where the home has them: a directory read while the log is
    /// replayed must give them the numbers they have there.
    mentioned: HashMap<Vec<u8>, NodeId>,
    /// What the roster knows and nobody has asked for yet.
    known: Known,
    /// Which inodes of the home nodes are that are not at hand, as the log says.
    told: HashMap<NodeId, AtHome>,
    /// Tells this home from others; 0 if its numbers mean nothing.
    home_mark: u16,
    /// The roster tells of every node that it knows which inode it is.
    roster_tells: bool,
    /// Every node at hand that has come home is known to be an inode.
    is_complete: bool,
    /// Nodes whose making has been put aside.
    unmade: BTreeSet<NodeId>,
    /// Nodes that the window under way has made: a repetition may make them other inodes.
    just_made: BTreeSet<NodeId>,
    /// There is no room to tell that of further ones.
    omits_inodes: AtomicBool,
    /// What it knows, by name.
    known_by_place: HashMap<Place, NodeId>,
    next: u64,
    /// Files without a name that nobody remembers, until a record has removed them.
    unreachable: BTreeSet<NodeId>,
    /// What must not be done twice.
    pub(crate) requests: Requests,
}

impl Names {
    /// The tree of a home, with the nodes that an earlier process told of. `next_free` is above
    /// every number in the log.
    pub(crate) fn new(root: &Metadata, known: Known, next_free: u64) -> Names {
        let highest = known.keys().map(|node| node.0 + 1).max().unwrap_or(0);
        let known_by_place = known
            .iter()
            .flat_map(|(node, known)| known.places.iter().map(|place| (place.clone(), *node)))
            .collect();
        let mut names = Names {
            entries: HashMap::new(),
            by_home_inode: HashMap::new(),
            mentioned: HashMap::new(),
            known,
            told: HashMap::new(),
            home_mark: 0,
            roster_tells: false,
            is_complete: false,
            unmade: BTreeSet::new(),
            just_made: BTreeSet::new(),
            omits_inodes: AtomicBool::new(false),
            known_by_place,
            next: next_free.max(highest).max(FIRST_FREE),
            unreachable: BTreeSet::new(),
            requests: Requests::default(),
        };
        let root_node = Node::from_home(ROOT, root, Vec::new());
        root_node.remember();
        names.put(Arc::new(root_node), Kind::Directory, None, None);
        let orphans = Metadata { mode: 0o700, ..*root };
        let orphans_node = Node::from_home(ORPHANS, &orphans, Vec::new());
        orphans_node.remember();
        let place = Place { parent: ROOT, name: ORPHANS_NAME.into() };
        let place = Some(place);
        names.put(Arc::new(orphans_node), Kind::Directory, place.clone(), place);
        names
    }

    /// Adds a node.
    pub(crate) fn put(
        &mut self,
        node: Arc<Node>,
        kind: Kind,
        place: Option<Place>,
        home: Option<Place>,
    ) {
        let (places, home) = (place.into_iter().collect(), home.into_iter().collect());
        let entry =
            Entry { node, kind, places, home, home_inode: None, children: None, rules: None };
        self.entries.insert(entry.node.id, entry);
    }

    /// While the log is replayed: which node the home has under which path. Empty afterwards.
    pub(crate) fn mention(&mut self, mentioned: HashMap<Vec<u8>, NodeId>) {
        self.mentioned = mentioned;
    }

    /// A number never given before.
    pub(crate) fn new_id(&mut self) -> NodeId {
        self.next += 1;
        NodeId(self.next - 1)
    }

    pub(crate) fn entry(&self, node: NodeId) -> Option<&Entry> {
        self.entries.get(&node)
    }

    /// All nodes at hand.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.entries.values().map(|entry| &entry.node)
    }

    /// What a node is that the home lets be changed.
    pub(crate) fn loose(&self, node: NodeId) -> Result<Attributes, Errno> {
        let body = self.entry(node).ok_or(Errno::STALE)?.node.body();
        body.require_loose()?;
        Ok(body.attributes)
    }

    /// True if an earlier process told of a node that has not been asked for yet.
    pub(crate) fn is_known(&self, node: NodeId) -> bool {
        self.known.contains_key(&node)
    }

    /// True if the node has a name, or needs none.
    pub(crate) fn is_reachable(&self, node: NodeId) -> bool {
        node == ROOT || self.entry(node).is_some_and(|entry| !entry.places.is_empty())
    }

    /// The path of a node today. `ENOENT` if it has no name any more; `ENAMETOOLONG` if a directory
    /// above was moved to where neither the log nor the home can follow.
    pub(crate) fn path(&self, node: NodeId) -> Result<Vec<u8>, Errno> {
        let path = self.path_by(node, |entry| entry.places.first()).ok_or(Errno::NOENT)?;
        if path.len() > PATH_BYTES_MAX { Err(Errno::NAMETOOLONG) } else { Ok(path) }
    }

    /// The directory that a node is in today; the root's is the root.
    pub(crate) fn parent(&self, node: NodeId) -> NodeId {
        self.entry(node).and_then(|entry| entry.places.first()).map_or(ROOT, |place| place.parent)
    }

    /// The path that `name` in `directory` has today.
    pub(crate) fn path_in(&self, directory: NodeId, name: &[u8]) -> Result<Vec<u8>, Errno> {
        let mut path = self.path(directory)?;
        join(&mut path, name);
        if path.len() > PATH_BYTES_MAX {
            return Err(Errno::NAMETOOLONG);
        }
        Ok(path)
    }

    /// Where the home has the node.
    pub(crate) fn home_path(&self, node: NodeId) -> Option<PathBuf> {
        self.path_by(node, |entry| entry.home.first()).map(to_path)
    }

    /// Where the home has, or would have, a place.
    pub(crate) fn home_path_of(&self, place: &Place) -> Option<PathBuf> {
        let mut path = self.path_by(place.parent, |entry| entry.home.first())?;
        join(&mut path, &place.name);
        Some(to_path(path))
    }

    /// The path by which `step` leads from node to directory, up to the root: that of today, or the
    /// home's. None if it ends before.
    fn path_by(&self, node: NodeId, step: impl Fn(&Entry) -> Option<&Place>) -> Option<Vec<u8>> {
        let mut names: Vec<&[u8]> = Vec::new();
        let mut at = node;
        while at != ROOT {
            let place = step(self.entries.get(&at)?)?;
            names.push(&place.name);
            at = place.parent;
        }
        names.reverse();
        Some(names.join(&b'/'))
    }

    /// The names in a directory, read from the home if this is the first time.
    pub(crate) fn load(&mut self, home: &dyn Files, directory: NodeId) -> Result<(), Errno> {
        let entry = self.entry(directory).ok_or(Errno::STALE)?;
        if entry.kind != Kind::Directory {
            return Err(Errno::NOTDIR);
        }
        if entry.children.is_some() {
            return Ok(());
        }
        let listing = match self.hold(home, directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            // One that the home does not have yet has no names there.
            held => held?.map_or(Ok(Vec::new()), |held| held.read_dir())?,
        };
        let mut children = Children::default();
        for item in listing {
            if directory == ROOT && item.name == ORPHANS_NAME {
                continue;
            }
            let node = self.number_of(directory, &item.name);
            children.put(Child { name: item.name.into(), kind: item.kind, node });
        }
        self.entries.get_mut(&directory).expect("looked up above").children = Some(children);
        Ok(())
    }

    /// The number of a node that the home has: the one that the log or the kernel knows it by, or
    /// else a new one. The inode that a listing tells is not asked: what is mounted there, or a
    /// subvolume, has a number that another file has too. Whether a name is another one of a file
    /// that is known is found out when it is opened ([`Self::twin`]).
    fn number_of(&mut self, directory: NodeId, name: &[u8]) -> NodeId {
        let place = Place { parent: directory, name: name.into() };
        let mentioned = match self.mentioned.is_empty() {
            true => None,
            false => {
                let path = self.home_path_of(&place);
                path.and_then(|path| self.mentioned.get(path.as_os_str().as_bytes()))
            }
        };
        match mentioned.or_else(|| self.known_by_place.get(&place)) {
            Some(node) => *node,
            None => self.new_id(),
        }
    }

    /// True if the names in a directory are known.
    pub(crate) fn is_loaded(&self, directory: NodeId) -> bool {
        self.entry(directory).is_some_and(|entry| entry.children.is_some())
    }

    /// A name in a loaded directory.
    pub(crate) fn child(&self, directory: NodeId, name: &[u8]) -> Option<&Child> {
        self.entry(directory)?.children.as_ref()?.get(name)
    }

    /// `name` in a loaded directory stands for `node` from now on.
    pub(crate) fn bind(&mut self, directory: NodeId, name: &[u8], kind: Kind, node: NodeId) {
        let place = Place { parent: directory, name: name.into() };
        if let Some(children) = self.children_mut(directory) {
            children.put(Child { name: name.into(), kind, node });
        }
        if let Some(entry) = self.entries.get_mut(&node) {
            entry.places.put(place);
        }
    }

    /// `name` in a loaded directory stands for nothing from now on.
    pub(crate) fn unbind(&mut self, directory: NodeId, name: &[u8]) {
        let removed = self.children_mut(directory).and_then(|children| children.remove(name));
        let place = Place { parent: directory, name: name.into() };
        self.known_by_place.remove(&place);
        if let Some(entry) = removed.and_then(|child| self.entries.get_mut(&child.node)) {
            entry.places.remove(&place);
        }
    }

    /// Two names in loaded directories, and the nodes that they stand for, change places.
    pub(crate) fn exchange(&mut self, one: (&Place, &Node), other: (&Place, &Node), at_ns: i64) {
        let ((from, node), (to, counterpart)) = (one, other);
        let kind_of = |node: &Node| node.body().attributes.kind;
        let (kind, other_kind) = (kind_of(node), kind_of(counterpart));
        self.unbind(from.parent, &from.name);
        self.unbind(to.parent, &to.name);
        self.bind(to.parent, &to.name, kind, node.id);
        self.bind(from.parent, &from.name, other_kind, counterpart.id);
        let directories = |kind| i64::from(kind == Kind::Directory);
        let more = directories(other_kind) - directories(kind);
        self.touch_directory(from.parent, at_ns, more);
        self.touch_directory(to.parent, at_ns, -more);
    }

    /// The names in a directory, if it has been read.
    fn children_mut(&mut self, directory: NodeId) -> Option<&mut Children> {
        self.entries.get_mut(&directory)?.children.as_mut()
    }

    /// The node behind a name of a loaded directory, read from the home if need be.
    pub(crate) fn open_child(
        &mut self,
        home: &dyn Files,
        directory: NodeId,
        name: &[u8],
    ) -> Result<Arc<Node>, Errno> {
        let child = self.child(directory, name).ok_or(Errno::NOENT)?;
        let (id, kind) = (child.node, child.kind);
        let place = Place { parent: directory, name: name.into() };
        if let Some(entry) = self.entries.get_mut(&id) {
            if !entry.places.contains(&place) {
                // A second name, met for the first time: no record moved it, so the home has it.
                entry.places.put(place.clone());
                entry.home.put(place);
            }
            return Ok(entry.node.clone());
        }
        if self.known.contains_key(&id) {
            return self.revive(home, id);
        }
        let (node, inode) = read_node(&*self.hold_place(home, &place)?, id)?;
        if let Some(twin) = self.twin(home, &node, inode) {
            self.bind(directory, name, kind, twin);
            return self.open_child(home, directory, name);
        }
        let node = Arc::new(node);
        self.put(node.clone(), kind, Some(place.clone()), Some(place));
        self.note_inode(inode, id);
        Ok(node)
    }

    /// The number under which another name of the same file is known already. An earlier process
    /// may have told of that name alone, so all that it told of is looked at first.
    fn twin(&mut self, home: &dyn Files, node: &Node, inode: HomeInode) -> Option<NodeId> {
        if node.body().attributes.links < 2 || node.body().attributes.kind == Kind::Directory {
            return None;
        }
        for known in self.known.keys().copied().collect::<Vec<_>>() {
            // One that the home does not have cannot be this one.
            let _ = self.revive(home, known);
        }
        self.by_home_inode.get(&inode).copied().filter(|twin| *twin != node.id)
    }

    /// A node that an earlier process told of, read from the home.
    pub(crate) fn revive(&mut self, home: &dyn Files, id: NodeId) -> Result<Arc<Node>, Errno> {
        let Remembered { places, count, at_home: noted } =
            self.known.get(&id).cloned().ok_or(Errno::STALE)?;
        for place in places.iter() {
            if self.entry(place.parent).is_none() && self.is_known(place.parent) {
                self.revive(home, place.parent)?;
            }
        }
        let found = places.iter().find_map(|place| {
            let found = read_node(&*self.hold_place(home, place).ok()?, id).ok()?;
            self.is_as_noted(noted, found.1).then(|| (found, place.clone()))
        });
        let ((node, inode), place) = found.ok_or(Errno::STALE)?;
        node.inherit(count);
        let kind = node.body().attributes.kind;
        let node = self.adopt(Arc::new(node), kind, places.clone(), Some(place));
        self.note_inode(inode, id);
        places.iter().for_each(|place| self.note_at_home(home, id, place));
        // The home counts an orphan's name too, by whichever name it was asked.
        let at_home = self.entry(id).into_iter().flat_map(|entry| entry.home.iter());
        let orphans = at_home.filter(|place| place.parent == ORPHANS).count() as u32;
        node.body_mut().attributes.links -= orphans;
        Ok(node)
    }

    /// Makes the directories present in which nodes at hand have names that the roster alone knows.
    /// Those that a record moved are at hand already.
    pub(crate) fn revive_parents(&mut self, home: &dyn Files) {
        let places = self.entries.values().flat_map(|entry| entry.places.iter());
        let parents: BTreeSet<NodeId> = places.map(|place| place.parent).collect();
        for parent in parents {
            if self.entry(parent).is_none() {
                // One that the home does not have is asked for by nobody.
                let _ = self.revive(home, parent);
            }
        }
    }

    /// Notes that the home has the node under this name too, if it has.
    pub(crate) fn note_at_home(&mut self, home: &dyn Files, id: NodeId, place: &Place) {
        let Some(entry) = self.entry(id) else { return };
        if entry.home_inode.is_none() || entry.home.contains(place) {
            return;
        }
        let found = self.home_path_of(place).and_then(|path| home.metadata(&path).ok());
        if found.is_some_and(|found| Some(inode_of(&found)) == entry.home_inode) {
            self.entries.get_mut(&id).expect("looked up above").home.put(place.clone());
        }
    }

    /// Notes every name that the home has for the nodes at hand.
    pub(crate) fn note_all_at_home(&mut self, home: &dyn Files) {
        let unlike = |entry: &&Entry| entry.home_inode.is_some() && entry.home != entry.places;
        let unlike = self.entries.values().filter(unlike);
        let unlike: Vec<(NodeId, Places)> =
            unlike.map(|entry| (entry.node.id, entry.places.clone())).collect();
        for (id, places) in unlike {
            places.iter().for_each(|place| self.note_at_home(home, id, place));
        }
    }

    /// Adds a node with the places that the roster knows for it.
    pub(crate) fn adopt(
        &mut self,
        node: Arc<Node>,
        kind: Kind,
        places: Places,
        home: Option<Place>,
    ) -> Arc<Node> {
        self.known.remove(&node.id);
        let home = home.into_iter().collect();
        let home_inode = None;
        let entry = Entry {
            node: node.clone(),
            kind,
            places,
            home,
            home_inode,
            children: None,
            rules: None,
        };
        self.entries.insert(node.id, entry);
        node
    }

    /// Adds a node that has just been made.
    pub(crate) fn put_made(&mut self, node: Arc<Node>, kind: Kind, parent: NodeId, name: &[u8]) {
        let id = node.id;
        self.put(node, kind, None, None);
        if kind == Kind::Directory {
            self.entries.get_mut(&id).expect("put above").children = Some(Children::default());
        }
        self.bind(parent, name, kind, id);
    }

    /// True if `directory` is `ancestor` or below it.
    pub(crate) fn is_within(&self, directory: NodeId, ancestor: NodeId) -> bool {
        let mut at = directory;
        loop {
            if at == ancestor {
                return true;
            }
            match self.entry(at).and_then(|entry| entry.places.first()) {
                Some(place) if at != ROOT => at = place.parent,
                _ => return false,
            }
        }
    }

    /// The node has this name no more, in a directory that may not be loaded.
    pub(crate) fn forget_place(&mut self, node: NodeId, place: &Place) {
        if let Some(entry) = self.entries.get_mut(&node) {
            entry.places.remove(place);
        }
    }

    /// The home has the node at `path`, in the directory `parent`, from now on.
    pub(crate) fn came_home(&mut self, node: NodeId, parent: NodeId, path: &[u8]) {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let place = Place { parent, name: name.into() };
        if let Some(entry) = self.entries.get_mut(&node) {
            entry.home.put(place);
        }
    }

    /// The home no longer has the node at `path`; perhaps it has it elsewhere.
    pub(crate) fn left_home(&mut self, home: &dyn Files, node: NodeId, path: &[u8]) {
        let left = self.home_place(home, node, &to_path(path.to_vec()));
        if let (Some(place), Some(entry)) = (left, self.entries.get_mut(&node)) {
            entry.home.remove(&place);
            let is_nowhere = entry.home.is_empty();
            let places = if is_nowhere { entry.places.clone() } else { Places::default() };
            places.iter().for_each(|place| self.note_at_home(home, node, place));
            self.leave_inode(node);
        }
    }

    /// The node is here: the roster's knowledge of it has served.
    pub(crate) fn forget_known(&mut self, node: NodeId) {
        self.known.remove(&node);
    }

    /// What the roster knows of a node that nobody has asked for yet.
    pub(crate) fn known(&self, node: NodeId) -> Option<&Remembered> {
        self.known.get(&node)
    }

    /// Drops a node that nobody remembers and that the home, which has everything below
    /// `applied`, has just as memory does.
    pub(crate) fn drop_if_clean(&mut self, id: NodeId, applied: Lsn) {
        let Some(entry) = self.entries.get(&id) else { return };
        let settled = match (entry.places.first(), entry.places.len()) {
            (None, _) => entry.home.is_empty(),
            // What has to be removed stays at hand until it is.
            (Some(place), 1) => place.parent != ORPHANS && entry.home == entry.places,
            _ => false,
        };
        // The names in a directory are known to memory alone until it is gone from the home too.
        let needed = entry.children.is_some() && !entry.places.is_empty();
        let clean = settled
            && !needed
            && !entry.node.is_remembered()
            && entry.node.body().is_applied(applied);
        if clean && id != ROOT && id != ORPHANS {
            self.entries.remove(&id);
        }
    }

    /// A name in the directory changed, and with it the number of its subdirectories.
    pub(crate) fn touch_directory(&self, directory: NodeId, at_ns: i64, subdirectories: i64) {
        let Some(entry) = self.entry(directory) else { return };
        let mut body = entry.node.body_mut();
        let links = i64::from(body.attributes.links);
        // One link means that the home's file system does not count them.
        if links > 1 {
            body.attributes.links = u32::try_from(links + subdirectories).unwrap_or(2);
        }
        body.attributes.modified_ns = at_ns.into();
        body.attributes.changed_ns = at_ns.into();
    }

    /// The root as the home has it now.
    pub(crate) fn reread_root(&mut self, root: &Metadata) {
        if let Some(entry) = self.entry(ROOT) {
            entry.node.body_mut().attributes = attributes_of(ROOT, root);
        }
    }

    /// When a name in the root changed last, as programs see it.
    pub(crate) fn root_time(&self) -> Option<i128> {
        Some(self.entry(ROOT)?.node.body().attributes.modified_ns)
    }

    /// What a roster must hold now.
    pub(crate) fn roster(&self) -> Vec<RosterEntry> {
        let live = self.entries.values().filter(|entry| entry.node.is_remembered());
        let live = live.filter(|entry| entry.node.id != ORPHANS);
        let live = live.flat_map(|entry| {
            let (places, count) = (entry.places.clone(), entry.node.remembered());
            let at_home = self.noted_home(entry.node.id);
            Remembered { places, count, at_home }.entries(entry.node.id)
        });
        let known = self.known.iter().filter(|(_, known)| known.count > 0);
        let known = known.flat_map(|(node, known)| known.entries(*node));
        let asked = self.requests.all().into_iter();
        let asked = asked.map(|(lane, noted)| RosterEntry::Asked(lane, noted));
        live.chain(known).chain(asked).collect()
    }
}

/// Reads a node from what the home has of it, and the number of its inode there.
pub(crate) fn read_node(held: &dyn Held, id: NodeId) -> Result<(Node, HomeInode), Errno> {
    let metadata = held.metadata()?;
    let target = match metadata.kind {
        Kind::Symlink => held.read_link()?,
        _ => Vec::new(),
    };
    Ok((Node::from_home(id, &metadata, target), inode_of(&metadata)))
}

fn inode_of(metadata: &Metadata) -> HomeInode {
    (metadata.device, metadata.inode)
}

/// Appends a name to a path.
fn join(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}
