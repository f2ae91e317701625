//! The file with the keys of a sealed log.
//!
//! Promise: a file that others may read or write, or that holds anything but keys, is refused
//! before the log is touched; what was read of it is wiped.
//! Never: shows a key, or a line of the file.

use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_wal::{Keys, Options};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use zeroize::Zeroizing;

/// What the group and all others may do with a file.
const OTHERS: u32 = 0o077;

/// Longest file of keys.
const FILE_BYTES_MAX: u64 = 1 << 16;

type Key = (u32, Zeroizing<[u8; 32]>);

/// Options with the keys of a file, if there is one.
pub(super) fn with(options: Options, file: Option<&Path>) -> Outcome<Options> {
    let Some(file) = file else { return Ok(options) };
    let problem = |exit, why: &str, remedy: &str| {
        Problem::new(exit, format!("reading the keys in {}", file.display()), why, remedy)
    };
    let refused = |error: std::io::Error| problem(Exit::Failed, &error.to_string(), "see to it");
    let opened = File::open(file).map_err(refused)?;
    if opened.metadata().map_err(refused)?.mode() & OTHERS != 0 {
        let remedy = format!("run `chmod 600 {}`; if others were, make new keys", file.display());
        return Err(problem(Exit::Usage, "others than its owner may open it", &remedy));
    }
    // With all its room from the start: what grows leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(FILE_BYTES_MAX as usize));
    opened.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(refused)?;
    let keys = ring(&text).map_err(|why| {
        problem(Exit::Usage, &why, "a line is an id, a space and the key's 64 hexadecimal digits")
    })?;
    Ok(options.with_keys(keys))
}

/// The keys of a file's text.
fn ring(text: &str) -> Result<Keys, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let keys =
        lines.map(|(at, line)| key(line).ok_or_else(|| format!("line {} is no key", at + 1)));
    let keys = keys.collect::<Result<Vec<Key>, _>>()?;
    let keys: Vec<(u32, &[u8; 32])> = keys.iter().map(|(id, key)| (*id, &**key)).collect();
    let (current, older) = keys.split_first().ok_or("it is empty")?;
    Keys::new(*current, older).map_err(|fault| fault.to_string())
}

/// The key of a line.
fn key(line: &str) -> Option<Key> {
    let (id, digits) = line.trim().split_once(char::is_whitespace)?;
    let digits = digits.trim().as_bytes();
    let mut key = Zeroizing::new([0; 32]);
    if digits.len() != 2 * key.len() {
        return None;
    }
    for (byte, [high, low]) in key.iter_mut().zip(digits.as_chunks().0) {
        let digit = |digit: &u8| char::from(*digit).to_digit(16);
        *byte = (16 * digit(high)? + digit(low)?) as u8;
    }
    Some((id.parse().ok()?, key))
}
