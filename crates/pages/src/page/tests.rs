//! A page comes back as it was sealed; whatever else is found there has a name.

use super::*;

const NUMBER: PageNumber = PageNumber(3);

fn tag() -> Tag {
    Tag::of(b"a store in tests")
}

fn page() -> Page {
    let mut page = Page::zeroed();
    page.begin(NUMBER, PageKind::Leaf, PageNumber(1));
    page.contents_mut()[100..105].copy_from_slice(b"bytes");
    page.stamp(Rsn(77), 41);
    page
}

fn load(bytes: &[u8; PAGE_BYTES], number: PageNumber) -> Result<Page, PageFault> {
    let mut page = Page::zeroed();
    page.load(bytes, number, tag()).map(|()| page)
}

/// The page, changed at one place and sealed again.
fn resealed(at: usize, byte: u8) -> [u8; PAGE_BYTES] {
    let mut page = page();
    page.0[at] = byte;
    *page.seal(tag())
}

#[test]
fn a_page_comes_back_as_it_was_sealed() {
    let mut written = page();
    let loaded = load(written.seal(tag()), NUMBER).expect("it is whole");
    assert!(loaded.same_bytes(&page()));
    assert_eq!((loaded.number(), loaded.kind()), (NUMBER, Some(PageKind::Leaf)));
    assert_eq!((loaded.rsn(), loaded.tree()), (Rsn(77), PageNumber(1)));
    assert_eq!((loaded.since_image_bytes(), &loaded.contents()[100..105]), (41, &b"bytes"[..]));
    assert_eq!(loaded.u32_at(CHECK), 0, "the check means nothing in memory");
}

#[test]
fn nothing_is_no_page_and_says_so() {
    let nothing = Page::zeroed();
    assert_eq!((nothing.number(), nothing.rsn()), (PageNumber::NONE, Rsn::NONE));
    assert_eq!(nothing.kind(), None);
    assert_eq!(load(&[0; PAGE_BYTES], NUMBER).map(|_| ()), Err(PageFault::Zeroed));
    assert_eq!(load(&[0; PAGE_BYTES], PageNumber::NONE).map(|_| ()), Err(PageFault::Zeroed));
}

#[test]
fn every_byte_that_changed_is_noticed() {
    let sealed = *page().seal(tag());
    for at in 0..PAGE_BYTES {
        let mut bytes = sealed;
        bytes[at] ^= 1 << (at % 8);
        assert_eq!(load(&bytes, NUMBER).map(|_| ()), Err(PageFault::Check), "byte {at}");
    }
}

#[test]
fn half_of_another_moment_of_the_page_is_noticed() {
    let (mut bytes, older) = (*page().seal(tag()), resealed(PAGE_BYTES - 1, 9));
    bytes[PAGE_BYTES / 2..].copy_from_slice(&older[PAGE_BYTES / 2..]);
    assert_eq!(load(&bytes, NUMBER).map(|_| ()), Err(PageFault::Check));
}

#[test]
fn a_page_of_another_place_store_version_or_kind_is_told_from_damage() {
    let sealed = *page().seal(tag());
    assert_eq!(load(&sealed, PageNumber(4)).map(|_| ()), Err(PageFault::Number(NUMBER)));
    let foreign = *page().seal(Tag::of(b"another in tests"));
    assert_eq!(load(&foreign, NUMBER).map(|_| ()), Err(PageFault::Check));
    assert_eq!(load(&resealed(VERSION_AT, 2), NUMBER).map(|_| ()), Err(PageFault::Version(2)));
    assert_eq!(load(&resealed(KIND, 9), NUMBER).map(|_| ()), Err(PageFault::Kind(9)));
}

#[test]
fn a_fault_leaves_the_page_that_was_there() {
    let mut there = page();
    let fault = there.load(&[7; PAGE_BYTES], NUMBER, tag());
    assert_eq!(fault, Err(PageFault::Check));
    assert!(there.same_bytes(&page()));
}

#[test]
fn a_page_that_begins_anew_keeps_nothing() {
    let mut anew = page();
    anew.begin(PageNumber(9), PageKind::Free, PageNumber::NONE);
    assert!(anew.contents().iter().all(|byte| *byte == 0));
    assert_eq!(
        (anew.rsn(), anew.since_image_bytes(), anew.tree()),
        (Rsn::NONE, 0, PageNumber::NONE)
    );
}
