//! Whether the home can have the extended attributes that are acknowledged.
//!
//! How many bytes of them an inode can have is each file system's own rule, so the home is asked: a
//! directory of the volume's own is given the same attributes first. Where an inode has them in two
//! places, as on ext4, what fits depends on the order too: then orders are tried, and whoever gives
//! them to the inode itself tries the same ones.
//!
//! Promise: what is admitted the home takes, as far as it depends on the attributes alone, on an
//! inode that has no others. That holds when some of them are taken away again, too.
//! Never: touches what a program can see.

mod taken;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_io::{Files, Held};

use crate::changes::xattr::overlay::{Named, Value, bytes};
use crate::error::Stop;
use crate::names::paths::to_path;
use crate::own::{ORPHANS_NAME, make_unless_there};
use holdfast_io::tree::Errno;
use taken::Taken;

/// So much is tried when a namespace is first used, the most first; what is taken is not tried
/// again.
const SURE_BYTES: [usize; 4] = [1024, 512, 128, 16];
/// File systems that have common room for more than this have a place of its own for each.
const WHOLE_BYTES_MAX: usize = 64 << 10;
/// So many of the shortest may come first, in any choice: the inode itself has room for few.
const CHOSEN_MAX: usize = 5;
/// So much of what the home took is remembered.
const TAKEN_MAX: usize = 8;

/// What is tried on the home when a namespace is first used: a name, and values, the longest first.
pub(crate) type Probe = (Box<[u8]>, Vec<Value>);

/// What is known of the home.
#[derive(Default)]
pub(crate) struct Gate {
    /// Held while the home is asked: whoever asks does it on the same inode.
    told: Mutex<Told>,
}

/// What the home told.
#[derive(Default)]
struct Told {
    /// By namespace: whether it has attributes of that kind, and how many bytes of them are sure.
    spaces: BTreeMap<&'static [u8], Result<usize, Errno>>,
    /// The newest last.
    taken: VecDeque<Taken>,
}

impl Gate {
    /// The home's error if it has no such namespace, or cannot have `wanted` all on one inode. True
    /// if whether it can depends on all of them together. `probe` makes a name in the namespace,
    /// and values for it, which only the first who asks of a namespace needs. What `room_to_try`
    /// gives is kept while something is tried.
    pub(crate) fn admit<R>(
        &self,
        home: &dyn Files,
        room_to_try: impl Fn(&[Named]) -> Result<R, Stop>,
        space: &'static [u8],
        probe: impl FnOnce() -> Probe,
        wanted: &[Named],
    ) -> Result<bool, Stop> {
        let told = &mut *self.turn();
        if !told.spaces.contains_key(space) {
            let outcome = sure_bytes(told, home, &room_to_try, &probe())?;
            told.spaces.insert(space, outcome);
        }
        let sure_bytes = told.spaces[space]?;
        let are_bound = (sure_bytes + 1..=WHOLE_BYTES_MAX).contains(&bytes(wanted));
        if bytes(wanted) <= sure_bytes || told.taken.iter().any(|taken| taken.tells_of(wanted)) {
            return Ok(are_bound);
        }
        let _room = room_to_try(wanted)?;
        let taken = try_on_home(told, home, wanted, |held| Taken::learn(held, wanted))??;
        told.taken.push_back(taken);
        if told.taken.len() > TAKEN_MAX {
            told.taken.pop_front();
        }
        Ok(are_bound)
    }

    /// Whether an inode of the volume's own takes all of these.
    pub(crate) fn is_taken<V: AsRef<[u8]>>(
        &self,
        home: &dyn Files,
        wanted: &[(&[u8], V)],
    ) -> io::Result<()> {
        on_scratch(&mut self.turn(), home, |held| place(held, wanted))
    }

    /// Waits for all others who ask.
    fn turn(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Values of which the home takes the longest that it can.
pub(crate) fn sure_values() -> Vec<Value> {
    SURE_BYTES.iter().map(|bytes| vec![0; *bytes].into()).collect()
}

/// Whether the home has a namespace, and how long the first of the values is that it takes. The
/// outer error says nothing of that.
fn sure_bytes<R>(
    turn: &mut Told,
    home: &dyn Files,
    room_to_try: impl Fn(&[Named]) -> Result<R, Stop>,
    (name, values): &Probe,
) -> Result<Result<usize, Errno>, Stop> {
    for value in values {
        let tried = [(name.clone(), value.clone())];
        let _room = room_to_try(&tried)?;
        match try_on_home(turn, home, &tried, |_| ())? {
            Ok(()) => return Ok(Ok(value.len())),
            // There are file systems with room for little.
            Err(Errno::NOSPC | Errno::TOOBIG | Errno::RANGE) => {}
            Err(refused) => return Ok(Err(refused)),
        }
    }
    Ok(Ok(0))
}

/// Gives an inode that has none of them all of these, in the first order in which it takes them.
pub(crate) fn place<V: AsRef<[u8]>>(held: &dyn Held, wanted: &[(&[u8], V)]) -> io::Result<()> {
    let mut longest_first: Vec<_> =
        wanted.iter().map(|(name, value)| (*name, value.as_ref())).collect();
    longest_first.sort_by_key(|(name, value)| (std::cmp::Reverse(name.len() + value.len()), *name));
    let chosen = longest_first.len().min(CHOSEN_MAX);
    let mut outcome = Ok(());
    for choice in 0..1_u32 << chosen {
        let is_first = |index: usize| {
            let from_end = longest_first.len() - 1 - index;
            from_end < chosen && choice & 1 << from_end != 0
        };
        let (first, rest): (Vec<_>, Vec<_>) =
            longest_first.iter().enumerate().partition(|(index, _)| is_first(*index));
        let mut order = first.into_iter().chain(rest).map(|(_, attribute)| attribute);
        outcome = order.try_for_each(|(name, value)| held.set_xattr(name, value));
        match &outcome {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
            _ => break,
        }
        clear(held, wanted.iter().map(|(name, _)| *name))?;
    }
    outcome
}

/// Takes attributes away. One that is not there is taken.
pub(crate) fn clear<'n>(
    held: &dyn Held,
    mut names: impl Iterator<Item = &'n [u8]>,
) -> io::Result<()> {
    names.try_for_each(|name| held.remove_xattr(name))
}

/// Tries something on an inode of the volume's own, in one's turn.
fn on_scratch<T>(
    _turn: &mut Told,
    home: &dyn Files,
    tried: impl FnOnce(&dyn Held) -> io::Result<T>,
) -> io::Result<T> {
    let own = to_path(ORPHANS_NAME.to_vec());
    let [.., scratch] = crate::own::SCRATCH.map(|name| own.join(name));
    crate::own::make(home)?;
    make_unless_there(home, &scratch)?;
    let outcome = tried(&*home.hold(&scratch)?);
    home.remove_dir(&scratch)?;
    outcome
}

/// Gives a directory of the volume's own all of these, and learns from it. The outer error says
/// nothing of them.
fn try_on_home<T>(
    turn: &mut Told,
    home: &dyn Files,
    wanted: &[Named],
    learn: impl FnOnce(&dyn Held) -> T,
) -> Result<Result<T, Errno>, Errno> {
    let given: Vec<_> = wanted.iter().map(|(name, value)| (&**name, value)).collect();
    let outcome = on_scratch(turn, home, |held| place(held, &given).map(|()| learn(held)));
    match outcome {
        Err(error) if is_about_attributes(&error) => Ok(Err(error.into())),
        outcome => Ok(Ok(outcome?)),
    }
}

/// No such namespace, or too much.
fn is_about_attributes(error: &io::Error) -> bool {
    let refusals = [Errno::NOTSUP, Errno::NOSPC, Errno::TOOBIG, Errno::RANGE, Errno::PERM];
    error.raw_os_error().is_some_and(|number| refusals.contains(&Errno(number)))
}

#[cfg(test)]
mod tests;
