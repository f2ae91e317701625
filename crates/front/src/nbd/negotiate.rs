//! What is agreed on before the first request.
//!
//! Promise: offers only what the rest of this front end does; an option that is unknown, too long
//! or malformed is answered with an error, and the next one is heard.
//! Never: reads or changes a disk.
//!
//! Left out on purpose: extended headers (no request needs more than 32 bits of length).

use super::agreed::{Agreed, Security, Stage};
use super::buffers::Replies;
use super::export::Export;
use super::parse::{self, Fault, OptionRequest, Queries, Wants};
use super::reply;
use super::step::{Over, Step};
use super::wire::{self, option_reply, transmission};
use crate::complaints::Complaints;

/// A conversation that has not come to its first request.
pub(crate) struct Negotiation<'e> {
    pub(crate) exports: &'e [Export<'e>],
    pub(crate) stage: Stage,
    pub(crate) no_zeroes: bool,
    pub(crate) structured: bool,
    /// The export whose allocation was selected.
    pub(crate) context: Option<&'e Export<'e>>,
    /// Data of an option that are not looked at.
    pub(crate) skip_bytes: u32,
    pub(crate) security: Security,
    chosen: Option<&'e Export<'e>>,
}

impl<'e> Negotiation<'e> {
    pub(crate) fn new(exports: &'e [Export<'e>]) -> Self {
        Self {
            exports,
            stage: Stage::Greeting,
            no_zeroes: false,
            structured: false,
            context: None,
            skip_bytes: 0,
            security: Security::Plain,
            chosen: None,
        }
    }

    /// What was agreed on, once an export was chosen.
    pub(crate) fn result(&self) -> Option<(&'e Export<'e>, Agreed)> {
        let export = self.chosen?;
        let allocation = self.context.is_some_and(|of| of.name == export.name);
        Some((export, Agreed { structured: self.structured, allocation }))
    }

    pub(crate) fn step(
        &mut self,
        input: &[u8],
        out: &mut Replies,
        complaints: &mut Complaints,
    ) -> Step {
        match self.stage {
            Stage::Greeting => {
                reply::greeting(out);
                self.stage = Stage::Flags;
                Step::Used(0)
            }
            Stage::Flags => self.flags(input),
            Stage::Options if self.skip_bytes > 0 => self.skip(input),
            Stage::Options => self.option(input, out, complaints),
        }
    }

    fn flags(&mut self, input: &[u8]) -> Step {
        let Some(bytes) = input.first_chunk() else {
            return Step::Needs(wire::CLIENT_FLAGS_BYTES);
        };
        match parse::client_flags(*bytes) {
            Ok(flags) => {
                self.no_zeroes = flags.no_zeroes;
                self.stage = Stage::Options;
                Step::Used(bytes.len())
            }
            Err(fault) => Step::Over(Over::Fault(fault)),
        }
    }

    fn skip(&mut self, input: &[u8]) -> Step {
        if input.is_empty() {
            return Step::Needs(1);
        }
        let bytes = input.len().min(self.skip_bytes as usize);
        self.skip_bytes -= bytes as u32;
        Step::Used(bytes)
    }

    fn option(&mut self, input: &[u8], out: &mut Replies, complaints: &mut Complaints) -> Step {
        let Some((head, rest)) = input.split_first_chunk() else {
            return Step::Needs(wire::OPTION_HEAD_BYTES);
        };
        let head = match parse::option_head(head) {
            Ok(head) => head,
            Err(fault) => return Step::Over(Over::Fault(fault)),
        };
        if head.option == wire::option::SET_META_CONTEXT {
            // A selection that fails selects nothing.
            self.context = None;
        }
        if head.data_bytes > wire::OPTION_BYTES_MAX {
            complaints.say(format_args!("an option with {} bytes", head.data_bytes));
            return self.too_long(head, out);
        }
        let Some(data) = rest.get(..head.data_bytes as usize) else {
            return Step::Needs(wire::OPTION_HEAD_BYTES + head.data_bytes as usize);
        };
        let Some(asked) = parse::option_request(head.option, data) else {
            complaints.say(format_args!("option {} is malformed", head.option));
            refuse(out, head.option, option_reply::ERR_INVALID);
            return Step::Used(wire::OPTION_HEAD_BYTES + data.len());
        };
        if self.security == Security::Wanted {
            return self.secure(head, asked, out);
        }
        match self.answer(head.option, asked, out, complaints) {
            Ok(()) => Step::Used(wire::OPTION_HEAD_BYTES + data.len()),
            Err(over) => Step::Over(over),
        }
    }

    /// Starts TLS, and hears of nothing else. What was agreed on before may be a stranger's.
    fn secure(
        &mut self,
        head: parse::OptionHead,
        asked: OptionRequest<'_>,
        out: &mut Replies,
    ) -> Step {
        let used = wire::OPTION_HEAD_BYTES + head.data_bytes as usize;
        match asked {
            OptionRequest::StartTls => {
                reply::acknowledge(out, head.option);
                (self.structured, self.context) = (false, None);
                self.security = Security::Spoken;
                return Step::Secure { used };
            }
            OptionRequest::ExportName(_) => return Step::Over(Over::Fault(Fault::NotSecure)),
            OptionRequest::Abort => {
                reply::acknowledge(out, head.option);
                return Step::Over(Over::Parted);
            }
            _ => refuse(out, head.option, option_reply::ERR_TLS_REQD),
        }
        Step::Used(used)
    }

    fn too_long(&mut self, head: parse::OptionHead, out: &mut Replies) -> Step {
        if head.option == wire::option::EXPORT_NAME {
            return Step::Over(Over::Fault(Fault::NoSuchExport));
        }
        refuse(out, head.option, option_reply::ERR_TOO_BIG);
        self.skip_bytes = head.data_bytes;
        Step::Used(wire::OPTION_HEAD_BYTES)
    }

    fn answer(
        &mut self,
        option: u32,
        asked: OptionRequest<'_>,
        out: &mut Replies,
        complaints: &mut Complaints,
    ) -> Result<(), Over> {
        match asked {
            OptionRequest::ExportName(name) => {
                let export = self.find(name).ok_or(Over::Fault(Fault::NoSuchExport))?;
                let flags = flags(export, self.structured);
                reply::export(out, export.blocks.size_bytes(), flags, self.no_zeroes);
                self.chosen = Some(export);
            }
            OptionRequest::Abort => {
                reply::acknowledge(out, option);
                return Err(Over::Parted);
            }
            OptionRequest::List => {
                self.exports.iter().for_each(|export| reply::listed(out, option, export.name));
                reply::acknowledge(out, option);
            }
            OptionRequest::Info { name, go, wants } => match self.find(name) {
                Some(export) => {
                    self.tell(option, export, wants, out);
                    self.chosen = go.then_some(export);
                }
                None => no_such_export(option, name, out, complaints),
            },
            OptionRequest::StructuredReply => {
                self.structured = true;
                reply::acknowledge(out, option);
            }
            OptionRequest::MetaContext { name, set, queries } => match self.find(name) {
                _ if set && !self.structured => refuse(out, option, option_reply::ERR_INVALID),
                Some(export) => self.contexts(option, export, set, queries, out),
                None => no_such_export(option, name, out, complaints),
            },
            OptionRequest::StartTls if self.security == Security::Spoken => {
                refuse(out, option, option_reply::ERR_INVALID);
            }
            OptionRequest::StartTls | OptionRequest::Unknown => {
                refuse(out, option, option_reply::ERR_UNSUP)
            }
        }
        Ok(())
    }

    /// The empty name stands for the only export.
    fn find(&self, name: &[u8]) -> Option<&'e Export<'e>> {
        match self.exports {
            [only] if name.is_empty() => Some(only),
            exports => exports.iter().find(|export| export.name.as_bytes() == name),
        }
    }

    fn tell(&self, option: u32, export: &Export<'_>, wants: Wants, out: &mut Replies) {
        let flags = flags(export, self.structured);
        reply::info_export(out, option, export.blocks.size_bytes(), flags);
        if wants.name {
            reply::info_name(out, option, export.name);
        }
        if wants.block_size {
            reply::info_block_size(out, option);
        }
        reply::acknowledge(out, option);
    }

    /// A list without queries is one of everything; a selection without queries selects nothing.
    fn contexts(
        &mut self,
        option: u32,
        export: &'e Export<'e>,
        set: bool,
        queries: Queries<'_>,
        out: &mut Replies,
    ) {
        let mut found = !set && queries.iter().next().is_none();
        found |= queries.iter().any(|query| query == wire::ALLOCATION);
        found |= !set && queries.iter().any(|query| query == wire::BASE);
        if found {
            // A list does not promise that the number will be the same.
            reply::context(out, option, if set { wire::ALLOCATION_ID } else { 0 });
        }
        if set {
            self.context = found.then_some(export);
        }
        reply::acknowledge(out, option);
    }
}

/// What an export can do. "Fast zeroes" only says that a request for them is understood.
pub(crate) fn flags(export: &Export<'_>, structured: bool) -> u16 {
    use transmission as can;
    let always = can::HAS_FLAGS | can::SEND_FLUSH | can::SEND_FUA;
    let always = always | can::CAN_MULTI_CONN | can::SEND_CACHE;
    let changes = can::SEND_TRIM | can::SEND_WRITE_ZEROES | can::SEND_FAST_ZERO;
    let whether = |is: bool, flag: u16| if is { flag } else { 0 };
    always
        | whether(structured, can::SEND_DF)
        | whether(export.read_only, can::READ_ONLY)
        | whether(!export.read_only, changes)
}

fn no_such_export(option: u32, name: &[u8], out: &mut Replies, complaints: &mut Complaints) {
    let shown = String::from_utf8_lossy(&name[..name.len().min(64)]);
    complaints.say(format_args!("there is no export {shown:?}"));
    refuse(out, option, option_reply::ERR_UNKNOWN);
}

fn refuse(out: &mut Replies, option: u32, kind: u32) {
    let text = match kind {
        option_reply::ERR_UNSUP => "this server does not do that",
        option_reply::ERR_INVALID => "the option is malformed, or out of place",
        option_reply::ERR_TLS_REQD => "this server speaks TLS only",
        option_reply::ERR_UNKNOWN => "there is no such export",
        _ => "the option is too long",
    };
    reply::refuse_option(out, option, kind, text);
}
