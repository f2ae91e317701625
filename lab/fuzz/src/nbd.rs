//! What a client may send, as a script, and what must hold of whoever hears it.
//!
//! The first byte of a script chooses the disk, and whether TLS is needed; then come messages:
//! options and requests with any numbers in them, a whole opening, and bytes of any kind. What
//! follows the start of TLS is what the client said in secret.
//!
//! Promise: nothing panics, and nothing outside the disk is touched; it is the same whether bytes
//! come at once or one by one; where replies have structure, all that is sent are whole replies;
//! where TLS is needed, nothing is told before it is spoken.
//! Never: needs more than the script to repeat a case.

use std::io;
use std::os::fd::BorrowedFd;

use holdfast_front::nbd::{Exchange, Export, Over, Replies, Step};
use holdfast_io::{Blocks, BlocksError, Receiving, SendError, Sending};

use super::answers;
use super::memory::MemoryBlocks;
use super::messages::{self, option, request};

/// More than one piece of a long read, and no multiple of anything.
const DISK_BYTES: usize = 300_007;

/// A place that cannot be read, written or flushed, if the script says so.
const FLAW: std::ops::Range<u64> = 270_000..270_512;

/// Longest message that may have to be there as a whole.
const NEEDS_BYTES_MAX: usize = (32 << 20) + 28;

/// Bytes of all messages, at most.
const INPUT_BYTES_MAX: usize = 1 << 20;

/// Steps in a row that use nothing: a read of 32 MiB goes out in 128 pieces.
const IDLE_STEPS_MAX: usize = 130;

/// From so many bytes on a disk sends what is read of it, and receives what is written, if the
/// script says so.
const SEND_BYTES_MIN: usize = 3000;

/// What a socket has room for at most.
const SENT_BYTES_MAX: usize = 1 << 17;

/// A disk with a flaw.
struct Flawed {
    disk: MemoryBlocks,
    has_flaw: bool,
    sends: bool,
}

impl Flawed {
    fn look(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        let hits = offset < FLAW.end && offset + bytes > FLAW.start;
        if self.has_flaw && hits { Err(BlocksError::NoSpace) } else { Ok(()) }
    }
}

impl Blocks for Flawed {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn read(&self, into: &mut [u8], offset: u64) -> Result<(), BlocksError> {
        self.look(offset, into.len() as u64)?;
        self.disk.read(into, offset)
    }

    fn send_bytes_min(&self) -> usize {
        if self.sends { SEND_BYTES_MIN } else { usize::MAX }
    }

    fn receive(&self, offset: u64, bytes: usize) -> Option<Box<dyn Receiving + '_>> {
        let coming = Coming { disk: self, offset, bytes: Vec::new(), left_bytes: bytes };
        self.sends.then(|| Box::new(coming) as Box<_>)
    }

    fn receive_bytes_min(&self) -> usize {
        self.send_bytes_min()
    }

    fn write(&self, from: &[u8], offset: u64) -> Result<(), BlocksError> {
        self.look(offset, from.len() as u64)?;
        self.disk.write(from, offset)
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.look(offset, bytes)?;
        self.disk.write_zeroes(offset, bytes)
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.look(offset, bytes)?;
        self.disk.discard(offset, bytes)
    }

    fn flush(&self) -> Result<(), BlocksError> {
        self.disk.flush()
    }

    fn atomic_bytes_max(&self) -> usize {
        self.disk.atomic_bytes_max()
    }
}

/// A write that such a disk receives.
struct Coming<'d> {
    disk: &'d Flawed,
    offset: u64,
    bytes: Vec<u8>,
    left_bytes: usize,
}

impl Receiving for Coming<'_> {
    fn left_bytes(&self) -> usize {
        self.left_bytes
    }

    fn put(&mut self, bytes: &[u8]) {
        self.left_bytes -= bytes.len();
        self.bytes.extend_from_slice(bytes);
    }

    fn receive(&mut self, _: BorrowedFd<'_>) -> io::Result<usize> {
        unreachable!("a script has no socket")
    }

    fn take_back(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    fn commit(self: Box<Self>) -> Result<(), BlocksError> {
        assert!(self.left_bytes == 0, "a write is whole before it is written");
        self.disk.write(&self.bytes, self.offset)
    }
}

/// What came of a conversation.
#[derive(Default, PartialEq, Eq)]
struct Talk {
    output: Vec<u8>,
    /// Of the output, what came before the first request.
    opening_bytes: usize,
    /// Of the opening, what others could hear where TLS is needed.
    plain_bytes: usize,
    over: Option<Over>,
    contents: Vec<u8>,
}

/// Runs one script.
pub(crate) fn run(script: &[u8]) {
    let Some((&choice, rest)) = script.split_first() else { return };
    let input = messages_of(rest, needs_tls(choice));
    let whole = converse(choice, &input, |left| left);
    let mut state = u64::from(choice) + 1;
    let pieces = converse(choice, &input, |left| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let bytes = 1 << ((state >> 40) % 18);
        left.min(bytes)
    });
    assert!(whole == pieces, "bytes that come in pieces are heard differently");
    let untouched = vec![0; DISK_BYTES];
    assert!(choice & READ_ONLY == 0 || whole.contents == untouched, "a read-only disk changed");
    check_output(&whole);
    let told = needs_tls(choice).then_some(&whole.output[..whole.plain_bytes]);
    assert!(told.is_none_or(tells_nothing), "told before TLS was spoken");
}

const READ_ONLY: u8 = 1;

/// Two of the 32 values that choose how much the disk takes at once.
fn needs_tls(choice: u8) -> bool {
    choice >= 0xf0
}

/// Feeds the input; `next` says how much of what is left comes at once.
fn converse(choice: u8, input: &[u8], mut next: impl FnMut(usize) -> usize) -> Talk {
    let atomic = [1, 512, 4096, 1 << 20, usize::MAX][usize::from(choice >> 3) % 5];
    let memory = MemoryBlocks::new(DISK_BYTES, atomic);
    let disk = Flawed { disk: memory, has_flaw: choice & 2 != 0, sends: choice & 128 != 0 };
    let read_only = choice & READ_ONLY != 0;
    let export = |name| Export { name, blocks: &disk, read_only };
    let all = [export("disk"), export("other")];
    let exports = if choice & 4 != 0 { &all[..] } else { &all[..1] };
    let mut exchange = Exchange::new(exports, "a script".into());
    let mut is_plain = needs_tls(choice) && exchange.require_tls();
    let mut replies = Replies::default();
    let mut talk = Talk::default();
    let (mut used, mut fed, mut idle_steps) = (0, 0, 0);
    while talk.over.is_none() {
        let before = used;
        let sent = exchange.send_read(&mut replies, |blocks, what| {
            send(blocks, what, next(SENT_BYTES_MAX), &mut talk.output)
        });
        if matches!(sent, Some(Ok(()))) {
            continue;
        }
        let (received, step) = step(&mut exchange, &input[used..fed], &mut replies);
        used += received;
        match step {
            Step::Used(bytes) => used += bytes,
            Step::Flush { used: bytes, cookie } => {
                used += bytes;
                let failed = BlocksError::NoSpace;
                let result = if cookie == 13 { Err(&failed) } else { Ok(()) };
                exchange.flushed(cookie, result, &mut replies);
            }
            Step::Needs(bytes) => {
                assert!(bytes > fed - used && bytes <= NEEDS_BYTES_MAX, "needs {bytes} bytes");
                if fed == input.len() {
                    break;
                }
                fed += next(input.len() - fed);
                continue;
            }
            Step::Secure { used: bytes } => {
                assert!(is_plain, "TLS is started where it is not needed, or twice");
                used += bytes;
                talk.plain_bytes = talk.output.len() + replies.unsent().len();
                is_plain = false;
            }
            Step::Over(over) => talk.over = Some(over),
        }
        assert!(used <= fed, "used what was not there");
        idle_steps = if used == before { idle_steps + 1 } else { 0 };
        assert!(idle_steps <= IDLE_STEPS_MAX, "nothing happens");
        talk.output.extend_from_slice(replies.unsent());
        replies.sent(replies.unsent().len());
        if exchange.blocks().is_none() {
            talk.opening_bytes = talk.output.len();
        }
        if is_plain {
            assert!(exchange.blocks().is_none(), "a disk was chosen before TLS was spoken");
            talk.plain_bytes = talk.output.len();
        }
    }
    // What a socket had no room for when the script ended.
    talk.output.extend_from_slice(replies.unsent());
    talk.contents = disk.disk.contents();
    talk
}

/// Has the disk receive a piece of a long write, if all of it is there; otherwise takes a step.
fn step(exchange: &mut Exchange<'_>, input: &[u8], replies: &mut Replies) -> (usize, Step) {
    let Some(mut room) = exchange.receive() else { return (0, exchange.step(input, replies)) };
    let bytes = room.left_bytes();
    let Some(piece) = input.get(..bytes) else { return (0, exchange.step(input, replies)) };
    room.put(piece);
    let written = room.commit();
    (bytes, exchange.received(bytes, written, replies))
}

/// Takes as much as a socket that has room for `room_bytes`, of what a disk can read.
fn send(
    blocks: &dyn Blocks,
    what: &Sending<'_>,
    room_bytes: usize,
    output: &mut Vec<u8>,
) -> Result<usize, SendError> {
    if blocks.send_bytes_min() == usize::MAX {
        return Err(SendError::Copy);
    }
    let mut bytes = vec![0; what.bytes];
    blocks.read(&mut bytes, what.offset).map_err(|_| SendError::Copy)?;
    let whole = [what.head, &bytes, what.tail].concat();
    let sent = &whole[..room_bytes.min(whole.len())];
    output.extend_from_slice(sent);
    Ok(sent.len())
}

/// Takes the output apart.
fn check_output(talk: &Talk) {
    let (opening, answers) = talk.output.split_at(talk.opening_bytes);
    let mut rest = opening.strip_prefix(answers::GREETING).expect("a greeting");
    let mut structured = false;
    while !rest.is_empty() {
        let answer = answers::take_option(&mut rest).expect("a whole answer to an option");
        structured |= (answer.option, answer.kind) == (messages::STRUCTURED_REPLY, 1);
    }
    let mut rest = answers;
    // The choice of an export is answered behind what was counted as the opening.
    while let Some(answer) = answers::take_option(&mut rest) {
        assert!(answer.option == messages::GO, "an answer to an option among others");
    }
    let by_name = rest.len() == answers.len();
    if structured && !by_name {
        answers::take_all(rest).expect("whole answers to requests");
    }
}

/// Whether all that was said before TLS is that it is needed, and a few courtesies.
pub(crate) fn tells_nothing(plain: &[u8]) -> bool {
    const ACKNOWLEDGED: u32 = 1;
    const INVALID: u32 = 1 << 31 | 3;
    const TLS_REQUIRED: u32 = 1 << 31 | 5;
    const TOO_BIG: u32 = 1 << 31 | 9;
    let Some(mut rest) = plain.strip_prefix(answers::GREETING) else { return plain.is_empty() };
    while let Some(answer) = answers::take_option(&mut rest) {
        let is_courtesy = match answer.kind {
            ACKNOWLEDGED => [messages::STARTTLS, messages::ABORT].contains(&answer.option),
            kind => [INVALID, TLS_REQUIRED, TOO_BIG].contains(&kind),
        };
        if !is_courtesy {
            return false;
        }
    }
    rest.is_empty()
}

/// The messages of a script.
fn messages_of(script: &[u8], needs_tls: bool) -> Vec<u8> {
    let opening = if needs_tls { messages::opening_by_tls } else { messages::opening };
    let mut script = script.iter().copied();
    let mut input = Vec::new();
    while let Some(kind) = script.next() {
        if input.len() > INPUT_BYTES_MAX {
            break;
        }
        match kind % 6 {
            0 => input.extend(opening(
                [b"disk".as_slice(), b""][usize::from(kind >> 7)],
                kind & 0x40 != 0,
            )),
            1 => put_option(&mut input, &mut script),
            2..=4 => put_request(&mut input, &mut script),
            _ => {
                let bytes = usize::from(kind >> 3);
                input.extend(script.by_ref().take(bytes));
            }
        }
    }
    input
}

fn put_option(input: &mut Vec<u8>, script: &mut impl Iterator<Item = u8>) {
    let mut next = || script.next().unwrap_or(0);
    let (number, shape) = (u32::from(next() % 13), next());
    let name: &[u8] = [b"disk".as_slice(), b"other", b"none", b""][usize::from(shape) % 4];
    let data = match shape >> 6 {
        0 => messages::info(name, &[0, 1, 2, 3][..usize::from(shape >> 2) % 5]),
        1 => messages::contexts(
            name,
            &[b"base:".as_slice(), b"base:allocation", b"x:y"][..usize::from(shape >> 2) % 4],
        ),
        2 => name.to_vec(),
        _ => Vec::new(),
    };
    let mut message = option(number, &data);
    // A length that is not the data's: a little or far too long.
    match shape & 0x30 {
        0x10 => message[15] ^= 1,
        0x20 => message[14 - usize::from(next() % 3)] = next(),
        _ => {}
    }
    input.extend(message);
}

fn put_request(input: &mut Vec<u8>, script: &mut impl Iterator<Item = u8>) {
    let mut next = || u64::from(script.next().unwrap_or(0));
    let (command, flags, cookie) = (next() as u16 % 10, next() as u16, next());
    let place = next() << 8 | next();
    let offset = match place & 3 {
        0 => DISK_BYTES as u64 - (place >> 2),
        1 => u64::MAX - (place >> 2),
        _ => place * 5,
    };
    let size = (next() << 8 | next()) as u32;
    let bytes = match size & 7 {
        0 => size >> 3,
        1 => DISK_BYTES as u32 - (size >> 3),
        2 => (32 << 20) + (size >> 8),
        3 => u32::MAX - (size >> 3),
        4 => size * 4,
        _ => size >> 7,
    };
    input.extend(request(command, flags & 0x3f, cookie, offset, bytes));
    if command == messages::WRITE {
        let payload = (bytes as usize).min(DISK_BYTES);
        input.extend((0..payload).map(|at| (at as u64 + cookie) as u8 | 1));
    }
}

/// Three and four bytes that follow, as they are.
const RAW_3: u8 = 29;
const RAW_4: u8 = 35;

/// Scripts to begin with.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let every_request: Vec<u8> =
        (0..10).flat_map(|command| [2, command, 0, command, 0, 6, 4, 0]).collect();
    let durable: Vec<u8> =
        (0..10).flat_map(|command| [3, command, 1, 13, 0x10, 2, 0x10, 1]).collect();
    let long: Vec<u8> = [[4, 0, 4, 1, 0, 2, 0, 0x81], [4, 1, 0, 2, 0, 2, 0, 0x81]].concat();
    let options: Vec<u8> = (0..52).flat_map(|at| [1, at % 13, at * 5]).collect();
    let early = [(3, 0xc0), (6, 0), (7, 0), (8, 0xc0), (9, 0x40), (10, 0x40), (5, 0xc0), (1, 0x80)];
    let early: Vec<u8> = early.iter().flat_map(|(number, shape)| [1, *number, *shape]).collect();
    vec![
        ("structured", [vec![24, 0x48], every_request.clone()].concat()),
        ("simple", [vec![8, 0], every_request.clone()].concat()),
        ("read-only", [vec![1, 0x48], every_request.clone(), long.clone()].concat()),
        ("durable", [vec![16, 0x48], durable.clone()].concat()),
        ("flawed", [vec![2, 0x48], durable, long.clone(), every_request.clone()].concat()),
        ("long", [vec![0, 0x48], long.clone()].concat()),
        ("long and simple", [vec![32, 0], long].concat()),
        ("options", [vec![4, RAW_4, 0, 0, 0, 3], options.clone()].concat()),
        ("secret", [vec![0xf0, 0x48], every_request].concat()),
        ("secret options", [vec![0xfc, RAW_4, 0, 0, 0, 3, 1, 5, 0xc0], options].concat()),
        ("too early", [vec![0xf1, RAW_4, 0, 0, 0, 3], early].concat()),
        ("stray", vec![0, 0x48, RAW_3, 1, 2, 3]),
    ]
}
