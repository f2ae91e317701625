//! Layers of what keys were, beside all that was kept in one list.

use std::sync::Arc;

use holdfast_io::fake::Random;

use super::*;

const TREE: PageNumber = PageNumber(5);

fn value(of: u64) -> Former {
    Former::Value(of.to_be_bytes().to_vec())
}

fn taken(formers: &Formers, at: u64) -> Arc<Reader> {
    formers.take(|| Ok::<_, ()>((Rsn(at), Running::default()))).expect("it stands")
}

/// What a key was where a snapshot stands, in a leaf that has changed a moment ago.
fn seen(formers: &Formers, reader: &Reader, key: u8, now: Former) -> Former {
    formers.as_of(reader, (TREE, &[key]), Rsn(u64::MAX), now)
}

#[test]
fn a_key_is_kept_once_a_snapshot() {
    let formers = Formers::new(u64::MAX);
    let old = taken(&formers, 10);
    for at in 10..20 {
        formers.note(TREE, b"k", Rsn(at), || value(at));
    }
    let one = formers.bytes();
    let new = taken(&formers, 20);
    for at in 20..30 {
        formers.note(TREE, b"k", Rsn(at), || value(at));
    }
    assert_eq!(formers.bytes(), 2 * one);
    assert_eq!(seen(&formers, &old, b'k', value(99)), value(10));
    assert_eq!(seen(&formers, &new, b'k', value(99)), value(20));
    formers.end(&new);
    assert_eq!((formers.bytes(), formers.snapshots()), (one, 1));
    formers.end(&old);
    assert_eq!((formers.bytes(), formers.snapshots()), (0, 0));
    assert!(old.is_over() && !formers.are_wanted());
}

#[test]
fn what_came_while_a_snapshot_was_taken_is_that_of_the_one_before_or_of_it() {
    let formers = Formers::new(u64::MAX);
    let old = taken(&formers, 10);
    let new = formers.take(|| {
        formers.note(TREE, b"a", Rsn(15), || value(15));
        formers.note(TREE, b"a", Rsn(25), || value(25));
        formers.note(TREE, b"b", Rsn(26), || value(26));
        // Of somebody who was held up since before the older one was taken.
        formers.note(TREE, b"c", Rsn(5), || value(5));
        assert_eq!(seen(&formers, &old, b'a', value(99)), value(15));
        assert_eq!(seen(&formers, &old, b'c', value(99)), value(99));
        assert!(formers.shows(TREE, b"whatever it is"));
        Ok::<_, ()>((Rsn(20), Running::default()))
    });
    let new = new.expect("it stands");
    assert_eq!(seen(&formers, &new, b'a', value(99)), value(25));
    assert_eq!(seen(&formers, &old, b'a', value(99)), value(15));
    assert_eq!(seen(&formers, &old, b'b', value(99)), value(26));
    assert_eq!(seen(&formers, &old, b'c', value(99)), value(99));
    assert!(!formers.shows(TREE, b"c") && formers.shows(TREE, b"b"));
}

#[test]
fn a_snapshot_that_could_not_be_taken_leaves_what_older_ones_need() {
    let formers = Formers::new(u64::MAX);
    let old = taken(&formers, 10);
    let failed = formers.take(|| {
        formers.note(TREE, b"a", Rsn(15), || value(15));
        Err::<(Rsn, Running), _>("no room")
    });
    assert_eq!(failed.err(), Some("no room"));
    assert_eq!(seen(&formers, &old, b'a', value(99)), value(15));
    assert_eq!(formers.snapshots(), 1);
}

#[test]
fn the_oldest_snapshot_ends_when_there_is_too_much() {
    let formers = Formers::new(1000);
    let (old, new) = (taken(&formers, 10), taken(&formers, 20));
    for key in 0..50 {
        formers.note(TREE, &[key], Rsn(15), || value(1));
        formers.bound();
    }
    assert!(old.is_over() && !new.is_over());
    assert!(formers.bytes() <= 1000);
    for key in 0..50 {
        formers.note(TREE, &[key], Rsn(25), || value(1));
        formers.bound();
    }
    assert!(new.is_over());
    assert_eq!((formers.bytes(), formers.snapshots()), (0, 0));
}

#[test]
fn pages_of_a_large_value_wait_for_the_oldest_snapshot() {
    let formers = Formers::new(u64::MAX);
    let pages = |first| PutOff { tree: TREE, first: PageNumber(first), pages: first };
    assert!(!formers.keep(pages(1), 10, || Rsn(1)));
    let (old, new) = (taken(&formers, 10), taken(&formers, 20));
    assert!(formers.keep(pages(2), 10, || Rsn(15)));
    let newest = taken(&formers, 25);
    assert!(formers.keep(pages(3), 10, || Rsn(30)));
    formers.end(&newest);
    assert_eq!(formers.take_left(), None);
    formers.end(&old);
    assert_eq!(formers.left_pages(), 2);
    assert_eq!((formers.take_left(), formers.take_left()), (Some(pages(2)), None));
    formers.end(&new);
    assert_eq!((formers.take_left(), formers.bytes()), (Some(pages(3)), 0));
}

/// Every change of a key, and what it was before.
struct Kept {
    keys: [Former; 8],
    changes: Vec<(u8, u64, Former)>,
}

impl Kept {
    fn seen(&self, key: u8, at: u64) -> &Former {
        let later = |(changed, rsn, _): &&(u8, u64, Former)| *changed == key && *rsn >= at;
        self.changes.iter().find(later).map_or(&self.keys[key as usize], |change| &change.2)
    }

    /// Changes a key: one that is there may be deleted.
    fn change(&mut self, formers: &Formers, key: u8, now: u64, is_deleted: bool) {
        let is_there = matches!(self.keys[key as usize], Former::Value(_));
        let new = if is_there && is_deleted { Former::Ghost(vec![]) } else { value(now) };
        let before = std::mem::replace(&mut self.keys[key as usize], new);
        self.changes.push((key, now, before.clone()));
        formers.note(TREE, &[key], Rsn(now), || before);
    }

    /// Takes a key's entry away, if it is deleted and no snapshot shows it. Whether that was so.
    fn purge(&mut self, formers: &Formers, readers: &[Arc<Reader>], key: u8) -> bool {
        if !matches!(self.keys[key as usize], Former::Ghost(_)) {
            return false;
        }
        let is_shown = readers.iter().any(|one| shown(self.seen(key, one.at().get())).is_some());
        assert_eq!(formers.shows(TREE, &[key]), is_shown);
        if !is_shown {
            self.keys[key as usize] = Former::Absent;
            formers.forget(TREE, &[key]);
            assert_eq!(formers.shard(TREE, &[key]).forget(TREE, &[key]), 0);
        }
        !is_shown
    }
}

/// The value that a snapshot shows of what a key was.
fn shown(former: &Former) -> Option<Vec<u8>> {
    former.clone().before(&[]).expect("nothing runs")
}

#[test]
fn layers_show_what_all_changes_in_one_list_show() {
    let mut purged = 0;
    for seed in 1..=200 {
        let (mut random, formers) = (Random::new(seed), Formers::new(u64::MAX));
        let keys = std::array::from_fn(|_| Former::Absent);
        let mut kept = Kept { keys, changes: Vec::new() };
        let mut readers = Vec::new();
        for now in 1..300 {
            match random.below(10) {
                0 => readers.push(taken(&formers, now)),
                1 if !readers.is_empty() => {
                    let gone = readers.swap_remove(random.below(readers.len() as u64) as usize);
                    formers.end(&gone);
                }
                2..5 => purged += u64::from(kept.purge(&formers, &readers, random.below(8) as u8)),
                _ => kept.change(&formers, random.below(8) as u8, now, random.chance(50)),
            }
            for reader in &readers {
                let key = random.below(8) as u8;
                let found = seen(&formers, reader, key, kept.keys[key as usize].clone());
                let expected = shown(kept.seen(key, reader.at().get()));
                assert_eq!(shown(&found), expected, "seed {seed}, key {key} at {now}");
            }
        }
        readers.iter().for_each(|reader| formers.end(reader));
        assert_eq!(formers.bytes(), 0, "seed {seed}");
    }
    assert!(purged > 1000, "{purged} keys died");
}
