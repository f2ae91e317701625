//! A page gets each of its records once and in order. Here a page holds counters, and a body says
//! which of them grows.

use super::*;
use crate::stream::record;
use crate::stream::rsn::Slot;

/// Pages of 256 counters; an image holds all of them.
pub(crate) struct Counters;

impl Contents for Counters {
    fn apply(&self, page: &mut Page, body: &[u8]) -> Result<(), Unfit> {
        let [which, more] = *body else { return Err(Unfit("two bytes make a body")) };
        let counter = &mut page.contents_mut()[which as usize];
        *counter = counter.checked_add(more).ok_or(Unfit("counters end at 255"))?;
        Ok(())
    }

    fn image(&self, page: &Page, into: &mut Vec<u8>) {
        into.extend_from_slice(&page.contents()[..256]);
    }

    fn restore(&self, page: &mut Page, number: PageNumber, image: &[u8]) -> Result<(), Unfit> {
        page.begin(number, PageKind::Leaf, number);
        let counters = page.contents_mut().get_mut(..image.len());
        counters.ok_or(Unfit("an image is shorter than a page"))?.copy_from_slice(image);
        Ok(())
    }
}

const NUMBER: PageNumber = PageNumber(1);

fn at(before: u64) -> PageLink {
    PageLink { page: NUMBER, before: Rsn(before) }
}

/// A record that stands at `rsn`, applied.
fn apply_at(page: &mut Page, rsn: u64, what: What<'_>) -> Result<Applied, ApplyFault> {
    let mut bytes = Vec::new();
    what.put(Rsn(rsn), &mut bytes);
    let record = record::parse(Rsn(rsn), &bytes).expect("it was written so");
    apply(page, &record, &Counters)
}

/// A page that began at 100 and has a counter of 7, and how many bytes that record had.
fn page() -> Page {
    let mut page = Page::zeroed();
    let began = apply_at(&mut page, 100, What::Image { at: at(0), bytes: &[0; 256] });
    assert_eq!(began, Ok(Applied::Now));
    let counted = apply_at(&mut page, 400, What::System { at: at(100), body: &[3, 7] });
    assert_eq!(counted, Ok(Applied::Now));
    page
}

#[test]
fn a_page_holds_the_sum_of_its_records_and_says_which_was_the_last() {
    let mut page = page();
    let what = What::Update { slot: Slot(1), at: at(400), body: &[3, 1] };
    assert_eq!(apply_at(&mut page, 500, what), Ok(Applied::Now));
    let what = What::Compensate { slot: Slot(1), at: at(500), body: &[4, 2] };
    assert_eq!(apply_at(&mut page, 600, what), Ok(Applied::Now));
    assert_eq!((page.contents()[3], page.contents()[4]), (8, 2));
    assert_eq!((page.number(), page.rsn()), (NUMBER, Rsn(600)));
}

#[test]
fn a_record_that_the_page_has_changes_nothing() {
    let mut page = page();
    let before = page.clone();
    for rsn in [400, 399, 100] {
        let again = apply_at(&mut page, rsn, What::System { at: at(90), body: &[3, 7] });
        assert_eq!(again, Ok(Applied::Before));
    }
    assert!(page.same_bytes(&before));
}

#[test]
fn a_record_that_is_missing_is_noticed_and_the_page_is_as_it_was() {
    let mut page = page();
    let before = page.clone();
    for (missed, what) in [
        (500, What::System { at: at(500), body: &[3, 7] }),
        (300, What::Free { at: at(300) }),
        (100, What::Update { slot: Slot(1), at: at(100), body: &[3, 7] }),
    ] {
        let fault = ApplyFault::Chain { found: Rsn(400), before: Rsn(missed) };
        assert_eq!(apply_at(&mut page, 600, what), Err(fault));
    }
    assert!(page.same_bytes(&before));
    let fault = ApplyFault::Chain { found: Rsn::NONE, before: Rsn(100) };
    let nothing = apply_at(&mut Page::zeroed(), 400, What::Free { at: at(100) });
    assert_eq!(nothing, Err(fault));
}

#[test]
fn an_image_takes_the_place_of_whatever_was_there() {
    let mut page = page();
    let image = What::Image { at: at(450), bytes: &[9; 256] };
    assert_eq!(apply_at(&mut page, 500, image), Ok(Applied::Now));
    let mut anew = Page::zeroed();
    assert_eq!(apply_at(&mut anew, 500, image), Ok(Applied::Now));
    assert!(page.same_bytes(&anew));
    assert_eq!(page.contents()[255], 9);
}

#[test]
fn a_copy_makes_the_page_that_it_is_of_whatever_was_there() {
    let wanted = page();
    let (number, rsn) = (wanted.number(), wanted.rsn());
    let copy = What::Copy { page: number, bytes: wanted.copy() };
    let mut older = Page::zeroed();
    let image = What::Image { at: at(0), bytes: &[9; 256] };
    assert_eq!(apply_at(&mut older, 50, image), Ok(Applied::Now));
    for mut found in [older, Page::zeroed()] {
        assert_eq!(apply_at(&mut found, rsn.get(), copy), Ok(Applied::Now));
        assert!(found.same_bytes(&wanted), "all of it, bytes since the last image included");
    }
    let mut freed = page();
    assert_eq!(apply_at(&mut freed, 500, What::Free { at: at(400) }), Ok(Applied::Now));
    let (copy, mut found) = (freed.copy().to_vec(), Page::zeroed());
    let copy = What::Copy { page: number, bytes: &copy };
    assert_eq!(apply_at(&mut found, 500, copy), Ok(Applied::Now));
    assert!(found.same_bytes(&freed));
}

#[test]
fn what_is_no_copy_of_the_page_at_that_place_is_unfit() {
    let (sound, number) = (page(), page().number());
    let mut cases = vec![sound.copy()[1..].to_vec(), vec![0; sound.copy().len()]];
    // Version, kind, number and record, without the check that a page begins with.
    for byte in [0, 2, 4, 12] {
        let mut copy = sound.copy().to_vec();
        copy[byte] ^= 0x40;
        cases.push(copy);
    }
    for bytes in cases {
        let copy = What::Copy { page: number, bytes: &bytes };
        let found = apply_at(&mut Page::zeroed(), sound.rsn().get(), copy);
        assert!(matches!(found, Err(ApplyFault::Unfit(_))), "{found:?}");
    }
}

#[test]
fn what_a_page_says_of_itself_is_what_restores_it() {
    let (mut image, mut anew) = (Vec::new(), Page::zeroed());
    Counters.image(&page(), &mut image);
    let made = apply_at(&mut anew, 400, What::Image { at: at(100), bytes: &image });
    assert_eq!((made, anew.contents()), (Ok(Applied::Now), page().contents()));
}

#[test]
fn the_bytes_since_the_last_image_are_counted() {
    let mut page = page();
    // Kind, length, page, two bytes of distance, body.
    assert_eq!(page.since_image_bytes(), 1 + 1 + 1 + 2 + 2);
    let grown = apply_at(&mut page, 500, What::System { at: at(400), body: &[3, 1] });
    assert_eq!((grown, page.since_image_bytes()), (Ok(Applied::Now), 7 + 6));
    let image = What::Image { at: at(500), bytes: &[0; 256] };
    let anew = apply_at(&mut page, 600, image);
    assert_eq!((anew, page.since_image_bytes()), (Ok(Applied::Now), 0));
}

#[test]
fn a_page_that_was_freed_is_empty_and_can_begin_anew() {
    let mut page = page();
    assert_eq!(apply_at(&mut page, 500, What::Free { at: at(400) }), Ok(Applied::Now));
    assert_eq!((page.kind(), page.rsn()), (Some(PageKind::Free), Rsn(500)));
    assert!(page.contents().iter().all(|byte| *byte == 0));
    let image = What::Image { at: at(0), bytes: &[1; 256] };
    assert_eq!(apply_at(&mut page, 600, image), Ok(Applied::Now));
    assert_eq!(page.kind(), Some(PageKind::Leaf));
}

#[test]
fn bodies_that_do_not_fit_are_told() {
    let unfit = |why| Err(ApplyFault::Unfit(Unfit(why)));
    let short = apply_at(&mut page(), 500, What::System { at: at(400), body: &[3] });
    assert_eq!(short, unfit("two bytes make a body"));
    let much = apply_at(&mut page(), 500, What::System { at: at(400), body: &[3, 250] });
    assert_eq!(much, unfit("counters end at 255"));
    let image = What::Image { at: at(0), bytes: &[0; 9000] };
    assert_eq!(apply_at(&mut page(), 500, image), unfit("an image is shorter than a page"));
}

#[test]
#[should_panic(expected = "page 1 is not page 2")]
fn a_record_of_another_page_is_our_own_mistake() {
    let link = PageLink { page: PageNumber(2), before: Rsn(400) };
    let _ = apply_at(&mut page(), 500, What::Free { at: link });
}
