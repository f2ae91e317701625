//! Scripts of hostile clients: those that the fuzzer kept, and random ones.

use std::fs;
use std::path::PathBuf;

use crate::random::for_seeds;
use crate::{answers, memory, messages};

#[path = "../../../../lab/fuzz/src/nbd.rs"]
mod script;

fn corpus() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/fuzz/corpus/nbd"))
}

#[test]
fn every_case_that_the_fuzzer_kept_still_holds() {
    let mut count = 0;
    for entry in fs::read_dir(corpus()).unwrap() {
        let path = entry.unwrap().path();
        println!("case {}: cargo +nightly fuzz run nbd {0}", path.display());
        script::run(&fs::read(&path).unwrap());
        count += 1;
    }
    assert!(count >= script::seeds().len(), "the corpus is not here");
}

#[test]
fn no_client_makes_the_server_panic_or_touch_what_is_outside() {
    for_seeds("no_client_makes", 1500, |random| {
        let mut script = if random.below(2) == 0 {
            let seeds = script::seeds();
            seeds[random.below(seeds.len() as u64) as usize].1.clone()
        } else {
            let bytes = random.below(200) as usize;
            random.bytes(bytes)
        };
        for _ in 0..random.below(12) {
            if script.is_empty() {
                break;
            }
            let at = random.below(script.len() as u64) as usize;
            match random.below(3) {
                0 => script[at] = random.next() as u8,
                1 => drop(script.remove(at)),
                _ => script.insert(at, random.next() as u8),
            }
        }
        script::run(&script);
    });
}

#[test]
fn a_canary_answers_that_are_not_whole_are_noticed() {
    let whole = [&[0x67, 0x44, 0x66, 0x98], [0; 12].as_slice()].concat();
    assert!(answers::take_all(&whole).is_some());
    assert!(answers::take_all(&whole[..15]).is_none());
    assert!(answers::take_all(&[whole.as_slice(), b"x"].concat()).is_none());
    let chunk = |kind: u16, payload: &[u8]| {
        let mut bytes = vec![0x66, 0x8e, 0x33, 0xef, 0, 1];
        bytes.extend(kind.to_be_bytes());
        bytes.extend([0; 8]);
        bytes.extend((payload.len() as u32).to_be_bytes());
        bytes.extend(payload);
        bytes
    };
    assert!(answers::take_all(&chunk(1, &[0; 9])).is_some());
    assert!(answers::take_all(&chunk(1, &[0; 8])).is_none(), "a chunk without data");
    assert!(answers::take_all(&chunk(0x8001, &[0; 6])).is_none(), "an error without a number");
    assert!(answers::take_all(&chunk(4, &[0; 6])).is_none(), "a kind that does not exist");
}

#[test]
fn a_canary_what_is_told_before_tls_is_spoken_is_noticed() {
    let answer = |option: u32, kind: u32| {
        let magic = 0x0003_e889_0455_65a9_u64;
        [&magic.to_be_bytes()[..], &option.to_be_bytes(), &kind.to_be_bytes(), &[0; 4]].concat()
    };
    let after_greeting = |told: &[u8]| [answers::GREETING, told].concat();
    const TLS_REQUIRED: u32 = 1 << 31 | 5;
    const INFO: u32 = 3;
    let refused = answer(messages::GO, TLS_REQUIRED);
    let started = answer(messages::STARTTLS, 1);
    assert!(script::tells_nothing(&after_greeting(&[refused, started].concat())));
    for told in [answer(messages::GO, INFO), answer(messages::GO, 1), b"size".to_vec()] {
        assert!(!script::tells_nothing(&after_greeting(&told)), "{told:?}");
    }
}

/// Writes the seeds into the corpus:
/// `cargo test -p holdfast-front --test nbd seeds_are -- --ignored`.
#[test]
#[ignore = "writes into the source tree"]
fn seeds_are_written() {
    fs::create_dir_all(corpus()).unwrap();
    for (name, seed) in script::seeds() {
        fs::write(corpus().join(name), seed).unwrap();
    }
}
