//! The fake and the real thing side by side: the same calls, the same answers.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_io::fake::{FakeFiles, Random};
use holdfast_io::real::RealFiles;
use holdfast_io::{Change, Files, Kind, Metadata, OpenFile, OpenHow};

use super::{contents, create, for_seeds};

/// What two machines must agree on about an error: its number.
fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or_else(|| panic!("an error of the system: {error}"))
}

/// The part of metadata that does not depend on the file system.
#[derive(Debug, PartialEq)]
struct Seen {
    kind: Kind,
    mode: u32,
    size_bytes: u64,
    links: u32,
    modified_ns: Option<i128>,
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

fn seen(metadata: &Metadata, xattrs: Vec<(Vec<u8>, Vec<u8>)>) -> Seen {
    let is_dir = metadata.kind == Kind::Directory;
    // Times that were set are small; the clocks of the two machines differ.
    let set = Some(metadata.modified_ns).filter(|&ns| ns < 1_000_000_000_000);
    Seen {
        kind: metadata.kind,
        mode: metadata.mode,
        size_bytes: if is_dir { 0 } else { metadata.size_bytes },
        links: if is_dir { 0 } else { metadata.links },
        modified_ns: set,
        xattrs,
    }
}

/// Extended attributes, sorted; the machine may have given every file some of its own.
fn xattrs(files: &dyn Files, path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = files.xattr_names(path).expect("a name that was just listed");
    names.retain(|name| XATTRS.contains(&&name[..]));
    names.sort();
    let value = |name: &Vec<u8>| files.xattr(path, name).unwrap().expect("just listed");
    names.iter().map(|name| (name.clone(), value(name))).collect()
}

const XATTRS: [&[u8]; 7] = [
    b"user.a",
    b"user.b",
    b"trusted.c",
    b"security.capability",
    b"system.posix_acl_access",
    b"system.posix_acl_default",
    b"user.",
];

/// Everything below a directory, sorted: path, metadata, and the contents or the link's target.
fn tree(files: &dyn Files, dir: &Path) -> Vec<(PathBuf, Seen, Vec<u8>)> {
    use std::os::unix::ffi::OsStrExt;
    let mut rows = Vec::new();
    let mut entries = files.read_dir(dir).expect("a directory that was just seen");
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    for entry in entries {
        let path = dir.join(std::ffi::OsStr::from_bytes(&entry.name));
        let metadata = files.metadata(&path).expect("a name that was just listed");
        assert_eq!((metadata.kind, metadata.inode), (entry.kind, entry.inode), "{path:?}");
        let bytes = match entry.kind {
            Kind::File => contents(files, path.to_str().expect("our names are ASCII")),
            Kind::Symlink => Some(files.read_link(&path).expect("a link")),
            _ => None,
        };
        let seen = seen(&metadata, xattrs(files, &path));
        rows.push((path.clone(), seen, bytes.unwrap_or_default()));
        if entry.kind == Kind::Directory {
            rows.extend(tree(files, &path));
        }
    }
    rows
}

/// A machine and the files a program has open on it.
struct Side<'a> {
    files: &'a dyn Files,
    open: Vec<Arc<dyn OpenFile>>,
}

/// A path of up to three names out of four, now and then the root or a path that leads nowhere.
fn any_path(random: &mut Random) -> PathBuf {
    match random.below(40) {
        0 => return PathBuf::new(),
        1 => return PathBuf::from("a/../b"),
        2 => return PathBuf::from("x".repeat(256)),
        _ => {}
    }
    let names = 1 + random.below(3);
    (0..names).map(|_| ["a", "b", "c", "d"][random.below(4) as usize]).collect()
}

/// One random call on one machine; the answer as text. Both machines get an equal `random`.
fn step(side: &mut Side<'_>, random: &mut Random) -> String {
    let files = side.files;
    let path = any_path(random);
    let other = any_path(random);
    let mode = [0o600, 0o755, 0o700, 0o644][random.below(4) as usize];
    let choice = random.below(38);
    let done = match choice {
        0..3 => files.make_dir(&path, mode | 0o100),
        3 => files.make_symlink(&path, b"b/c"),
        4 => files.make_node(&path, Kind::Fifo, mode, 0),
        5 => files.make_node(&path, Kind::Socket, mode, 0),
        6 => files.make_node(&path, Kind::File, mode, 0),
        7 => files.make_node(&path, Kind::Directory, mode, 0),
        8 | 9 => files.link(&path, &other),
        10..13 => files.rename(&path, &other),
        13 => files.exchange(&path, &other),
        14 | 15 => files.remove_file(&path),
        16 => files.remove_dir(&path),
        17 => files.change(&path, &any_change(random, mode | 0o100)),
        18 => files.sync_dir(&path),
        19 => return format!("{path:?} {:?}", names(files, &path)),
        20 => {
            return format!("{path:?} {:?}", files.read_link(&path).map_err(|e| number(&e)));
        }
        21..24 => open(side, &path, random, mode),
        30..36 => return xattr_step(files, random, &path),
        36 => files.sync_all(),
        _ => return with_open(side, random),
    };
    format!("{choice} {path:?} {other:?} {:?}", done.map_err(|error| number(&error)))
}

/// One random call about extended attributes.
fn xattr_step(files: &dyn Files, random: &mut Random, path: &Path) -> String {
    let name = match random.below(30) {
        0 => &b"other.a"[..],
        index => XATTRS[index as usize % XATTRS.len()],
    };
    let done = match random.below(4) {
        0 => files.remove_xattr(path, name).map(|()| None),
        1 => files.xattr(path, name),
        _ => files.set_xattr(path, name, &any_value(random, name)).map(|()| None),
    };
    let done = done.map_err(|error| number(&error));
    format!("{path:?} {:?} {done:?}", String::from_utf8_lossy(name))
}

fn any_value(random: &mut Random, name: &[u8]) -> Vec<u8> {
    if name == b"security.capability" {
        let words = [0x0200_0001_u32, 1 << random.below(20), 0, 0, 0];
        return words.iter().flat_map(|word| word.to_le_bytes()).collect();
    }
    if name.starts_with(b"system.") {
        return any_acl(random);
    }
    vec![7; random.below(100) as usize]
}

/// A list that names up to two users and two groups, sometimes one that makes no sense.
fn any_acl(random: &mut Random) -> Vec<u8> {
    let (users, groups) = (random.below(3), random.below(3));
    let mask = random.chance(if users + groups > 0 { 95 } else { 20 });
    let tags = std::iter::once(1)
        .chain((0..users).map(|_| 2))
        .chain([4])
        .chain((0..groups).map(|_| 8))
        .chain(mask.then_some(16))
        .chain([32]);
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for tag in tags {
        bytes.extend((tag as u16).to_le_bytes());
        bytes.extend((random.below(8) as u16).to_le_bytes());
        bytes.extend((random.below(4) as u32).to_le_bytes());
    }
    bytes
}

fn any_change(random: &mut Random, mode: u32) -> Change {
    Change {
        mode: random.chance(50).then_some(mode),
        accessed_ns: random.chance(50).then_some(17),
        // Never all empty: an empty change need not look at its path.
        modified_ns: Some(random.below(1_000_000_000_000).into()),
        ..Change::default()
    }
}

fn names(files: &dyn Files, path: &Path) -> Result<Vec<(Vec<u8>, Kind)>, i32> {
    let entries = files.read_dir(path).map_err(|error| number(&error))?;
    let mut names: Vec<_> = entries.into_iter().map(|entry| (entry.name, entry.kind)).collect();
    names.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(names)
}

fn open(side: &mut Side<'_>, path: &Path, random: &mut Random, mode: u32) -> io::Result<()> {
    let how = OpenHow {
        write: random.chance(80),
        create_mode: random.chance(70).then_some(mode),
        exclusive: random.chance(20),
        direct: false,
    };
    let file = side.files.open(path, how)?;
    if side.open.len() == 6 {
        side.open.remove(random.below(6) as usize);
    }
    side.open.push(file);
    Ok(())
}

/// One random call on one of the open files.
fn with_open(side: &Side<'_>, random: &mut Random) -> String {
    if side.open.is_empty() {
        return String::new();
    }
    let file = &side.open[random.below(side.open.len() as u64) as usize];
    let (offset, bytes) = (random.below(12_000), random.below(9_000));
    let mut buffer = vec![0; bytes as usize];
    let choice = random.below(10);
    let done = match choice {
        0..3 => {
            random.fill(&mut buffer);
            file.write_at(&buffer, offset)
        }
        3 | 4 => file.read_at(&mut buffer, offset),
        5 => file.set_len(offset).map(|()| 0),
        6 => file.reserve(offset, bytes).map(|()| 0),
        7 => file.punch(offset, bytes).map(|()| 0),
        8 => file.zero(offset, bytes).map(|()| 0),
        _ => file.change(&any_change(random, 0o640)).and_then(|()| file.sync_data()).map(|()| 0),
    };
    let metadata = seen(&file.metadata().expect("an open file"), Vec::new());
    let done = done.map_err(|error| number(&error));
    let bytes = holdfast_io::checksum::crc32c(0, &buffer);
    format!("open {choice} {offset} {done:?} {bytes:08x} {metadata:?}")
}

fn agree(seed: u64, steps: u64) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let real = RealFiles::open(dir.path()).expect("the directory just made");
    let fake = FakeFiles::new(seed);
    let mut sides = [&real as &dyn Files, &fake].map(|files| Side { files, open: Vec::new() });
    let mut random = Random::new(seed);
    for index in 0..steps {
        let [one, other] = sides.each_mut().map(|side| step(side, &mut random.clone()));
        assert_eq!(one, other, "seed {seed}, step {index}: real, fake");
        random = Random::new(random.any());
        if index % 32 == 0 {
            let [one, other] = sides.each_ref().map(|side| tree(side.files, Path::new("")));
            assert_eq!(one, other, "seed {seed}, step {index}: {} real, fake", one.len());
        }
    }
    let names = tree(&fake, Path::new(""));
    assert!(!names.is_empty(), "seed {seed} made no files: the test shows nothing");
}

#[test]
fn the_same_calls_have_the_same_outcome_on_the_real_and_the_fake_machine() {
    for_seeds(60, "the_same_calls", |seed| agree(seed, 600));
}

#[test]
fn a_difference_between_two_machines_would_be_seen() {
    let (one, other) = (FakeFiles::new(1), FakeFiles::new(1));
    for files in [&one, &other] {
        create(files, "f").write_all_at(b"the same", 0).unwrap();
    }
    assert_eq!(tree(&one, Path::new("")), tree(&other, Path::new("")));
    other.flip_bit(Path::new("f"), 3).unwrap();
    assert_ne!(tree(&one, Path::new("")), tree(&other, Path::new("")));
}

/// A piece of a vector that starts where a page could.
fn aligned(bytes: &mut Vec<u8>, wanted: usize) -> &mut [u8] {
    bytes.resize(wanted + 4096, 0);
    let skip = bytes.as_ptr().align_offset(4096);
    &mut bytes[skip..skip + wanted]
}

#[test]
fn direct_transfers_of_whole_blocks_work_on_both() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let real = RealFiles::open(dir.path()).expect("the directory just made");
    for files in [&real as &dyn Files, &FakeFiles::new(0)] {
        let how = OpenHow { direct: true, ..super::CREATE };
        let file = files.open(Path::new("f"), how).unwrap();
        let mut memory = Vec::new();
        let bytes = aligned(&mut memory, 8192);
        bytes.fill(7);
        file.write_all_at(bytes, 4096).unwrap();
        file.sync_data().unwrap();
        bytes.fill(1);
        assert_eq!(file.read_full_at(bytes, 0).unwrap(), 8192);
        assert!(bytes[..4096].iter().all(|&byte| byte == 0));
        assert!(bytes[4096..].iter().all(|&byte| byte == 7));
    }
}

#[test]
fn the_fake_machine_refuses_direct_transfers_that_some_disk_would_refuse() {
    let how = OpenHow { direct: true, ..super::CREATE };
    let file = FakeFiles::new(0).open(Path::new("f"), how).unwrap();
    let mut memory = Vec::new();
    let bytes = aligned(&mut memory, 8192);
    assert!(file.write_at(&bytes[..512], 0).is_err());
    assert!(file.write_at(&bytes[..4096], 512).is_err());
    assert!(file.write_at(&bytes[1..4097], 0).is_err());
    assert_eq!(file.write_at(&bytes[..4096], 4096).unwrap(), 4096);
}

#[test]
fn a_file_without_a_name_lives_while_it_is_open() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let real = RealFiles::open(dir.path()).expect("the directory just made");
    for files in [&real as &dyn Files, &FakeFiles::new(0)] {
        let file = create(files, "f");
        files.remove_file(Path::new("f")).unwrap();
        files.sync_dir(Path::new("")).unwrap();
        file.write_all_at(b"still", 0).unwrap();
        let mut bytes = [0; 5];
        assert_eq!(file.read_full_at(&mut bytes, 0).unwrap(), 5);
        assert_eq!(&bytes, b"still");
        assert_eq!(file.metadata().unwrap().links, 0);
        assert_eq!(contents(files, "f"), None);
    }
}
