//! Names and texts from strangers, for a terminal.
//!
//! Promise: what is shown moves no cursor, changes no colour and reverses no order; a name stays in
//! its line, and two names that differ look different.
//! Never: changes a character that can be seen, but the backslash of a name, which is doubled;
//! makes JSON anything else than the same JSON.

use std::ffi::OsStr;
use std::fmt::{self, Display, Formatter, Write};
use std::os::unix::ffi::OsStrExt;

/// Bytes that somebody else chose, made fit to be printed.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    bytes: &'a [u8],
    is_name: bool,
}

impl<'a> Shown<'a> {
    /// A name, such as a file's or a process's, as it stands within a line.
    #[must_use]
    pub fn name(name: &'a (impl AsRef<OsStr> + ?Sized)) -> Shown<'a> {
        Shown { bytes: name.as_ref().as_bytes(), is_name: true }
    }

    /// A text of lines, which may have names in it that nobody looked at.
    #[must_use]
    pub fn text(text: &'a str) -> Shown<'a> {
        Shown { bytes: text.as_bytes(), is_name: false }
    }

    fn stays(self, one: char) -> bool {
        match one {
            '\n' | '\t' | '\\' => !self.is_name,
            one => !misleads(one),
        }
    }

    fn write(self, one: char, f: &mut Formatter<'_>) -> fmt::Result {
        match one {
            one if self.stays(one) => f.write_char(one),
            '\\' => f.write_str("\\\\"),
            one => write!(f, "\\u{:04x}", u32::from(one)),
        }
    }
}

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for chunk in self.bytes.utf8_chunks() {
            match chunk.valid() {
                seen if seen.chars().all(|one| self.stays(one)) => f.write_str(seen)?,
                valid => valid.chars().try_for_each(|one| self.write(one, f))?,
            }
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        Ok(())
    }
}

/// What a terminal obeys instead of showing it, or shows as nothing, or as the end of a line.
fn misleads(one: char) -> bool {
    let is_unseen = matches!(one,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}');
    one.is_control() || is_unseen
}

#[cfg(test)]
mod tests;
