//! What a guest says, one sentence a line; a program in `guests` is the speaker.
//!
//! Promise: a line that is none of the sentences is [`Sentence::Other`], never a guess.
//! Never: takes a line without its end for a whole one: a guest may die in the middle of a number.

/// One of the guest's connections to its database, counted from 1.
pub(crate) type Writer = u32;

/// Writers of a guest.
pub(crate) const WRITERS: [Writer; 2] = [1, 2];

/// What a database has of one writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Whose rows.
    pub(crate) writer: Writer,
    /// The highest number of a row.
    pub(crate) highest: u64,
    /// How many rows there are.
    pub(crate) rows: u64,
    /// Rows that are not what was written.
    pub(crate) wrong: u64,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sentence {
    /// The guest's program has begun.
    Up,
    /// What the acknowledgements of the guest's volume are.
    Class(String),
    /// What the guest's probe of its memory says: how it ended, bytes kept, bytes looked at.
    Probe(String, [u64; 2]),
    /// What the data disk calls its write cache.
    Cache(String),
    /// The database answers.
    Ready,
    /// What is there of a writer.
    Found(Found),
    /// The database's own checker is content.
    Sound,
    /// It is not, or something failed that never should.
    Complaint(String),
    /// The commit of this writer's row with this number has returned.
    Done(Writer, u64),
    /// A write of this writer's has failed, and it writes no more.
    Refused(Writer),
    /// That host is to be fenced off.
    Fence(String),
    /// A line that the command in the guest has written to its log.
    Said(String),
    /// Front ends were killed or replaced, and others served after so many milliseconds.
    Paused(u64),
    /// How many flushes the data disk has answered since the guest's boot.
    Flushes(u64),
    /// Anything else.
    Other(String),
}

impl Sentence {
    /// The sentence of a line, or `None` if the line has no end.
    pub(crate) fn parse(line: &[u8]) -> Option<Sentence> {
        let line = String::from_utf8_lossy(line.strip_suffix(b"\n")?).into_owned();
        let line = line.trim_end_matches('\r');
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let sentence = match word {
            "up" => Some(Sentence::Up),
            "class" => Some(Sentence::Class(rest.into())),
            "probe" => Some(probe(rest)),
            "cache" => Some(Sentence::Cache(rest.into())),
            "ready" => Some(Sentence::Ready),
            "sound" => Some(Sentence::Sound),
            "unsound" | "broken" => Some(Sentence::Complaint(line.into())),
            "found" => found(rest),
            "done" => {
                numbers(rest).map(|[writer, number]| Sentence::Done(writer as Writer, number))
            }
            "refused" => numbers(rest).map(|[writer]| Sentence::Refused(writer as Writer)),
            "fence" => Some(Sentence::Fence(rest.into())),
            "said" => Some(Sentence::Said(rest.into())),
            "paused" => numbers(rest).map(|[milliseconds]| Sentence::Paused(milliseconds)),
            "flushes" => numbers(rest).map(|[count]| Sentence::Flushes(count)),
            _ => None,
        };
        Some(sentence.unwrap_or_else(|| Sentence::Other(line.into())))
    }
}

/// Without numbers where nothing was looked at.
fn probe(text: &str) -> Sentence {
    let (state, rest) = text.split_once(' ').unwrap_or((text, ""));
    Sentence::Probe(state.into(), numbers(rest).unwrap_or([0; 2]))
}

fn found(text: &str) -> Option<Sentence> {
    let [writer, highest, rows, wrong] = numbers(text)?;
    Some(Sentence::Found(Found { writer: writer as Writer, highest, rows, wrong }))
}

/// Exactly so many numbers.
fn numbers<const COUNT: usize>(text: &str) -> Option<[u64; COUNT]> {
    let numbers: Option<Vec<u64>> = text.split(' ').map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

#[cfg(test)]
mod tests;
