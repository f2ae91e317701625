//! That each store keeps a bank, alone and with several threads, closed and opened again.

use std::time::Duration;

use holdfast_bench_common::place::Place;

use super::{Durability, Kind, Terms, all};
use crate::drive::{self, Hand};
use crate::tpcb::{self, Bank};

const BANK: Bank = Bank { branches: 2, accounts: 1200 };

fn terms(durability: Durability) -> Terms {
    Terms { durability, cache_bytes: 8 << 20, put_off: false, keeps_past: true }
}

fn kept(kind: &Kind, place: &Place, durability: Durability) {
    let peer = (kind.open)(place.path(), &terms(durability)).unwrap();
    tpcb::load(&*peer, BANK).unwrap();
    let mut hands = Hand::all(BANK, 2);
    drive::all(&*peer, &mut hands, Duration::from_millis(20)).unwrap();
    let done = hands.iter().map(Hand::done).sum();
    tpcb::check(&*peer, BANK, done..=done).unwrap();
    peer.close().unwrap();

    let peer = (kind.open)(place.path(), &terms(durability)).unwrap();
    tpcb::check(&*peer, BANK, done..=done).unwrap();
    assert!(tpcb::check(&*peer, BANK, 0..=done - 1).is_err());
    peer.close().unwrap();
}

#[test]
fn every_store_keeps_a_bank() {
    let whole = Place::whole("bench-store-test-peers").unwrap();
    for kind in all() {
        for durability in [Durability::Synced, Durability::Kernel] {
            kept(kind, &whole.folder(kind.name).unwrap(), durability);
        }
    }
}

#[test]
fn names_are_unique_and_fit_into_an_id() {
    let mut names: Vec<_> = all().map(|kind| kind.name).collect();
    assert!(names.iter().all(|name| !name.contains(['.', ',', ' '])));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all().count());
}
