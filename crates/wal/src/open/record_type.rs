//! What a log says of its records.
//!
//! Promise: what the label says, and nothing else.
//! Never: looks at a record.

use holdfast_io::Files;

use crate::error::{LabelFault, OpenError};
use crate::open::label::Label;
use crate::options::Options;

/// What a log says of its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordType {
    /// What their type is called: [`crate::Record::NAME`], 1 to 255 bytes.
    pub record: String,
    /// Its version: [`crate::Record::VERSION`].
    pub version: u32,
    /// What the format is called that they are written in: [`crate::format::Format::NAME`], 1 to
    /// 255 bytes.
    pub format: String,
}

impl RecordType {
    /// What the log in the root of `files` says.
    pub(crate) fn at(files: &dyn Files) -> Result<RecordType, OpenError> {
        holdfast_log::Log::identity_of(files)?;
        Label::read(files).map(RecordType::from)
    }

    /// [`RecordType::at`]; None of a log without a label, which says nothing of its records.
    pub(crate) fn told_at(files: &dyn Files) -> Result<Option<RecordType>, OpenError> {
        match RecordType::at(files) {
            Err(OpenError::Label(LabelFault::Missing)) => Ok(None),
            told => told.map(Some),
        }
    }

    pub(crate) fn label(&self, identity: [u8; 16], options: &Options) -> Label {
        Label::named(identity, options, (&self.record, self.version), &self.format)
    }
}

impl From<Label> for RecordType {
    fn from(label: Label) -> RecordType {
        let Label { record, record_version: version, format, .. } = label;
        RecordType { record, version, format }
    }
}
