//! Logging only what differs leaves the file as a whole write would.

use super::*;

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn writing_only_what_differs_gives_the_same_file() {
    let mut saved = 0;
    for seed in 0..200 {
        let mut state = seed;
        let (mut whole, mut sparse) = (vec![0u8; 1 << 16], vec![0u8; 1 << 16]);
        let mut recent = if seed % 2 == 0 { Recent::default() } else { Recent::in_sectors() };
        let mut offset = 0;
        for step in 0..60 {
            if next(&mut state).is_multiple_of(4) {
                offset = next(&mut state) as usize % 30_000;
            }
            let length = 1 + next(&mut state) as usize % 20_000;
            let mut data = whole[offset..offset + length].to_vec();
            for _ in 0..next(&mut state) % 4 {
                let index = next(&mut state) as usize % length;
                data[index] = next(&mut state) as u8;
            }
            let part = recent.differing(&data, offset as u64);
            saved += length - part.len();
            sparse[offset + part.start..offset + part.end].copy_from_slice(&data[part.clone()]);
            recent.written(&data, offset as u64, part);
            whole[offset..offset + length].copy_from_slice(&data);
            assert!(whole == sparse, "seed {seed}, step {step}");
            if next(&mut state).is_multiple_of(9) {
                recent.forget();
            }
        }
    }
    assert!(saved > 0, "the test never saw a write that was partly there already");
}

#[test]
fn a_page_that_grew_by_a_record_is_logged_as_the_record() {
    let mut recent = Recent::default();
    let mut page = vec![0; 8192];
    page[..100].fill(1);
    assert_eq!(recent.differing(&page, 8192), 0..8192);
    recent.written(&page, 8192, 0..8192);
    page[100..150].fill(2);
    assert_eq!(recent.differing(&page, 8192), 100..150);
    recent.written(&page, 8192, 100..150);
    assert!(recent.differing(&page, 8192).is_empty());
}

#[test]
fn on_a_disk_whole_sectors_are_logged() {
    let mut recent = Recent::in_sectors();
    let mut page = vec![0; 4096];
    recent.written(&page, 8192, 0..4096);
    page[600..610].fill(2);
    assert_eq!(recent.differing(&page, 8192), 512..1024);
    recent.written(&page, 8192, 512..1024);
    assert!(recent.differing(&page, 8192).is_empty());
    // What the user gave in part is not made whole: nobody knows the rest.
    let mut part = vec![0; 300];
    recent.written(&part, 9000, 0..300);
    part[100] = 1;
    assert_eq!(recent.differing(&part, 9000), 0..216);
    part[230] = 1;
    assert_eq!(recent.differing(&part, 9000), 0..300);
}
