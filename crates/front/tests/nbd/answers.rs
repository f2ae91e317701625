//! What a server sends, taken apart by somebody who does not trust it.

/// The greeting.
pub(crate) const GREETING: &[u8] = b"NBDMAGICIHAVEOPT\x00\x03";

/// An answer to an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OptionAnswer {
    pub(crate) option: u32,
    pub(crate) kind: u32,
    pub(crate) data: Vec<u8>,
}

/// An answer to a request. Only a chunk has a payload, if that was agreed on.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Simple { cookie: u64, error: u32 },
    Chunk { cookie: u64, is_last: bool, kind: u16, payload: Vec<u8> },
}

impl Answer {
    pub(crate) fn cookie(&self) -> u64 {
        match self {
            Answer::Simple { cookie, .. } | Answer::Chunk { cookie, .. } => *cookie,
        }
    }
}

impl std::fmt::Debug for Answer {
    /// A payload may be megabytes.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Answer::Simple { cookie, error } => write!(out, "reply to {cookie}: error {error}"),
            Answer::Chunk { cookie, is_last, kind, payload } => {
                let start = &payload[..payload.len().min(32)];
                write!(out, "chunk {kind:#x} for {cookie}, last: {is_last}, ")?;
                write!(out, "{} bytes: {start:?}..", payload.len())
            }
        }
    }
}

/// Takes the next answer to an option off the front.
pub(crate) fn take_option(rest: &mut &[u8]) -> Option<OptionAnswer> {
    let (head, behind) = rest.split_at_checked(20)?;
    let bytes = u32_at(head, 16) as usize;
    let (data, behind) = behind.split_at_checked(bytes)?;
    if head[..8] != [0, 3, 0xe8, 0x89, 4, 0x55, 0x65, 0xa9] {
        return None;
    }
    *rest = behind;
    Some(OptionAnswer { option: u32_at(head, 8), kind: u32_at(head, 12), data: data.into() })
}

/// Takes the next answer to a request off the front, where replies have structure.
pub(crate) fn take(rest: &mut &[u8]) -> Option<Answer> {
    if let Some(behind) = rest.strip_prefix(&[0x67, 0x44, 0x66, 0x98]) {
        let (head, behind) = behind.split_at_checked(12)?;
        *rest = behind;
        return Some(Answer::Simple { error: u32_at(head, 0), cookie: u64_at(head, 4) });
    }
    let behind = rest.strip_prefix(&[0x66, 0x8e, 0x33, 0xef])?;
    let (head, behind) = behind.split_at_checked(16)?;
    let (payload, behind) = behind.split_at_checked(u32_at(head, 12) as usize)?;
    let [flags, kind] = [0, 2].map(|at| u16::from_be_bytes([head[at], head[at + 1]]));
    let answer = Answer::Chunk {
        cookie: u64_at(head, 4),
        is_last: flags == 1,
        kind,
        payload: payload.into(),
    };
    *rest = behind;
    (flags <= 1 && is_sound(kind, payload)).then_some(answer)
}

/// All answers of a stream, which has to be nothing else.
pub(crate) fn take_all(stream: &[u8]) -> Option<Vec<Answer>> {
    let mut rest = stream;
    let mut answers = Vec::new();
    while !rest.is_empty() {
        answers.push(take(&mut rest)?);
    }
    Some(answers)
}

/// Whether a chunk of this kind may have this payload.
fn is_sound(kind: u16, payload: &[u8]) -> bool {
    match kind {
        0 => payload.is_empty(),
        1 => payload.len() >= 9,
        5 => payload.len() >= 12 && payload.len() % 8 == 4,
        0x8001 => payload.len() >= 6 && u32_at(payload, 0) != 0,
        0x8002 => payload.len() == 14 && u32_at(payload, 0) != 0,
        _ => false,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(*bytes[at..].first_chunk().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(*bytes[at..].first_chunk().unwrap())
}
