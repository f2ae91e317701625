//! FORMAT.md and the code say the same.

use std::path::Path;
use std::sync::Arc;

use holdfast_format_docs::Tables;
use holdfast_io::checksum::crc32c;
use holdfast_io::fake::FakeFiles;
use holdfast_io::{Files, OpenHow};
use holdfast_log::Lsn;

use crate::archive::run_format::{BlockPlace, Footer};
use crate::stream::record::{Opened, PageLink, What, parse};
use crate::{
    Bases, FRAME_HEAD_BYTES, Framed, Manifest, PAGE_BYTES, Page, PageKind, PageNumber, Rsn,
    RunSpan, Slot, State, Tag, VERSIONS_PAGES, Versions,
};

const FORMAT: Tables = Tables::of(include_str!("../FORMAT.md"));
const IDENTITY: &[u8; 16] = b"a store in tests";

#[test]
fn the_head_of_a_frame_is_what_its_table_says() {
    let head = Framed::head(Rsn(0x0807_0605_0403_0201), Tag::of(IDENTITY));
    let field = |name| &head[FORMAT.place("Frame of records", name)];
    assert_eq!(field("first"), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(field("tag"), crc32c(0, IDENTITY).to_le_bytes());
    assert_eq!((field("version"), field("zero")), (&[1, 0][..], &[0, 0][..]));
    assert_eq!(FORMAT.place("Frame of records", "zero").end, FRAME_HEAD_BYTES);
}

#[test]
fn a_page_is_what_its_table_says() {
    let tag = Tag::of(IDENTITY);
    let mut page = Page::zeroed();
    page.begin(PageNumber(0x0201), PageKind::Large, PageNumber(0x0403));
    page.stamp(Rsn(0x0605), 0x0807);
    page.contents_mut().fill(9);
    let bytes = *page.seal(tag);
    let field = |name| &bytes[FORMAT.place("Page", name)];
    assert_eq!((field("version"), field("kind")), (&[1, 0][..], &[3, 0][..]));
    assert_eq!(field("number"), [1, 2, 0, 0, 0, 0, 0, 0]);
    assert_eq!(field("tree"), [3, 4, 0, 0]);
    assert_eq!(field("rsn"), [5, 6, 0, 0, 0, 0, 0, 0]);
    assert_eq!(field("since_image"), [7, 8, 0, 0]);
    assert_eq!(field("contents"), [9; PAGE_BYTES - 32]);
    let check = crc32c(crc32c(tag.get(), field("number")), &bytes[4..]);
    assert_eq!(field("check"), check.to_le_bytes());
}

#[test]
fn the_fields_of_a_page_follow_one_another() {
    assert_eq!(FORMAT.gapless("Page", PAGE_BYTES).len(), 8);
}

#[test]
fn each_kind_of_record_is_written_as_its_row_says() {
    let at = PageLink { page: PageNumber(300), before: Rsn(700) };
    let (slot, body) = (Slot(3), &b"body"[..]);
    let opened = Opened { version: 1, opens: 9, identity: *IDENTITY };
    let samples = [
        What::Update { slot, at, body },
        What::Compensate { slot, at, body },
        What::System { at, body },
        What::Image { at, bytes: body },
        What::Free { at },
        What::Commit(slot),
        What::Aborted(slot),
        What::Cleaned(Rsn(700)),
        What::Checkpoint(body),
        What::Opened(opened),
        What::Copy { page: at.page, bytes: body },
        What::Retold { slot, count: 2, bodies: body },
    ];
    let rows = FORMAT.rows("Kinds of records");
    assert_eq!(rows.len(), samples.len());
    for (row, what) in rows.iter().zip(samples) {
        let mut fields = Vec::new();
        let names = row[2].split(", ").filter(|name| !name.is_empty());
        names.for_each(|name| fields.extend_from_slice(varint_of(name)));
        fields.extend_from_slice(match row[3] {
            "" => b"",
            "16: identity of the store" => IDENTITY,
            _ => body,
        });
        let kind: u8 = row[0].parse().expect("a number");
        let wanted = [&[kind, fields.len() as u8][..], &fields].concat();
        let mut found = Vec::new();
        what.put(Rsn(1000), &mut found);
        assert_eq!(found, wanted, "{}", row[1]);
    }
}

/// The field's value in the samples, spelled out by hand.
fn varint_of(name: &str) -> &'static [u8] {
    match name {
        "`slot`" => &[3],
        "`page`" | "`back`" => &[0xAC, 0x02],
        "`upto`" => &[0xBC, 0x05],
        "`version`" => &[1],
        "`opens`" => &[9],
        "`count`" => &[2],
        _ => unreachable!("no record has a field {name}"),
    }
}

/// A state after a page, a page that is free, a change and a mark, and after one change more.
fn states() -> (State, State) {
    let at = |page, before| PageLink { page: PageNumber(page), before: Rsn(before) };
    let mut state = State::new();
    take(&mut state, &What::Image { at: at(1, 0), bytes: b"" });
    take(&mut state, &What::Image { at: at(2, 0), bytes: b"" });
    take(&mut state, &What::Free { at: at(2, 12) });
    take(&mut state, &What::Update { slot: Slot(3), at: at(1, 8), body: b"one" });
    let before = state.clone();
    state.mark();
    take(&mut state, &What::Update { slot: Slot(3), at: at(1, 20), body: b"two" });
    (before, state)
}

fn take(state: &mut State, what: &What<'_>) {
    let mut bytes = Vec::new();
    what.put(state.at(), &mut bytes);
    let record = parse(state.at(), &bytes).expect("it was written so");
    state.take(&record).expect("it follows");
}

#[test]
fn a_state_is_what_its_table_says() {
    let (before, after) = states();
    let (mut whole, mut difference) = (Vec::new(), Vec::new());
    before.put_whole(&mut whole);
    after.put_difference(&mut difference);
    for (form, found) in [(0, whole), (1, difference)] {
        let rows = FORMAT.rows("State").into_iter().filter(|row| row[form] == "yes");
        let wanted: Vec<u8> = rows.flat_map(|row| state_field(form, row[2])).copied().collect();
        assert_eq!(found, wanted, "form {}", form + 1);
    }
}

/// The field's value in the samples, spelled out by hand.
fn state_field(form: usize, name: &str) -> &'static [u8] {
    match (form, name) {
        (0, "`form`") => &[1],
        (0, "`at`") | (1, "`from`") => &[28],
        (0, "`slots`") => &[1, 3, 1, 3, b'o', b'n', b'e'],
        (0, "`free`") => &[1, 2],
        (0, "`stale`") => &[2, 1, 8, 1, 12],
        (1, "`form`") => &[2],
        (1, "`at`") => &[36],
        (1, "`slots`") => &[1, 3, 1, 1, 3, b't', b'w', b'o'],
        (1, "`touched`") => &[1, 1, 16],
        (_, "`cleaned`") => &[8],
        (_, "`next`") => &[3],
        _ => unreachable!("no state has a field {name}"),
    }
}

#[test]
fn a_base_is_what_its_table_says() {
    let files: Arc<dyn Files> = Arc::new(FakeFiles::new(1));
    let (tag, (state, _)) = (Tag::of(IDENTITY), states());
    Bases::create(Arc::clone(&files), tag, &state).expect("the disk is sound");
    let file = files.open(Path::new("base-0"), OpenHow::default()).expect("it is there");
    let mut bytes = vec![0; file.metadata().expect("it is there").size_bytes as usize];
    file.read_full_at(&mut bytes, 0).expect("the disk is sound");
    let mut whole = Vec::new();
    state.put_whole(&mut whole);
    let field = |name| &bytes[FORMAT.place("Base", name)];
    assert_eq!((field("magic"), field("tag")), (&b"HFBA"[..], &tag.get().to_le_bytes()[..]));
    assert_eq!((field("version"), field("zero")), (&[1, 0][..], &[0, 0][..]));
    assert_eq!(field("check"), crc32c(0, &bytes[8..]).to_le_bytes());
    assert_eq!(field("at"), state.at().get().to_le_bytes());
    assert_eq!(field("bytes"), (whole.len() as u64).to_le_bytes());
    assert_eq!(bytes[FORMAT.place("Base", "bytes").end..], whole);
}

#[test]
fn a_block_of_versions_is_what_its_table_says() {
    let (files, tag) = (FakeFiles::new(1), Tag::of(IDENTITY));
    let versions = Versions::open(&files, Path::new("versions"), tag).expect("it is made");
    versions.write(1, &[Rsn(0x0807_0605_0403_0201); VERSIONS_PAGES]).expect("there is room");
    let file = files.open(Path::new("versions"), OpenHow::default()).expect("it is there");
    let mut bytes = [0; 4096];
    file.read_full_at(&mut bytes, 4096).expect("it is there");
    let field = |name| &bytes[FORMAT.place("Versions", name)];
    assert_eq!((field("version"), field("zero")), (&[2, 0][..], &[0, 0][..]));
    assert_eq!(field("rsn"), [1, 2, 3, 4, 5, 6, 7, 8].repeat(VERSIONS_PAGES));
    let check = crc32c(crc32c(tag.get(), &1_u64.to_le_bytes()), &bytes[4..]);
    assert_eq!(field("check"), check.to_le_bytes());
}

#[test]
fn the_footer_of_a_run_is_what_its_table_says() {
    let number = |which: u64| 0x0101_0101_0101_0101 * which;
    let footer = Footer {
        version: 2,
        span: RunSpan { level: 0x0202, begin: Rsn(number(3)), end: Rsn(number(4)) },
        blocks: 0x0505_0505,
        begin_lsn: Lsn(number(6)),
        end_lsn: Lsn(number(7)),
        first_utc_ns: number(8) as i64,
        last_utc_ns: number(9) as i64,
        parts: [10, 11, 12, 13, 14].map(number),
        checks: [15, 16, 17, 18].map(|which| number(which) as u32),
        is_trimmed: true,
    };
    let (tag, mut at) = (Tag::of(IDENTITY), 0);
    let bytes = footer.bytes(tag);
    let names = "magic version level blocks begin end begin_lsn end_lsn first_utc_ns last_utc_ns \
                 state frames index bloom state_check frames_check index_check bloom_check";
    for (name, which) in
        names.split(' ').zip([0, 1, 2, 5, 3, 4, 6, 7, 8, 9].into_iter().chain(10..14).chain(15..19))
    {
        let place = FORMAT.place("Footer of a run", name);
        assert_eq!(place.start, at, "{name}");
        at = place.end;
        match name {
            "magic" => assert_eq!(&bytes[place], b"hold-run"),
            "version" => assert_eq!(bytes[place], [2, 0]),
            _ => assert!(bytes[place].iter().all(|byte| *byte == which), "{name}"),
        }
    }
    assert_eq!(bytes[FORMAT.place("Footer of a run", "trimmed")], [1, 0, 0, 0]);
    let check = crc32c(tag.get(), &bytes[..116]);
    assert_eq!(bytes[FORMAT.place("Footer of a run", "check")], check.to_le_bytes());
}

#[test]
fn an_entry_of_a_runs_index_is_what_its_table_says() {
    let mut bytes = Vec::new();
    BlockPlace { page: PageNumber(1), rsn: Rsn(2), offset: 3 }.put(&mut bytes);
    for (name, number) in [("page", 1_u64), ("rsn", 2), ("offset", 3)] {
        assert_eq!(bytes[FORMAT.place("Index of a run", name)], number.to_le_bytes());
    }
}

#[test]
fn the_manifest_of_a_backup_is_what_its_table_says() {
    let (files, tag) = (FakeFiles::new(1), Tag::of(IDENTITY));
    let number = |which: u64| Rsn(0x0101_0101_0101_0101 * which);
    let manifest = Manifest { begin: number(1), end: number(2), newest: number(3) };
    manifest.write(&files, tag).expect("there is room");
    let found = Manifest::read(&files, tag).expect("it is whole");
    assert_eq!(found, Some(manifest));
    let file = files.open(Path::new("manifest"), OpenHow::default()).expect("it is there");
    let mut bytes = [0; 48];
    assert_eq!(file.metadata().expect("it is there").size_bytes, 48);
    file.read_full_at(&mut bytes, 0).expect("it is there");
    let field = |name| &bytes[FORMAT.place("Manifest of a backup", name)];
    assert_eq!((field("magic"), field("version")), (&b"hold-bak"[..], &[1, 0][..]));
    assert_eq!((field("zero"), field("zeros")), (&[0; 2][..], &[0; 8][..]));
    assert_eq!(
        (field("begin"), field("end"), field("newest")),
        (&[1; 8][..], &[2; 8][..], &[3; 8][..])
    );
    assert_eq!(field("check"), crc32c(tag.get(), &bytes[12..]).to_le_bytes());
}
