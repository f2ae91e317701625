//! FORMAT.md and the code say the same.

use holdfast_core::Lsn;
use holdfast_core::frame::{FrameHeader, Kind, Sealer, encode};
use holdfast_format_docs::{Tables, changed, constants};
use holdfast_io::checksum::crc32c;

use crate::config::Parity;
use crate::format::catalogue::{Catalogue, Entry};
use crate::format::stripe::{GroupHeader, SHARDS};
use crate::open::again;
use crate::range::LsnRange;
use crate::segments::cut::Cut;
use crate::segments::segment::{self, SegmentHeader};

const FORMAT: Tables = Tables::of(include_str!("../FORMAT.md"));

/// The field is where the table says: only its bytes (and a check) follow a change of it.
fn check_field(section: &str, name: &str, before: &[u8], after: &[u8]) {
    let fields = FORMAT.fields(section);
    let is_check = |field: &str| field.ends_with("check") && field != "payload_check";
    let (checks, others): (Vec<_>, Vec<_>) =
        changed(&fields, before, after).into_iter().partition(|field| is_check(field));
    assert_eq!((checks.len(), &others[..]), (1, &[name][..]), "{section}");
    let end = fields.last().expect("there are fields").1.end;
    assert_eq!(before[end..], after[end..], "{section}: {name} changes what follows");
}

#[test]
fn the_table_of_a_frame_is_what_is_encoded() {
    let sealer = Sealer::new(b"identity of logs", crc32c);
    let base = FrameHeader {
        lsn: Lsn(1 << 40),
        durable: Lsn(0),
        payload_bytes: 1,
        payload_check: 1,
        generation: 1,
        kind: Kind::Data,
        flags: 0,
        records: 1,
        utc_ns: 1,
    };
    let changes = [
        ("lsn", FrameHeader { lsn: Lsn(!7), ..base }),
        ("durable", FrameHeader { durable: Lsn(!7 >> 24), ..base }),
        ("payload_bytes", FrameHeader { payload_bytes: !1, ..base }),
        ("payload_check", FrameHeader { payload_check: !1, ..base }),
        ("generation", FrameHeader { generation: !1, ..base }),
        ("kind", FrameHeader { kind: Kind::Mark, ..base }),
        ("flags", FrameHeader { flags: !0, ..base }),
        ("records", FrameHeader { records: !1, ..base }),
        ("utc_ns", FrameHeader { utc_ns: !1, ..base }),
    ];
    FORMAT.gapless("Frame", 48);
    let before = encode(&sealer, &base);
    assert_eq!(&before[..4], b"HFF1");
    for (name, header) in changes {
        check_field("Frame", name, &before, &encode(&sealer, &header));
    }
}

#[test]
fn the_table_of_a_segment_header_is_what_is_encoded() {
    let base =
        SegmentHeader { identity: [1; 16], generation: 1, number: 1, segment_bytes: 1 << 16 };
    let changes = [
        ("generation", SegmentHeader { generation: !1, ..base }),
        ("identity", SegmentHeader { identity: [2; 16], ..base }),
        ("number", SegmentHeader { number: !1, ..base }),
        ("segment_bytes", SegmentHeader { segment_bytes: !1, ..base }),
    ];
    FORMAT.gapless("Segment header", 56);
    let before = segment::encode(&base, &[]);
    assert_eq!(&before[..4], b"HFFS");
    for (name, header) in changes {
        check_field("Segment header", name, &before, &segment::encode(&header, &[]));
    }
    let labelled = segment::encode(&base, b"whose");
    assert_eq!((&labelled[48..52], &labelled[56..]), (&5u32.to_le_bytes()[..], &b"whose"[..]));
}

#[test]
fn the_table_of_the_catalogue_is_what_is_encoded() {
    let base = Catalogue {
        identity: [1; 16],
        segment_bytes: 1 << 16,
        first: Lsn(0),
        durable: Lsn(0),
        generations_below: 1,
        parity: Parity::None,
        entries: vec![Entry { file: 7, number: 9 }],
        holes: Vec::new(),
        cuts: Vec::new(),
    };
    let changes = [
        ("identity", Catalogue { identity: [2; 16], ..base.clone() }),
        ("segment_bytes", Catalogue { segment_bytes: !1, ..base.clone() }),
        ("first", Catalogue { first: Lsn(!1), ..base.clone() }),
        ("durable", Catalogue { durable: Lsn(!1), ..base.clone() }),
        ("generations_below", Catalogue { generations_below: !1, ..base.clone() }),
        ("parity", Catalogue { parity: Parity::TenPercent, ..base.clone() }),
    ];
    FORMAT.gapless("Catalogue", 72);
    let before = base.encode(1);
    assert_eq!(&before[..4], b"HFFC");
    assert_eq!(before[12..16], 1u32.to_le_bytes());
    assert_eq!(before[72..76], 7u32.to_le_bytes());
    assert_eq!(before[80..88], 9u64.to_le_bytes());
    let hole = LsnRange { from: Lsn(24), to: Lsn(1 << 16) };
    let cut = Catalogue { holes: vec![hole], ..base.clone() }.encode(1);
    assert_eq!((&cut[62..64], &cut[88..96]), (&1u16.to_le_bytes()[..], &24u64.to_le_bytes()[..]));
    assert_eq!(cut[96..104], (1u64 << 16).to_le_bytes());
    for (name, catalogue) in changes {
        check_field("Catalogue", name, &before, &catalogue.encode(1));
    }
    check_field("Catalogue", "sequence", &before, &base.encode(2));
}

#[test]
fn the_table_of_a_cut_is_what_is_encoded() {
    let base = Cut {
        identity: [1; 16],
        generation: 1,
        from: Lsn(8),
        to: Lsn(4096),
        utc_ns: 1,
        block: [0; 4096],
        group: Vec::new(),
    };
    let changes = [
        ("generation", Cut { generation: !1, ..base.clone() }),
        ("identity", Cut { identity: [2; 16], ..base.clone() }),
        ("from", Cut { from: Lsn(!7), ..base.clone() }),
        ("to", Cut { to: Lsn(!0), ..base.clone() }),
        ("utc_ns", Cut { utc_ns: !1, ..base.clone() }),
        ("block", Cut { block: [7; 4096], ..base.clone() }),
    ];
    FORMAT.gapless("Cut", 56 + 4096);
    let before = base.encode();
    assert_eq!(&before[..4], b"HFFX");
    for (name, cut) in changes {
        check_field("Cut", name, &before, &cut.encode());
    }
    let whole = Cut { group: vec![7; 24_576], ..base }.encode();
    assert!(whole.len() == before.len() + 24_576 && whole.ends_with(&[7; 24_576]));
}

#[test]
fn the_table_of_what_is_written_again_is_what_is_encoded() {
    FORMAT.gapless("Again", 48);
    let before = again::encode(&[1; 16], Lsn(0), &[0; 4096]);
    assert_eq!((&before[..4], before.len()), (&b"HFFA"[..], 48 + 4096));
    check_field("Again", "identity", &before, &again::encode(&[2; 16], Lsn(0), &[0; 4096]));
    check_field("Again", "at", &before, &again::encode(&[1; 16], Lsn(!4095), &[0; 4096]));
    assert_eq!(before[12..16], 4096u32.to_le_bytes());
}

#[test]
fn the_table_of_a_group_is_what_is_encoded() {
    let base = GroupHeader {
        identity: [1; 16],
        generation: 1,
        stripe: Lsn(1 << 18),
        blocks: 1,
        block_checks: [1; 64],
        shard_checks: [1; SHARDS],
    };
    let changes = [
        ("generation", GroupHeader { generation: !1, ..base.clone() }),
        ("identity", GroupHeader { identity: [2; 16], ..base.clone() }),
        ("stripe", GroupHeader { stripe: Lsn(!7), ..base.clone() }),
        ("blocks", GroupHeader { blocks: !1, ..base.clone() }),
        ("block_sums", GroupHeader { block_checks: [!1; 64], ..base.clone() }),
        ("shard_sums", GroupHeader { shard_checks: [!1; SHARDS], ..base.clone() }),
    ];
    FORMAT.gapless("Group", 4096);
    let encode = |header: &GroupHeader| {
        let mut block = vec![1; 4096];
        header.encode(&mut block);
        block
    };
    let before = encode(&base);
    assert_eq!(&before[..4], b"HFFP");
    for (name, header) in changes {
        check_field("Group", name, &before, &encode(&header));
    }
}

#[test]
fn the_table_of_words_is_the_list_of_words() {
    let mut constants = constants(include_str!("words.rs"));
    constants.retain(|(_, name)| name != "end");
    assert_eq!(FORMAT.numbers("Words"), constants);
}
