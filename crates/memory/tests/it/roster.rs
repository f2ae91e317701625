//! Small records that outlive the process.

use holdfast_memory::{Medium, RosterFull};

use crate::common::create;

#[test]
fn records_come_back_in_their_order_whatever_their_length() {
    let region = create(&Medium::Private);
    let records: Vec<Vec<u8>> = (0..20).map(|length| vec![length as u8; length]).collect();
    for record in &records {
        region.roster().append(record).unwrap();
    }
    assert_eq!(region.roster().records().unwrap(), records);
}

#[test]
fn a_full_roster_keeps_what_it_has_and_takes_more_after_a_rewrite() {
    let region = create(&Medium::Private);
    let roster = region.roster();
    let mut kept = 0;
    while roster.append(&[7; 100]).is_ok() {
        kept += 1;
    }
    assert_eq!(roster.records().unwrap().len(), kept);
    assert!(kept * 112 >= 1000, "it holds what was asked for");
    assert_eq!(roster.rewrite([vec![0; 1 << 20]]), Err(RosterFull));
    assert_eq!(
        roster.records().unwrap().len(),
        kept,
        "a rewrite that does not fit changes nothing"
    );
    roster.rewrite([b"only"]).unwrap();
    roster.append(b"next").unwrap();
    assert_eq!(roster.records().unwrap(), [b"only", b"next"]);
    roster.rewrite::<&[u8]>([]).unwrap();
    assert!(roster.records().unwrap().is_empty());
}
