//! What the reports of several kinds say alike.
//!
//! Promise: the same fact has the same words, whatever it is of.
//! Never: finds anything out.

use crate::memory::Astray;
use crate::supervisor::life::known::State;
use crate::supervisor::server::known::KnownServer;
use holdfast_config::claims::Verdict;

/// What an upgrade of a front end will cost its clients.
pub(super) fn mortal_text(connections: u64) -> Option<String> {
    (connections > 0).then(|| format!("{connections} connections that speak TLS will end"))
}

/// Whether nobody starts a server any more: what the last one said is no news of today's.
pub(super) fn is_given_up(server: Option<&KnownServer>) -> bool {
    server.is_some_and(|server| server.state == State::GivenUp)
}

/// What acknowledgements are worth, by whether the memory of what is served has lost its name.
pub(super) fn verdict_with(astray: Option<&Astray>, verdict: Option<Verdict>) -> Option<Verdict> {
    match astray {
        Some(_) => verdict.map(Verdict::without_memory),
        None => verdict,
    }
}

/// What has the next server look for its memory.
pub(crate) const UPGRADE: &str = "`holdfast upgrade server`";

/// That memory has lost its name, or is refused by it, and what mends that, for people.
pub(super) fn astray_text(Astray { why, mend }: &Astray, again: &str) -> String {
    match mend {
        None => format!(
            "{why}: the keeper holds it, and with the keeper what is in memory alone would go; \
             {again} gives it its name back"
        ),
        Some(mend) => format!("{why}: no other process takes it up as it is; {mend}"),
    }
}

/// Both, where there are two: neither hides the other.
pub(super) fn also(one: Option<String>, other: Option<String>) -> Option<String> {
    match (one, other) {
        (Some(one), Some(other)) => Some(format!("{one}; {other}")),
        (one, other) => one.or(other),
    }
}

/// What was said of a service.
pub(super) fn of<'a, T>(service: &str, said: &'a [(String, T)]) -> Option<&'a T> {
    said.iter().find(|(of, _)| of == service).map(|(_, what)| what)
}
