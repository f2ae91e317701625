//! The cleaner: what the device's log has becomes what the home has.
//!
//! Promise: one step applies one window of frames, syncs the home, says so in the log, waits until
//! the device has that, and only then gives the ring's bytes back. A step that fails changes
//! nothing that matters: it is repeated from the log.
//! Never: runs ahead of the durable mark, so the home is never ahead of the log.

mod apply;
pub(crate) mod aside;
pub(crate) mod cleaner;
pub(crate) mod error;
pub(crate) mod forecast;
pub(crate) mod frames;
pub(crate) mod in_turn;
pub(crate) mod pace;
mod plan;
pub(crate) mod room;

use holdfast_io::Files;
use holdfast_log::{AppendError, CommitError, Frame, Lsn};

use crate::clean::apply::{Applier, Blame, exchange_marker};
use crate::clean::aside::{Aside, Lost, RecordId, Whole};
use crate::clean::cleaner::Cleaner;
use crate::clean::error::{Act, CleanError};
use crate::clean::frames::{WindowMax, decode, tells_inodes};
use crate::clean::pace::Pace;
use crate::clean::plan::{Contents, Pass, Window};
use crate::node::Node;
use crate::overlay::extents::Piece;
use crate::own::{self, ORPHANS_NAME};
use crate::record::{Op, Record};
use crate::volume::DirectoryVolume;
use crate::words;

/// Pieces of an overlay that are let go of at a time: some ten microseconds.
const PIECES_AT_ONCE: usize = 128;

/// What one step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Records applied.
    pub records: u64,
    /// Bytes written to the home.
    pub bytes: u64,
    /// Bytes of the ring given back.
    pub released_bytes: u64,
    /// More was durable than one window takes.
    pub more: bool,
}

impl Cleaned {
    /// True if there was nothing to do.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.records == 0
    }
}

/// Why a window was not applied.
enum Stopped {
    Error(CleanError),
    /// The home refused what these records of the window want.
    Refused(CleanError, Blame, Lsn),
}

impl From<CleanError> for Stopped {
    fn from(error: CleanError) -> Stopped {
        Stopped::Error(error)
    }
}

impl Cleaner {
    /// Applies one window, if anything is durable and not applied. What somebody ordered to be put
    /// aside is, when it is met.
    pub(crate) fn step(
        &mut self,
        volume: &DirectoryVolume,
        pace: Pace<'_>,
    ) -> Result<Cleaned, CleanError> {
        loop {
            match self.try_step(volume, pace) {
                Ok(cleaned) => return Ok(cleaned),
                Err(Stopped::Error(error)) => return Err(error),
                Err(Stopped::Refused(error, blame, upto)) => {
                    if !self.puts_aside(volume, &error, blame, upto)? {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Puts the records that are to blame aside, if somebody ordered that; tells people otherwise.
    fn puts_aside(
        &mut self,
        volume: &DirectoryVolume,
        error: &CleanError,
        blame: Blame,
        upto: Lsn,
    ) -> Result<bool, CleanError> {
        if !self.aside.can_put() {
            return Ok(false);
        }
        let mut records = self.blamed(volume, blame, upto)?;
        if let Some(wide) = blame.widened().filter(|_| records.is_empty()) {
            records = self.blamed(volume, wide, upto)?;
        }
        let Some(lsn) = records.first().map(|whole| whole.id.frame) else { return Ok(false) };
        if self.aside.is_ordered(lsn).map_err(CleanError::Aside)? {
            let errno = u32::try_from(error.errno()).unwrap_or(0);
            self.aside.put(&records, errno).map_err(CleanError::Aside)?;
            return Ok(true);
        }
        let count = records.len();
        let text = format!("lsn {lsn}\n{error}\nrecords {count}\n");
        // The error itself is what matters; whoever asks for the note finds none.
        let _ = self.aside.tell(&text, volume.clock.utc_ns());
        Ok(false)
    }

    /// The records between here and `upto` that are to blame, whole.
    fn blamed(
        &self,
        volume: &DirectoryVolume,
        blame: Blame,
        upto: Lsn,
    ) -> Result<Vec<Whole>, CleanError> {
        let (mut found, mut fault) = (Vec::new(), None);
        let read = volume.log.read(self.applied, upto, &mut |frame| {
            let lsn = frame.header.lsn;
            let records = match decode(lsn, frame.payload, frame.payload_lsn) {
                Ok(records) => records,
                Err(error) => {
                    fault = Some(error);
                    return false;
                }
            };
            for (index, (record, data)) in records.iter().enumerate() {
                let id = RecordId { frame: lsn, index: index as u32 };
                if blame.falls_on(record, lsn, *data) && !self.aside.holds(id) {
                    let data =
                        data_of(record, &frame.payload[data.since(frame.payload_lsn) as usize..]);
                    found.push(Whole::of(id, record, data));
                }
            }
            true
        });
        read.map_err(CleanError::Read)?;
        fault.map_or(Ok(found), Err)
    }

    fn try_step(&mut self, volume: &DirectoryVolume, pace: Pace<'_>) -> Result<Cleaned, Stopped> {
        let begun = begun(volume)?;
        let limit = self.limit(volume, begun);
        self.settle_mark(volume)?;
        if self.applied >= limit {
            return Ok(Cleaned::default());
        }
        let (window, upto, lost) = self.expected_window(volume, limit, begun)?;
        if window.records == 0 && !volume.is_room_wanted() {
            // Nothing but marks and padding, which the next window passes over too.
            return Ok(Cleaned::default());
        }
        let finishing = begun.filter(|end| *end > upto);
        set_word(volume, words::WINDOW_END, finishing.unwrap_or(upto).0)?;
        volume.names_mut().never_come_home(&window.unmade);
        let damaged = volume.log.verify(upto, upto).map_err(CleanError::Read)?;
        let mut applier = Applier::new(volume, pace);
        let bytes = applier.run(&window, upto).map_err(|error| match (error, applier.blame) {
            (error @ CleanError::Home { .. }, Some(blame)) => Stopped::Refused(error, blame, upto),
            (error, _) => Stopped::Error(error),
        })?;
        if volume.log.verify(self.applied, upto).map_err(CleanError::Read)? != damaged {
            // Memory was damaged while it was copied from; the log has by now what is right.
            return self.try_step(volume, pace);
        }
        volume.note_touched().map_err(Stopped::Error)?;
        self.aside.gone_on().map_err(CleanError::Aside)?;
        volume.space.came_home(upto);
        set_word(volume, words::HOME_ERRNO, 0)?;
        let released_bytes = upto.since(self.applied);
        note_applied(volume, upto)?;
        settle(volume, &window, upto);
        volume.log.release(upto);
        volume.shares.came_home(upto);
        volume.names_mut().end_making();
        for at in window.exchanges() {
            // One that stays means nothing, and goes when the volume is detached.
            let _ = volume.home.remove_file(&exchange_marker(at));
        }
        self.applied = upto;
        self.aside.lose(lost);
        self.repeats = finishing.is_some();
        volume.log.add_to_word(words::WINDOWS, 1);
        volume.log.add_to_word(words::APPLIED_BYTES, bytes);
        Ok(Cleaned { records: window.records, bytes, released_bytes, more: upto < limit })
    }

    /// The mark of the process before is durable before more is applied: a machine that stops then
    /// must not begin below it, with a home that has a part of what comes behind it.
    fn settle_mark(&mut self, volume: &DirectoryVolume) -> Result<(), CleanError> {
        if !self.mark_is_durable {
            volume.log.commit(volume.log.marks().tail).map_err(CleanError::Log)?;
            self.mark_is_durable = true;
        }
        Ok(())
    }

    /// Where the next window ends at the latest. One that was begun and not finished, by this
    /// process or one before it, is finished first, and nothing more.
    fn limit(&self, volume: &DirectoryVolume, begun: Option<Lsn>) -> Lsn {
        match begun {
            Some(end) if end > self.applied => end,
            _ => volume.log.marks().durable,
        }
    }

    /// The same window, where it begins those behind it so that they are as many as was expected,
    /// or nearly so: where what the device has ends, it may be that what has been logged since
    /// does not go together from there on. Then the device is to have that first.
    fn expected_window(
        &mut self,
        volume: &DirectoryVolume,
        limit: Lsn,
        begun: Option<Lsn>,
    ) -> Result<(Window, Lsn, Lost), CleanError> {
        let planned = self.window(volume, limit)?;
        let is_begun = begun.is_some_and(|end| end > self.applied);
        if volume.expect_windows_from(planned.1, is_begun)? {
            return Ok(planned);
        }
        volume.log.commit(volume.log.marks().tail).map_err(CleanError::Log)?;
        let planned = self.window(volume, volume.log.marks().durable)?;
        volume.expect_windows_from(planned.1, true)?;
        Ok(planned)
    }

    /// The longest window from the applied mark, where it ends, and what is lost behind it.
    fn window(
        &mut self,
        volume: &DirectoryVolume,
        durable: Lsn,
    ) -> Result<(Window, Lsn, Lost), CleanError> {
        let mut window = Window::new(self.repeats);
        window.tells_inodes = tells_inodes(&*volume.home);
        window.unit = volume.space.unit;
        let max = WindowMax::of(&*volume.home, volume.log.ring_bytes());
        let mut end = Ok(durable);
        let (aside, mut dependent) = (&self.aside, Vec::new());
        let mut lost = aside.lost();
        let read = volume.log.read(self.applied, durable, &mut |frame| {
            let lsn = frame.header.lsn;
            let records = decode(lsn, frame.payload, frame.payload_lsn);
            let taken = records.map(|records| {
                let is_full = max.is_reached(&window, self.applied, lsn);
                let mut behind = lost.clone();
                let passed = passed(aside, &mut behind, lsn, &records);
                let is_taken = !is_full && window.take(lsn, &records, &passed);
                if is_taken {
                    lost = std::mem::take(&mut behind);
                    dependent.extend(dependents(aside, frame, &records, &passed));
                }
                is_taken
            });
            let goes_on = matches!(taken, Ok(true));
            if !goes_on {
                end = taken.map(|_| lsn);
            }
            goes_on
        });
        read.map_err(CleanError::Read)?;
        window.settle_links();
        self.aside.put(&dependent, 0).map_err(CleanError::Aside)?;
        Ok((window, end?, lost))
    }
}

/// Which of a frame's records are aside already, or cannot be applied without what is.
fn passed(aside: &Aside, lost: &mut Lost, frame: Lsn, records: &[(Record<'_>, Lsn)]) -> Vec<Pass> {
    let ids = (0..).map(|index| RecordId { frame, index });
    let all = ids.zip(records);
    all.map(|(id, (record, _))| match lost.passes_over(aside.holds(id), record) {
        false => Pass::Applied,
        true if aside.was_refused(id) => Pass::Refused,
        true => Pass::Depends,
    })
    .collect()
}

/// The passed records of a frame that are not aside yet, whole.
fn dependents(
    aside: &Aside,
    frame: &Frame<'_>,
    records: &[(Record<'_>, Lsn)],
    passed: &[Pass],
) -> Vec<Whole> {
    let ids = (0..).map(|index| RecordId { frame: frame.header.lsn, index });
    let all = ids.zip(records).zip(passed);
    let new = all.filter(|((id, _), pass)| **pass == Pass::Depends && !aside.holds(*id));
    new.map(|((id, (record, data)), _)| {
        let rest = &frame.payload[data.since(frame.payload_lsn) as usize..];
        Whole::of(id, record, data_of(record, rest))
    })
    .collect()
}

/// The data of a record, which `rest` of its frame's payload begins with.
fn data_of<'a>(record: &Record<'_>, rest: &'a [u8]) -> &'a [u8] {
    match record.op {
        Op::Write { bytes, .. } => &rest[..bytes as usize],
        _ => &[],
    }
}

/// Sets a word that the next process goes by.
fn set_word(volume: &DirectoryVolume, word: usize, value: u64) -> Result<(), CleanError> {
    volume.log.set_word(word, value).map_err(CleanError::Word)
}

/// Where the window ends that was begun last.
fn begun(volume: &DirectoryVolume) -> Result<Option<Lsn>, CleanError> {
    let end = volume.log.word(words::WINDOW_END).map_err(CleanError::Word)?;
    Ok((end > 0).then_some(Lsn(end)))
}

/// Finishes the window that a process died in, so that the home is where the log says it is. What
/// the home refuses does not keep anybody from serving, as long as no names are half changed.
pub(crate) fn finish_begun(volume: &DirectoryVolume) -> Result<u64, CleanError> {
    let mut bytes = 0;
    while let Some(end) = begun(volume)?.filter(|end| *end > volume.log.marks().released) {
        let cleaned = match volume.clean_step() {
            Err(error @ CleanError::Home { .. }) if !changes_names(volume, end)? => {
                set_word(volume, words::HOME_ERRNO, error.errno())?;
                break;
            }
            cleaned => cleaned?,
        };
        bytes += cleaned.bytes;
        if cleaned.is_idle() {
            break;
        }
    }
    Ok(bytes)
}

/// Whether a record that is not known to be at home, below `end`, changes a name. All others say
/// what is, and not what becomes of it: memory is rebuilt from them over any part of them.
fn changes_names(volume: &DirectoryVolume, end: Lsn) -> Result<bool, CleanError> {
    let mut found = Ok(false);
    let read = volume.log.read(volume.log.marks().released, end, &mut |frame| {
        let lsn = frame.header.lsn;
        let records = decode(lsn, frame.payload, frame.payload_lsn);
        found = records.map(|records| records.iter().any(|(record, _)| record.changes_names()));
        matches!(found, Ok(false))
    });
    read.map_err(CleanError::Read)?;
    found
}

/// Says in the log, durably, that the home has everything below `upto`.
fn note_applied(volume: &DirectoryVolume, upto: Lsn) -> Result<(), CleanError> {
    loop {
        match volume.log.mark(upto) {
            Ok(()) => break,
            Err(AppendError::Poisoned(error)) => {
                return Err(CleanError::Log(CommitError::Poisoned(error)));
            }
            Err(AppendError::Unreachable(error)) => {
                return Err(CleanError::Log(CommitError::Unreachable(error)));
            }
            Err(AppendError::Unmarked(error)) => {
                return Err(CleanError::Log(CommitError::Unprepared(error)));
            }
            // A mark needs no room, so only undrained bytes can be in the way. By now another may
            // have drained them, and then this returns at once.
            Err(_) => volume.log.commit(volume.log.marks().tail).map_err(CleanError::Log)?,
        }
    }
    volume.log.commit(volume.log.marks().tail).map_err(CleanError::Log)
}

/// The overlay lets go of what the home has.
fn settle(volume: &DirectoryVolume, window: &Window, upto: Lsn) {
    for id in &window.nodes {
        let node = volume.names().entry(*id).map(|entry| entry.node.clone());
        let Some(node) = node else { continue };
        // A node that lost or changed names may have lost contents that the window knew.
        let is_all = window.steps.is_empty() && !window.passes_over;
        let contents = window.contents.get(id).filter(|_| is_all);
        match contents {
            Some(contents) => settle_pieces(&node, contents, upto),
            None => node.body_mut().applied(upto),
        }
        node.body_mut().let_go(upto);
        if !node.is_remembered() {
            volume.names_mut().drop_if_clean(*id, upto);
        }
    }
}

/// Lets go of as many pieces at a time as whoever uses the node can wait for. Cuts go first: behind
/// one that counts nothing is looked for in the home.
fn settle_pieces(node: &Node, contents: &Contents, upto: Lsn) {
    node.body_mut().applied_cuts(upto);
    let pieces: Vec<Piece> = contents.extents.iter().collect();
    for pieces in pieces.chunks(PIECES_AT_ONCE) {
        node.body_mut().applied_pieces(pieces, upto);
    }
    debug_assert!(
        node.body().extents.iter().all(|piece| piece.at >= upto),
        "a piece was forgotten"
    );
}

/// Removes what only a mounted volume needs; the root then has this time, or the one that it had.
pub(crate) fn remove_orphans(home: &dyn Files, root_ns: Option<i128>) -> Result<(), CleanError> {
    let path = crate::names::paths::to_path(ORPHANS_NAME.to_vec());
    own::remove(home, root_ns).map_err(|error| CleanError::home(Act::Remove, &path, error))
}
