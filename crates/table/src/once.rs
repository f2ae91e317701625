//! Once, however often it is asked: what requests were answered that changed something.
//!
//! Promise: the answer is kept by the transaction that did the request, so one is there if the
//! other is; a number that was answered is answered the same again, or refused.
//! Never: keeps more than [`NUMBERS_AHEAD_MAX`] answers of a client.

use std::ops::RangeInclusive;

use holdfast_store::{Transaction, Tree};

use crate::error::{RespondError, Stop};

/// How many numbers of a client may be under way at once, from the oldest one on.
pub const NUMBERS_AHEAD_MAX: u64 = 1024;

/// Bytes of the number before a kept answer.
pub(crate) const NUMBER_BYTES: usize = 8;

/// Whose request, and which of his.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number {
    client: u64,
    sequence: u64,
}

/// Where the answers of a client are kept.
pub(crate) fn answers_of(client: u64) -> RangeInclusive<Vec<u8>> {
    let place = |place: u16| [&client.to_be_bytes()[..], &place.to_be_bytes()].concat();
    place(0)..=place(u16::MAX)
}

/// What is known of a number.
pub(crate) enum Known {
    New,
    Answered(Vec<u8>),
    /// The client has got further since.
    Past,
}

impl Number {
    /// A number that is under way while `oldest` is the oldest one that is.
    pub(crate) fn new(client: u64, sequence: u64, oldest: u64) -> Result<Number, RespondError> {
        let ahead = sequence.checked_sub(oldest).ok_or(RespondError::Number)?;
        let is_near = ahead < NUMBERS_AHEAD_MAX;
        is_near.then_some(Number { client, sequence }).ok_or(RespondError::Number)
    }

    /// Whose it is.
    pub(crate) fn client(self) -> u64 {
        self.client
    }

    /// Where its answer is kept. The number that had the place before is not under way any more.
    pub(crate) fn key(self) -> Vec<u8> {
        let place = (self.sequence % NUMBERS_AHEAD_MAX) as u16;
        [&self.client.to_be_bytes()[..], &place.to_be_bytes()].concat()
    }

    /// What is known of it. Nobody else finds out until the transaction ends.
    pub(crate) fn look(
        self,
        transaction: &mut Transaction<'_>,
        answers: &Tree,
    ) -> Result<Known, Stop> {
        let Some(mut kept) = transaction.get_for_update(answers, &self.key())? else {
            return Ok(Known::New);
        };
        let Some(last) = kept.first_chunk() else {
            return Err(Stop::Damaged("a kept answer has no number"));
        };
        Ok(match u64::from_le_bytes(*last).cmp(&self.sequence) {
            std::cmp::Ordering::Less => Known::New,
            std::cmp::Ordering::Equal => Known::Answered(kept.split_off(NUMBER_BYTES)),
            std::cmp::Ordering::Greater => Known::Past,
        })
    }

    /// Keeps its answer.
    pub(crate) fn keep(
        self,
        transaction: &mut Transaction<'_>,
        answers: &Tree,
        answer: &[u8],
    ) -> Result<(), Stop> {
        let kept = [&self.sequence.to_le_bytes()[..], answer].concat();
        Ok(transaction.put(answers, &self.key(), &kept)?)
    }
}
