//! FORMAT.md and the code say the same.

use holdfast_format_docs::Tables;
use holdfast_io::checksum::crc32c;
use holdfast_log::Lsn;
use holdfast_pages::{Contents, Page, PageNumber, Rsn};

use crate::face::closing::{NOTE_BYTES, Note};
use crate::face::header::{HEADER_BYTES, Header};
use crate::node::aside::Aside;
use crate::node::body::{Body, Spot};
use crate::node::contents::{NodeContents, put_image};
use crate::node::large::{LARGE_VALUE_BYTES_MAX, Large, plain};
use crate::node::{
    Entry, Foster, HEAD_BYTES, KEY_BYTES_MAX, NODE_BYTES, SLOT_BYTES, Shape, VALUE_BYTES_MAX,
};

pub(crate) const FORMAT: Tables = Tables::of(include_str!("../FORMAT.md"));

/// A leaf from "key-a" to "key-z" of tree 1, with a foster child and two entries.
fn image() -> Vec<u8> {
    let foster = Some(Foster { key: b"key-x", page: PageNumber(300) });
    let shape = Shape { level: 0, low: b"key-a", high: Some(b"key-z"), foster };
    let entries = [
        Entry { suffix: b"bcdefg", value: b"value", ghost: true },
        Entry { suffix: b"c", value: b"", ghost: false },
    ];
    let mut image = Vec::new();
    put_image(PageNumber(1), &shape, entries.into_iter(), &mut image);
    image
}

#[test]
fn a_node_is_what_its_tables_say() {
    let mut page = Page::zeroed();
    NodeContents.restore(&mut page, PageNumber(7), &image()).expect("it is an image");
    let node: &[u8; NODE_BYTES] = page.contents().try_into().expect("a node fills its page");
    let field = |name| &node[FORMAT.place("Node", name)];
    assert_eq!((field("level"), field("zero"), field("count")), (&[0][..], &[0][..], &[2, 0][..]));
    assert_eq!(
        (field("prefix"), field("low"), field("high")),
        (&[4, 0][..], &[5, 0][..], &[5, 0][..])
    );
    assert_eq!(
        (field("foster"), field("foster_page")),
        (&[5, 0][..], &[44, 1, 0, 0, 0, 0, 0, 0][..])
    );
    let slots = HEAD_BYTES + 15;
    assert_eq!(&node[HEAD_BYTES..slots], b"key-akey-zkey-x");
    let (first, second) = (NODE_BYTES - 12, NODE_BYTES - 14);
    assert_eq!(&node[second..], b"c\0bcdefg\x05value");
    assert_eq!(field("heap"), (second as u16).to_le_bytes());
    assert_eq!(field("dead"), [0, 0]);
    let slot = |at: usize, name| &node[slots + at * SLOT_BYTES..][FORMAT.place("Slot", name)];
    assert_eq!(slot(0, "offset"), (first as u16).to_le_bytes());
    assert_eq!((slot(0, "suffix"), slot(0, "first")), (&[6, 0x80][..], &b"bcde"[..]));
    assert_eq!((slot(1, "suffix"), slot(1, "first")), (&[1, 0][..], &b"c\0\0\0"[..]));
    assert!(node[slots + 2 * SLOT_BYTES..second].iter().all(|byte| *byte == 0));
}

#[test]
fn a_header_is_what_its_table_says() {
    let bytes = Header { identity: *b"0123456789abcdef", history: 9 }.encode();
    let field = |name| &bytes[FORMAT.place("Store", name)];
    assert_eq!((field("magic"), field("version")), (&b"HFST"[..], &[3, 0][..]));
    assert_eq!((field("zero"), field("page_bytes")), (&[0, 0][..], &[0, 32, 0, 0][..]));
    assert_eq!((field("identity"), field("zeros")), (&b"0123456789abcdef"[..], &[0; 24][..]));
    assert_eq!(field("history"), 9_u64.to_le_bytes());
    let check = crc32c(u32::from_le_bytes(*b"HFST"), &bytes[4..]);
    assert_eq!(field("check"), check.to_le_bytes());
}

#[test]
fn a_note_of_a_close_is_what_its_table_says() {
    let header = Header { identity: *b"0123456789abcdef", history: 9 };
    let bytes = Note { header, opening: 300, end: Some(Rsn(8)), log_end: Lsn(64) }.encode();
    let field = |name| &bytes[FORMAT.place("Closed", name)];
    assert_eq!((field("magic"), field("version")), (&b"HFSO"[..], &[2, 0][..]));
    assert_eq!(
        (field("identity"), field("history")),
        (&header.identity[..], &9_u64.to_le_bytes()[..])
    );
    assert_eq!(
        (field("opening"), field("end")),
        (&300_u64.to_le_bytes()[..], &8_u64.to_le_bytes()[..])
    );
    assert_eq!(field("log_end"), 64_u64.to_le_bytes());
    let check = crc32c(u32::from_le_bytes(*b"HFSO"), &bytes[4..]);
    assert_eq!(field("check"), check.to_le_bytes());
}

#[test]
fn an_image_is_what_its_table_says() {
    let wanted = b"\x01\x01\0\x05key-a\x06key-z\x06key-x\xAC\x02\x0Dbcdefg\x05value\x02c\0";
    assert_eq!(image(), wanted);
    assert_eq!(FORMAT.rows("Image").len(), 7);
}

#[test]
fn the_fields_of_heads_follow_one_another() {
    let sections = [
        ("Store", 8, HEADER_BYTES),
        ("Closed", 9, NOTE_BYTES),
        ("Node", 10, HEAD_BYTES),
        ("Slot", 3, SLOT_BYTES),
    ];
    for (section, fields, end) in sections {
        assert_eq!(FORMAT.gapless(section, end).len(), fields);
    }
}

#[test]
fn a_page_of_a_large_value_is_what_its_tables_say() {
    let wanted = b"\x03\xAC\x02\xAC\x02part";
    let (mut image, mut page) = (Vec::new(), Page::zeroed());
    NodeContents.restore(&mut page, PageNumber(7), wanted).expect("it is an image");
    NodeContents.image(&page, &mut image);
    assert_eq!(image, wanted);
    let contents = page.contents();
    assert_eq!(contents[FORMAT.place("Large", "next")], [44, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(contents[FORMAT.place("Large", "bytes")], [4, 0]);
    let part = FORMAT.place("Large", "bytes").end;
    assert_eq!(&contents[part..part + 4], b"part");
    assert!(contents[part + 4..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_value_is_stored_as_its_table_says() {
    let rows = FORMAT.rows("Value");
    assert_eq!((rows.len(), rows[0][0], rows[1][0]), (3, "254, 0", "254, 1"));
    assert_eq!(plain(b"\xFEvalue").as_deref(), Some(&b"\xFE\0\xFEvalue"[..]));
    let large = Large { bytes: 300, first: PageNumber(300) };
    assert_eq!(large.stored(), b"\xFE\x01\xAC\x02\xAC\x02");
}

#[test]
fn what_stands_for_changes_is_as_its_table_says() {
    let large = Large { bytes: 300, first: PageNumber(300) };
    let mut body = Vec::new();
    Aside { changes: 5, large }.put(&mut body);
    let rows = FORMAT.rows("Aside");
    let names: Vec<_> = rows.iter().map(|row| row[2]).collect();
    assert_eq!(names, ["`op`", "`changes`", "`bytes`", "`first`"]);
    let op: u8 = rows[0][3].parse().expect("a number");
    assert_eq!(body, [op, 5, 0xAC, 2, 0xAC, 2]);
}

#[test]
fn the_limits_are_told() {
    let format = FORMAT.words();
    let keys = format!("Keys have at most {KEY_BYTES_MAX} bytes,");
    let values = format!("values that lie beside their keys at most {VALUE_BYTES_MAX}.");
    assert!(format.contains(&format!("{keys} {values}")));
    let large = format!("more than {VALUE_BYTES_MAX} bytes so lies elsewhere, and one has at most");
    assert!(format.contains(&format!("{large} {LARGE_VALUE_BYTES_MAX}.")));
}

#[test]
fn each_body_is_written_as_its_row_says() {
    let spot = Spot { tree: PageNumber(300), place: 2, key: b"key" };
    let (page, place, key) = (PageNumber(300), 2, &b"key"[..]);
    let (old, new) = (&b"old"[..], &b"new"[..]);
    let samples = [
        Body::Insert { spot, value: b"value" },
        Body::Replace { spot, at: 5, old, new },
        Body::Ghost(spot),
        Body::Unghost(spot),
        Body::Revive { spot, old, new },
        Body::Unrevive { spot, old },
        Body::Renew { spot, at: 5, cut: 3, new },
        Body::Split { place, page, key },
        Body::AdoptParent { place, page, key },
        Body::AdoptChild,
        Body::Purge { places: &[1, 3] },
        Body::Absorb {
            high: Some(b"key"),
            foster: Some(Foster { key: b"key", page }),
            entries: b"entries",
        },
        Body::Disown { place, page },
        Body::Clear,
    ];
    let rows = FORMAT.rows("Body");
    assert_eq!(rows.len(), samples.len());
    for (row, body) in rows.iter().zip(samples) {
        let mut wanted = vec![row[0].parse::<u8>().expect("a number")];
        let names = row[2].split(", ").filter(|name| !name.is_empty());
        names.for_each(|name| wanted.extend_from_slice(bytes_of(name)));
        let mut found = Vec::new();
        body.put(&mut found);
        assert_eq!(found, wanted, "{}", row[1]);
        assert_eq!(Body::parse(&found), Ok(body), "{}", row[1]);
    }
}

/// The field's bytes in the samples, spelled out by hand.
fn bytes_of(name: &str) -> &'static [u8] {
    match name {
        "`tree`" | "`page`" => &[0xAC, 0x02],
        "`place`" => &[2],
        "`at`" => &[5],
        "`cut`" => &[3],
        "`key`" => b"\x03key",
        "`key...`" => b"key",
        "`old`" => b"\x03old",
        "`old...`" => b"old",
        "`new...`" => b"new",
        "`value...`" => b"value",
        "`places...`" => &[1, 3],
        "`high`" => b"\x04key",
        "`foster`" => b"\x04key\xAC\x02",
        "`entries...`" => b"entries",
        _ => unreachable!("no body has a field {name}"),
    }
}
