//! What another user of the machine can do to names, and cannot do to us.
//!
//! These tests act as two users, so they need root, as those of the command do.

use super::socket::{SocketName, bind};
use super::*;

use crate::Entropy;
use crate::fake::FakeEntropy;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The stranger.
const NOBODY: u32 = 65534;

/// A folder that the stranger can go through.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    place
}

/// Has the stranger do something; whether it worked is not asked.
fn as_nobody(script: &str, argument: &Path) {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(argument).uid(NOBODY).gid(NOBODY);
    shell.stderr(std::process::Stdio::null()).status().unwrap();
}

fn shared(at: &Path) -> PathBuf {
    fs::create_dir(at).unwrap();
    fs::set_permissions(at, fs::Permissions::from_mode(0o1777)).unwrap();
    at.to_owned()
}

fn why(error: io::Error) -> String {
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
    error.to_string()
}

#[test]
fn a_file_that_a_stranger_put_there_first_is_neither_opened_nor_written_over() {
    let place = place();
    let file = shared(&place.path().join("shared")).join("region");
    as_nobody("printf squatted > $1; chmod 666 $1", &file);
    assert!(why(open(&file, true).unwrap_err()).contains("belongs to user 65534"));
    assert_eq!(create(&file).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert!(why(lock_file(&file).unwrap_err()).contains("belongs to user 65534"));
    assert_eq!(fs::read(&file).unwrap(), b"squatted");
}

#[test]
fn a_link_of_a_strangers_is_not_followed_anywhere_on_the_way() {
    let place = place();
    let shared = shared(&place.path().join("shared"));
    let victim = place.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("file"), "precious").unwrap();
    as_nobody(&format!("ln -s {} $1", victim.display()), &shared.join("folder"));
    as_nobody(&format!("ln -s {}/file $1", victim.display()), &shared.join("file"));
    for path in ["folder/file", "file"] {
        let path = shared.join(path);
        assert!(why(open(&path, true).unwrap_err()).contains("link of user 65534"));
        assert!(why(create(&path).unwrap_err()).contains("link of user 65534"));
        assert!(why(write_report(&path, b"x").unwrap_err()).contains("link of user 65534"));
    }
    assert_eq!(fs::read(victim.join("file")).unwrap(), b"precious");
    // One's own link is followed, also where others can add names.
    symlink(&victim, shared.join("own")).unwrap();
    open(&shared.join("own/file"), true).unwrap();
}

#[test]
fn a_file_with_a_second_name_or_that_others_write_is_not_used() {
    let place = place();
    let file = place.path().join("file");
    drop(create(&file).unwrap());
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
    drop(open(&file, true).unwrap());
    fs::hard_link(&file, place.path().join("other")).unwrap();
    assert!(why(open(&file, true).unwrap_err()).contains("another name"));
    fs::remove_file(place.path().join("other")).unwrap();
    for mode in [0o602, 0o620] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        assert!(why(open(&file, false).unwrap_err()).contains("may write it"));
    }
    let pipe = place.path().join("pipe");
    as_nobody("mkfifo $1", &pipe);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(why(open(&pipe, false).unwrap_err()).contains("neither a file nor a device"));
}

#[test]
fn a_lock_file_and_a_directory_of_ours_are_closed_to_others_and_this_is_told() {
    let place = place();
    let (lock, folder) = (place.path().join("lock"), place.path().join("a/b/log"));
    assert!(!lock_file(&lock).unwrap().1);
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(lock_file(&lock).unwrap().1);
    assert_eq!(lock.metadata().unwrap().mode() & 0o777, 0o600);
    assert!(!close_to_others(&directory(&folder).unwrap()).unwrap());
    assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(close_to_others(&directory_there(&folder).unwrap()).unwrap());
    assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
    chown(&folder, Some(NOBODY), None).unwrap();
    assert!(why(directory(&folder).unwrap_err()).contains("belongs to user 65534"));
}

#[test]
fn a_folder_that_an_access_list_opens_to_others_is_not_private() {
    let place = place();
    let folder = place.path().join("listed");
    fs::create_dir(&folder).unwrap();
    assert_eq!(Folder::find(&folder).unwrap().reach(), Reach::Nobody);
    // Version 2; owner rwx, user 65534 rwx, group r-x, mask rwx, others none.
    let entry = |tag: u16, bits: u16, id: u32| {
        [&tag.to_le_bytes()[..], &bits.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let none = u32::MAX;
    let entries = [(1, 7, none), (2, 7, NOBODY), (4, 5, none), (16, 7, none), (32, 0, none)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    entries.iter().for_each(|(tag, bits, id)| list.extend(entry(*tag, *bits, *id)));
    let name = "system.posix_acl_access";
    let set = rustix::fs::setxattr(&folder, name, &list, rustix::fs::XattrFlags::empty());
    match set {
        // A file system without access lists lets nobody else in by one.
        Err(rustix::io::Errno::OPNOTSUPP) => {}
        set => {
            set.unwrap();
            assert_eq!(Folder::find(&folder).unwrap().reach(), Reach::Anybody);
        }
    }
}

/// Nobody listens there any more. A program that another test starts has all descriptors of this
/// process for the moment before it is that program.
fn leave(listener: UnixListener, path: &Path) {
    drop(listener);
    while UnixStream::connect(path).is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_name_is_taken_from_a_socket_that_was_left_and_from_nothing_else() {
    let place = place();
    let path = place.path().join("socket");
    fs::write(&path, "somebody's file").unwrap();
    assert_eq!(bind(&path, 0o600).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    assert_eq!(remove_socket(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    assert_eq!(fs::read(&path).unwrap(), b"somebody's file");
    fs::remove_file(&path).unwrap();
    let first = UnixListener::bind(&path).unwrap();
    assert_eq!(bind(&path, 0o600).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    assert_eq!(remove_socket(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    leave(first, &path);
    let second = bind(&path, 0o600).unwrap();
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    let name = SocketName::of(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let third = UnixListener::bind(&path).unwrap();
    name.remove().unwrap();
    UnixStream::connect(&path).expect("the name of another socket was taken away");
    drop((second, third));
}

#[test]
fn of_many_who_listen_at_one_place_at_once_one_does() {
    let place = place();
    let path = place.path().join("socket");
    for _ in 0..20 {
        leave(UnixListener::bind(&path).unwrap(), &path);
        let bound: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| bind(&path, 0o600))).collect();
            all.into_iter().filter_map(|one| one.join().unwrap().ok()).collect()
        });
        assert_eq!(bound.len(), 1);
        UnixStream::connect(&path).expect("who listens is not who has the name");
        fs::remove_file(&path).unwrap();
    }
}

/// A tree of folders and links, some of them the stranger's, all drawn from one seed.
fn grow(root: &Path, draw: &mut impl FnMut(u32) -> u32) -> Vec<PathBuf> {
    let mut folders = vec![root.to_owned()];
    let mut paths = Vec::new();
    for number in 0..10 {
        let parent = folders[draw(folders.len() as u32) as usize].clone();
        let path = parent.join(format!("n{number}"));
        let owner = [0, 0, NOBODY][draw(3) as usize];
        if draw(3) == 0 {
            let target = folders[draw(folders.len() as u32) as usize].clone();
            let target = match draw(2) {
                0 => target,
                _ => Path::new("..").join(target.file_name().unwrap()),
            };
            symlink(target, &path).unwrap();
            lchown(&path, Some(owner), Some(owner)).unwrap();
        } else {
            fs::create_dir(&path).unwrap();
            let mode = [0o755, 0o755, 0o1777, 0o777, 0o775][draw(5) as usize];
            chown(&path, Some(owner), Some(owner)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            folders.push(path.clone());
        }
        paths.push(path);
    }
    let mut all = paths.clone();
    for path in paths {
        let other = folders[draw(folders.len() as u32) as usize].file_name().unwrap().to_owned();
        all.push(path.join("..").join(&other));
        all.push(path.join(&other));
    }
    all
}

/// Wherever the stranger can, a name becomes a link to its own folder.
const VANDAL: &str = "find \"$1/tree\" -depth -mindepth 1 | while read -r f; do \
    mv \"$f\" \"$f.gone\" && ln -s \"$1/evil\" \"$f\"; done";

fn id(fd: BorrowedOrPath<'_>) -> Option<(u64, u64)> {
    match fd {
        BorrowedOrPath::Folder(folder) => fstat(folder.fd()).ok().map(|it| (it.st_dev, it.st_ino)),
        BorrowedOrPath::Path(path) => fs::metadata(path).ok().map(|it| (it.dev(), it.ino())),
    }
}

enum BorrowedOrPath<'a> {
    Folder(&'a Folder),
    Path(&'a Path),
}

/// How many paths a stranger could lead elsewhere: of those that were called safe, and by a look at
/// the path alone.
fn vandalize(seed: u64) -> (u32, u32, u32) {
    let place = place();
    let (entropy, tree) = (FakeEntropy::new(seed), place.path().join("tree"));
    let mut draw = |below: u32| {
        let mut bytes = [0; 4];
        entropy.fill(&mut bytes);
        u32::from_le_bytes(bytes) % below
    };
    fs::create_dir(&tree).unwrap();
    shared(&place.path().join("evil"));
    let paths = grow(&tree, &mut draw);
    let before: Vec<_> = paths
        .iter()
        .map(|path| {
            let found = Folder::find(path).ok().filter(|it| it.reach() <= Reach::Additions);
            (id(BorrowedOrPath::Path(path)), found.and_then(|it| id(BorrowedOrPath::Folder(&it))))
        })
        .collect();
    as_nobody(VANDAL, place.path());
    let (mut safe, mut led, mut led_by_path) = (0, 0, 0);
    for (path, (by_path, found)) in paths.iter().zip(before) {
        let now = id(BorrowedOrPath::Path(path));
        led_by_path += u32::from(by_path.is_some() && now != by_path);
        if let Some(before) = found {
            safe += 1;
            let again = Folder::find(path).ok().and_then(|it| id(BorrowedOrPath::Folder(&it)));
            led += u32::from(again != Some(before));
        }
    }
    (safe, led, led_by_path)
}

#[test]
fn what_is_called_safe_stays_where_it_is_whatever_a_stranger_does_to_the_tree() {
    let factor: u64 =
        std::env::var("HOLDFAST_SEEDS_FACTOR").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    let (mut safe, mut canary) = (0, 0);
    for seed in 0..40 * factor {
        let (found, led, led_by_path) = vandalize(seed);
        assert_eq!(led, 0, "seed {seed}: {led} of {found} safe paths lead elsewhere now");
        safe += found;
        canary += led_by_path;
    }
    assert!(safe > 40, "only {safe} paths were called safe");
    assert!(canary > 40, "the stranger led only {canary} plain paths elsewhere");
}

#[test]
fn what_is_no_file_is_not_replaced() {
    let place = place();
    let path = place.path().join("pipe");
    let fifo = FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    for replaced in [replace(&path, b"x"), write_report(&path, b"x")] {
        assert!(why(replaced.unwrap_err()).contains("it is no file"));
    }
    assert!(!fs::symlink_metadata(&path).unwrap().is_file());
    fs::remove_file(&path).unwrap();
    replace(&path, b"x").unwrap();
    replace(&path, b"y").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"y");
}
