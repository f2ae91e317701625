//! What can be done to a log's files, as a script, and what must hold of whoever reads them.
//!
//! The first byte of a script says what the rest is: edits of a real log's files, the payload of a
//! frame that is whole, or the bytes of one file. Edits know where checks lie and can put them in
//! order again, so that what is behind a check is reached, too.
//!
//! Promise: nothing panics, whatever the bytes; of a log whose bytes were turned over, moved, lost
//! or set to zero, a replay gives the records that were appended or says that something is wrong.
//! Never: needs more than the script to repeat a case.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use holdfast_io::checksum::crc32c;
use holdfast_io::fake::{FakeClock, FakeEntropy, FakeFiles};
use holdfast_io::{Files, OpenHow};
use holdfast_memory::{Medium, Region, RegionSpec};
use holdfast_wal::format::{Archive, Format, Json, MessagePack, Raw};
use holdfast_wal::{Log, Options, Place, Record};

/// Smallest sizes, so that a case is short.
fn small() -> Options {
    Options::new().with_segment_bytes(64 << 10).with_segments(2).with_ring_bytes(128 << 10)
}

/// Sets of the log that is edited.
const SETS: u32 = 12;

/// Bytes of the records that bring the log into its second segment.
const LONG_BYTES: usize = 30_000;

/// Bytes that a device writes at once.
const SECTOR_BYTES: usize = 512;

/// Edits of a case, at most.
const EDITS_MAX: usize = 32;

/// Records that a replay of forged bytes may give: more than any script can hold.
const RECORDS_MAX: usize = 1 << 20;

/// A record of every kind of field.
#[derive(
    Clone,
    Debug,
    PartialEq,
    serde::Serialize,
    serde::Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
struct Item {
    id: u32,
    text: String,
    pairs: Vec<(u32, i64)>,
    maybe: Option<u8>,
}

impl Record for Item {
    const NAME: &'static str = "item";
}

fn item(id: u32) -> Item {
    let text = if id % 5 == 4 { "x".repeat(LONG_BYTES) } else { format!("item {id}") };
    let pairs = (0..id % 4).map(|a| (a, -i64::from(id))).collect();
    Item { id, text, pairs, maybe: id.is_multiple_of(2).then_some(id as u8) }
}

/// A log's files, by name, and what it holds.
struct Image {
    files: Vec<(String, Vec<u8>)>,
    records: Vec<Item>,
}

/// What is left of a script.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> Option<usize> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some((*first).into())
    }

    /// A number below `limit`, which is not 0.
    fn below(&mut self, limit: usize) -> Option<usize> {
        let (first, rest) = self.0.split_first_chunk::<3>()?;
        self.0 = rest;
        let [low, middle, high] = first.map(usize::from);
        Some((low | middle << 8 | high << 16) % limit)
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }
}

/// Runs a case.
pub(crate) fn run(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    match kind % 3 {
        0 => edited(Script(rest)),
        1 => payload(Script(rest)),
        _ => one_file(Script(rest)),
    }
}

/// A real log, edited.
fn edited(mut script: Script<'_>) {
    let Image { files, records } = image();
    let mut files = files.clone();
    let mut forged = false;
    for _ in 0..EDITS_MAX {
        let Some(forges) = edit(&mut files, &mut script) else { break };
        forged |= forges;
    }
    let found = read::<Item, MessagePack>(&disk(&files));
    if let (false, Some(found)) = (forged, found) {
        assert!(found == *records, "{} records came back of {}", found.len(), records.len());
    }
}

/// Does the next edit. Returns whether it can make bytes that pass a check; none at the end.
fn edit(files: &mut Vec<(String, Vec<u8>)>, script: &mut Script<'_>) -> Option<bool> {
    let (kind, at) = (script.byte()?, script.byte()?);
    if files.is_empty() {
        return None;
    }
    let at = at % files.len();
    let bytes = &mut files[at].1;
    if bytes.is_empty() {
        return Some(false);
    }
    match kind % 8 {
        0 => {
            let bit = script.below(8 * bytes.len())?;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        1 => {
            let from = script.below(bytes.len())?;
            let to = (from + SECTOR_BYTES * script.byte()?).min(bytes.len());
            bytes[from..to].fill(0);
        }
        2 => {
            let sectors = bytes.len().div_ceil(SECTOR_BYTES);
            let [from, to] = [script.below(sectors)?, script.below(sectors)?];
            let from = from * SECTOR_BYTES;
            let moved = bytes[from..bytes.len().min(from + SECTOR_BYTES)].to_vec();
            overwrite(bytes, to * SECTOR_BYTES, &moved);
        }
        3 => {
            let length = script.below(bytes.len())?;
            bytes.truncate(length);
        }
        4 => drop(files.remove(at)),
        5 => {
            let start = script.below(bytes.len())?;
            let count = script.byte()? % 64;
            overwrite(bytes, start, script.bytes(count)?);
            return Some(true);
        }
        6 => {
            let start = script.below(bytes.len())? & !7;
            reseal_frame(bytes, start);
            return Some(true);
        }
        _ => {
            reseal_head(&files[at].0.clone(), &mut files[at].1);
            return Some(true);
        }
    }
    Some(false)
}

fn overwrite(bytes: &mut [u8], start: usize, by: &[u8]) {
    let end = bytes.len().min(start + by.len());
    bytes[start..end].copy_from_slice(&by[..end - start]);
}

/// Gives the frame at `start` the checks that its bytes should have.
fn reseal_frame(bytes: &mut [u8], start: usize) {
    const HEADER_BYTES: usize = 48;
    let seed = crc32c(0, &identity());
    let Some(head) = bytes.get(start..start + HEADER_BYTES) else { return };
    let length = head[24..28].try_into().map_or(0, u32::from_le_bytes) as usize;
    let payload = start + HEADER_BYTES;
    if let Some(payload) = payload.checked_add(length).and_then(|end| bytes.get(payload..end)) {
        let check = crc32c(seed, payload);
        overwrite(bytes, start + 28, &check.to_le_bytes());
    }
    let check = crc32c(seed, &bytes[start + 8..start + HEADER_BYTES]);
    overwrite(bytes, start + 4, &check.to_le_bytes());
}

/// Gives the head of a segment, or all of another file, the check that its bytes should have.
fn reseal_head(name: &str, bytes: &mut [u8]) {
    const SEGMENT_HEAD_BYTES: usize = 4096;
    let covered = if name.starts_with("segment-") { SEGMENT_HEAD_BYTES } else { bytes.len() };
    let Some(covered) = bytes.get(12..covered) else { return };
    let check = crc32c(0, covered);
    overwrite(bytes, 8, &check.to_le_bytes());
}

/// A whole frame with any payload, read in every format.
fn payload(mut script: Script<'_>) {
    let (Some(format), Some(records)) = (script.byte(), script.below(1 << 16)) else { return };
    match format % 4 {
        0 => payload_of::<Item, MessagePack>(records, script.0),
        1 => payload_of::<Item, Json>(records, script.0),
        2 => payload_of::<Item, Archive>(records, script.0),
        _ => payload_of::<Vec<u8>, Raw>(records, script.0),
    }
}

fn payload_of<R: Record, F: Format<R>>(records: usize, payload: &[u8]) {
    let files = FakeFiles::new(1);
    Log::<R, F>::create_at(&place(&files), &small()).expect("the disk is empty");
    let Some(log) = untyped(&files) else { return };
    if log.append(records as u16, &[payload]).is_ok() {
        log.close().expect("a modelled disk does not fail by itself");
        drop(log);
        let _any = read::<R, F>(&files);
    }
}

/// The log without its types.
fn untyped(files: &FakeFiles) -> Option<holdfast_log::Log> {
    let identity = holdfast_log::Log::identity_of(files).ok()?;
    let spec = RegionSpec { ring_bytes: small().ring_bytes, roster_bytes: 64, identity };
    let region = Arc::new(Region::create(&Medium::Private, &spec).ok()?);
    let config = holdfast_log::LogConfig {
        segment_bytes: small().segment_bytes,
        segments: small().segments,
        dirty_bytes_max: u64::MAX,
        retention: holdfast_log::Retention::OnDevice,
        scan: holdfast_log::Scanned::Tail,
        parity: holdfast_log::Parity::None,
        policy: holdfast_log::Policy::Refuse,
    };
    let (files, clock) = (Arc::new(files.clone()), Arc::new(FakeClock::default()));
    holdfast_log::Log::open(files, region, clock, config).ok().map(|(log, _)| log)
}

/// One file of a real log is these bytes, with or without a check that is right.
fn one_file(mut script: Script<'_>) {
    let mut files = image().files.clone();
    let (Some(at), Some(seal)) = (script.byte(), script.byte()) else { return };
    let at = at % files.len();
    let (name, bytes) = &mut files[at];
    if name.starts_with("segment-") {
        overwrite(bytes, 0, script.0);
    } else {
        *bytes = script.0.to_vec();
    }
    if seal % 2 == 1 {
        reseal_head(&name.clone(), bytes);
    }
    let _any = read::<Item, MessagePack>(&disk(&files));
}

/// All records of a log; none if anything about it is reported.
fn read<R: Record, F: Format<R>>(files: &FakeFiles) -> Option<Vec<R>> {
    let _any = holdfast_log::Log::verify(files, &mut |_| {});
    let (log, _) = Log::<R, F>::open_at(place(files), &small()).ok()?;
    let records: Result<Vec<R>, _> =
        log.iter().take(RECORDS_MAX).map(|entry| entry.map(|entry| entry.record)).collect();
    records.ok()
}

/// The files of a log that was closed.
fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let files = FakeFiles::new(1);
        let place = place(&files);
        Log::<Item, MessagePack>::create_at(&place, &small()).expect("the disk is empty");
        let (log, _) = Log::<Item, MessagePack>::open_at(place, &small()).expect("it was made");
        for set in 0..SETS {
            let records: Vec<Item> = (2 * set..2 * set + 1 + set % 2).map(item).collect();
            log.append_all(&records).and_then(|ticket| Ok(ticket.wait()?)).expect("there is room");
        }
        let records = log.iter().map(|entry| entry.expect("nothing is damaged").record).collect();
        log.close().expect("a modelled disk does not fail by itself");
        Image { files: contents(&files), records }
    })
}

fn identity() -> [u8; 16] {
    let catalogue = image().files.iter().find(|(name, _)| name == "catalogue");
    let (_, bytes) = catalogue.expect("a log has a catalogue");
    bytes[16..32].try_into().expect("16 bytes")
}

fn contents(files: &FakeFiles) -> Vec<(String, Vec<u8>)> {
    let entries = files.read_dir(Path::new("")).expect("there is a root");
    let read = |name: String| {
        let file = files.open(name.as_ref(), OpenHow::default()).expect("it was listed");
        let size = file.metadata().expect("it is open").size_bytes;
        let mut bytes = vec![0; size as usize];
        file.read_full_at(&mut bytes, 0).expect("it can be read");
        (name, bytes)
    };
    let mut all: Vec<_> = entries
        .iter()
        .map(|entry| read(String::from_utf8_lossy(&entry.name).into_owned()))
        .collect();
    all.sort();
    all
}

/// A disk with these files.
fn disk(all: &[(String, Vec<u8>)]) -> FakeFiles {
    let files = FakeFiles::new(1);
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    for (name, bytes) in all {
        let file = files.open(name.as_ref(), how).expect("the disk is empty");
        // What follows is zeros, which a longer file has by itself.
        let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        file.write_all_at(&bytes[..written], 0).expect("there is room");
        file.set_len(bytes.len() as u64).expect("there is room");
    }
    files
}

fn place(files: &FakeFiles) -> Place {
    let (clock, entropy) = (FakeClock::default(), FakeEntropy::new(1));
    Place::modelled(Arc::new(files.clone()), Arc::new(clock), Arc::new(entropy))
}

/// Scripts that reach every part: what a corpus begins with.
#[allow(dead_code, reason = "the target has no use for them; the test that writes the corpus does")]
pub(crate) fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds: Vec<(String, Vec<u8>)> = Vec::new();
    for (place, (name, bytes)) in image().files.iter().enumerate() {
        let of_file = [&[2, place as u8, 1], &bytes[..bytes.len().min(6000)]].concat();
        seeds.push((format!("file-{name}"), of_file));
        for kind in 0..8 {
            let script = vec![0, kind, place as u8, 0x20, 0x10, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9];
            seeds.push((format!("edit-{kind}-{name}"), script));
        }
    }
    let mut encoded = Vec::new();
    MessagePack::encode(&item(3), &mut encoded).expect("it is a plain record");
    seeds.push(("payload-message-pack".into(), in_payload(0, &encoded)));
    encoded.clear();
    Json::encode(&item(3), &mut encoded).expect("it is a plain record");
    seeds.push(("payload-json".into(), in_payload(1, &encoded)));
    encoded.clear();
    Archive::encode(&item(3), &mut encoded).expect("it is a plain record");
    seeds.push(("payload-archive".into(), in_payload(2, &encoded)));
    seeds.push(("payload-raw".into(), in_payload(3, b"bytes")));
    seeds
}

/// A script of a payload of one record, with its length and check.
fn in_payload(format: u8, record: &[u8]) -> Vec<u8> {
    let length = (record.len() as u32).to_le_bytes();
    let check = crc32c(crc32c(0, &length), record).to_le_bytes();
    let zeros = vec![0; record.len().next_multiple_of(8) - record.len()];
    [&[1, format, 1, 0, 0], &length[..], &check, record, &zeros].concat()
}
