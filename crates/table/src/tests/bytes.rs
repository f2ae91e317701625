//! Bytes that nobody wrote.

use super::*;
use crate::wire;

const SEEDS: u64 = 20_000;

/// Decodes bytes both ways. What is decoded is what it is encoded as.
fn decode(bytes: &[u8]) {
    if let Ok(request) = Request::decode(bytes) {
        assert_eq!(Request::decode(&request.encode()), Ok(request));
    }
    drop(answer::decode(bytes));
}

/// A request with some of the samples.
fn any_request(random: &mut Random) -> Request {
    let samples = samples();
    let any = |random: &mut Random| samples[random.below(samples.len() as u64) as usize].clone();
    let operations = (0..random.below(4)).map(|_| any(random)).collect();
    Request { operations }
}

#[test]
fn bytes_of_chance_are_decoded_or_refused() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let mut bytes = vec![0; random.below(64) as usize];
        random.fill(&mut bytes);
        if let Some(first) = bytes.first_mut() {
            *first = 1;
        }
        decode(&bytes);
    }
}

#[test]
fn requests_of_which_bytes_were_changed_are_decoded_or_refused() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let mut bytes = any_request(&mut random).encode();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.any() as u8;
        }
        bytes.truncate(bytes.len() - random.below(bytes.len() as u64 / 8 + 1) as usize);
        decode(&bytes);
    }
}

#[test]
fn a_request_that_is_cut_or_longer_is_refused() {
    let request = Request { operations: samples()[8..9].to_vec() };
    let bytes = request.encode();
    assert_eq!(Request::decode(&bytes), Ok(request));
    for end in 0..bytes.len() {
        // A request without operations is one.
        assert_eq!(Request::decode(&bytes[..end]).is_ok(), end == 1, "{end}");
    }
    assert!(Request::decode(&[&bytes[..], &[0]].concat()).is_err());
}

#[test]
fn a_count_that_is_not_there_takes_no_memory() {
    let mut bytes = vec![1, 7];
    wire::put_bytes(b"t", &mut bytes);
    bytes.extend_from_slice(&u32::MAX.to_le_bytes());
    assert!(Request::decode(&bytes).is_err());
}

#[test]
fn whatever_a_client_says_is_answered() {
    let directory = tempfile::tempdir().expect("a directory");
    let tables = opened(directory.path());
    assert!(ask(&tables, 1, &Request::new().make("t", schema())).is_ok());
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let mut bytes = any_request(&mut random).encode();
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = random.any() as u8;
        let (mut answer, number) = (Vec::new(), seed + 2);
        tables.respond(5, number, number, &bytes, &mut answer).expect("a machine");
        assert!(answer::decode(&answer).is_ok(), "seed {seed}");
    }
    let checked = tables.check().expect("a machine");
    assert!(checked.disagreements.is_empty(), "{checked:?}");
}
