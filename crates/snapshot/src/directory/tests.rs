//! FORMAT.md and the code say the same: bytes spelled out by hand.

use holdfast_format_docs::Tables;
use holdfast_io::checksum::crc32c;

use super::{DIRECTORY_BLOCKS, Directory, Entry, ImageEntry};
use crate::pages::{Page, Pages};
use crate::request::ImageKind;
use crate::store::Row;

const TABLES: Tables = Tables::of(crate::FORMAT);

fn directory() -> Directory {
    let image = ImageEntry {
        name: "ram".into(),
        kind: ImageKind::Disk,
        size_bytes: 4096,
        check: 1,
        index: vec![Row { first: 64, count: 1 }],
    };
    let (name, note, images) = ("before".to_owned(), "a note".to_owned(), vec![image]);
    let entry = Entry { id: 5, name, taken_ms: 6, note, images };
    Directory { snapshots: vec![entry], restoring: Some(5) }
}

/// The bytes of a field.
fn field<'a>(bytes: &'a [u8], section: &str, name: &str) -> &'a [u8] {
    let fields = TABLES.fields(section);
    let (_, range) = fields.into_iter().find(|field| field.0 == name).unwrap();
    &bytes[range]
}

#[test]
fn a_directory_is_what_the_table_says() {
    let bytes = directory().encode().unwrap();
    let (of, body) = (|name| field(&bytes, "Directory", name), &bytes[20..]);
    assert_eq!(of("magic"), b"HFSNAPS\0");
    assert_eq!(of("version"), 1_u32.to_le_bytes());
    assert_eq!(of("body_bytes"), (body.len() as u32).to_le_bytes());
    assert_eq!(of("body_check"), crc32c(0, body).to_le_bytes());
    assert!(TABLES.words().contains(&format!("The first {DIRECTORY_BLOCKS} blocks.")));
    assert_eq!(Directory::decode(&bytes).unwrap(), directory());
}

#[test]
fn a_body_has_the_names_of_the_table_in_its_order() {
    let bytes = directory().encode().unwrap();
    let mut rest = &bytes[20..];
    let mut rows = TABLES.rows("Body");
    // The body's second name stands behind all that the first one has.
    let restoring = rows.remove(1);
    for row in rows.iter().chain([&restoring]) {
        let name = row[0].trim_matches('`').as_bytes();
        let named = [&[0xA0 | name.len() as u8], name].concat();
        let at = rest.windows(named.len()).position(|window| window == named);
        rest = &rest[at.unwrap_or_else(|| panic!("{row:?}"))..][named.len()..];
    }
}

#[test]
fn an_index_is_what_the_table_says() {
    let mut pages = Pages::zeros(2 * 4096);
    pages.set(1, Page { block: 77, check: 78 });
    let bytes = pages.encode();
    assert_eq!(bytes[..8], [0; 8], "a page of zeros");
    assert_eq!(field(&bytes[8..], "Index", "block"), 77_u32.to_le_bytes());
    assert_eq!(field(&bytes[8..], "Index", "page_check"), 78_u32.to_le_bytes());
    assert_eq!(Pages::decode(&bytes), pages);
}
