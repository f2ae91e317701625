//! Windows that end where nobody expected it, and what comes of that.
//!
//! Promise: what nobody has paid for turns out to be work of whoever made it.
//! Never: keeps others from logging for longer than it takes to read a little of the log.

use holdfast_log::Lsn;

use super::{End, Outline, WINDOW_WORK_BYTES};
use crate::clean::error::CleanError;
use crate::clean::frames::decode;
use crate::volume::DirectoryVolume;

/// Log that is looked at while no name can be changed, at the most but for what came meanwhile.
const READ_BYTES: u64 = 64 << 10;
/// How often one tries to come so near to the end of the log.
const READS_MAX: u32 = 4;

impl Outline {
    /// Takes in what the log has between the two.
    fn read(&mut self, volume: &DirectoryVolume, from: Lsn, to: Lsn) -> Result<(), CleanError> {
        let mut fault = Ok(());
        let read = volume.log.read(from, to, &mut |frame| {
            let lsn = frame.header.lsn;
            let records = decode(lsn, frame.payload, frame.payload_lsn);
            fault = records.map(|records| {
                self.take(lsn, &records);
            });
            fault.is_ok()
        });
        read.map_err(CleanError::Read)?;
        fault
    }
}

impl DirectoryVolume {
    /// A window ends at `upto`, where nobody may have expected it: it takes what the device has,
    /// and the windows behind it begin there. Those that nobody has paid for turn out to be work of
    /// whoever made them, if that is final. Otherwise false if there are any.
    pub(crate) fn expect_windows_from(
        &self,
        upto: Lsn,
        is_final: bool,
    ) -> Result<bool, CleanError> {
        let Some(mut outline) = self.forecast.outline().begins_anew_at(upto) else {
            return Ok(true);
        };
        let mut at = upto;
        for _ in 0..READS_MAX {
            let tail = self.log.marks().tail;
            if tail.since(at) <= READ_BYTES {
                break;
            }
            outline.read(self, at, tail)?;
            at = tail;
        }
        // Nobody logs a change of names meanwhile.
        let _names = self.names_mut();
        outline.read(self, at, self.log.marks().tail)?;
        let mut known = self.forecast.outline();
        let is_unpaid = |end: &&End| !end.is_full && !known.ends_at(end.at);
        let unpaid: Vec<Lsn> = outline.ends.iter().filter(is_unpaid).map(|end| end.at).collect();
        if !unpaid.is_empty() && !is_final {
            return Ok(false);
        }
        for lsn in unpaid {
            self.shares.turns_out(lsn, WINDOW_WORK_BYTES);
        }
        *known = outline;
        Ok(true)
    }
}
