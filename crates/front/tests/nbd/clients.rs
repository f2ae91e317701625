//! Clients that nobody here wrote: libnbd with its tools, and QEMU. `scripts/setup` installs them.

use std::ffi::OsStr;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use holdfast_front::nbd::Listener;
use holdfast_io::Blocks;
use tempfile::TempDir;

use crate::memory::MemoryBlocks;
use crate::random::Random;
use crate::served::{CONFIG, Disk, Server};

const SIZE: usize = 48 << 20;

/// A server with a disk of its own, and a directory for files.
struct Setting {
    server: Option<Server>,
    disk: Arc<MemoryBlocks>,
    uri: String,
    directory: TempDir,
}

impl Setting {
    fn unix() -> Setting {
        let disk = Arc::new(MemoryBlocks::new(SIZE, 1 << 20));
        let server = Server::unix(Disk::new(disk.clone()));
        let uri = format!("nbd+unix:///disk?socket={}", server.path().display());
        Setting { server: Some(server), disk, uri, directory: tempfile::tempdir().unwrap() }
    }

    fn tcp() -> Setting {
        let disk = Arc::new(MemoryBlocks::new(SIZE, 4096));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("nbd://{}/disk", listener.local_addr().unwrap());
        let listeners = vec![Listener::new(listener).unwrap()];
        let server = Server::start(listeners, Vec::new(), Disk::new(disk.clone()), CONFIG);
        Setting { server: Some(server), disk, uri, directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A file as long as the disk, half of it noise and a quarter zeros.
    fn noise(&self, name: &str, seed: u64) -> PathBuf {
        let mut random = Random::seeded(seed);
        let mut bytes = vec![0; SIZE];
        for page in bytes.chunks_mut(64 << 10) {
            match random.below(4) {
                0 => {}
                1 => page.fill(random.next() as u8),
                _ => page.chunks_mut(8).for_each(|word| {
                    word.copy_from_slice(&random.next().to_le_bytes());
                }),
            }
        }
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }
}

/// Runs a program, which must succeed, and returns what it prints.
fn run<A: AsRef<OsStr>>(program: &str, arguments: &[A]) -> String {
    let output = output(program, arguments);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} ended with {}: {complaints}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What became of a program.
fn output<A: AsRef<OsStr>>(program: &str, arguments: &[A]) -> Output {
    Command::new(program).args(arguments).output().unwrap_or_else(|error| {
        panic!("{program}: {error}; this test needs what `scripts/setup` installs")
    })
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn nbdinfo_sees_what_the_server_can_do() {
    for setting in [Setting::unix(), Setting::tcp()] {
        let told = run("nbdinfo", &["--json", &setting.uri]);
        for expected in [
            "\"protocol\": \"newstyle-fixed\"",
            "\"TLS\": false",
            "\"structured\": true",
            "\"export-name\": \"disk\"",
            "\"export-size\": 50331648",
            "\"base:allocation\"",
            "\"is_read_only\": false",
            "\"can_cache\": true",
            "\"can_df\": true",
            "\"can_fast_zero\": true",
            "\"can_flush\": true",
            "\"can_fua\": true",
            "\"can_multi_conn\": true",
            "\"can_trim\": true",
            "\"can_zero\": true",
            "\"block_size_minimum\": 1",
            "\"block_size_preferred\": 4096",
            "\"block_size_maximum\": 33554432",
        ] {
            assert!(told.contains(expected), "{expected} is not in {told}");
        }
        let map = run("nbdinfo", &["--map", "--totals", &setting.uri]);
        assert!(map.contains("50331648 100.0%   0 data"), "{map}");
    }
}

#[test]
fn nbdinfo_lists_all_exports() {
    let disk = |name| Disk { name, ..Disk::in_memory(1 << 20).remove(0) };
    let read_only = Disk { read_only: true, ..disk("frozen") };
    let server = Server::unix(vec![disk("pg"), read_only]);
    let uri = format!("nbd+unix:///?socket={}", server.path().display());
    let told = run("nbdinfo", &["--list", "--json", &uri]);
    for expected in ["\"pg\"", "\"frozen\"", "\"is_read_only\": true", "\"is_read_only\": false"] {
        assert!(told.contains(expected), "{expected} is not in {told}");
    }
}

#[test]
fn nbdcopy_brings_a_disk_there_and_back() {
    for setting in [Setting::unix(), Setting::tcp()] {
        let (there, back) = (setting.noise("there", 1), setting.path("back"));
        fs::write(&back, b"").unwrap();
        run("nbdcopy", &["--flush", text(&there), &setting.uri]);
        assert!(setting.disk.contents() == fs::read(&there).unwrap());
        run("nbdcopy", &[&setting.uri, text(&back)]);
        assert!(fs::read(&back).unwrap() == fs::read(&there).unwrap());
        // Nothing but zeros over what was there; and other sizes of requests.
        let zeros = setting.path("zeros");
        fs::write(&zeros, vec![0; SIZE]).unwrap();
        run("nbdcopy", &["--request-size=33554432", text(&zeros), &setting.uri]);
        assert!(setting.disk.contents().iter().all(|&byte| byte == 0));
        run("nbdcopy", &["--connections=1", "--requests=1", text(&there), &setting.uri]);
        assert!(setting.disk.contents() == fs::read(&there).unwrap());
    }
}

#[test]
fn qemu_img_converts_and_compares() {
    for setting in [Setting::unix(), Setting::tcp()] {
        let told = run("qemu-img", &["info", "--output=json", "-f", "raw", &setting.uri]);
        assert!(told.contains("\"virtual-size\": 50331648"), "{told}");
        let (there, back) = (setting.noise("there", 2), setting.path("back"));
        let formats = ["-f", "raw", "-O", "raw"];
        run(
            "qemu-img",
            &[&["convert", "-n"], &formats[..], &[text(&there), &setting.uri]].concat(),
        );
        assert!(setting.disk.contents() == fs::read(&there).unwrap());
        run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &setting.uri, text(&there)]);
        run("qemu-img", &[&["convert"], &formats[..], &[&setting.uri, text(&back)]].concat());
        assert!(fs::read(&back).unwrap() == fs::read(&there).unwrap());
        // The old contents are no zeros, and the client has to know that.
        let other = setting.noise("other", 3);
        let convert = ["convert", "-n", "-W", "-m", "16"];
        run("qemu-img", &[&convert, &formats[..], &[text(&other), &setting.uri]].concat());
        assert!(setting.disk.contents() == fs::read(&other).unwrap());
    }
}

#[test]
fn qemu_img_keeps_an_image_on_the_disk_and_finds_no_fault_in_it() {
    let setting = Setting::unix();
    let noise = setting.noise("noise", 4);
    fs::File::options().write(true).open(&noise).unwrap().set_len(16 << 20).unwrap();
    run("qemu-img", &["create", "-f", "qcow2", &setting.uri, "16M"]);
    let convert = ["convert", "-n", "-f", "raw", "-O", "qcow2"];
    run("qemu-img", &[&convert[..], &[text(&noise), &setting.uri]].concat());
    let checked = run("qemu-img", &["check", "-f", "qcow2", &setting.uri]);
    assert!(checked.contains("No errors were found"), "{checked}");
    run("qemu-img", &["compare", "-f", "raw", "-F", "qcow2", text(&noise), &setting.uri]);
}

#[test]
fn qemu_img_bench_runs_at_every_size_and_depth() {
    let setting = Setting::unix();
    for bytes in ["512", "4096", "65536", "1048576", "8388608"] {
        for depth in ["1", "16", "64"] {
            let sizes = ["bench", "-f", "raw", "-c", "200", "-s", bytes, "-d", depth];
            run("qemu-img", &[&sizes[..], &[&setting.uri]].concat());
            let write = ["-w", "--pattern=7", "--flush-interval=100"];
            run("qemu-img", &[&sizes[..], &write, &[&setting.uri]].concat());
        }
    }
    assert!(setting.disk.contents()[..200 * 512].iter().all(|&byte| byte == 7));
}

/// What fio is to do, beside writing blocks of many sizes, each with its check value.
fn fio(setting: &Setting, more: &[&str]) -> Output {
    let uri = format!("--uri={}", setting.uri);
    let fixed = ["--name=verify", "--ioengine=nbd", "--size=32M", "--iodepth=16", "--randseed=5"];
    let blocks = ["--rw=randwrite", "--bsrange=512-256k", "--blockalign=512"];
    let verify = ["--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0", &uri];
    output("fio", &[&fixed[..], &blocks, &verify, more].concat())
}

#[test]
fn fio_finds_what_it_wrote_and_finds_a_bit_that_is_not_as_it_wrote_it() {
    for setting in [Setting::unix(), Setting::tcp()] {
        let written = fio(&setting, &["--fsync=64"]);
        assert!(written.status.success(), "{written:?}");
        let mut byte = [setting.disk.contents()[10 << 20] ^ 1];
        setting.disk.write(&byte, 10 << 20).unwrap();
        let damaged = fio(&setting, &["--verify_only"]);
        assert!(!damaged.status.success(), "the canary: {damaged:?}");
        byte[0] ^= 1;
        setting.disk.write(&byte, 10 << 20).unwrap();
        assert!(fio(&setting, &["--verify_only"]).status.success());
    }
}

#[test]
fn libnbd_finds_every_command_and_every_error_as_specified() {
    for setting in [Setting::unix(), Setting::tcp()] {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nbd/libnbd.py");
        // Debian's Python: the module is not in any other.
        run("/usr/bin/python3", &[script, &setting.uri, &SIZE.to_string()]);
        let sessions = setting.server.unwrap().stop();
        assert!(sessions.is_empty(), "the client has parted");
    }
}
