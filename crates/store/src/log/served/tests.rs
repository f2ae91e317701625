//! What the file says which log is a store's.

use super::*;

fn owner() -> Owner {
    Owner { identity: *b"a store 00000001", name: "ledger".to_owned() }
}

#[test]
fn what_is_written_is_read_as_it_was() {
    assert_eq!(Owner::parse(&owner().encode()), Some(owner()));
    let longest = Owner { name: "n".repeat(NAME_BYTES_MAX), ..owner() };
    assert_eq!(Owner::parse(&longest.encode()), Some(longest));
}

#[test]
fn every_bit_of_it_is_looked_at() {
    let sound = owner().encode();
    for bit in 0..sound.len() * 8 {
        let mut bytes = sound;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Owner::parse(&bytes), None, "bit {bit}");
    }
}
