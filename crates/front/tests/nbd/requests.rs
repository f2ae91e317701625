//! Requests: what each does, what is refused, and what a refusal leaves alone.

use std::sync::Mutex;

use holdfast_front::nbd::parse::Fault;
use holdfast_front::nbd::{Export, Over};
use holdfast_io::{Blocks, BlocksError, Extent};

use crate::answers::Answer;
use crate::memory::MemoryBlocks;
use crate::messages::{
    BLOCK_STATUS, CACHE, DF, DISCONNECT, FAST_ZERO, FLUSH, FUA, NO_HOLE, READ, REQ_ONE, TRIM,
    WRITE, WRITE_ZEROES, opening, request,
};
use crate::pure::Pure;
use crate::random::{Random, for_seeds};

const SIZE: u64 = 700_001;
const EPERM: u32 = 1;
const EIO: u32 = 5;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const ENOTSUP: u32 = 95;

/// A disk that notes what it is asked, and fails where it is told to.
struct Noted {
    disk: MemoryBlocks,
    calls: Mutex<Vec<String>>,
    fails_at: Option<u64>,
    flush_fails: bool,
}

impl Noted {
    fn new(atomic_bytes_max: usize) -> Self {
        let disk = MemoryBlocks::new(SIZE as usize, atomic_bytes_max);
        Self { disk, calls: Mutex::default(), fails_at: None, flush_fails: false }
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    fn note(&self, what: &str, offset: u64, bytes: usize) -> Result<(), BlocksError> {
        self.calls.lock().unwrap().push(format!("{what} {offset} {bytes}"));
        match self.fails_at {
            Some(at) if (offset..offset + bytes as u64).contains(&at) => {
                Err(BlocksError::Failed(std::io::Error::other("a bad sector")))
            }
            _ => Ok(()),
        }
    }
}

impl Blocks for Noted {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }
    fn read(&self, into: &mut [u8], offset: u64) -> Result<(), BlocksError> {
        self.note("read", offset, into.len())?;
        self.disk.read(into, offset)
    }
    fn write(&self, from: &[u8], offset: u64) -> Result<(), BlocksError> {
        self.note("write", offset, from.len())?;
        self.disk.write(from, offset)
    }
    fn write_zeroes(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.note("zero", offset, bytes as usize)?;
        self.disk.write_zeroes(offset, bytes)
    }
    fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.note("discard", offset, bytes as usize)?;
        self.disk.discard(offset, bytes)
    }
    fn flush(&self) -> Result<(), BlocksError> {
        self.note("flush", 0, 0)?;
        match self.flush_fails {
            true => Err(BlocksError::Failed(std::io::Error::other("the device is gone"))),
            false => Ok(()),
        }
    }
    fn atomic_bytes_max(&self) -> usize {
        self.disk.atomic_bytes_max()
    }
}

fn exports(disk: &Noted) -> [Export<'_>; 1] {
    [Export { name: "disk", blocks: disk, read_only: false }]
}

fn write(cookie: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    [request(WRITE, 0, cookie, offset, data.len() as u32), data.to_vec()].concat()
}

/// The only chunk of an error.
fn error_of(answers: &[Answer]) -> u32 {
    match answers {
        [Answer::Chunk { is_last: true, kind: 0x8001, payload, .. }] => {
            u32::from_be_bytes(*payload.first_chunk().unwrap())
        }
        [Answer::Simple { error, .. }] => *error,
        other => panic!("{other:?}"),
    }
}

fn simple(cookie: u64, error: u32) -> Vec<u8> {
    let head = [0x67, 0x44, 0x66, 0x98];
    [head.as_slice(), &error.to_be_bytes(), &cookie.to_be_bytes()].concat()
}

#[test]
fn what_was_written_is_read_at_any_offset() {
    let disk = Noted::new(4096);
    let exports = exports(&disk);
    let mut client = Pure::at_requests(&exports, true);
    client.say(&write(7, 4095, b"hello"));
    assert_eq!(client.answers(), [Answer::Simple { cookie: 7, error: 0 }]);
    client.say(&request(READ, DF, 8, 4094, 7));
    let payload = [&4094_u64.to_be_bytes(), b"\0hello\0".as_slice()].concat();
    assert_eq!(client.answers(), [Answer::Chunk { cookie: 8, is_last: true, kind: 1, payload }]);
}

#[test]
fn replies_without_structure_carry_data_behind_their_head() {
    let disk = Noted::new(4096);
    let exports = exports(&disk);
    let mut client = Pure::at_requests(&exports, false);
    client.say(&write(7, 0, b"hello"));
    client.say(&request(READ, 0, 8, 1, 3));
    client.say(&request(READ, DF, 9, 1, 3));
    let expected = [simple(7, 0), simple(8, 0), b"ell".to_vec(), simple(9, EINVAL)].concat();
    assert_eq!(client.output(), expected);
}

#[test]
fn a_long_read_is_one_chunk_whose_end_says_whether_it_is_right() {
    let mut disk = Noted::new(4096);
    disk.fails_at = Some(600_000);
    let exports = exports(&disk);
    let mut client = Pure::at_requests(&exports, true);
    client.say(&request(READ, DF, 1, 1, 599_999));
    let right = client.answers();
    assert!(matches!(&right[0], Answer::Chunk { is_last: false, kind: 1, payload, .. }
        if payload.len() == 599_999 + 8));
    let end = Answer::Chunk { cookie: 1, is_last: true, kind: 0, payload: Vec::new() };
    assert_eq!(right[1..], [end]);
    client.say(&request(READ, 0, 2, 0, SIZE as u32));
    let wrong = client.answers();
    assert!(matches!(&wrong[0], Answer::Chunk { is_last: false, kind: 1, payload, .. }
        if payload.len() == SIZE as usize + 8));
    let Answer::Chunk { is_last: true, kind: 0x8002, payload, .. } = &wrong[1] else { panic!() };
    assert_eq!(payload[..4], EIO.to_be_bytes());
    let at = u64::from_be_bytes(*payload[6..].first_chunk().unwrap());
    assert!(at <= 600_000, "what is said to be right is");
}

#[test]
fn a_read_without_structure_fails_as_a_whole_whatever_its_length() {
    let mut disk = Noted::new(4096);
    disk.fails_at = Some(600_000);
    let exports = exports(&disk);
    let mut client = Pure::at_requests(&exports, false);
    client.say(&request(READ, 0, 2, 0, SIZE as u32));
    client.say(&request(READ, 0, 3, 0, 600_000));
    let expected = [simple(2, EIO), simple(3, 0), vec![0; 600_000]].concat();
    assert_eq!(client.output(), expected);
}

#[test]
fn a_write_that_the_disk_takes_at_once_reaches_it_whole() {
    for atomic in [1 << 20, usize::MAX] {
        let disk = Noted::new(atomic);
        let exports = exports(&disk);
        let mut client = Pure::at_requests(&exports, true);
        client.say(&write(1, 1, &vec![1; 700_000]));
        assert_eq!(disk.calls(), ["write 1 700000"]);
    }
}

#[test]
fn a_longer_write_reaches_the_disk_in_pieces_where_the_disk_divides_it() {
    for (atomic, piece) in [(4096, 262_144), (100_000, 200_000), (300_000, 300_000)] {
        let disk = Noted::new(atomic);
        let exports = exports(&disk);
        let mut client = Pure::at_requests(&exports, true);
        client.say(&write(1, 1, &vec![1; 700_000]));
        let starts = (0..700_000_usize).step_by(piece);
        let pieces = starts.map(|at| format!("write {} {}", at + 1, piece.min(700_000 - at)));
        assert_eq!(disk.calls(), pieces.collect::<Vec<_>>());
        assert_eq!(client.answers(), [Answer::Simple { cookie: 1, error: 0 }]);
        assert_eq!(disk.disk.contents(), [vec![0], vec![1; 700_000]].concat());
    }
}

#[test]
fn a_long_write_that_fails_is_answered_when_all_of_it_was_heard() {
    let mut disk = Noted::new(4096);
    disk.fails_at = Some(300_000);
    let exports = exports(&disk);
    let mut client = Pure::at_requests(&exports, true);
    let message = write(1, 0, &vec![1; 700_000]);
    client.say(&message[..600_028]);
    assert_eq!(client.answers(), []);
    client.say(&message[600_028..]);
    assert_eq!(error_of(&client.answers()), EIO);
    assert_eq!(disk.calls(), ["write 0 262144", "write 262144 262144"]);
    client.say(&request(READ, 0, 2, 0, 10));
    assert_eq!(client.answers().len(), 1, "the next request is heard");
}

#[test]
fn zeros_are_written_or_discarded_as_the_client_allows() {
    let disk = Noted::new(4096);
    let exports = exports(&disk);
    let mut client = Pure::at_requests(&exports, true);
    for (command, flags, call) in [
        (WRITE_ZEROES, NO_HOLE, "zero 1000 600000"),
        (WRITE_ZEROES, 0, "discard 1000 600000"),
        (TRIM, 0, "discard 1000 600000"),
    ] {
        client.say(&request(command, flags, 1, 1000, 600_000));
        assert_eq!(client.answers(), [Answer::Simple { cookie: 1, error: 0 }]);
        assert_eq!(disk.calls(), [call]);
    }
    for flags in [FAST_ZERO, FAST_ZERO | NO_HOLE] {
        client.say(&request(WRITE_ZEROES, flags, 1, 1000, 600_000));
        assert_eq!(error_of(&client.answers()), ENOTSUP);
    }
    assert!(disk.calls().is_empty());
}

#[test]
fn a_change_that_is_to_be_durable_is_followed_by_a_flush_before_its_reply() {
    let disk = Noted::new(4096);
    let exports = exports(&disk);
    let mut client = Pure::at_requests(&exports, true);
    let data = [9; 300_000];
    let long = [request(WRITE, FUA, 1, 0, 300_000), data.to_vec()].concat();
    let short = [request(WRITE, FUA, 1, 0, 3), data[..3].to_vec()].concat();
    let flush = "flush 0 0".to_owned();
    for (message, flushes) in [
        (long, 1),
        (short, 1),
        (request(TRIM, FUA, 1, 0, 5), 1),
        (request(WRITE_ZEROES, FUA | NO_HOLE, 1, 0, 5), 1),
        (request(FLUSH, FUA, 1, 0, 0), 1),
        (request(FLUSH, 0, 1, 0, 0), 1),
        (request(CACHE, FUA, 1, 0, 5), 0),
    ] {
        client.say(&message);
        let calls = disk.calls();
        assert_eq!(calls.iter().filter(|call| **call == flush).count(), flushes);
        assert!(flushes == 0 || calls.last() == Some(&flush));
        assert_eq!(client.answers(), [Answer::Simple { cookie: 1, error: 0 }]);
    }
    client.say(&request(READ, FUA, 1, 0, 5));
    assert_eq!(disk.calls(), ["read 0 5"]);
}

#[test]
fn a_flush_that_fails_is_an_error_for_whoever_waited() {
    let mut disk = Noted::new(4096);
    disk.flush_fails = true;
    let exports = exports(&disk);
    let mut client = Pure::at_requests(&exports, true);
    for message in [request(FLUSH, 0, 1, 0, 0), request(TRIM, FUA, 1, 0, 1)] {
        client.say(&message);
        assert_eq!(error_of(&client.answers()), EIO);
    }
}

#[test]
fn a_flush_has_no_range_whatever_stands_there() {
    let disk = Noted::new(4096);
    let exports = exports(&disk);
    let mut client = Pure::at_requests(&exports, true);
    client.say(&request(FLUSH, 0, 3, u64::MAX, u32::MAX));
    assert_eq!(client.answers(), [Answer::Simple { cookie: 3, error: 0 }]);
    assert_eq!(disk.calls(), ["flush 0 0"]);
}

#[test]
fn a_range_behind_the_last_byte_is_an_error_and_the_disk_is_not_asked() {
    let disk = Noted::new(4096);
    let exports = exports(&disk);
    for structured in [true, false] {
        for (command, error) in [
            (READ, EINVAL),
            (TRIM, EINVAL),
            (CACHE, EINVAL),
            (WRITE, ENOSPC),
            (WRITE_ZEROES, ENOSPC),
        ] {
            for (offset, bytes) in [(SIZE, 1), (SIZE - 1, 2), (u64::MAX, 2), (u64::MAX - 1, 1)] {
                let mut client = Pure::at_requests(&exports, structured);
                let payload = if command == WRITE { bytes as usize } else { 0 };
                let message = request(command, 0, 5, offset, bytes);
                client.say(&[message, vec![1; payload]].concat());
                let output = client.output();
                let found = if structured { &output[20..24] } else { &output[4..8] };
                assert_eq!(found, error.to_be_bytes(), "{command} at {offset}");
                client.say(&request(FLUSH, 0, 6, 0, 0));
                assert_eq!(client.output(), simple(6, 0), "the next request is heard");
            }
        }
    }
    assert!(disk.calls().iter().all(|call| call == "flush 0 0"));
}

#[test]
fn requests_at_the_last_byte_and_of_no_bytes_are_fine() {
    let disk = Noted::new(4096);
    let exports = exports(&disk);
    let mut client = Pure::at_requests(&exports, true);
    client.say(&write(1, SIZE - 1, b"x"));
    client.say(&write(2, SIZE, b""));
    client.say(&request(WRITE_ZEROES, 0, 3, SIZE, 0));
    client.say(&request(TRIM, 0, 4, 0, 0));
    let done: Vec<_> = (1..5).map(|cookie| Answer::Simple { cookie, error: 0 }).collect();
    assert_eq!(client.answers(), done);
    client.say(&request(READ, 0, 5, SIZE, 0));
    let empty = Answer::Chunk { cookie: 5, is_last: true, kind: 0, payload: Vec::new() };
    assert_eq!(client.answers(), [empty]);
}

#[test]
fn longer_requests_than_were_agreed_on_are_refused_and_thrown_away() {
    let disk = Noted::new(4096);
    let exports = exports(&disk);
    let mut client = Pure::at_requests(&exports, true);
    client.say(&request(READ, 0, 5, 0, (32 << 20) + 1));
    assert_eq!(error_of(&client.answers()), EINVAL);
    client.say(&request(WRITE, 0, 5, 0, (32 << 20) + 1));
    client.say(&vec![1; 32 << 20]);
    assert_eq!(client.answers(), []);
    client.say(&[1]);
    assert_eq!(error_of(&client.answers()), EINVAL);
    assert!(disk.calls().is_empty());
}

#[test]
fn a_read_only_export_is_not_changed() {
    let disk = Noted::new(4096);
    let exports = [Export { name: "disk", blocks: &disk, read_only: true }];
    let mut client = Pure::at_requests(&exports, true);
    for command in [WRITE, TRIM, WRITE_ZEROES] {
        let payload = if command == WRITE { 3 } else { 0 };
        client.say(&[request(command, 0, 5, 0, 3), vec![1; payload]].concat());
        assert_eq!(error_of(&client.answers()), EPERM);
    }
    assert!(disk.calls().is_empty());
    client.say(&request(READ, 0, 5, 0, 3));
    assert_eq!(client.answers().len(), 1);
}

#[test]
fn unknown_commands_and_flags_that_do_not_belong_are_refused() {
    let disk = Noted::new(4096);
    let exports = exports(&disk);
    let mut client = Pure::at_requests(&exports, true);
    for (command, flags) in [
        (8, 0),
        (999, 0),
        (READ, NO_HOLE),
        (READ, 1 << 15),
        (WRITE, DF),
        (FLUSH, DF),
        (TRIM, FAST_ZERO),
        (CACHE, NO_HOLE),
        (WRITE_ZEROES, DF),
        (BLOCK_STATUS, NO_HOLE),
    ] {
        let payload = if command == WRITE { 3 } else { 0 };
        client.say(&[request(command, flags, 5, 0, 3), vec![1; payload]].concat());
        assert_eq!(error_of(&client.answers()), EINVAL, "{command} {flags}");
    }
    assert!(disk.calls().is_empty());
}

#[test]
fn all_of_a_disk_that_keeps_no_account_is_data_for_a_client_that_may_ask() {
    let disk = Noted::new(4096);
    let exports = exports(&disk);
    let mut client = Pure::at_requests(&exports, true);
    client.say(&request(BLOCK_STATUS, 0, 5, 1, 4_000));
    let payload = [1_u32, 4_000, 0].map(u32::to_be_bytes).concat();
    assert_eq!(client.answers(), [Answer::Chunk { cookie: 5, is_last: true, kind: 5, payload }]);
    client.say(&request(BLOCK_STATUS, 0, 5, 1, 0));
    assert_eq!(error_of(&client.answers()), EINVAL);
    let mut client = Pure::at_requests(&exports, false);
    client.say(&request(BLOCK_STATUS, 0, 5, 1, 4_000));
    assert_eq!(client.output(), simple(5, EINVAL));
}

/// Some places of a disk that have no room.
struct Sparse(Vec<Extent>);

impl Sparse {
    fn any(random: &mut Random) -> Sparse {
        let (mut extents, mut end) = (Vec::new(), 0);
        while end < SIZE {
            let longest = if random.below(2) == 0 { 300 } else { 90_000 };
            end = SIZE.min(end + 1 + random.below(longest));
            extents.push(Extent { end, is_hole: random.below(2) == 0 });
        }
        Sparse(extents)
    }

    /// Lengths and flags of the stretches of a range.
    fn stretches(&self, offset: u64, bytes: u64) -> Vec<(u32, u32)> {
        let (mut at, end, mut found) = (offset, offset + bytes, Vec::<(u32, u32)>::new());
        for extent in self.0.iter().filter(|it| it.end > offset) {
            let (bytes, flags) = (extent.end.min(end) - at, if extent.is_hole { 3 } else { 0 });
            match found.last_mut().filter(|(_, alike)| *alike == flags) {
                Some((known, _)) => *known += bytes as u32,
                None => found.push((bytes as u32, flags)),
            }
            at += bytes;
            if at == end {
                break;
            }
        }
        found
    }
}

#[test]
fn a_client_is_told_where_a_disk_has_no_room() {
    for_seeds("a_client_is_told_where_a_disk_has_no_room", 20, |random| {
        let sparse = Sparse::any(random);
        let disk = MemoryBlocks::new(SIZE as usize, 4096).with_extents(sparse.0.clone());
        let exports = [Export { name: "disk", blocks: &disk, read_only: false }];
        let mut client = Pure::at_requests(&exports, true);
        for _ in 0..20 {
            let offset = random.below(SIZE);
            let bytes = 1 + random.below(SIZE - offset);
            let wants_one = random.below(2) == 0;
            let mut told = sparse.stretches(offset, bytes);
            told.truncate(if wants_one { 1 } else { 1024 });
            let told = told.iter().flat_map(|(bytes, flags)| [*bytes, *flags]);
            let told = [1].into_iter().chain(told).flat_map(u32::to_be_bytes);
            let flags = if wants_one { REQ_ONE } else { 0 };
            client.say(&request(BLOCK_STATUS, flags, 5, offset, bytes as u32));
            let payload = told.collect();
            let told = [Answer::Chunk { cookie: 5, is_last: true, kind: 5, payload }];
            assert_eq!(client.answers(), told, "{bytes} bytes at {offset}");
        }
    });
}

#[test]
fn a_client_parts_without_an_answer() {
    let disk = Noted::new(4096);
    let exports = exports(&disk);
    let mut client = Pure::at_requests(&exports, true);
    client.say(&request(DISCONNECT, 0xffff, 5, u64::MAX, 9));
    assert_eq!((client.answers(), client.over), (Vec::new(), Some(Over::Parted)));
}

#[test]
fn bytes_that_are_no_request_end_the_conversation() {
    let disk = Noted::new(4096);
    let exports = exports(&disk);
    let mut client = Pure::at_requests(&exports, true);
    client.say(&write(1, 0, b"kept"));
    client.say(&[7; 28]);
    assert_eq!(client.over, Some(Over::Fault(Fault::RequestMagic(0x0707_0707))));
    assert_eq!(client.answers(), [Answer::Simple { cookie: 1, error: 0 }]);
    assert_eq!(&disk.disk.contents()[..4], b"kept");
}

/// One random request, and what it makes of a copy of the disk. Returns the data to be read.
fn random_request(random: &mut Random, model: &mut [u8]) -> (Vec<u8>, Option<Vec<u8>>) {
    let offset = random.below(SIZE);
    let most = [10_000, 300_000, 700_000][random.below(3) as usize];
    let bytes = random.below(most.min(SIZE - offset) + 1) as usize;
    let flags = if random.below(4) == 0 { FUA } else { 0 };
    let range = &mut model[offset as usize..offset as usize + bytes];
    let head = |command| request(command, flags, 77, offset, bytes as u32);
    match random.below(6) {
        0 | 1 => (head(READ), Some(range.to_vec())),
        2 | 3 => {
            let byte = random.next() as u8;
            range.iter_mut().enumerate().for_each(|(at, one)| *one = byte.wrapping_add(at as u8));
            ([head(WRITE), range.to_vec()].concat(), None)
        }
        4 => {
            range.fill(0);
            (head(WRITE_ZEROES), None)
        }
        _ => {
            range.fill(0);
            (head(TRIM), None)
        }
    }
}

#[test]
fn random_requests_do_to_a_disk_what_they_do_to_a_copy() {
    for_seeds("random_requests", 24, |random| {
        let structured = random.below(2) == 0;
        let disk = Noted::new([1, 4096, 300_000, 1 << 20][random.below(4) as usize]);
        let exports = exports(&disk);
        let mut client = Pure::at_requests(&exports, structured);
        let mut model = disk.disk.contents();
        for _ in 0..40 {
            let (message, data) = random_request(random, &mut model);
            client.say(&message);
            let output = client.output();
            let expected = match (data, structured) {
                (None, _) => simple(77, 0),
                (Some(data), false) => [simple(77, 0), data].concat(),
                (Some(data), true) => {
                    assert_eq!(data_of(&output), data);
                    continue;
                }
            };
            assert!(output == expected);
        }
        assert!(disk.disk.contents() == model);
    });
}

/// The data of one read's answer.
fn data_of(output: &[u8]) -> Vec<u8> {
    match crate::answers::take_all(output).expect("whole answers").as_slice() {
        [Answer::Chunk { kind: 0, is_last: true, .. }] => Vec::new(),
        [Answer::Chunk { kind: 1, is_last: true, payload, .. }] => payload[8..].to_vec(),
        [
            Answer::Chunk { kind: 1, is_last: false, payload, .. },
            Answer::Chunk { kind: 0, is_last: true, .. },
        ] => payload[8..].to_vec(),
        other => panic!("{} answers", other.len()),
    }
}

#[test]
fn a_context_that_was_selected_for_another_export_does_not_count() {
    let disk = Noted::new(4096);
    let export = |name| Export { name, blocks: &disk, read_only: false };
    let exports = [export("disk"), export("other")];
    let mut client = Pure::greeted(&exports);
    let mut start = opening(b"other", true);
    let go = start.len() - (16 + 4 + 5 + 2 + 2);
    start.truncate(go);
    client.say(&start);
    while client.take_option().is_some() {}
    let told = client.options(crate::messages::GO, &crate::messages::info(b"disk", &[]));
    assert_eq!(told.len(), 2);
    client.say(&request(BLOCK_STATUS, 0, 5, 1, 4_000));
    assert_eq!(error_of(&client.answers()), EINVAL);
}
