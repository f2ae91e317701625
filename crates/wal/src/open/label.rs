//! The label of a log: whose records lie in it, how they are written, and under whose key.
//!
//! Byte table: FORMAT.md, "Label".
//!
//! Promise: a log is opened as what it was made as, or the difference has a name.
//! Never: changes once the log is made.

use holdfast_io::Files;
use holdfast_io::checksum::crc32c;

use crate::error::{LabelFault, OpenError};
use crate::format::Format;
use crate::key_mark::KeyMark;
use crate::options::Options;
use crate::record::Record;
use crate::sealing::Seal;

/// "HFWL"
const MAGIC: [u8; 4] = *b"HFWL";
/// The version of label and payload that this program reads and writes.
const VERSION: u32 = 1;
/// What precedes the two names.
const HEAD_BYTES: usize = 60;
/// In the field `seal`: the log is not sealed.
const PLAIN: u32 = 0;
/// In the field `seal`: AES-256-GCM-SIV under keys derived by HKDF-SHA256.
const SEALED: u32 = 1;

/// What a log says of its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// Of the log that it belongs to.
    pub(crate) identity: [u8; 16],
    pub(crate) record_version: u32,
    /// None if the log is not sealed.
    pub(crate) key: Option<KeyMark>,
    pub(crate) record: String,
    pub(crate) format: String,
}

impl Label {
    /// The label of a log of these records, made with these options.
    pub(crate) fn of<R: Record, F: Format<R>>(identity: [u8; 16], options: &Options) -> Label {
        const { assert!(is_name(R::NAME) && is_name(F::NAME), "a name has 1 to 255 bytes") };
        Label::named(identity, options, (R::NAME, R::VERSION), F::NAME)
    }

    /// The label of a log of records that are called so.
    pub(crate) fn named(
        identity: [u8; 16],
        options: &Options,
        (record, record_version): (&str, u32),
        format: &str,
    ) -> Label {
        let (record, format) = (record.to_owned(), format.to_owned());
        Label { identity, record_version, key: Seal::mark(options, identity), record, format }
    }

    /// Whether the log in the root of `files` has this label, whatever its key: that is returned.
    pub(crate) fn check(&self, files: &dyn Files) -> Result<Option<KeyMark>, OpenError> {
        let found = Label::read(files)?;
        if found.identity != self.identity {
            return Err(OpenError::Label(LabelFault::Foreign));
        }
        if found.record != self.record {
            return Err(OpenError::OtherRecord {
                found: found.record,
                wanted: self.record.clone(),
            });
        }
        if found.format != self.format {
            let wanted = self.format.clone();
            return Err(OpenError::OtherFormat { found: found.format, wanted });
        }
        if found.record_version != self.record_version {
            let (found, known) = (found.record_version, self.record_version);
            return Err(OpenError::OtherRecordVersion { found, known });
        }
        Ok(found.key)
    }

    /// The label in the root of `files`.
    pub(crate) fn read(files: &dyn Files) -> Result<Label, OpenError> {
        let bytes = holdfast_log::Log::label_of(files).map_err(OpenError::Io)?;
        Label::decode(&bytes)
    }

    /// The label as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.record.len() + self.format.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.identity);
        bytes.extend_from_slice(&self.record_version.to_le_bytes());
        bytes.extend_from_slice(&(self.record.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&(self.format.len() as u16).to_le_bytes());
        let key = self.key.unwrap_or(KeyMark { id: 0, check: [0; 16] });
        let seal = if self.key.is_some() { SEALED } else { PLAIN };
        bytes.extend_from_slice(&seal.to_le_bytes());
        bytes.extend_from_slice(&key.id.to_le_bytes());
        bytes.extend_from_slice(&key.check);
        bytes.extend_from_slice(self.record.as_bytes());
        bytes.extend_from_slice(self.format.as_bytes());
        let check = crc32c(0, &bytes[12..]);
        bytes[8..12].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Label, OpenError> {
        let fault = |fault| Err(OpenError::Label(fault));
        if bytes.is_empty() {
            return fault(LabelFault::Missing);
        }
        if bytes.len() < HEAD_BYTES || bytes[..4] != MAGIC {
            return fault(LabelFault::NoLabel);
        }
        let version = u32_at(bytes, 4);
        if version != VERSION {
            return Err(OpenError::OtherVersion { found: version, known: VERSION });
        }
        if u32_at(bytes, 8) != crc32c(0, &bytes[12..]) {
            return fault(LabelFault::Check);
        }
        let (names, record_bytes) = (&bytes[HEAD_BYTES..], u16_at(bytes, 32));
        let names = std::str::from_utf8(names).ok();
        let split = names.and_then(|names| names.split_at_checked(record_bytes.into()));
        let Some((record, format)) = split else { return fault(LabelFault::Check) };
        let key = match u32_at(bytes, 36) {
            PLAIN => None,
            SEALED => Some(KeyMark { id: u32_at(bytes, 40), check: array_at(bytes, 44) }),
            _ => return fault(LabelFault::Seal),
        };
        Ok(Label {
            identity: array_at(bytes, 12),
            record_version: u32_at(bytes, 28),
            key,
            record: record.to_owned(),
            format: format.to_owned(),
        })
    }
}

/// Whether a label can hold this as a name.
pub(crate) const fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 255
}

/// `N` bytes at `at`; the caller has checked the length.
fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of N bytes is N bytes long")
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}
