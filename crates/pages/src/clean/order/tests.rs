//! Who is written and who waits, by each order.

use std::collections::{BTreeSet, HashMap};

use holdfast_io::fake::Random;

use super::{Chain, CleaningOrder, Ground, Plan};
use crate::stream::rsn::{PageNumber, Rsn};

const SEGMENT_PAGES: u64 = 4;
const FROM: u64 = 1000;
const UPTO: u64 = 2000;

/// What is not clean: an old page, one with many records up to the end, one that came in between,
/// and a neighbour of the old one.
const CHAINS: [(u64, u64, u64, u64); 4] =
    [(5, 1000, 1900, 2), (9, 1500, 1990, 9), (13, 1600, 1700, 1), (6, 1800, 1950, 1)];

fn chain((page, first, last, records): (u64, u64, u64, u64)) -> Chain {
    Chain { page: PageNumber(page), first: Rsn(first), last: Rsn(last), records }
}

fn plan(
    order: CleaningOrder,
    chains: &[Chain],
    ahead: &HashMap<PageNumber, Rsn>,
    told: &BTreeSet<PageNumber>,
) -> Plan {
    let (from, upto) = (Rsn(FROM), Rsn(UPTO));
    let ground = Ground { from, upto, segment_pages: SEGMENT_PAGES, ahead, told };
    Plan::choose(order, &ground, chains)
}

/// The pages that a order lets wait, and how far all are clean then.
fn waiting(order: CleaningOrder) -> (Vec<u64>, u64) {
    let chains = CHAINS.map(chain);
    let plan = plan(order, &chains, &HashMap::new(), &BTreeSet::new());
    let pages = CHAINS.iter().map(|(page, ..)| *page);
    let waiting = pages.filter(|page| plan.leaves_out(PageNumber(*page)));
    (waiting.collect(), plan.clean_to().get())
}

#[test]
fn each_order_lets_other_pages_wait() {
    assert_eq!(waiting(CleaningOrder::EveryPage), (vec![], UPTO));
    assert_eq!(waiting(CleaningOrder::OldestFirst), (vec![9, 13, 6], 1500));
    assert_eq!(waiting(CleaningOrder::HottestLast), (vec![9, 6], 1500));
    assert_eq!(waiting(CleaningOrder::MostChanges), (vec![13, 6], 1600));
    assert_eq!(waiting(CleaningOrder::OldSegments), (vec![9, 13], 1500));
}

#[test]
fn a_page_that_was_told_is_written_and_one_that_has_all_bounds_nothing() {
    let (told, ahead) = (BTreeSet::from([PageNumber(9)]), HashMap::from([(PageNumber(13), 1700)]));
    let ahead = ahead.into_iter().map(|(page, rsn)| (page, Rsn(rsn))).collect();
    let plan = plan(CleaningOrder::OldestFirst, &CHAINS.map(chain), &ahead, &told);
    assert!(!plan.leaves_out(PageNumber(9)) && plan.leaves_out(PageNumber(13)));
    assert_eq!(plan.clean_to(), Rsn(1800));
}

/// Some pages with records between the places.
fn any(random: &mut Random) -> Vec<Chain> {
    let chain_of = |page, random: &mut Random| {
        let first = FROM + random.below(UPTO - FROM);
        chain((page, first, first + random.below(UPTO - first), 1 + random.below(20)))
    };
    (1..1 + random.below(40)).map(|page| chain_of(page, random)).collect()
}

#[test]
fn whatever_waits_half_of_it_is_clean_afterwards_and_nothing_that_waits() {
    for seed in 1..=300 {
        let mut random = Random::new(seed);
        let chains = any(&mut random);
        for order in CleaningOrder::ALL {
            let plan = plan(order, &chains, &HashMap::new(), &BTreeSet::new());
            let clean_to = plan.clean_to();
            assert!(clean_to >= Rsn((FROM + UPTO) / 2), "seed {seed}: {order:?} is at {clean_to}");
            let is_right = |it: &Chain| !plan.leaves_out(it.page) || it.first >= clean_to;
            assert!(chains.iter().all(is_right), "seed {seed}: {order:?}");
        }
    }
}
