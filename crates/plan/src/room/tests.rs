//! Who finds room.

use super::*;

/// The pages that find room, in order.
fn winners(candidates: &[(u32, Place)], room: usize) -> Vec<u32> {
    let numbered = candidates.iter().zip(0..);
    let mut all: Vec<Candidate> =
        numbered.map(|((hits, place), page)| Candidate::new(*hits, *place, page)).collect();
    let losers = losers_first(&mut all, room);
    let mut pages: Vec<u32> = all[losers..].iter().map(|winner| winner.page()).collect();
    pages.sort_unstable();
    pages
}

#[test]
fn more_hits_come_before_everything_else() {
    assert_eq!(winners(&[(7, Place::Kept), (8, Place::New)], 1), [1]);
}

#[test]
fn of_two_with_as_many_hits_the_one_that_can_stay_stays() {
    // The paper's example: both were hit seven times.
    assert_eq!(winners(&[(7, Place::New), (7, Place::Kept)], 1), [1]);
    assert_eq!(winners(&[(7, Place::Renewed), (7, Place::Kept), (7, Place::New)], 2), [0, 1]);
}

#[test]
fn all_find_room_where_there_is_enough_and_nobody_where_there_is_none() {
    let all = [(0, Place::New), (1, Place::New)];
    assert_eq!(winners(&all, 3), [0, 1]);
    assert_eq!(winners(&all, 2), [0, 1]);
    assert_eq!(winners(&all, 0), [0; 0]);
}

#[test]
fn hits_without_end_do_not_run_into_the_place() {
    let most = Candidate::new(u32::MAX, Place::New, 3);
    assert!(most.is_new() && most.page() == 3);
    assert!(most > Candidate::new(HITS_MAX - 1, Place::Kept, 4));
}
