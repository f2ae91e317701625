//! What two hosts share: memory, a disk, and a folder of terms.
//!
//! Promise: each host reaches the disk by a server of its own, so that cutting one host off leaves
//! the other alone; everything is gone with the last of it.
//! Never: decides who may write.

use crate::error::{During, GuestError};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Bytes of the shared memory: a ring of 8 MiB, and what stands around it.
const MEMORY_BYTES: u64 = 64 << 20;

/// Bytes of the disk that has home and log.
const DISK_BYTES: u64 = 256 << 20;

/// Makes the disk so slow that at each moment the region has something that the disk has not.
const SLOW: &str = "throttling.iops-write=20";

/// Where distributions have the server of shared folders; it is no command for people.
const VIRTIOFSD: [&str; 2] = ["/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd"];

/// Far longer than a server takes to listen.
const PATIENCE: Duration = Duration::from_secs(60);

/// It all, as files of this machine's.
pub(crate) struct Shared {
    folder: tempfile::TempDir,
}

/// One host's ways to it.
pub(crate) struct Ways {
    folder: PathBuf,
    memory: PathBuf,
    disk: Server,
    _terms: Server,
}

/// A process that serves a socket.
struct Server(Child);

impl Shared {
    /// Empty memory, an empty file system, no terms.
    pub(crate) fn new() -> Result<Shared, GuestError> {
        // In memory, as what it stands for is.
        let folder = tempfile::tempdir_in("/dev/shm").during("making a folder in memory")?;
        let shared = Shared { folder };
        fs::create_dir(shared.path("terms")).during("making a folder")?;
        for (name, bytes) in [("memory", MEMORY_BYTES), ("disk", DISK_BYTES)] {
            File::create(shared.path(name))
                .and_then(|it| it.set_len(bytes))
                .during("making a file")?;
        }
        let doing = "making a file system";
        let mut command = Command::new("mkfs.ext4");
        let status = command.args(["-q", "-F"]).arg(shared.path("disk")).status().during(doing)?;
        status.success().then_some(shared).ok_or_else(|| GuestError::new(doing, "mkfs.ext4 failed"))
    }

    /// The ways of one host, whose own files are in `folder`.
    pub(crate) fn ways(&self, folder: &Path) -> Result<Ways, GuestError> {
        let virtiofsd = VIRTIOFSD.into_iter().find(|path| Path::new(path).exists());
        let virtiofsd = virtiofsd.ok_or_else(|| {
            GuestError::new("looking for virtiofsd", format!("it is none of {VIRTIOFSD:?}"))
        })?;
        let mut disk = Command::new("qemu-nbd");
        disk.args(["--persistent", "--shared=1", "--format=raw", "--cache=writeback"]);
        disk.arg("--socket").arg(folder.join("disk.sock")).arg(self.path("disk"));
        let mut terms = Command::new(virtiofsd);
        terms.arg(format!("--socket-path={}", folder.join("terms.sock").display()));
        terms.arg("-o").arg(format!("source={},cache=none", self.path("terms").display()));
        Ok(Ways {
            folder: folder.to_owned(),
            memory: self.path("memory"),
            disk: Server::start(disk, &folder.join("disk.sock"))?,
            _terms: Server::start(terms, &folder.join("terms.sock"))?,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Ways {
    /// How QEMU is told of them.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let at = |name: &str| self.folder.join(name).display().to_string();
        let memory = format!(
            "memory-backend-file,id=shared,share=on,size={MEMORY_BYTES},mem-path={}",
            self.memory.display()
        );
        let disk = format!(
            "id=data,if=none,format=raw,cache=none,file=nbd:unix:{},{SLOW}",
            at("disk.sock")
        );
        let terms = format!("socket,id=terms,path={}", at("terms.sock"));
        let of_memory =
            ["-machine", "nvdimm=on,nvdimm-persistence=mem-ctrl", "-m", "slots=2,maxmem=2G"];
        let memory = ["-object", &memory, "-device", "nvdimm,memdev=shared"];
        let disk = ["-drive", &disk, "-device", "virtio-blk-pci,drive=data,addr=5"];
        let terms =
            ["-chardev", &terms, "-device", "vhost-user-fs-pci,chardev=terms,tag=terms,addr=6"];
        [of_memory, memory, disk, terms].concat().into_iter().map(String::from).collect()
    }

    /// Has no write of this host's reach the disk any more: one that is under way has arrived or
    /// never does when this returns.
    pub(crate) fn cut_off(&mut self) {
        self.disk.end();
    }
}

impl Server {
    /// Starts it, and waits until it listens.
    fn start(mut command: Command, socket: &Path) -> Result<Server, GuestError> {
        let doing = format!("starting {}", command.get_program().display());
        let log = File::create(socket.with_extension("log")).during(&doing)?;
        let _stale = fs::remove_file(socket);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut server = Server(command.spawn().during(&doing)?);
        let give_up = Instant::now() + PATIENCE;
        while !socket.exists() {
            let has_ended = server.0.try_wait().during(&doing)?.is_some();
            if has_ended || Instant::now() > give_up {
                let said = fs::read_to_string(socket.with_extension("log")).unwrap_or_default();
                return Err(GuestError::new(doing, said));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    fn end(&mut self) {
        let ended: io::Result<_> = self.0.kill().and_then(|()| self.0.wait());
        let _may_have_ended_before = ended;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
