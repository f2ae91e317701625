//! Pages that wait for a later pass are had with all of their records, and come to the device.

use holdfast_io::fake::{Mood, Random};
use holdfast_pages::canary::{Invariant, switch_off};
use holdfast_pages::{CleaningOrder, PageNumber, PagesConfig, Rsn};

use crate::cleaning::{check_device, check_found, clean, numbers};
use crate::support::{replay, seeds};
use crate::toy::{CONFIG_OF_PAGES, Model, PAGES, Store, new_disk};

fn open(seed: u64, cleaning: CleaningOrder) -> Store {
    let config = PagesConfig { cleaning, ..CONFIG_OF_PAGES };
    Store::open_with(&new_disk(seed), Model::default(), &config).expect("a new store opens")
}

/// As it is found after a power cut in which everything is lost that was not synced.
fn after_power_cut(store: &Store, cleaning: CleaningOrder) -> Result<Store, String> {
    let disk = store.files.after_power_cut_in(Mood::LoseAll, 1);
    Store::open_with(&disk, store.model.clone(), &PagesConfig { cleaning, ..CONFIG_OF_PAGES })
}

/// Records of all pages, then of few of them again and again, archived and cleaned on the way.
fn fill(store: &mut Store, random: &mut Random) -> Result<(), String> {
    numbers().for_each(|number| store.put(number, random).expect("it fits"));
    for _ in 0..6 {
        for _ in 0..25 {
            let hot = PageNumber(1 + random.below(3));
            let any = PageNumber(1 + random.below(PAGES));
            let number = if random.below(4) == 0 { any } else { hot };
            store.put(number, random).expect("it fits");
        }
        store.pages.archive_all().map_err(|error| error.to_string())?;
        clean(store).map_err(|error| error.to_string())?;
    }
    store.pages.stream().sync(store.pages.stream().next()).map_err(|error| error.to_string())
}

/// Fills a store, cuts its power, and looks at each page; then cleans until nothing is left. Says
/// how many pages were written before.
fn waits(seed: u64, cleaning: CleaningOrder) -> Result<u64, String> {
    let (mut store, mut random) = (open(seed, cleaning), Random::new(seed));
    fill(&mut store, &mut random)?;
    let written = store.pages.written();
    let store = after_power_cut(&store, cleaning)?;
    check_found(&store)?;
    let mut cleaned = Rsn::NONE;
    while cleaned < store.pages.archived() {
        store.clock.advance_ns(10_000_000_000);
        clean(&store).map_err(|error| error.to_string())?;
        let now = store.pages.cleaned();
        if now == cleaned {
            return Err(format!("{now} is clean, and nothing follows"));
        }
        cleaned = now;
    }
    check_device(&store)?;
    Ok(written)
}

#[test]
fn whatever_waits_is_found_after_a_power_cut_and_is_written_in_the_end() {
    for seed in seeds(20) {
        for cleaning in CleaningOrder::ALL {
            if let Err(error) = waits(seed, cleaning) {
                panic!("{cleaning:?}: {error}\n{}", replay("whatever_waits_is_found", seed));
            }
        }
    }
}

#[test]
fn a_pass_writes_the_old_pages_and_lets_others_wait() {
    let written = |cleaning| {
        let (mut store, mut random) = (open(1, cleaning), Random::new(1));
        // Long enough that it is time to clean, and the first half of it is of few pages.
        for number in (0..40).map(|at| 1 + at % 3).chain(4..=PAGES) {
            store.put(PageNumber(number), &mut random).expect("it fits");
        }
        store.pages.archive_all().expect("the disk is sound");
        clean(&store).expect("the disk is sound");
        (store.pages.written(), store.pages.cleaned() == store.pages.archived())
    };
    assert_eq!(written(CleaningOrder::EveryPage), (PAGES, true));
    assert_eq!(written(CleaningOrder::OldestFirst), (3, false));
    // The neighbours of three in segments of four.
    assert_eq!(written(CleaningOrder::OldSegments), (3, false));
}

#[test]
fn a_page_that_waits_and_is_said_to_be_clean_is_noticed() {
    let _off = switch_off(Invariant::WhatWaitsIsNotClean);
    let is_noticed = |seed| waits(seed, CleaningOrder::OldestFirst).is_err();
    assert!((1..=20).any(is_noticed), "old pages pass for new ones");
}
