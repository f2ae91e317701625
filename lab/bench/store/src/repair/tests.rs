//! That every fault is one.

use super::{FAULTS, PAGE_BYTES, damage};

#[test]
fn a_page_is_another_after_each_fault_even_if_it_never_changed() {
    let (page, other) = (vec![7; PAGE_BYTES], vec![8; PAGE_BYTES]);
    for (fault, luck) in FAULTS.into_iter().zip(1 << 33..) {
        let mut bytes = page.clone();
        damage(&mut bytes, fault, &page, &other, luck);
        assert_ne!(bytes, page, "{fault:?}");
    }
}

#[test]
fn a_flip_changes_one_bit() {
    let page = vec![7; PAGE_BYTES];
    let mut bytes = page.clone();
    damage(&mut bytes, FAULTS[0], &page, &page, 12_345);
    let bits = |(one, other): (&u8, &u8)| (one ^ other).count_ones();
    assert_eq!(bytes.iter().zip(&page).map(bits).sum::<u32>(), 1);
}
