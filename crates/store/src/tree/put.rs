//! The one place where a tree's records are put and applied.
//!
//! Promise: a record has its place before its page changes, and the page changes by what redoes it;
//! the records of one call reach the log together or not at all; a page that had many records gets
//! an image.
//! Never: finds out that a change does not fit: who calls has looked, under the same latches.

use holdfast_pages::{
    Contents, IMAGE_EVERY_BYTES, Page, PageKind, PageLink, PageNumber, Record, Rsn, Slot,
    StageError, Stream, What, apply,
};

use crate::node::body::Body;
use crate::node::contents::NodeContents;
use crate::snapshot::former::Former;
use crate::snapshot::formers::Formers;

/// On whose behalf a page changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A transaction, which may undo it.
    Update(Slot),
    /// A transaction, which undoes its newest change that is not undone.
    Compensate(Slot),
    /// The tree itself; nobody undoes it.
    System,
}

/// A latched page, and what happens to it, in order.
pub(crate) struct Change<'a> {
    pub(crate) page: &'a mut Page,
    pub(crate) number: PageNumber,
    pub(crate) said: &'a [Said<'a>],
}

/// What is said of a page.
#[derive(Clone, Copy)]
pub(crate) enum Said<'a> {
    /// It changes so.
    Body(By, &'a [u8]),
    /// It is all this.
    Image(&'a [u8]),
    /// It begins, as this.
    Begin(&'a [u8]),
    /// It is not used any more.
    Free,
}

/// Changes these pages, and returns where the records of that end. After an error none has changed.
/// No key changes by that.
pub(crate) fn put(stream: &Stream, changes: &mut [Change<'_>]) -> Result<Rsn, StageError> {
    put_with(stream, changes, |_, _| ())
}

/// [`put`], of keys that change: what they were is kept for snapshots. A page that begins has keys
/// that the one before it had.
pub(crate) fn put_keys(
    stream: &Stream,
    formers: &Formers,
    changes: &mut [Change<'_>],
) -> Result<Rsn, StageError> {
    put_with(stream, changes, |changes, places| {
        if formers.are_wanted() {
            note(formers, changes, places);
        }
    })
}

/// Where each record stands, and where it ends.
type Places = [(Rsn, Rsn)];

/// [`put`]. `before` is called when the records have their places, and no page has changed.
#[inline]
fn put_with(
    stream: &Stream,
    changes: &mut [Change<'_>],
    before: impl Fn(&[Change<'_>], &Places),
) -> Result<Rsn, StageError> {
    let end = put_group(stream, changes, before)?;
    for change in changes {
        let is_free = change.page.kind() == Some(PageKind::Free);
        if !is_free && change.page.since_image_bytes() > IMAGE_EVERY_BYTES {
            let (mut image, number) = (Vec::new(), change.number);
            NodeContents.image(change.page, &mut image);
            let said = &[Said::Image(&image)];
            // The change is made. Without an image the page takes longer to rebuild, no more;
            // whoever changes it next tries again, and is told if the stream has failed.
            let image = &mut [Change { page: change.page, number, said }];
            let _ = put_group(stream, image, |_, _| ());
        }
    }
    Ok(end)
}

fn put_group(
    stream: &Stream,
    changes: &mut [Change<'_>],
    before: impl Fn(&[Change<'_>], &Places),
) -> Result<Rsn, StageError> {
    let mut places = Vec::with_capacity(changes.len());
    let end = stream.append(&mut |group| {
        for change in &*changes {
            let mut before = change.page.rsn();
            for said in change.said {
                let at = PageLink { page: change.number, before };
                let rsn = group.put(&said.what(at));
                places.push((rsn, group.next()));
                before = rsn;
            }
        }
    })?;
    before(changes, &places);
    let mut places = places.into_iter();
    for change in changes {
        for (said, (rsn, end)) in change.said.iter().zip(places.by_ref()) {
            let what = said.what(PageLink { page: change.number, before: change.page.rsn() });
            let applied = apply(change.page, &Record { rsn, end, what }, &NodeContents);
            applied.expect("who puts a change has seen that it fits");
        }
    }
    Ok(end)
}

/// Keeps what the keys are that are about to change.
#[cold]
fn note(formers: &Formers, changes: &[Change<'_>], places: &Places) {
    let (mut places, mut has_keys) = (places.iter(), None);
    for Change { page, said, .. } in changes {
        if !matches!(said.first(), Some(Said::Begin(_))) {
            has_keys = Some(&**page);
        }
        for (said, (rsn, _)) in said.iter().zip(places.by_ref()) {
            let Said::Body(_, body) = said else { continue };
            let spot = Body::parse(body).ok().and_then(|body| body.spot());
            if let (Some(spot), Some(page)) = (spot, has_keys) {
                formers.note(spot.tree, spot.key, *rsn, || {
                    let former = Former::in_page(page, spot.key);
                    former.expect("who changes a page has looked at it")
                });
            }
        }
    }
}

impl<'a> Said<'a> {
    /// The record that says so of a page.
    fn what(self, at: PageLink) -> What<'a> {
        match self {
            Said::Body(By::Update(slot), body) => What::Update { slot, at, body },
            Said::Body(By::Compensate(slot), body) => What::Compensate { slot, at, body },
            Said::Body(By::System, body) => What::System { at, body },
            Said::Image(bytes) => What::Image { at, bytes },
            Said::Free => What::Free { at },
            Said::Begin(bytes) => What::Image { at: PageLink { before: Rsn::NONE, ..at }, bytes },
        }
    }
}
