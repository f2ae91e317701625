//! A small file beside a log, in two slots that are written in turn, and a copy of it.
//!
//! Byte table: FORMAT.md, "Slots".
//!
//! What is noted decides whether acknowledged changes are missed, so that one file that is lost,
//! damaged or an older one costs nothing: the newest note of both counts.
//!
//! A full disk keeps nobody from noting something: the file has its room from the beginning and is
//! written over. Each slot has a number and a check; the newer one that is whole counts, and the
//! other is the next to be written. What an earlier version left, one text that was replaced by
//! another file, becomes such a file when it is next written.
//!
//! Promise: what is noted is the old note or the new one, whole, whatever happens meanwhile, and
//! survives a power cut; no room is wanted for it but the first time, or if it grows.
//! Never: knows what a note says.

use super::common::{FORMAT, Note, may_die_here};
use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, OpenFile, OpenHow};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;

/// How a slot begins; its number follows.
const HEAD: &str = "slot ";
/// The smallest slot: a block of the disk, so that no write goes over both.
const SLOT_BYTES_MIN: usize = 4096;
/// More than both slots of a note ever need; bounds what is read.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// The note of that name in the root of `files`.
pub(super) fn get<T: DeserializeOwned>(files: &dyn Files, name: &str) -> io::Result<Note<T>> {
    let mut both = read_both(files, name)?;
    if both.newest().is_none() && !both.is_missing() {
        // Somebody may have been writing it.
        both = read_both(files, name)?;
    }
    let body = match both.newest() {
        Some((_, body)) => body,
        None if both.is_missing() => return Ok(Note::Missing),
        None => return Ok(Note::Unreadable),
    };
    let value = serde_json::from_str::<serde_json::Value>(body).ok();
    let known = value.filter(|value| value["format"] == FORMAT);
    let read = known.and_then(|value| serde_json::from_value(value).ok());
    Ok(read.map_or(Note::Unreadable, Note::Found))
}

/// Makes this the note of that name: when it returns, it is, in both files, and survives a power
/// cut. A copy for which there was never room is done without.
pub(super) fn put<T: Serialize>(files: &dyn Files, name: &str, note: &T) -> io::Result<()> {
    let body = serde_json::to_string(note)?;
    let both = read_both(files, name)?;
    let number = both.newest().map_or(0, |(number, _)| *number) + 1;
    let text = encode(number, &body);
    put_in(files, name, &text, both.first.as_ref())?;
    match put_in(files, &copy_of(name), &text, both.copy.as_ref()) {
        Err(error) if both.copy.is_none() && is_full(&error) => Ok(()),
        written => written,
    }
}

fn put_in(files: &dyn Files, name: &str, text: &str, slots: Option<&Slots>) -> io::Result<()> {
    may_die_here();
    let free = slots.and_then(|slots| slots.free);
    match free.filter(|free| text.len() <= free.bytes) {
        Some(free) => write_over(files, name, text, free),
        None => replace(files, name, text),
    }
}

/// Behind the name of the second file.
const COPY: &str = ".copy";

fn copy_of(name: &str) -> String {
    format!("{name}{COPY}")
}

/// The note of which a file of this name is either copy.
pub(super) fn name_in(file: &str) -> &str {
    file.strip_suffix(COPY).unwrap_or(file)
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// What the two files of a note say; nothing of one that is missing.
struct Both {
    first: Option<Slots>,
    copy: Option<Slots>,
}

impl Both {
    fn is_missing(&self) -> bool {
        self.first.is_none() && self.copy.is_none()
    }

    fn newest(&self) -> Option<&(u64, String)> {
        let whole = [&self.first, &self.copy].into_iter().flatten();
        whole.filter_map(|slots| slots.newest.as_ref()).max_by_key(|(number, _)| *number)
    }
}

fn read_both(files: &dyn Files, name: &str) -> io::Result<Both> {
    Ok(Both { first: read(files, name)?, copy: read(files, &copy_of(name))? })
}

/// Where the next note goes, if the file has two slots.
#[derive(Clone, Copy, Debug)]
struct Free {
    at: usize,
    bytes: usize,
}

/// What a file says, and where there is room in it.
#[derive(Debug, Default)]
struct Slots {
    newest: Option<(u64, String)>,
    free: Option<Free>,
}

fn read(files: &dyn Files, name: &str) -> io::Result<Option<Slots>> {
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("the file \"{name}\" beside the log: {error}"))
    };
    let file = match files.open(Path::new(name), OpenHow::default()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(named)?,
    };
    let bytes = contents(&*file).map_err(named)?;
    Ok(Some(parse(&bytes)))
}

fn contents(file: &dyn OpenFile) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.size_bytes.min(FILE_BYTES_MAX);
    let mut bytes = vec![0; size as usize];
    let got = file.read_full_at(&mut bytes, 0)?;
    bytes.truncate(got);
    Ok(bytes)
}

fn parse(bytes: &[u8]) -> Slots {
    let half = bytes.len() / 2;
    if half < SLOT_BYTES_MIN {
        return Slots { newest: text_of_before(bytes).map(|body| (0, body)), free: None };
    }
    let found = [decode(&bytes[..half]), decode(&bytes[half..])];
    let numbers = found.each_ref().map(|slot| slot.as_ref().map(|(number, _)| *number));
    let second = numbers[1] > numbers[0];
    let free = Free { at: if second { 0 } else { half }, bytes: half };
    let [first, other] = found;
    match if second { other } else { first } {
        Some(newest) => Slots { newest: Some(newest), free: Some(free) },
        // A long one of an earlier version, if it is whole.
        None => Slots { newest: text_of_before(bytes).map(|body| (0, body)), free: None },
    }
}

/// What an earlier version wrote: the note, and its check.
fn text_of_before(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?;
    let (body, check) = text.split_once('\n')?;
    (check.trim_end() == check_of(body)).then(|| body.to_owned())
}

fn encode(number: u64, body: &str) -> String {
    let said = format!("{HEAD}{number}\n{body}");
    let check = check_of(&said);
    format!("{said}\n{check}\n")
}

fn decode(slot: &[u8]) -> Option<(u64, String)> {
    let text = slot.split(|byte| *byte == 0).next()?;
    let text = str::from_utf8(text).ok()?.strip_suffix('\n')?;
    let (said, check) = text.rsplit_once('\n')?;
    let (number, body) = said.strip_prefix(HEAD)?.split_once('\n')?;
    let number = number.parse().ok().filter(|_| check == check_of(said))?;
    Some((number, body.to_owned()))
}

fn write_over(files: &dyn Files, name: &str, text: &str, free: Free) -> io::Result<()> {
    let file = files.open(Path::new(name), OpenHow { write: true, ..OpenHow::default() })?;
    let mut slot = text.as_bytes().to_vec();
    slot.resize(free.bytes, 0);
    file.write_all_at(&slot, free.at as u64)?;
    may_die_here();
    file.sync_data()
}

/// Makes the file anew, with room for notes that are longer than this one.
fn replace(files: &dyn Files, name: &str, text: &str) -> io::Result<()> {
    let slot_bytes = (2 * text.len()).next_multiple_of(SLOT_BYTES_MIN);
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(2 * slot_bytes, 0);
    let new = format!("{name}.new");
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    let file = files.open(Path::new(&new), how)?;
    file.set_len(bytes.len() as u64)?;
    file.write_all_at(&bytes, 0)?;
    file.sync_data()?;
    may_die_here();
    files.rename(Path::new(&new), Path::new(name))?;
    may_die_here();
    files.sync_dir(Path::new(""))
}

fn check_of(text: &str) -> String {
    format!("{:08x}", crc32c(0, text.as_bytes()))
}

#[cfg(test)]
mod tests;
