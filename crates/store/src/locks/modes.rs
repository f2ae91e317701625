//! What a lock permits its holder, and which locks bear one another.
//!
//! Promise: two modes are compatible if neither permits what the other relies on not happening.
//! Never: knows who holds a lock.
//!
//! A lock has two parts that know nothing of one another: the key, and the gap, which is the open
//! interval from the key to the next one in its tree. Whoever read that there is nothing holds the
//! gap; whoever puts a key into it needs leave from there, and none from the keys at its ends.

/// What a lock permits about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum KeyMode {
    /// Nothing.
    None,
    /// To read it.
    Shared,
    /// To read and change it.
    Exclusive,
}

/// What a lock permits about a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum GapMode {
    /// Nothing.
    None,
    /// To read that it is empty.
    Shared,
    /// To put keys into it.
    Insert,
    /// Both: it is empty but for the holder's own keys.
    Both,
}

/// What a lock permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mode {
    /// About the key.
    pub key: KeyMode,
    /// About the gap between the key and the next one.
    pub gap: GapMode,
}

impl KeyMode {
    fn bears(self, other: KeyMode) -> bool {
        self.min(other) == KeyMode::None || self.max(other) == KeyMode::Shared
    }
}

impl GapMode {
    fn bears(self, other: GapMode) -> bool {
        match (self, other) {
            (GapMode::None, _) | (_, GapMode::None) => true,
            (GapMode::Both, _) | (_, GapMode::Both) => false,
            _ => self == other,
        }
    }

    fn join(self, other: GapMode) -> GapMode {
        match (self, other) {
            (GapMode::None, mode) | (mode, GapMode::None) => mode,
            _ if self == other => self,
            _ => GapMode::Both,
        }
    }
}

impl Mode {
    /// Permits nothing.
    pub(crate) const NONE: Mode = Mode { key: KeyMode::None, gap: GapMode::None };
    /// To read a key.
    pub(crate) const READ: Mode = Mode { key: KeyMode::Shared, gap: GapMode::None };
    /// To change a key.
    pub(crate) const CHANGE: Mode = Mode { key: KeyMode::Exclusive, gap: GapMode::None };
    /// To read that there is nothing behind a key.
    pub(crate) const READ_GAP: Mode = Mode { key: KeyMode::None, gap: GapMode::Shared };
    /// To put something behind a key.
    pub(crate) const INSERT: Mode = Mode { key: KeyMode::None, gap: GapMode::Insert };
    /// To read a key and that there is nothing behind it, as a scan does.
    pub(crate) const SCAN: Mode = Mode { key: KeyMode::Shared, gap: GapMode::Shared };

    /// Whether two transactions may have these locks at once.
    #[must_use]
    #[inline]
    pub(crate) fn is_compatible(self, other: Mode) -> bool {
        self.key.bears(other.key) && self.gap.bears(other.gap)
    }

    /// The least that permits what either permits.
    #[must_use]
    #[inline]
    pub(crate) fn join(self, other: Mode) -> Mode {
        Mode { key: self.key.max(other.key), gap: self.gap.join(other.gap) }
    }
}

#[cfg(test)]
mod tests;
