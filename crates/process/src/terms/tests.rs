//! Promise: of those who begin a term at once, one owns it, and an old owner learns of it.
//! Never: waits for a clock.

use super::*;
use std::sync::Barrier;
use std::thread;

fn won(begun: Begun) -> Owned {
    match begun {
        Begun::Won(owned) => owned,
        Begun::Lost(term) => panic!("{term:?}"),
    }
}

fn machine(id: &str, boot: &str) -> Machine {
    Machine { id: id.into(), boot: boot.into() }
}

fn term(number: u64, host: &str) -> Term {
    Term { number, host: host.into(), machine: Some(machine("1", "2")) }
}

#[test]
fn an_owner_is_told_by_its_machine_and_not_by_its_name() {
    let (one, this) = (term(1, "a"), machine("1", "2"));
    assert_eq!(one.owner("b", &this), Owner::Other);
    assert_eq!(one.owner("a", &this), Owner::This);
    assert_eq!(one.owner("a", &machine("1", "3")), Owner::This, "it was started again");
    assert_eq!(one.owner("a", &machine("7", "2")), Owner::This, "a container on one kernel");
    assert_eq!(one.owner("a", &machine("7", "3")), Owner::Namesake);
    assert_eq!(one.owner("a", &machine("", "3")), Owner::Namesake);
    let nameless = Term { machine: Some(machine("", "2")), ..one.clone() };
    assert_eq!(nameless.owner("a", &machine("", "3")), Owner::Namesake, "nobody can tell");
    let old: Term = serde_json::from_str(r#"{"number":1,"host":"a"}"#).unwrap();
    assert_eq!(old.owner("a", &this), Owner::Unknown);
    let here = Machine::this().unwrap();
    assert_eq!(here, Machine::this().unwrap());
    assert!(!here.boot.is_empty());
}

#[test]
fn a_term_is_seen_by_all_with_its_owner_and_its_last_beat() {
    let folder = tempfile::tempdir().unwrap();
    let terms = Terms::at(folder.path());
    assert_eq!(terms.newest().unwrap(), None);
    let mut owned = won(terms.begin(0, "a", &machine("1", "2")).unwrap());
    let term = term(1, "a");
    assert_eq!(terms.newest().unwrap(), Some((term.clone(), None)));
    owned.beat().unwrap().unwrap();
    owned.beat().unwrap().unwrap();
    assert_eq!(terms.newest().unwrap(), Some((term.clone(), Some(Beat::Lives(2)))));
    owned.end().unwrap();
    assert_eq!(terms.newest().unwrap(), Some((term, Some(Beat::Ended))));
}

#[test]
fn an_owner_learns_of_the_newer_term_at_its_next_beat() {
    let folder = tempfile::tempdir().unwrap();
    let terms = Terms::at(folder.path());
    let mut old = won(terms.begin(0, "a", &machine("1", "2")).unwrap());
    old.beat().unwrap().unwrap();
    let mut new = won(terms.begin(1, "b", &machine("1", "2")).unwrap());
    assert_eq!(old.beat().unwrap().unwrap_err(), term(2, "b"));
    new.beat().unwrap().unwrap();
    let (newest, _) = terms.newest().unwrap().unwrap();
    assert_eq!(newest.host, "b", "the beat of the old one is no beat of the new one");
}

#[test]
fn of_many_who_begin_a_term_at_once_exactly_one_owns_it_and_the_others_know_who() {
    let folder = tempfile::tempdir().unwrap();
    for last in 0..50 {
        const HOSTS: usize = 8;
        let barrier = Barrier::new(HOSTS);
        let begin = &|host: usize| {
            let (terms, name) = (Terms::at(folder.path()), format!("h{host}"));
            barrier.wait();
            terms.begin(last, &name, &machine("1", "2")).unwrap()
        };
        let begun: Vec<Begun> = thread::scope(|scope| {
            let hosts: Vec<_> = (0..HOSTS).map(|host| scope.spawn(move || begin(host))).collect();
            hosts.into_iter().map(|host| host.join().unwrap()).collect()
        });
        let owners: Vec<&Term> = begun
            .iter()
            .filter_map(|begun| match begun {
                Begun::Won(owned) => Some(owned.term()),
                Begun::Lost(_) => None,
            })
            .collect();
        assert_eq!(owners.len(), 1, "term {}", last + 1);
        for begun in &begun {
            assert!(!matches!(begun, Begun::Lost(term) if term != owners[0]));
        }
    }
}

#[test]
fn a_folder_that_is_not_there_is_an_error_and_no_first_term() {
    let terms = Terms::at(Path::new("/nowhere/at/all"));
    assert!(terms.newest().is_err());
    assert!(terms.begin(0, "a", &machine("1", "2")).is_err());
}
