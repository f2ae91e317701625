//! A walk through several runs meets each of their records, once and in order.

use super::*;
use crate::archive::run_format::page_of;
use crate::repair::replay::tests::Sample;

#[test]
fn each_record_comes_once_and_in_order_from_a_page_and_a_place_on() {
    let sample = Sample::new(1);
    let archive = sample.archive();
    let end = archive.end().expect("there are runs");
    let mut wanted: Vec<_> = sample.records().filter(|record| record.rsn < end).collect();
    wanted.sort_by_key(|record| (page_of(record), record.rsn));
    let middle = Rsn((Rsn::FIRST.get() + end.get()) / 2);
    for (page, from) in [(1, Rsn::FIRST), (4, Rsn::FIRST), (1, middle), (4, middle), (99, middle)] {
        let mut walk = Merged::new(archive.runs(), PageNumber(page), from).expect("it is whole");
        let is_wanted =
            |record: &&crate::Record<'_>| page_of(record) >= PageNumber(page) && record.rsn >= from;
        for record in wanted.iter().filter(is_wanted) {
            let found = walk.current().expect("the walk goes on");
            assert_eq!((found.page, found.rsn), (page_of(record), record.rsn));
            assert_eq!(found.bytes, sample.bytes_of(record));
            walk.advance().expect("it is whole");
        }
        assert_eq!(walk.current(), None);
        walk.advance().expect("it stays at its end");
    }
}
