//! `holdfast log create`.
//!
//! Promise: an empty log with the label that was asked for, or nothing that counts as one.
//! Never: overwrites anything.

use super::keys;
use super::opened::AnyLog;
use crate::cli::log::CreateArgs;
use crate::output::Output;
use holdfast_attach::logs::THE_DISK;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::advice::cure;
use holdfast_wal::{CreateError, Options, Parity, RecordType};

/// Longest name in a label.
const NAME_BYTES_MAX: usize = 255;

/// Makes a log.
pub(super) fn create(args: &CreateArgs, output: Output) -> Outcome<()> {
    let CreateArgs { directory, record, format, segment, parity, key_file } = args;
    let what = format!("making a log in {}", directory.display());
    if record.is_empty() || record.len() > NAME_BYTES_MAX {
        let why = format!("a name has 1 to {NAME_BYTES_MAX} bytes");
        return Err(Problem::new(Exit::Usage, what, why, "correct --record"));
    }
    let records =
        RecordType { record: record.clone(), version: 1, format: format.text().to_owned() };
    let parity = if *parity { Parity::TenPercent } else { Parity::None };
    let options = Options::new().with_segment_bytes(*segment).with_parity(parity);
    let options = keys::with(options, key_file.as_deref())?;
    AnyLog::create_any(directory, &records, &options).map_err(|error| {
        let (exit, remedy) = match &error {
            CreateError::Options(_) => (Exit::Usage, "correct --segment".to_owned()),
            CreateError::Exists | CreateError::NotEmpty { .. } => {
                (Exit::Usage, "nothing was changed; name an empty directory".to_owned())
            }
            CreateError::Used { .. } => {
                let remedy = "nothing was changed; `holdfast log repair` saves what is there";
                (Exit::Damaged, remedy.to_owned())
            }
            CreateError::InUse => (Exit::InUse, "name another directory".to_owned()),
            CreateError::Io(error) => {
                (Exit::Failed, format!("{}, then make it again", cure(error, THE_DISK)))
            }
            _ => (Exit::Failed, "correct the cause, then make it again".to_owned()),
        };
        Problem::new(exit, what, error, remedy)
    })?;
    let text = format!("an empty log of `{record}`, {}: {}", format.text(), directory.display());
    output.done(&text);
    Ok(())
}
