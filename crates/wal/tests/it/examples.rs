//! The examples do what they say.

#[allow(dead_code)]
#[path = "../../examples/follower.rs"]
mod follower;
#[allow(dead_code)]
#[path = "../../examples/key_value.rs"]
mod key_value;
#[allow(dead_code)]
#[path = "../../examples/ledger.rs"]
mod ledger;

#[test]
fn a_map_has_what_was_put_into_it_after_every_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut map = key_value::Map::open(directory.path()).unwrap();
    map.put("one", Some("1")).unwrap();
    map.put("two", Some("2")).unwrap();
    map.put("one", None).unwrap();
    drop(map);
    let map = key_value::Map::open(directory.path()).unwrap();
    assert_eq!((map.get("one"), map.get("two")), (None, Some("2")));
}

#[test]
fn a_bank_keeps_its_balances_over_checkpoints_and_restarts() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let mut bank = ledger::Bank::open(directory.path()).unwrap();
        (0..41).for_each(|_| bank.transfer(1, 2, 5).unwrap());
        let cents = 205 * (round + 1);
        assert_eq!(bank.balances, [(1, -cents), (2, cents)].into());
        assert!(bank.unstated < 32, "what a statement has is not replayed");
    }
}

#[test]
fn a_follower_sees_what_was_written_in_order() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(follower::run(directory.path(), 100).unwrap(), (0..100).collect::<Vec<_>>());
}
