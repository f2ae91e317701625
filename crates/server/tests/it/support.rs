//! Logs and disks with their regions, a listening socket, and a server over them.

use holdfast_blocks::{AttachVdiskError, Vdisk, VdiskSpec};
use holdfast_client::LogClient;
use holdfast_io::Entropy;
use holdfast_io::real::{RealClock, RealEntropy, RealFiles};
use holdfast_log::{CommitLog, Log, LogConfig, Lsn};
use holdfast_memory::{AttachError, Medium, Region, RegionSpec};
use holdfast_server::{LogSpec, Server, ServerSpec, ServiceKind, ServiceSpec, ServiceWords};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The log's name in every test.
pub(crate) const NAME: &str = "ledger";

const RING_BYTES: u64 = 8 << 20;
const CONFIG: LogConfig = LogConfig::in_ring(RING_BYTES, RING_BYTES / 4, 6);
const IDENTITY: [u8; 16] = *b"a served log 001";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A place for logs.
pub(crate) struct Place {
    root: tempfile::TempDir,
    regions: PathBuf,
    names: Vec<&'static str>,
    pub(crate) listener: UnixListener,
}

impl Place {
    /// With one log made, and a socket that listens.
    pub(crate) fn new() -> Place {
        Place::with_logs(&[NAME])
    }

    /// [`Self::new`] with these logs.
    pub(crate) fn with_logs(names: &[&'static str]) -> Place {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let regions = format!("/dev/shm/holdfast-served-{}-{number}", std::process::id());
        std::fs::create_dir(&regions).unwrap();
        let root = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(root.path().join("socket")).unwrap();
        let place = Place { root, regions: regions.into(), names: names.to_vec(), listener };
        for name in names {
            std::fs::create_dir(place.log(name)).unwrap();
            let files = RealFiles::open(&place.log(name)).unwrap();
            Log::create(&files, IDENTITY, &CONFIG).unwrap();
        }
        place
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.root.path().join("socket")
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn region(&self, name: &str) -> PathBuf {
        self.regions.join(name)
    }

    /// A client of the first log.
    pub(crate) fn client(&self) -> LogClient {
        LogClient::connect(&self.socket(), self.names[0]).unwrap()
    }

    /// Starts a server in this process.
    pub(crate) fn serve(&self) -> Serving {
        self.serve_with(|_| {})
    }

    /// [`Self::serve`] with logs that are served in another way.
    pub(crate) fn serve_with(&self, change: impl Fn(&mut LogSpec)) -> Serving {
        self.serve_all(change, Vec::new())
    }

    /// Starts a server of the logs and of other services.
    pub(crate) fn serve_all(
        &self,
        change: impl Fn(&mut LogSpec),
        services: Vec<ServiceSpec>,
    ) -> Serving {
        let spec = |name: &&str| {
            let mut spec = log_spec(name, &self.log(name), &self.region(name));
            change(&mut spec);
            spec
        };
        let logs = self.names.iter().map(spec).collect();
        let (server, errors) = Server::open(ServerSpec { logs, services, clients_max: 32 });
        assert!(errors.is_empty(), "{errors:?}");
        let listener = self.listener.try_clone().unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let (drain, drained) = UnixStream::pair().unwrap();
        let (reports, keeper) = std::io::pipe().unwrap();
        let serve = move || server.serve(&listener, stopped, drained, keeper).unwrap();
        Serving {
            stop: Some(stop),
            _drain: drain,
            _keeper: reports,
            thread: Some(std::thread::spawn(serve)),
        }
    }

    /// What a word of a log's region says, seen from outside.
    pub(crate) fn word(&self, name: &str, index: usize) -> u64 {
        Region::observe(&Medium::Shm { path: self.region(name) }).unwrap().word(index)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.regions);
    }
}

/// A server in a thread; dropping it stops it gracefully.
pub(crate) struct Serving {
    stop: Option<UnixStream>,
    _drain: UnixStream,
    _keeper: std::io::PipeReader,
    thread: Option<JoinHandle<bool>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stop.take());
        let drains = self.thread.take().unwrap().join().unwrap();
        assert!(!drains, "it was told to stop, not to drain");
    }
}

/// The log in a directory, over a region that is attached or made.
pub(crate) fn log_spec(name: &str, log: &Path, region: &Path) -> LogSpec {
    let medium = Medium::Shm { path: region.to_owned() };
    let region = match Region::attach(&medium) {
        Err(AttachError::Missing) => {
            // A window of each of some clients fits, should one of its threads be held up for long.
            let (ring_bytes, roster_bytes) = (RING_BYTES, 1 << 20);
            let spec = RegionSpec { ring_bytes, roster_bytes, identity: IDENTITY };
            Region::create(&medium, &spec).unwrap()
        }
        attached => attached.unwrap(),
    };
    LogSpec {
        service: format!("log/{name}"),
        files: Arc::new(RealFiles::open(log).unwrap()),
        region: Arc::new(region),
        clock: Arc::new(RealClock),
        config: CONFIG,
        is_written_through: false,
        allow_uids: vec![rustix::process::getuid().as_raw()],
        clients_max: 16,
    }
}

/// A disk that is served, in a region that is attached or made.
pub(crate) fn disk_spec(name: &str, region: &Path, size_bytes: u64) -> ServiceSpec {
    let medium = Medium::Shm { path: region.to_owned() };
    let disk = match Vdisk::attach(&medium, size_bytes) {
        Err(AttachVdiskError::Region(AttachError::Missing)) => {
            let mut identity = [0; 16];
            RealEntropy.fill(&mut identity);
            Vdisk::create(&medium, &VdiskSpec { size_bytes, identity }).unwrap()
        }
        attached => attached.unwrap(),
    };
    let disk = Arc::new(disk);
    ServiceSpec {
        service: format!("disk/{name}"),
        kind: ServiceKind::Disk(disk.clone()),
        words: Arc::new(DiskWords(disk)),
        allow_uids: vec![rustix::process::getuid().as_raw()],
        clients_max: 16,
    }
}

/// The words of a disk's region.
struct DiskWords(Arc<Vdisk>);

impl ServiceWords for DiskWords {
    fn word(&self, index: usize) -> &AtomicU64 {
        self.0.counter(index)
    }
}

/// Every payload between two marks, in order.
pub(crate) fn payloads(log: &dyn CommitLog, from: Lsn, to: Lsn) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    let read = log.read(from, to, &mut |frame| {
        payloads.push(frame.payload.to_vec());
        true
    });
    read.unwrap();
    payloads
}

/// How many times as much the long tests do.
pub(crate) fn seeds_factor() -> u64 {
    std::env::var("HOLDFAST_SEEDS_FACTOR").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Numbers that a seed repeats: splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// A seed of the clock's, or the one that is to be repeated; says how to repeat it.
pub(crate) fn seed(test: &str) -> u64 {
    let given = std::env::var("HOLDFAST_SEED").ok().and_then(|text| text.parse().ok());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = given.unwrap_or(now.subsec_nanos().into());
    println!("repeat with: HOLDFAST_SEED={seed} cargo test -p holdfast-server --test it {test}");
    seed
}
