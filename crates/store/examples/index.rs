//! Who lives where: people by number, and an index of them by town, which always agree.
//! `index DIRECTORY NUMBER TOWN` lets somebody move, and prints who lives there then.
//!
//! Promise: the index has everybody once, where he lives, after any crash.
//! Never: asks everybody.

use holdfast_store::{Config, Direction, Durability, Store, TransactionError, Tree};
use std::io::{Write, stdout};
use std::{error::Error, path::Path};

type Outcome<T> = Result<T, Box<dyn Error>>;

pub(crate) struct Register {
    store: Store,
    /// Towns by number.
    people: Tree,
    /// Keys are a town, a zero byte and a number; values are empty.
    by_town: Tree,
}

impl Register {
    pub(crate) fn open(directory: &Path) -> Outcome<Register> {
        let (store, _) = Store::open(directory, &Config::default())?;
        let (people, by_town) = (store.tree("people")?, store.tree("by town")?);
        Ok(Register { store, people, by_town })
    }

    /// Lets somebody move to a town: both trees change, or neither.
    pub(crate) fn settle(&self, who: u32, town: &str) -> Outcome<()> {
        let number = who.to_be_bytes();
        let mut transaction = self.store.begin();
        if let Some(left) = transaction.get_for_update(&self.people, &number)? {
            transaction.delete(&self.by_town, &entry(&left, number))?;
        }
        transaction.put(&self.people, &number, town.as_bytes())?;
        transaction.insert(&self.by_town, &entry(town.as_bytes(), number), b"")?;
        transaction.commit(Durability::Disk)?;
        Ok(())
    }

    /// Where somebody lives.
    pub(crate) fn town_of(&self, who: u32) -> Outcome<Option<String>> {
        let town = self.store.begin().get(&self.people, &who.to_be_bytes())?;
        Ok(town.map(String::from_utf8).transpose()?)
    }

    /// Who lives in a town. Nobody comes or goes until they are counted.
    pub(crate) fn people_in(&self, town: &str) -> Result<Vec<u32>, TransactionError> {
        let [from, to] = [b"\0", b"\x01"].map(|end| [town.as_bytes(), end].concat());
        let mut transaction = self.store.begin();
        let entries = transaction.scan(&self.by_town, from..to, Direction::Up);
        entries.map(|found| Ok(number_of(&found?.0))).collect()
    }
}

/// A key of the index.
fn entry(town: &[u8], number: [u8; 4]) -> Vec<u8> {
    [town, b"\0", &number].concat()
}

/// The number in a key of the index.
fn number_of(entry: &[u8]) -> u32 {
    entry.last_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, number, town] = &arguments[..] else { return Err("see above".into()) };
    let register = Register::open(Path::new(directory))?;
    let before = register.town_of(number.parse()?)?;
    register.settle(number.parse()?, town)?;
    writeln!(stdout(), "from {before:?}; in {town} are {:?}", register.people_in(town)?)?;
    Ok(register.store.close()?)
}
