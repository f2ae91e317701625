//! A log with its region, a listening socket, and a server over both.

use holdfast_client::LogClient;
use holdfast_io::real::{RealClock, RealFiles};
use holdfast_log::{CommitLog, Log, LogConfig, Lsn};
use holdfast_memory::{AttachError, Medium, Region, RegionSpec};
use holdfast_server::{LogSpec, Server, ServerSpec};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

/// The log's name in every test.
pub(crate) const NAME: &str = "ledger";

const RING_BYTES: u64 = 8 << 20;
const IDENTITY: [u8; 16] = *b"a served log 001";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A place for one log.
pub(crate) struct Place {
    root: tempfile::TempDir,
    region: PathBuf,
    pub(crate) listener: UnixListener,
}

impl Place {
    /// With a log made, and a socket that listens.
    pub(crate) fn new() -> Place {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let region = format!("/dev/shm/holdfast-served-{}-{number}", std::process::id());
        let root = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(root.path().join("socket")).unwrap();
        let place = Place { root, region: region.into(), listener };
        std::fs::create_dir(place.log()).unwrap();
        let files = RealFiles::open(&place.log()).unwrap();
        Log::create(&files, IDENTITY, &log_config()).unwrap();
        place
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.root.path().join("socket")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.root.path().join("log")
    }

    pub(crate) fn region(&self) -> &Path {
        &self.region
    }

    /// A client of the log.
    pub(crate) fn client(&self) -> LogClient {
        LogClient::connect(&self.socket(), NAME).unwrap()
    }

    /// Starts a server in this process.
    pub(crate) fn serve(&self) -> Serving {
        self.serve_with(|_| {})
    }

    /// [`Self::serve`] with a log that is served in another way.
    pub(crate) fn serve_with(&self, change: impl FnOnce(&mut LogSpec)) -> Serving {
        let mut spec = log_spec(&self.log(), &self.region);
        change(&mut spec);
        let server = Server::open(ServerSpec { logs: vec![spec], clients_max: 32 }).unwrap();
        let listener = self.listener.try_clone().unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let thread = std::thread::spawn(move || server.serve(&listener, stopped).unwrap());
        Serving { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.region);
    }
}

/// A server in a thread; dropping it stops it gracefully.
pub(crate) struct Serving {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

fn log_config() -> LogConfig {
    LogConfig { segment_bytes: RING_BYTES / 4, segments: 6, dirty_bytes_max: RING_BYTES }
}

/// The log in a directory, over a region that is attached or made.
pub(crate) fn log_spec(log: &Path, region: &Path) -> LogSpec {
    let medium = Medium::Shm { path: region.to_owned() };
    let region = match Region::attach(&medium) {
        Err(AttachError::Missing) => {
            let (ring_bytes, roster_bytes) = (RING_BYTES, 64 << 10);
            let spec = RegionSpec { ring_bytes, roster_bytes, identity: IDENTITY };
            Region::create(&medium, &spec).unwrap()
        }
        attached => attached.unwrap(),
    };
    LogSpec {
        name: NAME.into(),
        files: Arc::new(RealFiles::open(log).unwrap()),
        region: Arc::new(region),
        clock: Arc::new(RealClock),
        config: log_config(),
        is_written_through: false,
        allow_uids: vec![rustix::process::getuid().as_raw()],
        clients_max: 16,
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
