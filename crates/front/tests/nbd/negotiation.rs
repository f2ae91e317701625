//! What is agreed on before the first request, and what is not.

use holdfast_front::nbd::parse::Fault;
use holdfast_front::nbd::{Export, Over};

use crate::answers::OptionAnswer;
use crate::memory::MemoryBlocks;
use crate::messages::{
    ABORT, EXPORT_NAME, GO, INFO, LIST, LIST_CONTEXTS, SET_CONTEXTS, STRUCTURED_REPLY, contexts,
    counted, hello, info, option,
};
use crate::pure::Pure;

const SIZE_BYTES: usize = 12_345;
const ACK: u32 = 1;
const SERVER: u32 = 2;
const TOLD: u32 = 3;
const CONTEXT: u32 = 4;
const UNSUPPORTED: u32 = 1 << 31 | 1;
const INVALID: u32 = 1 << 31 | 3;
const UNKNOWN: u32 = 1 << 31 | 6;
const TOO_BIG: u32 = 1 << 31 | 9;
const STARTTLS: u32 = 5;

/// Flags: has flags, flush, FUA, trim, write zeroes, several connections, cache, fast zero.
const WRITABLE: u16 = 1 | 4 | 8 | 0x20 | 0x40 | 0x100 | 0x400 | 0x800;
const READ_ONLY: u16 = 1 | 2 | 4 | 8 | 0x100 | 0x400;
const DONT_FRAGMENT: u16 = 0x80;

fn disk() -> MemoryBlocks {
    MemoryBlocks::new(SIZE_BYTES, 4096)
}

fn two(disk: &MemoryBlocks) -> [Export<'_>; 2] {
    let export = |name, read_only| Export { name, blocks: disk, read_only };
    [export("disk", false), export("frozen", true)]
}

fn told_export(flags: u16) -> Vec<u8> {
    [&0_u16.to_be_bytes(), (SIZE_BYTES as u64).to_be_bytes().as_slice(), &flags.to_be_bytes()]
        .concat()
}

fn kinds(answers: &[OptionAnswer]) -> Vec<u32> {
    answers.iter().map(|answer| answer.kind).collect()
}

#[test]
fn all_exports_are_listed_by_name() {
    let disk = disk();
    let exports = two(&disk);
    let mut client = Pure::at_options(&exports);
    let listed = client.options(LIST, b"");
    assert_eq!(kinds(&listed), [SERVER, SERVER, ACK]);
    assert_eq!([&listed[0].data, &listed[1].data], [&counted(b"disk"), &counted(b"frozen")]);
    assert_eq!(client.option(LIST, b"x").kind, INVALID);
}

#[test]
fn an_export_is_told_of_and_only_go_chooses_it() {
    let disk = disk();
    let exports = two(&disk);
    let mut client = Pure::at_options(&exports);
    let told = client.options(INFO, &info(b"frozen", &[0, 1, 2, 3, 999]));
    assert_eq!(kinds(&told), [TOLD, TOLD, TOLD, ACK]);
    assert_eq!(told[0].data, told_export(READ_ONLY));
    assert_eq!(told[1].data, [&1_u16.to_be_bytes(), b"frozen".as_slice()].concat());
    let sizes = [1_u32, 4096, 32 << 20].map(u32::to_be_bytes).concat();
    assert_eq!(told[2].data, [3_u16.to_be_bytes().to_vec(), sizes].concat());
    let told = client.options(GO, &info(b"disk", &[]));
    assert_eq!(kinds(&told), [TOLD, ACK]);
    assert_eq!(told[0].data, told_export(WRITABLE));
    client.say(&option(LIST, &[0; 12]));
    assert_eq!(
        client.over,
        Some(Over::Fault(Fault::RequestMagic(0x4948_4156))),
        "options are over after GO"
    );
}

#[test]
fn a_client_without_structure_is_not_offered_unfragmented_reads() {
    let disk = disk();
    let exports = two(&disk);
    let mut client = Pure::at_options(&exports);
    assert_eq!(client.option(STRUCTURED_REPLY, b"").kind, ACK);
    let told = client.options(INFO, &info(b"disk", &[]));
    assert_eq!(told[0].data, told_export(WRITABLE | DONT_FRAGMENT));
    assert_eq!(client.option(STRUCTURED_REPLY, b"x").kind, INVALID);
}

#[test]
fn the_old_way_to_choose_an_export_is_answered_with_or_without_zeros() {
    for (flags, zeros) in [(3, 0), (1, 124), (0, 124)] {
        let disk = disk();
        let exports = two(&disk);
        let mut client = Pure::greeted(&exports);
        client.say(&[0, 0, 0, flags]);
        client.say(&option(EXPORT_NAME, b"disk"));
        let told = told_export(WRITABLE)[2..].to_vec();
        assert_eq!(client.output(), [told, vec![0; zeros]].concat());
        assert_eq!(client.over, None);
    }
}

#[test]
fn the_old_way_to_an_export_that_is_not_here_ends_the_conversation() {
    let disk = disk();
    let exports = two(&disk);
    for name in [b"none".to_vec(), b"".to_vec(), vec![b'x'; 70_000]] {
        let mut client = Pure::at_options(&exports);
        client.say(&option(EXPORT_NAME, &name));
        assert_eq!(client.over, Some(Over::Fault(Fault::NoSuchExport)));
    }
}

#[test]
fn the_empty_name_means_the_only_export() {
    let disk = disk();
    let exports = two(&disk);
    let mut client = Pure::at_options(&exports);
    assert_eq!(client.option(GO, &info(b"", &[])).kind, UNKNOWN);
    let mut client = Pure::at_options(&exports[..1]);
    assert_eq!(kinds(&client.options(GO, &info(b"", &[]))), [TOLD, ACK]);
}

#[test]
fn options_that_are_unknown_malformed_or_too_long_are_answered_and_the_next_is_heard() {
    let disk = disk();
    let exports = two(&disk);
    let mut client = Pure::at_options(&exports);
    assert_eq!(client.option(STARTTLS, b"").kind, UNSUPPORTED);
    assert_eq!(client.option(STARTTLS, b"x").kind, INVALID);
    assert_eq!(client.option(11, b"").kind, UNSUPPORTED);
    assert_eq!(client.option(4711, b"whatever").kind, UNSUPPORTED);
    assert_eq!(client.option(4711, &vec![0; 100_000]).kind, TOO_BIG);
    assert_eq!(client.option(GO, b"").kind, INVALID);
    assert_eq!(client.option(GO, &info(b"disk", &[1])[..10]).kind, INVALID);
    assert_eq!(client.option(GO, &[info(b"disk", &[1]), vec![0]].concat()).kind, INVALID);
    assert_eq!(client.option(GO, &info(b"none", &[])).kind, UNKNOWN);
    assert_eq!(client.option(INFO, &[255; 6]).kind, INVALID);
    assert_eq!(kinds(&client.options(GO, &info(b"disk", &[]))), [TOLD, ACK]);
}

#[test]
fn a_client_that_wants_to_part_is_answered() {
    let disk = disk();
    let exports = two(&disk);
    let mut client = Pure::at_options(&exports);
    assert_eq!(client.option(ABORT, b"no data belong here").kind, ACK);
    assert_eq!(client.over, Some(Over::Parted));
}

#[test]
fn flags_and_options_of_another_protocol_end_the_conversation() {
    let disk = disk();
    let exports = two(&disk);
    let mut client = Pure::greeted(&exports);
    client.say(&[0, 0, 0, 7]);
    assert_eq!(client.over, Some(Over::Fault(Fault::ClientFlags(7))));
    let mut client = Pure::at_options(&exports);
    client.say(b"GET / HTTP/1.1\r\n\r\n");
    let found = u64::from_be_bytes(*b"GET / HT");
    assert_eq!(client.over, Some(Over::Fault(Fault::OptionMagic(found))));
}

#[test]
fn allocation_is_the_one_context_and_a_query_has_to_name_it() {
    let disk = disk();
    let exports = two(&disk);
    let mut client = Pure::at_options(&exports);
    let all = contexts(b"disk", &[]);
    let named = contexts(b"disk", &[b"qemu:dirty-bitmap:x", b"base:allocation"]);
    let wild = contexts(b"disk", &[b"base:"]);
    assert_eq!(client.option(SET_CONTEXTS, &named).kind, INVALID, "replies without structure");
    client.option(STRUCTURED_REPLY, b"");
    for (number, data, found) in [
        (LIST_CONTEXTS, &all, true),
        (LIST_CONTEXTS, &named, true),
        (LIST_CONTEXTS, &wild, true),
        (SET_CONTEXTS, &all, false),
        (SET_CONTEXTS, &wild, false),
        (SET_CONTEXTS, &named, true),
    ] {
        let answers = client.options(number, data);
        assert_eq!(kinds(&answers), if found { vec![CONTEXT, ACK] } else { vec![ACK] });
        assert!(!found || &answers[0].data[4..] == b"base:allocation");
    }
    assert_eq!(client.option(SET_CONTEXTS, &contexts(b"none", &[])).kind, UNKNOWN);
    assert_eq!(client.option(SET_CONTEXTS, &[named, vec![0]].concat()).kind, INVALID);
    let endless = [counted(b"disk"), vec![255; 4]].concat();
    assert_eq!(client.option(LIST_CONTEXTS, &endless).kind, INVALID);
}

#[test]
fn the_greeting_comes_before_the_clients_flags() {
    let disk = disk();
    let exports = two(&disk);
    let mut client = Pure::greeted(&exports);
    client.say(&hello());
    assert_eq!((client.output(), client.over), (Vec::new(), None));
}
