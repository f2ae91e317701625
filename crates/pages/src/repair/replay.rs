//! The one routine that rebuilds a page: for a restart, a repair, a restore, the cleaner, a check.
//!
//! Promise: the page holds the sum of its records up to the one that was asked for, or it is said
//! why not; what it was built from does not matter.
//! Never: reads or writes a page file; takes a page for right that has lost a record.

use crate::archive::page_records::PageRecords;
use crate::archive::run_format::page_of;
use crate::error::ReplayError;
use crate::page::Page;
use crate::page::apply::{Contents, apply};
use crate::repair::view::View;
use crate::stream::rsn::{PageNumber, Rsn};

/// How far a page is to be brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upto {
    /// To this record, which is one of the page.
    Record(Rsn),
    /// To the newest one that there is.
    Newest,
}

/// Brings page `number` from what it is, or from nothing, to a later record, and returns where it
/// is then. `page_records` is memory that is used again.
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
    view: &View,
    contents: &dyn Contents,
    gathered: &mut PageRecords,
) -> Result<Rsn, ReplayError> {
    let above = page.rsn();
    gathered.clear();
    gather_fresh(number, above, upto, view, gathered)?;
    gather_archived(number, above, upto, view, gathered)?;
    for record in gathered.in_order() {
        apply(page, &record, contents).map_err(ReplayError::Broken)?;
    }
    match upto {
        Upto::Record(wanted) if page.rsn() < wanted => {
            Err(ReplayError::Missing { wanted, found: page.rsn() })
        }
        _ => Ok(page.rsn()),
    }
}

/// Makes `page`, which is nothing, what its records come to up to this one, if its newest image is
/// one of those that are not archived. False if that is not so, and the page is nothing still.
pub(crate) fn replay_fresh(
    page: &mut Page,
    number: PageNumber,
    wanted: Rsn,
    view: &View,
    contents: &dyn Contents,
    gathered: &mut PageRecords,
) -> bool {
    gathered.clear();
    let fresh = gather_fresh(number, Rsn::NONE, Upto::Record(wanted), view, gathered);
    let is_whole = fresh.is_ok()
        && gathered.has_image()
        && gathered.in_order().all(|record| apply(page, &record, contents).is_ok())
        && page.rsn() >= wanted;
    if !is_whole {
        page.clear();
    }
    is_whole
}

/// Gathers records of a page that are not archived, from its newest one back.
fn gather_fresh(
    number: PageNumber,
    above: Rsn,
    upto: Upto,
    view: &View,
    gathered: &mut PageRecords,
) -> Result<(), ReplayError> {
    let newest = match upto {
        Upto::Record(rsn) => rsn,
        Upto::Newest => newest_of(number, view),
    };
    for record in view.fresh().history(number, newest) {
        let record = record.map_err(ReplayError::Astray)?;
        if record.rsn <= above || gathered.has_image() {
            break;
        }
        gathered.push(&record);
    }
    Ok(())
}

/// The newest record of a page that is fresh, if there is one. Looks at all of them.
fn newest_of(number: PageNumber, view: &View) -> Rsn {
    let fresh = view.fresh();
    let records = fresh.records(fresh.begin(), fresh.end());
    let of_page = records.filter(|record| page_of(record) == number);
    of_page.last().map_or(Rsn::NONE, |record| record.rsn)
}

/// The newest record of a page that is archived, if there is one.
pub(crate) fn newest_archived(
    number: PageNumber,
    view: &View,
    gathered: &mut PageRecords,
) -> Result<Rsn, ReplayError> {
    for run in view.archive().runs().iter().rev() {
        gathered.clear();
        run.gather(number, Rsn::NONE, Rsn(u64::MAX), gathered).map_err(ReplayError::Archive)?;
        if let Some(newest) = gathered.in_order().last() {
            return Ok(newest.rsn);
        }
    }
    Ok(Rsn::NONE)
}

/// Gathers records of a page that are archived, from the newest run back, until an image is found.
fn gather_archived(
    number: PageNumber,
    above: Rsn,
    upto: Upto,
    view: &View,
    gathered: &mut PageRecords,
) -> Result<(), ReplayError> {
    let upto = match upto {
        Upto::Record(rsn) => rsn,
        Upto::Newest => Rsn(u64::MAX),
    };
    let runs = view.archive().runs().iter().rev();
    let runs = runs.take_while(|run| run.span().end > above);
    for run in runs.filter(|run| run.span().begin <= upto) {
        if gathered.has_image() {
            break;
        }
        run.gather(number, above, upto, gathered).map_err(ReplayError::Archive)?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
