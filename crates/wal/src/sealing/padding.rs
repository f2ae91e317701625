//! How long a sealed set is made.
//!
//! Promise: sets of different lengths that are made equally long cannot be told apart in the files.
//! Never: makes a set shorter.

/// To what length sealed sets are filled up, so that their length says less of what is in them. A
/// set's own length is inside the cipher. What is near the longest that a log takes is filled up to
/// that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Padding {
    /// Sets keep their lengths.
    #[default]
    None,
    /// To the next length with few significant bits: at most 12 % more, less the longer a set is;
    /// of all lengths up to a mebibyte some 300 are left. The rule is that of
    /// "Reducing Metadata Leakage from Encrypted Files and Communication with PURBs".
    Padme,
    /// To a multiple of so many bytes.
    Multiple(u32),
}

impl Padding {
    /// What so many bytes are made to.
    pub(crate) fn of(self, bytes: u64) -> u64 {
        match self {
            Padding::None => bytes,
            Padding::Padme => padme(bytes),
            Padding::Multiple(unit) => bytes.next_multiple_of(u64::from(unit).max(1)),
        }
    }
}

/// A length of `e + 1` bits keeps as many leading bits as it takes to write `e`, and is rounded up.
fn padme(bytes: u64) -> u64 {
    let Some(e) = bytes.checked_ilog2().filter(|e| *e > 0) else { return bytes };
    let kept = e.ilog2() + 1;
    let unit = 1_u64 << e.saturating_sub(kept);
    bytes.next_multiple_of(unit)
}
