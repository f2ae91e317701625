//! What programs do with files, on a real mount, in both cache modes.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{
    DirEntryExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink,
};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, UNIX_EPOCH};

use holdfast_front::fuse::Cache;
use rustix::fs::{FallocateFlags, FlockOperation, OFlags, fallocate, fcntl_lock, flock};

use crate::memory_tree::MemoryTree;
use crate::mounted::{CACHES, Mounted};
use crate::raw::{AlignedBlock, Mapped};

fn in_both_modes(test: impl Fn(&Mounted)) {
    for cache in CACHES {
        let mounted = Mounted::new(Arc::new(MemoryTree::new(true)), cache);
        test(&mounted);
        mounted.end();
    }
}

fn open_rw(path: &Path) -> File {
    File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// Runs a shell command as a user without rights; true if it succeeds.
fn nobody_can(command: &str, path: &Path) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", command, "sh"]).arg(path).uid(65534).gid(65534);
    shell.output().unwrap().status.success()
}

#[test]
fn what_is_written_is_read() {
    in_both_modes(|mounted| {
        let path = mounted.join("file");
        let contents: Vec<u8> = (0..3_000_001_u32).map(|at| ((at * 7) >> 3) as u8).collect();
        fs::write(&path, &contents).unwrap();
        assert!(fs::read(&path).unwrap() == contents);
        let mut part = [0; 1000];
        open_rw(&path).read_exact_at(&mut part, 2_999_001).unwrap();
        assert!(part[..] == contents[2_999_001..][..1000]);
        assert_eq!(fs::metadata(&path).unwrap().len(), 3_000_001);
    });
}

/// What makes pages of databases whole: see "A write" in docs/guarantees.md.
#[test]
fn a_write_that_starts_at_a_page_is_one_request() {
    const PAGE: u64 = 4096;
    for cache in CACHES {
        let tree = Arc::new(MemoryTree::new(true));
        let mounted = Mounted::new(tree.clone(), cache);
        let file = open_rw(&mounted.join("file"));
        let mut state = 7_u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % end
        };
        for step in 0..400 {
            let within = below(3) == 0;
            let start = below(600) * PAGE + if within { below(PAGE) } else { 0 };
            let most = if within { PAGE - start % PAGE } else { 1 << below(21) };
            let data = vec![1; 1 + below(most) as usize];
            let before = tree.writes.load(Relaxed);
            file.write_all_at(&data, start).unwrap();
            let requests = tree.writes.load(Relaxed) - before;
            assert_eq!(requests, 1, "step {step}, {cache:?}: {} bytes at {start}", data.len());
            if below(4) == 0 {
                file.set_len(below(600 * PAGE)).unwrap();
            }
        }
        drop(file);
        mounted.end();
    }
}

#[test]
fn appenders_do_not_overwrite_each_other() {
    in_both_modes(|mounted| {
        let path = mounted.join("log");
        std::thread::scope(|scope| {
            for name in ["a", "b", "c", "d"] {
                let path = &path;
                scope.spawn(move || {
                    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
                    (0..100).for_each(|_| file.write_all(name.repeat(10).as_bytes()).unwrap());
                });
            }
        });
        let text = fs::read(&path).unwrap();
        assert_eq!(text.len(), 4000);
        assert!(text.chunks(10).all(|line| line.iter().all(|byte| *byte == line[0])));
    });
}

#[test]
fn truncation_cuts_and_extends_with_zeros() {
    in_both_modes(|mounted| {
        let path = mounted.join("file");
        fs::write(&path, [1; 10_000]).unwrap();
        let file = open_rw(&path);
        file.set_len(100).unwrap();
        file.set_len(200).unwrap();
        assert_eq!(fs::read(&path).unwrap(), [[1_u8; 100], [0; 100]].concat());
        File::create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    });
}

#[test]
fn a_rename_replaces_keeps_or_swaps() {
    in_both_modes(|mounted| {
        let (a, b) = (mounted.join("a"), mounted.join("b"));
        fs::write(&a, "a").unwrap();
        fs::write(&b, "b").unwrap();
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        let rename =
            |flags| rustix::fs::renameat_with(rustix::fs::CWD, &a, rustix::fs::CWD, &b, flags);
        assert_eq!(rename(flags).unwrap_err(), rustix::io::Errno::EXIST);
        rename(rustix::fs::RenameFlags::EXCHANGE).unwrap();
        assert_eq!((fs::read(&a).unwrap(), fs::read(&b).unwrap()), (b"b".into(), b"a".into()));
        fs::rename(&a, &b).unwrap();
        assert_eq!(fs::read(&b).unwrap(), b"b");
        assert_eq!(fs::read(&a).unwrap_err().kind(), ErrorKind::NotFound);
    });
}

#[test]
fn links_share_one_file() {
    in_both_modes(|mounted| {
        let (a, b, s) = (mounted.join("a"), mounted.join("b"), mounted.join("s"));
        fs::write(&a, "one").unwrap();
        fs::hard_link(&a, &b).unwrap();
        symlink("a", &s).unwrap();
        fs::write(&b, "two").unwrap();
        assert_eq!(fs::read(&s).unwrap(), b"two");
        assert_eq!(fs::read_link(&s).unwrap(), Path::new("a"));
        assert_eq!(fs::metadata(&a).unwrap().nlink(), 2);
        assert_eq!(fs::metadata(&a).unwrap().ino(), fs::metadata(&b).unwrap().ino());
        fs::remove_file(&a).unwrap();
        assert_eq!(fs::metadata(&b).unwrap().nlink(), 1);
        assert!(fs::metadata(&s).is_err());
    });
}

#[test]
fn an_open_file_outlives_its_name() {
    for cache in CACHES {
        let tree = Arc::new(MemoryTree::new(true));
        let mounted = Mounted::new(tree.clone(), cache);
        let mut file = open_rw(&mounted.join("file"));
        file.write_all(b"before").unwrap();
        fs::remove_file(mounted.join("file")).unwrap();
        file.write_all(b" after").unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), file.metadata().unwrap().nlink()), ("before after", 0));
        drop(file);
        // The kernel tells of a close without waiting for an answer.
        while tree.nodes() > 1 {
            std::thread::yield_now();
        }
        mounted.end();
    }
}

#[test]
fn ten_thousand_names_are_listed_once_each_and_removed() {
    in_both_modes(|mounted| {
        let directory = mounted.join("many");
        fs::create_dir_all(directory.join("deep/er")).unwrap();
        (0..10_000).for_each(|n| drop(File::create(directory.join(format!("{n}"))).unwrap()));
        for _ in 0..2 {
            let names: Vec<_> = fs::read_dir(&directory).unwrap().map(|e| e.unwrap()).collect();
            assert!(names.iter().all(|name| name.metadata().unwrap().ino() == name.ino()));
            let distinct: HashSet<_> = names.iter().map(|name| name.file_name()).collect();
            assert_eq!((names.len(), distinct.len()), (10_001, 10_001));
        }
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(fs::read_dir(mounted.path()).unwrap().count(), 0);
    });
}

#[test]
fn a_directory_in_use_is_not_removed() {
    in_both_modes(|mounted| {
        fs::create_dir_all(mounted.join("a/b")).unwrap();
        let error = fs::remove_dir(mounted.join("a")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DirectoryNotEmpty);
    });
}

#[test]
fn shared_mappings_and_writes_see_each_other() {
    in_both_modes(|mounted| {
        let path = mounted.join("file");
        fs::write(&path, [b'.'; 8192]).unwrap();
        let file = open_rw(&path);
        let mut shared = Mapped::shared(&file, 8192);
        shared[4096..4101].copy_from_slice(b"hello");
        shared.sync();
        let mut read = [0; 5];
        file.read_exact_at(&mut read, 4096).unwrap();
        assert_eq!(&read, b"hello");
        file.write_all_at(b"world", 0).unwrap();
        assert_eq!(&shared[..5], b"world");
    });
}

#[test]
fn private_mappings_keep_their_changes() {
    in_both_modes(|mounted| {
        let path = mounted.join("file");
        fs::write(&path, [b'.'; 4096]).unwrap();
        let file = open_rw(&path);
        let mut private = Mapped::private(&file, 4096);
        private[..2].copy_from_slice(b"me");
        assert_eq!(&private[..3], b"me.");
        assert_eq!(fs::read(&path).unwrap(), [b'.'; 4096]);
    });
}

#[test]
fn flock_excludes_the_other_descriptor() {
    in_both_modes(|mounted| {
        let (one, other) = (open_rw(&mounted.join("lock")), open_rw(&mounted.join("lock")));
        flock(&one, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
        flock(&one, FlockOperation::Unlock).unwrap();
        flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
    });
}

#[test]
fn fcntl_locks_exclude_the_other_process() {
    in_both_modes(|mounted| {
        let path = mounted.join("lock");
        let file = open_rw(&path);
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        let refused = lock_elsewhere(&path);
        assert!(!refused.status.success());
        let said = String::from_utf8_lossy(&refused.stdout).into_owned();
        assert!(said.contains("the lock: Some(WouldBlock)"), "{said}");
        fcntl_lock(&file, FlockOperation::Unlock).unwrap();
        assert!(lock_elsewhere(&path).status.success());
    });
}

/// Says to this test program, started once more, which file to lock.
const TO_LOCK: &str = "HOLDFAST_TEST_TO_LOCK";

/// Locks the file in another process, without waiting, and ends that process.
fn lock_elsewhere(path: &Path) -> std::process::Output {
    let mut other = Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", "files::a_process_of_its_own_that_locks"]).env(TO_LOCK, path);
    other.output().unwrap()
}

/// What the process started by [`lock_elsewhere`] does; nothing in a run of all tests.
#[test]
fn a_process_of_its_own_that_locks() {
    let Some(path) = std::env::var_os(TO_LOCK) else { return };
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let locked = fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive);
    let failure = locked.err().map(|error| std::io::Error::from(error).kind());
    assert_eq!(failure, None, "the lock: {failure:?}");
}

#[test]
fn fallocate_reserves_punches_and_zeroes() {
    in_both_modes(|mounted| {
        let path = mounted.join("file");
        fs::write(&path, [1; 8192]).unwrap();
        let file = open_rw(&path);
        let bytes = || file.metadata().unwrap().len();
        fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 1 << 20).unwrap();
        assert_eq!(bytes(), 8192);
        fallocate(&file, FallocateFlags::empty(), 0, 16384).unwrap();
        assert_eq!(bytes(), 16384);
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, punch, 1000, 1000).unwrap();
        fallocate(&file, FallocateFlags::ZERO_RANGE, 3000, 20000).unwrap();
        assert_eq!(bytes(), 23000);
        let read = fs::read(&path).unwrap();
        let is_one = |at: usize| at < 1000 || (2000..3000).contains(&at);
        assert!(read.iter().enumerate().all(|(at, byte)| *byte == u8::from(is_one(at))));
        assert!(fallocate(&file, FallocateFlags::COLLAPSE_RANGE, 0, 4096).is_err());
        fallocate(&file, FallocateFlags::empty(), 0, 32768).unwrap();
    });
}

#[test]
fn space_is_the_trees() {
    in_both_modes(|mounted| {
        let space = rustix::fs::statvfs(mounted.path()).unwrap();
        assert_eq!((space.f_blocks * space.f_frsize, space.f_namemax), (1 << 30, 255));
        assert_eq!((space.f_bfree, space.f_bavail), (1 << 17, 1 << 16));
    });
}

#[test]
fn times_are_set_to_a_moment_or_to_now() {
    in_both_modes(|mounted| {
        let file = open_rw(&mounted.join("file"));
        let (old, before) =
            (UNIX_EPOCH - Duration::from_millis(1500), std::time::SystemTime::now());
        let times = fs::FileTimes::new().set_accessed(old).set_modified(old);
        file.set_times(times).unwrap();
        let found = file.metadata().unwrap();
        assert_eq!((found.accessed().unwrap(), found.modified().unwrap()), (old, old));
        assert!(Command::new("touch").arg(mounted.join("file")).status().unwrap().success());
        assert!(file.metadata().unwrap().modified().unwrap() >= before);
        file.set_times(times).unwrap();
        file.write_all_at(b"x", 0).unwrap();
        assert!(file.metadata().unwrap().modified().unwrap() >= before);
    });
}

#[test]
fn another_user_meets_the_permissions() {
    in_both_modes(|mounted| {
        let (path, own) = (mounted.join("file"), mounted.join("own"));
        fs::set_permissions(mounted.path(), Permissions::from_mode(0o755)).unwrap();
        fs::write(&path, "secret").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert!(!nobody_can("cat \"$1\"", &path));
        assert!(!nobody_can("echo x > \"$1\"", &own));
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(nobody_can("cat \"$1\"", &path));
        assert!(!nobody_can("echo x >> \"$1\" || chmod 777 \"$1\"", &path));
        fs::set_permissions(mounted.path(), Permissions::from_mode(0o1777)).unwrap();
        assert!(nobody_can("umask 027; echo x > \"$1\"", &own));
        let found = fs::metadata(&own).unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode()), (65534, 65534, 0o100_640));
        assert!(!nobody_can("rm -f \"$1\"", &path));
        chown(&path, Some(65534), None).unwrap();
        assert!(nobody_can("rm -f \"$1\"", &path));
    });
}

#[test]
fn a_directory_with_set_group_id_hands_its_group_down() {
    in_both_modes(|mounted| {
        let shared = mounted.join("shared");
        fs::create_dir(&shared).unwrap();
        chown(&shared, None, Some(1234)).unwrap();
        fs::set_permissions(&shared, Permissions::from_mode(0o2775)).unwrap();
        File::create(shared.join("file")).unwrap();
        fs::create_dir(shared.join("directory")).unwrap();
        assert_eq!(fs::metadata(shared.join("file")).unwrap().gid(), 1234);
        let directory = fs::metadata(shared.join("directory")).unwrap();
        assert_eq!((directory.gid(), directory.mode() & 0o2000), (1234, 0o2000));
    });
}

#[test]
fn set_user_id_does_not_survive_a_write_or_a_new_owner() {
    in_both_modes(|mounted| {
        let path = mounted.join("file");
        let mode = || fs::metadata(&path).unwrap().mode() & 0o7777;
        for command in ["echo x >> \"$1\"", ": > \"$1\""] {
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o6777)).unwrap();
            assert!(nobody_can(command, &path));
            assert_eq!(mode(), 0o777, "{command}");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o6777)).unwrap();
        chown(&path, Some(1), None).unwrap();
        assert_eq!(mode(), 0o777);
    });
}

/// What becomes of a file that a program of another user, in these groups, has open for writing.
fn mode_after(path: &Path, mode: u32, (gid, groups): (u32, u32), command: &str) -> (bool, u32) {
    fs::write(path, "#!/bin/sh\n").unwrap();
    chown(path, Some(0), Some(1234)).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let open = File::options().append(true).open(path).unwrap();
    let mut program = Command::new("setpriv");
    program.args(["--reuid=65534", &format!("--regid={gid}"), &format!("--groups={groups}")]);
    program.args(["sh", "-c", command]).stdout(open);
    let done = program.output().unwrap().status.success();
    (done, fs::metadata(path).unwrap().mode() & 0o7777)
}

/// `chown` of a file to whom it belongs is the one that is asked of a server as a write is: who may
/// not do it is told that it is done, and it is not.
#[test]
fn who_has_a_file_open_takes_its_privileges_away_by_writing_as_beside() {
    let beside = tempfile::tempdir().unwrap();
    fs::set_permissions(beside.path(), Permissions::from_mode(0o755)).unwrap();
    in_both_modes(|mounted| {
        for bits in [0o4000, 0o2000, 0o6000] {
            for access in [0o644, 0o755, 0o777] {
                for groups in [(65534, 65534), (1234, 65534), (65534, 1234)] {
                    for command in [
                        "echo x",
                        "fallocate --length 100 /dev/stdout",
                        "truncate --size 3 /dev/stdout",
                    ] {
                        let mode = bits | access;
                        let told = format!("{command:?} of {mode:o} by a user of {groups:?}");
                        let there = mode_after(&beside.path().join("file"), mode, groups, command);
                        let here = mode_after(&mounted.join("file"), mode, groups, command);
                        assert_eq!(here, there, "{told}");
                    }
                }
            }
        }
    });
}

#[test]
fn direct_and_synchronous_descriptors_work() {
    for cache in CACHES {
        let tree = Arc::new(MemoryTree::new(true));
        let mounted = Mounted::new(tree.clone(), cache);
        let flags = (OFlags::DIRECT | OFlags::DSYNC).bits().cast_signed();
        let path = mounted.join("log");
        let file = File::options().write(true).create(true).custom_flags(flags).open(&path);
        let block = AlignedBlock::filled_with(7);
        let before = tree.syncs.load(Relaxed);
        file.unwrap().write_all_at(&block, 4096).unwrap();
        assert_eq!(tree.syncs.load(Relaxed), before + 1);
        assert!(fs::read(&path).unwrap()[4096..] == block[..]);
        mounted.end();
    }
}

#[test]
fn sync_reaches_the_tree_only_where_it_has_work() {
    for (needed, reached) in [(true, 3), (false, 0)] {
        let tree = Arc::new(MemoryTree::new(needed));
        let mounted = Mounted::new(tree.clone(), Cache::Direct);
        let file = open_rw(&mounted.join("file"));
        file.write_all_at(b"x", 0).unwrap();
        file.sync_all().unwrap();
        file.sync_data().unwrap();
        File::open(mounted.path()).unwrap().sync_all().unwrap();
        assert_eq!(tree.syncs.load(Relaxed), reached);
        drop(file);
        mounted.end();
    }
}

#[test]
fn pipes_and_sockets_have_names() {
    in_both_modes(|mounted| {
        let path = mounted.join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
        let _listener = std::os::unix::net::UnixListener::bind(mounted.join("s")).unwrap();
        std::os::unix::net::UnixStream::connect(mounted.join("s")).unwrap();
    });
}

#[test]
fn extended_attributes_are_clearly_not_supported() {
    in_both_modes(|mounted| {
        let file = open_rw(&mounted.join("file"));
        let flags = rustix::fs::XattrFlags::empty();
        let error = rustix::fs::fsetxattr(&file, "user.x", b"1", flags).unwrap_err();
        assert_eq!(error, rustix::io::Errno::OPNOTSUPP);
    });
}

#[test]
fn files_are_copied_and_executed() {
    in_both_modes(|mounted| {
        // Another process copies: a test beside this one that starts a program would carry a
        // descriptor of ours into it for a moment, and a file open for writing is not executed.
        let copy = Command::new("cp").arg("/bin/true").arg(mounted.join("true")).status();
        assert!(copy.unwrap().success());
        assert!(Command::new(mounted.join("true")).status().unwrap().success());
    });
}

#[test]
fn writes_that_have_to_wait_keep_no_thread_and_nobody_else_waiting() {
    for cache in CACHES {
        let tree = Arc::new(MemoryTree::new(true));
        let mounted = Mounted::new(tree.clone(), cache);
        *tree.holds_up.lock().unwrap() = Some(b'h');
        // More of them than threads that listen.
        let paths: Vec<_> = (0..8).map(|index| mounted.join(&format!("held-{index}"))).collect();
        let writers: Vec<_> = paths
            .iter()
            .cloned()
            .map(|path| std::thread::spawn(move || fs::write(path, b"held up").unwrap()))
            .collect();
        let is_made = |path: &std::path::PathBuf| path.exists();
        while !paths.iter().all(is_made) {
            std::thread::yield_now();
        }
        for round in 0..50 {
            let other = mounted.join(&format!("other-{round}"));
            fs::write(&other, b"goes on").unwrap();
            assert_eq!(fs::read(&other).unwrap(), b"goes on");
            fs::remove_file(&other).unwrap();
            assert!(writers.iter().all(|writer| !writer.is_finished()));
        }
        *tree.holds_up.lock().unwrap() = None;
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert!(paths.iter().all(|path| fs::read(path).unwrap() == b"held up"));
        mounted.end();
    }
}
