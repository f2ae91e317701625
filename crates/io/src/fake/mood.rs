//! What is found after a power cut of what no sync has covered.
//!
//! Promise: a test can ask for each.
//! Never: loses anything by itself.

/// How much of what no sync has covered is found after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Nothing.
    LoseAll,
    /// Everything.
    KeepAll,
    /// Everything before the operation of this number; that one may be torn by sectors.
    Prefix(u64),
    /// Each write and each change of names by the toss of a coin.
    Subset,
    /// Each sector of each file by itself; each change of names by the toss of a coin.
    Scatter,
}

/// What is found in a sector whose write was cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sectors {
    /// What it held before or after some write.
    #[default]
    Whole,
    /// In one case of five, noise.
    Garbage,
}
