//! What a store should hold, from what it was told and what it answered.

use std::collections::BTreeMap;

/// Keys and their values.
pub(crate) type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a transaction did to keys, in order; none deletes.
pub(crate) type Writes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// Every transaction whose commit was asked for, in that order.
#[derive(Clone, Default)]
pub(crate) struct Model {
    begin: Contents,
    commits: Vec<Writes>,
    /// So many of them are durable.
    durable: usize,
}

/// Changes `contents` as a transaction did.
pub(crate) fn apply(contents: &mut Contents, writes: &Writes) {
    for (key, value) in writes {
        match value {
            Some(value) => drop(contents.insert(key.clone(), value.clone())),
            None => drop(contents.remove(key)),
        }
    }
}

impl Model {
    /// A transaction is being committed.
    pub(crate) fn commit(&mut self, writes: Writes) {
        self.commits.push(writes);
    }

    /// The last one was not committed after all.
    pub(crate) fn take_back(&mut self) {
        self.commits.pop();
    }

    /// Everything that was committed is durable.
    pub(crate) fn is_durable(&mut self) {
        self.durable = self.commits.len();
    }

    /// What there is now.
    pub(crate) fn now(&self) -> Contents {
        let mut contents = self.begin.clone();
        self.commits.iter().for_each(|writes| apply(&mut contents, writes));
        contents
    }

    /// The checker: what was found after a crash is what some of the first transactions come to,
    /// all durable ones among them. The model goes on from there.
    pub(crate) fn found(&mut self, found: &Contents) -> Result<(), String> {
        let mut contents = self.begin.clone();
        let mut fits = self.durable == 0 && contents == *found;
        for (at, writes) in self.commits.iter().enumerate() {
            apply(&mut contents, writes);
            fits |= at + 1 >= self.durable && contents == *found;
        }
        if !fits {
            return Err(self.difference(found));
        }
        *self = Model { begin: found.clone(), ..Model::default() };
        Ok(())
    }

    fn difference(&self, found: &Contents) -> String {
        let now = self.now();
        let lost = now.iter().filter(|(key, value)| found.get(*key) != Some(value)).count();
        let more = found.keys().filter(|key| !now.contains_key(*key)).count();
        let (durable, all) = (self.durable, self.commits.len());
        format!(
            "no prefix fits: {durable} of {all} commits are durable; of {} keys {lost} are lost or \
             other, {more} are invented",
            now.len()
        )
    }
}

#[test]
fn a_lost_an_invented_and_a_half_transaction_are_noticed() {
    let key = |at: u8| (vec![at], Some(vec![at]));
    let mut model = Model::default();
    model.commit(vec![key(1), key(2)]);
    model.commit(vec![key(3)]);
    model.is_durable();
    model.commit(vec![key(4), key(5)]);
    let contents = |keys: &[u8]| keys.iter().map(|at| (vec![*at], vec![*at])).collect();
    for wrong in [&[1, 2][..], &[1, 2, 3, 4], &[1, 2, 3, 6], &[2, 3], &[]] {
        assert!(model.clone().found(&contents(wrong)).is_err(), "{wrong:?}");
    }
    assert_eq!(model.clone().found(&contents(&[1, 2, 3])), Ok(()));
    assert_eq!(model.found(&contents(&[1, 2, 3, 4, 5])), Ok(()));
}
