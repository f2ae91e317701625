//! What is known of the front ends of a volume or disk, besides what is known of every process.
//!
//! Promise: whoever asks has all of it at once.
//! Never: finds anything out.

use crate::memory::Astray;
use crate::supervisor::life::known::Known;
use holdfast_config::claims::Verdict;
use std::path::Path;

/// What is known of a volume's or disk's front ends.
pub(crate) type KnownFront = Known<OfFront>;

/// What only front ends have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfFront {
    /// What recovery said at the last start.
    pub(crate) recovery: Option<String>,
    /// What acknowledgements mean, by the front end that has mapped the memory.
    pub(crate) verdict: Option<Verdict>,
    /// What they mean while the power is to be relied on, if that makes a difference.
    pub(crate) armed: Option<Verdict>,
    /// It was heard from a front end that nothing is left of a lease that was taken back so often.
    pub(crate) given_up: Option<u64>,
    /// Nobody reaches it any more, wherever else it is mounted.
    pub(crate) is_cut_off: bool,
    /// So many processes had nothing but a copy of the mount when it was cut off.
    pub(crate) copies_cut_off: usize,
    /// Connections that end with the front end, whatever takes its place.
    pub(crate) mortal_connections: u64,
    /// That the memory has lost its name, if it has.
    pub(crate) astray: Option<Astray>,
    /// That the log's files are not where they were, if they are not, and what to do.
    pub(crate) log_trouble: Option<String>,
    /// Where the home is, if its name does not lead to it.
    pub(crate) home_elsewhere: Option<String>,
    /// That others were let into the home while it was served, who could do that, and what to do.
    pub(crate) home_entered: Option<String>,
}

impl KnownFront {
    /// That the home is complete, and where it is, for people.
    pub(crate) fn complete_text(&self, home: &Path) -> String {
        let home = home.display();
        match &self.of.home_elsewhere {
            None => format!("{home} is complete"),
            Some(there) => format!(
                "its home is complete, and was moved while it was served: it is at {there}, and \
                 what is at {home} is not its home"
            ),
        }
    }
}
