//! The order of pages, beside a list that is searched from the front.

use holdfast_io::fake::Random;

use super::*;

/// What a list is told to do.
#[derive(Clone, Copy, Debug)]
enum Step {
    Use(u32),
    Pop,
}

/// A list as slow as it is plain. One that orders nothing anew is the canary.
struct Plain {
    newest_first: Vec<u32>,
    is_canary: bool,
}

impl Plain {
    fn use_page(&mut self, page: u32) {
        if self.is_canary && self.newest_first.contains(&page) {
            return;
        }
        self.newest_first.retain(|other| *other != page);
        self.newest_first.insert(0, page);
    }
}

fn steps(seed: u64, pages: u32) -> Vec<Step> {
    let mut random = Random::new(seed);
    let step = |random: &mut Random| match random.chance(30) {
        true => Step::Pop,
        false => Step::Use(random.below(u64::from(pages)) as u32),
    };
    (0..2000).map(|_| step(&mut random)).collect()
}

/// The first step at which both differ.
fn difference(seed: u64, is_canary: bool) -> Option<usize> {
    let pages = 1 + (seed % 37) as u32;
    let (mut lru, mut plain) = (Lru::new(pages), Plain { newest_first: Vec::new(), is_canary });
    steps(seed, pages).into_iter().position(|step| {
        match step {
            Step::Use(page) => {
                match plain.newest_first.contains(&page) {
                    true => lru.touch(page),
                    false => lru.push(page),
                }
                plain.use_page(page);
            }
            Step::Pop => {
                if lru.pop_oldest() != plain.newest_first.pop() {
                    return true;
                }
            }
        }
        lru.len() as usize != plain.newest_first.len()
    })
}

#[test]
fn the_page_that_leaves_is_the_one_that_was_used_longest_ago() {
    for seed in 1..=50 {
        let found = difference(seed, false);
        assert_eq!(found, None, "seed {seed}: cargo test -p holdfast-plan lru");
    }
}

#[test]
fn an_order_that_uses_do_not_change_is_noticed() {
    assert!((1..=50).any(|seed| difference(seed, true).is_some()));
}

#[test]
fn an_empty_list_has_no_oldest_page() {
    let mut lru = Lru::new(3);
    assert_eq!(lru.pop_oldest(), None);
    lru.push(2);
    assert_eq!((lru.pop_oldest(), lru.pop_oldest(), lru.len()), (Some(2), None, 0));
}
