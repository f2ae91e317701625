//! Layouts, measured against `linux/fuse.h`.

use super::*;

fn encoded(reply: &Reply) -> Vec<u8> {
    let mut bytes = vec![0xAA; 4096];
    let used = encode(reply, 77, &mut bytes);
    bytes.truncate(used);
    bytes
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_ne_bytes(*bytes[offset..].first_chunk().unwrap())
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_ne_bytes(*bytes[offset..].first_chunk().unwrap())
}

#[test]
fn every_answer_has_the_size_that_the_kernel_expects() {
    let sizes = [
        (Reply::Failed(5), 16),
        (Reply::Done, 16),
        (Reply::Entry(Entry::default()), 16 + 128),
        (Reply::Attributes(Attributes::default(), Duration::ZERO), 16 + 104),
        (Reply::Opened(Opened::default()), 16 + 16),
        (Reply::Created(Entry::default(), Opened::default()), 16 + 144),
        (Reply::Written { bytes: 1 }, 16 + 8),
        (Reply::Data { bytes: 100 }, 16 + 100),
        (Reply::Space(Space::default()), 16 + 80),
        (Reply::Started(Started::default()), 16 + 64),
    ];
    for (reply, bytes) in sizes {
        let encoded = encoded(&reply);
        assert_eq!(encoded.len(), bytes, "{reply:?}");
        assert_eq!(u32_at(&encoded, 0) as usize, bytes, "{reply:?}");
        assert_eq!(u64_at(&encoded, 8), 77, "{reply:?}");
    }
}

#[test]
fn a_request_without_an_answer_sends_nothing() {
    assert!(encoded(&Reply::Nothing).is_empty());
}

#[test]
fn errors_are_negative() {
    assert_eq!(u32_at(&encoded(&Reply::Failed(2)), 4).cast_signed(), -2);
}

#[test]
fn times_before_1970_have_positive_nanoseconds() {
    let attributes = Attributes { modified_ns: -1, ..Attributes::default() };
    let bytes = encoded(&Reply::Attributes(attributes, Duration::from_millis(1500)));
    assert_eq!((u64_at(&bytes, 16), u32_at(&bytes, 24)), (1, 500_000_000));
    assert_eq!(u64_at(&bytes, 32 + 32).cast_signed(), -1);
    assert_eq!(u32_at(&bytes, 32 + 52), 999_999_999);
}

#[test]
fn a_listing_pads_names_and_stops_when_full() {
    let mut area = [0xAA; 72];
    let mut listing = Listing::new(&mut area);
    assert!(listing.add(b"a", 5, 8, 3));
    assert!(listing.add(b"12345678", 6, 4, 4));
    assert!(!listing.add(b"c", 7, 8, 5));
    assert_eq!(listing.used_bytes(), 64);
    assert_eq!((u64_at(&area, 0), u64_at(&area, 8)), (5, 3));
    assert_eq!((u32_at(&area, 16), u32_at(&area, 20)), (1, 8));
    assert_eq!(area[24..32], *b"a\0\0\0\0\0\0\0");
    assert_eq!(area[56..64], *b"12345678");
}

#[test]
fn a_listing_with_attributes_puts_the_entry_first() {
    let mut area = [0; 160];
    let entry = Entry { node: 9, ..Entry::default() };
    let mut listing = Listing::new(&mut area);
    assert!(listing.add_plus(b"name", &entry, 9, 8, 1));
    assert!(!listing.add_plus(b"name", &entry, 9, 8, 1));
    assert_eq!(listing.used_bytes(), 160);
    assert_eq!((u64_at(&area, 0), u64_at(&area, 128)), (9, 9));
}
