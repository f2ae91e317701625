//! What is left of a page's records begins with its newest image before a place.

use super::*;
use crate::archive::run_format::page_of;
use crate::repair::replay::tests::Sample;

fn places(runs: &[Arc<Run>], below: Rsn) -> (Vec<(PageNumber, Rsn)>, bool) {
    let mut walk = PrunedMerge::new(runs, below).expect("it is whole");
    let mut places = Vec::new();
    while let Some(entry) = walk.current() {
        places.push((entry.page, entry.rsn));
        walk.advance().expect("it is whole");
    }
    (places, walk.has_left_out())
}

#[test]
fn of_each_page_what_stands_before_its_newest_image_before_a_place_is_left_out_and_what_has_none() {
    for seed in 1..=5 {
        let sample = Sample::new(seed);
        let archive = sample.archive();
        let end = archive.end().expect("there are runs");
        for below in [Rsn::FIRST, Rsn(end.get() / 2), end] {
            let archived = sample.records().filter(|record| record.rsn < end);
            let mut wanted: Vec<_> = archived
                .filter(|record| page_of(record) != crate::NO_PAGE || record.rsn >= below)
                .filter(|record| {
                    !sample.records().any(|image| {
                        let replaces = record.rsn < image.rsn && image.rsn < below;
                        image.what.is_whole() && replaces && page_of(&image) == page_of(record)
                    })
                })
                .map(|record| (page_of(&record), record.rsn))
                .collect();
            wanted.sort_unstable();
            let (found, has_left_out) = places(archive.runs(), below);
            assert_eq!(found, wanted, "seed {seed}, below {below}");
            let all = sample.records().filter(|record| record.rsn < end).count();
            assert_eq!(has_left_out, wanted.len() < all);
        }
    }
}
