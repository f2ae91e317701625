//! Bytes are ordered as values are.

use holdfast_io::fake::Random;

use super::*;

/// A value near others: numbers at the borders, bytes of few different ones.
fn any(kind: Kind, random: &mut Random) -> Value {
    let near = random.below(5).wrapping_sub(2);
    match kind {
        Kind::U64 => Value::U64([near, random.any()][random.below(2) as usize]),
        Kind::I64 => {
            let borders = [0, i64::MIN, random.any().cast_signed()];
            Value::I64(near.cast_signed().wrapping_add(borders[random.below(3) as usize]))
        }
        Kind::Bytes => {
            let bytes = (0..random.below(4)).map(|_| [0, 1, 254, 255][random.below(4) as usize]);
            Value::Bytes(bytes.collect())
        }
    }
}

#[test]
fn tuples_compare_as_their_bytes_do_and_come_back() {
    for seed in 0..50_000 {
        let mut random = Random::new(seed);
        let count = 1 + random.below(3) as usize;
        let kinds: Vec<Kind> = (0..count).map(|_| Kind::ALL[random.below(3) as usize]).collect();
        let [one, other] = [(); 2].map(|()| {
            let values: Vec<Value> = kinds.iter().map(|kind| any(*kind, &mut random)).collect();
            let mut bytes = Vec::new();
            put_all(&values, &mut bytes);
            let (mut rest, mut again) = (&bytes[..], Vec::new());
            assert_eq!(take_all(&kinds, &mut rest, &mut again), Some(()), "seed {seed}");
            assert_eq!((&again, rest.len()), (&values, 0), "seed {seed}");
            (values, bytes)
        });
        assert_eq!(one.0.cmp(&other.0), one.1.cmp(&other.1), "seed {seed}: {one:?} {other:?}");
    }
}

#[test]
fn bytes_that_nobody_put_are_taken_or_refused() {
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let mut bytes = vec![0; random.below(24) as usize];
        random.fill(&mut bytes);
        bytes.iter_mut().for_each(|byte| *byte = [*byte, 0, 255][usize::from(*byte) % 3]);
        let (mut rest, mut values) = (&bytes[..], Vec::new());
        let kinds = [Kind::Bytes, Kind::I64];
        if take_all(&kinds, &mut rest, &mut values).is_some() {
            let mut again = Vec::new();
            put_all(&values, &mut again);
            assert_eq!([&again[..], rest].concat(), bytes, "seed {seed}");
        }
    }
}

#[test]
fn what_is_behind_a_prefix_is_behind_all_that_begins_with_it() {
    assert_eq!(behind(b"a\xFF\xFF").as_deref(), Some(&b"b"[..]));
    assert_eq!(behind(b"ab").as_deref(), Some(&b"ac"[..]));
    assert_eq!(behind(b"\xFF"), None);
    assert!(b"a\xFF\xFF\xFF\xFF"[..] < b"b"[..]);
}
