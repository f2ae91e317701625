//! The one routine that rebuilds a page: for a restart, a repair, a restore, the cleaner, a check.
//!
//! Promise: the page holds the sum of its records up to the one that was asked for, or it is said
//! why not; what it was built from does not matter.
//! Never: reads or writes a page file; takes a page for right that has lost a record.

use crate::apply::{Contents, apply};
use crate::error::ReplayError;
use crate::history::History;
use crate::page::Page;
use crate::record::What;
use crate::rsn::{PageNumber, Rsn};
use crate::view::View;

/// How far a page is to be brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upto {
    /// To this record, which is one of the page.
    Record(Rsn),
    /// To the newest one that there is.
    Newest,
}

/// Brings page `number` from what it is, or from nothing, to a later record, and returns where it
/// is then. `history` is memory that is used again.
///
/// # Errors
/// See [`ReplayError`]; the page may hold anything then.
///
/// # Panics
/// If `page` is another page.
pub fn replay(
    page: &mut Page,
    number: PageNumber,
    upto: Upto,
    view: &View<'_>,
    contents: &dyn Contents,
    history: &mut History,
) -> Result<Rsn, ReplayError> {
    let above = page.rsn();
    history.clear();
    gather_fresh(number, above, upto, view, history)?;
    gather_archived(number, above, upto, view, history)?;
    for record in history.in_order() {
        apply(page, &record, contents).map_err(ReplayError::Broken)?;
    }
    match upto {
        Upto::Record(wanted) if page.rsn() < wanted => {
            Err(ReplayError::Missing { wanted, found: page.rsn() })
        }
        _ => Ok(page.rsn()),
    }
}

/// Gathers records of a page that are not archived, from its newest one back.
fn gather_fresh(
    number: PageNumber,
    above: Rsn,
    upto: Upto,
    view: &View<'_>,
    history: &mut History,
) -> Result<(), ReplayError> {
    let newest = match upto {
        Upto::Record(rsn) => Some(rsn),
        Upto::Newest => view.fresh.newest_of(number),
    };
    let mut at = newest.unwrap_or(Rsn::NONE);
    while at > above && at >= view.fresh.first() && !history.has_image() {
        let found = view.fresh.record(at);
        let of_page = found.and_then(|(record, bytes)| Some((record.what.link()?, record, bytes)));
        let Some((link, record, bytes)) = of_page.filter(|(link, ..)| link.page == number) else {
            return Err(ReplayError::Astray { at });
        };
        history.push(&record, bytes);
        at = if matches!(record.what, What::Image { .. }) { Rsn::NONE } else { link.before };
    }
    Ok(())
}

/// Gathers records of a page that are archived, from the newest run back, until an image is found.
fn gather_archived(
    number: PageNumber,
    above: Rsn,
    upto: Upto,
    view: &View<'_>,
    history: &mut History,
) -> Result<(), ReplayError> {
    let upto = match upto {
        Upto::Record(rsn) => rsn,
        Upto::Newest => Rsn(u64::MAX),
    };
    let runs = view.archive.runs().iter().rev();
    let runs = runs.take_while(|run| run.span().end > above);
    for run in runs.filter(|run| run.span().begin <= upto) {
        if history.has_image() {
            break;
        }
        run.gather(number, above, upto, history).map_err(ReplayError::Archive)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
