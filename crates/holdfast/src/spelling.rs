//! Bytes and positions as people read and write them.
//!
//! Promise: `parse(&text(bytes)) == Ok(bytes)` for all bytes; no text has a control character, so
//! a tab or the end of a line can stand behind it.
//! Never: guesses: digits are bytes only behind `0x`.

use std::fmt::Write;

/// What stands before hexadecimal digits.
const DIGITS: &str = "0x";

/// Bytes as text: as they are if they can be printed, otherwise as `0x` and hexadecimal digits.
pub(crate) fn text(bytes: &[u8]) -> String {
    match printable(bytes).filter(|text| !text.starts_with(DIGITS)) {
        Some(text) => text.to_owned(),
        None => format!("{DIGITS}{}", hexadecimal(bytes)),
    }
}

/// The bytes of a text. The error is a sentence.
pub(crate) fn parse(text: &str) -> Result<Vec<u8>, String> {
    let Some(digits) = text.strip_prefix(DIGITS) else { return Ok(text.as_bytes().to_vec()) };
    let pairs = digits.as_bytes().chunks(2).map(byte);
    pairs.collect::<Option<_>>().ok_or_else(|| {
        format!(
            "`{text}` begins with {DIGITS}, and does not go on with pairs of hexadecimal digits"
        )
    })
}

/// The text that bytes are, if it has no control character.
pub(crate) fn printable(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.chars().any(char::is_control))
}

/// Two digits a byte.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        let _infallible = write!(digits, "{byte:02x}");
        digits
    })
}

/// A position in a log, as it is printed: `LSN`, or `LSN.INDEX` of the first record of a set. The
/// error is a sentence.
pub(crate) fn position(text: &str) -> Result<u64, String> {
    let (lsn, index) = text.split_once('.').unwrap_or((text, "0"));
    let refused = || format!("`{text}` is no position such as 4096, or 4096.0 of a record");
    let number = |digits: &str| digits.parse::<u64>().map_err(|_| refused());
    match (number(lsn)?, number(index)?) {
        (lsn, 0) => Ok(lsn),
        (lsn, _) => Err(format!(
            "`{text}` is in the middle of a set, which goes or stays as a whole: it begins at {lsn}"
        )),
    }
}

fn byte(pair: &[u8]) -> Option<u8> {
    let &[high, low] = pair else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(16 * digit(high)? + digit(low)?).ok()
}

#[cfg(test)]
mod tests;
