//! What a page is expected to have got to, as notes, images and cleaning come in any order.

use std::sync::atomic::AtomicBool;

use super::*;

const PAGE: PageNumber = PageNumber(1);

#[test]
fn a_page_is_expected_to_have_what_was_noted_or_what_its_image_has() {
    let stale = Stale::new();
    assert_eq!(stale.expected(PAGE), Expected::Unread);
    stale.found(PAGE, Some(Rsn(50)));
    assert_eq!((stale.expected(PAGE), stale.imaged(PAGE)), (at(50), Imaged::At(Rsn(50))));
    assert!(!stale.is_noted(PAGE));
    stale.raise(PAGE, Rsn(70));
    stale.raise(PAGE, Rsn(60));
    assert_eq!((stale.expected(PAGE), stale.imaged(PAGE)), (at(70), Imaged::At(Rsn(50))));
    assert!(stale.is_noted(PAGE));
}

#[test]
fn what_the_device_does_not_say_is_not_made_up() {
    let stale = Stale::new();
    stale.found(PAGE, None);
    assert_eq!((stale.expected(PAGE), stale.imaged(PAGE)), (Expected::Unknown, Imaged::Unknown));
    stale.raise(PAGE, Rsn(70));
    assert_eq!((stale.expected(PAGE), stale.imaged(PAGE)), (at(70), Imaged::Unknown));
    let absent = PageNumber(2);
    stale.found(absent, Some(Rsn::NONE));
    assert_eq!((stale.expected(absent), stale.imaged(absent)), (at(0), Imaged::At(Rsn::NONE)));
}

#[test]
fn late_and_early_news_of_cleaning_agree() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let stale = Stale::new();
        // Cleaned up to 100: the image has 90, which is the newest record below that.
        order.iter().for_each(|news| match news {
            0 => stale.raise(PAGE, Rsn(90)),
            1 => stale.prune(PAGE, Rsn(90), Rsn(100)),
            _ => stale.found(PAGE, Some(Rsn(40))),
        });
        assert_eq!(stale.expected(PAGE), at(90), "{order:?}");
        assert_eq!(stale.imaged(PAGE), Imaged::At(Rsn(90)), "{order:?}");
    }
}

#[test]
fn a_record_behind_what_was_cleaned_stays_noted() {
    let stale = Stale::new();
    for rsn in [90, 100] {
        stale.raise(PAGE, Rsn(rsn));
    }
    stale.prune(PAGE, Rsn(90), Rsn(100));
    assert_eq!((stale.expected(PAGE), stale.imaged(PAGE)), (at(100), Imaged::At(Rsn(90))));
    stale.prune(PAGE, Rsn(100), Rsn(110));
    assert_eq!((stale.expected(PAGE), stale.imaged(PAGE)), (at(100), Imaged::At(Rsn(100))));
}

#[test]
fn asking_for_a_page_that_cannot_be_costs_nothing() {
    let stale = Stale::new();
    for page in [0, PAGES_MAX - 1, PAGES_MAX, u64::MAX].map(PageNumber) {
        assert_eq!((stale.expected(page), stale.imaged(page)), (Expected::Unread, Imaged::Unread));
    }
    assert!(stale.parts.iter().all(|part| part.get().is_none()));
}

#[test]
fn what_is_expected_never_falls_while_a_cleaner_works() {
    let (stale, done) = (Stale::new(), AtomicBool::new(false));
    stale.found(PAGE, Some(Rsn(8)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for rsn in 9..20_000 {
                stale.raise(PAGE, Rsn(rsn));
                if rsn % 3 == 0 {
                    stale.prune(PAGE, Rsn(rsn), Rsn(rsn + 1));
                }
            }
            done.store(true, Ordering::SeqCst);
        });
        let mut newest = 8;
        while !done.load(Ordering::SeqCst) {
            let Expected::At(rsn) = stale.expected(PAGE) else { panic!("it was told") };
            assert!(rsn.get() >= newest, "{rsn} after {newest}");
            newest = rsn.get();
        }
    });
    assert_eq!(stale.expected(PAGE), at(19_999));
}

#[test]
fn each_page_has_a_place_of_its_own() {
    let mut next = (0, 0);
    for page in 0..5 * FIRST_PART {
        let found = place(PageNumber(page));
        if found != next {
            assert_eq!((found, next.1 as u64), ((next.0 + 1, 0), entries(next.0)));
        }
        next = (found.0, found.1 + 1);
    }
    let (part, at) = place(PageNumber(PAGES_MAX - 1));
    assert_eq!((part, at as u64), (PARTS - 1, entries(PARTS - 1) - 1));
}

fn at(rsn: u64) -> Expected {
    Expected::At(Rsn(rsn))
}
