//! Pages that are other than their records say are told, in memory and on the device.

use holdfast_pages::{
    Checked, CompareError, FaultKind, PAGE_BYTES, PAGE_HEAD_BYTES, Page, PageNumber,
};

use crate::cleaning::{clean, cleaned, numbers, overwrite};
use crate::toy::Store;

fn loaded(store: &Store, number: u64) -> Page {
    let mut page = Page::zeroed();
    store.pages.load(PageNumber(number), &mut page).expect("it is there");
    page
}

#[test]
fn a_page_in_memory_is_what_its_records_make_of_nothing() {
    let (mut store, mut random) = cleaned(1);
    for number in numbers() {
        store.put(number, &mut random).expect("it fits");
    }
    store.pages.stream().flush().expect("there is room");
    for number in numbers() {
        let current = store.model.page(number);
        store.pages.compare(&current).expect("it has all of its records");
        store.pages.compare(&loaded(&store, number.get())).expect("it lacks some of them");
    }
}

#[test]
fn the_first_byte_that_is_not_as_it_should_be_is_told() {
    let (store, _) = cleaned(2);
    let mut page = loaded(&store, 4);
    page.contents_mut()[17] ^= 1;
    page.contents_mut()[30] ^= 1;
    let found = store.pages.compare(&page);
    let at = PAGE_HEAD_BYTES + 17;
    assert!(matches!(found, Err(CompareError::Differs { at: told }) if told == at), "{found:?}");
    page.begin(PageNumber(4), holdfast_pages::PageKind::Free, PageNumber::NONE);
    store.pages.compare(&page).expect_err("it never was so");
}

#[test]
fn a_bad_page_on_the_device_is_told_and_stays() {
    let (store, _) = cleaned(3);
    for number in numbers() {
        let found = store.pages.check(number).expect("it can be read");
        assert!(matches!(found, Checked::Sound), "{found:?}");
    }
    overwrite(&store, PageNumber(5), &[9; PAGE_BYTES]);
    overwrite(&store, PageNumber(6), &[0; PAGE_BYTES]);
    for _ in 0..2 {
        let found = [5, 6, 7].map(|number| store.pages.check(PageNumber(number)));
        let found = found.map(|found| match found.expect("it can be had") {
            Checked::Sound => None,
            Checked::OnDevice(kind) => Some(kind),
            Checked::Other(error) => panic!("{error}"),
        });
        assert_eq!(found, [Some(FaultKind::Damaged), Some(FaultKind::Zeroed), None]);
        clean(&store).expect("there is nothing to do");
    }
    assert_eq!(store.pages.repairs().count(FaultKind::Damaged), 0);
}
