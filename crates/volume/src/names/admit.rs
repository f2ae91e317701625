//! Whether a directory of the home takes a name, by what it asks of the names in it.
//!
//! What the log has is brought home in another order than it was done in, and what was made in one
//! directory and moved to another is made where it ends. So nothing that the home does not have yet
//! moves between directories whose rules differ, but to one that has none.
//!
//! Promise: a name that is admitted its directory takes, whatever becomes of it before.
//! Never: changes a name.

use holdfast_io::{Files, Kind};

use super::rules::Rules;
use super::{Names, ORPHANS};
use crate::home::tried::admit_move;
use holdfast_io::tree::{Errno, NodeId, ROOT};

impl Names {
    /// What a directory asks, or is going to once the home has it.
    fn rules(&mut self, home: &dyn Files, directory: NodeId) -> Result<Rules, Errno> {
        let mut at = if directory == ORPHANS { ROOT } else { directory };
        loop {
            let entry = self.entry(at).ok_or(Errno::STALE)?;
            if let Some(rules) = entry.rules {
                return Ok(rules);
            }
            if let Some(held) = self.hold(home, at)? {
                let rules = Rules::of(&*held)?;
                self.entries.get_mut(&at).expect("looked up above").rules = Some(rules);
                return Ok(rules);
            }
            at = self.parent(at);
        }
    }

    /// Whether something of this kind may be made in a directory.
    pub(crate) fn admit_made(
        &mut self,
        home: &dyn Files,
        directory: NodeId,
        kind: Kind,
    ) -> Result<(), Errno> {
        let rules = self.rules(home, directory)?;
        let refused = rules.folds_case || rules.no_symlinks && kind == Kind::Symlink;
        if refused { Err(Errno::PERM) } else { Ok(()) }
    }

    /// Whether a node may get a name in `to`, where it has, or loses, one in `from`.
    pub(crate) fn admit_moved(
        &mut self,
        home: &dyn Files,
        node: NodeId,
        from: NodeId,
        to: NodeId,
    ) -> Result<(), Errno> {
        let (here, there) = (self.rules(home, from)?, self.rules(home, to)?);
        let kind = self.entry(node).ok_or(Errno::STALE)?.kind;
        if let Some(path) = self.home_path(node).filter(|_| kind == Kind::Directory) {
            admit_move(home, &path)?;
        }
        let at_home = if here == there && there == Rules::default() {
            return Ok(());
        } else {
            self.hold(home, node)?
        };
        if there.folds_case {
            return Err(Errno::PERM);
        }
        let Some(held) = at_home else {
            let fits = here == there || there == Rules::default() && kind != Kind::Directory;
            return if fits { Ok(()) } else { Err(Errno::XDEV) };
        };
        let of = |project: u32| Ok(held.traits()?.is_some_and(|of| of.project == project));
        match there.project.map_or(Ok(true), of) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Errno::XDEV),
            Err(error) => Err(std::io::Error::into(error)),
        }
    }
}
