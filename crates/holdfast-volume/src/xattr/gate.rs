//! Whether the home can have the extended attributes that are acknowledged.
//!
//! How many bytes of them an inode can have is each file system's own rule, so the home is asked: a
//! directory of the volume's own is given the same attributes first.
//!
//! Promise: what is admitted the home takes, as far as it depends on the attributes alone.
//! Never: touches what a program can see.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use holdfast_io::Files;

use crate::names::{ORPHANS_NAME, make_unless_there, to_path};
use crate::tree::Errno;
use crate::xattr::overlay::Value;

/// So much was tried when a namespace was first used, and is not tried again.
const SURE_BYTES: usize = 1024;
/// What an attribute takes besides its name and value.
const ENTRY_BYTES: usize = 32;

/// What is known of the home.
#[derive(Default)]
pub(crate) struct Gate {
    /// By namespace: whether it has attributes of that kind. Held while the home is asked.
    spaces: Mutex<BTreeMap<&'static [u8], Result<(), Errno>>>,
}

impl Gate {
    /// The home's error if it has no such namespace, or cannot have `wanted` all on one inode.
    /// `probe` is a name in the namespace, and a value that it takes.
    pub(crate) fn admit(
        &self,
        home: &dyn Files,
        space: &'static [u8],
        probe: (&[u8], &[u8]),
        wanted: &[(Box<[u8]>, Value)],
    ) -> Result<(), Errno> {
        let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        if !spaces.contains_key(space) {
            let (name, value) = probe;
            let outcome = try_on_home(home, &[(name.into(), value.into())])?;
            spaces.insert(space, outcome);
        }
        spaces[space]?;
        if bytes(wanted) <= SURE_BYTES {
            return Ok(());
        }
        try_on_home(home, wanted)?
    }
}

/// A value as long as all that is admitted without asking.
pub(crate) fn sure_value() -> Vec<u8> {
    vec![0; SURE_BYTES]
}

fn bytes(wanted: &[(Box<[u8]>, Value)]) -> usize {
    wanted.iter().map(|(name, value)| ENTRY_BYTES + name.len() + value.len()).sum()
}

/// Gives a directory of the volume's own all of these. The outer error says nothing of them.
fn try_on_home(
    home: &dyn Files,
    wanted: &[(Box<[u8]>, Value)],
) -> Result<Result<(), Errno>, Errno> {
    let own = to_path(ORPHANS_NAME.to_vec());
    let scratch = own.join("scratch");
    crate::own::make(home)?;
    make_unless_there(home, &scratch)?;
    let set = |(name, value): &(Box<[u8]>, Value)| home.set_xattr(&scratch, name, value);
    let outcome = wanted.iter().try_for_each(set);
    home.remove_dir(&scratch)?;
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
