//! FORMAT.md and the code say the same.

use holdfast_core::Lsn;
use holdfast_core::frame::{FrameHeader, Kind, Sealer, encode};
use holdfast_io::checksum::crc32c;

use crate::catalogue::{Catalogue, Entry};
use crate::config::Parity;
use crate::cut::Cut;
use crate::log::Stretch;
use crate::segment::{self, SegmentHeader};
use crate::stripe::{GroupHeader, SHARDS};

const FORMAT: &str = include_str!("../FORMAT.md");

/// The rows of a section's table: name, and the bytes it takes.
fn rows(section: &str) -> Vec<(String, std::ops::Range<usize>)> {
    let heading = format!("\n## {section}\n");
    let (_, text) = FORMAT.split_once(&heading).expect("the section is there");
    let text = text.split("\n## ").next().expect("there is text");
    let cells = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    cells
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let offset: usize = cells[1].parse().expect("an offset");
            let size: usize = cells[2].parse().expect("a size");
            (cells[3].trim_matches('`').to_owned(), offset..offset + size)
        })
        .collect()
}

/// The field is where the table says: only its bytes (and a check) follow a change of it.
fn check_field(section: &str, name: &str, before: &[u8], after: &[u8]) {
    let rows = rows(section);
    let place = |wanted: &dyn Fn(&str) -> bool| {
        rows.iter().find(|row| wanted(&row.0)).map(|row| row.1.clone())
    };
    let field = place(&|row| row == name).expect("the table has the field");
    let check = place(&|row| row.ends_with("check") && row != "payload_check").expect("a check");
    assert_ne!(before[field.clone()], after[field.clone()], "{section}: {name} is elsewhere");
    for at in 0..before.len() {
        if !field.contains(&at) && !check.contains(&at) {
            assert_eq!(before[at], after[at], "{section}: {name} changes byte {at}");
        }
    }
}

/// The rows follow one another without a gap, to the end of the structure.
fn check_gapless(section: &str, bytes: usize) {
    let mut at = 0;
    for (name, place) in rows(section) {
        assert_eq!(place.start, at, "{section}: {name}");
        at = place.end;
    }
    assert_eq!(at, bytes, "{section}");
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
    let changed = [
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
    check_gapless("Frame", 48);
    let before = encode(&sealer, &base);
    assert_eq!(&before[..4], b"HFF1");
    for (name, header) in changed {
        check_field("Frame", name, &before, &encode(&sealer, &header));
    }
}

#[test]
fn the_table_of_a_segment_header_is_what_is_encoded() {
    let base =
        SegmentHeader { identity: [1; 16], generation: 1, number: 1, segment_bytes: 1 << 16 };
    let changed = [
        ("generation", SegmentHeader { generation: !1, ..base }),
        ("identity", SegmentHeader { identity: [2; 16], ..base }),
        ("number", SegmentHeader { number: !1, ..base }),
        ("segment_bytes", SegmentHeader { segment_bytes: !1, ..base }),
    ];
    check_gapless("Segment header", 48);
    let before = segment::encode(&base);
    assert_eq!(&before[..4], b"HFFS");
    for (name, header) in changed {
        check_field("Segment header", name, &before, &segment::encode(&header));
    }
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
    };
    let changed = [
        ("identity", Catalogue { identity: [2; 16], ..base.clone() }),
        ("segment_bytes", Catalogue { segment_bytes: !1, ..base.clone() }),
        ("first", Catalogue { first: Lsn(!1), ..base.clone() }),
        ("durable", Catalogue { durable: Lsn(!1), ..base.clone() }),
        ("generations_below", Catalogue { generations_below: !1, ..base.clone() }),
        ("parity", Catalogue { parity: Parity::TenPercent, ..base.clone() }),
    ];
    check_gapless("Catalogue", 64);
    let before = base.encode();
    assert_eq!(&before[..4], b"HFFC");
    assert_eq!(before[12..16], 1u32.to_le_bytes());
    assert_eq!(before[64..68], 7u32.to_le_bytes());
    assert_eq!(before[72..80], 9u64.to_le_bytes());
    let hole = Stretch { from: Lsn(24), to: Lsn(1 << 16) };
    let cut = Catalogue { holes: vec![hole], ..base.clone() }.encode();
    assert_eq!((&cut[62..64], &cut[80..88]), (&1u16.to_le_bytes()[..], &24u64.to_le_bytes()[..]));
    assert_eq!(cut[88..96], (1u64 << 16).to_le_bytes());
    for (name, catalogue) in changed {
        check_field("Catalogue", name, &before, &catalogue.encode());
    }
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
    let changed = [
        ("generation", Cut { generation: !1, ..base.clone() }),
        ("identity", Cut { identity: [2; 16], ..base.clone() }),
        ("from", Cut { from: Lsn(!7), ..base.clone() }),
        ("to", Cut { to: Lsn(!0), ..base.clone() }),
        ("utc_ns", Cut { utc_ns: !1, ..base.clone() }),
        ("block", Cut { block: [7; 4096], ..base.clone() }),
    ];
    check_gapless("Cut", 56 + 4096);
    let before = base.encode();
    assert_eq!(&before[..4], b"HFFX");
    for (name, cut) in changed {
        check_field("Cut", name, &before, &cut.encode());
    }
    let whole = Cut { group: vec![7; 24_576], ..base }.encode();
    assert!(whole.len() == before.len() + 24_576 && whole.ends_with(&[7; 24_576]));
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
    let changed = [
        ("generation", GroupHeader { generation: !1, ..base.clone() }),
        ("identity", GroupHeader { identity: [2; 16], ..base.clone() }),
        ("stripe", GroupHeader { stripe: Lsn(!7), ..base.clone() }),
        ("blocks", GroupHeader { blocks: !1, ..base.clone() }),
        ("block_sums", GroupHeader { block_checks: [!1; 64], ..base.clone() }),
        ("shard_sums", GroupHeader { shard_checks: [!1; SHARDS], ..base.clone() }),
    ];
    check_gapless("Group", 4096);
    let encode = |header: &GroupHeader| {
        let mut block = vec![1; 4096];
        header.encode(&mut block);
        block
    };
    let before = encode(&base);
    assert_eq!(&before[..4], b"HFFP");
    for (name, header) in changed {
        check_field("Group", name, &before, &encode(&header));
    }
}

#[test]
fn the_table_of_words_is_the_list_of_words() {
    let (_, table) = FORMAT.split_once("\n## Words\n").expect("the section is there");
    let rows = table.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        Some((cells.get(1)?.parse().ok()?, cells.get(2)?.trim_matches('`').to_owned()))
    });
    let constants = include_str!("words.rs").lines().filter_map(|line| {
        let (name, number) = line.strip_prefix("pub const ")?.split_once(": usize = ")?;
        Some((number.trim_end_matches(';').parse().ok()?, name.to_lowercase()))
    });
    let constants = constants.filter(|(_, name)| name != "end");
    assert_eq!(rows.collect::<Vec<(u64, String)>>(), constants.collect::<Vec<_>>());
}
