//! That each log gives back what it took, and a limit says that it does not.

use holdfast_bench_common::place::Place;

use super::{Durability, Kind, Terms, all};
use crate::record::Format;
use crate::set::Source;
use crate::tally::Tally;

/// Appends these sets with one writer and closes.
fn appended(kind: &Kind, place: &Place, durability: Durability, sets: &[usize]) -> Source {
    let peer =
        (kind.open)(place.path(), &Terms { durability, ..Terms::recovery(Format::MessagePack) })
            .unwrap();
    let mut source = Source::new(0, Format::MessagePack);
    let mut writer = peer.writer();
    for set in sets {
        writer.append(&mut source.next_set(*set)).unwrap();
    }
    drop(writer);
    peer.sync().unwrap();
    peer.close().unwrap();
    source
}

#[test]
fn every_log_gives_back_what_it_took() {
    let whole = Place::whole("bench-log-test-peers").unwrap();
    for kind in all() {
        for durability in [Durability::Synced, Durability::Deferred] {
            let place = whole.folder(kind.name).unwrap();
            let source = appended(kind, &place, durability, &[1, 2, 4, 1]);
            let Some(read) = kind.read else { continue };
            let mut tally = Tally::of_content(Format::MessagePack);
            read(place.path(), &mut tally).unwrap();
            tally.expect(&[source.given()]).unwrap();
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
