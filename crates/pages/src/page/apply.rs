//! The one place where a record meets a page: running, restarting, repairing, restoring.
//!
//! Promise: a page gets each of its records once and in order, or the difference has a name; the
//! same page and the same records give the same bytes, whenever.
//! Never: reads a record from anywhere, or knows what a body means.

use crate::page::{Page, PageKind, Unfit};
use crate::stream::record::{PageLink, Record, What};
use crate::stream::rsn::{PageNumber, Rsn};

/// Whoever writes records writes an image of a page that has had so many bytes of them since the
/// last one, so that no page takes longer to rebuild than so many bytes take to apply.
pub const IMAGE_EVERY_BYTES: u32 = 32 << 10;

/// What the bodies of records mean. It decides by the page's contents and the body alone, so that
/// doing and redoing cannot differ.
pub trait Contents: Send + Sync {
    /// Changes the page as the body says.
    ///
    /// # Errors
    /// The body does not fit this page, which is [`Unfit`] then: damaged in a way no check found.
    fn apply(&self, page: &mut Page, body: &[u8]) -> Result<(), Unfit>;

    /// Appends all that the page holds, as [`Contents::restore`] wants it.
    fn image(&self, page: &Page, into: &mut Vec<u8>);

    /// Makes the page what an image says: begins it, and fills it. What was in it does not matter.
    ///
    /// # Errors
    /// These bytes are no image; the page may hold anything then.
    fn restore(&self, page: &mut Page, number: PageNumber, image: &[u8]) -> Result<(), Unfit>;
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The page has it now.
    Now,
    /// The page had it before.
    Before,
}

/// Why a record was not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplyFault {
    /// The page has not got to the record before this one, or is past it in another way. It is as
    /// it was; rebuild it from an older one, or from nothing.
    Chain {
        /// Where the page is.
        found: Rsn,
        /// The record that it should have got to.
        before: Rsn,
    },
    /// The body does not fit. Throw the page away and rebuild it from an older one, or from
    /// nothing.
    Unfit(Unfit),
}

impl From<Unfit> for ApplyFault {
    fn from(unfit: Unfit) -> ApplyFault {
        ApplyFault::Unfit(unfit)
    }
}

/// Applies a record to its page, unless the page has it. An image and a copy do not ask what was
/// there.
///
/// # Errors
/// See [`ApplyFault`].
///
/// # Panics
/// If the record is about no page, or about another one.
pub fn apply(
    page: &mut Page,
    record: &Record<'_>,
    contents: &dyn Contents,
) -> Result<Applied, ApplyFault> {
    let at = record.what.link().expect("only records about a page are applied to one");
    let here = page.number();
    assert!(here == at.page || here == PageNumber::NONE, "page {here} is not page {}", at.page);
    if record.rsn <= page.rsn() {
        return Ok(Applied::Before);
    }
    let since_image_bytes = change(page, record, at, contents)?;
    assert!(page.number() == at.page, "contents do not turn a page into another");
    page.stamp(record.rsn, since_image_bytes);
    Ok(Applied::Now)
}

/// Changes the page, and returns how many bytes of records it has had since its last image.
fn change(
    page: &mut Page,
    record: &Record<'_>,
    at: PageLink,
    contents: &dyn Contents,
) -> Result<u32, ApplyFault> {
    if let What::Image { bytes, .. } = record.what {
        contents.restore(page, at.page, bytes)?;
        return Ok(0);
    }
    if let What::Copy { bytes, .. } = record.what {
        page.become_copy(bytes, at.page, record.rsn)?;
        return Ok(page.since_image_bytes());
    }
    if page.rsn() != at.before {
        return Err(ApplyFault::Chain { found: page.rsn(), before: at.before });
    }
    let record_bytes = u32::try_from(record.end.since(record.rsn)).unwrap_or(u32::MAX);
    let since_image_bytes = page.since_image_bytes().saturating_add(record_bytes);
    match record.what {
        What::Update { body, .. } | What::Compensate { body, .. } | What::System { body, .. } => {
            contents.apply(page, body)?;
        }
        _ => page.begin(at.page, PageKind::Free, PageNumber::NONE),
    }
    Ok(since_image_bytes)
}

#[cfg(test)]
pub(crate) mod tests;
