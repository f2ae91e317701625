//! What the keeper has had since it started, beside what the configuration says by now.
//!
//! Promise: what the keeper has is shown as it has it, under the name by which clients find it;
//! what the configuration has otherwise is told, with what to do.
//! Never: looks at the machine.

use holdfast_config::Section;
use std::collections::BTreeMap;

/// What makes the keeper have what the configuration says.
pub(crate) const START_AGAIN: &str = "`holdfast shutdown`, then start the keeper again";

/// Why the keeper does not have what came into the configuration later.
pub(crate) const CAME_LATER: &str = "the keeper has what was configured when it started";

/// One section of a kind.
pub(super) struct Shown<'a, T> {
    pub name: &'a str,
    pub section: &'a T,
    /// The keeper does not have it: what is found where it would be is not its own.
    pub came_later: bool,
    /// How the configuration differs, and what to do.
    pub problem: Option<String>,
}

/// Every section of a kind that the keeper has, if there is one, or the configuration.
pub(super) fn shown<'a, T: Section>(
    had: Option<&'a BTreeMap<String, T>>,
    now: &'a BTreeMap<String, T>,
) -> Vec<Shown<'a, T>> {
    let Some(had) = had else {
        return now.iter().map(|(name, section)| as_had(name, section, None)).collect();
    };
    let of_keeper = had.iter().map(|(name, section)| match now.get(name) {
        Some(found) if found == section => as_had(name, section, None),
        found => as_had(name, section, Some(changed(found.is_some()))),
    });
    let later = now.iter().filter(|(name, _)| !had.contains_key(*name)).map(|(name, section)| {
        Shown { name, section, came_later: true, problem: Some(not_had(section, had)) }
    });
    let mut all: Vec<_> = of_keeper.chain(later).collect();
    all.sort_by_key(|shown| shown.name);
    all
}

fn as_had<'a, T>(name: &'a str, section: &'a T, problem: Option<String>) -> Shown<'a, T> {
    Shown { name, section, came_later: false, problem }
}

/// How a section differs that the keeper has.
fn changed(has_name: bool) -> String {
    let (how, back) = match has_name {
        true => ("has other settings under this name by now", "put back what it had"),
        false => ("no longer has it", "put it back"),
    };
    format!(
        "the configuration {how}, and the keeper goes on as it started: {back}, or {START_AGAIN}"
    )
}

/// Why a section is not served that came later, and whose its paths are until then.
fn not_had<T: Section>(section: &T, had: &BTreeMap<String, T>) -> String {
    let own = section.paths();
    let shares = |of: &T| of.paths().into_iter().any(|path| own.contains(&path));
    let other = had.iter().find(|(_, of)| shares(of));
    let whose = other.map_or_else(String::new, |(name, of)| {
        let shared = of.paths().into_iter().find(|path| own.contains(path));
        let (key, path) = shared.expect("it shares one");
        format!(", and {key} {} is that of {} {name} until then", path.display(), T::KIND)
    });
    format!("it is not served: {CAME_LATER}{whose}: {START_AGAIN}")
}
